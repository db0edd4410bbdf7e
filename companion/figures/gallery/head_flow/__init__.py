"""Multi-head attention in steps: project, cut, attend, join, add up."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from companion.attention import attention_weights
from companion.figures.gallery.head_flow.view import Stage, body, frame
from companion.figures.kit.digits import short
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import choice, played, steps
from companion.multihead import merge_heads, split_heads


def head_flow(
    x: Float[Tensor, "seq d_model"],
    matrices: Sequence[Float[Tensor, "d_model d_model"]],
    *,
    num_heads: int,
    words: Sequence[str],
    features: Sequence[str] | None = None,
    row: int = -1,
) -> Figure:
    """Step through multi-head self-attention; a colour is a head.

    Args:
        x: One vector for each word.
        matrices: W_Q, W_K and W_V, which make queries, keys and values, and
            W_O, which mixes what the heads bring.
        num_heads: A divisor of ``d_model``, at most 4.
        words: The sentence.
        features: What the numbers of ``x`` are called.
        row: Index of the word that is looked at first.

    Raises:
        ValueError: ``words`` are not as many as the rows of ``x``; there are
            more heads than colours.
    """
    if len(words) != len(x):
        raise ValueError(
            f"words: expected {len(x)}, one for each row of x, got {len(words)}"
        )
    if num_heads > 4:
        raise ValueError(f"num_heads: expected at most 4, got {num_heads}")
    row %= len(words)
    stages = _stages(x, matrices, num_heads, features)

    def show(mode: int, step: int):
        return frame(stages, step, words, row, num_heads, everybody=bool(mode))

    controls = [
        choice("Show", [f"the row of {words[row]}", "all rows"], 0),
        steps([len(stages)] * 2, ["Start", "Back", "Next"]),
    ]
    html = played(
        "headflow",
        show,
        controls,
        lambda parts: body(parts, stages, words, row, num_heads),
        module=__file__,
        label="Multi-head attention in steps, with its numbers and shapes",
        caption="Each colour is a head: its columns of Q, K and V, its "
        "weights, its rows of W_O. The framed boxes are the step shown.",
        sheets=["diagram"],
    )
    return Figure(html, f"Multi-head attention in steps. {stages[0].says}")


def _stages(x, matrices, num_heads, features) -> list[Stage]:
    w_q, w_k, w_v, w_o = matrices
    wide = [x @ w for w in (w_q, w_k, w_v)]
    q, k, v = (split_heads(each, num_heads) for each in wide)
    root = math.sqrt(q.shape[-1])
    weights = attention_weights(q, k)
    heads = weights @ v
    joined = merge_heads(heads)
    slabs = w_o.split(w_o.shape[0] // num_heads)
    scores = q @ k.transpose(-2, -1) / root
    attends = [f"head {i + 1}" for i in range(num_heads)]
    n, d = x.shape
    width = d // num_heads
    numbered = range(1, num_heads + 1)

    def each(name: str, tensor: Tensor) -> list:
        return [
            (f"{name}<sub>{i}</sub>", _rows(tensor[i - 1]), i - 1)
            for i in numbered
        ]

    stages = [
        Stage(
            ["X"],
            "Each word enters as one vector, a row of X.",
            [[("X", _rows(x), None)]],
            names=features,
        )
    ]
    made = zip("QKV", (w_q, w_k, w_v), wide, strict=True)
    what = ("queries", "keys", "values")
    stages += [
        Stage(
            [name],
            f"One product makes the {many} of all heads. The columns of one "
            "colour belong to one head.",
            [
                [
                    ("X", _rows(x), None),
                    (f"W<sub>{name}</sub>", _rows(w), "columns"),
                    (name, _rows(result), "columns"),
                ]
            ],
            signs=("×", "="),
        )
        for (name, w, result), many in zip(made, what, strict=True)
    ]
    stages += [
        Stage(
            ["Q", "K", "V"],
            f"Cut the columns. {n} × {d} is read as {n} × {num_heads} × "
            f"{width}, and the axis of heads goes to the front: {num_heads} × "
            f"{n} × {width}.",
            [each("Q", q), each("K", k), each("V", v)],
        ),
        Stage(
            attends,
            "Each head compares its own queries with its own keys, and divides "
            f"by the root of its own width, {short(root)}.",
            [[table] for table in each("scores ", scores)],
        ),
        Stage(
            attends,
            "Each head has its own softmax, so that each word gets a row of "
            "weights from every head.",
            [[table] for table in each("weights ", weights)],
        ),
        Stage(
            attends,
            "Each head averages its own values by its own weights.",
            [
                list(three)
                for three in zip(
                    each("weights ", weights),
                    each("V", v),
                    each("head ", heads),
                    strict=True,
                )
            ],
            signs=("×", "="),
        ),
        Stage(
            ["side by side"],
            "The axis goes back, and the outputs lie side by side: as wide as "
            "X again.",
            [[("side by side", _rows(joined), "columns")]],
        ),
        Stage(
            ["output"],
            "The last matrix mixes the heads; a head's colour marks its rows.",
            [
                [
                    ("side by side", _rows(joined), "columns"),
                    ("W<sub>O</sub>", _rows(w_o), "rows"),
                    ("output", _rows(joined @ w_o), None),
                ]
            ],
            signs=("×", "="),
        ),
        Stage(
            ["output"],
            "The same as a sum: each head times its own rows of W_O, added up.",
            [
                [
                    (
                        f"head {i} · W<sub>O,{i}</sub>",
                        _rows(heads[i - 1] @ slabs[i - 1]),
                        i - 1,
                    )
                    for i in numbered
                ]
                + [("output", _rows(joined @ w_o), None)]
            ],
            signs=("+",) * (num_heads - 1) + ("=",),
        ),
    ]
    return stages


def _rows(matrix: Tensor) -> list[list[float]]:
    """Round: the page gets what it can show."""
    return torch.round(matrix.double(), decimals=4).tolist()
