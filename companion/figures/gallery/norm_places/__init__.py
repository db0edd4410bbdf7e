"""Post-LN and pre-LN side by side: one word climbs through both."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from companion.figures.gallery.norm_places.view import (
    WAYS,
    Stage,
    body,
    frame,
)
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps

CAPTION = """Both layers are read from below. The bold line is the way of the
word itself. After the sum (left) it runs through both norms; before the part
(right) the norms stand beside it, and nothing but a sum lies on it."""

Part = Callable[[Tensor], Tensor]


def norm_places(
    x: Float[Tensor, "seq d_model"],
    attend: Part,
    think: Part,
    *,
    words: Sequence[str],
    features: Sequence[str],
    row: int = -1,
) -> Figure:
    """Step one word through an encoder layer with its norms in two places.

    Gain and bias of the norms are 1 and 0.

    Args:
        x: One vector for each word.
        attend: The attention, from the vectors of all words to what each gets.
        think: The feed-forward network, from a vector to a vector.
        words: The sentence.
        features: What the numbers of a vector are called.
        row: Index of the word that is followed at first.

    Raises:
        ValueError: ``words`` or ``features`` are not as many as ``x`` has.
    """
    for name, given, size in (
        ("words", words, x.shape[0]),
        ("features", features, x.shape[1]),
    ):
        if len(given) != size:
            raise ValueError(f"{name}: expected {size}, got {len(given)}")
    row %= len(words)
    climbs = [
        _stages(x, attend, think, word, i) for i, word in enumerate(words)
    ]

    def show(followed: int, step: int) -> Parts:
        return frame(climbs[followed][step], features)

    controls = [
        choice("Follow", words, row),
        steps([len(each) for each in climbs], ["Start", "Back", "Next"]),
    ]

    html = played(
        "normplaces",
        show,
        controls,
        lambda parts: body(parts, climbs[row], features),
        module=__file__,
        label="Post-LN and pre-LN side by side, with the numbers of one word",
        caption=CAPTION,
        sheets=["diagram"],
    )
    return Figure(html, f"Post-LN and pre-LN in steps. {climbs[row][0].says}")


def _norm(x: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def _stages(x, attend, think, word: str, row: int) -> list[Stage]:
    after, before = (_climb(x, attend, think, pre) for pre in (False, True))
    tables = [
        {
            way: [(name, made[row].tolist()) for name, made in climbed[step]]
            for way, climbed in zip(WAYS, (after, before), strict=True)
        }
        for step in range(5)
    ]
    told = (
        ({"in"}, f"{word} enters the layer with one vector, the same in both."),
        (
            {"attention", "norm 1 before"},
            "The attention says something. After the sum: it reads the vector "
            "as it is. Before the part: it reads a normalised copy.",
        ),
        (
            {"add 1", "norm 1 after"},
            "What it said is added. On the left the sum is normalised, and "
            f"every number of {word} has changed; on the right the sum stays.",
        ),
        (
            {"network", "norm 2 before"},
            "The feed-forward network reads, and says something in turn.",
        ),
        (
            {"add 2", "norm 2 after"},
            "Added again. On the right, what came in is still a term of the "
            "sum; on the left it has been shifted and scaled twice.",
        ),
    )
    return [
        Stage(bold, says, table)
        for (bold, says), table in zip(told, tables, strict=True)
    ]


def _climb(x, attend, think, pre: bool) -> list[list[tuple[str, Tensor]]]:
    """What is shown in each step, for all words."""
    shown, stream = [[("the word", x)]], x
    for part in (attend, think):
        reads = _norm(stream) if pre else stream
        says = part(reads)
        total = stream + says
        shown.append([("reads", reads), ("says", says)])
        rows = [("the word", stream), ("+ what is said", says), ("sum", total)]
        stream = total if pre else _norm(total)
        shown.append(rows if pre else [*rows, ("normalised", stream)])
    return shown
