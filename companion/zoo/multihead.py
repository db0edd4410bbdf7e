"""Multi-head attention: heads masked, joined and asked in wrong ways."""

import torch
import torch.nn.functional as F
from torch import nn

from companion.attention import masked_softmax
from companion.multihead import merge_heads, split_heads
from companion.zoo.animal import animal

FUTURE = "With a causal mask no row sees its future"
ORDER = "Reordering the positions reorders the rows"
PADS = "No row sees the padding of its own sentence"
EVERYBODY = "Without a mask every row sees every position"
MIXES = "does a `view` mix positions and heads for want of a transpose"


class Heads(nn.Module):
    """Three heads of width 4, right but for what an animal puts in."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))

    def split(self, x):
        """(batch, seq, d_model) to (batch, head, seq, head_dim)."""
        return split_heads(x, 3)

    def weigh(self, scores, mask):
        """The weights of scores (batch, head, query, key)."""
        return (
            scores.softmax(-1) if mask is None else masked_softmax(scores, mask)
        )

    def join(self, heads):
        """The way back from ``split``."""
        return merge_heads(heads)

    def forward(self, x, mask=None):
        """What each position gathers."""
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        weights = self.weigh(q @ k.mT / q.shape[-1] ** 0.5, mask)
        return self.o(self.join(weights @ v))


class PyTorchs(nn.Module):
    """PyTorch's own module, which someone calls in a wrong way."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.inner = nn.MultiheadAttention(12, 3, batch_first=batch_first)

    def forward(self, x, mask=None):
        """``mask`` is as the module wants it: True = hidden, one a head."""
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


@animal(
    "multihead",
    seen="a common slip: to PyTorch's module True means hidden, to its "
    "function may attend",
    symptom="the loss is far too good, and it writes nonsense",
    contract=FUTURE,
    says="The mask is upside down: True means may attend",
)
class UpsideDown(PyTorchs):
    """A mask where True = may attend goes to a module that hides True."""

    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.expand(len(x), 3, x.shape[1], x.shape[1])
            mask = mask.flatten(0, 1)
        return super().forward(x, mask)


@animal(
    "multihead",
    seen="a common slip",
    symptom="a sentence comes out otherwise if its batch has longer ones",
    contract=PADS,
    says="The mask is transposed: its rows are the queries",
)
class PaddingHidesQueries(Heads):
    """The padding mask stands on the queries: pads ask nobody, but answer."""

    def forward(self, x, mask=None):
        if mask is not None and mask.shape[-2] == 1:
            mask = mask.mT
        return super().forward(x, mask)


@animal(
    "multihead",
    seen="a common slip",
    symptom="right for a batch of one; else sentences see each other's padding",
    contract=PADS,
    says="the mask needs `repeat_interleave`, not `repeat`",
)
class RepeatedInTheWrongOrder(PyTorchs):
    """Batch and heads become one axis, and the masks repeat as a batch."""

    def forward(self, x, mask=None):
        if mask is not None:
            seq = x.shape[1]
            mask = mask.expand(len(x), 1, seq, seq)[:, 0]
            mask = ~mask.repeat(3, 1, 1)
        return super().forward(x, mask)


@animal(
    "multihead",
    seen="a common slip: PyTorch's module wants positions first by default",
    symptom="it learns as much as without attention; odd in batches of one",
    contract=EVERYBODY,
    says="PyTorch's module needs `batch_first=True`",
)
class PositionsFirst(PyTorchs):
    """Without `batch_first` each word asks its peers in other sentences."""

    def __init__(self):
        super().__init__(batch_first=False)


@animal(
    "multihead",
    seen="a common slip",
    symptom="early words get small vectors, for most of their row is hidden",
    contract=FUTURE,
    says="The mask multiplies the weights after the softmax",
)
class MultipliedAfterwards(Heads):
    """The mask wipes weights out after the softmax."""

    def weigh(self, scores, mask):
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask


@animal(
    "multihead",
    seen="a common slip: `dim=-2`, or `dim=2` of four",
    symptom="the future leaks through the sums of the columns",
    contract=FUTURE,
    says="before the softmax over the keys",
)
class SoftmaxOverTheQueries(Heads):
    """Columns sum to 1: each key shares itself out among the queries."""

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-2)
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~mask, lowest).softmax(-2)
        return weights.masked_fill(~mask, 0)


@animal(
    "multihead",
    seen="a common slip",
    symptom="trains like a network without attention: order never matters",
    contract=EVERYBODY,
    says="the scores compare the heads of one position",
)
class HeadsAttendToHeads(Heads):
    """The transpose is missing twice: heads of one word ask each other."""

    def split(self, x):
        return x.unflatten(-1, (3, -1))

    def weigh(self, scores, mask):
        return scores.softmax(-1)

    def join(self, heads):
        return heads.flatten(2)


@animal(
    "multihead",
    seen="a common slip",
    symptom="trains, and stays behind: a word's place decides what it sees",
    contract=ORDER,
    says=MIXES,
)
class SplitByViewAlone(Heads):
    """Cut into heads by one `view`, and joined as is right."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)


@animal(
    "multihead",
    seen="a common slip",
    symptom="each word gets parts of what was gathered for other words",
    contract=ORDER,
    says=MIXES,
)
class JoinedByViewAlone(Heads):
    """Joined by `reshape` without the transpose back."""

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


@animal(
    "multihead",
    seen="note 2, lines 229-231 (C-40)",
    symptom="one empty sentence in a batch, and all weights are NaN at once",
    contract="A row that may attend to nothing is finite, and sees nothing",
    says="All its scores are -∞",
)
class NanInEmptyRows(Heads):
    """Hidden scores become -∞, and a row of nothing else NaN."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1)


@animal(
    "multihead",
    seen="a common slip",
    symptom="the same sentence is answered otherwise each time",
    contract="The same inputs give the same output",
    says="dropout is on",
)
class DropoutLeftOn(Heads):
    """`F.dropout` is on unless it is told that training is over."""

    def weigh(self, scores, mask):
        return F.dropout(super().weigh(scores, mask), 0.5)
