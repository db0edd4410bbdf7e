"""Decoding, right in several ways."""

import math
from collections import Counter
from fractions import Fraction

import torch
import torch.nn.functional as F
from contracts.right import right
from sacrebleu.metrics import BLEU

from companion.masks import combine_masks

# Decoding


@right("greedy_decode")
def by_argmax(step_fn, bos, eos, max_len):
    ids = [bos]
    for _ in range(max_len):
        ids.append(int(step_fn(torch.tensor([ids]))[0].argmax()))
        if ids[-1] == eos:
            break
    return ids[1:]


@right("greedy_decode")
def one_tensor(step_fn, bos, eos, max_len):
    tokens = torch.full((1, 1), bos)
    while tokens.shape[1] <= max_len and tokens[0, -1] != eos:
        best = step_fn(tokens).log_softmax(-1).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, best], 1)
    return tokens[:, 1:]


@right("greedy_decode")
def cut_afterwards(step_fn, bos, eos, max_len):
    """Asks for all it may have, and cuts at eos."""
    tokens = torch.full((1, max_len + 1), bos)
    for n in range(1, max_len + 1):
        tokens[:, n] = step_fn(tokens[:, :n]).max(-1).indices
    ids = tokens[0, 1:].tolist()
    return ids[: ids.index(eos) + 1] if eos in ids else ids


@right("greedy_decode")
def recursive(step_fn, bos, eos, max_len, said=()):
    if len(said) == max_len or said[-1:] == (eos,):
        return said
    logits = step_fn(torch.tensor([[bos, *said]], dtype=torch.int32)).squeeze()
    best = max(range(len(logits)), key=lambda i: logits[i])
    return recursive(step_fn, bos, eos, max_len, (*said, best))


def wu(n, alpha):
    return ((5 + n) / 6) ** alpha


@right("beam_search")
def in_lists(step_fn, bos, eos, beam, max_len, alpha):
    """Finished hypotheses leave the beam, which stays as wide as it was."""
    live, done = [(0.0, [bos])], []
    for _ in range(max_len):
        found = []
        for score, ids in live:
            logs = step_fn(torch.tensor([ids]))[0].log_softmax(-1).tolist()
            found += [(score + x, [*ids, i]) for i, x in enumerate(logs)]
        found = sorted(found, reverse=True)[: 2 * beam]
        done += [f for f in found[:beam] if f[1][-1] == eos]
        live = [f for f in found if f[1][-1] != eos][:beam]
    worth = [(s / wu(len(ids) - 1, alpha), ids[1:]) for s, ids in done + live]
    return max(worth)[1]


@right("beam_search")
def in_one_tensor(step_fn, bos, eos, beam, max_len, alpha):
    """Finished rows stay in the beam, and are followed by eos for nothing."""
    rows = torch.full((beam, 1), bos)
    scores = torch.full((beam,), -1e9)
    scores[0] = 0
    for _ in range(max_len):
        logs = step_fn(rows).log_softmax(-1)
        over = (rows == eos).any(1)
        logs[over] = -torch.inf
        logs[over, eos] = 0
        scores, best = (scores[:, None] + logs).flatten().topk(beam)
        parents, words = best // logs.shape[1], best % logs.shape[1]
        rows = torch.cat([rows[parents], words[:, None]], 1)
    rows = rows[:, 1:]
    lengths = (rows != eos).sum(1).add(1).clamp(max=max_len)
    row = rows[(scores / wu(lengths, alpha)).argmax()]
    return row[: (row != eos).sum() + 1]


@right("beam_search")
def until_enough(step_fn, bos, eos, beam, max_len, alpha):
    """A beam that narrows as hypotheses finish; divides by n^alpha."""
    live, done = [((), 0.0)], []
    while live and len(live[0][0]) < max_len:
        rows = torch.tensor([(bos, *ids) for ids, _ in live])
        logs = step_fn(rows).log_softmax(-1)
        total = logs + torch.tensor([[score] for _, score in live])
        best = total.flatten().topk(min(beam - len(done), total.numel()))
        vocab = logs.shape[1]
        found = [
            ((*live[i // vocab][0], i % vocab), score)
            for score, i in zip(*map(torch.Tensor.tolist, best), strict=True)
        ]
        done += [f for f in found if f[0][-1] == eos]
        live = [f for f in found if f[0][-1] != eos]
    return max(done + live, key=lambda f: f[1] / len(f[0]) ** alpha)[0]


@right("beam_search")
def only_what_ends(step_fn, bos, eos, beam, max_len, alpha):
    """Returns what is cut only if nothing has come to an end."""
    live, done = {(bos,): 0.0}, {}
    for _ in range(max_len):
        logs = step_fn(torch.tensor(list(live))).log_softmax(-1)
        found = {
            (*ids, i): score + x.item()
            for (ids, score), row in zip(live.items(), logs, strict=True)
            for i, x in enumerate(row)
        }
        best = sorted(found, key=found.get, reverse=True)[:beam]
        done |= {ids: found[ids] for ids in best if ids[-1] == eos}
        live = {ids: found[ids] for ids in best if ids[-1] != eos}
        if not live:
            break
    worth = done or live
    best = max(worth, key=lambda i: worth[i] / wu(len(i) - 1, alpha))
    return list(best[1:])


@right("sampling_filter")
def by_sorting(logits, top_k, top_p, temperature):
    logits = logits / temperature
    if top_k is not None:
        kth = logits.topk(top_k).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if top_p is not None:
        ranked, order = logits.softmax(-1).sort(descending=True)
        enough = ranked.cumsum(-1) - ranked >= top_p
        logits = logits.masked_fill(
            enough.gather(-1, order.argsort(-1)), -torch.inf
        )
    return logits


@right("sampling_filter")
def row_by_row(logits, top_k, top_p, temperature):
    """As log-probabilities of what is left."""
    rows = []
    for row in (logits / temperature).tolist():
        order = sorted(range(len(row)), key=lambda i: -row[i])[:top_k]
        chance = torch.tensor([row[i] for i in order]).softmax(0).tolist()
        while top_p is not None and sum(chance[:-1]) >= top_p:
            chance.pop()
        kept = torch.full((len(row),), -torch.inf)
        kept[order[: len(chance)]] = torch.tensor(chance).log()
        rows.append(kept)
    return torch.stack(rows)


@right("sampling_filter")
def from_below(logits, top_k, top_p, temperature):
    """Drops from the least likely on, as long as 1 - p is not used up."""
    logits = logits.clone() / temperature
    if top_k:
        rest = logits.argsort(-1)[:, : logits.shape[1] - top_k]
        logits.scatter_(1, rest, -torch.inf)
    if top_p:
        ranked, order = logits.sort(-1)
        drop = ranked.softmax(-1).cumsum(-1) <= 1 - top_p
        drop[:, -1] = False
        logits[torch.zeros_like(drop).scatter(1, order, drop)] = -torch.inf
    return logits


def runs(words, n):
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


@right("bleu")
def with_logarithms(hypotheses, references):
    logs = 0.0
    for n in range(1, 5):
        matched = total = 0
        for ours, theirs in zip(hypotheses, references, strict=True):
            found, known = runs(ours, n), runs(theirs, n)
            matched += sum(min(c, known[x]) for x, c in found.items())
            total += sum(found.values())
        if not matched:
            return 0.0
        logs += math.log(matched / total) / 4
    ours, theirs = (sum(map(len, side)) for side in (hypotheses, references))
    return 100 * math.exp(logs + min(0, 1 - theirs / ours))


@right("bleu")
def by_sacrebleu(hypotheses, references):
    """Its own splitting off: the words are given; zero counts are smoothed."""
    metric = BLEU(tokenize="none", force=True, lowercase=False)
    ours, theirs = (
        [" ".join(words) for words in side] for side in (hypotheses, references)
    )
    return metric.corpus_score(ours, [theirs]).score


@right("bleu")
def smoothed_by_one(hypotheses, references):
    """Fractions, their root taken at the end; 1 for a count of 0."""
    product = Fraction(1)
    pairs = list(zip(hypotheses, references, strict=True))
    for n in (1, 2, 3, 4):
        found = sum((runs(one, n) & runs(two, n)).total() for one, two in pairs)
        every = sum(max(len(one) - n + 1, 0) for one, _ in pairs)
        product *= Fraction(found or 1, (every or 1) * (1 if found else 2))
    ours, theirs = sum(map(len, hypotheses)), sum(map(len, references))
    brevity = math.exp(1 - theirs / ours) if ours < theirs else 1
    return torch.tensor(100 * brevity * float(product) ** 0.25)


def cut(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def embedded(model, token, place):
    """One token at its place, which the positions see as the last of a row."""
    x = model.tgt_embedding(token)
    row = torch.zeros_like(x).expand(-1, place + 1, -1)
    return x + model.positions(row)[:, -1:]


@right("cached_decode")
def with_growing_keys(model, src, tokens):
    """Keys and values in lists, one pair a layer."""
    mask = (src != model.config.pad)[:, None, None]
    memory, stored = model.encode(src, mask), {}

    def attend(attention, x, key, mask=None):
        h = attention.num_heads
        q = cut(attention.q_proj(x), h)
        new = cut(attention.k_proj(key), h), cut(attention.v_proj(key), h)
        k, v = stored.setdefault(attention, new)
        if mask is None and k is not new[0]:
            pairs = zip((k, v), new, strict=True)
            k, v = stored[attention] = [torch.cat(p, 2) for p in pairs]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        heads = scores.softmax(-1) @ v
        return attention.out_proj(heads.transpose(1, 2).flatten(2))

    rows = []
    for i, token in enumerate(tokens.split(1, 1)):
        x = embedded(model, token, i)
        for layer in model.decoder.layers:
            own, cross = layer.self_attention, layer.cross_attention
            x = layer.attention_residual(x, lambda y, a=own: attend(a, y, y))
            x = layer.cross_residual(
                x, lambda y, a=cross: attend(a, y, memory, mask)
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@right("cached_decode")
@torch.no_grad()
def into_a_buffer(model, src, tokens):
    """Room for all keys from the start, and a mask of what is filled."""
    masks = combine_masks(src, tokens, model.config.pad)
    memory = model.encode(src, masks.src)
    config, (batch, length) = model.config, tokens.shape
    heads = config.num_heads
    shape = (2, batch, heads, length, config.d_model // heads)
    buffers = [torch.zeros(shape) for _ in model.decoder.layers]
    logits = torch.empty(batch, length, config.tgt_vocab_size)
    for i in range(length):
        x = embedded(model, tokens[:, i : i + 1], i)
        for layer, buffer in zip(model.decoder.layers, buffers, strict=True):

            def look_back(y, own=layer.self_attention, buffer=buffer, i=i):
                buffer[0, :, :, i] = cut(own.k_proj(y), heads)[:, :, 0]
                buffer[1, :, :, i] = cut(own.v_proj(y), heads)[:, :, 0]
                filled = (torch.arange(length) <= i)[None]
                q = cut(own.q_proj(y), heads)
                found = F.scaled_dot_product_attention(q, *buffer, filled)
                return own.out_proj(found.transpose(1, 2).flatten(2))

            x = layer.attention_residual(x, look_back)
            x = layer.cross_residual(
                x,
                lambda y, layer=layer: layer.cross_attention(
                    y, masks.cross[:, :, :1], key=memory
                ),
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        logits[:, i] = model.logits(model.decoder.norm(x))[:, 0]
    return logits


@right("cached_decode")
def with_a_beginning_at_once(model, src, tokens):
    """Two tokens first, together, and then one by one."""
    masks = combine_masks(src, tokens, model.config.pad)
    memory, past = model.encode(src, masks.src), {}
    places = model.positions(model.tgt_embedding(tokens))

    def run(start, end):
        x, mask = places[:, start:end], masks.tgt[:, :, start:end, :end]
        for n, layer in enumerate(model.decoder.layers):

            def look_back(y, n=n, own=layer.self_attention, mask=mask):
                new = [
                    F.linear(y, p.weight, p.bias)
                    for p in (own.k_proj, own.v_proj)
                ]
                past[n] = (
                    [torch.cat(p, 1) for p in zip(past[n], new, strict=True)]
                    if n in past
                    else new
                )
                q, k, v = (
                    cut(x, own.num_heads) for x in (own.q_proj(y), *past[n])
                )
                scores = (q @ k.mT / math.sqrt(q.shape[-1])).where(
                    mask, torch.tensor(-torch.inf)
                )
                return own.out_proj(
                    (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
                )

            x = layer.attention_residual(x, look_back)
            x = layer.cross_residual(
                x,
                lambda y, layer=layer: layer.cross_attention(
                    y, masks.cross, key=memory
                ),
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return model.logits(model.decoder.norm(x))

    rest = range(2, tokens.shape[1])
    return torch.cat(
        [run(0, min(2, tokens.shape[1])), *(run(i, i + 1) for i in rest)], 1
    )


# Greedy decode batch


@right("greedy_decode_batch")
def one_after_the_other(step_fn, start, eos, pad, max_len):
    """Each row alone."""
    found = []
    for first in start.tolist():
        said = []
        while len(said) < max_len and eos not in said:
            (logits,) = step_fn(torch.tensor([first + said]))
            said.append(int(logits.argmax()))
        found.append(said)
    return found


@right("greedy_decode_batch")
def padded(step_fn, start, eos, pad, max_len):
    """All rows go on, and those that have ended say pad."""
    tokens = start
    finished = torch.zeros(len(start), dtype=torch.bool)
    while not finished.all() and tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished, pad)
        finished = finished | (chosen == eos)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens[:, 1:]


@right("greedy_decode_batch")
def without_the_finished(step_fn, start, eos, pad, max_len):
    """Only rows that have not ended are asked about."""
    said = [[] for _ in start]
    live = list(range(len(start)))
    while live and len(said[live[0]]) < max_len:
        rows = [[int(start[i]), *said[i]] for i in live]
        best = step_fn(torch.tensor(rows)).argmax(-1).tolist()
        for i, token in zip(live, best, strict=True):
            said[i].append(token)
        live = [i for i in live if said[i][-1] != eos]
    return said


@right("greedy_decode_batch")
def filled_beforehand(step_fn, start, eos, pad, max_len):
    """A table of padding, which is filled."""
    table = torch.full((len(start), max_len), pad)
    going = torch.ones(len(start), dtype=torch.bool)
    for step in range(max_len):
        rows = torch.cat([start, table[:, :step]], 1)
        table[going, step] = step_fn(rows[going]).argmax(-1)
        going &= table[:, step] != eos
        if not going.any():
            break
    return [row[row != pad] for row in table]
