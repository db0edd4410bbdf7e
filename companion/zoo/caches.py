"""Decoders with stored keys that say something else than the full pass."""

import torch

from companion.attention import scaled_dot_product_attention
from companion.masks import combine_masks
from companion.multihead import merge_heads
from companion.positions import sinusoids
from companion.zoo.animal import animal

ONCE = "Each position passes the decoder once, and not all together"
LOGITS = "It has the logits of the full pass"


def appended(old, new):
    """All pairs of keys and values, with the newest behind the others."""
    return [torch.cat(pair, 2) for pair in zip(old, new, strict=True)]


def step(layer, x, memory, mask, past, store, see):
    """One position through one layer; ``past`` holds what is stored."""
    own, cross = layer.self_attention, layer.cross_attention

    def look_back(y):
        new = own.keys(y, 0), own.values(y)
        old = past.get(layer)
        past[layer] = store(old, new) if old else new
        k, v = see(old, new) if old else new
        found = scaled_dot_product_attention(own.queries(y, 0), k, v)
        return own.out_proj(merge_heads(found))

    x = layer.attention_residual(x, look_back)
    x = layer.cross_residual(x, lambda y: cross(y, mask, key=memory))
    return layer.feed_forward_residual(x, layer.feed_forward)


@torch.no_grad()
def stepwise(
    model,
    src,
    tokens,
    *,
    store=appended,
    see=appended,
    place=lambda i: i,
    masks=None,
):
    """One position at a time, with what can go wrong in it."""
    masks = masks or combine_masks(src, tokens, model.config.pad)
    memory, past, rows = model.encode(src, masks.src), {}, []
    for i, token in enumerate(tokens.split(1, 1)):
        x = model.tgt_embedding(token)
        x = x + sinusoids(torch.tensor([place(i)]), x.shape[-1])
        for layer in model.decoder.layers:
            x = step(layer, x, memory, masks.cross, past, store, see)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="the second half of a sentence takes far longer than the first",
    contract=ONCE,
    says="what is stored need not be computed again",
)
def all_over_again(model, src, tokens):
    """The whole prefix passes the decoder for each new token."""
    ends = range(1, tokens.shape[1] + 1)
    rows = [model(src, tokens[:, :end])[:, -1] for end in ends]
    return torch.stack(rows, 1)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="right, and as slow as without a cache for long sources",
    contract="The source is read once",
    says="what is read does not change with what is said",
)
def reads_the_source_again(model, src, tokens):
    """The encoder runs within the loop."""
    mask = combine_masks(src, tokens, model.config.pad).src
    for _ in range(tokens.shape[1] - 1):
        model.encode(src, mask)
    return stepwise(model, src, tokens)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="without a cache it translates; with one it repeats a word",
    contract=LOGITS,
    says="Every token has position 0: its position is how many are stored",
)
def always_at_the_start(model, src, tokens):
    """A row of one token: its position is 0, whichever it is."""
    return stepwise(model, src, tokens, place=lambda i: 0)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="nearly the same words as without a cache, and not the same",
    contract=LOGITS,
    says="Positions are one too late: the first token has position 0",
)
def a_place_too_late(model, src, tokens):
    """The position is read off after the token was stored."""
    return stepwise(model, src, tokens, place=lambda i: i + 1)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="fluent pairs of words, and no sentence",
    contract=LOGITS,
    says="A position sees itself and the one before: the stored keys are",
)
def overwrites(model, src, tokens):
    """The newest key takes the place of those that are stored."""
    return stepwise(model, src, tokens, store=lambda old, new: new)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="it forgets what it has said, and says it again",
    contract=LOGITS,
    says="A position sees the first one and itself: the stored keys are never",
)
def stores_once(model, src, tokens):
    """What is appended is not kept: the first key stays alone."""
    return stepwise(model, src, tokens, store=lambda old, new: old)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="a word comes again and again, without regard to the one before",
    contract=LOGITS,
    says="A position sees itself only: the keys before it are not stored",
)
def sees_itself_only(model, src, tokens):
    """Each token asks only itself, as if the sentence began with it."""
    return stepwise(model, src, tokens, see=lambda old, new: new)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="a short sentence is translated otherwise in a batch with a long "
    "one",
    contract=LOGITS,
    says="The target sees the padding of the source",
)
def shows_padding(model, src, tokens):
    """The step has no mask for the source: padding is read along."""
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="a short sentence is read otherwise in a batch with a long one",
    contract=LOGITS,
    says="The encoder sees padding: its mask is missing",
)
def reads_padding(model, src, tokens):
    """The encoder is called without its mask."""
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True)
    return stepwise(model, src, tokens, masks=masks)


@animal(
    "cached_decode",
    seen="note 3, lines 208-215, whose pre-LN stack has no last norm (C-61)",
    symptom="right for post-LN; a pre-LN model has no idea what to say",
    contract=LOGITS,
    says="Where norms come first, the last norm of the decoder is missing",
)
def without_the_last_norm(model, src, tokens):
    """Runs the layers one by one, and forgets what follows the last."""
    norm, model.decoder.norm = model.decoder.norm, torch.nn.Identity()
    logits = stepwise(model, src, tokens)
    model.decoder.norm = norm
    return logits


@animal(
    "cached_decode",
    seen="a common slip",
    symptom="the second sentence is a translation of the first",
    contract="Nothing is left of the sentence before",
    says="After another sentence the logits are others",
)
def keeps_the_memory(model, src, tokens):
    """What was read stays with the model, for whatever comes next."""
    if not hasattr(model, "read") or len(model.read) != len(src):
        mask = combine_masks(src, tokens, model.config.pad).src
        model.read = model.encode(src, mask)
    encode, model.encode = model.encode, lambda src, mask: model.read
    logits = stepwise(model, src, tokens)
    model.encode = encode
    return logits
