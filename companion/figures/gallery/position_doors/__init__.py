"""Where a position can enter one layer of attention: four doors."""

from html import escape

from companion.figures.kit.diagram import arrow, drawing, label
from companion.figures.kit.digits import Number
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

DOORS = {
    "1": ("added to the word", ("sinusoidal", "learned")),
    "2": ("queries and keys are turned", ("RoPE",)),
    "3": ("added to the score", ("Shaw", "Transformer-XL", "T5", "ALiBi")),
    "4": ("added to the value", ("Shaw",)),
}
"""Number of a door -> what happens there, and the schemes that use it."""
Q, K, V, SCORE = 62, 142, 282, 102


def position_doors() -> Figure:
    """Draw one layer of attention, and at which door each scheme enters."""
    says = " ".join(
        f"Door {door}, {what}: {', '.join(schemes)}."
        for door, (what, schemes) in DOORS.items()
    )
    parts = [
        _box(170, 8, 104, "word vector x"),
        arrow(170, 34, 74, Q, 102),
        arrow(170, 34, 74, K, 102),
        arrow(170, 34, 74, V, 102),
        _door(170, 54, "1"),
        label(184, 52, "sinusoidal, learned", "scheme"),
        label(184, 66, "below the first layer", "aside"),
        _box(Q, 104, 60, "query q"),
        _box(K, 104, 60, "key k"),
        _box(V, 104, 62, "value v"),
        arrow(Q, 130, 176, SCORE, 196),
        arrow(K, 130, 176, SCORE, 196),
        _door(Q, 152, "2"),
        _door(K, 152, "2"),
        label(K + 16, 157, "RoPE", "scheme"),
        _box(SCORE, 198, 92, "score q · k"),
        arrow(SCORE, 224, 286),
        _door(SCORE, 252, "3"),
        label(SCORE + 16, 248, "T5, ALiBi, Shaw,", "scheme"),
        label(SCORE + 16, 265, "Transformer-XL", "scheme"),
        _box(SCORE, 288, 92, "softmax"),
        f'<path class="wire" d="M{V} 130V326"/>',
        _door(V, 210, "4"),
        label(V + 16, 215, "Shaw", "scheme"),
        arrow(SCORE, 314, 326, 170, 344),
        f'<path class="wire" d="M{V} 326H170"/>',
        _box(170, 346, 130, "average of values"),
    ]
    html = inline(
        "doors",
        body=drawing(380, f"One layer of attention. {says}", *parts)
        + f'<p class="unseen">{escape(says)}</p>',
        label="Where each scheme enters a layer of attention",
        caption="Door 1: a vector is added to the word, once, below the first "
        "layer. Doors 2, 3 and 4 are open in every layer: queries and keys are "
        "turned; something is added to the score of each pair of words; "
        "something is added to the value that one word hands to another.",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Four doors. {says}")


def _box(x: Number, y: Number, wide: Number, name: str) -> str:
    return (
        f'<g class="box"><rect x="{x - wide / 2:g}" y="{y:g}" width="{wide:g}" '
        f'height="26" rx="5"/>{label(x, y + 17, name)}</g>'
    )


def _door(x: Number, y: Number, number: str) -> str:
    return f'<circle class="door" cx="{x:g}" cy="{y:g}" r="11"/>' + label(
        x, y + 5, number, "number"
    )
