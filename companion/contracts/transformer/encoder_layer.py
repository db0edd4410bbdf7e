"""Contracts of an encoder layer whose weights are given.

A layer with weights of its own can only be asked who moves with whom. With
weights in its hands one layer is as good as another, to the last digit: then a
missing scale shows, a W_O that was forgotten, and a norm in the wrong place.
It is the paper's: a sum is normalised, and the network has a ReLU.
"""

from companion.contracts.engine.compare import Broken, draw, furthest
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.transformer.encoder_layer_cases import (
    SUSPECTS,
    Layer,
    Weights,
    arguments,
    cases,
)

ENCODER_LAYER = Component(
    name="encoder_layer",
    signature="encoder_layer(x, weights, num_heads, mask=None)",
    returns="one vector for each position (batch, seq, d_model)",
    shape=lambda x, weights, num_heads, mask=None: x.shape,
    oracle=Layer(),
    reference="nn.TransformerEncoderLayer",
    agrees="With the same weights it agrees with PyTorch's layer",
    cases=cases,
    suspects=SUSPECTS,
)

PARTS = {
    "w_o": "What the heads found is laid side by side and multiplied by W_O.",
    "w_1": "Is the feed-forward network called, and does its result go on?",
    "gain_1": "Does a norm follow attention, with its own gain and bias?",
    "gain_2": "Does a norm follow the feed-forward network, with its own "
    "gain and bias?",
}
"""Weight -> the part that is missing where it changes nothing."""


@ENCODER_LAYER.before_reference
def every_weight(fn: Guarded) -> None:
    """Every weight that it is given changes the output."""
    x, weights, heads = arguments(17)
    before = fn(x, weights, heads).detach()
    idle = [
        name
        for name, w in weights.items()
        if furthest(fn(x, moved(weights, name), heads), before) is None
    ]
    if idle:
        names = ", ".join(f"`{name}`" for name in idle)
        hint = next((PARTS[name] for name in idle if name in PARTS), "")
        verb = "changes" if len(idle) == 1 else "change"
        raise Broken(f"{names} {verb} nothing. {hint}".rstrip(), cause=hint)


def moved(weights: Weights, name: str) -> Weights:
    """The weights, one of which is another."""
    other = draw(*weights[name].shape, seed=19)
    return Weights(weights | {name: weights[name] + other})
