"""The weights of an encoder layer, a right layer, and known mistakes.

Sizes are 2 sentences of 5 positions, width 12, 3 heads, and 17 units within.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.attention.masked_softmax import MASKED_SOFTMAX
from companion.contracts.engine.compare import draw
from companion.contracts.engine.masking import (
    causal,
    hide,
)

BATCH, SEQ, WIDTH, WITHIN = 2, 5, 12, 17


class Weights(dict):
    """What one layer has learned; a matrix is (out, in), as ``F.linear``'s."""

    def __repr__(self) -> str:
        return "of one layer"


def weights(seed: int) -> Weights:
    """w_q, w_k, w_v, w_o, w_1, b_1, w_2, b_2, gain_1, bias_1, gain_2, bias_2.

    The first norm follows attention, the second the feed-forward network.
    """
    up, down = (WITHIN, WIDTH), (WIDTH, WITHIN)
    shapes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (WIDTH, WIDTH))
    shapes |= {"w_1": up, "b_1": (WITHIN,), "w_2": down, "b_2": (WIDTH,)}
    shapes |= dict.fromkeys(("gain_1", "bias_1", "gain_2", "bias_2"), (WIDTH,))
    made = Weights()
    for place, (name, shape) in enumerate(shapes.items()):
        made[name] = draw(*shape, seed=seed + 10 * place) / shape[-1] ** 0.5
        if name.startswith("gain"):
            made[name] += 1
    return made


def arguments(
    seed: int, *, heads: int = 3, batch: int = BATCH, seq: int = SEQ
) -> tuple[Tensor, Weights, int]:
    """x, the weights and the number of heads."""
    x = 1.5 * draw(batch, seq, WIDTH, seed=seed)
    return x, weights(seed + 200), heads


def padding() -> Tensor:
    """(batch, 1, 1, seq): sentences of 3 and of 4 words."""
    real = torch.arange(SEQ) < torch.tensor([3, 4])[:, None]
    return real[:, None, None]


def cases() -> dict[str, tuple]:
    """What a function and PyTorch's layer must agree on."""
    return {
        "without a mask": arguments(2),
        "with a causal mask": (*arguments(3), causal(SEQ)),
        "with a padding mask": (*arguments(5), padding()),
        "with 2 heads": arguments(7, heads=2),
        "with one head": arguments(11, heads=1),
        "for one sentence of one word": arguments(13, batch=1, seq=1),
    }


def split(x: Tensor, heads: int) -> Tensor:
    """(batch, head, seq, head_dim)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def viewed(x: Tensor, heads: int) -> Tensor:
    """The right shape, and positions and heads mixed up."""
    batch, seq, width = x.shape
    return x.reshape(batch, heads, seq, width // heads)


def pytorchs(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """PyTorch's norm, whose eps is 1e-5."""
    return F.layer_norm(x, x.shape[-1:], gain, bias)


@dataclass(frozen=True)
class Layer:
    """A layer, put together from what can go wrong in it.

    Attributes:
        scale: From d_k and d_model, what the scores are multiplied by.
        hide: From scores and a mask, the weights.
        split: From vectors and a number of heads, the heads.
        joins: Whether W_O mixes what the heads found.
        turned: Whether matrices are taken for (in, out), where that fits.
        bend: What stands between the two matrices.
        thinks: Whether there is a feed-forward network.
        norm: From vectors, gain and bias.
        norm_first: Whether a sub-layer's input is normalised, not its sum.
        kept: How much of its input each sub-layer's sum has.
        swapped: Whether the norms have changed places.
    """

    scale: Callable = lambda d_k, d_model: d_k**-0.5
    hide: Callable = hide
    split: Callable = split
    joins: bool = True
    turned: bool = False
    bend: Callable = torch.relu
    thinks: bool = True
    norm: Callable = pytorchs
    norm_first: bool = False
    kept: tuple[int, int] = (1, 1)
    swapped: bool = False

    def __call__(
        self,
        x: Tensor,
        w: dict[str, Tensor],
        heads: int,
        mask: Tensor | None = None,
    ) -> Tensor:
        """``x`` after the layer."""
        parts = [lambda x: self.attend(x, w, heads, mask)]
        parts += [lambda x: self.think(x, w)] if self.thinks else []
        names = ("2", "1") if self.swapped else ("1", "2")
        for part, name, kept in zip(parts, names, self.kept, strict=False):
            gain, bias = w[f"gain_{name}"], w[f"bias_{name}"]
            if self.norm_first:
                x = kept * x + part(self.norm(x, gain, bias))
            else:
                x = self.norm(kept * x + part(x), gain, bias)
        return x

    def attend(
        self, x: Tensor, w: dict[str, Tensor], heads: int, mask: Tensor | None
    ) -> Tensor:
        """Self-attention."""
        q, k, v = (self.linear(x, w[n]) for n in ("w_q", "w_k", "w_v"))
        q, k, v = (self.split(y, heads) for y in (q, k, v))
        scores = q @ k.mT * self.scale(q.shape[-1], x.shape[-1])
        shown = scores.softmax(-1) if mask is None else self.hide(scores, mask)
        gathered = (shown @ v).transpose(1, 2).flatten(2)
        return self.linear(gathered, w["w_o"]) if self.joins else gathered

    def think(self, x: Tensor, w: dict[str, Tensor]) -> Tensor:
        """The feed-forward network."""
        inner = self.bend(F.linear(x, w["w_1"], w["b_1"]))
        return F.linear(inner, w["w_2"], w["b_2"])

    def linear(self, x: Tensor, matrix: Tensor) -> Tensor:
        """One of the four square matrices."""
        return x @ (matrix if self.turned else matrix.T)


def unbiased(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """A norm by the root of Σ(x - mean)² / (d - 1)."""
    return (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5) * gain + (
        bias
    )


def over_the_sentence(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """A norm over positions and features."""
    return F.layer_norm(x, x.shape[1:]) * gain + bias


SUSPECTS = {
    "The scores are not divided by √d_k, the width of a head.": Layer(
        scale=lambda d_k, d_model: 1.0
    ),
    "The scores are divided by √d_model: each head compares vectors of "
    "d_model / num_heads numbers, so divide by the root of that.": Layer(
        scale=lambda d_k, d_model: d_model**-0.5
    ),
    "The scores are divided by d_k: divide by its root.": Layer(
        scale=lambda d_k, d_model: 1 / d_k
    ),
    "The scores are multiplied by √d_k: divide.": Layer(
        scale=lambda d_k, d_model: d_k**0.5
    ),
    "The heads are cut with a `view` alone, which mixes positions and heads: "
    "the heads come out of the last axis, and are transposed then.": (
        Layer(split=viewed)
    ),
    "The matrices w_q, w_k, w_v and w_o are transposed: they are (out, in), "
    "so that `x @ w.T` multiplies.": Layer(turned=True),
    "The ReLU between w_1 and w_2 is missing.": Layer(bend=lambda x: x),
    "GELU stands where ReLU is asked for.": Layer(bend=F.gelu),
    "The norms come first, as in pre-LN: here a sum is normalised, "
    "`norm(x + sublayer(x))`.": Layer(norm_first=True),
    "The first residual connection is missing: add `x` to what attention "
    "says.": Layer(kept=(0, 1)),
    "The second residual connection is missing: add its input to what the "
    "feed-forward network says.": Layer(kept=(1, 0)),
    "Both residual connections are missing.": Layer(kept=(0, 0)),
    "The norms have changed places: the first follows attention.": Layer(
        swapped=True
    ),
    "The variance divides by d − 1: a norm divides by d.": Layer(norm=unbiased),
    "The norm runs over a whole sentence: take the mean and the variance of "
    "each vector.": Layer(norm=over_the_sentence),
    **{hint: Layer(hide=wrong) for hint, wrong in MASKED_SOFTMAX.hints.items()},
}
"""Hint -> the layer that is mistaken in this way."""
