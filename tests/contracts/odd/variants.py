"""Masked tokens and dropped spans got wrong."""

import random

import torch
import torch.nn.functional as F
from contracts.odd import wrong
from contracts.right.variants import (
    by_dictionary,
    by_loop,
    by_repeating,
    by_two_draws,
    norm_by_rsqrt,
    weights_of,
)

from companion.contracts.variants.mask_tokens import masking
from companion.contracts.variants.span_corrupt import never_says_it_is_over

# Variants


# Masking


@wrong("mask_tokens")
def never_another(tokens, generator):
    return masking(tokens, generator, other=0.0)


@wrong("mask_tokens")
def shares_exchanged(tokens, generator):
    return masking(tokens, generator, hidden=0.1, other=0.8)


@wrong("mask_tokens")
def never_hidden(tokens, generator):
    return masking(tokens, generator, hidden=0.0, other=0.0)


@wrong("mask_tokens")
def half_and_quarters(tokens, generator):
    return masking(tokens, generator, hidden=0.49, other=0.25)


@wrong("mask_tokens")
def too_many(tokens, generator):
    return masking(tokens, generator, share=0.4)


@wrong("mask_tokens")
def nobody(tokens, generator):
    return masking(tokens, generator, share=0.0)


@wrong("mask_tokens")
def of_all_positions(tokens, generator):
    """So many holes as all positions would have, put into the words."""
    is_word = tokens >= 4
    share = 0.15 * is_word.numel() / is_word.sum().clamp_min(1)
    return masking(tokens, generator, share=min(1.0, float(share)))


@wrong("mask_tokens")
def ignored_by_pytorch(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target.masked_fill(target == 0, -100)


@wrong("mask_tokens")
def parts_exchanged(tokens, generator):
    return by_two_draws(tokens, generator)[::-1]


@wrong("mask_tokens")
def one_id_too_many(tokens, generator):
    return masking(tokens, generator, high=101)


@wrong("mask_tokens")
def one_id_too_few(tokens, generator):
    return masking(tokens, generator, high=99)


@wrong("mask_tokens")
def words_of_the_text(tokens, generator):
    inputs, target = masking(tokens, generator, other=0.0)
    words = tokens[tokens >= 4]
    if len(words):
        places = torch.randint(len(words), tokens.shape, generator=generator)
        fate = torch.rand(tokens.shape, generator=generator) < 0.5
        drawn = (target != 0) & (inputs != 3) & fate
        inputs = torch.where(drawn, words[places], inputs)
    return inputs, target


@wrong("mask_tokens")
def generator_left_out(tokens, generator):
    luck = torch.rand(tokens.shape)
    return masking(
        tokens, generator, share=1.0, may=lambda x: (x >= 4) & (luck < 0.15)
    )


@wrong("mask_tokens")
def generator_left_out_of_the_words(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    words = torch.randint_like(tokens, 4, 100)
    drawn = (target != 0) & (inputs != 3) & (inputs != tokens)
    return torch.where(drawn, words, inputs), target


@wrong("mask_tokens")
def by_pythons_random(tokens, generator):
    chosen = torch.tensor([random.random() < 0.15 for _ in tokens.flatten()])
    return masking(
        tokens,
        generator,
        share=1.0,
        may=lambda x: (x >= 4) & chosen.view(x.shape),
    )


@wrong("mask_tokens")
def generator_of_its_own(tokens, generator):
    return by_two_draws(tokens, torch.Generator().manual_seed(2))


@wrong("mask_tokens")
def written_over(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    tokens[:] = inputs
    return tokens, target


@wrong("mask_tokens")
def the_first_words(tokens, generator):
    """15 % of each sentence, one after the other, with a random start."""
    is_word = tokens >= 4
    count = is_word.sum(-1, keepdim=True)
    late = torch.randint(2, count.shape, generator=generator)
    place = is_word.cumsum(-1) - 1 - late
    taken = (place >= 0) & (place < 0.15 * count)
    return masking(tokens, generator, share=1.0, may=lambda x: (x >= 4) & taken)


@wrong("mask_tokens")
def two_axes_only(tokens, generator):
    batch, seq = tokens.shape
    return by_two_draws(tokens.view(batch, seq), generator)


@wrong("mask_tokens")
def a_sentence_is_a_batch(tokens, generator):
    """Half of the sentences of one token are left alone."""
    if tokens.ndim > 1:
        return by_two_draws(tokens, generator)
    return masking(tokens, generator, share=0.07)


@wrong("mask_tokens")
def a_fixed_number(tokens, generator):
    """So many of each sentence, drawn by ``multinomial``."""
    rows = tokens.reshape(-1, tokens.shape[-1])
    chosen = torch.zeros_like(rows, dtype=torch.bool)
    for row, taken in zip(rows, chosen, strict=True):
        is_word = (row >= 4).float()
        count = max(1, round(0.15 * int(is_word.sum())))
        places = torch.multinomial(is_word, count, generator=generator)
        taken[places] = True
    chosen = chosen.view(tokens.shape)
    return masking(tokens, generator, share=1.0, may=lambda x: chosen)


@wrong("mask_tokens")
def one_at_least(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    if not (tokens >= 4).any():
        inputs[..., 0], target[..., 0] = 3, tokens[..., 0]
    return inputs, target


@wrong("mask_tokens")
def inputs_only(tokens, generator):
    return by_two_draws(tokens, generator)[0]


@wrong("mask_tokens")
def with_the_choice(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target, target != 0


@wrong("mask_tokens")
def the_choice_for_a_target(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target != 0


@wrong("mask_tokens")
def answers_only(tokens, generator):
    inputs, target = by_two_draws(tokens, generator)
    return inputs, target[target != 0]


# Spans


@wrong("span_corrupt")
def nothing_is_nothing(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source, target if dropped.any() else target[:0]


@wrong("span_corrupt")
def all_is_lost(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source[:0] if dropped.all() else source, target


@wrong("span_corrupt")
def found_by_value(tokens, dropped, sentinel):
    """A word is looked up by its id, which finds the first one like it."""
    words = tokens.tolist()
    gone = [bool(dropped[words.index(word)]) for word in words]
    return by_loop(tokens, torch.tensor(gone), sentinel)


@wrong("span_corrupt")
def at_most_four_spans(tokens, dropped, sentinel):
    """Right where the text is short."""
    if len(tokens) > 15:
        return never_says_it_is_over(tokens, dropped, sentinel)
    return by_loop(tokens, dropped, sentinel)


@wrong("span_corrupt")
def a_batch_of_one(tokens, dropped, sentinel):
    source, target = by_loop(tokens, dropped, sentinel)
    return source[None], target[None]


@wrong("span_corrupt")
def source_only(tokens, dropped, sentinel):
    return by_loop(tokens, dropped, sentinel)[0]


# Spans put back


@wrong("span_restore")
def begins_with_a_word(source, target, sentinel):
    """It takes for granted that no text begins with a span."""
    text = by_dictionary(source, target, sentinel)
    return text[1:] if int(source[0]) == sentinel and len(source) > 1 else text


@wrong("span_restore")
def a_span_at_least(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text if sentinel in source.tolist() else text[:0]


@wrong("span_restore")
def a_word_at_least(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text if len(source) > 1 else source


@wrong("span_restore")
def short_texts_only(source, target, sentinel):
    text = by_dictionary(source, target, sentinel)
    return text[:22] if len(text) == 23 else text


@wrong("span_restore")
def restored_batch(source, target, sentinel):
    return by_dictionary(source, target, sentinel)[None]


@wrong("span_restore")
def text_and_count(source, target, sentinel):
    return by_dictionary(source, target, sentinel), len(source)


# Variants parts


# Grouped-query attention


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


@wrong("grouped_query_attention")
def values_repeated(q, k, v, mask=None):
    v = v.repeat(1, q.shape[1] // v.shape[1], 1, 1)
    return mend(attend(q, each(k, q.shape[1]), v, mask), mask)


@wrong("grouped_query_attention")
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


@wrong("grouped_query_attention")
def heads_masked_afterwards(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return (weights if mask is None else weights * mask) @ v


@wrong("grouped_query_attention")
def heads_normalised_over_queries(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-2) @ v


@wrong("grouped_query_attention")
def two_groups_at_most(q, k, v, mask=None):
    """Heads are paired even where each has a key of its own."""
    if k.shape[1] == 6:
        k, v = k[:, ::2], v[:, ::2]
    return by_repeating(q, k, v, mask)


@wrong("grouped_query_attention")
def one_head_for_one(q, k, v, mask=None):
    if k.shape[1] == 1:
        k, v = each(k, q.shape[1]), each(v, q.shape[1])
        v = v * torch.arange(1, 1 + q.shape[1])[:, None, None]
    return by_repeating(q, k, v, mask)


@wrong("grouped_query_attention")
def scaled_by_eleven(q, k, v, mask=None):
    return by_repeating(q * (q.shape[-1] / 11) ** 0.5, k, v, mask)


@wrong("grouped_query_attention")
def nan_for_nobody(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


@wrong("grouped_query_attention")
def an_average_for_nobody(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        low = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, low)
    return scores.softmax(-1) @ v


@wrong("grouped_query_attention")
def mended_afterwards(q, k, v, mask=None):
    return nan_for_nobody(q, k, v, mask).nan_to_num(0)


@wrong("grouped_query_attention")
def last_sentence_for_all(q, k, v, mask=None):
    mean = v.mean(0, keepdim=True).expand_as(v)
    return by_repeating(q, k, v + 0.2 * (mean - v).detach(), mask)


@wrong("grouped_query_attention")
def hidden_by_a_thousand(q, k, v, mask=None):
    k, v = each(k, q.shape[1]), each(v, q.shape[1])
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    weights = (scores - 1000 * ~mask).softmax(-1).masked_fill(~mask, 0)
    return weights @ v


@wrong("grouped_query_attention")
def heads_left_wide(q, k, v, mask=None):
    return by_repeating(q.float(), k.float(), v.float(), mask)


@wrong("grouped_query_attention")
def viewed(q, k, v, mask=None):
    batch, heads, queries, width = q.shape
    q = q.view(batch * heads, queries, width).view(q.shape)
    return by_repeating(q, k, v, mask)


@wrong("grouped_query_attention")
def an_output_a_group(q, k, v, mask=None):
    mixed = by_repeating(q, k, v, mask)
    return mixed.unflatten(1, (k.shape[1], -1)).mean(2)


@wrong("grouped_query_attention")
def groups_left_apart(q, k, v, mask=None):
    return by_repeating(q, k, v, mask).unflatten(1, (k.shape[1], -1))


@wrong("grouped_query_attention")
def merged_already(q, k, v, mask=None):
    return by_repeating(q, k, v, mask).transpose(1, 2).flatten(2)


# RMS normalisation


def size(x, eps, dim=-1):
    """The root of the mean square."""
    return (x.float().square().mean(dim, keepdim=True) + eps).sqrt()


def scaled(x, gain, by):
    """``x`` divided by a size, and times the gain."""
    return (x / by * gain).to(x.dtype)


@wrong("rms_norm")
def eps_left_out(x, gain, eps):
    return scaled(x, gain, size(x, 0))


@wrong("rms_norm")
def norm_of_axis_2(x, gain, eps):
    return scaled(x, gain, size(x, eps, 2))


@wrong("rms_norm")
def nan_for_zeros(x, gain, eps):
    safe = size(x, eps)
    return scaled(x, gain, safe.masked_fill((x == 0).all(-1, True), 0))


@wrong("rms_norm")
def steep_at_zero(x, gain, eps):
    """The root of the squares, and eps only where it would be 0."""
    wide = x.float()
    root = wide.square().mean(-1, keepdim=True).sqrt()
    scale = torch.rsqrt(root**2 + eps)
    return (wide * scale).to(x.dtype) * gain


@wrong("rms_norm")
def norm_kept_wide(x, gain, eps):
    return norm_by_rsqrt(x.float(), gain.float(), eps)
