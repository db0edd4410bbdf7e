"""What the contracts of this chapter share: reading lists, and joining."""

from collections.abc import Callable, Iterable, Sequence

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded

__all__ = ["Pair", "join_pair", "mistake", "require", "strings", "strung"]

Pair = tuple[str, str]


def strings(fn: Guarded, result: object, args: tuple) -> list[str]:
    """Require a list of strings, or a tuple of them."""
    if isinstance(result, list | tuple):
        others = [x for x in result if not isinstance(x, str)]
        if not others:
            return list(result)
        name = type(others[0]).__name__
        raise Broken(
            f"It returned a {name} among others: expected "
            f"{fn.component.returns}."
        )
    name = type(result).__name__
    what = "None" if result is None else f"a {name}"
    hints = {
        "NoneType": STRAY["NoneType"],
        "generator": STRAY["generator"],
        "str": "Return the parts, not one text.",
    }
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. "
        f"{hints.get(name, '')}".rstrip()
    )


def join_pair(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Join a pair wherever it stands, from the left."""
    found: list[str] = []
    for piece in pieces:
        # The mark keeps what was just joined from being joined once more.
        if found and (found[-1], piece) == pair:
            found[-1:] = [found[-1] + piece, ""]
        else:
            found.append(piece)
    return [piece for piece in found if piece]


def mistake(fn: Guarded, component: Component, cases: Iterable[tuple]) -> str:
    """The hint of the known mistake that returns the same, or nothing."""
    cases = list(cases)
    try:
        results = [fn(*args) for args in cases]
    except Broken:
        return ""

    def explains(known: Callable) -> bool:
        guarded = Guarded(component, known)
        try:
            return results == [guarded(*args) for args in cases]
        except Broken:
            return False

    hints = component.hints
    return next((hint for hint in hints if explains(hints[hint])), "")


def require(fn: Guarded, args: tuple, expected: object, hint: str = "") -> None:
    """Raise Broken unless it returns what is expected, with a hint."""
    got = fn(*args)
    if got != expected:
        says = (
            f"With {fn.describe(args)} it returned {strung(got)}: expected "
            f"{strung(expected)}."
        )
        raise Broken(f"{hint} {says}" if hint else says, cause=hint)


def strung(value: object) -> str:
    """A value as it is written, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
