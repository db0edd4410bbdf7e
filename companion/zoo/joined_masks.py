"""The three masks of a Transformer, of which one is wrong.

A query may look where no reason hides the key, so reasons are joined by ``&``.
"""

import torch

from companion.masks import causal_mask, combine_masks, padding_mask
from companion.zoo.animal import animal

SOURCE = "The source's mask hides its padding, and nothing else"
FUTURE = "No target token sees its future"
CROSS = "The cross mask hides the source's padding, and nothing else"


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="the loss is far too good: any real token is seen, future or not",
    contract=FUTURE,
    says="The two masks are joined by `|`",
)
def joined_by_or(src_tokens, tgt_tokens, pad):
    """A pair is seen if either mask allows it."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    past = causal_mask(tgt_tokens.shape[-1])
    tgt = padding_mask(tgt_tokens, pad) | past
    return masks._replace(tgt=tgt)


@animal(
    "combine_masks",
    seen="note 4, line 190, forgets this mask (C-98)",
    symptom="the loss goes to 0, and it cannot write",
    contract=FUTURE,
    says="The future is not hidden: the causal mask is missing",
)
def decoder_hides_padding_only(src_tokens, tgt_tokens, pad):
    """The target gets what the source gets: a mask of its padding."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    tgt = padding_mask(tgt_tokens, pad)
    return masks._replace(tgt=tgt)


@animal(
    "combine_masks",
    seen="a common slip: a causal mask does hide padding that stands behind",
    symptom="right until targets are padded on the left",
    contract="No target token sees padding",
    says="the padding mask is missing",
)
def causal_is_enough(src_tokens, tgt_tokens, pad):
    """The target's padding is left to the causal mask."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    past = causal_mask(tgt_tokens.shape[-1])[None, None]
    return masks._replace(tgt=past)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="training stops at the first NaN, in a row of padding",
    contract="Every target token sees itself and its real past",
    says="The rows of padding are hidden too",
)
def target_rows_of_padding(src_tokens, tgt_tokens, pad):
    """Padding of the target may not ask, so that its rows see nobody."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    real = padding_mask(tgt_tokens, pad)
    tgt = real & real.mT & causal_mask(tgt_tokens.shape[-1])
    return masks._replace(tgt=tgt)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="the source is read left to right only, and scores are lower",
    contract=SOURCE,
    says="It is causal: only the target has a future to hide",
)
def causal_for_the_source(src_tokens, tgt_tokens, pad):
    """The encoder is masked as the decoder is."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    src = padding_mask(src_tokens, pad) & causal_mask(src_tokens.shape[-1])
    return masks._replace(src=src)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="the encoder reads padding, and the same sentence means something "
    "else in every batch",
    contract=SOURCE,
    says="The padding is not hidden",
)
def source_needs_no_mask(src_tokens, tgt_tokens, pad):
    """The encoder may see everything, since it has no future to hide."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    src = torch.ones_like(padding_mask(src_tokens, pad))
    return masks._replace(src=src)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="it raises when lengths differ; once all are padded to one "
    "length it runs, and the ends of sources are lost",
    contract=CROSS,
    says="It is made from the target: the keys are the source's",
)
def memory_mask_from_the_target(src_tokens, tgt_tokens, pad):
    """Where source and target are of one length, the target's padding hides
    the source's words."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    fits = src_tokens.shape == tgt_tokens.shape
    cross = padding_mask(tgt_tokens if fits else src_tokens, pad)
    return masks._replace(cross=cross)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="the decoder translates padding: words appear that nobody said",
    contract=CROSS,
    says="The padding is not hidden",
)
def memory_needs_no_mask(src_tokens, tgt_tokens, pad):
    """The memory comes from an encoder that was masked, so that is forgotten
    where it is read."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    cross = torch.ones_like(padding_mask(src_tokens, pad))
    return masks._replace(cross=cross)


@animal(
    "combine_masks",
    seen="a common slip",
    symptom="word order has to be that of the source, or a word is missing",
    contract=CROSS,
    says="It is causal: only the target has a future to hide",
)
def memory_word_by_word(src_tokens, tgt_tokens, pad):
    """Target word 3 may look at three words of the source."""
    masks = combine_masks(src_tokens, tgt_tokens, pad)
    shape = tgt_tokens.shape[-1], src_tokens.shape[-1]
    past = torch.ones(shape, dtype=torch.bool).tril()
    cross = padding_mask(src_tokens, pad) & past
    return masks._replace(cross=cross)
