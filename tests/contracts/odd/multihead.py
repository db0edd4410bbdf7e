"""Splitting heads and multi-head attention got wrong."""

import torch
import torch.nn.functional as F
from contracts.odd import wrong
from contracts.right import built
from contracts.right.attention import masked_by_lowest
from contracts.right.multihead import Heads, split_by_view

SEES = "^Row 0 moves with position 1, which is in its future. "


# Splitting


@wrong("split_heads")
def never_transposed(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))


@wrong("split_heads")
def folded_into_the_batch(x, num_heads):
    return split_by_view(x, num_heads).flatten(0, 1)


@wrong("split_heads")
def ready_for_the_product(x, num_heads):
    return split_by_view(x, num_heads).transpose(-2, -1)


@wrong("split_heads")
def repeated_whole(x, num_heads):
    return torch.stack([x] * num_heads, 1)


@wrong("split_heads")
def for_two_sentences_only(x, num_heads):
    return x.view(2, 5, num_heads, -1).transpose(1, 2)


@wrong("split_heads")
def squeezed(x, num_heads):
    return split_by_view(x, num_heads).squeeze(1)


# Attending


def heads(**parts):
    """``Heads(3)`` in which some methods are others."""
    module = built(lambda: Heads(3))
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def attending(weigh):
    """Heads whose weights are ``weigh(scores, mask)``."""

    def attend(q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        return weigh(scores, mask) @ v

    return heads(attend=attend)


RIGHT = heads()


@wrong("multihead")
def unused(x, mask=None):
    return RIGHT(x)


@wrong("multihead")
def upside_down(x, mask=None):
    return RIGHT(x, None if mask is None else ~mask)


@wrong("multihead")
def upside_down_without_a_way_out(x, mask=None):
    hidden = F.scaled_dot_product_attention
    return heads(attend=lambda q, k, v, mask: hidden(q, k, v, mask))(
        x, None if mask is None else ~mask
    )


@wrong("multihead")
def upside_down_and_uniform(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1)

    return attending(weigh)(x, None if mask is None else ~mask)


@wrong("multihead")
def transposed_mask(x, mask=None):
    return RIGHT(x, None if mask is None else mask.mT)


@wrong("multihead")
def mask_of_the_first_sentence(x, mask=None):
    return RIGHT(x, mask[:1] if mask is not None and mask.ndim == 4 else mask)


@wrong("multihead")
def softmax_over_the_heads(x, mask=None):
    return attending(lambda s, m: s.softmax(1) * m)(x, mask)


@wrong("multihead")
def no_softmax(x, mask=None):
    return attending(lambda s, m: s * m)(x, mask)


@wrong("multihead")
def mean_of_the_values(x, mask=None):
    return attending(lambda s, m: masked_by_lowest(0 * s, m))(x, mask)


@wrong("multihead")
def always_causal(x, mask=None):
    past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return RIGHT(x, past if mask is None else past & mask)


@wrong("multihead")
def nobody_sees_itself(x, mask=None):
    if mask is not None:
        mask = mask & ~torch.eye(x.shape[1], dtype=torch.bool)
    return RIGHT(x, mask)


@wrong("multihead")
def two_axes_are_triangles(x, mask=None):
    if mask is not None and mask.ndim == 2:
        mask = mask.tril()
    return RIGHT(x, mask)


@wrong("multihead")
def uniform_in_empty_rows(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1)

    return attending(weigh)(x, mask)


@wrong("multihead")
def nan_in_the_gradient(x, mask=None):
    def weigh(s, m):
        bias = torch.zeros_like(s).masked_fill(~m, -torch.inf)
        return (s + bias).softmax(-1).nan_to_num(0)

    return attending(weigh)(x, mask)


@wrong("multihead")
def mixes_sentences(x, mask=None):
    return RIGHT(x, mask) + x[:1]


@wrong("multihead")
def louder_with_a_mask(x, mask=None):
    return RIGHT(x, mask) * (1 if mask is None else 1.1)


@wrong("multihead")
def weights_of_one_head(x, mask=None):
    return (x @ x.mT).softmax(-1)
