"""A small model guesses, the large one checks: the rule for one token.

The draft draws a token from its probabilities q, the target has p. What comes
out is distributed as p, however bad q is: Leviathan et al. (2023), theorem 1 of
their appendix; Chen et al. (2023) have the same rule.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.checks import (
    check_generator,
    check_int,
    check_share,
    check_vectors,
)

__all__ = ["acceptance", "expected_tokens", "speculative_step"]


def speculative_step(
    p: Float[Tensor, " vocab"],
    q: Float[Tensor, " vocab"],
    draft: int,
    generator: torch.Generator,
) -> int:
    """Keep the token that was guessed, or draw another: either way as from p.

    The guess x is kept with probability min(1, p(x) / q(x)). Otherwise a token
    is drawn from what q gave too little: (p - q)₊, scaled to sum 1.

    Args:
        p: What the target would draw from.
        q: What the draft drew from.
        draft: The token that it drew.
        generator: What to draw with; not the one that drew ``draft`` in the
            same state.

    Returns:
        A token, the guess or another.

    Raises:
        TypeError: ``p`` is not floating point, ``draft`` no int, or
            ``generator`` none.
        ValueError: the shapes differ, or the draft cannot have drawn it.

    Example:
        >>> p, q = torch.tensor([0.3, 0.7]), torch.tensor([0.2, 0.8])
        >>> speculative_step(p, q, 0, torch.Generator())
        0
    """
    check_vectors("p", p, p, vocab=None)
    check_vectors("q", q, p, vocab=len(p))
    check_int(draft=draft)
    check_generator(generator)
    if not 0 <= draft < len(q) or not q[draft] > 0:
        raise ValueError(
            f"draft: expected a token that q can draw, got {draft}"
        )
    dice = torch.rand((), generator=generator)
    if dice < p[draft] / q[draft]:
        return draft
    missing = (p - q).clamp(min=0)
    return int(torch.multinomial(missing, 1, generator=generator))


def acceptance(
    p: Float[Tensor, "*batch vocab"], q: Float[Tensor, "*batch vocab"]
) -> Float[Tensor, "*batch"]:
    """Compute how likely a guess is kept: Σ min(p, q).

    Args:
        p: Probabilities of the target.
        q: Probabilities of the draft.

    Returns:
        One number for each pair of distributions.

    Example:
        >>> acceptance(torch.tensor([0.3, 0.5, 0.2]),
        ...            torch.tensor([0.6, 0.3, 0.1]))
        tensor(0.7000)
    """
    return torch.minimum(p, q).sum(-1)


def expected_tokens(share: float, guesses: int) -> float:
    """Compute how many tokens a pass of the target brings.

    1 + a + … + a^k, if each of k guesses is kept with the same probability a,
    whatever came before (Leviathan et al., 2023, equation 1).

    Args:
        share: How likely a guess is kept, a.
        guesses: How many are made for a pass, k.

    Returns:
        From 1 to ``guesses`` + 1.

    Raises:
        TypeError: an argument is no number, or ``guesses`` no int.
        ValueError: ``share`` is not from 0 to 1.

    Example:
        >>> expected_tokens(0.5, 2)
        1.75
    """
    check_share(share)
    check_int(guesses=guesses)
    return float(sum(share**i for i in range(guesses + 1)))
