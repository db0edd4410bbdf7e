"""A small model, sentences, and what goes wrong position by position."""

from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.engine.compare import seeded
from companion.masks import combine_masks
from companion.transformer import Transformer, TransformerConfig

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
        torch.manual_seed(seeded(5).initial_seed())
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


@torch.no_grad()
def whole(model: Transformer, src: Tensor, tokens: Tensor) -> Tensor:
    """All positions at once."""
    return model(src, tokens)


def changed(
    *,
    places: Callable = lambda positions, x: positions(x),
    own: Callable = lambda mask: mask,
    cross: Callable = lambda mask: mask,
    read: Callable = lambda mask: mask,
    norm: bool = True,
) -> Callable:
    """The full pass, with other positions or other masks."""

    @torch.no_grad()
    def mistake(model: Transformer, src: Tensor, tokens: Tensor) -> Tensor:
        masks = combine_masks(src, tokens, model.config.pad)
        memory = model.encode(src, read(masks.src))
        x = places(model.positions, model.tgt_embedding(tokens))
        for layer in model.decoder.layers:
            x = layer(x, memory, own(masks.tgt), cross(masks.cross))
        return model.logits(model.decoder.norm(x) if norm else x)

    return mistake


def at_the_start(positions: Callable, x: Tensor) -> Tensor:
    """Every vector as if it stood at position 0."""
    return torch.cat([positions(y) for y in x.split(1, 1)], 1)


def one_later(positions: Callable, x: Tensor) -> Tensor:
    """Every vector as if it stood a position later."""
    return positions(torch.cat([x[:, :1], x], 1))[:, 1:]


def nowhere(positions: Callable, x: Tensor) -> Tensor:
    """Vectors without a position."""
    return x


SUSPECTS = {
    "Every token has position 0: its position is how many are stored.": (
        changed(places=at_the_start)
    ),
    "Positions are one too late: the first token has position 0.": changed(
        places=one_later
    ),
    "The positions are missing.": changed(places=nowhere),
    "A position sees itself only: the keys before it are not stored, or not "
    "used.": changed(own=lambda mask: mask & mask.mT),
    "A position does not see itself: store its key before it asks.": changed(
        own=lambda mask: mask.tril(-1)
    ),
    "A position sees itself and the one before: the stored keys are "
    "overwritten, not appended to.": changed(own=lambda mask: mask.triu(-1)),
    "A position sees the first one and itself: the stored keys are never "
    "replaced by the longer ones.": changed(
        own=lambda mask: mask & (mask.mT | (torch.arange(mask.shape[-1]) == 0))
    ),
    "The target sees the padding of the source: its mask is missing in "
    "cross-attention.": changed(cross=lambda mask: mask | True),
    "The encoder sees padding: its mask is missing.": changed(
        read=lambda mask: mask | True
    ),
    "The mask of the source is missing, in the encoder and in "
    "cross-attention.": changed(
        read=lambda mask: mask | True, cross=lambda mask: mask | True
    ),
    "Where norms come first, the last norm of the decoder is missing.": (
        changed(norm=False)
    ),
}
"""Hint -> the mistake it hints at, in one pass."""
