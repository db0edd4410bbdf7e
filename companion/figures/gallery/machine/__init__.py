"""The whole Transformer with Add & Norm, a part of it lit, and its numbers."""

from collections.abc import Mapping, Sequence
from html import escape, unescape

from companion.figures.gallery.machine.view import PARTS, picture
from companion.figures.kit.diagram import matrix
from companion.figures.kit.digits import Number
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.play import Parts, choice, played, steps
from companion.figures.kit.tables import rows_of

LABEL = "Encoder and decoder of a Transformer, with Add & Norm"
CAPTION = """Read the drawing from above: the encoder on the left, the decoder
on the right, and N layers of what stands in a frame. The thin line beside a
part is its residual, which goes round the part and is added to what it says."""
Stop = tuple[Sequence[str], Mapping[str, Sequence[Number]], str]
"""The parts that are lit, rows of numbers, and what happens there."""


def machine(
    source: Sequence[str],
    target: Sequence[str],
    stops: Mapping[str, Sequence[Stop]],
    *,
    axes: Sequence[str],
    at: int | None = None,
    start: str = "",
) -> Figure:
    """Draw the whole machine, and follow a vector from stop to stop.

    Args:
        source: The words that the encoder reads.
        target: The words that the decoder reads, one step late; what it must
            say are all but the first of them, and then the end.
        stops: For each vector that can be followed, which parts are lit, rows
            of numbers by their names, and what happens there, in words. Parts
            are named as in ``PARTS``; all vectors have as many stops.
        axes: What the numbers of a row stand for.
        at: The only stop to show; without it a reader steps through all.
        start: The vector that is followed at first; the first one without it.

    Raises:
        ValueError: there is no stop or no such stop or vector, a part is
            unknown, or a row has not as many numbers as there are axes.
    """
    names, count = [*stops], {len(each) for each in stops.values()}
    if len(count) != 1 or 0 in count:
        raise ValueError("stops: expected one or more, as many for each vector")
    (many,) = count
    for lit, numbers, _ in (stop for each in stops.values() for stop in each):
        if unknown := {*lit} - {*PARTS}:
            raise ValueError(f"stops: no part is called {min(unknown)!r}")
        for name, row in numbers.items():
            rows_of(name, [[*row]], height=1, width=len(axes))
    if at is not None and not 0 <= at < many:
        raise ValueError(f"at: expected 0 to {many - 1}, got {at}")
    start = start or names[0]
    if start not in stops:
        raise ValueError(f"start: no vector is called {start!r}")

    def show(which: int, step: int) -> Parts:
        lit, numbers, says = stops[names[which]][step]
        rows = rows_of("stops", [[*row] for row in numbers.values()])
        return {
            "part@class": [f"box{' now' * (part in lit)}" for part in PARTS],
            "numbers": matrix(rows, "numbers", names=[*numbers], columns=axes),
            "says": escape(says),
        }

    first = names.index(start)
    if at is not None:
        html = inline(
            "machine",
            body=_body(source, target, show(first, at), ""),
            label=LABEL,
            style=figure_parts(__file__, sheets=["diagram"])["style"],
        )
        return Figure(html, f"The machine. {stops[start][at][2]}")
    told = "".join(f"<li>{escape(says)}</li>" for _, _, says in stops[start])
    html = played(
        "machine",
        show,
        [
            choice("Follow the place that reads", names, first),
            steps([many] * len(names), ["Start", "Back", "Next"]),
        ],
        lambda parts: (
            f"{_body(source, target, parts, CONTROLS)}<details><summary>All "
            f"{many} steps in words</summary><ol>{told}</ol></details>"
        ),
        module=__file__,
        label=LABEL,
        caption=CAPTION,
        sheets=["diagram"],
    )
    return Figure(html, f"The machine. {unescape(stops[start][0][2])}")


CONTROLS = '<div class="controls"></div>'


def _body(
    source: Sequence[str], target: Sequence[str], parts: Parts, controls: str
) -> str:
    """The drawing; beside it what happens, and the numbers."""
    drawn = picture(source, target, [*parts["part@class"]])
    return (
        f'<div class="side{"" if controls else " still"}">{drawn}'
        f'<div class="step">{controls}'
        '<p class="says" aria-live="polite" data-part="says">'
        f'{parts["says"]}</p><div class="numbers" data-part="numbers">'
        f"{parts['numbers']}</div></div></div>"
    )
