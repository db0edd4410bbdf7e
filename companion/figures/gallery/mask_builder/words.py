"""What the mask builder says of a mask, in words."""

from collections.abc import Sequence

from companion.figures.kit.digits import fixed

RIGHT = {
    "src": "each word sees all the words, before and after it, and no padding.",
    "tgt": "each word sees itself and the words before it, and no padding.",
    "cross": "each target word sees all the words of the source, and no "
    "padding.",
}
NOTHING = {
    "src": "No word asks here, so nothing can leak. Nothing that these rows "
    "compute may be used.",
    "cross": "Right, and there is nothing to see: every row is hidden, so its "
    "weights are zeros. A softmax over nothing but −∞ would make them NaN.",
}
"""What to say where the source is padding only."""


def sentence(
    place: str,
    queries: list[str],
    keys: list[str],
    marks: Sequence[str],
    safe: bool,
) -> str:
    """Who leaks and who sees too little, or that the mask is right.

    Args:
        place: A key of ``maskbuilder.PLACES``.
        marks: A text a row: ``!`` for a leak, ``?`` for too much hidden, and
            for what is right ``1`` where it is seen and ``0`` where not.
        safe: Whether the same switches are right for the other sentences too.
    """
    said = []
    for sign, tell in (("!", _leak), ("?", _missing)):
        rows = [i for i, row in enumerate(marks) if sign in row]
        if rows:  # The middle one has words before it and words after it.
            said.append(tell(queries, keys, marks, rows[len(rows) // 2]))
    if said:
        return " ".join(said)
    if {*(keys if place == "cross" else queries)} == {"<pad>"}:
        return NOTHING[place]
    praise = "Right" if safe else "Right for this sentence, not for every one"
    return f"{praise}: {RIGHT[place]}"


def _leak(queries, keys, marks, i: int) -> str:
    """What row i sees and must not: words of its future, or padding."""
    leaks = "".join(marks).count("!")
    seen = [key for key, m in zip(keys, marks[i], strict=True) if m == "!"]
    words = [key for key in seen if key != "<pad>"]
    said = f"{leaks} {'cell leaks' if leaks == 1 else 'cells leak'}."
    if words:
        which = "is" if len(words) == 1 else "are"
        said += (
            f" Row “{queries[i]}” sees {_list(words)}, which {which} in its "
            f"future: it must predict “{queries[i + 1]}”, and reads it."
        )
    if pads := seen.count("<pad>"):
        share = pads / (marks[i].count("!") + marks[i].count("1"))
        what = "padding" if pads == 1 else f"padding {pads} times"
        said += (
            f" Row “{queries[i]}” sees {what}: with equal scores, "
            f"{fixed(share)} of its weight goes to what is no word."
        )
    return said


def _missing(queries, keys, marks, i: int) -> str:
    """What row i does not see and should."""
    cells = "".join(marks).count("?")
    words = [key for key, m in zip(keys, marks[i], strict=True) if m == "?"]
    return (
        f"{cells} {'cell is' if cells == 1 else 'cells are'} hidden without "
        f"need. Row “{queries[i]}” should see {_list(words)}, and does not."
    )


def _list(words: list[str]) -> str:
    """``“a”, “b” and “c”``."""
    *most, last = (f"“{word}”" for word in words)
    return f"{', '.join(most)} and {last}" if most else last
