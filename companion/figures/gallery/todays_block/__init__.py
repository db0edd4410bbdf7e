"""The block of 2017 becomes today's: one part after the other is exchanged."""

import math

import torch
import torch.nn.functional as F

from companion.figures.gallery.todays_block.view import (
    Stage,
    Table,
    body,
    frame,
)
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played
from companion.variants import cache_numbers, rms_norm

CAPTION = """One layer, read from below; the bold line is the way of a word
itself. Each choice keeps what the choices before it changed."""
TURN = 1.0
"""By how much a query or a key is turned from one position to the next."""


def todays_block(d_model: int = 768) -> Figure:
    """Step from the layer of 2017 to that of today, with a number for each.

    Args:
        d_model: The width at which weights are counted.

    Raises:
        ValueError: ``d_model`` is not a positive multiple of 3.
    """
    if d_model < 1 or d_model % 3:
        raise ValueError(
            f"d_model: expected a multiple of 3, got {d_model}: a gated "
            "network is 8/3 as wide"
        )
    stages = stages_of(d_model)

    def show(step: int) -> Parts:
        return frame(stages, step)

    html = played(
        "todaysblock",
        show,
        [choice("Exchange", [stage.name for stage in stages], 0)],
        lambda parts: body(parts, stages),
        module=__file__,
        label="From the block of 2017 to that of today",
        caption=CAPTION,
        sheets=["diagram"],
    )
    return Figure(html, f"From 2017 to today. {stages[0].says}")


def stages_of(d: int) -> list[Stage]:
    """Collect what is exchanged, why, and a number before and after."""
    vectors = torch.tensor([[1.0, 3], [11, 13]])
    layer_norm = F.layer_norm(vectors, (2,), eps=1e-12)
    rms = rms_norm(vectors, torch.ones(2), eps=1e-12)
    gib = [2 * cache_numbers(80, heads, 128, 4096) / 2**30 for heads in (64, 8)]
    return [
        Stage(
            "2017",
            set(),
            "The layer of 2017: the sum is normalised, the network bends with "
            "a ReLU, and positions are added once, below the first layer.",
            Table(
                "weights of the layer, in thousands",
                ["attention", "network", "norms"],
                [""],
                [
                    [
                        round(each / 1000)
                        for each in (4 * (d * d + d), 8 * d * d + 5 * d, 4 * d)
                    ]
                ],
            ),
        ),
        Stage(
            "norm first",
            {"pre"},
            "The norm moves beside the way of the word, so that nothing but "
            "sums lies on it (chapter 07). No weight is added or lost.",
            Table(
                "how much of a word is left at the top of 6 untrained layers",
                ["norm after", "norm before"],
                [""],
                [[2.0**-6, 1 / math.sqrt(2 * 6 + 1)]],
            ),
        ),
        Stage(
            "RMSNorm",
            {"rms"},
            "RMSNorm divides by the root mean square and subtracts no mean. "
            "What two features have in common stays visible.",
            Table(
                "(1, 3) and (11, 13) come out as",
                ["", "", "", ""],
                ["LayerNorm", "RMSNorm"],
                [layer_norm.flatten().tolist(), rms.flatten().tolist()],
            ),
        ),
        Stage(
            "SwiGLU",
            {"swiglu"},
            "A second map up becomes a gate for the first. With three matrices "
            "instead of two, 8/3 of the width costs what 4 times did.",
            Table(
                "weights of the network, in thousands, without biases",
                ["matrices", "inner width", "weights"],
                ["ReLU", "SwiGLU"],
                [
                    [2, 4 * d, round(2 * d * 4 * d / 1000)],
                    [3, 8 * d // 3, round(3 * d * (8 * d // 3) / 1000)],
                ],
            ),
        ),
        Stage(
            "RoPE",
            {"rope"},
            "Queries and keys are turned by their position in each layer, and "
            "nothing is added below. For given contents a score depends on "
            "the offset alone (chapter 05).",
            Table(
                "score of two equal words, one place apart",
                ["places 1, 2", "places 101, 102"],
                ["added", "turned"],
                [
                    [_added(1), _added(101)],
                    [_turned(1), _turned(101)],
                ],
            ),
        ),
        Stage(
            "no biases",
            {"plain"},
            "Linear maps and norms lose their biases, which are few beside the "
            "matrices.",
            Table(
                "numbers in the layer that are no matrix",
                ["biases", "gains"],
                ["2017", "today"],
                [[4 * d + 5 * d + 2 * d, 2 * d], [0, 2 * d]],
            ),
        ),
        Stage(
            "shared keys",
            {"grouped"},
            "Several query heads share one head of keys and values. This "
            "makes the cache smaller, and large models do it.",
            Table(
                "GiB of cache: 80 layers, 4,096 tokens, heads of 128, 2 bytes",
                ["64 key-value heads", "8"],
                [""],
                [gib],
            ),
        ),
    ]


def _place(position: int) -> tuple[float, float]:
    """A position as one pair of a sinusoidal code."""
    return math.sin(TURN * position), math.cos(TURN * position)


def _added(position: int) -> float:
    """(1, 0) at two places that are neighbours: the codes are added."""
    (a, b), (c, d) = _place(position), _place(position + 1)
    return (1 + a) * (1 + c) + b * d


def _turned(position: int) -> float:
    """The same two words, turned by their places."""
    (a, b), (c, d) = _place(position), _place(position + 1)
    return b * d + a * c
