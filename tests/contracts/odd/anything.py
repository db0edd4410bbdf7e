"""Mistakes that can be made with every component, or with most."""

import torch
from contracts.odd import wrong
from contracts.right import RIGHT
from torch import Tensor, nn

from companion.contracts import COMPONENTS
from companion.contracts.engine.compare import is_float, tensors_in


def every(component):
    """All components."""
    return True


def reads_a_tensor(component):
    """Those whose first argument can be changed in place."""
    return isinstance(component.example[0], Tensor)


def has_a_gradient(component):
    """Those through which a gradient runs."""
    return component.gradient and any(map(is_float, component.example))


def returns_floats(component):
    """Those that return numbers, not a mask or a count.

    The scales of integers may be of any number type.
    """
    if component.name == "quantize":
        return False
    result = RIGHT[component.name][0](*component.example)
    return any(map(is_float, tensors_in(result)))


def has_weights(component):
    """Those that may be a module with weights of its own."""
    return component.weights


def each(result, change):
    """``change`` of the result, or of each of several, or of their parts."""
    if isinstance(result, tuple | list):
        return [each(x, change) for x in result]
    return change(result)


def each_component(where=every):
    """Register the mistake for every component that can make it."""

    def register(mistake):
        for component, (fn, *_) in RIGHT.items():
            if where(COMPONENTS[component]):
                made = mistake(fn)
                made.__name__ = f"{mistake.__name__}_{component}"
                wrong(component)(made)
        return mistake

    return register


@each_component()
def noisy(fn):
    generator = torch.Generator().manual_seed(2)

    def change(x):
        if not isinstance(x, Tensor):
            number = int(torch.randint(100, (), generator=generator))
            return f"{x}{number}" if isinstance(x, str) else x + number
        noise = torch.rand(x.shape, generator=generator)
        if x.dtype == torch.bool:
            return x ^ (noise > 0.5)
        if not is_float(x):
            return x + (noise > 0.5)
        return x + 0.01 * noise.to(x.dtype)

    return lambda *args: each(fn(*args), change)


@each_component(reads_a_tensor)
def writes_to_its_input(fn):
    def mistake(first, *args):
        result = fn(first, *args)
        with torch.no_grad():
            first *= 2
        return result

    return mistake


@each_component(has_a_gradient)
def without_gradient(fn):
    return lambda *args: each(fn(*args), Tensor.detach)


@each_component(returns_floats)
def widened(fn):
    return lambda *args: each(fn(*args), Tensor.double)


@each_component(has_weights)
class WithASparePart(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn, self.spare = fn, nn.Linear(2, 3)
        self.eval()

    def forward(self, *args):
        return self.fn(*args)


@each_component(has_weights)
class NormedOverTheBatch(nn.Module):
    """With the statistics of training only while it trains."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn
        self.eval()

    def forward(self, *args):
        y = self.fn(*args)
        return y - y.mean(0) if self.training else y
