"""What the four models are made of and trained with, right in several ways."""

import itertools
import math
import random

import torch
import torch.nn.functional as F
from contracts.right import built, right
from torch import nn

from companion import variants

# Masking


@right("mask_tokens")
def by_two_draws(tokens, generator):
    """As many numbers as there are tokens: who is chosen, and what for."""
    chosen = torch.rand(tokens.shape, generator=generator) < 0.15
    chosen &= tokens >= 4
    fate = torch.rand(tokens.shape, generator=generator)
    words = torch.randint(4, 100, tokens.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), 3, tokens)
    inputs = torch.where(chosen & (fate >= 0.9), words, inputs)
    return inputs, torch.where(chosen, tokens, 0)


@right("mask_tokens")
def by_nested_choices(tokens, generator):
    """As a well-known collator has it, with half of what the 80 % left."""

    def some(share):
        shares = torch.full(tokens.shape, share)
        return torch.bernoulli(shares, generator=generator).bool()

    inputs = tokens.clone()
    chosen = some(0.15) & ~torch.isin(tokens, torch.tensor([0, 1, 2, 3]))
    hidden = chosen & some(0.8)
    other = chosen & ~hidden & some(0.5)
    words = torch.randint(96, tokens.shape, generator=generator) + 4
    inputs[hidden] = 3
    inputs[other] = words[other]
    return inputs, tokens * chosen


@right("mask_tokens")
def by_the_token(tokens, generator):
    """A loop, which draws only what it needs, from a generator of its own."""
    seed = int(torch.randint(2**31, (), generator=generator))
    dice = random.Random(seed)
    inputs, target = tokens.flatten().tolist(), [0] * tokens.numel()
    for place, token in enumerate(list(inputs)):
        if token < 4 or dice.random() >= 0.15:
            continue
        target[place] = token
        luck = dice.random()
        if luck < 0.8:
            inputs[place] = 3
        elif luck < 0.9:
            inputs[place] = dice.randrange(4, 100)
    return [torch.tensor(x).view(tokens.shape) for x in (inputs, target)]


@right("mask_tokens")
def by_exact_numbers(tokens, generator):
    """15 % of each sentence, rounded, as the published code has it."""
    rows = [
        exactly(row, generator) for row in tokens.reshape(-1, tokens.shape[-1])
    ]
    inputs, target = (torch.stack(x) for x in zip(*rows, strict=True))
    return inputs.view(tokens.shape), target.view(tokens.shape)


def exactly(row, generator):
    places = (row >= 4).nonzero().flatten()
    order = torch.randperm(len(places), generator=generator)
    picked = places[order[: round(0.15 * len(places))]]
    inputs, target = row.clone(), torch.zeros_like(row)
    target[picked] = row[picked]
    for place in picked.tolist():
        luck = torch.rand((), generator=generator).item()
        if luck < 0.8:
            inputs[place] = 3
        elif luck > 0.9:
            inputs[place] = torch.randint(4, 100, (), generator=generator)
    return inputs, target


# Spans


@right("span_corrupt")
def by_loop(tokens, dropped, sentinel):
    source, target, before = [], [], False
    for token, out in zip(tokens.tolist(), dropped.tolist(), strict=True):
        if out and not before:
            source.append(sentinel)
            target.append(sentinel)
            sentinel -= 1
        (target if out else source).append(token)
        before = out
    return torch.tensor(source), torch.tensor([*target, sentinel])


@right("span_corrupt")
def by_groups(tokens, dropped, sentinel):
    """Lists of ids instead of tensors."""
    source, target = [], []
    pairs = zip(dropped.tolist(), tokens.tolist(), strict=True)
    for out, run in itertools.groupby(pairs, key=lambda pair: pair[0]):
        ids = [token for _, token in run]
        source += [sentinel] if out else ids
        target += [sentinel, *ids] if out else []
        sentinel -= out
    return [source, [*target, sentinel]]


@right("span_corrupt")
def by_cumulative_sums(tokens, dropped, sentinel):
    """No loop: each token has its run's sentinel before it, or has not."""
    first = dropped & ~F.pad(dropped, (1, 0))[:-1]
    names = sentinel + 1 - first.cumsum(0)
    both = torch.stack([names, tokens], 1)
    source = both[torch.stack([first, ~dropped], 1)]
    target = both[torch.stack([first, dropped], 1)]
    last = torch.tensor([sentinel - int(first.sum())])
    return source, torch.cat([target, last])


@right("span_restore")
def by_dictionary(source, target, sentinel):
    spans, name = {}, None
    for token in target.tolist():
        if token == sentinel - len(spans):
            name = token
            spans[name] = []
        else:
            spans[name].append(token)
    text = (spans.get(x, [x]) for x in source.tolist())
    return torch.tensor([x for run in text for x in run])


@right("span_restore")
def by_two_pointers(source, target, sentinel):
    """The ids in a list."""
    text, place = [], 0
    for token in source.tolist():
        if token != sentinel:
            text.append(token)
            continue
        sentinel -= 1
        place += 1
        while target[place] != sentinel:
            text.append(int(target[place]))
            place += 1
    return text


@right("span_restore")
def by_splitting(source, target, sentinel):
    last = int(target[-1])
    ends = (target >= last).nonzero().flatten().tolist()
    spans = [target[i + 1 : j] for i, j in itertools.pairwise(ends)]
    parts = [
        spans[sentinel - int(x)] if x > last else x.reshape(1) for x in source
    ]
    return torch.cat(parts)


# Grouped-query attention


def weights_of(scores, mask):
    """A softmax in which rows that may see nothing are 0."""
    if mask is None:
        return scores.softmax(-1)
    low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return low.softmax(-1).masked_fill(~mask, 0)


@right("grouped_query_attention")
def by_repeating(q, k, v, mask=None):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return weights_of(scores, mask) @ v


@right("grouped_query_attention")
def by_an_axis_more(q, k, v, mask=None):
    """Nothing is copied: the group is an axis, along which keys are spread."""
    batch, heads, queries, width = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    grouped = q.reshape(batch, kv_heads, heads // kv_heads, queries, width)
    scores = torch.einsum("bhgqd,bhkd->bhgqk", grouped, k) / width**0.5
    if mask is not None:
        full = mask.expand(batch, heads, queries, keys)
        mask = full.reshape(scores.shape)
    mixed = torch.einsum("bhgqk,bhkd->bhgqd", weights_of(scores, mask), v)
    return mixed.flatten(1, 2)


@right("grouped_query_attention")
def by_pytorchs_switch(q, k, v, mask=None):
    mixed = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    if mask is None:
        return mixed
    return mixed.masked_fill(~mask.any(-1, keepdim=True), 0)


@right("grouped_query_attention")
def by_the_head(q, k, v, mask=None):
    heads = []
    for head in range(q.shape[1]):
        own = head * k.shape[1] // q.shape[1]
        may = mask
        if mask is not None and mask.ndim == 4:
            may = mask[:, head if mask.shape[1] > 1 else 0]
        scores = q[:, head] @ k[:, own].transpose(1, 2) / q.shape[-1] ** 0.5
        heads.append(weights_of(scores, may) @ v[:, own])
    return torch.stack(heads, 1)


# RMS normalisation


@right("rms_norm")
def norm_by_pytorch(x, gain, eps):
    return F.rms_norm(x, x.shape[-1:], gain, eps)


@right("rms_norm")
def norm_by_rsqrt(x, gain, eps):
    wide = x.float()
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype) * gain


@right("rms_norm")
def norm_by_einsum(x, gain, eps):
    wide = x.float()
    squares = torch.einsum("...d,...d->...", wide, wide) / x.shape[-1]
    return (wide / (squares + eps).sqrt()[..., None] * gain).type_as(x)


@right("rms_norm")
def norm_by_a_module(x, gain, eps):
    module = nn.RMSNorm(x.shape[-1], eps, dtype=x.dtype)
    return torch.func.functional_call(module, {"weight": gain}, (x,))


# Whole models, in which source and target share one vocabulary

LANGUAGE_MODELS = {
    "GPT": lambda: variants.GPT(variants.GPTConfig.tiny(13)),
    "GPT of today": lambda: variants.GPT(
        variants.GPTConfig(
            vocab_size=13,
            max_len=None,
            d_model=24,
            num_heads=4,
            d_ff=31,
            num_layers=2,
            dropout=0.0,
        ),
        variants.today(2),
    ),
}
TRANSLATION_MODELS = {
    "T5": lambda: variants.T5(variants.T5Config.tiny(13)),
    "BART": lambda: variants.BART(variants.BARTConfig.tiny(13)),
}
for make in LANGUAGE_MODELS.values():
    right("language_model")(built(make))
for make in TRANSLATION_MODELS.values():
    right("translation_model")(built(make))
