"""The live figure of chapter 09: a text, cut into tokens while it is typed."""

from collections.abc import Sequence
from functools import partial

import ipywidgets as widgets

from companion.data import phrasebook
from companion.figures.gallery.token_strips import token_strips
from companion.figures.live.widget import Live
from companion.tokens import Tokenizer, fast_merges, word_counts
from companion.tokens.plain import Merge

TEXT = "I love little cats. 我爱小猫。"


def try_tokens(merges: Sequence[Merge] | None = None, text: str = TEXT) -> Live:
    """A field for a text, and how many merges cut it.

    Args:
        merges: As they were learned, of bytes; without them, 300 that are
            learned from the phrasebook.
        text: What stands in the field at first.
    """
    if merges is None:
        texts = (
            text
            for pair in phrasebook.pairs()
            for text in (" ".join(pair.en), "".join(pair.zh))
        )
        merges = fast_merges(word_counts(texts), 300)
    return Live(
        partial(_cut, list(merges)),
        "run its cell to type a text, choose how many merges are replayed, and "
        "see its tokens.",
        text=widgets.Text(
            value=text, description="text", continuous_update=False
        ),
        number=widgets.IntSlider(
            value=len(merges), max=len(merges), description="merges"
        ),
    )


def _cut(merges: Sequence[Merge], text: str, number: int) -> str:
    tokenizer = Tokenizer(merges[:number])
    pieces = [tokenizer.vocabulary[i] for i in tokenizer.encode(text)]
    figure = token_strips(["text"], {"tokens": [pieces]})
    return f'<div role="status">{figure.html}</div>'
