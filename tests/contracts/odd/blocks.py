"""What a block is made of, got wrong."""

import torch
import torch.nn.functional as F
from contracts.odd import wrong
from contracts.right import built
from contracts.right.blocks import feed_by_functions, norm_by_pytorch
from torch import nn

# Layer normalisation


@wrong("layer_norm")
def norm_without_eps(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return gain * (x - mean) / x.std(-1, correction=0, keepdim=True) + bias


@wrong("layer_norm")
def norm_left_wide(x, gain, bias, eps):
    return norm_by_pytorch(x.float(), gain.float(), bias.float(), eps)


@wrong("layer_norm")
def norm_of_axis_two(x, gain, bias, eps):
    mean, variance = x.mean(2, True), x.var(2, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


# The feed-forward network


NORM = built(lambda: nn.BatchNorm1d(12))
WHOLE = built(lambda: nn.Linear(60, 60))


@wrong("feed_forward")
def norm_over_sentences(x):
    return feed_by_functions((x - x.mean(0)) / (x.std(0, correction=0) + 1))


@wrong("feed_forward")
def norm_by_pytorchs_batch_norm(x):
    return feed_by_functions(NORM(x.mT).mT)


@wrong("feed_forward")
def positions_run_together(x):
    return WHOLE(x.flatten(1).relu()).view_as(x)


@wrong("feed_forward")
def own_input_lost(x):
    return feed_by_functions(torch.ones_like(x)) + 0 * x


@wrong("feed_forward")
def root_mean_square_inside(x):
    return F.rms_norm(x + feed_by_functions(x), x.shape[-1:])


@wrong("feed_forward")
def only_widened(x):
    return torch.cat([x, x], -1).relu()


@wrong("feed_forward")
def divided_by_the_length(x):
    return feed_by_functions(x) / x.shape[1]
