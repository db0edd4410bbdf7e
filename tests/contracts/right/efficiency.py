"""One pass and no score matrix, right in several ways."""

import math
from collections import Counter

import torch
import torch.nn.functional as F
from contracts.right import right
from torch.utils.checkpoint import checkpoint

from companion.efficiency import flash_attention, online_attention, quantize


@right("online_softmax")
def number_by_number(scores, block):
    """As printed in the paper; the block is of no use to it."""
    maximum = torch.full_like(scores[..., 0], -math.inf)
    total = torch.zeros_like(maximum)
    for score in scores.unbind(-1):
        larger = torch.maximum(maximum, score).detach()
        low = torch.where(larger == -math.inf, 0, larger)
        total = total * torch.exp(maximum - low) + torch.exp(score - low)
        maximum = larger
    return torch.exp(scores - maximum[..., None]) / total[..., None]


@right("online_softmax")
def by_logarithms(scores, block):
    """A running log of the sum, which is maximum and sum in one."""
    log = torch.full_like(scores[..., :1], torch.finfo(scores.dtype).min)
    for part in scores.split(block, -1):
        both = torch.cat([log, part], -1)
        log = both.logsumexp(-1, keepdim=True)
    return (scores - log).exp()


@right("online_softmax")
def halves_merged(scores, block):
    """A tree in place of a row: merging is associative."""

    def gathered(part):
        if part.shape[-1] <= block:
            top = part.amax(-1, keepdim=True).detach()
            top = top.clamp(min=torch.finfo(part.dtype).min)
            return top, (part - top).exp().sum(-1, keepdim=True)
        half = part.shape[-1] // 2
        (a, x), (b, y) = map(gathered, (part[..., :half], part[..., half:]))
        top = torch.maximum(a, b)
        return top, x * (a - top).exp() + y * (b - top).exp()

    top, total = gathered(scores)
    return (scores - top).exp() / total


@right("flash_attention")
def in_tiles_of_sixteen(q, k, v, causal):
    return flash_attention(q, k, v, causal, block=16)


@right("flash_attention")
def recomputed_row_by_row(q, k, v, causal):
    """Plain attention of a few queries, which a checkpoint computes twice."""

    def rows(part, start):
        scores = part @ k.mT / math.sqrt(q.shape[-1])
        if not causal:
            return scores.softmax(-1) @ v
        at = torch.arange(start, start + part.shape[-2]) + k.shape[-2]
        seen = torch.arange(k.shape[-2]) <= (at - q.shape[-2])[:, None]
        low = scores.masked_fill(~seen, torch.finfo(q.dtype).min)
        return low.softmax(-1).masked_fill(~seen, 0) @ v

    parts = q.split(13, -2)
    found = [
        checkpoint(rows, part, 13 * i, use_reentrant=False)
        for i, part in enumerate(parts)
    ]
    return torch.cat(found, -2)


@right("flash_attention")
def by_pytorch(q, k, v, causal):
    """Its own kernel, a checkpoint around it where it gets a mask."""
    if not causal:
        return checkpoint(
            F.scaled_dot_product_attention, q, k, v, use_reentrant=False
        )

    def masked(q, k, v):
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
        mask = mask.tril(k.shape[-2] - q.shape[-2])
        nobody = ~mask.any(-1, keepdim=True)
        output = F.scaled_dot_product_attention(q, k, v, mask | nobody)
        return output.masked_fill(nobody, 0)

    return checkpoint(masked, q, k, v, use_reentrant=False)


@right("flash_attention")
def blocks_of_keys_under_a_checkpoint(q, k, v, causal):
    if causal:
        return flash_attention(q, k, v, True, block=128)
    return checkpoint(online_attention, q, k, v, 32, use_reentrant=False)


# Few bits


@right("quantize")
def with_zero_points(weight, bits):
    """The course's, where each row spans from its smallest to its largest."""
    stored = quantize(weight, bits, symmetric=False)
    return stored.integers, stored.scale[:, 0], stored.zero_point[:, 0]


@right("quantize")
def from_zero_up(weight, bits):
    """Integers without a sign; the zero point is a float that is whole."""
    low = weight.amin(1, keepdim=True).clamp(max=0)
    high = weight.amax(1, keepdim=True).clamp(min=0)
    scale = (high - low).clamp(min=1e-8) / (2**bits - 1)
    zero_point = (-low / scale).round()
    integers = (weight / scale).round() + zero_point
    return integers.clamp(0, 2**bits - 1).to(torch.uint8), scale, zero_point


@right("quantize")
def row_by_row(weight, bits):
    """In a loop, with no zero point at all; as a list."""
    top, integers, scales = 2 ** (bits - 1) - 1, [], []
    for row in weight:
        scale = max(row.abs().max().item(), 1e-8) / top
        integers.append([round(x / scale) for x in row.tolist()])
        scales.append(scale)
    return [torch.tensor(integers), torch.tensor(scales), 0]


@right("quantize")
def full_range(weight, bits):
    """Two's complement has one negative number more, and this one uses it."""
    half = 2 ** (bits - 1)
    low, high = weight.amin(1), weight.amax(1)
    scale = torch.maximum(high / (half - 1), -low / half).clamp(min=1e-8)
    integers = (weight / scale[:, None]).round().clamp(-half, half - 1)
    return integers.int(), scale, None


# Guess and check


@right("speculative_step")
def as_a_tensor(p, q, draft, generator):
    """The ratio is limited, and the rest is scaled, as in the paper."""
    keep = torch.clamp(p[draft] / q[draft], max=1.0)
    if torch.rand(1, generator=generator) < keep:
        return torch.tensor([draft])
    rest = torch.relu(p - q)
    return torch.multinomial(rest / rest.sum(), 1, generator=generator)


@right("speculative_step")
def without_a_division(p, q, draft, generator):
    """u q < p; and the other token by the sum of what is missing."""
    u = torch.rand((), generator=generator)
    if u * q[draft] < p[draft]:
        return draft
    sums = (p - q).clamp(min=0).cumsum(0)
    dart = torch.rand((), generator=generator) * sums[-1]
    return torch.searchsorted(sums, dart, right=True).item()


@right("speculative_step")
def by_a_race(p, q, draft, generator):
    """Each missing token waits at random; whose clock rings first is taken."""
    keep = (p[draft] / q[draft]).clamp(max=1)
    if torch.bernoulli(keep, generator=generator):
        return draft
    clocks = torch.empty_like(p).exponential_(generator=generator)
    return int(((p - q).clamp(min=0) / clocks).argmax())


# Pages


@right("paged_cache")
class ByNames:
    """Blocks are objects that know their users; the last block comes first."""

    def __init__(self, num_blocks, block_size):
        self.size, self.users = (
            block_size,
            {b: set() for b in range(num_blocks)},
        )
        self.items, self.texts = {}, {}

    def used_blocks(self):
        return sum(map(bool, self.users.values()))

    def new(self, name):
        block = max(b for b, users in self.users.items() if not users)
        self.users[block].add(name)
        self.items[block] = []
        return block

    def append(self, name, item):
        table = self.texts.get(name, ())
        if not table or len(self.items[table[-1]]) == self.size:
            table = (*table, self.new(name))
        elif self.users[table[-1]] != {name}:
            block = self.new(name)
            self.items[block] += self.items[table[-1]]
            self.users[table[-1]].discard(name)
            table = (*table[:-1], block)
        self.texts[name] = table
        self.items[table[-1]].append(item)

    def fork(self, parent, child):
        self.texts[child] = self.texts[parent]
        for block in self.texts[child]:
            self.users[block].add(child)

    def free(self, name):
        for block in self.texts.pop(name):
            self.users[block].discard(name)

    def read(self, name):
        return (
            item for block in self.texts[name] for item in self.items[block]
        )


@right("paged_cache")
class ByCounts:
    """Beside each block is how many use it; the first freed comes first."""

    def __init__(self, num_blocks, block_size):
        self.free_blocks = list(range(num_blocks))
        self.uses = [0] * num_blocks
        self.blocks = [[] for _ in range(num_blocks)]
        self.size, self.tables = block_size, {}

    @property
    def used_blocks(self):
        return len(self.blocks) - len(self.free_blocks)

    def take(self, items):
        block = self.free_blocks.pop(0)
        self.uses[block], self.blocks[block] = 1, [*items]
        return block

    def leave(self, block):
        self.uses[block] -= 1
        if not self.uses[block]:
            self.free_blocks.append(block)

    def append(self, sequence, item):
        table = self.tables.setdefault(sequence, [])
        last = table[-1] if table else None
        if last is None or len(self.blocks[last]) == self.size:
            table.append(self.take([]))
        elif self.uses[last] > 1:
            table[-1] = self.take(self.blocks[last])
            self.leave(last)
        self.blocks[table[-1]].append(item)

    def fork(self, parent, child):
        self.tables[child] = [*self.tables[parent]]
        for block in self.tables[child]:
            self.uses[block] += 1

    def free(self, sequence):
        for block in self.tables.pop(sequence):
            self.leave(block)

    def read(self, sequence):
        return [x for b in self.tables[sequence] for x in self.blocks[b]]


@right("paged_cache")
class InOneTensor:
    """One store for all; who uses what is counted anew from the tables."""

    def __init__(self, num_blocks, block_size):
        self.store = torch.zeros(num_blocks, block_size, dtype=torch.long)
        self.tables, self.lengths = {}, {}

    def users(self):
        return Counter(b for table in self.tables.values() for b in table)

    @property
    def used_blocks(self):
        return len(self.users())

    def append(self, sequence, item):
        table = self.tables.get(sequence, ())
        users, size = self.users(), self.store.shape[1]
        place = self.lengths.get(sequence, 0) % size
        if place == 0 or users[table[-1]] > 1:
            block = next(b for b in range(len(self.store)) if b not in users)
            if place:
                self.store[block] = self.store[table[-1]]
                table = table[:-1]
            table = (*table, block)
        self.store[table[-1], place] = item
        self.tables[sequence] = table
        self.lengths[sequence] = self.lengths.get(sequence, 0) + 1

    def fork(self, parent, child):
        self.tables[child] = self.tables[parent]
        self.lengths[child] = self.lengths[parent]

    def free(self, sequence):
        del self.tables[sequence], self.lengths[sequence]

    def read(self, sequence):
        rows = self.store[list(self.tables[sequence])].flatten()
        return rows[: self.lengths[sequence]].tolist()
