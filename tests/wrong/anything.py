"""Mistakes that can be made with every component."""

import torch
from right import RIGHT

from wrong import wrong


def each_component(says):
    """Registers the mistake once for every component."""

    def register(mistake):
        for component, (fn, *_) in RIGHT.items():
            made = mistake(fn)
            made.__name__ = f"{mistake.__name__}_{component}"
            wrong(component, says)(made)
        return mistake

    return register


@each_component("^The second call differs: .* At .* yours is")
def noisy(fn):
    generator = torch.Generator().manual_seed(2)

    def mistake(*args):
        result = fn(*args)
        noise = torch.rand(result.shape, generator=generator)
        return result + 0.01 * noise.to(result.dtype)

    return mistake


@each_component(r"^It changes `(scores|q|x|query)` in place")
def writes_to_its_input(fn):
    def mistake(first, *args):
        result = fn(first, *args)
        with torch.no_grad():
            first *= 2
        return result

    return mistake


@each_component(
    "^(The output has no gradient at all|It does not reach).*detach"
)
def without_gradient(fn):
    return lambda *args: fn(*args).detach()


@each_component("^It returned float64 for float32")
def widened(fn):
    return lambda *args: fn(*args).double()
