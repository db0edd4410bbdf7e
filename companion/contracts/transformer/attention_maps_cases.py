"""What is asked of the maps of an encoder, and what counts as a map.

Sizes are 2 sentences of 5 positions, and width 12.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import causal
from companion.contracts.transformer.encoder import BATCH, SEQ, arguments

AXES = ("query", "key")


def patchy() -> Tensor:
    """(batch, 1, seq, seq): no sentence and no row is like another."""
    mask = draw(BATCH, 1, SEQ, SEQ, seed=43) > 0.3
    return mask | torch.eye(SEQ, dtype=torch.bool)


def past() -> Tensor:
    """(batch, 1, seq, seq): no position sees its future."""
    return causal(SEQ).expand(BATCH, 1, SEQ, SEQ)


def everybody() -> Tensor:
    """(batch, 1, seq, seq): nothing is hidden."""
    return torch.ones(BATCH, 1, SEQ, SEQ, dtype=torch.bool)


def read(fn: Guarded, result: object, args: tuple) -> list[Tensor]:
    """The maps, each (batch, head, seq, seq)."""
    if isinstance(result, Tensor) and result.ndim == 5:
        result = list(result)
    if not isinstance(result, tuple | list):
        what = "None" if result is None else f"a {type(result).__name__}"
        raise Broken(
            f"It returned {what}: expected {fn.component.returns}, one map for "
            "each layer."
        )
    if not result:
        raise Broken("The list is empty: expected one map for each layer.")
    for layer, weights in enumerate(result):
        fn.require_tensor(weights, args)
        require_shape(fn, layer, weights, args)
    return list(result)


def require_shape(
    fn: Guarded, layer: int, weights: Tensor, args: tuple
) -> None:
    """Raises Broken unless a map is (batch, head, seq, seq)."""
    batch, seq, width = args[0].shape
    got = tuple(weights.shape)
    if len(got) == 4 and got[0] == batch and got[2:] == (seq, seq) and got[1]:
        return
    why = {
        (batch, seq, seq): "Is it the mean over the heads? Each head has a map "
        "of its own; `nn.MultiheadAttention` needs "
        "`average_attn_weights=False`.",
        (batch, seq, width): "Is it the output of the layer? Expected are the "
        "weights.",
    }
    raise Broken(
        f"The map of layer {layer} has shape {got}: expected (batch, head, "
        f"seq, seq), ({batch}, heads, {seq}, {seq}). "
        f"{why.get(got, '')}".rstrip()
    )


ATTENTION_MAPS = Component(
    name="attention_maps",
    signature="attention_maps(x, mask)",
    returns="a list of weights (batch, head, seq, seq)",
    axes=AXES,
    shape_contract="It returns one map for each layer",
    read=read,
    gradient=False,
    cases=lambda: {
        "with a causal mask": (arguments(2), past()),
        "with a mask for each sentence": (arguments(3), patchy()),
        "with a mask that hides nothing": (arguments(5), everybody()),
    },
)
