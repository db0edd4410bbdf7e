"""Weights rounded to few bits, on number lines, with an outlier or without."""

from collections.abc import Sequence

import torch
from torch import Tensor

from companion.efficiency import Quantized, quantize
from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played
from companion.figures.kit.plot import MARKS, mark

BITS = (4, 8)
LEFT, RIGHT, EVERY = 24, 316, 78
"""Where a line begins and ends, and how far one is below the other."""
SCALE_BITS = 16
PLACES = {4: 2, 8: 3}
"""Bits -> decimals with which one sees what rounding changed."""
CAPTION = """A tick is a number that can be stored. A dot above a line is a
weight, the square on the line what is stored of it. Each line is drawn from
the smallest to the largest number that its scale allows, so its unit changes
with the scale."""


def number_lines(weights: Sequence[Number], outlier: Number) -> Figure:
    """Round eight weights, with one scale or two, and with an outlier.

    Args:
        weights: Eight numbers, which share one scale or two.
        outlier: What stands in place of the last, if so chosen.

    Raises:
        ValueError: there are not eight weights.

    Example:
        >>> number_lines([0.1, -0.3, 0.4, 0.7, 0.5, -0.2, 0.6, 0.7], 7.0).text
        'Number lines. One scale for eight, 4 bits: 0.10, which is the largest \
magnitude over 7. No weight is off. With a scale of 16 bits that is 6 bits a \
weight.'
    """
    if len(weights) != 8:
        raise ValueError(f"weights: expected eight, got {len(weights)}")
    rows = [torch.tensor(list(weights)).double() for _ in range(2)]
    rows[1][-1] = outlier

    def show(out: int, groups: int, bits: int) -> Parts:
        return _frame(rows[out], groups + 1, BITS[bits])

    controls = [
        choice("The last weight is", [f"{weights[-1]:g}", f"{outlier:g}"], 0),
        choice("A scale for", ["all eight", "each four"], 0),
        choice("An integer has", [f"{b} bits" for b in BITS], 0),
    ]
    html = played(
        "lines",
        show,
        controls,
        _body,
        module=__file__,
        label="Weights and what is stored of them",
        caption=CAPTION,
        sheets=["diagram"],
    )
    return Figure(html, f"Number lines. {_says(rows[0], 1, BITS[0])}")


def stored(row: Tensor, groups: int, bits: int) -> Quantized:
    """Round the weights, in so many groups."""
    return quantize(row, bits, per=len(row) // groups)


def _frame(row: Tensor, groups: int, bits: int) -> Parts:
    found = stored(row, groups, bits)
    size = len(row) // groups
    scales = found.scale.flatten().tolist()
    back = found.dequantize(torch.float64).tolist()
    lines = "".join(
        _line(
            row[i * size : (i + 1) * size].tolist(),
            back[i * size : (i + 1) * size],
            scales[i],
            2 ** (bits - 1) - 1,
            44 + EVERY * i,
        )
        for i in range(groups)
    )
    return {
        "lines": lines,
        "tables": "".join(
            _table(
                row.tolist(), found.integers.tolist(), back, start, PLACES[bits]
            )
            for start in (0, 4)
        ),
        "says": _says(row, groups, bits),
    }


def _says(row: Tensor, groups: int, bits: int) -> str:
    found = stored(row, groups, bits)
    back = found.dequantize(torch.float64)
    places = PLACES[bits]
    scales = [fixed(x, places) for x in found.scale.flatten().tolist()]
    top = 2 ** (bits - 1) - 1
    error = (back - row).abs()
    off = int((error > 1e-6).sum())
    size = len(row) // groups
    each = bits + SCALE_BITS / size
    which = (
        f"One scale for eight, {bits} bits: {scales[0]}, which is the largest "
        f"magnitude over {top}."
        if groups == 1
        else f"Two scales, {bits} bits: {' and '.join(scales)}, the largest "
        f"magnitude of each four over {top}."
    )
    weigh = (
        f"{off} of 8 weights are off, by {fixed(float(error.max()), places)} "
        "at most."
        if off
        else "No weight is off."
    )
    return (
        f"{which} {weigh} With a scale of {SCALE_BITS} bits that is {each:g} "
        "bits a weight."
    )


def _line(
    weights: Sequence[Number],
    back: Sequence[Number],
    scale: Number,
    top: int,
    y: Number,
) -> str:
    def x(value: Number) -> float:
        share = (value / scale + top) / (2 * top)
        return LEFT + (RIGHT - LEFT) * share

    comb = "".join(
        f"M{x(i * scale):.1f} {y - 6:g}V{y + 6:g}" for i in range(-top, top + 1)
    )
    arrows = "".join(
        f'<path class="move" d="M{x(a):.1f} {y - 22:g}L{x(b):.1f} {y - 6:g}"/>'
        for a, b in zip(weights, back, strict=True)
    )
    dots = "".join(
        mark("weight", x(a), y - 26, MARKS["circle"]) for a in weights
    )
    squares = "".join(mark("kept", x(b), y, MARKS["square"]) for b in back)
    ends = "".join(
        label(x(i * scale), y + 22, short(i * scale), "note")
        for i in (-top, 0, top)
    )
    return (
        f'<path class="comb" d="{comb}M{LEFT} {y:g}H{RIGHT}"/>'
        f"{arrows}{dots}{squares}{ends}"
    )


def _table(
    row: Sequence[Number],
    integers: Sequence[int],
    back: Sequence[Number],
    start: int,
    places: int,
) -> str:
    at = range(start, start + 4)
    lines = (
        ("weight", [fixed(row[i], 1) for i in at]),
        ("integer", [fixed(integers[i], 0) for i in at]),
        ("stands for", [fixed(back[i], places) for i in at]),
    )
    body = ""
    for name, texts in lines:
        cells = "".join(
            f"<td{' class=off' if abs(row[i] - back[i]) > 1e-6 else ''}>"
            f"{text}</td>"
            for i, text in zip(at, texts, strict=True)
        )
        body += f"<tr><th scope=row>{name}</th>{cells}</tr>"
    which = "first" if start == 0 else "second"
    return (
        f'<table class="cells"><caption>{which} four</caption>'
        f"<tbody>{body}</tbody></table>"
    )


def _body(parts: Parts) -> str:
    picture = drawing(
        148,
        "Number lines with a tick for each number that can be stored, weights "
        "above them, and an arrow from each to its tick.",
        f'<g data-part="lines">{parts["lines"]}</g>',
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}
<div class="both" data-part="tables">{parts["tables"]}</div></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
