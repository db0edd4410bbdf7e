"""The masks of a Transformer got wrong."""

import torch
from contracts.odd import wrong
from contracts.right.masks import causal_by_tril as causal
from contracts.right.masks import combined_in_a_tuple, padding_by_comparison

# The causal mask


@wrong("causal_mask")
def additive(length):
    return torch.full((length, length), -torch.inf).triu(1)


@wrong("causal_mask")
def additive_with_nan(length):
    return torch.ones(length, length).triu(1) * -torch.inf


@wrong("causal_mask")
def one_row(length):
    return torch.ones(length, dtype=torch.bool)


@wrong("causal_mask")
def too_short(length):
    return causal(length - 1)


@wrong("causal_mask")
def nobody_before_the_first(length):
    return causal(length) & (length > 1)


# The padding mask


@wrong("padding_mask")
def without_axes(tokens, pad):
    return tokens != pad


@wrong("padding_mask")
def with_one_axis(tokens, pad):
    return (tokens != pad)[:, None]


@wrong("padding_mask")
def with_a_last_axis(tokens, pad):
    return (tokens != pad).unsqueeze(-1)


@wrong("padding_mask")
def with_two_last_axes(tokens, pad):
    return (tokens != pad)[:, :, None, None]


@wrong("padding_mask")
def without_heads(tokens, pad):
    return (tokens != pad)[:, None, :].expand(-1, tokens.shape[-1], -1)


@wrong("padding_mask")
def for_eight_heads(tokens, pad):
    return padding_by_comparison(tokens, pad).expand(-1, 8, -1, -1)


@wrong("padding_mask")
def added_to_scores(tokens, pad):
    return torch.zeros(tokens.shape).masked_fill(tokens == pad, -1e9)


@wrong("padding_mask")
def nine_is_never_padding(tokens, pad):
    return ((tokens != pad) | (tokens == 9))[:, None, None]


@wrong("padding_mask")
def one_alone_needs_none(tokens, pad):
    return padding_by_comparison(tokens, pad) | (len(tokens) == 1)


# Three masks


def three(src_tokens, tgt_tokens, pad):
    return combined_in_a_tuple(src_tokens, tgt_tokens, pad)


def changed(which):
    """Register a mistake in one of the three masks."""

    def register(change):
        def mistake(src_tokens, tgt_tokens, pad):
            masks = list(three(src_tokens, tgt_tokens, pad))
            masks[which] = change(src_tokens, tgt_tokens, pad)
            return tuple(masks)

        mistake.__name__ = change.__name__
        wrong("combine_masks")(mistake)
        return change

    return register


@changed(1)
def padding_forgotten_with_its_axes(src, tgt, pad):
    return causal(tgt.shape[-1])


@changed(1)
def target_without_heads(src, tgt, pad):
    return (tgt != pad)[:, None] & causal(tgt.shape[-1])


@changed(1)
def target_for_eight_heads(src, tgt, pad):
    real = padding_by_comparison(tgt, pad) & causal(tgt.shape[-1])
    return real.expand(-1, 8, -1, -1)


@changed(1)
def target_upside_down(src, tgt, pad):
    return ~(padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]))


@changed(1)
def target_transposed(src, tgt, pad):
    return padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]).mT


@changed(1)
def target_without_diagonal(src, tgt, pad):
    return padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]).tril(-1)


@changed(0)
def source_rows_too(src, tgt, pad):
    return padding_by_comparison(src, pad) & padding_by_comparison(src, pad).mT


@changed(0)
def source_rows(src, tgt, pad):
    return padding_by_comparison(src, pad).mT


@changed(2)
def cross_from_the_target(src, tgt, pad):
    return padding_by_comparison(tgt, pad)


@changed(0)
def source_with_two_last_axes(src, tgt, pad):
    return (src != pad)[:, :, None, None]


@changed(2)
def cross_rows_too(src, tgt, pad):
    queries = padding_by_comparison(tgt, pad).mT
    return padding_by_comparison(src, pad) & queries


@changed(2)
def cross_without_axes(src, tgt, pad):
    return src != pad


@wrong("combine_masks")
def pad_is_zero(src_tokens, tgt_tokens, pad):
    return three(src_tokens, tgt_tokens, 0)


@wrong("combine_masks")
def another_order(src_tokens, tgt_tokens, pad):
    src, tgt, cross = three(src_tokens, tgt_tokens, pad)
    return tgt, src, cross


@wrong("combine_masks")
def only_two(src_tokens, tgt_tokens, pad):
    return three(src_tokens, tgt_tokens, pad)[:2]


@wrong("combine_masks")
def none(src_tokens, tgt_tokens, pad):
    three(src_tokens, tgt_tokens, pad)


@wrong("combine_masks")
def all_additive(src_tokens, tgt_tokens, pad):
    masks = three(src_tokens, tgt_tokens, pad)
    return [torch.zeros(m.shape).masked_fill(~m, -1e9) for m in masks]


@wrong("combine_masks")
def a_source_alone_needs_none(src_tokens, tgt_tokens, pad):
    src, tgt, cross = three(src_tokens, tgt_tokens, pad)
    return src | (len(src) == 1), tgt, cross
