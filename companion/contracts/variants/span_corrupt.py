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
    """The hint of the known mistake that makes the same, or nothing."""
    texts = (*MIDDLE, *ENDS)
    results = [found(fn, case) for case in texts]

    def explains(known: Callable) -> bool:
        each = (known(*case.args) for case in texts)
        return results == [tuple(x.tolist() for x in pair) for pair in each]

    return next((h for h, f in SPAN_CORRUPT.hints.items() if explains(f)), "")


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


def of_tensors(mistaken: Callable[[Case], Pair]) -> Callable:
    """Make a function of tensors from one of a case."""

    def corrupted(tokens, dropped, sentinel):
        case = Case(tokens.tolist(), dropped.tolist(), sentinel)
        source, target = mistaken(case)
        ids = torch.long
        return torch.tensor(source, dtype=ids), torch.tensor(target, dtype=ids)

    corrupted.__name__ = mistaken.__name__
    corrupted.__doc__ = mistaken.__doc__
    return corrupted


def runs(case: Case, dropped: bool) -> Ids:
    """All tokens that are dropped, or all that are kept."""
    return [x for out, run in pieces(case) if out == dropped for x in run]


def turned(case: Case) -> Case:
    """What was kept is dropped."""
    return case._replace(dropped=[not x for x in case.dropped])


@SPAN_CORRUPT.mistake(
    hint="Every dropped token has a sentinel of its own: neighbours are one "
    "span, with one sentinel.",
    symptom="it runs out of sentinels, and learns to write one word for each",
)
@of_tensors
def a_sentinel_a_token(case):
    """Neighbours are not joined: this is BERT's MASK with numbers."""
    return corrupt(case, alone=True)


@SPAN_CORRUPT.mistake(
    hint="The spans leave nothing behind in the source, as in BART's "
    "deletion: put a sentinel there.",
    symptom="it has to guess where something is missing, and guesses badly",
)
@of_tensors
def leaves_no_gap(case):
    """What is dropped leaves no sentinel behind."""
    return runs(case, dropped=False), corrupt(case)[1]


@SPAN_CORRUPT.mistake(
    hint="The sentinels count up: they count down, from the last id of the "
    "vocabulary.",
    symptom="trains well; published weights make nonsense of it",
)
@of_tensors
def sentinels_count_up(case):
    """The second sentinel is the id after the first: outside the table."""
    return corrupt(case, 1)


@SPAN_CORRUPT.mistake(
    hint="Every span has the same sentinel: nobody can tell which is which. "
    "They count down.",
    symptom="the right words, in gaps that belong to others",
)
@of_tensors
def one_sentinel_for_all(case):
    """Every gap has the same name."""
    return corrupt(case, 0)


@SPAN_CORRUPT.mistake(
    hint="The last sentinel is missing: the target ends with one more, which "
    "says that it is over.",
    symptom="it never learns where to stop, and fills gaps that are not there",
)
@of_tensors
def never_says_it_is_over(case):
    """No sentinel ends the target."""
    return corrupt(case, last=False)


@SPAN_CORRUPT.mistake(
    hint="The target is the whole text, which is BART's: T5's is the dropped "
    "spans alone.",
    symptom="training takes several times as long: most of it is copying",
)
@of_tensors
def target_is_the_text(case):
    """The decoder writes the whole text, as BART's does."""
    return corrupt(case)[0], case.tokens


@SPAN_CORRUPT.mistake(
    hint="The target holds no sentinels: each span comes behind its own.",
    symptom="the right words, and nobody knows which gap they are for",
)
@of_tensors
def spans_run_together(case):
    """The target is what was dropped, with no sentinel between."""
    return corrupt(case)[0], runs(case, dropped=True)


@SPAN_CORRUPT.mistake(
    hint="In the target each sentinel follows its span: it comes before it.",
)
@of_tensors
def names_behind(case):
    """A sentinel ends its span, and does not begin it."""
    source, target, sentinel = corrupt(case)[0], [], case.sentinel
    for out, run in pieces(case):
        if out:
            target += [*run, sentinel]
            sentinel -= 1
    return source, target


@SPAN_CORRUPT.mistake(
    hint="The target is the source of the opposite mask, in which a sentinel "
    "stands for what was kept: where the text begins or ends with a dropped "
    "span, it no longer fits.",
)
@of_tensors
def opposite_source(case):
    """The target is made as the source is, from the opposite mask."""
    return corrupt(case)[0], corrupt(turned(case))[0]


@SPAN_CORRUPT.mistake(
    hint="What was to be dropped is kept, and the rest is dropped: True means "
    "dropped.",
    symptom="the encoder reads 15 % of a text, and the loss stays high",
)
@of_tensors
def mask_upside_down(case):
    """True is taken for kept."""
    return corrupt(turned(case))


@SPAN_CORRUPT.mistake(
    hint="Source and target have changed places: the source comes first.",
)
@of_tensors
def pair_exchanged(case):
    """The target is returned first."""
    return corrupt(case)[::-1]


@SPAN_CORRUPT.mistake(
    hint="The first sentinel is skipped: the first span gets `sentinel` "
    "itself.",
)
@of_tensors
def first_sentinel_skipped(case):
    """It counts down before the first span, and not behind it."""
    return corrupt(case._replace(sentinel=case.sentinel - 1))


@SPAN_CORRUPT.mistake(
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
