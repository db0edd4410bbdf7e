"""The masks of a Transformer, right in several ways."""

from typing import NamedTuple

import torch
from contracts.right import right
from torch import Tensor, nn


@right("causal_mask")
def causal_by_tril(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


@right("causal_mask")
def causal_by_comparison(length):
    place = torch.arange(length)
    return (place[None, :] <= place[:, None])[None, None]


@right("causal_mask")
def causal_by_pytorch(length):
    return nn.Transformer.generate_square_subsequent_mask(length) == 0


@right("causal_mask")
def causal_by_loop(length):
    rows = [[key <= query for key in range(length)] for query in range(length)]
    return torch.tensor(rows)


@right("causal_mask")
def causal_in_ones(length):
    return torch.ones(1, length, length).tril()


@right("padding_mask")
def padding_by_comparison(tokens, pad):
    return (tokens != pad)[:, None, None, :]


@right("padding_mask")
def padding_by_not(tokens, pad):
    return ~tokens.eq(pad).unsqueeze(1).unsqueeze(1)


@right("padding_mask")
def padding_for_every_query(tokens, pad):
    batch, seq = tokens.shape
    return tokens.ne(pad).view(batch, 1, 1, seq).expand(-1, -1, seq, -1)


@right("padding_mask")
def padding_by_loop(tokens, pad):
    rows = [[token != pad for token in row] for row in tokens.tolist()]
    return torch.tensor(rows)[:, None, None]


@right("combine_masks")
def combined_in_a_tuple(src_tokens, tgt_tokens, pad):
    src = padding_by_comparison(src_tokens, pad)
    tgt = padding_by_comparison(tgt_tokens, pad)
    return src, tgt & causal_by_tril(tgt_tokens.shape[-1]), src


@right("combine_masks")
def combined_in_a_list(src_tokens, tgt_tokens, pad):
    src = padding_for_every_query(src_tokens, pad)
    tgt = padding_for_every_query(tgt_tokens, pad)
    future = torch.ones(tgt.shape[-2:]).triu(1).bool()
    cross = src[:, :, :1].repeat(1, 1, tgt.shape[-1], 1)
    return [src, tgt.masked_fill(future, False), cross]


class Three(NamedTuple):
    source: Tensor
    target: Tensor
    memory: Tensor


@right("combine_masks")
def combined_with_names(src_tokens, tgt_tokens, pad):
    length = tgt_tokens.shape[1]
    hidden = (tgt_tokens == pad)[:, None, None, :] | ~causal_by_loop(length)
    source = ~(src_tokens == pad)[:, None, None, :]
    return Three(source, ~hidden, source)


@right("padding_mask")
def padding_in_ones(tokens, pad):
    return (tokens != pad).long()[:, None, None]


@right("combine_masks")
def combined_in_ones(src_tokens, tgt_tokens, pad):
    return tuple(
        m.float() for m in combined_in_a_tuple(src_tokens, tgt_tokens, pad)
    )
