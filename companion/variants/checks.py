"""What a data function is told whose share or luck makes no sense."""

import torch


def check_share(share: float) -> None:
    """Refuses what is no share of a whole.

    Raises:
        TypeError: ``share`` is no number.
        ValueError: it is not from 0 to 1.
    """
    if isinstance(share, bool) or not isinstance(share, int | float):
        raise TypeError(f"share: expected a number, got {share!r}")
    if not 0 <= share <= 1:
        raise ValueError(f"share: expected a number from 0 to 1, got {share}")


def check_generator(generator: torch.Generator) -> None:
    """Refuses what cannot be drawn from.

    Raises:
        TypeError: ``generator`` is no ``torch.Generator``.
    """
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            "generator: expected a torch.Generator, got "
            f"{type(generator).__name__}"
        )
