"""Encoder and decoder, and three ways to hand the source's context over."""

from collections.abc import Sequence
from html import escape, unescape
from itertools import pairwise

from companion.figures.gallery.wirings.view import Wire, picture, wires_of
from companion.figures.kit.digits import lowered
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps
from companion.figures.kit.tables import rows_of

WAYS = ("handed over once", "handed over at each step", "made anew")
CAPTION = """Below, the encoder reads; above, the decoder writes, and under each
of its states stands the word that it reads. Drawn boldly is the shortest way
from the first word of the source to the word that is being written."""


def wirings(
    source: Sequence[str], target: Sequence[str], weights: object
) -> Figure:
    """Draw an encoder and a decoder, and what is handed over in three ways.

    A reader picks how the context is handed over, and steps through the words
    that are written. The shortest way from the first word of the source to
    each of them is drawn boldly, and its arrows are counted.

    Args:
        source: The words that are read, at most four.
        target: The words that are written, at most four.
        weights: How much each word of the target takes of each word of the
            source, where every step has a context of its own.

    Raises:
        ValueError: the words are too many, or the weights do not fit them.
    """
    for name, words in {"source": source, "target": target}.items():
        if not 1 <= len(words) <= 4:
            raise ValueError(f"{name}: expected 1 to 4 words, got {len(words)}")
    shares = rows_of("weights", weights, height=len(target), width=len(source))
    wires = wires_of(shares)

    def show(way: int, step: int) -> Parts:
        bold = route(WAYS[way], len(source), step)
        return {
            "arrow@class": [
                _class(arrow, WAYS[way], step, bold) for arrow in wires
            ],
            "box@class": [
                *(_state(i, step) for i in range(1, len(target) + 1)),
                *["box"] * len(source),
            ],
            "says": _sentence(WAYS[way], source, target, step),
        }

    controls = [
        choice("The context is", WAYS, 0),
        steps([len(target) + 1] * 3, ["Start", "Back", "Next"], last=True),
    ]
    html = played(
        "wirings",
        show,
        controls,
        lambda parts: _body(
            parts, picture(wires, source, target, parts), source, target
        ),
        module=__file__,
        label="Encoder and decoder, and what is handed over",
        caption=CAPTION,
        sheets=["diagram"],
    )
    said = unescape(show(0, len(target))["says"])
    return Figure(html, f"Encoder and decoder. {said}")


def route(way: str, n: int, step: int) -> list[str]:
    """Find the shortest way from the first of n source words to a target word.

    Args:
        way: How the context is handed over, one of ``WAYS``.
        n: The number of words in the source.
        step: Which word is written, from 1; 0 while the encoder still reads.

    Returns:
        The states on the way, ``h1`` first; its arrows are one fewer.

    Example:
        >>> route("handed over at each step", 3, 2)
        ['h1', 'h2', 'h3', 's2']
    """
    if way == "made anew" and step:
        return ["h1", f"s{step}"]
    read = [f"h{j}" for j in range(1, n + 1)]
    if way == "handed over at each step":
        return read + [f"s{step}"] * bool(step)
    return read + [f"s{i}" for i in range(1, step + 1)]


def _class(arrow: Wire, way: str, step: int, bold: list[str]) -> str:
    """Whether an arrow is there, and whether it lies on the shortest way."""
    if arrow.way not in ("", way) or arrow.step > step:
        return "gone"
    if arrow.way == "made anew" and arrow.step < step:
        return "gone"  # Each word has its own mixture, and leaves none behind.
    return "on" if (arrow.start, arrow.end) in {*pairwise(bold)} else "there"


def _state(i: int, step: int) -> str:
    """The class of the decoder's state i."""
    if i == step:
        return "box now"
    return "box" if i < step else "box later"


def _sentence(way: str, source, target, step: int) -> str:
    first, n = escape(source[0]), len(source)
    last = lowered("h", n)
    if step == 0:
        return (
            f"The encoder has read {n} words. Its memory behind the last one, "
            f"{last}, is where the decoder will start."
        )
    word, state = escape(target[step - 1]), lowered("s", step)
    hops = len(route(way, n, step)) - 1
    many = f"{hops} arrow{'s' * (hops > 1)}"
    if way == "handed over once":
        before = (
            f"starts from {last}"
            if step == 1
            else f"knows of the source what {lowered('s', step - 1)} still "
            "remembers"
        )
        told = f"{state} {before}"
    elif way == "handed over at each step":
        told = f"{state} reads {last} once more, the same for every word"
    else:
        asks = lowered("s", step - 1) if step > 1 else f"the memory {last}"
        told = f"{asks} asks, and {state} reads a mixture of all states"
    return f"To write “{word}”, {told}. From {first} it is {many} to here."


def _body(parts: Parts, drawn: str, source, target) -> str:
    n, m = len(source), len(target)
    rows = "".join(
        f"<p>The context is {way}. "
        + " ".join(
            _sentence(way, source, target, step) for step in range(1, m + 1)
        )
        + "</p>"
        for way in WAYS
    )
    return f"""<div class="controls"></div>
{drawn}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>
<details><summary>All {3 * m} steps in words, for {n} words</summary>{rows}
</details>"""
