"""A sentence whose words move: what the order changes, and what it does not."""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import torch

from companion.data.vocabulary import Vocabulary
from companion.figures.kit.digits import fixed, heat
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.play import Parts, buttons, states
from companion.figures.kit.tables import table, tinted, word
from companion.rnn import bag_of_words

# In tenths: whole numbers add up to the same sum in any order, to the last bit.
VECTORS = {
    "我": (9, 3, 2),
    "爱": (1, 9, -5),
    "小": (-4, -1, -6),
    "猫": (6, 5, 1),
}
ENGLISH = {"我": "I", "爱": "love", "小": "little", "猫": "cats"}
VOCABULARY = Vocabulary("小猫我爱你看大狗他书")  # That of chapter 01.
TOKENS = VOCABULARY.tokens[len(VOCABULARY.specials) :]
START = tuple(VECTORS)


class Combined(NamedTuple):
    """What a sentence becomes; only the last of the three sees the order."""

    bag: list[float]
    mean: list[float]
    concat: list[float]


def word_order() -> Figure:
    """Move the words of 我爱小猫: its bag and its mean stay as they are.

    The bag is ``companion.rnn.bag_of_words``. The mean and the concatenation
    of the word vectors are what ``MeanFNN`` and ``ConcatFNN`` read.
    """
    orders = list(permutations(START))
    texts = [str(i) for i in range(len(orders))]
    html = inline(
        "order",
        body=_body(_frame(START)),
        label="A sentence whose words move, and three ways to add it up",
        caption=_caption(),
        data={
            "words": START,
            "orders": ["".join(order) for order in orders],
            "parts": states(lambda i: _frame(orders[i]), [buttons(texts, 0)]),
        },
        **figure_parts(__file__, "controls", "play"),
    )
    return Figure(html, f"Word order. {sentence(START)}")


def _frame(words: Sequence[str]) -> Parts:
    """What follows from the order of the words; bag and mean do not."""
    concat, before = combined(words).concat, combined(START).concat
    pairs = list(zip(concat, before, strict=True))
    said = sentence(words).removeprefix(" ".join(words))
    return {
        "number": [
            _chip(number) + f"<small>{_compared(number, first)}</small>"
            for number, first in pairs
        ],
        "number@class": [
            "changed" if number != first else "" for number, first in pairs
        ],
        "says": word(" ".join(words)) + said,
    }


def _compared(number: float, before: float) -> str:
    return "=" if number == before else f"≠ {fixed(before, 1)}"


def combined(words: Sequence[str]) -> Combined:
    """The counts, the mean vector and the vectors laid side by side."""
    ids = torch.tensor(VOCABULARY.encode(words))
    counts = bag_of_words(ids, len(VOCABULARY))[len(VOCABULARY.specials) :]
    tenths = torch.tensor([VECTORS[w] for w in words], dtype=torch.float64)
    return Combined(
        counts.tolist(),
        (tenths.mean(dim=0) / 10).tolist(),
        (tenths.flatten() / 10).tolist(),
    )


def sentence(words: Sequence[str]) -> str:
    """What the picture shows, in words."""
    _, mean, concat = combined(words)
    pairs = zip(concat, combined(START).concat, strict=True)
    changed = sum(now != before for now, before in pairs)
    numbers = ", ".join(fixed(number, 1) for number in mean)
    return (
        f"{' '.join(words)}: the counts and the mean, ({numbers}), are as at "
        f"the start; {changed} of {len(concat)} numbers of the concatenation "
        "changed."
    )


def _caption() -> str:
    """What to see, in numbers computed here and now."""
    orders = [combined(words) for words in permutations(START)]
    bags, means, rows = (
        len({tuple(vector) for vector in kind})
        for kind in zip(*orders, strict=True)
    )
    first = [vector[0] for vector in VECTORS.values()]
    total = "".join(
        f" {'−' if tenths < 0 else '+'} {fixed(abs(tenths) / 10, 1)}"
        for tenths in first
    ).removeprefix(" + ")
    return (
        "Drag a word along the row, or pick it and press ← or →. A sum does "
        "not care which term comes first: the mean begins with "
        f"({total}) / {len(first)} = {fixed(orders[0].mean[0], 1)} in every "
        f"order. The {len(orders)} orders of these words have {bags} bag of "
        f"words, {means} mean and {rows} concatenations. The vectors are made "
        "up, with one decimal, so that you can check them by hand."
    )


def _body(parts: Parts) -> str:
    """Everything the figure shows without scripts."""
    tiles = "".join(f"<li>{_tile(w)}</li>" for w in START)
    numbers = "".join(
        f'<li class="" data-part="number">{number}</li>'
        for number in parts["number"]
    )
    start = combined(START)
    places = [str(i) for i in range(1, len(start.mean) + 1)]
    counts = [tinted(start.bag, 1, 0)]
    means = [tinted(start.mean, 1, 1)]
    panels = table("bag", "Bag of words", TOKENS, ["count"], counts)
    panels += table("mean", "Mean vector", places, ["mean"], means)
    return (
        f'<p class="title">The sentence, each word with its vector</p>'
        f'<ol class="words">{tiles}</ol><div class="controls"></div>'
        f'<p class="title">Concatenation: {len(parts["number"])} numbers</p>'
        f'<ol class="long">{numbers}</ol><p class="key">= unchanged; '
        "≠ changed, with the number at the start</p>"
        '<p class="says" aria-live="polite" data-part="says">'
        f'{parts["says"]}</p><div class="panels">{panels}</div>'
    )


def _tile(token: str) -> str:
    numbers = "".join(_chip(tenths / 10) for tenths in VECTORS[token])
    return (
        f'<span class="tile"><b lang="zh">{token}</b><i>{ENGLISH[token]}</i>'
        f'<span class="vector">{numbers}</span></span>'
    )


def _chip(number: float) -> str:
    return f"<span {heat(number)}>{fixed(number, 1)}</span>"
