"""The likeliest sentence, or nearly: greedy and beam search.

A model is a function here: ``step_fn(tokens)`` takes rows of ids that begin
with bos, and returns for each row the logits of the token that comes next.
What is found begins after bos, and ends with eos unless ``max_len`` cut it.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import check_int, check_number, check_sizes

__all__ = [
    "Hypothesis",
    "StepFunction",
    "beam_search",
    "check_search",
    "greedy_decode",
    "length_penalty",
    "next_logits",
]

StepFunction = Callable[
    [Int[Tensor, "rows length"]], Float[Tensor, "rows vocab"]
]


class Hypothesis(NamedTuple):
    """Hold the beginning of a sentence, or all of it."""

    total: float
    """The log-probabilities of its tokens, added up."""
    tokens: list[int]
    """Its ids, without bos."""


def greedy_decode(
    step_fn: StepFunction, bos: int, eos: int, max_len: int
) -> list[int]:
    """The best token, then the best one after it, until that is eos.

    Raises:
        TypeError: ``bos``, ``eos`` or ``max_len`` is no int, or ``step_fn``
            returns no floating-point tensor.
        ValueError: an id is negative, ``max_len`` below 1, or ``step_fn``
            returns no score, or not one row for each row.
    """
    check_search(bos=bos, eos=eos, max_len=max_len)
    said = []
    while len(said) < max_len and said[-1:] != [eos]:
        logits = next_logits(step_fn, [[bos, *said]])
        said.append(int(logits[0].argmax()))
    return said


def beam_search(
    step_fn: StepFunction,
    bos: int,
    eos: int,
    beam: int,
    max_len: int,
    alpha: int | float,
) -> list[int]:
    """The best of ``beam`` sentences that are written side by side.

    A step keeps the best continuations by their plain sums; one that ends
    leaves the beam, and its place goes with it. What counts in the end is the
    sum divided by ``length_penalty``. Section 7 of Wu et al. (2016), without
    their pruning and coverage penalty. With a beam of 1 this is
    ``greedy_decode``.

    Raises:
        TypeError: as ``greedy_decode``, also for ``beam``; ``alpha`` is no
            number.
        ValueError: as ``greedy_decode``; ``beam`` is below 1, or ``alpha``
            negative.
    """
    check_search(bos=bos, eos=eos, beam=beam, max_len=max_len)
    check_number("alpha", alpha, above=None)
    live, finished = [Hypothesis(0.0, [])], []
    while live and len(live[0].tokens) < max_len:
        kept = _continued(step_fn, bos, live, beam - len(finished))
        finished += [h for h in kept if h.tokens[-1] == eos]
        live = [h for h in kept if h.tokens[-1] != eos]

    def score(h: Hypothesis) -> float:
        return h.total / length_penalty(len(h.tokens), alpha)

    return max(finished + live, key=score).tokens


def length_penalty(length: int, alpha: int | float) -> float:
    """Compute what a sum of logs is divided by.

    That is ``((5 + length) / 6) ** alpha``. Each token makes a sum more
    negative, so that sums alone prefer to stop early.
    Equation 14 of Wu et al. (2016).

    Args:
        length: How many tokens a hypothesis has, eos included.
        alpha: How much length is forgiven; 0 changes nothing.

    Returns:
        The divisor.

    Example:
        >>> length_penalty(1, 0.6), length_penalty(7, 1)
        (1.0, 2.0)
    """
    return ((5 + length) / 6) ** alpha


def _continued(
    step_fn: StepFunction, bos: int, live: list[Hypothesis], width: int
) -> list[Hypothesis]:
    """The ``width`` best ways to say one token more, the best one first."""
    logits = next_logits(step_fn, [[bos, *h.tokens] for h in live])
    # Sums of many logs need 32 bits, whatever the model computes in.
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    totals = wide.log_softmax(-1)
    totals += totals.new_tensor([h.total for h in live]).unsqueeze(-1)
    best = totals.flatten().topk(min(width, totals.numel()))
    kept = []
    for total, place in zip(*map(Tensor.tolist, best), strict=True):
        row, token = divmod(place, logits.shape[-1])
        if total > -torch.inf:  # A token that step_fn forbids.
            kept.append(Hypothesis(total, [*live[row].tokens, token]))
    return kept


def check_search(*, bos: int, eos: int, **sizes: int) -> None:
    """Refuse ids that are no ids, and limits below 1.

    Raises:
        TypeError: something is no int.
        ValueError: an id is negative, or a size is below 1.
    """
    check_int(bos=bos, eos=eos)
    for name, token in (("bos", bos), ("eos", eos)):
        if token < 0:
            raise ValueError(f"{name}: expected an id from 0 up, got {token}")
    check_sizes(**sizes)


def next_logits(step_fn: StepFunction, rows: list[list[int]]) -> Tensor:
    """Ask ``step_fn`` for the scores of the token after each row.

    They come to the CPU, which is the one moment in a step at which an
    accelerator is waited for: what is done with them looks at each.

    Raises:
        TypeError: it returns no floating-point tensor.
        ValueError: it has not one row of scores for each row of tokens, or a
            row has no largest finite score: NaN, or every token forbidden.
    """
    logits = step_fn(torch.tensor(rows))
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        got = getattr(logits, "dtype", type(logits).__name__)
        raise TypeError(
            f"step_fn: expected it to return a floating-point tensor, got {got}"
        )
    shape = tuple(logits.shape)
    if len(shape) != 2 or shape[0] != len(rows) or not logits.numel():
        raise ValueError(
            f"step_fn: expected logits of shape ({len(rows)}, vocab), one row "
            f"for each row of tokens, got {shape}"
        )
    logits = logits.detach().cpu()
    best = logits.amax(-1)
    if not best.isfinite().all():
        row = int((~best.isfinite()).nonzero()[0])
        raise ValueError(
            "step_fn: expected a finite score for some token in each row, "
            f"got {best[row].item()} as the largest one after {rows[row]}"
        )
    return logits
