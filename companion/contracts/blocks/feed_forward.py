"""Contracts of the feed-forward network, whatever weights it has of its own.

It does the same to every position, and knows of no other. Sizes are 2
sentences of 5 positions, and width 12.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    after,
    draw,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import (
    SHARE,
    reach,
    require_moved,
    require_silent,
)

SEQ, WIDTH = 5, 12
APART = (
    "Does a softmax, a normalisation or a convolution run over the positions? "
    "Only the last axis is to be touched."
)


def arguments(seed: int, batch: int = 2, seq: int = SEQ) -> Tensor:
    """Vectors near 1."""
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
    },
)


@FEED_FORWARD.before_reference
def positions_apart(fn: Guarded) -> None:
    """No position sees another."""
    seen = reach(fn, arguments(3))
    alone = torch.eye(SEQ, dtype=torch.bool).expand_as(seen)
    require_silent(seen, alone, "which is another position", APART)
    require_moved(seen, alone, "which is its own", "Is its input lost?")


@FEED_FORWARD.contract
@after(positions_apart)
def sentences_apart(fn: Guarded) -> None:
    """No sentence sees another."""
    x = arguments(5)
    before, x = fn(x), x.clone()
    x[0] += draw(SEQ, WIDTH, seed=7)
    after = fn(x)
    if furthest(after[1], before[1]) is not None:
        raise Broken(
            "Only sentence 0 was changed, and sentence 1 moved: does a "
            "normalisation run over the batch?",
            after[1],
            before[1],
        )


@FEED_FORWARD.contract
@after(positions_apart)
def same_everywhere(fn: Guarded) -> None:
    """Every position goes through the same weights."""
    x, order = arguments(11), torch.tensor([3, 0, 4, 2, 1])
    why = "What a position gets depends on where it stands."
    same(fn, fn(x[:, order]), fn(x)[:, order], why)


@FEED_FORWARD.contract
@after(positions_apart)
def bends(fn: Guarded) -> None:
    """It is not linear."""
    x, y = arguments(13), arguments(17)
    for size in (1.0, 3.0, 10.0):
        bend = fn(size * (x + y)) - fn(size * x) - fn(size * y) + fn(0 * x)
        if bend.abs().max() > 1e-3 * (fn(size * x) - fn(0 * x)).abs().max():
            return
    raise Broken(
        "f(x + y) = f(x) + f(y) − f(0), so two matrices do here what one "
        "could: is the ReLU between them missing?"
    )


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
    still = gaps <= SHARE * gaps.max()
    if still.any():
        row, feature = still.nonzero()[0].tolist()
        sign = ("positive", "negative")[row]
        raise Broken(
            f"Feature {feature} of `x` was changed where it is {sign}, and the "
            "output did not move: does a ReLU cut the input?"
        )


@FEED_FORWARD.contract
@after(positions_apart, sentences_apart)
def any_size(fn: Guarded) -> None:
    """It takes any batch and any length, 1 included."""
    x = arguments(29, 3, 11)
    whole = fn(x)
    for batch, seq in ((3, 1), (1, 11), (1, 1), (2, 5)):
        why = (
            f"The first {seq} positions of the first {batch} sentences, run "
            "alone, give other vectors than in the whole."
        )
        same(fn, fn(x[:batch, :seq]), whole[:batch, :seq], why)
