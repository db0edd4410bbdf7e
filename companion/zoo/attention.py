"""Scaled dot-product attention, wrong in its scale, its softmax or its mask.

Words for axes are those of ``companion.attention``. True = may attend.
"""

import math

import torch
import torch.nn.functional as F

from companion.attention import masked_softmax, scaled_dot_product_attention
from companion.zoo.animal import animal

AGREES = "It agrees with PyTorch"
FUTURE = "With a causal mask no row sees its future"


def attend(q, k, v, mask, *, scale=None, weigh=masked_softmax):
    """Attention with another scale, or another masked softmax."""
    scale = 1 / math.sqrt(k.shape[-1]) if scale is None else scale
    scores = q @ k.mT * scale
    return (scores.softmax(-1) if mask is None else weigh(scores, mask)) @ v


# The scale


@animal(
    "attention",
    seen="a common slip",
    symptom="attention is all or nothing from the start, and hardly learns",
    contract=AGREES,
    says="The scores are not scaled",
)
def unscaled(q, k, v, mask=None):
    """√d_k is forgotten: scores spread as far as √d_k, the softmax is full."""
    return attend(q, k, v, mask, scale=1)


@animal(
    "attention",
    seen="a common slip; note 1, lines 111-114, warns of it (C-16)",
    symptom="attention stays almost uniform for thousands of steps",
    contract=AGREES,
    says="The scores are divided by d_k",
)
def scaled_by_d_k(q, k, v, mask=None):
    """Divided by d_k and not by its root: all keys look alike."""
    return attend(q, k, v, mask, scale=1 / k.shape[-1])


@animal(
    "attention",
    seen="a common slip",
    symptom="the output of a layer is √d_k times too small, its maps too hard",
    contract=AGREES,
    says="The scale comes after the softmax",
)
def scaled_late(q, k, v, mask=None):
    """Divides the weights by √d_k, and not the scores."""
    return attend(q, k, v, mask, scale=1) / math.sqrt(k.shape[-1])


# The softmax


@animal(
    "attention",
    seen="a common slip",
    symptom="rows differ in size; keys compete for queries, not the reverse",
    contract=AGREES,
    says="The softmax runs over the queries",
)
def over_the_queries(q, k, v, mask=None):
    """The softmax runs over the queries: columns sum to 1, rows do not."""
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
    return scores.softmax(-2) @ v


@animal(
    "attention",
    seen="a common slip: PyTorch's function drops out whenever it is told to",
    symptom="the same sentence is translated otherwise each time",
    contract="The same inputs give the same output",
    says="dropout is on",
)
def dropout_left_on(q, k, v, mask=None):
    """`dropout_p` is passed on without asking whether this is training."""
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.5)


# The mask


@animal(
    "attention",
    seen="note 3, lines 118-119 with 223-235 (C-57)",
    symptom="the loss falls below what the data allow, and it writes nonsense",
    contract=FUTURE,
    says="The mask is upside down",
)
def upside_down(q, k, v, mask=None):
    """Made as True = hidden, used as True = may attend: it sees the rest."""
    return scaled_dot_product_attention(
        q, k, v, None if mask is None else ~mask
    )


@animal(
    "attention",
    seen="a common slip",
    symptom="the loss is near 0 within minutes; the text repeats itself",
    contract=FUTURE,
    says="The triangle is upside down",
)
def transposed(q, k, v, mask=None):
    """Rows and columns of a square mask change places."""
    if mask is not None and mask.shape[-1] == mask.shape[-2]:
        mask = mask.mT
    return scaled_dot_product_attention(q, k, v, mask)


@animal(
    "attention",
    seen="a common slip",
    symptom="next to no loss in training, and nonsense when it must write",
    contract=FUTURE,
    says="The mask is not used",
)
def unused(q, k, v, mask=None):
    """The mask is taken, and passed on to nobody."""
    return scaled_dot_product_attention(q, k, v)


@animal(
    "attention",
    seen="a common slip: PyTorch adds a mask of numbers to the scores",
    symptom="as if there were no mask: the loss is far too good",
    contract=FUTURE,
    says="The mask is added to the scores as 0 and 1",
)
def added(q, k, v, mask=None):
    """A mask of 0 and 1 is added to the scores: it hides nothing."""
    mask = None if mask is None else mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, mask)


@animal(
    "attention",
    seen="taken from note 2, line 197: the mask comes before the scores (C-38)",
    symptom="padding takes its share of every row, and the future leaks",
    contract=FUTURE,
    says="The hidden scores are set to 0, a score like any other",
)
def hidden_before_the_scores(q, k, v, mask=None):
    """Wipes hidden keys out before the product: their score is then 0."""
    if mask is None:
        return attend(q, k, v, mask)
    keys = k.unsqueeze(-3) * mask.unsqueeze(-1)
    scores = (q.unsqueeze(-2) * keys).sum(-1) / math.sqrt(k.shape[-1])
    return scores.softmax(-1) @ v


@animal(
    "attention",
    seen="a common slip",
    symptom="early words get small vectors, for most of their row is hidden",
    contract="A masked key cannot leak into any row",
    says="The mask multiplies the weights after the softmax",
)
def multiplied_afterwards(q, k, v, mask=None):
    """The mask wipes weights out after the softmax has shared them out."""
    return attend(q, k, v, mask, weigh=lambda s, m: s.softmax(-1) * m)


@animal(
    "attention",
    seen="a common slip",
    symptom="an encoder which never learns what stands to the right",
    contract=AGREES,
    says="The future is hidden although no mask was given",
)
def always_causal(q, k, v, mask=None):
    """Hides the future without being asked, in the encoder too."""
    past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    mask = past if mask is None else mask & past
    return scaled_dot_product_attention(q, k, v, mask)


@animal(
    "attention",
    seen="note 3, line 119, beside its advice of half precision (C-58)",
    symptom="works for weeks, and stops with an error once autocast is on",
    contract="It works in half precision",
    says="float16 ends at 65504",
)
def minus_a_billion(q, k, v, mask=None):
    """Hidden scores become -1e9, a number that float16 does not have."""

    def weigh(scores, mask):
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)
        return weights.masked_fill(~mask, 0)

    return attend(q, k, v, mask, weigh=weigh)


@animal(
    "attention",
    seen="note 3, line 119, by its -1e9 (C-40)",
    symptom="a sentence of padding alone still answers, with a mean",
    contract="A row that may attend to nothing gets zeros",
    says="Row 1 may attend to nothing, and attends to all keys alike",
)
def uniform_in_empty_rows(q, k, v, mask=None):
    """A query that may look at nobody looks at everybody alike."""

    def weigh(scores, mask):
        return scores.masked_fill(~mask, torch.finfo(q.dtype).min).softmax(-1)

    return attend(q, k, v, mask, weigh=weigh)
