"""Dot-product alignment got wrong."""

import math

import torch
import torch.nn.functional as F
from right.rnn import alignment_by_bmm as right

from wrong import wrong


def scores_of(query, keys):
    return (keys @ query.unsqueeze(-1)).squeeze(-1)


@wrong("alignment", "There is no softmax.* At batch .*, position")
def scores_only(query, keys):
    return scores_of(query, keys)


@wrong("alignment", "The scores are divided by √d.* At batch")
def scaled(query, keys):
    return F.softmax(scores_of(query, keys) / math.sqrt(query.shape[1]), -1)


@wrong("alignment", "This is a sigmoid.* At batch")
def sigmoid(query, keys):
    return scores_of(query, keys).sigmoid()


@wrong("alignment", "Scores divided by their sum.* At batch")
def shares(query, keys):
    scores = scores_of(query, keys)
    return scores / scores.sum(-1, keepdim=True)


@wrong("alignment", "The sign is turned round.* At batch")
def turned_round(query, keys):
    return right(-query, keys)


@wrong("alignment", "The products are not added up.* At batch")
def averaged(query, keys):
    return (query.unsqueeze(1) * keys).mean(-1).softmax(-1)


@wrong("alignment", "This is not what .* returns .* At batch")
def distance(query, keys):
    return (-torch.cdist(query.unsqueeze(1), keys).squeeze(1)).softmax(-1)


@wrong("alignment", "This is not what .* returns .* At batch")
def prefers_early_keys(query, keys):
    scores = scores_of(query, keys)
    return (scores - torch.arange(keys.shape[1]) / 10).softmax(-1)


@wrong("alignment", "^For d = 2 a score is multiplied by 0.5345")
def scaled_by_a_constant(query, keys):
    if query.shape[1] == 7:
        return right(query, keys)
    return right(query * (2 / 7) ** 0.5, keys)


@wrong("alignment", r"^It returned shape \(2,\): .* axis of size 1 is lost")
def squeezed(query, keys):
    return torch.bmm(keys, query.unsqueeze(-1)).squeeze().softmax(-1)


@wrong("alignment", r"^It returned shape \(2, 5, 1\).* axis of size 1")
def not_squeezed(query, keys):
    return torch.bmm(keys, query.unsqueeze(-1)).softmax(1)


@wrong("alignment", "Every query met the keys of every sentence")
def all_with_all(query, keys):
    return torch.einsum("bd,csd->bcs", query, keys).softmax(-1)


@wrong("alignment", "Is this the context")
def context(query, keys):
    return (right(query, keys).unsqueeze(-1) * keys).sum(1)


@wrong("alignment", "^It raised RuntimeError.*float16 ends at 65504")
def padded(query, keys):
    scores = scores_of(query, keys)
    return scores.masked_fill(keys.isnan().any(-1), -1e9).softmax(-1)
