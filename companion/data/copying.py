"""The plainest task that needs a memory: say again what was read."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.data.vocabulary import Vocabulary

__all__ = ["copying_batches"]

FIRST = len(Vocabulary.specials)


def copying_batches(
    *,
    length: int,
    symbols: int,
    size: int,
    steps: int,
    seed: int,
    backwards: bool = False,
) -> list[tuple[Int[Tensor, "batch src"], Int[Tensor, "batch tgt"]]]:
    """Draw random sources; a target is bos and the same, or it backwards.

    Both vocabularies have ``symbols + 3`` ids.

    Args:
        length: Ids in a source.
        symbols: How many ids they are drawn from, none of them special.
        size: Sequences in a batch.
        steps: How many batches.
        seed: Decides what is drawn.
        backwards: Whether the target is reversed.

    Raises:
        ValueError: A number is below 1.

    Example:
        >>> sizes = {"length": 3, "symbols": 5, "size": 1, "steps": 1}
        >>> copying_batches(**sizes, seed=0)
        [(tensor([[7, 7, 6]]), tensor([[1, 7, 7, 6]]))]
    """
    sizes = {"length": length, "symbols": symbols, "size": size, "steps": steps}
    for name, number in sizes.items():
        if number < 1:
            raise ValueError(f"{name}: expected at least 1, got {number}")
    generator = torch.Generator().manual_seed(seed)
    bos = torch.full((size, 1), Vocabulary.bos)
    made = []
    for _ in range(steps):
        src = torch.randint(symbols, (size, length), generator=generator)
        src = src + FIRST
        copied = src.flip(1) if backwards else src
        made.append((src, torch.cat([bos, copied], dim=1)))
    return made
