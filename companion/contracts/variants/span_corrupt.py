"""Contracts of span corruption: T5's way to make a task of a text.

Each run of dropped tokens leaves one sentinel in the source. The target holds
the runs, each behind its sentinel, and one more sentinel at the end (Raffel et
al., 2020). Contracts compare lists of ids, since sizes depend on the mask.
"""

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, require_several
from companion.contracts.variants.span_corrupt_cases import (
    ENDS,
    EVERYTHING,
    MIDDLE,
    MISTAKEN,
    NOTHING,
    PLAIN,
    TWINS,
    Case,
    Ids,
    Pair,
    corrupt,
    some,
)


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
    """Raises Broken unless source, or target, are what they should be."""
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
