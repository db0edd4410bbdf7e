"""Dot-product alignment got wrong."""

import torch
from contracts.odd import wrong
from contracts.right.rnn import alignment_by_bmm as right


def scores_of(query, keys):
    return (keys @ query.unsqueeze(-1)).squeeze(-1)


@wrong("alignment")
def distance(query, keys):
    return (-torch.cdist(query.unsqueeze(1), keys).squeeze(1)).softmax(-1)


@wrong("alignment")
def prefers_early_keys(query, keys):
    scores = scores_of(query, keys)
    return (scores - torch.arange(keys.shape[1]) / 10).softmax(-1)


@wrong("alignment")
def scaled_by_a_constant(query, keys):
    if query.shape[1] == 7:
        return right(query, keys)
    return right(query * (2 / 7) ** 0.5, keys)


@wrong("alignment")
def squeezed(query, keys):
    return torch.bmm(keys, query.unsqueeze(-1)).squeeze().softmax(-1)


@wrong("alignment")
def not_squeezed(query, keys):
    return torch.bmm(keys, query.unsqueeze(-1)).softmax(1)


@wrong("alignment")
def all_with_all(query, keys):
    return torch.einsum("bd,csd->bcs", query, keys).softmax(-1)


@wrong("alignment")
def context(query, keys):
    return (right(query, keys).unsqueeze(-1) * keys).sum(1)


@wrong("alignment")
def padded(query, keys):
    scores = scores_of(query, keys)
    return scores.masked_fill(keys.isnan().any(-1), -1e9).softmax(-1)
