"""What may be drawn: the right filter, and known mistakes."""

from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.engine.compare import draw

ROWS, VOCAB = 3, 11


def logits() -> Tensor:
    """The scores of eleven tokens, in three rows, no two of them equal."""
    return 1.5 * draw(ROWS, VOCAB, seed=3)


def barred() -> Tensor:
    """The same, and two tokens that are never to be drawn."""
    x = logits()
    x[:, [0, 4]] = -torch.inf
    return x


def hot(x: Tensor, temperature: float) -> Tensor:
    """Logits at a temperature."""
    return x / temperature


def top_k(x: Tensor, k: int | None) -> Tensor:
    """The k largest of each row, -∞ for the others."""
    if k is None:
        return x
    places = x.argsort(-1, descending=True).argsort(-1)
    return x.masked_fill(places >= k, -torch.inf)


def top_p(x: Tensor, p: float | None) -> Tensor:
    """The fewest of each row that hold the mass p, -∞ for the others."""
    if p is None:
        return x
    ranked, order = x.softmax(-1).sort(-1, descending=True)
    before = ranked.cumsum(-1) - ranked
    dropped = torch.zeros_like(x, dtype=torch.bool)
    dropped.scatter_(-1, order, before >= p)
    return x.masked_fill(dropped, -torch.inf)


def generous(x: Tensor, p: float | None) -> Tensor:
    """``top_p``, and the next token of each row."""
    if p is None:
        return x
    places = x.argsort(-1, descending=True).argsort(-1)
    count = top_p(x, p).isfinite().sum(-1, keepdim=True)
    return x.masked_fill(places > count, -torch.inf)


def uncrossed(x: Tensor, p: float | None) -> Tensor:
    """The most of each row that hold less than p, and at least one."""
    kept = top_p(x, p)
    if p is None:
        return kept
    least = kept.masked_fill(kept == -torch.inf, torch.inf).argmin(-1)
    alone = kept.isfinite().sum(-1) == 1
    lost = torch.zeros_like(x, dtype=torch.bool)
    lost.scatter_(-1, least[:, None], ~alone[:, None])
    return kept.masked_fill(lost, -torch.inf)


def least(x: Tensor, k: int | None) -> Tensor:
    """The k smallest of each row, -∞ for the others."""
    return x.masked_fill(top_k(-x, k) == -torch.inf, -torch.inf)


def zeroed(x: Tensor) -> Tensor:
    """0 for -∞."""
    return x.masked_fill(x == -torch.inf, 0)


def filtered(x: Tensor, k: int | None, p: float | None, t: float) -> Tensor:
    """The logits of what may be drawn."""
    return top_p(top_k(hot(x, t), k), p)


def expected(x: Tensor, k: int | None, p: float | None, t: float) -> Tensor:
    """The log-probabilities of what may be drawn."""
    return filtered(x, k, p, t).log_softmax(-1)


def suspect(change: Callable) -> Callable:
    """A mistake in logits, as log-probabilities."""
    return lambda *args: change(*args).log_softmax(-1)


SUSPECTS = {
    "Temperature is multiplied: divide by it.": suspect(
        lambda x, k, p, t: filtered(x, k, p, 1 / t)
    ),
    "Temperature is ignored.": suspect(
        lambda x, k, p, t: filtered(x, k, p, 1.0)
    ),
    "Temperature comes last: it decides which tokens hold the mass p, so "
    "it comes first.": suspect(
        lambda x, k, p, t: hot(filtered(x, k, p, 1.0), t)
    ),
    "top-p keeps one too many: it stops as soon as the mass p is there.": (
        suspect(lambda x, k, p, t: generous(top_k(hot(x, t), k), p))
    ),
    # Where top-p leaves fewer than k, these two do the same.
    "top-p comes before top-k: it takes its share of what top-k left.": (
        suspect(lambda x, k, p, t: top_k(top_p(hot(x, t), p), k))
    ),
    "`top_k` is ignored.": suspect(lambda x, k, p, t: filtered(x, None, p, t)),
    "`top_p` is ignored.": suspect(lambda x, k, p, t: filtered(x, k, None, t)),
    "The token that crosses p is lost: keep it, or the mass stays below "
    "p.": suspect(lambda x, k, p, t: uncrossed(top_k(hot(x, t), k), p)),
    "top-k keeps one too few: is the k-th compared with `<=`?": suspect(
        lambda x, k, p, t: filtered(x, k and max(k - 1, 1), p, t)
    ),
    "top-k keeps one too many.": suspect(
        lambda x, k, p, t: filtered(x, k and k + 1, p, t)
    ),
    "top-k keeps the least likely tokens.": suspect(
        lambda x, k, p, t: top_p(least(hot(x, t), k), p)
    ),
    "The tokens come back in sorted order: put them where they were.": (
        suspect(
            lambda x, k, p, t: (
                filtered(x, k, p, t).sort(-1, descending=True).values
            )
        )
    ),
    "What is dropped has the logit 0: only -∞ is never drawn.": suspect(
        lambda *args: zeroed(filtered(*args))
    ),
    "These are probabilities: return logits.": suspect(
        lambda *args: filtered(*args).softmax(-1)
    ),
    "The whole batch is filtered as one row: each row keeps k of its "
    "own.": suspect(
        lambda x, *rest: filtered(x.reshape(1, -1), *rest).view_as(x)
    ),
    "The rows compete for each token: tokens are on the last axis.": (
        suspect(lambda x, *rest: filtered(x.mT, *rest).mT)
    ),
}
"""Hint -> the mistake it hints at."""
