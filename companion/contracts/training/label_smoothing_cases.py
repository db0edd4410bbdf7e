"""Losses with label smoothing: the right ones, and known mistakes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor


def share(target: Tensor, vocab: int, best: float, other: float) -> Tensor:
    """``best`` for the target's class, ``other`` for every other one."""
    sure = F.one_hot(target, vocab).float()
    return best * sure + other * (1 - sure)


def pytorchs(target: Tensor, vocab: int, mass: float, pad: int) -> Tensor:
    """ε / V for every class, and 1 - ε more for the target."""
    rest = mass / vocab
    return share(target, vocab, 1 - mass + rest, rest)


def ports(target: Tensor, vocab: int, mass: float, pad: int) -> Tensor:
    """ε / (V - 2) for every class but the target and padding."""
    rest = mass / max(vocab - 2, 1)
    return but(pad, share(target, vocab, 1 - mass, rest))


def but(pad: int, spread: Tensor) -> Tensor:
    """Nothing for padding."""
    return spread.index_fill(-1, torch.tensor(pad), 0)


def mean(losses: Tensor, real: Tensor, vocab: int) -> Tensor:
    """The mean over real tokens."""
    return losses[real].mean()


@dataclass(frozen=True)
class Loss:
    """A smoothed cross-entropy, put together from what can go wrong in it.

    Attributes:
        name: What it is called in a report.
        spread: From targets, V, ε and padding, the distribution aimed at.
        less_entropy: Whether it is a KL divergence.
        logs: From logits, the log-probabilities.
        average: From a loss for each token, and which are real, one number.
    """

    name: str
    spread: Callable = pytorchs
    less_entropy: bool = False
    logs: Callable = lambda logits: logits.log_softmax(-1)
    average: Callable = mean

    def __call__(
        self, logits: Tensor, target: Tensor, smoothing: float, pad: int
    ) -> Tensor:
        """The loss."""
        vocab = logits.shape[-1]
        aim = self.spread(target, vocab, smoothing, pad)
        losses = -(aim * self.logs(logits)).sum(-1)
        if self.less_entropy:
            losses = losses + torch.xlogy(aim, aim).sum(-1)
        return self.average(losses, target != pad, vocab)


RIGHT = (
    Loss("in PyTorch's form"),
    Loss("in that of a well-known port", ports),
    Loss("in that as a KL divergence", ports, less_entropy=True),
)


def every(**changed: Callable) -> list[Loss]:
    """One mistake, in each of the forms."""
    return [replace(form, **changed) for form in RIGHT]


def each_row(losses: Tensor, real: Tensor, vocab: int) -> Tensor:
    """The mean over sentences of their means."""
    return ((losses * real).sum(-1) / real.sum(-1)).mean()


def spread_by(best: Callable, other: Callable) -> Callable:
    """A spread: ``best`` for the target, ``other`` for the others."""
    return lambda target, vocab, mass, pad: share(
        target, vocab, best(mass, vocab), other(mass, vocab)
    )


MISTAKEN = {
    "Padding is counted, as if it were a token to predict.": every(
        average=lambda losses, real, vocab: losses.mean()
    ),
    "It divides by all positions: divide by the number of real tokens.": every(
        average=lambda losses, real, vocab: (losses * real).mean()
    ),
    "That is a sum: divide it by the number of real tokens.": every(
        average=lambda losses, real, vocab: losses[real].sum()
    ),
    "That is the mean of each sentence's mean: a token of a short sentence "
    "counts more.": every(average=each_row),
    "It divides by the number of sentences (`batchmean`): divide by the "
    "number of real tokens.": every(
        average=lambda losses, real, vocab: losses[real].sum() / len(losses)
    ),
    "It divides by the number of classes too: sum over the classes, and take "
    "the mean over real tokens.": every(
        average=lambda losses, real, vocab: losses[real].mean() / vocab
    ),
    "The sign is wrong: a loss is minus the log-probability.": every(
        average=lambda losses, real, vocab: -losses[real].mean()
    ),
    "The smoothing is ignored.": every(
        spread=spread_by(lambda mass, vocab: 1.0, lambda mass, vocab: 0.0)
    ),
    "ε and 1 - ε have changed places.": [
        *every(
            spread=lambda target, v, mass, pad: pytorchs(
                target, v, 1 - mass, pad
            )
        ),
        *every(
            spread=lambda target, v, mass, pad: ports(target, v, 1 - mass, pad)
        ),
    ],
    "The target gets 1 - ε, and its share ε / V is missing: the masses do not "
    "sum to 1.": every(
        spread=spread_by(lambda mass, v: 1 - mass, lambda mass, v: mass / v)
    ),
    "Padding gets a share of ε: a class that is never right. A well-known port "
    "spreads it over V - 2 classes, all but the target and padding.": [
        *every(
            spread=spread_by(
                lambda mass, v: 1 - mass, lambda mass, v: mass / (v - 1)
            )
        ),
        *every(
            spread=spread_by(
                lambda mass, v: 1 - mass, lambda mass, v: mass / (v - 2)
            )
        ),
    ],
    "Padding has no share, but the masses do not sum to 1: over V - 2 classes "
    "each has ε / (V - 2).": [
        *every(
            spread=lambda target, v, mass, pad: but(
                pad, pytorchs(target, v, mass, pad)
            )
        ),
        *every(
            spread=lambda target, v, mass, pad: but(
                pad, share(target, v, 1 - mass, mass / (v - 1))
            )
        ),
    ],
    "The target gets 1 - ε and a share of ε besides, which only PyTorch's "
    "form does, over all V classes.": [
        *every(
            spread=lambda target, v, mass, pad: but(
                pad, share(target, v, 1 - mass + mass / (v - 2), mass / (v - 2))
            )
        ),
        *every(
            spread=lambda target, v, mass, pad: but(
                pad, share(target, v, 1 - mass + mass / (v - 1), mass / (v - 1))
            )
        ),
    ],
    "The entropy of the target is subtracted from PyTorch's form: "
    "`F.cross_entropy` leaves it in.": [replace(RIGHT[0], less_entropy=True)],
    "The logits are taken for log-probabilities: `log_softmax` is missing.": (
        every(logs=lambda logits: logits)
    ),
    "Two softmaxes: cross-entropy takes logits, not probabilities.": every(
        logs=lambda logits: logits.softmax(-1).log_softmax(-1)
    ),
    "The logarithm is missing: these are probabilities.": every(
        logs=lambda logits: logits.softmax(-1)
    ),
    "The softmax runs over positions: the classes are on the last axis.": every(
        logs=lambda logits: logits.log_softmax(1)
    ),
    "The softmax runs over sentences: the classes are on the last axis.": every(
        logs=lambda logits: logits.log_softmax(0)
    ),
}
"""Hint -> losses that are mistaken in this way."""
