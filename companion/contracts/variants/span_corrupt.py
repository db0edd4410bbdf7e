"""Contracts of span corruption: T5's way to make a task of a text.

Each run of dropped tokens leaves one sentinel in the source. The target holds
the runs, each behind its sentinel, and one more sentinel at the end (Raffel et
al., 2020). Contracts compare lists of ids, since sizes depend on the mask.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, seeded
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, require_several
from companion.variants import span_corrupt

__all__ = ["SPAN_CORRUPT"]

SENTINEL = 99


Ids = list[int]


Pair = tuple[Ids, Ids]


class Case(NamedTuple):
    """A text, what is dropped of it, and the first sentinel."""

    tokens: Ids
    dropped: list[bool]
    sentinel: int = SENTINEL

    @property
    def args(self) -> tuple[Tensor, Tensor, int]:
        """What the function is called with."""
        return torch.tensor(self.tokens), torch.tensor(self.dropped), self[2]


def drop(kept: str, sentinel: int = SENTINEL) -> Case:
    """A text of as many words as ``kept`` has letters; ``x`` is dropped."""
    words = [11 + i for i in range(len(kept))]
    return Case(words, [letter == "x" for letter in kept], sentinel)


PLAIN = drop("..xx.x..")


MIDDLE = (PLAIN, drop(".x.xxx.xx."), drop(".x.x.", 50))


ENDS = (drop("xx..."), drop("...xx"), drop("x...x"), drop("x.x"))


NOTHING, EVERYTHING = drop("....."), drop("xxxxx")


TWINS = Case(
    [11, 12, 11, 12, 12, 11, 11],
    [False, True, False, False, True, True, False],
)
"""Equal words, of which one is dropped and the other is not."""


def some(seed: int, length: int = 23) -> Case:
    """A text of words drawn from 11 … 40, about a third of it dropped."""
    generator = seeded(seed)
    words = torch.randint(11, 41, (length,), generator=generator)
    dropped = torch.rand(length, generator=generator) < 0.35
    return Case(words.tolist(), dropped.tolist())


def pieces(case: Case, alone: bool = False) -> list[tuple[bool, Ids]]:
    """The text cut into runs: (whether it is dropped, its tokens).

    ``alone`` makes every dropped token a run of its own.
    """
    runs: list[tuple[bool, Ids]] = []
    for token, out in zip(case.tokens, case.dropped, strict=True):
        if runs and runs[-1][0] == out and not (out and alone):
            runs[-1][1].append(token)
        else:
            runs.append((out, [token]))
    return runs


def corrupt(
    case: Case, sign: int = -1, last: bool = True, alone: bool = False
) -> Pair:
    """What is to be returned; the options are what may go wrong."""
    source, target, sentinel = [], [], case.sentinel
    for out, tokens in pieces(case, alone):
        if out:
            source.append(sentinel)
            target += [sentinel, *tokens]
            sentinel += sign
        else:
            source += tokens
    return source, target + [sentinel] * last


def without_sentinels(case: Case) -> Pair:
    """Spans are deleted, as BART's token deletion does."""
    source = [x for out, run in pieces(case) if not out for x in run]
    return source, corrupt(case)[1]


def between(case: Case) -> Pair:
    """A target of spans alone, with no sentinel anywhere."""
    spans = [x for out, run in pieces(case) if out for x in run]
    return corrupt(case)[0], spans


def behind(case: Case) -> Pair:
    """A target in which the sentinel follows its span."""
    source, target = corrupt(case, last=False)
    swapped = []
    for out, run in pieces(case):
        if out:
            sentinel, target = target[0], target[1 + len(run) :]
            swapped += [*run, sentinel]
    return source, swapped


def turned(case: Case) -> Case:
    """What was kept is dropped."""
    return case._replace(dropped=[not x for x in case.dropped])


def from_the_next(case: Case) -> Pair:
    """The first sentinel is one lower."""
    return corrupt(case._replace(sentinel=case.sentinel - 1))


MISTAKEN: dict[str, Callable[[Case], Pair]] = {
    "Every dropped token has a sentinel of its own: neighbours are one span, "
    "with one sentinel.": lambda case: corrupt(case, alone=True),
    "The spans leave nothing behind in the source, as in BART's deletion: put "
    "a sentinel there.": without_sentinels,
    "The sentinels count up: they count down, from the last id of the "
    "vocabulary.": lambda case: corrupt(case, 1),
    "Every span has the same sentinel: nobody can tell which is which. They "
    "count down.": lambda case: corrupt(case, 0),
    "The last sentinel is missing: the target ends with one more, which says "
    "that it is over.": lambda case: corrupt(case, last=False),
    "The target is the whole text, which is BART's: T5's is the dropped spans "
    "alone.": lambda case: (corrupt(case)[0], case.tokens),
    "The target holds no sentinels: each span comes behind its own.": between,
    "In the target each sentinel follows its span: it comes before it.": behind,
    "The target is the source of the opposite mask, in which a sentinel stands "
    "for what was kept: where the text begins or ends with a dropped span, it "
    "no longer fits.": lambda case: (
        corrupt(case)[0],
        corrupt(turned(case))[0],
    ),
    "What was to be dropped is kept, and the rest is dropped: True means "
    "dropped.": lambda case: corrupt(turned(case)),
    "Source and target have changed places: the source comes first.": (
        lambda case: corrupt(case)[::-1]
    ),
    "The first sentinel is skipped: the first span gets `sentinel` itself.": (
        from_the_next
    ),
}
"""Hint -> the mistake, as a function of a case."""


def read(fn: Guarded, result: object, args: tuple) -> list[Ids]:
    """Source and target, two rows of ids."""
    require_several(fn, result, 2)
    return [row(fn, x, args) for x in result]


def row(fn: Guarded, ids: object, args: tuple) -> Ids:
    """The ids of a tensor with one axis; a list of ids will do."""
    if isinstance(ids, list) and all(type(x) is int for x in ids):
        return ids
    fn.require_tensor(ids, args)
    if ids.ndim != 1:
        raise Broken(
            f"It returned shape {tuple(ids.shape)}: expected one axis. The "
            "function is for one text; whoever calls it makes a batch."
        )
    return ids.tolist()


SPAN_CORRUPT = Component(
    name="span_corrupt",
    signature="span_corrupt(tokens, dropped, sentinel)",
    returns="(source, target), two tensors of ids with one axis",
    shape_contract="It returns source and target",
    read=read,
    cases=lambda: {"for two spans": PLAIN.args},
)


def found(fn: Guarded, case: Case) -> Pair:
    """What ``fn`` makes of a text."""
    source, target = fn(*case.args)
    return source, target


def mistake(fn: Guarded) -> str:
    """The known mistake that makes the same of every text, or nothing."""
    texts = (*MIDDLE, *ENDS)
    results = [found(fn, case) for case in texts]
    known = (
        hint
        for hint, wrong in MISTAKEN.items()
        if results == [wrong(case) for case in texts]
    )
    return next(known, "")


def require(
    fn: Guarded, case: Case, parts: tuple[str, ...] = ("source", "target")
) -> None:
    """Raise Broken unless source, or target, are what they should be."""
    pairs = zip(
        ("source", "target"), found(fn, case), corrupt(case), strict=True
    )
    for part, got, expected in pairs:
        if part in parts and got != expected:
            hint = mistake(fn)
            says = (
                f"The text is {case.tokens}, without {gone(case)}, and the "
                f"first sentinel is {case.sentinel}: the {part} was {got}, "
                f"expected {expected}."
            )
            raise Broken(f"{hint} {says}" if hint else says, cause=hint)


def gone(case: Case) -> str:
    """Which places are dropped, in words."""
    places = [str(i) for i, out in enumerate(case.dropped) if out]
    if len(places) == len(case.tokens):
        return "any of its tokens"
    return f"its places {', '.join(places)}" if places else "a gap"


@SPAN_CORRUPT.before_reference
def source(fn: Guarded) -> None:
    """In the source one sentinel stands for each run of dropped tokens."""
    for case in MIDDLE:
        require(fn, case, ("source",))


@SPAN_CORRUPT.before_reference
def target(fn: Guarded) -> None:
    """The target is each run behind its sentinel, and one sentinel more."""
    for case in MIDDLE:
        require(fn, case, ("target",))


@SPAN_CORRUPT.contract
def ends(fn: Guarded) -> None:
    """The first and the last token may be dropped."""
    for case in ENDS:
        require(fn, case)


@SPAN_CORRUPT.contract
def nothing(fn: Guarded) -> None:
    """If nothing is dropped, the target is a single sentinel."""
    require(fn, NOTHING)


@SPAN_CORRUPT.contract
def everything(fn: Guarded) -> None:
    """If everything is dropped, the source is a single sentinel."""
    require(fn, EVERYTHING)


@SPAN_CORRUPT.contract
def twins(fn: Guarded) -> None:
    """Equal tokens are told apart by their place."""
    require(fn, TWINS)


@SPAN_CORRUPT.contract
def random(fn: Guarded) -> None:
    """Any mask will do: no token is lost, none is doubled."""
    for seed in range(10):
        require(fn, some(seed))


# Known mistakes


def spans(tokens, dropped, sentinel, step=-1, last=True, alone=False):
    """Span corruption, with whatever is wrong."""
    source, target, before = [], [], False
    for token, out in zip(tokens.tolist(), dropped.tolist(), strict=True):
        if out and (alone or not before):
            source.append(sentinel)
            target.append(sentinel)
            sentinel += step
        (target if out else source).append(token)
        before = out
    target += [sentinel] * last
    return torch.tensor(source), torch.tensor(target, dtype=torch.long)


@SPAN_CORRUPT.mistake(
    "a-sentinel-a-token",
    hint="Every dropped token has a sentinel of its own: neighbours are one "
    "span, with one sentinel.",
    symptom="it runs out of sentinels, and learns to say one word for each",
)
def a_sentinel_a_token(tokens, dropped, sentinel):
    """Neighbours are not joined: this is BERT's MASK with numbers."""
    return spans(tokens, dropped, sentinel, alone=True)


@SPAN_CORRUPT.mistake(
    "leaves-no-gap",
    hint="The spans leave nothing behind in the source, as in BART's "
    "deletion: put a sentinel there.",
    symptom="it has to guess where something is missing, and guesses badly",
)
def leaves_no_gap(tokens, dropped, sentinel):
    """What is dropped leaves no sentinel behind."""
    return tokens[~dropped], span_corrupt(tokens, dropped, sentinel)[1]


@SPAN_CORRUPT.mistake(
    "sentinels-count-up",
    hint="The sentinels count up: they count down, from the last id of the "
    "vocabulary.",
    symptom="trains well; published weights make nonsense of it",
)
def sentinels_count_up(tokens, dropped, sentinel):
    """The second sentinel is the id after the first: outside the table."""
    return spans(tokens, dropped, sentinel, step=1)


@SPAN_CORRUPT.mistake(
    "one-sentinel-for-all",
    hint="Every span has the same sentinel: nobody can tell which is which. "
    "They count down.",
    symptom="the right words, in gaps that belong to others",
)
def one_sentinel_for_all(tokens, dropped, sentinel):
    """Every gap has the same name."""
    return spans(tokens, dropped, sentinel, step=0)


@SPAN_CORRUPT.mistake(
    "never-says-it-is-over",
    hint="The last sentinel is missing: the target ends with one more, which "
    "says that it is over.",
    symptom="it never learns where to stop, and fills gaps that are not there",
)
def never_says_it_is_over(tokens, dropped, sentinel):
    """No sentinel ends the target."""
    return spans(tokens, dropped, sentinel, last=False)


@SPAN_CORRUPT.mistake(
    "target-is-the-text",
    hint="The target is the whole text, which is BART's: T5's is the dropped "
    "spans alone.",
    symptom="training takes several times as long: most of it is copying",
)
def target_is_the_text(tokens, dropped, sentinel):
    """The decoder writes the whole text, as BART's does."""
    return span_corrupt(tokens, dropped, sentinel)[0], tokens


@SPAN_CORRUPT.mistake(
    "spans-run-together",
    hint="The target holds no sentinels: each span comes behind its own.",
    symptom="the right words, and nobody knows which gap they are for",
)
def spans_run_together(tokens, dropped, sentinel):
    """The target is what was dropped, with no sentinel between."""
    return span_corrupt(tokens, dropped, sentinel)[0], tokens[dropped]


@SPAN_CORRUPT.mistake(
    "mask-upside-down",
    hint="What was to be dropped is kept, and the rest is dropped: True means "
    "dropped.",
    symptom="the encoder reads 15 % of a text, and the loss stays high",
)
def mask_upside_down(tokens, dropped, sentinel):
    """True is taken for kept."""
    return spans(tokens, ~dropped, sentinel)


@SPAN_CORRUPT.mistake(
    "wraps-round",
    symptom="right in most texts; some have a sentinel too few",
)
def wraps_round(tokens, dropped, sentinel):
    """`roll` takes the last place for the one before the first."""
    begins = dropped & ~dropped.roll(1)
    names = sentinel + 1 - begins.cumsum(0)
    two = torch.stack([names, tokens], 1)
    source = two[torch.stack([begins, ~dropped], 1)]
    target = two[torch.stack([begins, dropped], 1)]
    return source, torch.cat([target, names[-1:] - 1])
