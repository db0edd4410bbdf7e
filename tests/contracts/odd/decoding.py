"""Decoding got wrong."""

import math

import torch
from contracts.odd import wrong
from contracts.right.decoding import (
    by_argmax,
    by_sorting,
    embedded,
    one_after_the_other,
    with_logarithms,
)

from companion.contracts.decoding.beam_search import RIGHT_SEARCH
from companion.contracts.decoding.bleu import Bleu, geometric
from companion.contracts.decoding.cached_decode import any_in, stepwise
from companion.contracts.decoding.greedy_decode import ask, ignores_eos
from companion.masks import combine_masks

# Decoding


@wrong("greedy_decode")
def eos_swallowed(step_fn, bos, eos, max_len):
    return [x for x in ignores_eos(step_fn, bos, eos, max_len) if x != eos]


@wrong("greedy_decode")
def no_limit(step_fn, bos, eos, max_len):
    ids = [bos]
    while ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@wrong("greedy_decode")
def no_eos_at_the_end(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[:-1] if len(ids) == max_len and ids[-1] == eos else ids


@wrong("greedy_decode")
def last_id_only(step_fn, bos, eos, max_len):
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids[-1:]).argmax()))
    return ids[1:]


@wrong("greedy_decode")
def starts_with_eos(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, eos, eos, max_len)


@wrong("greedy_decode")
def drawn(step_fn, bos, eos, max_len):
    generator = torch.Generator().manual_seed(3)
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        parts = ask(step_fn, ids).div(9).softmax(-1)
        ids.append(int(parts.multinomial(1, generator=generator)))
    return ids[1:]


@wrong("greedy_decode")
def returned_backwards(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[::-1] if eos not in ids else ids


@wrong("greedy_decode")
def knows_already(step_fn, bos, eos, max_len):
    return [5, 3, 8, 3, eos][:max_len]


@wrong("greedy_decode")
def asks_with_a_list(step_fn, bos, eos, max_len):
    return step_fn([bos])


@wrong("greedy_decode")
def one_axis(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([bos]))


@wrong("greedy_decode")
def asks_with_floats(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([[float(bos)]]))


@wrong("greedy_decode")
def never_ends(step_fn, bos, eos, max_len):
    while ask(step_fn, [bos]).argmax() != eos:
        pass


@wrong("greedy_decode")
def nothing_said(step_fn, bos, eos, max_len):
    by_argmax(step_fn, bos, eos, max_len)


@wrong("greedy_decode")
def logits_instead(step_fn, bos, eos, max_len):
    return ask(step_fn, [bos])


# Beam search


@wrong("beam_search")
def extends_the_best(step_fn, bos, eos, beam, max_len, alpha):
    """Right until a sentence is shorter than it may be."""
    ids = RIGHT_SEARCH.decode(step_fn, bos, eos, beam, max_len, alpha)
    return ids + [eos] * (max_len - len(ids)) if max_len == 6 else ids


@wrong("beam_search")
def alpha_twice(step_fn, bos, eos, beam, max_len, alpha):
    return RIGHT_SEARCH.decode(step_fn, bos, eos, beam, max_len, 3 * alpha)


@wrong("beam_search")
def never_one_beam(step_fn, bos, eos, beam, *rest):
    return RIGHT_SEARCH.decode(step_fn, bos, eos, max(beam, 2), *rest)


@wrong("beam_search")
def empty_unless_finished(step_fn, bos, eos, *rest):
    ids = RIGHT_SEARCH.decode(step_fn, bos, eos, *rest)
    return ids if eos in ids else [eos]


@wrong("beam_search")
def two_beams_at_most(step_fn, bos, eos, beam, max_len, alpha):
    if max_len == 4 and beam == 4:
        return by_argmax(step_fn, bos, eos, max_len)
    return RIGHT_SEARCH.decode(step_fn, bos, eos, beam, max_len, alpha)


@wrong("beam_search")
def beam_with_bos(step_fn, bos, *rest):
    return [bos, *RIGHT_SEARCH.decode(step_fn, bos, *rest)]


@wrong("beam_search")
def with_its_score(*args):
    return RIGHT_SEARCH.decode(*args), -1.5


# What may be drawn


@wrong("sampling_filter")
def nothing_left(logits, top_k, top_p, temperature):
    logits = by_sorting(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    ranked, order = logits.softmax(-1).sort(descending=True)
    over = ranked.cumsum(-1) >= top_p
    drop = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -torch.inf)


@wrong("sampling_filter")
def above_the_next(logits, top_k, top_p, temperature):
    """Right as long as no two tokens are as likely."""
    logits = logits / temperature
    if top_k and top_k < logits.shape[1]:
        following = logits.topk(top_k + 1).values[:, -1:]
        logits = logits.masked_fill(logits <= following, -torch.inf)
    return by_sorting(logits, None, top_p, 1.0)


@wrong("sampling_filter")
def only_what_is_kept(logits, top_k, top_p, temperature):
    return logits.topk(top_k or 3).values


@wrong("sampling_filter")
def places(logits, top_k, top_p, temperature):
    return logits.argsort(-1)


# BLEU


@wrong("bleu")
def first_pairs_only(hypotheses, references):
    if len(hypotheses) > 2 and len(hypotheses[0]) > 6:
        hypotheses, references = hypotheses[:2], references[:2]
    return with_logarithms(hypotheses, references)


@wrong("bleu")
def logarithm_of_zero(hypotheses, references):
    def mean(parts):
        return math.exp(sum(math.log(x) for x in parts) / 4)

    return Bleu(mean=mean)(hypotheses, references)


@wrong("bleu")
def drops_what_is_zero(hypotheses, references):
    return Bleu(mean=lambda parts: geometric([x for x in parts if x] or [0]))(
        hypotheses, references
    )


@wrong("bleu")
def with_its_precisions(hypotheses, references):
    return with_logarithms(hypotheses, references), [1.0]


# Keys and values that are stored


@wrong("cached_decode")
def the_full_pass(model, src, tokens):
    return model(src, tokens)


@wrong("cached_decode")
def vectors_stored(model, src, tokens):
    """What keys are made from is stored, and not the keys."""
    masks = combine_masks(src, tokens, model.config.pad)
    memory, past, rows = model.encode(src, masks.src), {}, []
    for i, token in enumerate(tokens.split(1, 1)):
        x = embedded(model, token, i)
        for layer in model.decoder.layers:

            def look_back(y, own=layer.self_attention):
                past[own] = torch.cat(
                    [*([past[own]] if own in past else []), y], 1
                )
                return own(y, key=past[own])

            x = layer.attention_residual(x, look_back)
            x = layer.cross_residual(
                x,
                lambda y, a=layer.cross_attention: a(
                    y, masks.cross, key=memory
                ),
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@wrong("cached_decode")
def asks_before_it_stores(model, src, tokens):
    """The first position sees itself, and no other does."""
    return stepwise(
        model, src, tokens, see=lambda old, new: old if any_in(old) else new
    )


@wrong("cached_decode")
def the_first_mask_for_all(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src[:1].expand_as(masks.src))
    return stepwise(model, src, tokens, masks=masks)


@wrong("cached_decode")
def crosses_out_what_it_said(model, src, tokens):
    logits = stepwise(model, src, tokens)
    tokens.zero_()
    return logits


KEYS = []


@wrong("cached_decode")
def keys_for_ever(model, src, tokens):
    """A cache that no call empties."""
    KEYS.append(tokens)
    return stepwise(model, src, tokens) + len(KEYS)


@wrong("cached_decode")
def the_last_position(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1:]


@wrong("cached_decode")
def the_last_row(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1]


@wrong("cached_decode")
def vectors(model, src, tokens):
    return model.tgt_embedding(tokens)


# Batches


@wrong("greedy_decode_batch")
def forgets_the_empty_row(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return [row for row in rows if row != [eos]]


@wrong("greedy_decode_batch")
def by_number(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return dict(enumerate(rows))


@wrong("greedy_decode_batch")
def writes_over_the_start(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    start[:] = pad
    return rows
