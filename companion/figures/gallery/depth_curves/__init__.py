"""What depth does to tokens and to gradients, arrangement by arrangement."""

from collections.abc import Mapping
from html import escape
from math import ceil, floor, log10

from companion.figures.gallery.depth_curves.view import (
    LINES,
    Axis,
    Drawn,
    assembled,
    panel,
    sample,
)
from companion.figures.kit.digits import fixed, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, played, rows, slider
from companion.figures.kit.plot import VIEW, powers
from companion.figures.kit.tables import rows_of

LOWEST = -0.05  # A mean cosine a little below 0 needs no axis down to -1.
DECADES = 8
ALIKE = "How alike the tokens are (mean cosine)"
GRADIENT = "Size of the gradient, layer by layer"

Curves = dict[str, dict[int, dict[str, list[float]]]]


def depth_curves(curves: Mapping, depth: int | None = None) -> Figure:
    """How alike tokens get, and how much gradient arrives, layer by layer.

    A slider moves the depth, and a press on a name brings its lines to the
    front. Nothing is computed here: the numbers are those of ``curves``.

    Args:
        curves: ``{name: {depth: {"similarity": …, "gradient": …}}}``, four
            names at most. ``similarity`` is the mean cosine between tokens at
            the entrance and after each layer, so depth + 1 numbers.
            ``gradient`` is the size of the gradient in each layer.
        depth: The depth that is shown first; without it the largest.

    Raises:
        ValueError: there are no curves or more than four, two of them have not
            the same depths, ``depth`` is none of these, or a list is too short,
            too long or out of range.
    """
    checked = _checked(curves)
    names, depths = list(checked), list(next(iter(checked.values())))
    axes = _alike_axis(checked), _gradient_axis(checked)
    if depth not in (None, *depths):
        raise ValueError(f"depth: expected one of {depths}, got {depth}")
    first = len(depths) - 1 if depth is None else depths.index(depth)
    chosen = 0
    runs = [
        {name: curves[at] for name, curves in checked.items()} for at in depths
    ]

    def frame(i: int, line: int) -> Parts:
        plots = _plots(runs[i], depths[i], axes)
        cells = [cell for run in runs[i].values() for cell in _cells(run)]
        says = escape(_sentence(names[line], depths[i], runs[i][names[line]]))
        return {
            "plot": [assembled(plot) for plot in plots],
            "head": _heads(depths[i]),
            "cell": cells,
            "says": says,
        }

    def body(parts: Parts) -> str:
        plots = _plots(runs[first], depths[first], axes)
        drawn = [assembled(plot, chosen) for plot in plots]
        return _body(names, parts | {"plot": drawn}, chosen)

    controls = [
        slider("Layers", [str(at) for at in depths], first),
        rows(".legend tbody th", len(names), chosen, front=".plot svg"),
    ]
    html = played(
        "depth",
        frame,
        controls,
        body,
        module=__file__,
        label="Token similarity and gradient by layer",
        caption=_caption(axes[1]),
        sheets=["plot"],
    )
    said = _sentence(names[chosen], depths[first], runs[first][names[chosen]])
    return Figure(html, f"Depth curves. {said}")


def _checked(curves: Mapping) -> Curves:
    """The same as plain numbers, or an error that says what does not fit."""
    if not 1 <= len(curves) <= len(LINES):
        raise ValueError(
            f"curves: expected 1 to {len(LINES)} names, got {len(curves)}"
        )
    first, *_ = curves.values()
    depths = sorted(first)
    if not depths:
        raise ValueError("curves: expected at least one depth, got none")
    for name, runs in curves.items():
        if sorted(runs) != depths:
            raise ValueError(
                f"curves: expected the depths {depths} for every name, got "
                f"{sorted(runs)} for {name!r}"
            )
    return {
        name: {depth: _run(name, depth, runs[depth]) for depth in depths}
        for name, runs in curves.items()
    }


def _run(name: str, depth: int, run: Mapping) -> dict[str, list[float]]:
    place = f"curves[{name!r}][{depth}]"
    alike = _numbers(f"{place}['similarity']", run["similarity"], depth + 1)
    gradient = _numbers(f"{place}['gradient']", run["gradient"], depth)
    if max(map(abs, alike)) > 1 + 1e-6:
        raise ValueError(
            f"{place}['similarity']: expected cosines, from -1 to 1, got "
            f"{max(alike, key=abs):.3g}"
        )
    if min(gradient) < 0:
        raise ValueError(
            f"{place}['gradient']: expected sizes, got {min(gradient):.3g}"
        )
    return {"similarity": alike, "gradient": gradient}


def _numbers(place: str, values, length: int) -> list[float]:
    """Checked as a matrix of one row, but not rounded: 1e-30 counts here."""
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    rows_of(place, [values], width=length)
    return [float(value) for value in values]


def _alike_axis(curves: Curves) -> Axis:
    lists = [
        run["similarity"] for runs in curves.values() for run in runs.values()
    ]
    low = 0 if min(map(min, lists)) > LOWEST else -1
    ticks = {low: str(low), (low + 1) / 2: fixed((low + 1) / 2, 1), 1: "1"}
    return Axis(low, 1, ticks)


def _gradient_axis(curves: Curves) -> Axis:
    """Powers of ten; what lies more than so many decades down is cut off."""
    lists = [
        run["gradient"] for runs in curves.values() for run in runs.values()
    ]
    logs = [log10(size) for sizes in lists for size in sizes if size] or [0]
    top = ceil(max(logs) + 1e-9)
    bottom = max(floor(min(logs)), top - DECADES)
    return Axis(bottom, top, powers(bottom, top))


def _plots(runs: dict, depth: int, axes: tuple[Axis, Axis]) -> list[Drawn]:
    """The two plots of one depth."""
    low = axes[0].low  # Random tokens may stand a hair below 0.
    alike = [
        [(i, max(value, low)) for i, value in enumerate(run["similarity"])]
        for run in runs.values()
    ]
    logs = [
        [(i, log10(size) if size else -400) for i, size in enumerate(sizes, 1)]
        for sizes in (run["gradient"] for run in runs.values())
    ]
    return [panel(alike, depth, axes[0]), panel(logs, depth, axes[1])]


def _heads(depth: int) -> list[str]:
    return [
        "cosine at the end",
        "gradient, layer\N{NO-BREAK SPACE}1",
        f"layer {depth}",
    ]


def _cells(run: dict[str, list[float]]) -> list[str]:
    gradient = run["gradient"]
    return [
        fixed(run["similarity"][-1]), short(gradient[0]), short(gradient[-1])
    ]  # fmt: skip


def _sentence(name: str, depth: int, run: dict[str, list[float]]) -> str:
    end, first, last = _cells(run)
    layers = f"{depth} layer{'s' if depth > 1 else ''}"
    arrives = (
        f"{first} in the first layer and {last} in the last"
        if depth > 1
        else f"{first} in the layer"
    )
    return (
        f"{layers}, {name}: tokens enter with a mean cosine of "
        f"{fixed(run['similarity'][0])} and leave with {end}. The gradient is "
        f"{arrives}."
    )


def _body(names: list[str], parts: Parts, chosen: int) -> str:
    """Everything the figure shows without scripts."""
    plots = "".join(
        f'<div class="plot"><p class="title">{title}</p>'
        f'<svg viewBox="{VIEW}" role="img" aria-label="{title}; the numbers '
        f'stand in the table below." data-part="plot">{plot}</svg></div>'
        for title, plot in zip((ALIKE, GRADIENT), parts["plot"], strict=True)
    )
    return (
        f'<div class="controls"></div><div class="plots">{plots}</div>'
        f"{_table(names, parts, chosen)}"
        f'<p class="says" aria-live="polite" data-part="says">{parts["says"]}'
        "</p>"
    )


def _table(names: list[str], parts: Parts, chosen: int) -> str:
    """The legend and the numbers in one; the script makes names buttons."""
    heads = "".join(
        f'<th scope=col data-part="head">{head}</th>' for head in parts["head"]
    )
    cells = iter(parts["cell"])
    rows = "".join(
        f"<tr{' data-chosen' if i == chosen else ''}>"
        f'<th scope=row class="line{i}">{sample(i)}'
        f"<span>{escape(name)}</span></th>"
        + "".join(f'<td data-part="cell">{next(cells)}</td>' for _ in range(3))
        + "</tr>"
        for i, name in enumerate(names)
    )
    return (
        '<div class="scroll"><table class="cells legend"><thead><tr>'
        f"<td></td>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _caption(axis: Axis) -> str:
    """What to see, and how to read what leaves the plot."""
    return (
        "Move the depth, and press a name to bring its lines to the front. "
        "Where the cosine is 1, all tokens point the same way: what told them "
        "apart is gone. The gradient stands on a scale of powers of ten; a "
        "line with a ▾ leaves the plot there, below "
        f"10<sup>{fixed(axis.low, 0)}</sup>, and the table has its number."
    )
