"""How the last word learns of the first: the ways through four layers."""

from html import escape
from itertools import pairwise

from companion.costs import LAYERS, path_length
from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

KERNEL, LEFT, RIGHT, RISE = 3, 20, 320, 38
NAMES = {
    "rnn": "recurrent",
    "convolution": "convolution, 3 wide",
    "dilated": "convolution, gaps doubled",
    "attention": "attention",
}

Spot = tuple[int, int]
"""A layer, counted from below, and a position."""


def paths(n: int = 8) -> Figure:
    """Draw how a signal comes from the first of ``n`` positions to the last.

    A stack of each kind of layer is just high enough for that. All arrows of
    the stack are drawn thinly, and one way from end to end boldly.

    Args:
        n: How many positions there are.

    Raises:
        ValueError: ``n`` is not between 2 and 12.

    Example:
        >>> paths(5).text
        'Paths. From word 1 to word 5: recurrent 4, convolution, 3 wide 2, \
convolution, gaps doubled 2, attention 1.'
    """
    if not 2 <= n <= 12:
        raise ValueError(f"n: expected 2 to 12 positions, got {n}")
    counts = {layer: path_length(layer, n, KERNEL) for layer in LAYERS}
    listed = ", ".join(f"{NAMES[k]} {count}" for k, count in counts.items())
    says = f"From word 1 to word {n}: {listed}."
    panels = "".join(_panel(layer, n, counts[layer]) for layer in LAYERS)
    html = inline(
        "paths",
        body=f'<div class="side">{panels}</div>'
        f'<p class="unseen">{escape(says)}</p>',
        label="Paths from the first word to the last",
        caption=f"{n} words from left to right, layers from below. Bold: a way "
        "from the first word to the last that takes as few arrows as it can.",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Paths. {says}")


def edges(layer: str, n: int, layers: int) -> list[tuple[Spot, Spot]]:
    """List every arrow of a stack; of an RNN those along the sentence.

    Example:
        >>> edges("rnn", 3, 2)
        [((0, 0), (0, 1)), ((0, 1), (0, 2))]
    """
    if layer == "rnn":
        return [((0, j), (0, j + 1)) for j in range(n - 1)]
    found = []
    for up in range(layers):
        gap = 2**up if layer == "dilated" else 1
        for to in range(n):
            reads = (
                range(n)
                if layer == "attention"
                else [to - k * gap for k in range(KERNEL) if to >= k * gap]
            )
            found += [((up, start), (up + 1, to)) for start in reads]
    return found


def shortest(layer: str, n: int, layers: int) -> list[Spot]:
    """Find a way from the first position to the last, as spots.

    Example:
        >>> shortest("dilated", 5, 2)
        [(0, 0), (1, 0), (2, 4)]
    """
    if layer == "rnn":
        return [(0, j) for j in range(n)]
    way, at = [(layers, n - 1)], n - 1
    for up in reversed(range(layers)):
        gap = 2**up if layer == "dilated" else 1
        reach = n - 1 if layer == "attention" else (KERNEL - 1) * gap
        at -= min(reach, at - at % gap)
        way.append((up, at))
    return way[::-1]


def _panel(layer: str, n: int, arrows: int) -> str:
    high = 0 if layer == "rnn" else arrows
    foot = 40 + RISE * high

    def at(spot: Spot) -> tuple[Number, Number]:
        up, j = spot
        return LEFT + (RIGHT - LEFT) * j / (n - 1), foot - RISE * up

    bold = {*pairwise(shortest(layer, n, arrows))}
    lines = [
        _line(at(a), at(b), "bold" if (a, b) in bold else "thin")
        for a, b in sorted(
            edges(layer, n, arrows), key=lambda edge: edge in bold
        )
    ]
    dots = [
        '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="5"/>'.format(
            "end" if (up, j) in ((0, 0), (high, n - 1)) else "spot",
            *at((up, j)),
        )
        for up in range(high + 1)
        for j in range(n)
    ]
    many = f"{arrows} arrow{'s' * (arrows > 1)}"
    title = label(170, 16, f"{NAMES[layer]}: {many}", "title")
    says = f"{NAMES[layer]}: {many} from the first word to the last"
    picture = drawing(foot + 14, says, title, *lines, *dots)
    return f'<div class="panel">{picture}</div>'


def _line(a: tuple[Number, Number], b: tuple[Number, Number], kind: str) -> str:
    return (
        f'<line class="{kind}" x1="{a[0]:.1f}" y1="{a[1]:.1f}" '
        f'x2="{b[0]:.1f}" y2="{b[1]:.1f}"/>'
    )
