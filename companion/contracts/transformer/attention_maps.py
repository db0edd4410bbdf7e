"""Contracts of the maps of an encoder: who looks at whom, layer by layer.

How the encoder works inside cannot be seen, but in a map every row is a
softmax over what the mask allows.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    draw,
    furthest,
    place,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import risk
from companion.contracts.engine.masking import (
    EMPTY,
    causal,
    require_finite_row,
)
from companion.contracts.transformer.encoder import BATCH, SEQ, arguments
from companion.multihead import MultiHeadAttention

__all__ = ["ATTENTION_MAPS"]

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
    """Raise Broken unless a map is (batch, head, seq, seq)."""
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

LOST = (
    "Layer 0 hides it: does every layer get the mask, and not only the first?"
)

HIDDEN = {
    "The mask is upside down: True means may attend.": lambda mask: ~mask,
    "The mask is transposed: its last axis is the key's.": (
        lambda mask: mask.mT
    ),
    "Every sentence gets the mask of the first.": (
        lambda mask: mask[:1].expand_as(mask)
    ),
    "The mask is not used.": lambda mask: mask | True,
}
"""Hint -> the mask that would have been used."""


@ATTENTION_MAPS.before_reference
def hidden(fn: Guarded) -> None:
    """What the mask hides has weight 0 in every layer."""
    for args in ATTENTION_MAPS.cases().values():
        mask = args[1]
        maps = fn(*args)
        leaks = [(w.abs() > 1e-6) & ~mask for w in maps]
        for layer, leak in enumerate(leaks):
            if leak.any():
                index = tuple(leak.nonzero()[0].tolist())
                used = maps[layer].detach().abs().amax(1, keepdim=True) > 0
                why = why_seen(used, mask) if not layer else LOST
                raise Broken(
                    f"Layer {layer}, {place(index, AXES)}: the weight is "
                    f"{maps[layer][index]:.2g}, and the mask hides this key. "
                    f"{why}",
                    maps[layer],
                    maps[layer].detach().masked_fill(~mask, 0),
                    cause=why,
                )


def why_seen(used: Tensor, mask: Tensor) -> str:
    """The mistake after which the weights ``used`` are not 0."""
    for hint, other in HIDDEN.items():
        some = other(mask).any(-1)
        if torch.equal(used[some], other(mask)[some]):
            return hint
    return "Does the mask reach the scores, as -∞, before the softmax?"


@ATTENTION_MAPS.before_reference
def rows_sum_to_one(fn: Guarded) -> None:
    """Every row sums to 1."""
    for args in ATTENTION_MAPS.cases().values():
        for layer, weights in enumerate(fn(*args)):
            rows, columns = weights.sum(-1), weights.sum(-2)
            if furthest(rows, torch.ones_like(rows)) is None:
                continue
            index = furthest(rows, torch.ones_like(rows))
            raise Broken(
                f"Layer {layer}, {place(index, AXES[:1])}: the weights sum to "
                f"{rows[index]:.4g}, not to 1. {why_not_one(weights, columns)}",
                weights,
            )


def why_not_one(weights: Tensor, columns: Tensor) -> str:
    """How rows come not to sum to 1."""
    if furthest(columns, torch.ones_like(columns)) is None:
        return "The columns do: the last axis must be the key's."
    if (weights < 0).any():
        return "Some are negative: are these the scores, before the softmax?"
    return "Are they masked, or dropped out, after the softmax?"


@ATTENTION_MAPS.contract
def allowed(fn: Guarded) -> None:
    """What the mask allows has a weight above 0."""
    for args in ATTENTION_MAPS.cases().values():
        for layer, weights in enumerate(fn(*args)):
            missing = args[1] & ~(weights > 0)
            if missing.any():
                index = tuple(missing.nonzero()[0].tolist())
                raise Broken(
                    f"Layer {layer}, {place(index, AXES)}: the weight is "
                    f"{weights[index]:.2g}, though the mask allows this key.",
                    weights,
                    args[1].float().expand_as(weights),
                )


@ATTENTION_MAPS.contract
def as_if_absent(fn: Guarded) -> None:
    """What is hidden moves no map."""
    x, mask = arguments(7), past()
    before, x = fn(x, mask), x.clone()
    x[:, -1] += draw(BATCH, x.shape[-1], seed=11)
    for layer, (one, other) in enumerate(zip(before, fn(x, mask), strict=True)):
        why = (
            f"The last position was changed, which all others do not see, and "
            f"their map of layer {layer} moved: do the layers below get the "
            "mask where they compute their output, too?"
        )
        same(fn, other[..., :-1, :], one[..., :-1, :], why)


@ATTENTION_MAPS.contract
def layers_differ(fn: Guarded) -> None:
    """Each layer has a map of its own."""
    maps = fn(arguments(13), everybody())
    for layer, (one, other) in enumerate(pairwise(maps)):
        if torch.equal(one, other):
            raise Broken(
                f"The maps of the layers {layer} and {layer + 1} are the same: "
                "is one layer asked again and again?",
                other,
            )


@ATTENTION_MAPS.contract
def layers_build_on_each_other(fn: Guarded) -> None:
    """A layer looks at what the layer below has made."""
    x, mask = arguments(17), everybody()
    moved = torch.zeros(len(fn(x, mask)))
    for size in (0.01, 0.1, 1.0):
        changed = size * x
        changed[:, -1] = size * draw(BATCH, x.shape[-1], seed=19)
        pairs = zip(fn(size * x, mask), fn(changed, mask), strict=True)
        gaps = [(odds(a) - odds(b)).abs().nan_to_num(0).max() for a, b in pairs]
        moved = moved.maximum(torch.stack(gaps))
    if moved[0] > 1e-3:
        raise Broken(
            "Layer 0 looks at vectors in which the last position is mixed in "
            "already: is a layer asked for its map after it has run? Ask it "
            "with what it reads, and then let it run."
        )
    # What moves in layer 0 is rounding.
    unmoved = (moved[1:] < (10 * moved[0]).clamp(2e-6, 1e-4)).nonzero()
    if len(unmoved):
        layer = int(unmoved[0]) + 1
        raise Broken(
            f"Layer {layer} looks at the same vectors as layer 0: however the "
            "last position changes, nothing moves between the others. Give it "
            f"the output of layer {layer - 1}, not `x`."
        )


def odds(weights: Tensor) -> Tensor:
    """How the weights of all but the last position compare, as logarithms.

    In the first layer what stands at the last position does not change them:
    it only takes its share of each row.
    """
    logs = weights.detach().double()[..., :-1, :-1].log()
    return logs - logs.mean(-1, keepdim=True)


@ATTENTION_MAPS.contract
def order(fn: Guarded) -> None:
    """Reordering the positions reorders rows and columns."""
    x, order = arguments(23), torch.tensor([3, 0, 4, 2, 1])
    got, expected = fn(x[:, order], everybody()), fn(x, everybody())
    why = "`x` brings its positions along: the maps know no order."
    for one, other in zip(got, expected, strict=True):
        same(fn, one, other[..., order, :][..., order], why)


@ATTENTION_MAPS.contract
def sentences_apart(fn: Guarded) -> None:
    """No sentence moves the maps of another."""
    x, mask = arguments(29), patchy()
    before, x = fn(x, mask), x.clone()
    x[0] += draw(*x.shape[1:], seed=31)
    for layer, (one, other) in enumerate(zip(before, fn(x, mask), strict=True)):
        why = (
            "Only sentence 0 was changed, and the map of sentence 1 in layer "
            f"{layer} moved."
        )
        same(fn, other[1:], one[1:], why)


@ATTENTION_MAPS.contract
@risk(EMPTY)
def nobody_to_see(fn: Guarded) -> None:
    """A row that may attend to nothing is finite."""
    mask = past().clone()
    mask[1, :, 2] = False
    for weights in fn.raw(arguments(37), mask):
        require_finite_row(fn, weights)


# Known mistakes


class Maps(nn.Module):
    """Two layers of attention, and who looks at whom in each."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(MultiHeadAttention(12, 3) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(2))

    def map(self, layer, x, mask):
        """The weights of a layer that reads ``x``."""
        return self.layers[layer].weights(x, mask)

    def forward(self, x, mask):
        """A list of weights (batch, head, query, key)."""
        found = []
        for i, (layer, norm) in enumerate(
            zip(self.layers, self.norms, strict=True)
        ):
            found.append(self.map(i, x, mask))
            x = norm(x + layer(x, mask))
        return found


@ATTENTION_MAPS.mistake(
    symptom="the loss is too good: what layer 0 hides, layer 1 reads",
)
class MaskInTheFirstLayerOnly(Maps):
    """The mask is handed to the first layer, and to no other."""

    def map(self, layer, x, mask):
        return super().map(layer, x, None if layer else mask)


@ATTENTION_MAPS.mistake(
    symptom="drawn maps look right, and rows are paler where more is hidden",
)
class MaskedForTheDrawing(Maps):
    """The weights are wiped out when they are drawn, after the softmax."""

    def map(self, layer, x, mask):
        return super().map(layer, x, None) * mask


@ATTENTION_MAPS.mistake(
    symptom="a figure in which a word seems to look at itself only, or nothing",
)
class AskedAfterItHasRun(Maps):
    """A layer is asked for its map with what it has returned."""

    def forward(self, x, mask):
        found = []
        for i, (layer, norm) in enumerate(
            zip(self.layers, self.norms, strict=True)
        ):
            x = norm(x + layer(x, mask))
            found.append(self.map(i, x, mask))
        return found


@ATTENTION_MAPS.mistake(symptom="all layers draw much the same picture")
class EveryLayerReadsTheInput(Maps):
    """Each layer is asked with the input, and none with the layer below."""

    def forward(self, x, mask):
        return [self.map(i, x, mask) for i in range(len(self.layers))]
