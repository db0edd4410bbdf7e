"""Masks side by side: who asks, who is looked at, and why not."""

from collections.abc import Sequence
from html import escape

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import word

KINDS = {
    "seen": ("✓", "may be seen"),
    "future": ("·", "hidden: the future"),
    "pad": ("p", "hidden: padding"),
    "both": ("p", "hidden: both reasons"),
    "hidden": ("·", "hidden"),
    "leak": ("!", "seen, and must not be"),
    "lost": ("?", "hidden, and should be seen"),
}
"""What a square can be: its sign, and its words in the legend."""


def mask_grids(
    masks: Sequence[tuple],
    *,
    rows: Sequence[str],
    columns: Sequence[str] | None = None,
    pads: Sequence[bool] | None = None,
    caption: str = "",
) -> Figure:
    """Draw masks as coloured squares, side by side; rows ask, columns answer.

    A hidden square says why it is hidden, if ``pads`` names the keys that are
    padding. A mask that comes with the right one shows where it differs.

    Args:
        masks: Each with its name: ``(mask, name)``, or ``(mask, name, right)``.
            A mask is boolean, (query, key), True = may attend.
        rows: A name for each query.
        columns: A name for each key, as the rows unless given.
        pads: Which keys are padding.
        caption: What the reader should see.

    Raises:
        ValueError: a mask does not fit the names, or ``pads`` the columns.

    Example:
        >>> mask_grids([([[1, 0], [1, 1]], "causal")], rows=["a", "b"]).text
        'Masks. causal: a sees a; b sees a, b.'
    """
    columns = rows if columns is None else columns
    if pads is not None and len(pads) != len(columns):
        raise ValueError(
            f"pads: expected one for each of {len(columns)} keys, "
            f"got {len(pads)}"
        )
    used, grids, told = set(), [], []
    for mask, name, *right in masks:
        seen, wanted = (
            _squares(name, each, len(rows), len(columns))
            for each in (mask, *(right or [mask]))
        )
        kinds = _kinds(seen, wanted, pads)
        used |= {kind for row in kinds for kind in row}
        grids.append(_grid(kinds, name, rows, columns))
        told.append(f"{name}: {_told(seen, rows, columns)}")
    legend = "".join(
        f'<li><b class="{kind}" aria-hidden="true">{sign}</b> {words}</li>'
        for kind, (sign, words) in KINDS.items()
        if kind in used
    )
    html = inline(
        "grids",
        body=f'<div class="side">{"".join(grids)}</div>'
        f'<ul class="legend">{legend}</ul>',
        label="Masks: " + ", ".join(name for _, name, *_ in masks),
        caption=caption,
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, "Masks. " + ". ".join(told) + ".")


def _squares(name: str, mask, height: int, width: int) -> list[list[bool]]:
    values = mask.tolist() if hasattr(mask, "tolist") else mask
    rows = [[bool(value) for value in row] for row in values]
    if len(rows) != height or any(len(row) != width for row in rows):
        sizes = sorted({len(row) for row in rows})
        raise ValueError(
            f"{name}: expected {height} rows of {width} squares, "
            f"got {len(rows)} of {', '.join(map(str, sizes))}"
        )
    return rows


def _kinds(
    seen: list[list[bool]],
    wanted: list[list[bool]],
    pads: Sequence[bool] | None,
) -> list[list[str]]:
    """Say of each square what it is, and why it is hidden.

    A mask hides the future if nothing later is seen, and a pad if no row sees
    it; without ``pads`` nobody knows why.
    """
    width = range(len(seen[0]))
    causal = not any(any(row[i + 1 :]) for i, row in enumerate(seen))
    empty = [not any(row[j] for row in seen) for j in width]

    def kind(i: int, j: int) -> str:
        if seen[i][j] != wanted[i][j]:
            return "leak" if seen[i][j] else "lost"
        if seen[i][j]:
            return "seen"
        later = causal and j > i
        if pads is None:
            return "hidden"
        if pads[j] and empty[j]:
            return "both" if later else "pad"
        return "future" if later else "hidden"

    return [[kind(i, j) for j in width] for i in range(len(seen))]


def _grid(
    kinds: list[list[str]],
    name: str,
    rows: Sequence[str],
    columns: Sequence[str],
) -> str:
    heads = "".join(f"<th scope=col>{word(each)}</th>" for each in columns)
    body = "".join(
        f"<tr><th scope=row>{word(title)}</th>"
        + "".join(f'<td class="{kind}">{KINDS[kind][0]}</td>' for kind in row)
        + "</tr>"
        for title, row in zip(rows, kinds, strict=True)
    )
    return (
        f'<div class="scroll"><table class="cells"><caption>{escape(name)}'
        f"</caption><thead><tr><td></td>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _told(
    seen: list[list[bool]], rows: Sequence[str], columns: Sequence[str]
) -> str:
    return "; ".join(
        f"{title} sees "
        + (
            ", ".join(
                key for key, open_ in zip(columns, row, strict=True) if open_
            )
            or "nobody"
        )
        for title, row in zip(rows, seen, strict=True)
    )
