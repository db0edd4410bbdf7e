"""Wrong implementations that no learner would write, or no user sees.

What check says of each stands in ``contracts/known_mistakes.json``.
"""

from importlib import import_module
from typing import NamedTuple

WRONG = []


class Wrong(NamedTuple):
    component: str
    fn: object


def wrong(component, _says=""):
    """Register a function as a wrong implementation of the component."""

    def register(fn):
        WRONG.append(Wrong(component, fn))
        return fn

    return register


for name in (
    "anything",
    "attention",
    "rnn",
    "seq2seq",
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
    import_module(f"contracts.odd.{name}")
