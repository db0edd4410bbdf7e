"""A cache of keys and values that grows beside the rows of attention."""

from collections.abc import Sequence
from html import escape

from jaxtyping import Float
from torch import Tensor

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import Number, fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps

LEFT, RIGHT, HIGH, GRID = 62, 336, 28, 116
"""Where the columns begin and end, how high a row is, where the rows begin."""


def cache_growth(
    words: Sequence[str], weights: Float[Tensor, "query key"]
) -> Figure:
    """Step through the writing of a sentence, with a cache and without one.

    Args:
        words: What is read, one token after the other; at most 6.
        weights: The causal attention weights of one head.

    Raises:
        ValueError: ``words`` are more than 6, or not as many as the rows and
            the columns of ``weights``; a weight on the future is not 0.

    Example:
        >>> import torch
        >>> cache_growth(["I", "love"], torch.tensor([[1, 0], [0.4, 0.6]])).text
        'A cache. Step 2 of 2, the model reads love. Its key and its value are \
computed and join the one pair that is stored. One query meets 2 keys: one row \
of weights. Positions computed so far: 2.'
    """
    n = len(words)
    if not 1 <= n <= 6 or weights.shape != (n, n):
        raise ValueError(
            "words, weights: expected at most 6 words, and as many rows and "
            f"columns as words, got {n} words and {tuple(weights.shape)}"
        )
    if weights.triu(1).any():
        raise ValueError("weights: expected 0 on the future, got more")
    table = weights.double().tolist()

    def show(without: int, step: int) -> Parts:
        return _frame(words, step, without=bool(without))

    controls = [
        choice("Keys and values", ["with a cache", "without"], 0),
        steps([n, n], ["Start", "Back", "Next"], last=True),
    ]
    html = played(
        "cache",
        show,
        controls,
        lambda parts: _body(parts, words, table),
        module=__file__,
        label="A cache grows while a sentence is written",
        caption="Above, the key and the value of each token; below, a row of "
        "attention weights for each token that asks. Framed in plum: computed "
        "at this step and never before. Orange, dashed: computed again, to the "
        "same result. Blue: taken from the cache. Pale rows are finished.",
        sheets=["diagram"],
    )
    return Figure(html, f"A cache. {_says(words, n - 1, without=False)}")


def _frame(words: Sequence[str], step: int, *, without: bool) -> Parts:
    def kind(i: int, old: str) -> str:
        if i == step:
            return "now"
        return "later" if i > step else old

    n = range(len(words))
    return {
        "pair@class": [kind(i, "again" if without else "kept") for i in n],
        "row@class": [kind(i, "again" if without else "done") for i in n],
        "says": escape(_says(words, step, without=without)),
    }


def _says(words: Sequence[str], step: int, *, without: bool) -> str:
    n = step + 1
    begins = f"Step {n} of {len(words)}, the model reads {words[step]}."
    if without:
        every = " + ".join(str(i) for i in range(1, n + 1))
        total = n * (n + 1) // 2
        added = f"{every} = {total}" if step else "1"
        rows = "1 row" if n == 1 else f"{n} rows"
        again = ""
        if step:
            again = (
                f", {step} of them again" if step > 1 else ", one of them again"
            )
        return (
            f"{begins} Keys, values and queries of {n} "
            f"token{'s' * (n > 1)} are computed{again}: {rows} of weights. "
            f"Positions computed so far: {added}."
        )
    if not step:
        return (
            f"{begins} Its key and its value are computed and stored. One "
            "query meets 1 key. Positions computed so far: 1."
        )
    stored = "one pair that is" if step == 1 else f"{step} pairs that are"
    return (
        f"{begins} Its key and its value are computed and join the {stored} "
        f"stored. One query meets {n} keys: one row of weights. Positions "
        f"computed so far: {n}."
    )


def _body(parts: Parts, words: Sequence[str], table: list[list[Number]]) -> str:
    wide = (RIGHT - LEFT) / len(words)
    lefts = [LEFT + wide * i for i in range(len(words))]
    pairs = "".join(
        f'<g data-part="pair" class="{kind}">'
        + label(x + wide / 2, 14, text, "word")
        + _cell(x, 24, wide, "k")
        + _cell(x, 24 + HIGH + 4, wide, "v")
        + "</g>"
        for x, text, kind in zip(lefts, words, parts["pair@class"], strict=True)
    )
    rows = "".join(
        f'<g data-part="row" class="{kind}">'
        + label(LEFT / 2 - 2, GRID + i * (HIGH + 4) + 19, words[i], "word")
        + "".join(
            _cell(
                x,
                GRID + i * (HIGH + 4),
                wide,
                fixed(table[i][j], 2),
                table[i][j],
            )
            for j, x in enumerate(lefts[: i + 1])
        )
        + "</g>"
        for i, kind in enumerate(parts["row@class"])
    )
    picture = drawing(
        GRID + len(words) * (HIGH + 4) + 2,
        "The keys and values of the tokens so far, and under them a triangle: "
        "the weights with which each token attends to those up to itself.",
        label(LEFT / 2 - 2, 43, "keys", "note"),
        label(LEFT / 2 - 2, 43 + HIGH + 4, "values", "note"),
        label(LEFT / 2 - 2, GRID - 12, "asks", "note"),
        label((LEFT + RIGHT) / 2, GRID - 12, "weights", "note"),
        pairs,
        rows,
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p></div>"""


def _cell(
    x: Number, y: Number, wide: Number, text: str, weight: Number | None = None
) -> str:
    shade = "" if weight is None else f' style="--weight:{50 * weight:.0f}%"'
    return (
        f'<rect x="{x + 2:g}" y="{y:g}" width="{wide - 4:g}" height="{HIGH}" '
        f'rx="3"{shade}/>{label(x + wide / 2, y + 19, text)}'
    )
