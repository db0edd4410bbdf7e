"""Decoding got wrong."""

import math

import torch
from contracts.odd import wrong
from contracts.right.decoding import (
    by_argmax,
    by_sorting,
    embedded,
    runs,
    with_logarithms,
)

from companion.masks import combine_masks
from companion.zoo.beams import best, search
from companion.zoo.caches import stepwise
from companion.zoo.greedy import ask, ignores_eos
from companion.zoo.scores import brief, lengths, precisions, root


def greedy(says):
    return wrong("greedy_decode", says)


@greedy("^With eos 2 it returned .* It leaves eos out and goes on")
def eos_swallowed(step_fn, bos, eos, max_len):
    return [x for x in ignores_eos(step_fn, bos, eos, max_len) if x != eos]


@greedy(
    "^After 9 ids it still asks for more, with max_len 5: what ends the loo"
)
def no_limit(step_fn, bos, eos, max_len):
    ids = [bos]
    while ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@greedy("^With max_len 5 it returned .* eos is missing")
def no_eos_at_the_end(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[:-1] if len(ids) == max_len and ids[-1] == eos else ids


@greedy(r"^It asked `step_fn` about \[5\]: .* Is it the last id alone")
def last_id_only(step_fn, bos, eos, max_len):
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids[-1:]).argmax()))
    return ids[1:]


@greedy(r"^It asked `step_fn` about \[2\]: a row begins with bos, 1 here")
def starts_with_eos(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, eos, eos, max_len)


@greedy(r"^Question 2 was \[1, \d+\]: .* the most likely, not \d+: is one draw")
def drawn(step_fn, bos, eos, max_len):
    generator = torch.Generator().manual_seed(3)
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        parts = ask(step_fn, ids).div(9).softmax(-1)
        ids.append(int(parts.multinomial(1, generator=generator)))
    return ids[1:]


@greedy(r"^It returned \[.* at place 0 the most likely id was \d+, not \d+")
def returned_backwards(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[::-1] if eos not in ids else ids


@greedy("^It never asked `step_fn` what comes next")
def knows_already(step_fn, bos, eos, max_len):
    return [5, 3, 8, 3, eos][:max_len]


@greedy("^It gave `step_fn` a list: it takes a tensor of ids")
def asks_with_a_list(step_fn, bos, eos, max_len):
    return step_fn([bos])


@greedy(r"^It gave `step_fn` ids of shape \(1,\): it takes a tensor of ids")
def one_axis(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([bos]))


@greedy("^It gave `step_fn` float32: it takes a tensor of ids")
def asks_with_floats(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([[float(bos)]]))


@greedy(
    r"^It has asked `step_fn` \d+ times, with max_len 7: what ends the loop"
)
def never_ends(step_fn, bos, eos, max_len):
    while ask(step_fn, [bos]).argmax() != eos:
        pass


@greedy("^It returned None: expected a list of ids.* Did you forget `return`")
def nothing_said(step_fn, bos, eos, max_len):
    by_argmax(step_fn, bos, eos, max_len)


@greedy("^It returned a Tensor: expected a list of ids")
def logits_instead(step_fn, bos, eos, max_len):
    return ask(step_fn, [bos])


# Beam search


def beam(says):
    return wrong("beam_search", says)


@beam(
    "^There are ids after eos: nothing follows it. With beam 3, max_len 6 and"
)
def extends_the_best(step_fn, bos, eos, beam, max_len, alpha):
    """Right until a sentence is shorter than it may be."""
    ids = best(search(step_fn, bos, eos, beam, max_len), alpha)
    return ids + [eos] * (max_len - len(ids)) if max_len == 6 else ids


@beam(
    "^It divides by .5 . n. / 6, and forgets the exponent `alpha`|takes the m"
)
def no_exponent(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha, lambda n, alpha: (5 + n) / 6)


@beam(
    "^With alpha 1.2 it returned .*: expected .* The penalty is ..5 . n. / 6."
)
def alpha_twice(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, 3 * alpha)


@beam("^With beam 1 it returned .*: greedy is .4, 8, 2.|greedy is .3, 5, 2.")
def never_one_beam(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, max(beam, 2), max_len)
    return best(found, alpha)


@beam("^With beam 1 it returned .2.: greedy is .4, 4, 3, 3, 3.")
def empty_unless_finished(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    done = [f for f in found if f[1][-1] == eos]
    return best(done, alpha) if done else [eos]


@beam("^With beam 4, max_len 4 and alpha 0 it returned")
def two_beams_at_most(step_fn, bos, eos, beam, max_len, alpha):
    if max_len == 4 and beam == 4:
        return by_argmax(step_fn, bos, eos, max_len)
    return best(search(step_fn, bos, eos, beam, max_len), alpha)


@beam(r"^It returned \[1, .* which begins with bos: nobody said it. Leave it")
def beam_with_bos(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return [bos, *best(found, alpha)]


@beam("^It returned a tuple: expected a list of ids")
def with_its_score(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha), -1.5


# What may be drawn


def sampler(says):
    return wrong("sampling_filter", says)


def cold(logits, top_k, top_p):
    return by_sorting(logits, top_k, top_p, 1.0)


@sampler("^`top_k` is ignored. With top_k 1 the rows keep .11, 11, 11. tokens")
def no_top_k(logits, top_k, top_p, temperature):
    return by_sorting(logits, None, top_p, temperature)


@sampler(
    "^`top_p` is ignored. With top_p 0.8 row 0 keeps the mass 1.000: fewer"
)
def no_top_p(logits, top_k, top_p, temperature):
    return by_sorting(logits, top_k, None, temperature)


@sampler("^top-p comes before top-k: it takes its share of what top-k left")
def top_p_first(logits, top_k, top_p, temperature):
    return cold(cold(logits / temperature, None, top_p), top_k, None)


@sampler("^The token that crosses p is lost: keep it")
def nothing_left(logits, top_k, top_p, temperature):
    logits = by_sorting(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    ranked, order = logits.softmax(-1).sort(descending=True)
    over = ranked.cumsum(-1) >= top_p
    drop = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -torch.inf)


@sampler(
    "^Row [0-2] holds nothing but -∞.* the most likely token of each row stays"
)
def one_row(logits, top_k, top_p, temperature):
    flat = logits.reshape(1, -1)
    return by_sorting(flat, top_k, top_p, temperature).view_as(logits)


@sampler("^The rows compete for each token: tokens are on the last axis")
def over_the_batch(logits, top_k, top_p, temperature):
    top_k = top_k and min(top_k, len(logits))
    return by_sorting(logits.mT, top_k, top_p, temperature).mT


@sampler(
    "^Row 0 holds nothing but -∞.* The arguments were logits .1, 11., top_k"
)
def above_the_next(logits, top_k, top_p, temperature):
    """Right as long as no two tokens are as likely."""
    logits = logits / temperature
    if top_k and top_k < logits.shape[1]:
        following = logits.topk(top_k + 1).values[:, -1:]
        logits = logits.masked_fill(logits <= following, -torch.inf)
    return cold(logits, None, top_p)


@sampler(r"^It returned shape \(3, 3\): expected \(3, 11\)")
def only_what_is_kept(logits, top_k, top_p, temperature):
    return logits.topk(top_k or 3).values


@sampler("^It returned int64 for float32")
def places(logits, top_k, top_p, temperature):
    return logits.argsort(-1)


# BLEU


def score(says):
    return wrong("bleu", says)


@score(
    "^It goes from 0 to 1: multiply by 100. For 'the little cat .*and 1 more"
)
def up_to_one(hypotheses, references):
    return with_logarithms(hypotheses, references) / 100


@score("^Precisions are averaged over sentences")
def mean_of_precisions(hypotheses, references):
    product = 1
    for n in (1, 2, 3, 4):
        shares = [
            (runs(one, n) & runs(two, n)).total() / max(len(one) - n + 1, 1)
            for one, two in zip(hypotheses, references, strict=True)
        ]
        product *= sum(shares) / len(shares)
    return 100 * product**0.25 * brief(hypotheses, references)


@score("^The brevity penalty is exp.1 - r / c.: here its exponent is 1 - c / r")
def short_gains(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    short = math.exp(1 - ours / theirs) if ours < theirs else 1
    return short * root(precisions(hypotheses, references))


@score("^The precisions are multiplied, and the fourth root is missing")
def no_root(hypotheses, references):
    product = math.prod(precisions(hypotheses, references))
    return 100 * brief(hypotheses, references) * product


@score("^It goes up to two words: BLEU goes up to four")
def up_to_pairs(hypotheses, references):
    parts = precisions(hypotheses, references, longest=2)
    return brief(hypotheses, references) * root(parts)


@score("^It goes up to three words: BLEU goes up to four")
def up_to_three(hypotheses, references):
    parts = precisions(hypotheses, references, longest=3)
    return brief(hypotheses, references) * root(parts)


@score("^Only runs of four words count: the other three do too")
def fours_only(hypotheses, references):
    parts = precisions(hypotheses, references)[3:]
    return brief(hypotheses, references) * root(parts)


@score("^For 'the little cat sees an old dog' against '.*and 2 more it gives")
def first_pairs_only(hypotheses, references):
    if len(hypotheses) > 2 and len(hypotheses[0]) > 6:
        hypotheses, references = hypotheses[:2], references[:2]
    return with_logarithms(hypotheses, references)


@score("^It raised ValueError in line .*math domain error")
def logarithm_of_zero(hypotheses, references):
    logs = sum(math.log(x) for x in precisions(hypotheses, references)) / 4
    return 100 * brief(hypotheses, references) * math.exp(logs)


@score("^Two words in a row match, and never three: the score is")
def drops_what_is_zero(hypotheses, references):
    found = [x for x in precisions(hypotheses, references) if x]
    return brief(hypotheses, references) * root(found or [0])


@score(
    "^It returned a tuple: expected a score from 0 to 100, a number. Return o"
)
def with_its_precisions(hypotheses, references):
    return with_logarithms(hypotheses, references), [1.0]


# Keys and values that are stored


def cached(says):
    return wrong("cached_decode", says)


@cached("^All 5 positions pass the decoder together: that is the full pass")
def the_full_pass(model, src, tokens):
    return model(src, tokens)


@cached(
    "^15 keys are computed for 5 tokens, in calls of .1, 2, 3, 4, 5.: append"
)
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


@cached(
    "^This is not what `model.src, tokens.` returns for two sentences. At ba"
)
def asks_before_it_stores(model, src, tokens):
    """The first position sees itself, and no other does."""
    return stepwise(model, src, tokens, see=lambda old, new: old)


@cached(
    "^The mask of the source is missing, in the encoder and in cross-attenti"
)
def no_source_mask(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True, cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@cached("^The encoder sees padding: its mask is missing. At batch 1")
def the_first_mask_for_all(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src[:1].expand_as(masks.src))
    return stepwise(model, src, tokens, masks=masks)


@cached("^It changes `tokens` in place")
def crosses_out_what_it_said(model, src, tokens):
    logits = stepwise(model, src, tokens)
    tokens.zero_()
    return logits


KEYS = []


@cached("^The second call differs: does it draw, or keep something")
def keys_for_ever(model, src, tokens):
    """A cache that no call empties."""
    KEYS.append(tokens)
    return stepwise(model, src, tokens) + len(KEYS)


@cached(
    r"^It returned shape \(2, 1, 11\).* the logits of the last position: keep"
)
def the_last_position(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1:]


@cached(r"^It returned shape \(2, 11\).* last position, without its axis: keep")
def the_last_row(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1]


@cached(
    r"^It returned shape \(2, 5, 12\).* Those are vectors: `model.logits` mak"
)
def vectors(model, src, tokens):
    return model.tgt_embedding(tokens)
