"""A roofline: what one step of decoding waits for, batch, bits and context."""

from math import log10

from companion.efficiency import (
    Machine,
    Sizes,
    Work,
    decoding_work,
    prefill_work,
)
from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, slider
from companion.figures.kit.plot import MARKS, Plot, mark

BATCHES = [2**i for i in range(11)]
BITS = (16, 8, 4)
CONTEXTS = (100, 1000, 4000, 16000)
PROMPT = 1000
LEAST, MOST = -0.5, 4.0
"""Where the axis of operations a byte begins and ends, in powers of ten."""
CAPTION = """Both axes are powers of ten. Below the slope memory decides, below
the level arithmetic does. A point on the roof is a step at its best: a circle
where memory decides, a square where arithmetic does. The diamond is the reading
of a prompt of 1,000 tokens in 16 bits."""


def roofline(model: Sizes, machine: Machine, memory: Number) -> Figure:
    """Move one step of decoding along a machine's roof.

    Args:
        model: The sizes of the model.
        machine: Its rates, from 10¹² to 10¹⁵ operations and with a ridge below
            10⁴ operations a byte.
        memory: How many bytes it holds.

    Raises:
        ValueError: the roof does not fit the axes.

    Example:
        >>> machine = Machine(operations=1e14, bytes=1e12)
        >>> roofline(Sizes.seven_billion(), machine, 8e10).text
        'A roofline. Batch 1, weights in 16 bits, 1,000 positions each: 1.00 \
operations a byte, and the ridge is at 100. Reading 13.7 GB takes 13.7 ms, \
computing 0.137 ms. Memory decides: at most 72.8 tokens a second.'
    """
    if not (1e12 < machine.operations < 1e15 and 1 < machine.ridge < 1e4):
        raise ValueError(
            "machine: expected 10¹² to 10¹⁵ operations a second and a ridge "
            f"from 1 to 10⁴, got {machine}"
        )
    plot = Plot(LEAST, MOST, 12, 15, left=44, right=330, top=26, bottom=176)

    def show(batch: int, context: int, bits: int) -> Parts:
        return _frame(
            plot, model, machine, memory, BATCHES[batch], CONTEXTS[context],
            BITS[bits],
        )  # fmt: skip

    controls = [
        slider("texts in the batch", [f"{b:,}" for b in BATCHES], 0),
        slider("positions of each", [f"{c:,}" for c in CONTEXTS], 1),
        choice("weights and cache in", [f"{b} bits" for b in BITS], 0),
    ]
    html = played(
        "roofline",
        show,
        controls,
        lambda parts: _body(parts, plot, model, machine),
        module=__file__,
        label="A roofline: operations a second against operations a byte",
        caption=CAPTION,
        sheets=["diagram", "plot"],
    )
    says = _says(model, machine, memory, 1, CONTEXTS[1], 16)
    return Figure(html, f"A roofline. {says}")


def _step(model: Sizes, batch: int, context: int, bits: int) -> Work:
    return decoding_work(
        model, batch, context, weight_bits=bits, cache_bits=bits
    )


def _place(plot: Plot, work: Work, machine: Machine) -> tuple[float, float]:
    rate = work.operations / work.seconds(machine)
    across = min(max(log10(work.intensity), LEAST), MOST)
    return plot.x(across), plot.y(plot.cut(log10(rate)))


def _frame(
    plot: Plot,
    model: Sizes,
    machine: Machine,
    memory: Number,
    batch: int,
    context: int,
    bits: int,
) -> Parts:
    work = _step(model, batch, context, bits)
    x, y = _place(plot, work, machine)
    waits = work.moving(machine) > work.computing(machine)
    return {
        "dot@transform": f"translate({x:.1f},{y:.1f}) scale(1.5)",
        "dot@d": MARKS["circle" if waits else "square"],
        "dot@class": "dot waits" if waits else "dot",
        "drop@d": f"M{x:.1f} {y:.1f}V{plot.bottom}",
        "says": _says(model, machine, memory, batch, context, bits),
    }


def _says(
    model: Sizes,
    machine: Machine,
    memory: Number,
    batch: int,
    context: int,
    bits: int,
) -> str:
    work = _step(model, batch, context, bits)
    reading, computing = work.moving(machine), work.computing(machine)
    who = "Memory" if reading > computing else "Arithmetic"
    says = (
        f"Batch {batch:,}, weights in {bits} bits, {context:,} positions each: "
        f"{short(work.intensity)} operations a byte, and the ridge is at "
        f"{short(machine.ridge)}. Reading {short(work.bytes / 1e9)} GB takes "
        f"{short(1000 * reading)} ms, computing {short(1000 * computing)} ms. "
        f"{who} decides: at most {_many(batch / work.seconds(machine))} tokens "
        "a second."
    )
    if work.bytes > memory:
        says += (
            f" But {short(memory / 1e9)} GB is all the memory there is: this "
            "batch does not fit."
        )
    return says


def _many(value: Number) -> str:
    return f"{value:,.0f}" if value >= 1000 else short(value)


def _body(parts: Parts, plot: Plot, model: Sizes, machine: Machine) -> str:
    top, ridge = log10(machine.operations), log10(machine.ridge)
    slope = log10(machine.bytes)
    start = max(LEAST, 12 - slope)
    roof = plot.line([(start, slope + start), (ridge, top), (MOST, top)])
    x, y = _place(plot, prefill_work(model, 1, PROMPT), machine)
    picture = drawing(
        216,
        "A roof: it rises with the operations for each byte up to the ridge, "
        "and is level from there. A point on it moves with the controls.",
        '<g class="plot">'
        + plot.grid(
            {12: "1", 13: "10", 14: "100", 15: "1,000"},
            {0: "1", 1: "10", 2: "100", 3: "1,000", 4: "10⁴"},
            "operations for each byte that is moved",
        )
        + f'<text class="name over" x="4" y="11">10¹² operations a second'
        f'</text></g><path class="roof" d="{roof}"/>',
        f'<path class="ridge" d="M{plot.x(ridge):.1f} {plot.y(top):.1f}'
        f'V{plot.bottom}"/>',
        label(plot.x(0.35), plot.y(slope + 0.95), "memory", "note"),
        label(
            plot.x((ridge + MOST) / 2), plot.y(top) - 8, "arithmetic", "note"
        ),
        label(
            plot.x(ridge) + 24, plot.bottom - 8, short(machine.ridge), "note"
        ),
        mark("prompt", x, y, MARKS["diamond"]),
        label(x, y + 20, "a prompt", "note"),
        f'<path class="drop" data-part="drop" d="{parts["drop@d"]}"/>',
        f'<path data-part="dot" class="{parts["dot@class"]}" '
        f'transform="{parts["dot@transform"]}" d="{parts["dot@d"]}"/>',
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p></div>"""
