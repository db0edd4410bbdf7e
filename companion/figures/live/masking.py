"""The live figure of chapter 12: a text, damaged in three ways."""

from html import escape

import ipywidgets as widgets

from companion.figures.gallery import objectives
from companion.figures.gallery.objectives import OTHERS, TEXT, examples
from companion.figures.gallery.objectives.parts import Words
from companion.figures.gallery.objectives.view import lanes
from companion.figures.gallery.objectives.words import summary
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.live.widget import Live

MODELS = ("BERT", "T5", "BART")


def try_masking(text: str = TEXT) -> Live:
    """A field for a text; what three objectives make of it.

    Args:
        text: What stands in the field at first: words apart by spaces.
    """
    return Live(
        _damaged,
        "run its cell to type a text and see what BERT's masking, T5's span "
        "corruption and BART's noise make of it.",
        text=widgets.Text(
            value=text, description="text", continuous_update=False
        ),
        share=widgets.FloatSlider(
            value=0.3, min=0.05, max=0.6, step=0.05, description="share"
        ),
        seed=widgets.IntSlider(value=12, max=50, description="seed"),
    )


def _damaged(text: str, share: float, seed: int) -> str:
    words = Words(text, OTHERS)
    parts = []
    for model in MODELS:
        [example] = examples(model, words, share, [seed])
        parts.append(
            f'<section><p class="says"><b>{model}</b> '
            f"{escape(summary(model, example))}</p>{lanes(example)}</section>"
        )
    return inline(
        "objectives",
        body=f'<div role="status">{"".join(parts)}</div>',
        label="One text, damaged in three ways",
        style=figure_parts(objectives.__file__)["style"],
    )
