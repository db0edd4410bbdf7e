"""Contracts of cross-entropy against a target that is not quite sure.

Two ways to spread the mass ε are right. PyTorch's spreads it over all classes,
the target included. That of a well-known port spreads it over all but the
target and padding, and measures a cross-entropy or, less the entropy of the
target, a KL divergence. A batch of nothing but padding has no mean: nothing is
asked of it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    number,
    same,
    seeded,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.training.label_smoothing_cases import (
    MISTAKEN,
    RIGHT,
    Loss,
)

WIDTH = 7


def sentences(seed: int, pad: int = 0, vocab: int = WIDTH) -> tuple:
    """Logits and targets of two sentences, of five tokens and of two."""
    generator = seeded(seed)
    words = torch.randint(1, vocab, (2, 5), generator=generator)
    target = (words + pad) % vocab
    target[1, 2:] = pad
    return 2 * draw(2, 5, vocab, seed=seed), target


LABEL_SMOOTHING = Component(
    name="label_smoothing",
    signature="label_smoothing(logits, target, smoothing, pad)",
    returns="one number, the mean over real tokens",
    axes=("loss",),
    shape=lambda *args: (),
    shape_contract="It returns one number",
    cases=lambda: {
        "with padding 0": (*sentences(3), 0.1, 0),
        "with padding 3": (*sentences(5, 3), 0.4, 3),
        "with smoothing 0.7": (*sentences(7, 6), 0.7, 6),
    },
    shape_hints={
        "That is a loss for each token: padding aside, take the mean.": (
            lambda logits, target, *rest: target.shape
        ),
        "That is a loss for each real token: take the mean.": (
            lambda logits, target, smoothing, pad: (int((target != pad).sum()),)
        ),
        "That is a loss for each token and class: sum over the classes, and "
        "take the mean over real tokens.": lambda logits, *rest: logits.shape,
        "That is a loss for each sentence: take one mean over all real "
        "tokens.": lambda logits, *rest: logits.shape[:1],
    },
)


def forms(fn: Guarded) -> list[Loss]:
    """The right forms that ``fn`` agrees with, in every case."""
    return [form for form in RIGHT if agrees(fn, form)]


def agrees(fn: Guarded, form: Loss) -> bool:
    """Whether ``fn`` computes ``form`` in every case."""
    cases = LABEL_SMOOTHING.cases().values()
    return all(close(fn.raw(*args), form(*args)) for args in cases)


def close(one: Tensor, other: Tensor) -> bool:
    """Whether two losses are the same but for rounding."""
    return torch.allclose(one, other, 1e-4, 1e-5)


def mistake(fn: Guarded) -> str:
    """The known mistake whose numbers these are, or nothing."""
    known = (
        hint
        for hint, losses in MISTAKEN.items()
        if any(agrees(fn, loss) for loss in losses)
    )
    return next(known, "")


def refuse(fn: Guarded, says: str) -> None:
    """Raises Broken with the mistake that explains it, if one is known."""
    hint = mistake(fn)
    raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@LABEL_SMOOTHING.before_reference
def padding(fn: Guarded) -> None:
    """The logits at padding do not count."""
    for logits, target, *rest in LABEL_SMOOTHING.cases().values():
        pad, other = rest[-1], logits.clone()
        other[target == pad] = 3 * draw(*logits.shape, seed=11)[target == pad]
        before, after = fn(logits, target, *rest), fn(other, target, *rest)
        if not close(before, after):
            refuse(
                fn,
                f"Other logits where the target is padding, {pad} here, change "
                f"the loss from {number(before)} to {number(after)}.",
            )


@LABEL_SMOOTHING.contract
def plain(fn: Guarded) -> None:
    """Without smoothing it is the cross-entropy."""
    for pad in (0, 3):
        logits, target = sentences(13, pad)
        expected = F.cross_entropy(logits.mT, target, ignore_index=pad)
        got = fn(logits, target, 0.0, pad)
        if not close(got, expected):
            refuse(
                fn,
                f"With smoothing 0 it is {number(got)}: PyTorch's cross-"
                f"entropy, padding ignored, is {number(expected)}.",
            )


@LABEL_SMOOTHING.contract
def mean(fn: Guarded) -> None:
    """Every real token counts the same."""
    logits, target, *rest = LABEL_SMOOTHING.example
    long, short = (fn(logits[i][None], target[i][None], *rest) for i in (0, 1))
    got = fn(logits, target, *rest)
    expected = (5 * long + 2 * short) / 7
    if not close(got, expected):
        refuse(
            fn,
            f"A sentence of 5 tokens has loss {number(long)} and one of 2 has "
            f"{number(short)}: together (5 · {number(long)} + 2 · "
            f"{number(short)}) / 7 = {number(expected)}, yours is "
            f"{number(got)}.",
        )


@LABEL_SMOOTHING.contract
def smoothed(fn: Guarded) -> None:
    """The mass is spread as PyTorch does it, or as a well-known port does."""
    if forms(fn):
        two_classes(fn)
        return
    args = LABEL_SMOOTHING.example
    numbers = ", ".join(f"{number(form(*args))} {form.name}" for form in RIGHT)
    got = number(fn(*args))
    refuse(fn, f"With smoothing 0.1 yours is {got}. Expected: {numbers}.")


def two_classes(fn: Guarded) -> None:
    """Raises Broken if PyTorch's form fails where V - 2 is 0."""
    (form, *_) = forms(fn)
    if form is RIGHT[0]:
        args = (draw(1, 3, 2, seed=17), torch.tensor([[1, 1, 0]]), 0.3, 0)
        why = "With two classes it is not what PyTorch returns."
        same(fn, fn(*args), form(*args), why)


@LABEL_SMOOTHING.contract
def level(fn: Guarded) -> None:
    """A number added to all logits of a token changes nothing."""
    logits, target, *rest = LABEL_SMOOTHING.example
    raised = logits + 10 * draw(*target.shape, 1, seed=19)
    before, after = fn(logits, target, *rest), fn(raised, target, *rest)
    if not close(before, after):
        refuse(
            fn,
            f"The loss goes from {number(before)} to {number(after)}: logits "
            "are no log-probabilities yet, `log_softmax` makes them so.",
        )


@LABEL_SMOOTHING.contract
def large(fn: Guarded) -> None:
    """Large logits do not overflow."""
    logits, target, *rest = LABEL_SMOOTHING.example
    got = fn.raw(100 * logits, target, *rest)
    why = (
        "The logits reach 500 here: `log_softmax` takes the logarithm before "
        "anything can become 0 or ∞."
    )
    finite(fn, got, why)
