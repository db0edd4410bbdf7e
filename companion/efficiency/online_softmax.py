"""Softmax and attention in one pass over the keys, a block at a time.

What is known of a row after some of its keys are three things: the largest
score so far, the sum of the exponentials below it, and the sum of the values
that these exponentials weigh. Two such summaries, of any two sets of keys, are
merged into one, in whatever order: that is all that a tile of FlashAttention
does, and all that splitting the keys over several workers needs.

Words for axes:
    row     queries, each with a softmax of its own
    key     what a row's scores are about
    d_v     width of a value
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from companion.checks import check_mask_fits, check_sizes, checked_by

__all__ = ["Running", "merge", "online_attention", "online_softmax", "running"]


class Running(NamedTuple):
    """What is known of each row after some of its keys.

    Attributes:
        maximum: The largest score, (..., row); -∞ where there was none.
        total: The sum of exp(score - maximum), (..., row).
        output: The values, weighed by the same exponentials and not yet
            divided by their sum, (..., row, d_v).
    """

    maximum: Float[Tensor, "..."]
    total: Float[Tensor, "..."]
    output: Float[Tensor, "..."]

    def result(self) -> Tensor:
        """Divide by the sum: the attention of the keys so far.

        Returns:
            The output, (..., row, d_v); 0 for a row that has met no key.
        """
        total = self.total.masked_fill(self.total == 0, 1)
        return self.output / total.unsqueeze(-1)

    def log_sum_exp(self) -> Tensor:
        """Return log Σ exp(score) of each row, all that a backward pass needs.

        Returns:
            One number a row, (..., row); -∞ for a row that has met no key.
        """
        return self.maximum + self.total.log()


def below(maximum: Tensor) -> Tensor:
    """Return what may be subtracted: 0 where the maximum is -∞.

    -∞ - (-∞) would be NaN, in the first block that hides everything.
    """
    return maximum.masked_fill(maximum == -math.inf, 0)


def _check_running(
    scores: Tensor, v: Tensor, mask: Tensor | None = None
) -> None:
    for name, x in (("scores", scores), ("v", v)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(
                f"{name}: expected a floating-point tensor, got {kind}"
            )
    if scores.ndim < 2 or v.ndim < 2 or v.shape[-2] != scores.shape[-1]:
        raise ValueError(
            "v: expected (..., key, d_v) for scores (..., row, key), got "
            f"{tuple(v.shape)} and {tuple(scores.shape)}"
        )
    if mask is not None:
        check_mask_fits(mask, tuple(scores.shape))


@checked_by(_check_running)
def running(
    scores: Float[Tensor, "... row key"],
    v: Float[Tensor, "... key d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Running:
    """Summarise one block of keys.

    Args:
        scores: Of each row with each key of the block, already scaled.
        v: The values of the block.
        mask: True = may attend.

    Returns:
        The block's maximum, sum and weighed values.

    Raises:
        TypeError: ``scores`` or ``v`` is not floating point; ``mask`` is not
            boolean.
        ValueError: the shapes do not fit each other.

    Example:
        >>> scores = torch.tensor([[1.0, 2.0]]).log()
        >>> block = running(scores, torch.tensor([[10.0], [20.0]]))
        >>> block.total, block.output
        (tensor([1.5000]), tensor([[25.]]))
    """
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    maximum = scores.amax(-1).detach()
    parts = (scores - below(maximum).unsqueeze(-1)).exp()
    return Running(maximum, parts.sum(-1), parts @ v)


def merge(a: Running, b: Running) -> Running:
    """Summarise the keys of both: associative, and in either order the same.

    Equation 4 of Milakov & Gimelshein (2018), with the output beside the sum.
    What lies below the smaller maximum is multiplied by exp(smaller - larger),
    as if the larger one had been subtracted from the beginning.

    Args:
        a: Of some keys.
        b: Of other keys, and the same rows.

    Returns:
        The summary of all of them.

    Example:
        >>> one = running(torch.zeros(1, 1), torch.tensor([[10.0]]))
        >>> two = running(torch.zeros(1, 1), torch.tensor([[20.0]]))
        >>> merge(one, two).result()
        tensor([[15.]])
    """
    maximum = torch.maximum(a.maximum, b.maximum)
    of_a, of_b = ((x.maximum - below(maximum)).exp() for x in (a, b))
    return Running(
        maximum,
        a.total * of_a + b.total * of_b,
        a.output * of_a.unsqueeze(-1) + b.output * of_b.unsqueeze(-1),
    )


def _check_block(scores: Tensor, block: int) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = scores.dtype if isinstance(scores, Tensor) else type(scores)
        raise TypeError(f"scores: expected a floating-point tensor, got {kind}")
    if scores.ndim < 1 or not scores.numel():
        raise ValueError(
            f"scores: expected (..., key) with at least one key, got "
            f"{tuple(scores.shape)}"
        )
    check_sizes(block=block)


@checked_by(_check_block)
def online_softmax(
    scores: Float[Tensor, "... key"], block: int
) -> Float[Tensor, "... key"]:
    """Compute softmax from a maximum and a sum that one pass has gathered.

    Algorithm 3 of Milakov & Gimelshein (2018), by blocks. The usual softmax
    reads its scores three times: for the maximum, for the sum and to divide.
    Here the first two are one pass, and the third writes the weights.

    Args:
        scores: Any floating-point numbers; a score of -∞ gets weight 0. A row
            of nothing else gets zeros.
        block: How many scores are read at a time.

    Returns:
        The weights, of the shape of ``scores``.

    Raises:
        TypeError: ``scores`` is not floating point, or ``block`` is no int.
        ValueError: there is no score, or ``block`` is below 1.

    Example:
        >>> online_softmax(torch.tensor([1.0, 2, 8, 1]).log(), block=2)
        tensor([0.0833, 0.1667, 0.6667, 0.0833])
    """
    maximum = torch.full_like(scores[..., 0], -math.inf)
    total = torch.zeros_like(maximum)
    for part in scores.split(block, -1):
        largest = torch.maximum(maximum, part.amax(-1)).detach()
        rescale = (maximum - below(largest)).exp()
        parts = (part - below(largest).unsqueeze(-1)).exp()
        total = total * rescale + parts.sum(-1)
        maximum = largest
    parts = (scores - below(maximum).unsqueeze(-1)).exp()
    return parts / total.masked_fill(total == 0, 1).unsqueeze(-1)


def online_attention(
    q: Float[Tensor, "... query d_k"],
    k: Float[Tensor, "... key d_k"],
    v: Float[Tensor, "... key d_v"],
    block: int,
    *,
    order: list[int] | None = None,
) -> Float[Tensor, "... query d_v"]:
    """Attend to one block of keys after another, and merge what they say.

    The forward pass of FlashAttention without its tiles of queries, and under
    autograd: what it keeps for a backward pass is as large as all scores.

    Args:
        q: Queries.
        k: Keys.
        v: A value for each key.
        block: How many keys are read at a time.
        order: In which order the blocks are met; by default from the left.

    Returns:
        What plain attention returns, up to rounding.

    Raises:
        TypeError: ``block`` is no int.
        ValueError: ``block`` is below 1, or ``order`` does not name each block
            once.

    Example:
        >>> q, k = torch.zeros(1, 3), torch.ones(2, 3)
        >>> online_attention(q, k, torch.tensor([[2.0], [4.0]]), block=1)
        tensor([[3.]])
    """
    check_sizes(block=block)
    blocks = list(zip(k.split(block, -2), v.split(block, -2), strict=True))
    order = list(range(len(blocks))) if order is None else order
    if sorted(order) != list(range(len(blocks))):
        raise ValueError(
            f"order: expected each of 0 … {len(blocks) - 1} once, got {order}"
        )
    parts = (
        running(q @ keys.mT / math.sqrt(q.shape[-1]), values)
        for keys, values in (blocks[i] for i in order)
    )
    so_far = next(parts)
    for part in parts:
        so_far = merge(so_far, part)
    return so_far.result()
