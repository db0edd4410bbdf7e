"""Contracts of an encoder layer whose weights are given.

A layer with weights of its own can only be asked who moves with whom. With
weights in its hands one layer is as good as another, to the last digit: then a
missing scale shows, a W_O that was forgotten, and a norm in the wrong place.
It is the paper's: a sum is normalised, and the network has a ReLU.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.attention.masked_softmax import MASKED_SOFTMAX
from companion.contracts.engine.compare import Broken, draw, furthest
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.masking import (
    causal,
    hide,
)

__all__ = ["ENCODER_LAYER"]

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
        feeds_forward: Whether there is a feed-forward network.
        norm: From vectors, gain and bias.
        norm_first: Whether a sub-layer's input is normalised, not its sum.
        residual: How much of its input each sub-layer's sum has.
        swapped: Whether the norms have changed places.
        normed_stream: Where a norm comes first, whether the sum starts from
            what it returned.
        on_the_branch: Whether what a sub-layer says is normalised, not a sum.
        from_the_input: Whether the second sum starts from the layer's input.
    """

    scale: Callable = lambda d_k, d_model: d_k**-0.5
    hide: Callable = hide
    split: Callable = split
    joins: bool = True
    turned: bool = False
    bend: Callable = torch.relu
    feeds_forward: bool = True
    norm: Callable = pytorchs
    norm_first: bool = False
    residual: tuple[int, int] = (1, 1)
    swapped: bool = False
    normed_stream: bool = False
    on_the_branch: bool = False
    from_the_input: bool = False

    def __call__(
        self,
        x: Tensor,
        w: dict[str, Tensor],
        heads: int,
        mask: Tensor | None = None,
    ) -> Tensor:
        """``x`` after the layer."""
        parts = [lambda x: self.attend(x, w, heads, mask)]
        parts += (
            [lambda x: self.feed_forward(x, w)] if self.feeds_forward else []
        )
        names = ("2", "1") if self.swapped else ("1", "2")
        came_in = x
        for part, name, kept in zip(parts, names, self.residual, strict=False):
            gain, bias = w[f"gain_{name}"], w[f"bias_{name}"]
            start = came_in if self.from_the_input else x
            if self.norm_first:
                normed = self.norm(x, gain, bias)
                start = normed if self.normed_stream else start
                x = kept * start + part(normed)
            elif self.on_the_branch:
                x = kept * start + self.norm(part(x), gain, bias)
            else:
                x = self.norm(kept * start + part(x), gain, bias)
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

    def feed_forward(self, x: Tensor, w: dict[str, Tensor]) -> Tensor:
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


ENCODER_LAYER = Component(
    name="encoder_layer",
    signature="encoder_layer(x, weights, num_heads, mask=None)",
    returns="one vector for each position (batch, seq, d_model)",
    shape=lambda x, weights, num_heads, mask=None: x.shape,
    oracle=Layer(),
    reference="nn.TransformerEncoderLayer",
    agrees="With the same weights it agrees with PyTorch's layer",
    cases=cases,
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
    unused = [
        name
        for name, w in weights.items()
        if furthest(fn(x, moved(weights, name), heads), before) is None
    ]
    if unused:
        names = ", ".join(f"`{name}`" for name in unused)
        hint = next((PARTS[name] for name in unused if name in PARTS), "")
        verb = "changes" if len(unused) == 1 else "change"
        raise Broken(f"{names} {verb} nothing. {hint}".rstrip(), cause=hint)


def moved(weights: Weights, name: str) -> Weights:
    """The weights, one of which is another."""
    other = draw(*weights[name].shape, seed=19)
    return Weights(weights | {name: weights[name] + other})


# Known mistakes


def hidden_where_true(scores: Tensor, mask: Tensor) -> Tensor:
    """The weights of a mask in which True means hidden."""
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min).softmax(-1)


def layer(
    id: str, story: str, hint: str = "", symptom: str = "", **mistaken: object
) -> None:
    """Register a layer of which some parts are ``mistaken``."""

    def encoder_layer(x, weights, num_heads, mask=None):
        return Layer(**mistaken)(x, weights, num_heads, mask)

    encoder_layer.__name__ = id.replace("-", "_")
    encoder_layer.__doc__ = story
    ENCODER_LAYER.mistake(id, hint=hint, symptom=symptom)(encoder_layer)


layer(
    "unscaled-scores",
    "The scores go into the softmax as they are.",
    hint="The scores are not divided by √d_k, the width of a head.",
    symptom="with wide heads each row of weights is nearly all on one key, "
    "and training stalls",
    scale=lambda d_k, d_model: 1.0,
)
layer(
    "scaled-by-the-whole-width",
    "Divides by √d_model, though a head compares fewer numbers.",
    hint="The scores are divided by √d_model: each head compares vectors of "
    "d_model / num_heads numbers, so divide by the root of that.",
    symptom="attention stays flatter the more heads there are",
    scale=lambda d_k, d_model: d_model**-0.5,
)
layer(
    "scaled-by-d-k",
    "Divides by the width of a head, and not by its root.",
    hint="The scores are divided by d_k: divide by its root.",
    scale=lambda d_k, d_model: 1 / d_k,
)
layer(
    "multiplied",
    "`*` for `/`.",
    hint="The scores are multiplied by √d_k: divide.",
    scale=lambda d_k, d_model: d_k**0.5,
)
layer(
    "viewed",
    "The right shape, and positions and heads mixed up.",
    hint="The heads are cut with a `view` alone, which mixes positions and "
    "heads: the heads come out of the last axis, and are transposed then.",
    split=viewed,
)
layer(
    "matrices-the-other-way-round",
    "The four square matrices fit both ways, and are taken transposed.",
    hint="The matrices w_q, w_k, w_v and w_o are transposed: they are (out, "
    "in), so that `x @ w.T` multiplies.",
    symptom="the weights load without a word, and the answers are noise",
    turned=True,
)
layer(
    "no-relu",
    "Two matrices do what one could.",
    hint="The ReLU between w_1 and w_2 is missing.",
    bend=lambda x: x,
)
layer(
    "bends-in-another-way",
    "What was trained with a ReLU is run with a GELU.",
    hint="GELU stands where ReLU is asked for.",
    symptom="loaded weights answer almost right, and a little worse than "
    "reported",
    bend=F.gelu,
)
layer(
    "norms-in-the-other-place",
    "Pre-LN, with the weights of a post-LN model.",
    hint="The norms come first, as in pre-LN: here a sum is normalised, "
    "`norm(x + sublayer(x))`.",
    symptom="trained weights of another library load without complaint, and "
    "the answers are noise",
    norm_first=True,
)
layer(
    "no-first-residual",
    "What attention returns replaces what came in.",
    hint="The first residual connection is missing: add `x` to what attention "
    "says.",
    residual=(0, 1),
)
layer(
    "one-residual-is-enough",
    "The network's result replaces what came in, instead of adding to it.",
    hint="The second residual connection is missing: add its input to what "
    "the feed-forward network says.",
    symptom="the loss ends a little higher, whatever is tuned",
    residual=(1, 0),
)
layer(
    "no-residual",
    "Each sub-layer replaces what came in.",
    hint="Both residual connections are missing.",
    residual=(0, 0),
)
layer(
    "norms-that-changed-places",
    "The first norm's gain and bias go to the second, and the other way.",
    hint="The norms have changed places: the first follows attention.",
    symptom="loaded weights answer worse than they should, and no test of "
    "shapes knows why",
    swapped=True,
)
layer(
    "sum-starts-from-the-norm",
    "Pre-LN, in which the name of the stream is given to what is normalised.",
    hint="The norms come first, and the sums start from what they returned: "
    "`x = norm(x)` loses what came in. Here a sum is normalised, "
    "`norm(x + sublayer(x))`.",
    symptom="deep stacks train as badly as post-LN ones, though norms come "
    "first",
    norm_first=True,
    normed_stream=True,
)
layer(
    "norm-on-the-branch",
    "`x + norm(sublayer(x))`: one bracket stands in another place.",
    hint="What a sub-layer says is normalised, and not the sum: "
    "`norm(x + sublayer(x))`.",
    symptom="it trains; trained weights of another library answer with noise",
    on_the_branch=True,
)
layer(
    "second-sum-from-the-input",
    "The residual around the network goes back to the layer's input.",
    hint="The second sum starts from the layer's input: add what the network "
    "says to what attention and its norm made.",
    symptom="the loss ends higher: what attention said is read by the network "
    "alone, and gets no further",
    from_the_input=True,
)
layer(
    "norm-unbiased",
    "`torch.std` with its default.",
    hint="The variance divides by d − 1: a norm divides by d.",
    norm=unbiased,
)
layer(
    "norm-over-the-sentence",
    "One mean and one variance for all positions.",
    hint="The norm runs over a whole sentence: take the mean and the variance "
    "of each vector.",
    norm=over_the_sentence,
)
layer(
    "mask-of-the-other-library",
    "Takes True for hidden, as some modules do.",
    hint="The mask is upside down: True means may attend.",
    symptom="the loss is too low to be true: rows find what is in their future",
    hide=hidden_where_true,
)
layer(
    "repaired-and-lost-its-network",
    "It raised a NameError in its last line, and whoever repaired it "
    "returned the variable before: the feed-forward network is never called.",
    symptom="it trains, a little worse, and 527,872 of its parameters never "
    "get a gradient",
    feeds_forward=False,
)
layer(
    "joined-without-the-last-matrix",
    "The heads are laid side by side, and that already has the right width.",
    symptom="the loss falls, and no head can use what another one found",
    joins=False,
)
for known in MASKED_SOFTMAX.mistakes:
    if known.hint and known.hint not in ENCODER_LAYER.hints:
        layer(known.id, known.story, known.hint, hide=known.make)
