"""What a block is made of, got wrong."""

import torch
import torch.nn.functional as F
from right import built
from right.blocks import feed_by_functions, norm_by_pytorch
from torch import nn

from wrong import wrong

# Layer normalisation


@wrong("layer_norm", "^The statistics run over the batch: .* At batch")
def norm_over_the_batch(x, gain, bias, eps):
    mean, variance = x.mean(0), x.var(0, correction=0)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", "^The statistics run over the positions: .* At batch")
def norm_over_the_positions(x, gain, bias, eps):
    if x.ndim < 2:
        return norm_by_pytorch(x, gain, bias, eps)
    mean = x.mean(-2, keepdim=True)
    variance = x.var(-2, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", "as in BatchNorm: .* At batch")
def norm_of_batches(x, gain, bias, eps):
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) == 1:
        return norm_by_pytorch(x, gain, bias, eps)
    normal = F.batch_norm(rows, None, None, gain, bias, True, eps=eps)
    return normal.view_as(x)


@wrong("layer_norm", "^The statistics run over a whole sentence: .* At batch")
def norm_of_sentences(x, gain, bias, eps):
    normal = F.layer_norm(x, x.shape[-2:], eps=eps)
    return normal * gain + bias


@wrong("layer_norm", "^The variance divides by d − 1: here .* At batch")
def norm_unbiased(x, gain, bias, eps):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", "^The variance divides by d − 1, and eps stands outside")
def norm_by_std(x, gain, bias, eps):
    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return gain * (x - mean) / (std + eps) + bias


@wrong("layer_norm", "^eps stands outside the root: .* At batch")
def norm_eps_outside(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, correction=0, keepdim=True)
    return gain * (x - mean) / (std + eps) + bias


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


@wrong("layer_norm", "^The gain comes before the normalisation")
def norm_after_gain(x, gain, bias, eps):
    return F.layer_norm(x * gain, x.shape[-1:], None, bias, eps)


@wrong("layer_norm", "^The mean is not subtracted: this is RMSNorm. At")
def norm_by_root_mean_square(x, gain, bias, eps):
    return F.rms_norm(x, x.shape[-1:], gain, eps) + bias


@wrong("layer_norm", "^E.x². − E.x.² is the difference|NaN. E.x². − E.x.²")
def norm_by_difference(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = (x * x).mean(-1, keepdim=True) - mean**2
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


@wrong("layer_norm", "^It returned float32 for float16")
def norm_left_wide(x, gain, bias, eps):
    return norm_by_pytorch(x.float(), gain.float(), bias.float(), eps)


@wrong("layer_norm", "^With 0 axes before the features|^It raised")
def norm_of_axis_two(x, gain, bias, eps):
    mean, variance = x.mean(2, True), x.var(2, correction=0, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * gain + bias


# The feed-forward network


def network(*middle, d_ff=31):
    return built(
        lambda: nn.Sequential(nn.Linear(12, d_ff), *middle, nn.Linear(d_ff, 12))
    )


CONVOLUTION = built(lambda: nn.Conv1d(12, 12, 3, padding=1))
NORM = built(lambda: nn.BatchNorm1d(12))
WHOLE = built(lambda: nn.Linear(60, 60))


@wrong("feed_forward", "^Row 0 moves with position 1, .*or a convolution run")
def convolved_over_three(x):
    return feed_by_functions(CONVOLUTION(x.mT).mT)


@wrong("feed_forward", "^Row 0 moves with position 1, .*Does a softmax, a norm")
def softmax_over_positions(x):
    return feed_by_functions(x * x.softmax(1))


@wrong("feed_forward", "^Only sentence 0 was changed, and sentence 1 moved")
def norm_over_sentences(x):
    return feed_by_functions((x - x.mean(0)) / (x.std(0, correction=0) + 1))


@wrong("feed_forward", "^Row 0 moves with position 1, ")
def norm_by_pytorchs_batch_norm(x):
    return feed_by_functions(NORM(x.mT).mT)


@wrong("feed_forward", "^Row 0 moves with position 1|^It raised RuntimeError")
def positions_run_together(x):
    return WHOLE(x.flatten(1).relu()).view_as(x)


@wrong("feed_forward", "^What a position gets depends on where it stands. At")
def louder_towards_the_end(x):
    place = torch.arange(1, x.shape[1] + 1).unsqueeze(-1)
    return feed_by_functions(x) * place


@wrong("feed_forward", r"^f\(x \+ y\) = .* is the ReLU between them missing")
def without_activation(x):
    return network()(x)


@wrong("feed_forward", "^No number of 202 vectors has the other sign: does the")
def activation_last(x):
    return network()(x).relu()


@wrong("feed_forward", "^Feature 0 of `x` was changed where it is negative")
def activation_first(x):
    return network(nn.ReLU())(x.relu())


@wrong("feed_forward", "^Row 0 does not move with position 0|^The output")
def own_input_lost(x):
    return feed_by_functions(torch.ones_like(x)) + 0 * x


@wrong("feed_forward", "^Every vector .* has mean 0 and variance 1: .* norm")
def residual_and_norm_inside(x):
    return F.layer_norm(x + feed_by_functions(x), x.shape[-1:])


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
