"""Contracts of decoding with stored keys and values.

``model`` is a small ``Transformer``. What is counted are the rows that pass its
linear maps, so a function that multiplies by other weights is judged by its
logits alone. Whether the keys of the source are stored too is up to the
writer: without it a search is slower, and as right.
"""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import Broken, same, seeded
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.masks import combine_masks
from companion.multihead import merge_heads
from companion.positions import sinusoids
from companion.transformer import Transformer, TransformerConfig

__all__ = ["CACHED_DECODE"]

WORDS, BATCH, SOURCE, TARGET = 13, 2, 7, 5


def model(*, norm_first: bool = False) -> Transformer:
    """A Transformer of one layer a side, always with the same weights."""
    config = TransformerConfig(
        src_vocab_size=WORDS,
        tgt_vocab_size=11,
        d_model=12,
        num_heads=3,
        d_ff=17,
        num_layers=1,
        dropout=0.0,
        norm_first=norm_first,
    )
    with torch.random.fork_rng([]):
        # That of the CPU alone: torch.manual_seed asks every kind of device.
        torch.default_generator.manual_seed(seeded(5).initial_seed())
        return Transformer(config).eval()


def sources(seed: int) -> Tensor:
    """Two sources, the second one padded."""
    generator = seeded(seed)
    src = torch.randint(3, WORDS, (BATCH, SOURCE), generator=generator)
    src[1, 4:] = 0
    return src


def targets(seed: int) -> Tensor:
    """What a decoder reads for both: bos, and words."""
    generator = seeded(seed + 100)
    words = torch.randint(3, 11, (BATCH, TARGET - 1), generator=generator)
    return torch.cat([torch.ones(BATCH, 1, dtype=torch.long), words], 1)


def two_sentences() -> tuple[Transformer, Tensor, Tensor]:
    """A model, two sources and what it has said of them."""
    return model(), sources(3), targets(3)


@torch.no_grad()
def whole(model: Transformer, src: Tensor, tokens: Tensor) -> Tensor:
    """All positions at once."""
    return model(src, tokens)


CACHED_DECODE = Component(
    name="cached_decode",
    signature="cached_decode(model, src, tokens)",
    returns="logits (batch, tgt, vocab), as `model(src, tokens)` has them",
    axes=("position", "logit"),
    shape=lambda model, src, tokens: (
        *tokens.shape,
        model.config.tgt_vocab_size,
    ),
    dtype=torch.float32,
    oracle=whole,
    reference="`model(src, tokens)`",
    agrees="It has the logits of the full pass",
    cases=lambda: {
        "for two sentences": two_sentences(),
        "where norms come first": (
            model(norm_first=True),
            sources(5),
            targets(5),
        ),
        "for one token": (model(), sources(7), targets(7)[:, :1]),
    },
    plain=two_sentences,
    shape_hints={
        "Those are the logits of the last position: keep all of them.": (
            lambda model, src, tokens: (len(tokens), 1, None)
        ),
        "Those are the logits of the last position, without its axis: keep all "
        "of them.": lambda model, src, tokens: (len(tokens), None),
        "Those are vectors: `model.logits` makes scores of them.": (
            lambda model, src, tokens: (*tokens.shape, model.config.d_model)
        ),
    },
)


class Passes(TorchFunctionMode):
    """Note how many positions of a sentence pass each linear map."""

    def __init__(self, batch: int):
        super().__init__()
        self.batch, self.rows = batch, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == "linear":
            x, weight = args[:2]
            rows = x.numel() // x.shape[-1] // self.batch
            self.rows.setdefault(id(weight), []).append(rows)
        return func(*args, **(kwargs or {}))

    def of(self, linear: nn.Linear) -> list[int]:
        """The positions in each call."""
        return self.rows.get(id(linear.weight), [])


@functools.lru_cache(1)
def passes(fn: Guarded) -> tuple[Passes, nn.Module, int, int]:
    """What passed in a plain call, in which model, and both lengths."""
    args = CACHED_DECODE.example
    network, src, tokens = args
    with Passes(len(tokens)) as noted:
        fn.raw(*args)
    return noted, network, src.shape[1], tokens.shape[1]


@CACHED_DECODE.before_reference
def positions(fn: Guarded) -> None:
    """Each position passes the decoder once, and not all together."""
    noted, network, _, length = passes(fn)
    for layer in network.decoder.layers:
        rows = noted.of(layer.feed_forward.up_proj)
        if rows == [length]:
            raise Broken(
                f"All {length} positions pass the decoder together: that is "
                "the full pass. Give it one position at a time, as in a search."
            )
        if sum(rows) > length:
            raise Broken(
                f"{sum(rows)} positions pass a layer of the decoder for "
                f"{length} tokens, in calls of {rows}: what is stored need "
                "not be computed again."
            )


@CACHED_DECODE.before_reference
def keys(fn: Guarded) -> None:
    """The key of each position is computed once."""
    noted, network, _, length = passes(fn)
    for layer in network.decoder.layers:
        rows = noted.of(layer.self_attention.k_proj)
        if sum(rows) > length:
            raise Broken(
                f"{sum(rows)} keys are computed for {length} tokens, in calls "
                f"of {rows}: append the newest key to those that are stored."
            )


@CACHED_DECODE.before_reference
def source(fn: Guarded) -> None:
    """The source is read once."""
    noted, network, length, _ = passes(fn)
    for layer in network.encoder.layers:
        rows = noted.of(layer.feed_forward.up_proj)
        if sum(rows) > length:
            raise Broken(
                f"The source passes the encoder {len(rows)} times: what is "
                "read does not change with what is said."
            )


@CACHED_DECODE.contract
def forgets(fn: Guarded) -> None:
    """Nothing is left of the sentence before."""
    network, args = model(), (sources(11), targets(13))
    fn(network, sources(3), targets(3))
    why = (
        "After another sentence the logits are others: does something stay "
        "stored from call to call?"
    )
    same(fn, fn(network, *args), fn(model(), *args), why)


@CACHED_DECODE.contract
def alone(fn: Guarded) -> None:
    """A sentence has the logits that it has alone."""
    network, src, tokens = CACHED_DECODE.example
    rows = zip(src, tokens, strict=True)
    each = torch.cat([fn(network, a[None], b[None]) for a, b in rows])
    why = "In a batch a sentence has other logits than alone."
    same(fn, fn(network, src, tokens), each, why)


# Known mistakes


def appended(old, new):
    """All pairs of keys and values, with the newest behind the others."""
    return [torch.cat(pair, 2) for pair in zip(old, new, strict=True)]


def any_in(stored):
    """Whether something is stored."""
    return stored[0].shape[2] > 0


def step(layer, x, memory, mask, past, store, see):
    """One position through one layer; ``past`` holds what is stored."""
    own, cross = layer.self_attention, layer.cross_attention

    def look_back(y):
        new = own.keys(y, 0), own.values(y)
        old = past.get(layer, [x[:, :, :0] for x in new])
        past[layer] = store(old, new)
        k, v = see(old, new)
        found = F.scaled_dot_product_attention(own.queries(y, 0), k, v)
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
    """One position at a time, with what can go wrong in it.

    Without a ``place`` there are no positions.
    """
    masks = masks or combine_masks(src, tokens, model.config.pad)
    memory, past, rows = model.encode(src, masks.src), {}, []
    for i, token in enumerate(tokens.split(1, 1)):
        x = model.tgt_embedding(token)
        if place is not None:
            x = x + sinusoids(torch.tensor([place(i)]), x.shape[-1])
        for layer in model.decoder.layers:
            x = step(layer, x, memory, masks.cross, past, store, see)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@CACHED_DECODE.mistake(
    hint="Every token has position 0: its position is how many are stored.",
    symptom="without a cache it translates; with one it repeats a word",
)
def always_at_the_start(model, src, tokens):
    """A row of one token: its position is 0, whichever it is."""
    return stepwise(model, src, tokens, place=lambda i: 0)


@CACHED_DECODE.mistake(
    hint="Positions are one too late: the first token has position 0.",
    symptom="nearly the same words as without a cache, and not the same",
)
def a_place_too_late(model, src, tokens):
    """The position is read off after the token was stored."""
    return stepwise(model, src, tokens, place=lambda i: i + 1)


@CACHED_DECODE.mistake(hint="The positions are missing.")
def nowhere(model, src, tokens):
    """The embedding alone, which knows no order."""
    return stepwise(model, src, tokens, place=None)


@CACHED_DECODE.mistake(
    hint="A position sees itself only: the keys before it are not stored, or "
    "not used.",
    symptom="a word comes again and again, without regard to the one before",
)
def sees_itself_only(model, src, tokens):
    """Each token asks only itself, as if the sentence began with it."""
    return stepwise(model, src, tokens, see=lambda old, new: new)


@CACHED_DECODE.mistake(
    hint="A position does not see itself: store its key before it asks.",
)
def blind_to_itself(model, src, tokens):
    """The newest key is stored after it was needed."""
    return stepwise(model, src, tokens, see=lambda old, new: old)


@CACHED_DECODE.mistake(
    hint="A position sees itself and the one before: the stored keys are "
    "overwritten, not appended to.",
    symptom="fluent pairs of words, and no sentence",
)
def overwrites(model, src, tokens):
    """The newest key takes the place of those that are stored."""
    return stepwise(model, src, tokens, store=lambda old, new: new)


@CACHED_DECODE.mistake(
    hint="A position sees the first one and itself: the stored keys are never "
    "replaced by the longer ones.",
    symptom="it forgets what it has said, and says it again",
)
def stores_once(model, src, tokens):
    """What is appended is not kept: the first key stays alone."""
    return stepwise(
        model, src, tokens, store=lambda old, new: old if any_in(old) else new
    )


@CACHED_DECODE.mistake(
    hint="The target sees the padding of the source: its mask is missing in "
    "cross-attention.",
    symptom="a short sentence is translated otherwise in a batch with a long "
    "one",
)
def shows_padding(model, src, tokens):
    """The step has no mask for the source: padding is read along."""
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@CACHED_DECODE.mistake(
    hint="The encoder sees padding: its mask is missing.",
    symptom="a short sentence is read otherwise in a batch with a long one",
)
def reads_padding(model, src, tokens):
    """The encoder is called without its mask."""
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True)
    return stepwise(model, src, tokens, masks=masks)


@CACHED_DECODE.mistake(
    hint="The mask of the source is missing, in the encoder and in "
    "cross-attention.",
)
def source_unmasked(model, src, tokens):
    """Padding is read by the encoder, and by the decoder too."""
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True, cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@CACHED_DECODE.mistake(
    hint="Where norms come first, the last norm of the decoder is missing.",
    symptom="right for post-LN; a pre-LN model has no idea what to say",
)
def without_the_last_norm(model, src, tokens):
    """Runs the layers one by one, and forgets what follows the last."""
    norm, model.decoder.norm = model.decoder.norm, torch.nn.Identity()
    logits = stepwise(model, src, tokens)
    model.decoder.norm = norm
    return logits


@CACHED_DECODE.mistake(
    symptom="the second half of a sentence takes far longer than the first",
)
def all_over_again(model, src, tokens):
    """The whole prefix passes the decoder for each new token."""
    ends = range(1, tokens.shape[1] + 1)
    rows = [model(src, tokens[:, :end])[:, -1] for end in ends]
    return torch.stack(rows, 1)


@CACHED_DECODE.mistake(
    symptom="right, and as slow as without a cache for long sources",
)
def reads_the_source_again(model, src, tokens):
    """The encoder runs within the loop."""
    mask = combine_masks(src, tokens, model.config.pad).src
    for _ in range(tokens.shape[1] - 1):
        model.encode(src, mask)
    return stepwise(model, src, tokens)


@CACHED_DECODE.mistake(
    symptom="the second sentence is a translation of the first",
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
