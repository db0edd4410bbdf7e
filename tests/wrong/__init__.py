"""Plausible mistakes, most of which return a tensor of the right shape.

What each must be told stands beside it, as a regular expression that the first
message of its report has to match. The animals of the zoo are among them.
"""

import re
from importlib import import_module
from typing import NamedTuple

from companion.zoo import ANIMALS

WRONG = []


class Wrong(NamedTuple):
    component: str
    says: str
    fn: object


def wrong(component, says):
    """Registers a function with what its report must say first."""

    def register(fn):
        WRONG.append(Wrong(component, says, fn))
        return fn

    return register


for name in (
    "anything",
    "softmax",
    "masked_softmax",
    "attention",
    "rnn",
    "alignment",
    "multihead",
    "positions",
    "blocks",
    "masks",
    "encoder",
    "language_model",
    "translation_model",
    "parameter_count",
    "training",
    "decoding",
    "batches",
    "variants",
    "variants_parts",
):
    import_module(f"wrong.{name}")

WRONG += [Wrong(a.component, re.escape(a.says), a.fn) for a in ANIMALS]
