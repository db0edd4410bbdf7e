"""Three ways down a ravine: the gradient alone, with momentum, and Adam's."""

from collections.abc import Iterator

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps
from companion.figures.kit.plot import Plot

NAMES = "gradient descent", "momentum", "Adam"
STEEP = (25, 100, 400)
START = (5.0, 1.0)
UPDATES = 16
LEVELS = (0.5, 2, 6, 13, 25)
"""Heights of the contour lines."""

RATE, KEEP, BETAS, EPS = 0.5, 0.7, (0.9, 0.98), 1e-9
PLOT = Plot(-2.3, 5.7, -1.25, 1.25, left=6, right=334, top=4, bottom=209)
CAPTION = f"""The height is ½(x² + <i>c</i>·y²), and lines join points of the
same height; y is drawn at twice the scale of x. A dot is an update. Rates:
gradient descent 1.75/<i>c</i>, momentum 1.25/<i>c</i> with {KEEP:g} of the last
step kept, Adam {RATE:g} at every <i>c</i>."""

Spot = tuple[float, float]


def ravine() -> Figure:
    """Step down a ravine with one of three optimizers, and see all three.

    The valley is steep across and flat along, by a factor that one chooses.
    Of gradient descent and momentum the rate follows the steepness, as it
    must; of Adam it does not.
    """

    def show(name: int, steep: int, step: int) -> Parts:
        return _frame(name, STEEP[steep], step)

    controls = [
        choice("downhill by", NAMES, 2),
        choice("c, how much steeper across", [f"{c}" for c in STEEP], 1),
        steps([UPDATES + 1] * len(STEEP), ["Start", "Back", "Next"], last=True),
    ]
    html = played(
        "ravine",
        show,
        controls,
        _body,
        module=__file__,
        label="Three ways down a ravine, update by update",
        caption=CAPTION,
        sheets=["diagram"],
    )
    return Figure(html, f"A ravine. {_says(2, STEEP[1], UPDATES)}")


def walk(
    name: int, steep: Number, updates: int = UPDATES
) -> list[tuple[Spot, Spot]]:
    """List where a way leads, and the gradient it took to get there.

    Args:
        name: Which of ``NAMES``.
        steep: How much steeper the valley is across than along.
        updates: How many steps are taken.

    Returns:
        For the start and then after every update: the place, and the gradient
        of the place before it.

    Example:
        >>> [gradient for _, gradient in walk(0, 25, updates=1)]
        [(0.0, 0.0), (5.0, 25.0)]
    """
    way, at = [(START, (0.0, 0.0))], START
    moves = [_moves(name, steep), _moves(name, steep)]
    for each in moves:
        next(each)
    for _ in range(updates):
        gradient = at[0], steep * at[1]
        x, y = (
            place + move.send(slope)
            for place, move, slope in zip(at, moves, gradient, strict=True)
        )
        at = x, y
        way.append((at, gradient))
    return way


def _moves(name: int, steep: Number) -> Iterator:
    """Answer each gradient of one coordinate with what is to be added."""
    first, second, step, t = 0.0, 0.0, 0.0, 0
    while True:
        slope = yield step
        t += 1
        if name < 2:
            first = (KEEP if name else 0) * first + slope
            step = -(1.25 if name else 1.75) / steep * first
            continue
        first = BETAS[0] * first + (1 - BETAS[0]) * slope
        second = BETAS[1] * second + (1 - BETAS[1]) * slope**2
        mean, square = first / (1 - BETAS[0] ** t), second / (1 - BETAS[1] ** t)
        step = -RATE * mean / (square**0.5 + EPS)


def height(place: Spot, steep: Number) -> float:
    """Compute how high a place lies.

    Example:
        >>> height((5.0, 1.0), 25)
        25.0
    """
    return (place[0] ** 2 + steep * place[1] ** 2) / 2


def _says(name: int, steep: Number, step: int) -> str:
    way = walk(name, steep)
    (x, y), gradient = way[step]
    high = fixed(height((x, y), steep))
    at = f"at ({fixed(x)}, {fixed(y)}), and the height is {high}"
    if step == 0:
        return f"{NAMES[name].capitalize()} starts {at}."
    old = way[step - 1][0]
    moved = f"({fixed(x - old[0])}, {fixed(y - old[1])})"
    slope = f"({fixed(gradient[0])}, {fixed(gradient[1])})"
    return (
        f"Update {step} of {NAMES[name]}: the gradient is {slope}, the step "
        f"{moved}. Now it is {at}."
    )


def _frame(name: int, steep: Number, step: int) -> Parts:
    places = [at for at, _ in walk(name, steep)[: step + 1]]
    # A line of no length has round ends: a dot.
    dots = "".join(f"M{PLOT.x(x):.0f} {PLOT.y(y):.0f}h0" for x, y in places)
    ways = "".join(
        f'<path class="way tone{other}" d="{_path(other, steep)}"/>'
        for other in range(len(NAMES))
    )
    return {
        "valley": _valley(steep),
        "ways": ways,
        "gone@class": f"gone tone{name}",
        "line@d": PLOT.line(places),
        "dots@d": dots,
        "says": _says(name, steep, step),
    }


def _path(name: int, steep: Number) -> str:
    return PLOT.line(at for at, _ in walk(name, steep))


def _valley(steep: Number) -> str:
    x, y = PLOT.x(0), PLOT.y(0)
    rings = []
    for level in LEVELS:
        along = PLOT.x((2 * level) ** 0.5) - x
        across = y - PLOT.y((2 * level / steep) ** 0.5)
        rings.append(
            f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{along:.1f}" '
            f'ry="{across:.1f}"/>'
        )
    return "".join(rings)


def _body(parts: Parts) -> str:
    legend = "".join(
        f'<li><svg viewBox="0 0 26 12" aria-hidden="true"><path class="way '
        f'tone{i}" d="M1 6H25"/></svg><span>{name}</span></li>'
        for i, name in enumerate(NAMES)
    )
    picture = drawing(
        214,
        "A ravine from above, steep across and flat along, and three ways "
        "from its upper right edge towards the middle.",
        f'<g class="valley" data-part="valley">{parts["valley"]}</g>',
        f'<g data-part="ways">{parts["ways"]}</g>',
        f'<g data-part="gone" class="{parts["gone@class"]}">'
        f'<path class="line" data-part="line" d="{parts["line@d"]}"/>'
        f'<path class="dots" data-part="dots" d="{parts["dots@d"]}"/></g>',
        f'<circle class="goal" cx="{PLOT.x(0):.1f}" cy="{PLOT.y(0):.1f}" '
        'r="4"/>',
        label(PLOT.x(START[0]) + 2, PLOT.y(START[1]) - 10, "start", "note"),
    )
    return f"""<div class="controls"></div>
<ul class="legend">{legend}</ul>
{picture}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
