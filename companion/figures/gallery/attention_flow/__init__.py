"""The whole of attention in steps: from the words to the output, in numbers."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from companion.attention import attention_weights
from companion.figures.gallery.attention_flow.view import Stage, body, frame
from companion.figures.kit.diagram import shape_of
from companion.figures.kit.digits import short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import choice, played, steps


def attention_flow(
    x: Float[Tensor, "seq d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
    *,
    words: Sequence[str],
    row: int = -1,
) -> Figure:
    """Step through self-attention, first for one word, then for all.

    Args:
        x: One vector for each word.
        w_q: Makes queries.
        w_k: Makes keys.
        w_v: Makes values.
        words: The sentence.
        row: Index of the word that is looked at first.

    Raises:
        ValueError: ``words`` are not as many as the rows of ``x``.
    """
    if len(words) != len(x):
        raise ValueError(
            f"words: expected {len(x)}, one for each row of x, got {len(words)}"
        )
    row %= len(words)
    stages = _stages(x, w_q, w_k, w_v, words)
    shapes = {stage.box: shape_of(stage.result) for stage in stages}
    shapes |= {"K": shape_of((x @ w_k).tolist())}

    def show(mode: int, step: int):
        return frame(stages, step, words, None if mode else row)

    controls = [
        choice("Show", [f"the row of {words[row]}", "all rows"], 0),
        steps([len(stages)] * 2, ["Start", "Back", "Next"]),
    ]
    html = played(
        "attend",
        show,
        controls,
        lambda parts: body(parts, stages, words, shapes),
        module=__file__,
        label="Attention in steps, with its numbers and shapes",
        caption="The framed box is the step that the matrices show; under each "
        "name stands the shape.",
        sheets=["diagram"],
    )
    return Figure(html, f"Attention in steps. {stages[0].says}")


def _stages(x, w_q, w_k, w_v, words) -> list[Stage]:
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    d_k = k.shape[-1]
    root = math.sqrt(d_k)
    scores = q @ k.T
    weights = attention_weights(q, k)
    # The page gets rounded numbers.
    made = (q, k, v, scores, scores / root, weights, weights @ v)
    x, w_q, w_k, w_v, q, k, v, scores, scaled, weights, output = (
        torch.round(part.double(), decimals=4).tolist()
        for part in (x, w_q, w_k, w_v, *made)
    )
    k_t = [list(column) for column in zip(*k, strict=True)]
    return [
        Stage("X", "Each word enters as one vector, a row of X.", [], x),
        Stage(
            "Q",
            "The first learned matrix turns each vector into a query.",
            [("X", x, True), ("W_Q", w_q, False)],
            q,
        ),
        Stage(
            "K",
            "The second turns the same vectors into keys.",
            [("X", x, False), ("W_K", w_k, False)],
            k,
        ),
        Stage(
            "V",
            "The third turns them into values.",
            [("X", x, False), ("W_V", w_v, False)],
            v,
        ),
        Stage(
            "QKᵀ",
            "Each query meets each key in a dot product; a row asks.",
            [("Q", q, True), ("Kᵀ", k_t, False)],
            scores,
        ),
        Stage(
            "÷ √dₖ",
            f"A key has {d_k} entries, so all scores are divided by "
            f"{short(root)}.",
            [("QKᵀ", scores, True)],
            scaled,
            f"÷ {short(root)} =",
        ),
        Stage(
            "softmax",
            "Softmax makes positive weights of each row; every row sums to 1.",
            [("scores", scaled, True)],
            weights,
            "→",
        ),
        Stage(
            "output",
            "The weights of a row average the values: that row of the output.",
            [("weights", weights, True), ("V", v, False)],
            output,
        ),
    ]
