"""Tables of numbers, tinted by how large they are."""

from collections.abc import Iterable, Sequence
from html import escape

from companion.figures.kit.digits import Number, fixed, heat


def tinted(values: Iterable[Number], top: Number = 1, places: int = 2) -> str:
    """Table cells; a number of the size ``top`` gets the strongest tint."""
    return "".join(
        f"<td {heat(v, top)}>{fixed(v, places)}</td>" for v in values
    )


def table(
    kind: str,
    title: str,
    columns: Sequence[str],
    names: Sequence[str],
    rows: Sequence[str],
) -> str:
    """A captioned table; ``rows`` are cells as HTML, one text for each name."""
    heads = "".join(f"<th scope=col>{word(name)}</th>" for name in columns)
    body = "".join(
        f"<tr><th scope=row>{word(name)}</th>{cells}</tr>"
        for name, cells in zip(names, rows, strict=True)
    )
    return (
        f'<div class="scroll"><table class="cells {kind}"><caption>{title}'
        f"</caption><thead><tr><td></td>{heads}</tr></thead><tbody>{body}"
        "</tbody></table></div>"
    )


def word(token: str) -> str:
    """A token as HTML, read out as Chinese where it is Chinese."""
    if any("\u4e00" <= letter <= "\u9fff" for letter in token):
        return f'<span lang="zh">{escape(token)}</span>'
    return escape(token)
