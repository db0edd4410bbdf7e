"""Shared heads and RMS normalisation got wrong."""

import torch
import torch.nn.functional as F
from contracts.odd import wrong
from contracts.right.variants import by_repeating, norm_by_rsqrt, weights_of

# Grouped-query attention


def grouped(says):
    return wrong("grouped_query_attention", says)


def each(x, heads):
    """Every key head, for all its query heads."""
    return x.repeat_interleave(heads // x.shape[1], 1)


def attend(q, k, v, mask=None, scale=None):
    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale)


def mend(mixed, mask):
    """Zeros where nobody may be seen."""
    if mask is None:
        return mixed
    return mixed.masked_fill(~mask.any(-1, keepdim=True), 0)


@grouped("^The value heads take turns, .* Of 6 query heads on 2, head 1")
def values_repeated(q, k, v, mask=None):
    v = v.repeat(1, q.shape[1] // v.shape[1], 1, 1)
    return mend(attend(q, each(k, q.shape[1]), v, mask), mask)


@grouped("^The key and value heads take turns, .* Neighbouring query heads")
def group_axis_first(q, k, v, mask=None):
    """An axis for the group, on the wrong side of that of the key heads."""
    batch, heads, queries, width = q.shape
    kv_heads = k.shape[1]
    turned = q.reshape(batch, heads // kv_heads, kv_heads, queries, width)
    k, v = k.unsqueeze(1), v.unsqueeze(1)
    if mask is not None:
        mask = mask.expand(batch, heads, queries, k.shape[-2])
        mask = mask.reshape(*turned.shape[:3], queries, k.shape[-2])
    mixed = weights_of(turned @ k.mT / width**0.5, mask) @ v
    return mixed.flatten(1, 2)


@grouped("^The key and value heads are averaged: each group has its own. Of 6 ")
def averaged_heads(q, k, v, mask=None):
    return by_repeating(q, k.mean(1, True), v.mean(1, True), mask)


@grouped("^The groups are in the wrong order: the first query heads get key")
def groups_turned(q, k, v, mask=None):
    return by_repeating(q, k.flip(1), v.flip(1), mask)


@grouped("^The mask's heads are grouped as `repeat` would have it: head i has")
def mask_grouped_otherwise(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
        mask = mask.unflatten(1, (-1, k.shape[1])).transpose(1, 2).flatten(1, 2)
    return by_repeating(q, k, v, mask)


@grouped("^The mask of a group's first head is used for all of the group")
def one_mask_a_group(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4 and mask.shape[1] > 1:
        mask = each(mask[:, :: q.shape[1] // k.shape[1]], q.shape[1])
    return by_repeating(q, k, v, mask)


@grouped("^The scores are divided by the root of the group's size times d")
def scaled_by_the_group(q, k, v, mask=None):
    return by_repeating(q / (q.shape[1] / k.shape[1]) ** 0.5, k, v, mask)


@grouped("^The scores are not scaled: divide them by √d_k before the softmax")
def heads_unscaled(q, k, v, mask=None):
    return by_repeating(q * q.shape[-1] ** 0.5, k, v, mask)


@grouped("^Row 0 sees key 1, which is in its future. The mask is not used")
def heads_unmasked(q, k, v, mask=None):
    return by_repeating(q, k, v)


@grouped("^Row 0 sees key 1, .* multiplies the weights after the softmax")
def heads_masked_afterwards(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights if mask is None else weights * mask) @ v


@grouped("^Row 0 sees key 1, which is in its future. The mask is upside")
def heads_mask_upside_down(q, k, v, mask=None):
    return by_repeating(q, k, v, None if mask is None else ~mask)


@grouped("^The softmax runs over the queries: it belongs over the keys")
def heads_normalised_over_queries(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-2) @ v


@grouped("^With 6 heads for 6 each head is on its own. At batch")
def two_groups_at_most(q, k, v, mask=None):
    """Heads are paired even where each has a key of its own."""
    if k.shape[1] == 6:
        k, v = k[:, ::2], v[:, ::2]
    return by_repeating(q, k, v, mask)


@grouped("^With 1 key head all query heads share it. At batch")
def one_head_for_one(q, k, v, mask=None):
    if k.shape[1] == 1:
        k, v = each(k, q.shape[1]), each(v, q.shape[1])
        v = v * torch.arange(1, 1 + q.shape[1])[:, None, None]
    return by_repeating(q, k, v, mask)


@grouped("^This is not what .* returns with a causal mask. At batch")
def scaled_by_eleven(q, k, v, mask=None):
    return by_repeating(q * (q.shape[-1] / 11) ** 0.5, k, v, mask)


@grouped("^The mask of the first head is used for all: every query head has a")
def one_mask_for_all(q, k, v, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask[:, :1]
    return by_repeating(q, k, v, mask)


@grouped("^.*is NaN. All its scores are -∞, and the softmax of that is 0/0")
def nan_for_nobody(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


@grouped("^Row 1 may attend to nothing, and attends to all keys alike")
def an_average_for_nobody(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        low = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, low)
    return scores.softmax(-1) @ v


@grouped("^The gradient of `v` is NaN in row 0. Turning NaN into 0 after")
def mended_afterwards(q, k, v, mask=None):
    return nan_for_nobody(q, k, v, mask).nan_to_num(0)


@grouped("^This is not what .* returns for 2 groups of 3 heads. At batch")
def last_sentence_for_all(q, k, v, mask=None):
    mean = v.mean(0, keepdim=True).expand_as(v)
    return by_repeating(q, k, v + 0.2 * (mean - v).detach(), mask)


@grouped("^The score of key 1 was 10⁴: is it -∞ before the softmax")
def hidden_by_a_thousand(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    weights = (scores - 1000 * ~mask).softmax(-1).masked_fill(~mask, 0)
    return weights @ v


@grouped("^It returned float32 for float16: expected the number type of `q`")
def heads_left_wide(q, k, v, mask=None):
    return by_repeating(q.float(), k.float(), v.float(), mask)


@grouped("^It raised RuntimeError .*`.reshape` copies where `.view` cannot")
def viewed(q, k, v, mask=None):
    batch, heads, queries, width = q.shape
    q = q.view(batch * heads, queries, width).view(q.shape)
    return by_repeating(q, k, v, mask)


@grouped("^It returned shape .* There is one output for each key head: each q")
def an_output_a_group(q, k, v, mask=None):
    mixed = by_repeating(q, k, v, mask)
    return mixed.unflatten(1, (k.shape[1], -1)).mean(2)


@grouped("^It returned shape .* The groups have an axis of their own: flatten")
def groups_left_apart(q, k, v, mask=None):
    return by_repeating(q, k, v, mask).unflatten(1, (k.shape[1], -1))


@grouped("^It returned shape .* The heads are merged already: leave that to")
def merged_already(q, k, v, mask=None):
    return by_repeating(q, k, v, mask).transpose(1, 2).flatten(2)


# RMS normalisation


def norming(says):
    return wrong("rms_norm", says)


def size(x, eps, dim=-1):
    """The root of the mean square."""
    return (x.float().square().mean(dim, keepdim=True) + eps).sqrt()


def scaled(x, gain, by):
    """``x`` divided by a size, and times the gain."""
    return (x / by * gain).to(x.dtype)


@norming("^The mean is subtracted before the division: RMSNorm leaves it in")
def centred_above_the_line(x, gain, eps):
    return scaled(x - x.mean(-1, keepdim=True), gain, size(x, eps))


@norming("^It divides by the standard deviation, from which the mean is mis")
def divided_by_the_deviation(x, gain, eps):
    variance = x.float().var(-1, correction=0, keepdim=True)
    return scaled(x, gain, (variance + eps).sqrt())


@norming("^It divides by the standard deviation, with d − 1 at that: take the")
def divided_by_torchs_std(x, gain, eps):
    return scaled(x, gain, x.float().std(-1, keepdim=True) + eps)


@norming("^The squares are divided by d − 1: take their mean, over d")
def squares_unbiased(x, gain, eps):
    total = x.float().square().sum(-1, keepdim=True)
    return scaled(x, gain, (total / (x.shape[-1] - 1) + eps).sqrt())


@norming("^It divides by the length of the vector: the length is √d times")
def divided_by_the_length(x, gain, eps):
    total = x.float().square().sum(-1, keepdim=True)
    return scaled(x, gain, (total + eps).sqrt())


@norming("^eps stands outside the root: √.mean.x².* At batch")
def eps_outside(x, gain, eps):
    return scaled(x, gain, size(x, 0) + eps)


@norming("^`eps` is not used, or always the same. At batch")
def eps_fixed(x, gain, eps):
    return norm_by_rsqrt(x, gain, 1e-6)


@norming("^`eps` is not used, or always the same. At batch")
def eps_left_out(x, gain, eps):
    return scaled(x, gain, size(x, 0))


@norming("^The gain is not used. At batch")
def gain_left_out(x, gain, eps):
    return norm_by_rsqrt(x, torch.ones_like(gain), eps) + 0 * gain


@norming("^The gain is added: it multiplies. At batch")
def gain_added(x, gain, eps):
    return norm_by_rsqrt(x, torch.ones_like(gain), eps) + gain


@norming("^The gain comes before the normalisation, which wipes it out again")
def gain_before(x, gain, eps):
    return norm_by_rsqrt(x * gain, torch.ones_like(gain), eps)


@norming("^The mean square runs over the batch: take the mean .* At batch")
def size_of_the_batch(x, gain, eps):
    return scaled(x, gain, size(x, eps, 0))


@norming("^The mean square runs over the positions: take the mean square of ea")
def size_of_the_positions(x, gain, eps):
    return scaled(x, gain, size(x, eps, -2 if x.ndim > 1 else -1))


@norming("^The mean square runs over a whole sentence: take the mean square")
def size_of_a_sentence(x, gain, eps):
    return scaled(x, gain, size(x, eps, (-2, -1) if x.ndim > 1 else -1))


@norming("^The root is missing: divide by √.mean.x²")
def root_left_out(x, gain, eps):
    return scaled(x, gain, size(x, eps) ** 2)


@norming("^It multiplies by the root: divide by it. At batch")
def multiplied(x, gain, eps):
    return scaled(x, gain, 1 / size(x, eps))


@norming("^It divides by the mean of .x.: square first, and take the root")
def divided_by_the_mean_size(x, gain, eps):
    return scaled(x, gain, x.float().abs().mean(-1, keepdim=True) + eps)


@norming("^With 0 axes before the features|^It raised IndexError")
def norm_of_axis_2(x, gain, eps):
    return scaled(x, gain, size(x, eps, 2))


@norming("^.* is NaN. Its mean square is 0, and 0/0 is NaN: add eps to it")
def nan_for_zeros(x, gain, eps):
    safe = size(x, eps)
    return scaled(x, gain, safe.masked_fill((x == 0).all(-1, True), 0))


@norming("^The gradient of `x` is NaN where a vector is all 0: a root is")
def steep_at_zero(x, gain, eps):
    """The root of the squares, and eps only where it would be 0."""
    wide = x.float()
    root = wide.square().mean(-1, keepdim=True).sqrt()
    scale = torch.rsqrt(root**2 + eps)
    return (wide * scale).to(x.dtype) * gain


@norming("^It returned float32 for float16: expected the number type of `x`")
def norm_kept_wide(x, gain, eps):
    return norm_by_rsqrt(x.float(), gain.float(), eps)
