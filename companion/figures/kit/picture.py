"""Static plots: matplotlib draws, and the page's palette colours them."""

import hashlib
import io
import re
import warnings
from xml.etree import ElementTree

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from companion.figures.kit.digits import HOTTEST, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import PALETTE, inline

# Lines differ in their dashes too: colour alone does not tell them apart for
# everybody.
_CYCLE = cycler(
    color=[PALETTE[name] for name in ("blue", "orange", "teal", "plum")],
    linestyle=["-", "--", "-.", ":"],
)
STYLE = {
    # A phone shows 5 inches at full size; wider figures scroll in their frame.
    "figure.figsize": (5.0, 3.0),
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": _CYCLE,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "legend.fontsize": 11,
    "text.color": PALETTE["ink"],
    "axes.labelcolor": PALETTE["ink"],
    "axes.titlecolor": PALETTE["ink"],
    "axes.edgecolor": PALETTE["muted"],
    "xtick.color": PALETTE["muted"],
    "ytick.color": PALETTE["muted"],
    "grid.color": PALETTE["line"],
}
# Text stays text, and equal figures get equal ids.
# A colour such as "C0" is looked up only when a line is written. By then the
# ``with style()`` is over, so the cycle belongs to the writing, too.
_WRITING = {
    "svg.fonttype": "none",
    "svg.hashsalt": "companion",
    "axes.prop_cycle": _CYCLE,
}
_VARIABLES = {colour: f"var(--{name})" for name, colour in PALETTE.items()}
_VARIABLES |= {"#000000": "var(--ink)", "#ffffff": "var(--paper)"}
_FRAME = """.companion-plot .frame { overflow-x: auto; }
.companion-plot svg { width: 100%; overflow: visible;
  stroke-linejoin: round; }
"""


def style():
    """The look of the book's plots, as a context: ``with style(): ...``."""
    return plt.rc_context(STYLE)


def plot(figure: Canvas, *, caption: str, alt: str) -> Figure:
    """A matplotlib figure as part of the page; it follows the page's theme.

    Colours of the palette become the page's, text is set in the page's font
    (so Chinese needs no font here), the ground is transparent. The matplotlib
    figure is closed, so that no notebook shows it a second time.

    Args:
        caption: What the reader should see in it, as HTML.
        alt: What it shows, for who cannot see it.

    Raises:
        ValueError: a label mixes Chinese and ``$…$``, which matplotlib cannot
            write; or ``alt`` is empty.
    """
    if not alt.strip():
        raise ValueError("alt: expected what the plot shows, got no words")
    plt.close(figure)
    root = _read(_write(figure))
    width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
    root.attrib.update({"role": "img", "aria-label": alt})
    # Letters of 11 units stay readable: never much smaller than they were
    # drawn, and not as large as a headline on a wide page.
    root.set(
        "style",
        f"min-width: {0.85 * width:.0f}px; "
        f"max-width: {1.4 * width:.0f}px; "
        f"aspect-ratio: {width:g} / {height:g}",
    )
    drawing = ElementTree.tostring(root, encoding="unicode")
    html = inline(
        "plot",
        body=f'<div class="frame">{drawing}</div>',
        label="Plot",
        caption=caption,
        style=_FRAME,
    )
    return Figure(html, f"Plot: {alt}")


def heatmap(ax, values, rows, columns, *, places: int = 2) -> None:
    """Tinted cells with their numbers; ``rows`` and ``columns`` name them.

    Raises:
        ValueError: ``values`` has not one number for each row and column.
    """
    shape = (len(values), *{len(row) for row in values})
    if shape != (len(rows), len(columns)):
        raise ValueError(
            f"values: expected shape {(len(rows), len(columns))}, got {shape}"
        )
    top = max(abs(float(v)) for row in values for v in row) or 1
    for i, row in enumerate(values):
        for j, value in enumerate(float(v) for v in row):
            tone = PALETTE["orange" if value < 0 else "blue"]
            tint = abs(value) / top * HOTTEST / 100
            cell = (j - 0.48, i - 0.48), 0.96, 0.96
            ax.add_patch(Rectangle(*cell, color=tone, alpha=tint, linewidth=0))
            ax.text(j, i, fixed(value, places), ha="center", va="center")
    ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0, labelcolor=PALETTE["ink"])
    ax.xaxis.tick_top()
    ax.grid(False)
    ax.spines[:].set_visible(False)


def _write(figure: Canvas) -> str:
    """SVG text, the same for the same figure on every day."""
    page = io.StringIO()
    with plt.rc_context(_WRITING), warnings.catch_warnings():
        # matplotlib measures text with a font that has no Chinese; the page
        # writes it with one that has.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(page, format="svg", transparent=True, metadata=nothing)
    if "¤" in page.getvalue():
        raise ValueError(
            "figure: expected labels in which Chinese and $…$ do not mix, got "
            "one that does; write ₖ or ² instead of $_k$ or $^2$"
        )
    return page.getvalue()


def _read(text: str) -> ElementTree.Element:
    """The drawing without its envelope, in the page's colours and font."""
    # Links are plain in HTML, and a name used by two plots would cross them.
    text = text.replace("xlink:href", "href")
    text = text.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)
    text = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    text = re.sub(r" ?font-family:[^;\"]*;?", "", text)
    text = re.sub(r"#[0-9a-f]{6}(?=[;\"])", _themed, text)
    text = re.sub(r"-?\d+\.\d{3,}", lambda n: f"{float(n[0]):.2f}", text)
    root = ElementTree.fromstring(_rename(text))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    _tidy(root)
    return root


def _themed(colour: re.Match) -> str:
    return _VARIABLES.get(colour[0], colour[0])


def _rename(text: str) -> str:
    """Gives what is referred to a name no other drawing has."""
    own = "plot" + hashlib.sha256(text.encode()).hexdigest()[:10]
    # A colour of matplotlib's own, #1f77b4, is referred to by nobody.
    named = set(re.findall(r"id=\"(\w+)\"", text))
    used = named & set(re.findall(r"#(\w+)[\")]", text))
    for name in sorted(used):
        text = re.sub(rf"(id=\"|#){name}(?=[\")])", rf"\g<1>{own}-{name}", text)
    return re.sub(rf" id=\"(?!{own}-)[^\"]*\"", "", text)


def _tidy(node: ElementTree.Element) -> None:
    """Joins broken lines, drops empty parts, lets split words flow."""
    if node.text and not node.text.strip():
        node.text = None
    if "d" in node.attrib:
        node.set("d", " ".join(node.attrib["d"].split()))
    for child in list(node):
        _tidy(child)
        child.tail = None
        if child.tag in ("g", "defs", "metadata") and not len(child):
            node.remove(child)
    _join([child for child in node if child.tag == "tspan"])


def _join(spans: list[ElementTree.Element]) -> None:
    """Lets letters that matplotlib placed one by one follow each other.

    It placed them for its own font, and the page has another. What stands
    above another (a fraction, an index under a power) stays where it is.
    """
    places = [float(span.attrib["x"].split()[0]) for span in spans]
    if places == sorted(set(places)):
        for span in spans[1:]:
            del span.attrib["x"]
