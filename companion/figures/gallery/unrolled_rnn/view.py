"""The picture of the unrolled RNN, and what changes in it.

Heights are in pixels, downwards. Across, everything is in per cent, so that the
drawing fits any width while its letters keep their size.
"""

from math import log10

from companion.figures.kit.digits import lowered, short
from companion.figures.kit.play import Parts

STATE, INPUT, HEADING, TOP = 44, 96, 156, 176
AXIS, END = 9, 98
DECADE, DECADES = 15, 6  # pixels for a factor of ten, and how many of them
MIDDLE = TOP + DECADE * DECADES
TICKS = {6: "10⁶", 3: "10³", 0: "1", -3: "10⁻³", -6: "10⁻⁶"}


def frame(
    gradients: list[float], sizes: list[float], linear: list[float]
) -> Parts:
    """Collect what changes with the gain, a text a step.

    Args:
        gradients: How strongly each input reaches the last state.
        sizes: The mean size of the numbers in each state.
        linear: What ``gradients`` would be without tanh.
    """
    bars = [_height(gradient) for gradient in gradients]
    written = [short(gradient) for gradient in gradients]
    return {
        "title": [
            f"{lowered('x', t)}: {text}" for t, text in enumerate(written, 1)
        ],
        "state@fill-opacity": [f"{size:.3f}" for size in sizes],
        "bar@class": [f"bar {'down' if bar < 0 else 'up'}" for bar in bars],
        "bar@y": [f"{MIDDLE - max(bar, 0):.1f}" for bar in bars],
        "bar@height": [f"{max(abs(bar), 1):.1f}" for bar in bars],
        "linear@y": [f"{MIDDLE - _height(dash) - 1:.1f}" for dash in linear],
        "gradient": written,
        "size": [short(size) for size in sizes],
    }


def body(parts: Parts) -> str:
    """Draw everything the figure shows without scripts."""
    steps = len(parts["size"])
    columns = (_column(t, steps, parts) for t in range(1, steps + 1))
    height = MIDDLE + DECADE * DECADES + 12
    return f"""<div class="controls"></div>
<svg class="drawing" height="{height}" role="img"
 aria-label="The RNN unrolled; the numbers stand in the table below."
>{_chain(steps)}{_axis()}{"".join(columns)}</svg>
<p class="legend"><span><i class="full"></i>state: fuller means nearer ±1</span>
<span><i class="up"></i>amplified</span> <span><i class="down"></i>weakened
</span> <span><i class="linear"></i>without tanh</span></p>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<details><summary>The numbers as a table</summary>
{_table(parts["gradient"], parts["size"])}</details>"""


def _table(gradients: list[str], sizes: list[str]) -> str:
    rows = "".join(
        f'<tr><th scope=row>{t}</th><td data-part="gradient">{g}</td>'
        f'<td data-part="size">{s}</td></tr>'
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


def _column(t: int, steps: int, parts: Parts) -> str:
    """Step t: its input and state, the arrows into them, its bar."""
    share = (END - AXIS) / steps
    here = {name: texts[t - 1] for name, texts in parts.items()}
    names = (
        f'<text y="{STATE - 16}">{lowered("h", t)}</text>'
        f'<text y="{INPUT + 24}">{lowered("x", t)}</text>'
    )
    along = (
        f'<path class="tip along" d="M-12 {STATE - 3.5}L-7 {STATE}'
        f'L-12 {STATE + 3.5}"/>'
    )
    return (
        f'<svg class="step" x="{AXIS + share * (t - 0.5):.3f}%">'
        f'<title data-part="title">{here["title"]}</title>'
        f'<path class="wire" d="M0 {INPUT}V{STATE}"/><path class="tip" '
        f'd="M-3.5 {STATE + 12}L0 {STATE + 7}L3.5 {STATE + 12}"/>'
        f"{along if t > 1 else ''}"
        f'<circle class="ground" r="6" cy="{STATE}"/>'
        f'<circle class="state" r="6" cy="{STATE}" data-part="state" '
        f'fill-opacity="{here["state@fill-opacity"]}"/>'
        f'<rect class="input" x="-5" y="{INPUT - 5}" width="10" height="10"/>'
        f"{names if t in (1, steps) or t % 5 == 0 else ''}"
        f'<rect class="{here["bar@class"]}" data-part="bar" '
        f'x="{-0.36 * share:.3f}%" width="{0.72 * share:.3f}%" '
        f'y="{here["bar@y"]}" height="{here["bar@height"]}"/>'
        f'<rect class="linear" data-part="linear" '
        f'x="{-0.48 * share:.3f}%" width="{0.96 * share:.3f}%" height="2" '
        f'y="{here["linear@y"]}"/></svg>'
    )
