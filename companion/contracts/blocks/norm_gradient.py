"""The gradient of layer normalisation, by hand.

Sizes are prime and differ: 2 sentences of 5 positions, vectors of width 7.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import draw, finite, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    equivariance,
    leading_axes,
    positions_apart,
)
from companion.contracts.engine.guard import Guarded

__all__ = ["NORM_GRADIENT", "by_hand"]

SEQ, WIDTH = 5, 7


def arguments(
    seed: int, *lead: int, width: int = WIDTH, eps: float = 1e-5
) -> tuple[Tensor, Tensor, float]:
    """Draw x, the gradient that arrives, and eps."""
    shape = (*(lead or (2, SEQ)), width)
    return 2 * draw(*shape, seed=seed) + 1, draw(*shape, seed=seed + 100), eps


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        # Large, so that it shows where eps stands.
        "with eps = 0.5": arguments(2, eps=0.5),
        "with eps = 1e-5": arguments(3),
        # Where both are 7, exchanged axes show their numbers.
        "for 7 positions of width 7": arguments(5, 2, WIDTH),
    }


def oracle(x: Tensor, grad: Tensor, eps: float) -> Tensor:
    """Let PyTorch go backwards through its own norm."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        normal = F.layer_norm(x, x.shape[-1:], eps=eps)
    return torch.autograd.grad((normal * grad).sum(), x)[0]


def by_hand(x: Tensor, grad: Tensor, eps: float) -> Tensor:
    """Compute the gradient by the formula."""
    centred = x - x.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normal = centred / size
    along = (grad * normal).mean(-1, keepdim=True)
    return (grad - grad.mean(-1, keepdim=True) - normal * along) / size


NORM_GRADIENT = Component(
    name="norm_gradient",
    signature="norm_gradient(x, grad, eps)",
    returns="the gradient at `x`, in the shape of `x`",
    axes=("position", "feature"),
    shape=lambda x, grad, eps: x.shape,
    oracle=oracle,
    reference="autograd through F.layer_norm",
    cases=cases,
    gradient=False,
)


@NORM_GRADIENT.contract
def mean_zero(fn: Guarded) -> None:
    """The gradient of every vector has mean 0."""
    got = fn(*arguments(7))
    why = (
        "A number added to all of `x` changes nothing, so the gradient has no "
        "mean: subtract the mean of `grad`."
    )
    mean = got.mean(-1)
    same(fn, mean, torch.zeros_like(mean), why, 1e-4)


@NORM_GRADIENT.contract
def square_to_the_vector(fn: Guarded) -> None:
    """It is at right angles to the normalised vector."""
    x, grad, _ = arguments(11)
    got = fn(x, grad, 1e-10)
    product = (got * F.layer_norm(x, x.shape[-1:], eps=1e-10)).mean(-1)
    why = (
        "A vector that is stretched about its mean gives the same, so the "
        "gradient has no part along it: subtract that part."
    )
    same(fn, product, torch.zeros_like(product), why, 1e-4)


NORM_GRADIENT.contract(
    positions_apart(
        lambda: arguments(13),
        "Over which axis do the means run? Take those of each vector.",
    )
)
NORM_GRADIENT.contract(
    equivariance(
        "Twice the gradient that arrives gives twice the gradient",
        lambda: arguments(17),
        lambda x, grad, eps: (x, 2 * grad, eps),
        lambda y: 2 * y,
        why="A gradient is linear in the gradient that arrives.",
    )
)


def with_lead(lead: tuple[int, ...]) -> tuple:
    """Draw arguments with these axes before the features."""
    x, grad, eps = arguments(19, 12)
    count = max(1, torch.Size(lead).numel())
    shape = *lead, WIDTH
    return x[:count].reshape(shape), grad[:count].reshape(shape), eps


NORM_GRADIENT.contract(
    leading_axes(
        "the features",
        ((), (3,), (1, 1), (2, 3, 2)),
        with_lead,
        lambda fn, got, args: oracle(*args),
        "autograd returns",
    )
)


@NORM_GRADIENT.contract
def constant(fn: Guarded) -> None:
    """A vector of equal numbers has a finite gradient."""
    x, grad, eps = arguments(23)
    x[0, 2] = 3
    got, expected = fn.raw(x, grad, eps), oracle(x, grad, eps)
    why = "Its variance is 0: eps stands inside the root, here too."
    finite(fn, got, why, expected)
    same(fn, got, expected, "Position 2 of sentence 0 is all 3.", 1e-2)


# Known mistakes, in the order in which they are recognised


def parts(x, eps, dim=-1, *, correction=0, outside=False):
    """Return what x becomes, and what it was divided by."""
    variance = x.var(dim, correction=correction, keepdim=True)
    size = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return (x - x.mean(dim, keepdim=True)) / size, size


def through(grad, normal, size, dim=-1):
    """Apply the formula to these parts."""
    along = (grad * normal).mean(dim, keepdim=True)
    return (grad - grad.mean(dim, keepdim=True) - normal * along) / size


@NORM_GRADIENT.mistake(
    hint="Mean and variance are taken for constants: each of them depends on "
    "`x` as well, which makes a term each.",
    symptom="it learns, but each step also moves what the next norm takes back",
)
def the_statistics_are_constants(x, grad, eps):
    """Divides by the size, as if the mean and it did not depend on x."""
    return grad / parts(x, eps)[1]


@NORM_GRADIENT.mistake(
    hint="The gradient that arrives is itself divided by its standard "
    "deviation: it keeps its size here."
)
def the_gradient_is_normalised(x, grad, eps):
    """Treats the gradient like a vector on its way forwards."""
    return through(parts(grad, eps)[0], *parts(x, eps))


NORM_GRADIENT.mistake(
    "the-variance-is-a-constant",
    hint="The variance is taken for a constant: what is along the normalised "
    "vector has to go as well.",
)(lambda x, grad, eps: (grad - grad.mean(-1, keepdim=True)) / parts(x, eps)[1])


@NORM_GRADIENT.mistake(
    hint="The mean is taken for a constant: subtract the mean of `grad` too. "
    "As it is, this is the gradient of RMSNorm at the centred vector."
)
def the_mean_is_a_constant(x, grad, eps):
    """The term of the mean is forgotten."""
    normal, size = parts(x, eps)
    return (grad - normal * (grad * normal).mean(-1, keepdim=True)) / size


@NORM_GRADIENT.mistake(
    hint="What is along the normalised vector is a *mean* of products, and "
    "here it is their sum."
)
def a_sum_for_the_mean(x, grad, eps):
    """The products are summed up."""
    normal, size = parts(x, eps)
    along = (grad * normal).sum(-1, keepdim=True)
    return (grad - grad.mean(-1, keepdim=True) - normal * along) / size


@NORM_GRADIENT.mistake(
    hint="The division by √(variance + eps) is missing at the end."
)
def not_divided(x, grad, eps):
    """Both terms are there, and the size is not."""
    return through(grad, parts(x, eps)[0], 1)


NORM_GRADIENT.mistake(
    "over-the-positions",
    hint="The means run over the positions: take those of each vector, "
    "`dim=-1`.",
)(
    lambda x, grad, eps: through(
        grad,
        *parts(x, eps, -2 if x.ndim > 1 else -1),
        -2 if x.ndim > 1 else -1,
    )
)
NORM_GRADIENT.mistake(
    "divided-by-one-less",
    hint="The variance divides by d − 1: here it divides by d, "
    "`unbiased=False`.",
)(lambda x, grad, eps: through(grad, *parts(x, eps, correction=1)))
NORM_GRADIENT.mistake(
    "eps-outside-the-root",
    hint="eps stands outside the root: √(variance + eps).",
)(lambda x, grad, eps: through(grad, *parts(x, eps, outside=True)))


@NORM_GRADIENT.mistake(
    hint="This is the gradient of RMSNorm: the mean of `x` is not subtracted."
)
def of_rms_norm(x, grad, eps):
    """The norm that leaves the mean in."""
    size = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    normal = x / size
    return (grad - normal * (grad * normal).mean(-1, keepdim=True)) / size
