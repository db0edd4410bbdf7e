"""What a block is made of, got wrong."""

import torch
import torch.nn.functional as F
from right import built
from right.blocks import feed_by_functions, norm_by_pytorch
from torch import nn

from wrong import wrong

# Layer normalisation


@wrong("layer_norm", "^`eps` is not used, or always the same. At batch")
def norm_without_eps(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / x.std(-1, correction=0, keepdim=True) + bias


@wrong("layer_norm", "^The gain is not used. At batch")
def norm_without_gain(x, gain, bias, eps):
    return F.layer_norm(x, x.shape[-1:], None, bias, eps)


@wrong("layer_norm", "^Neither gain nor bias is used. At batch")
def norm_alone(x, gain, bias, eps):
    return F.layer_norm(x, x.shape[-1:], eps=eps)


@wrong("layer_norm", "^It returned float32 for float16")
def norm_left_wide(x, gain, bias, eps):
    return norm_by_pytorch(x.float(), gain.float(), bias.float(), eps)


@wrong("layer_norm", "^With 0 axes before the features|^It raised")
def norm_of_axis_two(x, gain, bias, eps):
    mean, variance = x.mean(2, True), x.var(2, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


# The feed-forward network


NORM = built(lambda: nn.BatchNorm1d(12))
WHOLE = built(lambda: nn.Linear(60, 60))


@wrong("feed_forward", "^Only sentence 0 was changed, and sentence 1 moved")
def norm_over_sentences(x):
    return feed_by_functions((x - x.mean(0)) / (x.std(0, correction=0) + 1))


@wrong("feed_forward", "^Row 0 moves with position 1, ")
def norm_by_pytorchs_batch_norm(x):
    return feed_by_functions(NORM(x.mT).mT)


@wrong("feed_forward", "^Row 0 moves with position 1|^It raised RuntimeError")
def positions_run_together(x):
    return WHOLE(x.flatten(1).relu()).view_as(x)


@wrong("feed_forward", "^Row 0 does not move with position 0|^The output")
def own_input_lost(x):
    return feed_by_functions(torch.ones_like(x)) + 0 * x


@wrong(
    "feed_forward", "^Every vector that it returns has mean square 1: is the"
)
def root_mean_square_inside(x):
    return F.rms_norm(x + feed_by_functions(x), x.shape[-1:])


@wrong("feed_forward", "^It returned shape .*It is still d_ff wide")
def only_widened(x):
    return torch.cat([x, x], -1).relu()


@wrong("feed_forward", "^The first 1 positions of the first 3 sentences, run")
def divided_by_the_length(x):
    return feed_by_functions(x) / x.shape[1]
