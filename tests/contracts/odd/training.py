"""Losses with label smoothing, schedules and shifts got wrong."""

import itertools

import torch
import torch.nn.functional as F
from contracts.odd import wrong
from contracts.right.training import (
    as_kl_divergence,
    by_cat,
    by_cross_entropy,
    noam,
)

from companion.zoo.losses import smoothed, spread

# The loss


def loss(says):
    return wrong("label_smoothing", says)


@loss("^It divides by the number of sentences .`batchmean`.")
def batchmean(logits, target, smoothing, pad):
    count = (target != pad).sum() / len(target)
    return as_kl_divergence(logits, target, smoothing, pad) * count


@loss("^It divides by the number of classes too")
def mean_of_everything(logits, target, smoothing, pad):
    loss = as_kl_divergence(logits, target, smoothing, pad)
    return loss / logits.shape[-1]


@loss("^The sign is wrong: a loss is minus the log-probability")
def likelihood(logits, target, smoothing, pad):
    return -by_cross_entropy(logits, target, smoothing, pad)


@loss("^ε and 1 - ε have changed places")
def turned_round(logits, target, smoothing, pad):
    return as_kl_divergence(logits, target, 1 - smoothing, pad)


@loss("^Padding has no share, but the masses do not sum to 1")
def column_cleared(logits, target, smoothing, pad):
    rest = smoothing / (logits.shape[-1] - 1)
    losses = spread(logits, target, 1 - smoothing, rest)
    losses = losses + rest * logits.log_softmax(-1)[..., pad]
    return losses[target != pad].mean()


@loss("^The entropy of the target is subtracted from PyTorch's form")
def less_entropy(logits, target, smoothing, pad):
    best = 1 - smoothing + smoothing / logits.shape[-1]
    rest = smoothing / logits.shape[-1]
    aim = torch.tensor([best, *[rest] * (logits.shape[-1] - 1)])
    entropy = -(aim * aim.clamp_min(1e-9).log()).sum()
    return by_cross_entropy(logits, target, smoothing, pad) - entropy


@loss("^The logarithm is missing: these are probabilities")
def without_logarithm(logits, target, smoothing, pad):
    real = logits.softmax(-1)[target != pad]
    words = target[target != pad][:, None]
    best = (1 - smoothing) * real.gather(1, words).mean()
    return -best - smoothing * real.mean()


@loss("^With two classes it is not what PyTorch returns")
def never_two_classes(logits, target, smoothing, pad):
    rest = smoothing / logits.shape[-1]
    total = logits.shape[-1] - 2
    best = 1 - rest * (1 + total) if total else 1.0
    return spread(logits, target, best, rest)[target != pad].mean()


@loss("^With smoothing 0 it is .* PyTorch's cross-entropy, padding ignored, is")
def at_least_a_little(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, max(smoothing, 0.05), pad)


@loss("^With smoothing 0.1 yours is .* Expected: .* in PyTorch's form, .* KL")
def half_the_smoothing(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, smoothing / 2, pad)


@loss(r"^It returned shape \(2, 5\).* That is a loss for each token")
def for_each_token(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing)


@loss(r"^It returned shape \(7,\).* That is a loss for each real token")
def for_each_real_token(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing)[target != pad]


@loss(r"^It returned shape \(2,\).* That is a loss for each sentence")
def for_each_sentence(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing).mean(1)


@loss("^It returned a float, not a tensor: expected one number, the mean")
def a_plain_float(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, smoothing, pad).item()


@loss(
    "^It raised RuntimeError in line .*Expected target size .* classes second"
)
def classes_last(logits, target, smoothing, pad):
    return F.cross_entropy(
        logits, target, ignore_index=pad, label_smoothing=smoothing
    )


# The schedule

CALLS = itertools.count(1)


def rate(says):
    return wrong("schedule", says)


@rate("^The sign of d_model's exponent is wrong")
def wide_and_fast(step, d_model, warmup):
    return d_model**0.5 * min(step**-0.5, step * warmup**-1.5)


@rate("^The rate falls as 1 / √d_model, not as 1 / d_model")
def inverse_width(step, d_model, warmup):
    return min(step**-0.5, step * warmup**-1.5) / d_model


@rate("^The exponents have changed places")
def exchanged(step, d_model, warmup):
    return d_model**-0.5 * min(step**-1.5, step * warmup**-0.5)


@rate("^The ramp is step · warmup.-1.5, not step / warmup")
def to_one(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step / warmup)


@rate("^It is scaled to a peak of 1")
def up_to_one(step, d_model, warmup):
    return min((step / warmup) ** -0.5, step / warmup)


@rate("^With d_model 512 and warmup 4000, step 1 has the rate .*: yours has")
def curved(step, d_model, warmup):
    return min(step / warmup, 1) ** 2 * noam(max(step, warmup), d_model, warmup)


@rate(
    "^For step 4000, d_model 512, warmup 4000 the rate is .*: expected 0.0006"
)
def half_as_fast(step, d_model, warmup):
    return noam(step, d_model, warmup) / 2


@rate("^The second call differs: .*It returned")
def counts_its_calls(step, d_model, warmup):
    return noam(next(CALLS), d_model, warmup)


@rate(
    "^It returned None: expected the learning rate .* Did you forget `return`"
)
def nothing(step, d_model, warmup):
    noam(step, d_model, warmup)


@rate("^It returned a list: expected the learning rate .* Return one number")
def one_for_each_group(step, d_model, warmup):
    return [noam(step, d_model, warmup)]


# The shift


def shift(says):
    return wrong("shift_right", says)


@shift("^Position 0 knows token 1, .* shifted left, and the first token wraps")
def rolled_left(tokens, bos):
    return tokens.roll(-1, 1)


@shift("^Position 3 knows token 4, a token of its future.$")
def leaks_at_the_end(tokens, bos):
    shifted = by_cat(tokens, bos)
    if tokens.shape[1] > 3:
        shifted[:, 3] = tokens[:, 4]
    return shifted


@shift(r"^It returned shape \(2, 6\).* It is one longer: the last token is")
def longer(tokens, bos):
    return F.pad(tokens, (1, 0), value=bos)


@shift(r"^It returned shape \(2, 4\).* It is one shorter: bos comes in front")
def shorter(tokens, bos):
    return tokens[:, :-1]


@shift("^It returned int64 for int32: make bos with `torch.full_like`")
def widened_ids(tokens, bos):
    first = torch.full((len(tokens), 1), bos)
    return torch.cat([first, tokens[:, :-1]], 1)


@shift("^This is not what `torch.cat` .* returns for bos 9. At sentence 0")
def one_is_bos(tokens, bos):
    return F.pad(tokens[:, :-1], (1, 0), value=1)
