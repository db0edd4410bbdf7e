"""The picture of the unrolled RNN, before any script moves it.

Heights are in pixels, downwards. Across, everything is in per cent, so that the
drawing fits any width while its letters keep their size.
"""

from math import log10

from companion.figures.kit.digits import lowered, short

STATE, INPUT, HEADING, TOP = 44, 96, 156, 176
AXIS, END = 9, 98
DECADE, DECADES = 15, 6  # pixels for a factor of ten, and how many of them
MIDDLE = TOP + DECADE * DECADES
TICKS = {6: "10⁶", 3: "10³", 0: "1", -3: "10⁻³", -6: "10⁻⁶"}


def body(gradients, sizes, linear, sentence: str) -> str:
    """Everything the figure shows without scripts.

    Args:
        gradients: How strongly each input reaches the last state.
        sizes: The mean size of the numbers in each state.
        linear: What ``gradients`` would be without tanh.
        sentence: The same in words.
    """
    steps, values = len(sizes), zip(gradients, sizes, linear, strict=True)
    columns = (_column(t, steps, *v) for t, v in enumerate(values, 1))
    height = MIDDLE + DECADE * DECADES + 12
    return f"""<div class="controls"></div>
<svg class="drawing" height="{height}" role="img"
 aria-label="The RNN unrolled; the numbers stand in the table below."
>{_chain(steps)}{_axis()}{"".join(columns)}</svg>
<p class="legend"><span><i class="full"></i>state: fuller means nearer ±1</span>
<span><i class="up"></i>amplified</span> <span><i class="down"></i>weakened
</span> <span><i class="linear"></i>without tanh</span></p>
<p class="says" aria-live="polite">{sentence}</p>
<details><summary>The numbers as a table</summary>
{_table(gradients, sizes)}</details>"""


def _table(gradients, sizes) -> str:
    rows = "".join(
        f"<tr><th scope=row>{t}</th><td>{short(g)}</td><td>{short(s)}</td></tr>"
        for t, (g, s) in enumerate(zip(gradients, sizes, strict=True), 1)
    )
    return (
        '<div class="scroll"><table class="cells"><thead><tr>'
        "<th scope=col>t</th>"
        f"<th scope=col>‖∂{lowered('h', len(sizes))}/∂xₜ‖</th>"
        "<th scope=col>mean |hₜ|</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _height(value: float) -> float:
    """How far above the line of 1 a value stands, in pixels, cut at the end."""
    if value <= 0:
        return -DECADES * DECADE
    return DECADE * max(-DECADES, min(DECADES, log10(value)))


def _chain(steps: int) -> str:
    """The line through the states, the names of U and W, the heading."""
    share = (END - AXIS) / steps
    last = lowered("h", steps)
    name = f'<text class="name" x="{AXIS + 2 * share:.3f}%"'
    return (
        f'<line class="chain" x1="{AXIS + share / 2:.3f}%" y1="{STATE}" '
        f'x2="{END - share / 2:.3f}%" y2="{STATE}"/>'
        f'{name} y="{STATE - 10}">U</text>'
        f'{name} y="{(STATE + INPUT) // 2 + 4}">W</text>'
        f'<text class="heading" x="0" y="{HEADING}">How strongly xₜ reaches '
        f"{last}: ‖∂{last}/∂xₜ‖</text>"
    )


def _axis() -> str:
    """Grid lines, each with its power of ten."""
    html = ""
    for power, name in TICKS.items():
        y = MIDDLE - power * DECADE
        html += (
            f'<line class="{"grid" if power else "grid one"}" x1="{AXIS}%" '
            f'x2="{END}%" y1="{y}" y2="{y}"/>'
            f'<text class="tick" x="{AXIS - 1.5}%" y="{y + 4}">{name}</text>'
        )
    return html


def _column(t: int, steps: int, gradient, size, linear: float) -> str:
    """Step t: its input and state, the arrows into them, its bar."""
    share = (END - AXIS) / steps
    names = (
        f'<text y="{STATE - 16}">{lowered("h", t)}</text>'
        f'<text y="{INPUT + 24}">{lowered("x", t)}</text>'
    )
    return (
        f'<svg class="step" x="{AXIS + share * (t - 0.5):.3f}%">'
        f"<title>{lowered('x', t)}: {short(gradient)}</title>{_cell(t, size)}"
        f"{names if t in (1, steps) or t % 5 == 0 else ''}"
        f"{_bar(share, _height(gradient), _height(linear))}</svg>"
    )


def _cell(t: int, size: float) -> str:
    along = (
        f'<path class="tip along" d="M-12 {STATE - 3.5}L-7 {STATE}'
        f'L-12 {STATE + 3.5}"/>'
    )
    return (
        f'<path class="wire" d="M0 {INPUT}V{STATE}"/><path class="tip" '
        f'd="M-3.5 {STATE + 12}L0 {STATE + 7}L3.5 {STATE + 12}"/>'
        f"{along if t > 1 else ''}"
        f'<circle class="ground" r="6" cy="{STATE}"/>'
        f'<circle class="state" r="6" cy="{STATE}" fill-opacity="{size:.3f}"/>'
        f'<rect class="input" x="-5" y="{INPUT - 5}" width="10" height="10"/>'
    )


def _bar(share: float, bar: float, linear: float) -> str:
    """A bar from the line of 1, and the dash of the RNN without tanh."""
    return (
        f'<rect class="bar {"down" if bar < 0 else "up"}" '
        f'x="{-0.36 * share:.3f}%" width="{0.72 * share:.3f}%" '
        f'y="{MIDDLE - max(bar, 0):.1f}" height="{max(abs(bar), 1):.1f}"/>'
        f'<rect class="linear" x="{-0.48 * share:.3f}%" '
        f'width="{0.96 * share:.3f}%" height="2" '
        f'y="{MIDDLE - linear - 1:.1f}"/>'
    )
