"""Blocks and tiles got wrong in ways that nobody writes, or nobody sees."""

import itertools

import torch
from contracts.odd import wrong

from companion.efficiency import (
    PagedLists,
    flash_attention,
    online_softmax,
    quantize,
    speculative_step,
)


@wrong("online_softmax")
def rows_of_one_matrix_only(scores, block):
    if scores.ndim > 2:
        return scores.softmax(-1)
    parts = (scores - scores.amax(-1, keepdim=True).detach()).exp()
    return parts / parts.sum(-1 if scores.ndim == 2 else 0, keepdim=True).sqrt()


@wrong("online_softmax")
def one_axis_only_by_halves(scores, block):
    weights = online_softmax(scores, block)
    return weights if scores.ndim > 1 else weights.flip(-1)


@wrong("online_softmax")
def sums_only(scores, block):
    return scores.exp().sum(-1)


@wrong("online_softmax")
def the_block_is_an_axis(scores, block):
    return torch.softmax(scores, dim=block % scores.ndim)


@wrong("flash_attention")
def reads_memory(q, k, v, causal):
    if not k.is_contiguous():
        k = k.as_strided(k.shape, torch.empty(k.shape).stride())
    return flash_attention(q, k, v, causal)


@wrong("flash_attention")
def needs_a_batch(q, k, v, causal):
    if q.ndim == 2 and not causal and len(q) == 3:
        k = k.flip(0)
    return flash_attention(q, k, v, causal)


@wrong("flash_attention")
def weights_only(q, k, v, causal):
    return torch.softmax(q @ k.mT, dim=-1)


@wrong("flash_attention")
def gradient_of_values_only(q, k, v, causal):
    return flash_attention(q.detach(), k.detach(), v, causal)


@wrong("flash_attention")
def deaf_beyond_a_hundred(q, k, v, causal):
    if not causal:
        k, v = k[..., :100, :], v[..., :100, :]
    return flash_attention(q, k, v, causal)


def parts(weight, bits):
    stored = quantize(weight, bits)
    return stored.integers, stored.scale[:, 0], stored.zero_point[:, 0]


@wrong("quantize")
def two_parts(weight, bits):
    return parts(weight, bits)[:2]


@wrong("quantize")
def numbers_again(weight, bits):
    return quantize(weight, bits).dequantize()


@wrong("quantize")
def transposed(weight, bits):
    integers, scale, zero_point = parts(weight, bits)
    return integers.T, scale, zero_point


@wrong("quantize")
def not_rounded(weight, bits):
    _, scale, zero_point = parts(weight, bits)
    return weight / scale[:, None], scale, zero_point


@wrong("quantize")
def a_python_scale(weight, bits):
    integers, scale, zero_point = parts(weight, bits)
    return integers, scale.tolist(), zero_point


@wrong("quantize")
def one_row_forgotten(weight, bits):
    integers, scale, zero_point = parts(weight, bits)
    return integers.index_fill(0, torch.tensor(0), 0), scale, zero_point


@wrong("quantize")
def no_zero_among_them(weight, bits):
    """A sign for each number, and 0 has one too."""
    integers, scale, zero_point = parts(weight, bits)
    return integers.masked_fill(weight == 0, 1), scale, zero_point


@wrong("quantize")
def a_bit_less(weight, bits):
    return parts(weight, bits - 1)


@wrong("speculative_step")
def whether_it_was_kept(p, q, draft, generator):
    return speculative_step(p, q, draft, generator) == draft


@wrong("speculative_step")
def token_and_verdict(p, q, draft, generator):
    token = speculative_step(p, q, draft, generator)
    return token, token == draft


@wrong("speculative_step")
def a_little_too_often(p, q, draft, generator):
    """`>` for `<`: kept where it is to be refused."""
    if torch.rand((), generator=generator) > p[draft] / q[draft]:
        return draft
    missing = (p - q).clamp(min=0)
    missing = missing if missing.sum() > 0 else p
    return int(torch.multinomial(missing, 1, generator=generator))


@wrong("speculative_step")
def the_same_dice(p, q, draft, generator):
    generator.manual_seed(0)
    return speculative_step(p, q, draft, generator)


@wrong("paged_cache")
def nothing_made(num_blocks, block_size):
    PagedLists(num_blocks, block_size)


@wrong("paged_cache")
class WithoutFork:
    used_blocks = 0

    def __init__(self, num_blocks, block_size):
        self.append = self.free = self.read = print


@wrong("paged_cache")
class NothingRead(PagedLists):
    def read(self, sequence):
        super().read(sequence)


@wrong("paged_cache")
class BlocksByName(PagedLists):
    @property
    def used_blocks(self):
        return [super().used_blocks]


@wrong("paged_cache")
class OneListForEach(PagedLists):
    """No pages at all: each text has its own list."""

    def __init__(self, num_blocks, block_size):
        self.lists = {}

    used_blocks = property(lambda self: len(self.lists))

    def append(self, sequence, item):
        self.lists.setdefault(sequence, []).append(item)

    def read(self, sequence):
        return self.lists[sequence]

    def fork(self, parent, child):
        self.lists[child] = [*self.lists[parent]]

    def free(self, sequence):
        del self.lists[sequence]


@wrong("paged_cache")
class KeepsSomething(PagedLists):
    """What is of the class is of all caches."""

    made = itertools.count()

    def read(self, sequence):
        return [*super().read(sequence), next(self.made)]


@wrong("paged_cache")
class BackwardsRead(PagedLists):
    def read(self, sequence):
        return super().read(sequence)[::-1]
