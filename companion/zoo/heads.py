"""Heads cut out of vectors, and heads that share keys, in wrong ways."""

from companion.attention import masked_softmax
from companion.variants import grouped_query_attention
from companion.zoo.animal import animal

HOME = "Every number lands in its own head and at its own position"
SHARED = "Neighbouring query heads share a key and value head"
AGREES = "It agrees with PyTorch"

# Sharing


@animal(
    "grouped_query_attention",
    seen="a common slip",
    symptom="converted weights write nonsense; trained from scratch it is fine",
    contract=SHARED,
    says="The key and value heads take turns",
)
def dealt_out_in_turns(q, k, v, mask=None):
    """`repeat` for `repeat_interleave`: heads 0, 1, 0, 1 for 0, 0, 1, 1."""
    turns = q.shape[1] // k.shape[1]
    k, v = (x.repeat(1, turns, 1, 1) for x in (k, v))
    return grouped_query_attention(q, k, v, mask)


@animal(
    "grouped_query_attention",
    seen="a common slip",
    symptom="like the right one with one key head, worse with more",
    contract=SHARED,
    says="All query heads get key head 0",
)
def first_head_for_all(q, k, v, mask=None):
    """Key head 0 is broadcast to all, and the others are never read."""
    return grouped_query_attention(q, k[:, :1], v[:, :1], mask)


@animal(
    "grouped_query_attention",
    seen="note 5, lines 147-153 (C-113)",
    symptom="every head draws the same map: many heads, no better than one",
    contract=SHARED,
    says="Of 6 query heads on 2, head 0 hears key head 1",
)
def concatenated_first(q, k, v, mask=None):
    """The heads are laid side by side before attention: that is one head."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ k.mT).sum(1, keepdim=True) / (q[0, :, 0].numel()) ** 0.5
    if mask is None:
        return scores.softmax(-1) @ v
    return masked_softmax(scores.expand(*q.shape[:3], -1), mask) @ v


@animal(
    "grouped_query_attention",
    seen="a common slip",
    symptom="attention stays softer than it should, the more heads the more",
    contract=AGREES,
    says="The scores are divided by the root of the model's width",
)
def scaled_by_d_model(q, k, v, mask=None):
    """√d_model for √d_k: the width of all heads together."""
    return grouped_query_attention(q / q.shape[1] ** 0.5, k, v, mask)


@animal(
    "grouped_query_attention",
    seen="a common slip",
    symptom="right until heads have masks of their own, as with local heads",
    contract=AGREES,
    says="The mask of the first head is used for all",
)
def one_mask_for_all_heads(q, k, v, mask=None):
    """Of a mask for each head the first one is used."""
    if mask is not None and mask.ndim == 4:
        mask = mask[:, :1]
    return grouped_query_attention(q, k, v, mask)
