"""The masks of a Transformer got wrong."""

import torch
from right.masks import causal_by_tril as causal
from right.masks import (
    combined_in_a_tuple,
    padding_by_comparison,
)

from wrong import wrong

# The causal mask


@wrong("causal_mask", "^Position 0 sees position 1, .* It hides nothing")
def hides_nothing(length):
    return torch.ones(length, length, dtype=torch.bool)


@wrong("causal_mask", "^Position 1 does not see position 0, which is in its p")
def only_itself(length):
    return torch.eye(length) > 0


@wrong("causal_mask", "^It returned float32: expected bool. 0 and -∞ are for")
def additive(length):
    return torch.full((length, length), -torch.inf).triu(1)


@wrong("causal_mask", "^It returned float32: expected bool. 0 and -∞ are for")
def additive_with_nan(length):
    return torch.ones(length, length).triu(1) * -torch.inf


@wrong("causal_mask", "^It returned float32: expected bool. Compare")
def ones_and_zeros(length):
    return torch.ones(length, length).tril()


@wrong("causal_mask", r"^It returned shape \(5,\).* a row of its own")
def one_row(length):
    return torch.ones(length, dtype=torch.bool)


@wrong("causal_mask", r"shape \(4, 4\): expected \(5, 5\)")
def too_short(length):
    return causal(length - 1)


@wrong("causal_mask", "^For length 1 it is not what torch.tril gives")
def nobody_before_the_first(length):
    return causal(length) & (length > 1)


# The padding mask


@wrong("padding_mask", "Tokens are compared with the last token")
def unlike_the_last(tokens, pad):
    return (tokens != tokens[:, -1:])[:, None, None, :]


@wrong("padding_mask", "^In sentence 0, query .* a padding mask knows no order")
def causal_too(tokens, pad):
    return padding_by_comparison(tokens, pad) & causal(tokens.shape[-1])


@wrong("padding_mask", r"^It returned shape \(2, 5\).* sentence 1 would mask q")
def without_axes(tokens, pad):
    return tokens != pad


@wrong("padding_mask", r"^It returned shape \(2, 1, 5\).* would mask head 1")
def with_one_axis(tokens, pad):
    return (tokens != pad)[:, None]


@wrong("padding_mask", r"shape \(2, 5, 1\).* keys come last")
def with_a_last_axis(tokens, pad):
    return (tokens != pad).unsqueeze(-1)


@wrong("padding_mask", r"shape \(2, 5, 1, 1\).* The last axis is the key's")
def with_two_last_axes(tokens, pad):
    return (tokens != pad)[:, :, None, None]


@wrong("padding_mask", r"shape \(2, 5, 5\).* add an axis for the heads")
def without_heads(tokens, pad):
    return (tokens != pad)[:, None, :].expand(-1, tokens.shape[-1], -1)


@wrong("padding_mask", r"shape \(2, 8, 1, 5\).* written out for 8 heads, and")
def for_eight_heads(tokens, pad):
    return padding_by_comparison(tokens, pad).expand(-1, 8, -1, -1)


@wrong("padding_mask", "^It returned float32: expected bool. 0 and -∞ are for")
def added_to_scores(tokens, pad):
    return torch.zeros(tokens.shape).masked_fill(tokens == pad, -1e9)


@wrong("padding_mask", "^It returned int64: expected bool. Compare")
def ones_for_tokens(tokens, pad):
    return (tokens != pad).long()[:, None, None]


@wrong("padding_mask", "^The ids are 0 … 9, and pad is 9: .* is wrong")
def nine_is_never_padding(tokens, pad):
    return ((tokens != pad) | (tokens == 9))[:, None, None]


@wrong("padding_mask", "^Another sentence of the batch changes the mask")
def one_alone_needs_none(tokens, pad):
    return padding_by_comparison(tokens, pad) | (len(tokens) == 1)


# Three masks


def three(src_tokens, tgt_tokens, pad):
    return combined_in_a_tuple(src_tokens, tgt_tokens, pad)


def changed(which, says):
    """Registers a mistake in one of the three masks."""

    def register(change):
        def mistake(src_tokens, tgt_tokens, pad):
            masks = list(three(src_tokens, tgt_tokens, pad))
            masks[which] = change(src_tokens, tgt_tokens, pad)
            return tuple(masks)

        mistake.__name__ = change.__name__
        wrong("combine_masks", says)(mistake)
        return change

    return register


@changed(1, "^In `tgt`, query 3 of sentence 0 sees the padding .* is missing")
def padding_forgotten_with_its_axes(src, tgt, pad):
    return causal(tgt.shape[-1])


@changed(
    1, r"^`tgt` has shape \(2, 4, 4\).* batch elements are taken for heads"
)
def target_without_heads(src, tgt, pad):
    return (tgt != pad)[:, None] & causal(tgt.shape[-1])


@changed(1, r"^`tgt` has shape \(2, 8, 4, 4\).* written out for 8 heads")
def target_for_eight_heads(src, tgt, pad):
    real = padding_by_comparison(tgt, pad) & causal(tgt.shape[-1])
    return real.expand(-1, 8, -1, -1)


@changed(1, "^In `tgt`, query 0 .* sees the future .* upside down")
def target_upside_down(src, tgt, pad):
    return ~(padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]))


@changed(1, "^In `tgt`, query 0 .* sees the future .* The triangle is transp")
def target_transposed(src, tgt, pad):
    return padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]).mT


@changed(1, "^In `tgt`, query 0 .* does not see key 0. The diagonal is missing")
def target_without_diagonal(src, tgt, pad):
    return padding_by_comparison(tgt, pad) & causal(tgt.shape[-1]).tril(-1)


@changed(0, "^In `src`, query 4 .* does not see key 0. The rows of padding")
def source_rows_too(src, tgt, pad):
    return padding_by_comparison(src, pad) & padding_by_comparison(src, pad).mT


@changed(0, "^In `src`, query 0 .* sees .* key 4. It hides the rows")
def source_rows(src, tgt, pad):
    return padding_by_comparison(src, pad).mT


@changed(2, r"^`cross` has shape \(2, 1, 1, 4\).* not the target's")
def cross_from_the_target(src, tgt, pad):
    return padding_by_comparison(tgt, pad)


@changed(0, r"^`src` has shape \(2, 5, 1, 1\).* here to \(2, 1, 5, 5\).$")
def source_with_two_last_axes(src, tgt, pad):
    return (src != pad)[:, :, None, None]


@changed(2, "^In `cross`, query 3 .* does not see key 0. The rows of padding")
def cross_rows_too(src, tgt, pad):
    queries = padding_by_comparison(tgt, pad).mT
    return padding_by_comparison(src, pad) & queries


@changed(2, r"^`cross` has shape \(2, 5\).* batch elements are taken for")
def cross_without_axes(src, tgt, pad):
    return src != pad


@wrong("combine_masks", "^In `src`.*`pad` is not used")
def pad_is_zero(src_tokens, tgt_tokens, pad):
    return three(src_tokens, tgt_tokens, 0)


@wrong("combine_masks", "^`src` has shape .* another order: src, tgt, cross")
def another_order(src_tokens, tgt_tokens, pad):
    src, tgt, cross = three(src_tokens, tgt_tokens, pad)
    return tgt, src, cross


@wrong("combine_masks", "^It returned 2 things: expected three boolean masks")
def only_two(src_tokens, tgt_tokens, pad):
    return three(src_tokens, tgt_tokens, pad)[:2]


@wrong("combine_masks", "^It returned None: expected three boolean masks")
def none(src_tokens, tgt_tokens, pad):
    three(src_tokens, tgt_tokens, pad)


@wrong("combine_masks", "^It returned float32: expected bool. 0 and -∞ are for")
def all_additive(src_tokens, tgt_tokens, pad):
    masks = three(src_tokens, tgt_tokens, pad)
    return [torch.zeros(m.shape).masked_fill(~m, -1e9) for m in masks]


@wrong("combine_masks", "^Alone, sentence 0 has another `src` than in its b")
def a_source_alone_needs_none(src_tokens, tgt_tokens, pad):
    src, tgt, cross = three(src_tokens, tgt_tokens, pad)
    return src | (len(src) == 1), tgt, cross
