"""A score matrix to play with: what the scale does to a softmax."""

from math import sqrt

import torch
from torch import Tensor

from companion.attention import softmax, softmax_jacobian
from companion.figures.kit.digits import fixed, lowered, short
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import largest, rows_of, table, tinted

# The 4 x 4 example of the study notes, which stop at the first row's weights.
SCORES = [
    [1.2, 0.5, 1.8, 0.3],
    [0.6, 1.4, 0.7, 0.9],
    [1.1, 0.4, 1.5, 0.2],
    [0.9, 1.1, 0.3, 1.7],
]
VALUES = [[0.1, 0.2, 0.3], [0.2, 0.4, 0.6], [0.3, 0.5, 0.7], [0.4, 0.6, 0.8]]
START_D_K = 64


def score_matrix(scores=None, values=None) -> Figure:
    """Scores and values to edit, with their weights and output, live.

    The scores entered are those of queries and keys whose numbers have
    variance 1, divided by √d_k: a typical one is about 1. The raw dot product
    is √d_k times as large (Vaswani et al. 2017, footnote 4). The reader picks
    d_k and what the raw scores are multiplied by: 1, 1/√d_k or 1/d_k.

    Args:
        scores: (query, key); the example of the study notes without it.
        values: (key, d_v); likewise.

    Raises:
        ValueError: one of them is no matrix of finite numbers, or ``values``
            has not one row for each key.
    """
    scores = rows_of("scores", SCORES if scores is None else scores)
    values = rows_of(
        "values", VALUES if values is None else values, height=len(scores[0])
    )
    # The figure starts with the scale 1/√d_k, which undoes √d_k.
    numbers = torch.tensor(scores, dtype=torch.float64)
    weights = softmax(numbers)
    moves = movement(weights).tolist()
    output = weights @ torch.tensor(values, dtype=torch.float64)
    sentence = _sentence(scores[0][0], weights[0].max().item(), moves[0])
    html = inline(
        "scores",
        body='<div class="controls"></div>'
        f'<p class="says" aria-live="polite">{sentence}</p>'
        + _tables(scores, values, weights.tolist(), moves, output.tolist()),
        label="Score matrix, softmax weights and output",
        caption=_caption(numbers),
        data={"d_k": START_D_K},
        **figure_parts(__file__, "softmax"),
    )
    return Figure(html, f"Score matrix. {sentence}")


def movement(weights: Tensor) -> Tensor:
    """How far a row of weights still moves with its scores: ‖J‖₂, at most ½."""
    return torch.linalg.matrix_norm(softmax_jacobian(weights), ord=2)


def _caption(scores: Tensor) -> str:
    """What to see, in numbers measured here and now."""
    flat, right, sharp = (
        softmax(scores * factor)[0].max().item()
        for factor in (1 / sqrt(1024), 1, sqrt(1024))
    )
    return (
        "Move dₖ up with each of the three scales. At dₖ = 1024 the largest "
        f"weight of the first row is {short(sharp)} with scale 1, "
        f"{short(flat)} with 1/dₖ, and {short(right)} with 1/√dₖ, as at every "
        "dₖ. The last column, ‖J‖₂, is the largest rate at which a row of "
        "weights moves with its scores. It never exceeds ½; near 0, hardly any "
        "gradient passes the softmax."
    )


def _sentence(score: float, top: float, moves: float) -> str:
    """What the picture shows; ``scores.js`` says it in the same words."""
    times = "×\N{NO-BREAK SPACE}" + short(1)
    return (
        f"dₖ = {START_D_K}, scale 1/√dₖ: the softmax sees these scores "
        f"{times}, so {fixed(score)} enters as {fixed(score)}. Row 1 puts "
        f"{short(top)} on one key and follows its scores at a rate of at most "
        f"{short(moves)}."
    )


def _tables(scores, values, weights, moves, output) -> str:
    """Four tables; the script turns the numbers of two into fields."""
    queries, keys = _names("q", len(scores)), _names("k", len(values))
    parts = [str(i) for i in range(1, len(values[0]) + 1)]
    shares = [
        f"{tinted(row)}<td class=extra>{short(max(row))}</td>"
        f"<td class=extra>{short(moved)}</td>"
        for row, moved in zip(weights, moves, strict=True)
    ]
    heads = [*keys, "max", "‖J‖₂"]
    sums = [tinted(row, largest(output), 3) for row in output]
    rows, outputs = _names("v", len(values)), _names("o", len(output))
    tables = (
        table("scores", "Scores", keys, queries, _plain(scores)),
        table("weights", "Weights", heads, queries, shares),
        table("values", "Values V", parts, rows, _plain(values)),
        table("output", "Output", parts, outputs, sums),
    )
    return f'<div class="panels">{"".join(tables)}</div>'


def _names(letter: str, number: int) -> list[str]:
    return [lowered(letter, i) for i in range(1, number + 1)]


def _plain(rows) -> list[str]:
    return ["".join(f"<td>{v:g}</td>" for v in row) for row in rows]
