"""Correct implementations, each written in its own way."""

from importlib import import_module

import torch

RIGHT = {}
"""Component -> correct functions and modules."""


def right(component):
    """Registers a function, or a module, that holds every contract."""

    def register(fn):
        RIGHT.setdefault(component, []).append(fn)
        return fn

    return register


def built(make, seed=0):
    """A module with weights that do not depend on what was drawn before."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


for name in (
    "attention",
    "rnn",
    "multihead",
    "positions",
    "blocks",
    "masks",
    "transformer",
    "tokens",
    "training",
    "decoding",
    "variants",
    "efficiency",
):
    import_module(f"contracts.right.{name}")
