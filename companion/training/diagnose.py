"""What a run's curves say about what is wrong with it.

Curves show five illnesses. They cannot show memory that runs out, and a loss
that stays high can have causes which no curve tells apart, such as targets
that belong to other sources: what follows are the likely causes.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from companion.training.steps import Step

__all__ = ["Finding", "diagnose"]

# A run in fewer steps has no curve, and its loss is mostly chance.
FEWEST = 20
# How far rates must add up. Under Adam no weight moves much further than the
# sum of all rates, and weights start some tenths wide.
REACH = 0.02
# A loss that has come far: to know which tokens are frequent is not enough.
FAR = 0.66


class Finding(NamedTuple):
    """What is wrong with a run.

    Attributes:
        name: A short name, such as "overfitting".
        why: Why it happens.
        advice: What to try.
        evidence: What was seen in the curves.

    Example:
        >>> steps = [Step(i, 5.0, 1e-6, 1.0, 96) for i in range(1, 31)]
        >>> (finding,) = diagnose(steps)
        >>> finding.evidence.partition("; ")[0]
        'the loss began at 5.00 and ended near 5.00'
    """

    name: str
    why: str
    advice: str
    evidence: str


def diagnose(
    history: Sequence[Step],
    *,
    valid: Sequence[float] = (),
    right: float | None = None,
    length: float | None = None,
) -> list[Finding]:
    """Find what is likely wrong with a run; with a healthy one it is nothing.

    A healthy run that is judged too early, while it only knows which tokens are
    frequent, is taken for one whose rate is too high.

    Args:
        history: What ``fit`` returns.
        valid: Losses on sentences apart from training, evenly spread over the
            run.
        right: The share of such sentences that the model *writes* word for
            word, fed with its own words.
        length: How many tokens such a sentence has; belongs to ``right``.

    Returns:
        The findings, at most three.

    Raises:
        ValueError: There are fewer than 20 steps, ``right`` is no share, or
            one of ``right`` and ``length`` is missing.
    """
    if len(history) < FEWEST:
        raise ValueError(
            f"history: expected at least {FEWEST} steps, got {len(history)}"
        )
    if (right is None) != (length is None):
        raise ValueError(
            f"right and length: expected both or none, got {right} and {length}"
        )
    if right is not None and not 0 <= right <= 1:
        raise ValueError(f"right: expected a share from 0 to 1, got {right}")
    found = [_left_over(history) or _stuck(history)]
    found.append(_overfitting(history, valid))
    if right is not None and length is not None:
        loss = valid[-1] if valid else _fifths(history, "loss")[-1]
        found.append(_sees_the_answer(loss, right, length))
    return [finding for finding in found if finding]


def _left_over(history: Sequence[Step]) -> Finding | None:
    """Find gradients that were there before the loss was computed.

    A clipped gradient does not grow, so that no curve of its norm shows what
    it still holds of the steps before.
    """
    left = median(step.left for step in history[1:])
    if left == 0:
        return None
    return _piling_up(
        f"half of the steps began with a gradient of length {left:.2g} or "
        "more, where there should be none"
    )


def _stuck(history: Sequence[Step]) -> Finding | None:
    """Find why the loss stays up, if it does."""
    losses = _fifths(history, "loss")
    start, end = history[0].loss, losses[-1]
    seen = f"the loss began at {start:.2f} and ended near {end:.2f}"
    finite = all(math.isfinite(step.loss) for step in history)
    if not finite or max(losses) > 1.5 * start:
        return _rate_too_high(f"{seen}, and was far above its beginning")
    if end < FAR * start:
        return None
    gradients = _fifths(history, "gradient")
    if gradients == sorted(gradients) and gradients[-1] > 2 * gradients[0]:
        return _piling_up(
            f"{seen}, while the gradient's norm rose from {gradients[0]:.1f} "
            f"to {gradients[-1]:.1f}"
        )
    if end < 0.9 * losses[2]:  # It is still falling.
        return None
    if sum(step.rate for step in history) < REACH:
        return _rate_too_low(history, seen)
    return _rate_too_high(f"{seen}, and nearly all of that fall came early")


def _rate_too_low(history: Sequence[Step], seen: str) -> Finding:
    reach = sum(step.rate for step in history)
    return Finding(
        "rate too low",
        "Adam moves a weight by about the learning rate in a step, whatever "
        "the gradient; all steps together were too short to get anywhere.",
        "Raise the rate tenfold until the loss becomes unstable, then go back "
        "one notch; or train for longer.",
        f"{seen}; all rates together are {reach:.1g}",
    )


def _rate_too_high(seen: str) -> Finding:
    return Finding(
        "rate too high",
        "Each step jumps across the valley that it should walk down; soon the "
        "model only knows which tokens are frequent.",
        "Divide the rate by ten, warm up over more steps, or use pre-LN. If "
        "that does not help, look at the data: do the pairs belong together?",
        seen,
    )


def _piling_up(seen: str) -> Finding:
    return Finding(
        "gradients pile up",
        "The gradient of a step still holds those of the steps before it.",
        "Call zero_grad before each backward pass, once an update. Clipping "
        "hides this and does not mend it.",
        seen,
    )


def _overfitting(
    history: Sequence[Step], valid: Sequence[float]
) -> Finding | None:
    if len(valid) < 5:
        return None
    best, last = min(valid), median(valid[-3:])
    trained = _fifths(history, "loss")[-1]
    turned = min(valid[-3:]) > 1.03 * best
    if not turned or trained > min(0.8 * last, FAR * history[0].loss):
        return None
    return Finding(
        "overfitting",
        "The model learns its training sentences by heart; what it learns now "
        "is not true of others.",
        "More data helps most. Stop where the validation loss was best; more "
        "dropout or a smaller model puts the turn off.",
        f"the validation loss was {best:.2f} and rose to {last:.2f}, while "
        f"the training loss fell to {trained:.2f}",
    )


def _sees_the_answer(
    loss: float, right: float, length: float
) -> Finding | None:
    # A mean loss of l nats a token puts e^(-l · length), at least, on the
    # right sentence in the mean. A model that writes much less often what it
    # deems that likely has read something it does not have when it writes.
    promised = math.exp(-loss * length)
    if promised < 0.5 or right > promised / 2:
        return None
    return Finding(
        "sees the answer",
        "In training a place can read the token it must say: the target is not "
        "shifted, or the mask shows the future.",
        "Change one target token: the logits at its own place, and at those "
        "before it, must stay as they were.",
        f"a loss of {loss:.3f} promises {promised:.0%} of the sentences right, "
        f"and {right:.0%} are",
    )


def _fifths(history: Sequence[Step], name: str) -> list[float]:
    """Take the median of each fifth of a curve: five that noise spares."""
    curve = [getattr(step, name) for step in history]
    cuts = [len(curve) * i // 5 for i in range(6)]
    return [median(curve[a:b]) for a, b in pairwise(cuts)]
