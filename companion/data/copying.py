"""The plainest task that needs a memory: say again what was read."""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.data.vocabulary import Vocabulary

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
    """Random sources and their targets: bos, then the same, or it backwards.

    ``steps`` batches of ``size`` sequences, drawn from ``symbols`` ids that
    are no special ones. Both vocabularies have ``symbols + 3`` ids.

    Raises:
        ValueError: a number is below 1.
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
        said = src.flip(1) if backwards else src
        made.append((src, torch.cat([bos, said], dim=1)))
    return made
