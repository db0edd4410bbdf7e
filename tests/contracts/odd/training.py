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

# The loss


@wrong("label_smoothing")
def batchmean(logits, target, smoothing, pad):
    count = (target != pad).sum() / len(target)
    return as_kl_divergence(logits, target, smoothing, pad) * count


@wrong("label_smoothing")
def mean_of_everything(logits, target, smoothing, pad):
    loss = as_kl_divergence(logits, target, smoothing, pad)
    return loss / logits.shape[-1]


@wrong("label_smoothing")
def turned_round(logits, target, smoothing, pad):
    return as_kl_divergence(logits, target, 1 - smoothing, pad)


@wrong("label_smoothing")
def never_two_classes(logits, target, smoothing, pad):
    smoothing = smoothing if logits.shape[-1] > 2 else 0.0
    return by_cross_entropy(logits, target, smoothing, pad)


@wrong("label_smoothing")
def at_least_a_little(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, max(smoothing, 0.05), pad)


@wrong("label_smoothing")
def half_the_smoothing(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, smoothing / 2, pad)


def smoothed(logits, target, smoothing):
    return F.cross_entropy(
        logits.mT, target, label_smoothing=smoothing, reduction="none"
    )


@wrong("label_smoothing")
def for_each_token(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing)


@wrong("label_smoothing")
def for_each_real_token(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing)[target != pad]


@wrong("label_smoothing")
def for_each_sentence(logits, target, smoothing, pad):
    return smoothed(logits, target, smoothing).mean(1)


@wrong("label_smoothing")
def a_plain_float(logits, target, smoothing, pad):
    return by_cross_entropy(logits, target, smoothing, pad).item()


@wrong("label_smoothing")
def classes_last(logits, target, smoothing, pad):
    return F.cross_entropy(
        logits, target, ignore_index=pad, label_smoothing=smoothing
    )


# The schedule

CALLS = itertools.count(1)


@wrong("schedule")
def curved(step, d_model, warmup):
    return min(step / warmup, 1) ** 2 * noam(max(step, warmup), d_model, warmup)


@wrong("schedule")
def half_as_fast(step, d_model, warmup):
    return noam(step, d_model, warmup) / 2


@wrong("schedule")
def counts_its_calls(step, d_model, warmup):
    return noam(next(CALLS), d_model, warmup)


@wrong("schedule")
def nothing(step, d_model, warmup):
    noam(step, d_model, warmup)


@wrong("schedule")
def one_for_each_group(step, d_model, warmup):
    return [noam(step, d_model, warmup)]


# The shift


@wrong("shift_right")
def leaks_at_the_end(tokens, bos):
    shifted = by_cat(tokens, bos)
    if tokens.shape[1] > 3:
        shifted[:, 3] = tokens[:, 4]
    return shifted


@wrong("shift_right")
def longer(tokens, bos):
    return F.pad(tokens, (1, 0), value=bos)


@wrong("shift_right")
def shorter(tokens, bos):
    return tokens[:, :-1]


@wrong("shift_right")
def widened_ids(tokens, bos):
    first = torch.full((len(tokens), 1), bos)
    return torch.cat([first, tokens[:, :-1]], 1)


@wrong("shift_right")
def one_is_bos(tokens, bos):
    return F.pad(tokens[:, :-1], (1, 0), value=1)
