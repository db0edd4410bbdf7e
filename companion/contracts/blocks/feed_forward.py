"""The feed-forward network, whatever weights it has of its own.

It does the same to every position, and knows of no other. Sizes are 2
sentences of 5 positions, and width 12.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.blocks import LayerNorm
from companion.contracts.engine.compare import Broken, after, draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    batch_independence,
    equivariance,
    is_linear_once_normed,
    part_as_in_the_whole,
    require_not_linear,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import (
    SHARE,
    reach,
    require_moved,
    require_silent,
)

__all__ = ["FEED_FORWARD"]

SEQ, WIDTH = 5, 12
APART = (
    "Does a softmax, a normalisation or a convolution run over the positions, "
    "or does a `view` stand where a transpose is meant? Only the last axis is "
    "to be touched."
)
LINEAR_BEHIND_A_NORM = (
    "Behind its norm it is linear: vectors of mean 0 and variance 1 are mapped "
    "as by one matrix. Two matrices do there what one could: is the ReLU "
    "between them missing?"
)


def arguments(seed: int, batch: int = 2, seq: int = SEQ) -> Tensor:
    """Draw vectors near 1."""
    return draw(batch, seq, WIDTH, seed=seed)


FEED_FORWARD = Component(
    name="feed_forward",
    weights=True,
    signature="feed_forward(x)",
    returns="one vector for each position (batch, seq, d_model)",
    shape=lambda x: x.shape,
    cases=lambda: {"as it is": (arguments(2),)},
    shape_hints={
        "It is still d_ff wide: the second projection leads back to d_model.": (
            lambda x: (*x.shape[:2], None)
        ),
        "Half of the batch is gone: `chunk` and `split` cut axis 0 unless they "
        "are told `dim=-1`.": lambda x: (len(x) // 2, *x.shape[1:]),
    },
)
ORDER = torch.tensor([3, 0, 4, 2, 1], device="cpu")


@FEED_FORWARD.before_reference
def positions_apart(fn: Guarded) -> None:
    """No position sees another."""
    seen = reach(fn, arguments(3))
    alone = torch.eye(SEQ, dtype=torch.bool).expand_as(seen)
    require_silent(seen, alone, "which is another position", APART)
    require_moved(seen, alone, "which is its own", "Is its input lost?")


sentences_apart = FEED_FORWARD.contract(
    after(positions_apart)(
        batch_independence(
            "No sentence sees another",
            lambda: (arguments(5),),
            lambda x: (torch.stack([x[0] + draw(SEQ, WIDTH, seed=7), x[1]]),),
            why="does a normalisation run over the batch?",
        )
    )
)
FEED_FORWARD.contract(
    after(positions_apart)(
        equivariance(
            "Every position goes through the same weights",
            lambda: (arguments(11),),
            lambda x: (x[:, ORDER],),
            lambda y: y[:, ORDER],
            why="What a position gets depends on where it stands.",
        )
    )
)


@FEED_FORWARD.contract
@after(positions_apart)
def bends(fn: Guarded) -> None:
    """It is not linear."""
    why = (
        "f(x + y) = f(x) + f(y) − f(0), so two matrices do here what one "
        "could: is the ReLU between them missing?"
    )
    x, y = arguments(13), arguments(17)
    require_not_linear(fn, x, y, why)
    if is_linear_once_normed(fn, x, y):
        raise Broken(LINEAR_BEHIND_A_NORM)


@FEED_FORWARD.contract
@after(positions_apart)
def both_signs(fn: Guarded) -> None:
    """The output takes both signs."""
    got = fn(draw(2, 101, WIDTH, seed=19))
    one_sided = (got >= 0).all() or (got <= 0).all()
    if one_sided:
        raise Broken(
            "No number of 202 vectors has the other sign: does the ReLU come "
            "last? It belongs between the two matrices.",
            got,
        )


@FEED_FORWARD.contract
@after(positions_apart)
def own_size(fn: Guarded) -> None:
    """The vectors it returns have sizes of their own."""
    got = fn(draw(2, 101, WIDTH, seed=31)).detach()
    sizes, means = got.square().mean(-1), got.mean(-1)
    # A large bias may make sizes alike, but then the vectors are alike too.
    differ = got.flatten(0, 1).std(0).square().mean() > 0.01
    if differ and (sizes - 1).abs().max() < 0.01:
        centred = means.abs().max() < 0.01
        what = "mean 0 and variance 1" if centred else "mean square 1"
        raise Broken(
            f"Every vector that it returns has {what}: is the layer's norm "
            "inside? Residual and norm belong to the layer around it.",
            got,
        )


@FEED_FORWARD.contract
@after(positions_apart)
def every_feature(fn: Guarded) -> None:
    """Every feature of the input counts, in both directions."""
    x, gaps = arguments(23).abs(), torch.zeros(2, WIDTH)
    for feature in range(WIDTH):
        for row, sign in enumerate((1, -1)):
            changed = x.clone()
            changed[..., feature] += 3
            gap = fn(sign * changed) - fn(sign * x)
            gaps[row, feature] = gap.detach().abs().max()
    unmoved = gaps <= SHARE * gaps.max()
    if unmoved.any():
        row, feature = unmoved.nonzero()[0].tolist()
        sign = ("positive", "negative")[row]
        raise Broken(
            f"Feature {feature} of `x` was changed where it is {sign}, and the "
            "output did not move: does a ReLU cut the input?"
        )


FEED_FORWARD.contract(
    after(positions_apart, sentences_apart)(
        part_as_in_the_whole(
            "It takes any batch and any length, 1 included",
            lambda: (arguments(29, 3, 11),),
            lambda batch, seq, x: (x[:batch, :seq],),
            why="The first {seq} positions of the first {batch} sentences, run "
            "alone, give other vectors than in the whole.",
        )
    )
)


# Known mistakes


class Network(nn.Module):
    """Two matrices with a ReLU between them."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(12, 47), nn.Linear(47, 12)

    def forward(self, x):
        """The same for every position."""
        return self.down(self.up(x).relu())


@FEED_FORWARD.mistake(
    symptom="a decoder's loss is too good: it reads the next word here"
)
class ConvolutionOfWidthThree(Network):
    """Reads both neighbours of a position along with it."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv1d(12, 12, 3, padding=1)

    def forward(self, x):
        return super().forward(self.mix(x.mT).mT)


@FEED_FORWARD.mistake(
    symptom="rows change with the length of the sentence, padding included"
)
class GateOverThePositions(Network):
    """The gate is a softmax over `dim=1`, and that is the positions."""

    def forward(self, x):
        return super().forward(x * x.softmax(1))


@FEED_FORWARD.mistake(
    symptom="it tests well, and trains otherwise with each size of batch"
)
class NormOverTheBatch(Network):
    """A BatchNorm inside, which in evaluation mode is only a scale."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12)

    def forward(self, x):
        return super().forward(self.norm(x.mT).mT)


@FEED_FORWARD.mistake(
    symptom="two thirds of the weights are spent, and the loss is as without"
)
class NothingBetween(Network):
    """Two matrices in a row do what one could."""

    def forward(self, x):
        return self.down(self.up(x))


@FEED_FORWARD.mistake(
    symptom="the stream only ever grows, and norms have to take it back"
)
class EndsWithARelu(Network):
    """Every matrix is followed by a ReLU, the last one too."""

    def forward(self, x):
        return super().forward(x).relu()


@FEED_FORWARD.mistake(
    symptom="half of what arrives is thrown away, and the loss ends higher"
)
class BeginsWithARelu(Network):
    """Cuts off the negative half of the stream before it reads it."""

    def forward(self, x):
        return super().forward(x.relu())


@FEED_FORWARD.mistake(
    symptom="with the layer's own norm and sum there are two of each, and "
    "deep stacks train badly"
)
class AddsAndNormsItself(Network):
    """Residual and norm are inside, and the layer around it has them too."""

    def __init__(self):
        super().__init__()
        self.norm = LayerNorm(12)

    def forward(self, x):
        return self.norm(x + super().forward(x))


@FEED_FORWARD.mistake(
    symptom="it learns as if a third of its weights were not there"
)
class GateThatIsNotCalled(Network):
    """SwiGLU, whose gate is built, and lets through whatever comes."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 47, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


@FEED_FORWARD.mistake(
    symptom="the same question has another answer each time, in use too"
)
class DropsOutForEver(Network):
    """The function does not know that training is over: nobody told it."""

    def forward(self, x):
        return self.down(F.dropout(self.up(x).relu(), 0.1, training=True))


@FEED_FORWARD.mistake(
    symptom="words at the end of a sentence shout the others down"
)
class LouderTowardsTheEnd(Network):
    """Scales a position by its place, as if each were to have its own
    network."""

    def forward(self, x):
        place = torch.arange(1, x.shape[1] + 1)[:, None]
        return super().forward(x) * place / x.shape[1]


@FEED_FORWARD.mistake(
    symptom="it trains, and each word gets a part of what its neighbours say"
)
class ViewedForAConvolution(Network):
    """A convolution wants features second, and `reshape` puts them there."""

    def forward(self, x):
        turned = x.reshape(len(x), x.shape[2], x.shape[1])
        inner = F.conv1d(turned, self.up.weight[..., None], self.up.bias)
        outer = F.conv1d(
            inner.relu(), self.down.weight[..., None], self.down.bias
        )
        return outer.reshape(x.shape)


@FEED_FORWARD.mistake()
class HalvesTheBatch(Network):
    """A gate and a value are cut apart, and `chunk` cuts the sentences."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(12, 94)
        self.down = nn.Linear(94, 12)

    def forward(self, x):
        gate, value = self.up(x).chunk(2)
        return self.down(F.silu(gate) * value)


@FEED_FORWARD.mistake(
    symptom="the loss stays where it began, and evaluation is noise"
)
class BuiltInItsForward(Network):
    """The second matrix is built where it is used, and drawn at each call."""

    def __init__(self):
        super().__init__()
        del self.down

    def forward(self, x):
        inner = self.up(x).relu()
        return nn.Linear(inner.shape[-1], x.shape[-1])(inner)
