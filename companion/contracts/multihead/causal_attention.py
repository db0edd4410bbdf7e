"""Attention with the causal mask built in, as most language models have it.

It takes ``x`` and no mask. Vectors may be turned by their positions inside, so
nothing is said of another order. Of the heads nothing is said either: nobody
can count them from outside. Sizes are 2 sentences of 5 positions, and width 12.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.contracts.engine.compare import (
    Broken,
    after,
    draw,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import require_not_linear
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.influence import (
    local_window,
    of_a_window,
    reach,
    require_moved,
    require_silent,
)
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.masking import causal
from companion.contracts.engine.modules.common import module_kept, module_of
from companion.contracts.engine.relative import require_far_distances
from companion.contracts.engine.scale import (
    HeardScores,
    divided_by_the_root_of_a_head,
    over_another_axis,
)
from companion.contracts.positions.turned import (
    hear_turning,
    turned_by_distance,
)
from companion.multihead import merge_heads, split_heads

__all__ = [
    "CAUSAL_ATTENTION",
    "past",
    "sees_its_past_only",
    "strictly_before",
]

BATCH, SEQ, WIDTH = 2, 5, 12
ROWS = torch.arange(SEQ, device="cpu")
PAST = (ROWS[:, None] >= ROWS).expand(BATCH, -1, -1)


def arguments(seed: int, seq: int = SEQ) -> Tensor:
    """Draw vectors near 1, in 2 sentences."""
    return draw(BATCH, seq, WIDTH, seed=seed)


CAUSAL_ATTENTION = Component(
    name="causal_attention",
    weights=True,
    signature="causal_attention(x)",
    returns="the output (batch, seq, d_model)",
    axes=("row", "feature"),
    shape=lambda x: x.shape,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda x: (*x.shape[:2], x.shape[1])
        ),
    },
    cases=lambda: {
        "as it is": (arguments(2),),
        "for 7 positions": (arguments(3, 7),),
    },
)

NO_MASK = (
    "Every row sees all positions: is there a causal mask, and does its result "
    "reach the softmax? `masked_fill` returns a new tensor."
)
TRAINING = (
    "In training mode the future is hidden, and here it is seen: does "
    "`is_causal` get `self.training`, as a dropout does?"
)
COUNTED = (
    "A mask is at work, and hidden scores still count: put -∞ into them "
    "before the softmax over the keys. 0 is a score like any other, and what "
    "multiplies the weights afterwards comes too late."
)
NEXT = (
    "The mask is off by one: a row sees the position after its own. `tril()` "
    "keeps the diagonal and all below it."
)
TURNED = "The past is hidden and the future seen: is the mask upside down?"
EXCHANGED = (
    "What a row may see is hidden, and the rest is seen: `masked_fill` fills "
    "where its condition is True, so that it wants `mask == 0`."
)
ITSELF = (
    "A row does not see its own position: `tril()` keeps the diagonal, and "
    "`tril(-1)` hides it."
)
BEFORE = (
    "Every row sees what stands before it and not itself, and row 0 nothing."
)
FORETOLD = (
    "It is right where a row asks for what is not known yet, as in knowledge "
    "tracing; in a language model a token has to see itself."
)
APART = (
    "Each row sees its own position only: over which axis does the softmax "
    "run, and are the heads a batch of their own?"
)
MIXED = (
    "Where heads are split or joined, does a `view` mix positions and heads "
    "for want of a transpose?"
)
SENTENCES = (
    "Rows move with positions of other sentences: is the sequence read along "
    "the batch? `x` is (batch, seq, d_model)."
)


def who(seq: int) -> dict[str, Tensor]:
    """Hint -> who moves with whom after the mistake."""
    past = causal(seq)
    hidden = past.clone()
    # Row 0 may see nothing, which some softmaxes turn into all; row 1 sees one
    # position only, so that its own query does not count.
    hidden[0], hidden[1, 1] = True, False
    # The last row is left nothing then, and sees all or is NaN; of a single
    # future position its own query does not count.
    others = past.mT.clone()
    others[-1], others[-2, -2] = True, False
    return {
        NO_MASK: past | True,
        NEXT: torch.ones_like(past).tril(1),
        TURNED: past.mT,
        ITSELF: hidden,
        EXCHANGED: others,
        APART: past & past.mT,
    }


def why(fn: Guarded, seen: Tensor) -> str:
    """Name the mistake after which rows move as ``seen``."""
    for hint, other in who(seen.shape[-1]).items():
        if torch.equal(seen, other.expand_as(seen)):
            if hint != NO_MASK:
                return hint
            if over := over_another_axis(fn, (arguments(7),)):
                return over
            x, order = arguments(7), torch.tensor([3, 0, 4, 2, 1])
            keeps = furthest(fn(x[:, order]), fn(x)[:, order]) is None
            # Where vectors are turned, the order counts without a mask too.
            if not keeps and not turns_inside(fn):
                return COUNTED
            return TRAINING if hides_in_training(fn) else NO_MASK
    return over_another_axis(fn, (arguments(7),)) or MIXED


def turns_inside(fn: Guarded) -> bool:
    """Tell whether the distance decides scores, and no mask fills any."""
    x = arguments(67)[:, :1].expand(-1, SEQ, -1).contiguous()
    with HeardScores() as heard:
        fn.raw(x)
    future = ~PAST[0]
    for scores in heard.scores:
        if scores.shape[-2:] != future.shape:
            continue
        hidden = scores[..., future]
        if (hidden == hidden.flatten()[0]).all():
            return False
    return turned_by_distance(lambda: fn.raw(x), SEQ)


def hides_in_training(fn: Guarded) -> bool:
    """Tell whether no row sees its future while the module trains."""
    module = module_of(fn)
    if module is None:
        return False
    with module_kept(module):
        module.train()
        seen = reach(fn, arguments(7))
    return torch.equal(seen, PAST)


def moved_by(fn: Guarded, seed: int) -> Tensor:
    """Map which row moves with which position of vectors."""
    return reach(fn, arguments(seed), wanted=PAST)


def sees_its_past_only(fn: Guarded) -> bool:
    """Tell whether, without a mask, rows move with their past alone."""
    return torch.equal(moved_by(fn, 7), PAST)


@CAUSAL_ATTENTION.before_reference
def sentences_apart(fn: Guarded) -> None:
    """A sentence gets what it gets alone."""
    x = arguments(13)
    alone = torch.cat([fn(x[:1]), fn(x[1:])])
    same(fn, fn(x), alone, SENTENCES, cause=SENTENCES)


@CAUSAL_ATTENTION.before_reference
@after(sentences_apart)
def future(fn: Guarded) -> None:
    """No row sees its future."""
    seen = moved_by(fn, 7)
    if (seen & ~PAST).any():
        require_silent(seen, PAST, "which is in its future", why(fn, seen))


@CAUSAL_ATTENTION.before_reference
@after(sentences_apart)
def past(fn: Guarded) -> None:
    """Every row sees itself and all its past."""
    seen = moved_by(fn, 11)
    if torch.equal(seen, PAST):
        return
    if strictly_before(seen) and not seen[:, 0].any():
        raise Broken(BEFORE, cause=BEFORE, level=RISK, why=FORETOLD)
    width = local_window(seen)
    if width and local_window(seen, reach(fn, arguments(11, 7))):
        raise of_a_window(width)
    if (PAST & ~seen).any():
        require_moved(seen, PAST, "which it may see", why(fn, seen))


def strictly_before(seen: Tensor) -> bool:
    """Tell whether each row but row 0 gathers what stands before it.

    A row moves with its own position all the same, which asks; but not row 1,
    for of one position all is gathered whoever asks.
    """
    rows = torch.ones_like(seen).tril()
    rows[..., 1, 1] = False
    return torch.equal(seen[..., 1:, :], rows[..., 1:, :])


LONG, SHORTER = 11, 7
"""How many positions are sent, and how many where it takes no more."""


@CAUSAL_ATTENTION.contract
@after(future)
def prefix(fn: Guarded) -> None:
    """The rows of a beginning are those of the whole, whatever the length."""
    x = arguments(17, LONG)
    try:
        whole = fn(x)
    except Raised:
        # The table of its mask may end before; 7 positions it has taken.
        x = x[:, :SHORTER].contiguous()
        whole = fn(x)
    for seq in (n for n in (1, 2, SHORTER) if n < x.shape[1]):
        says = (
            f"The first {seq} positions alone have other rows than within "
            f"{x.shape[1]}: does the length, or the end, count?"
        )
        same(fn, fn(x[:, :seq]), whole[:, :seq], says)
    require_far_distances(fn, WIDTH)


def wrongly_turned(fn: Guarded) -> str:
    """Say what is wrong with how vectors are turned by their positions."""
    x = arguments(61, TURNED_SEQ)[:, :1].expand(-1, TURNED_SEQ, -1)
    return hear_turning(lambda: fn.raw(x.contiguous()), TURNED_SEQ)


TURNED_SEQ = 7
"""So long is no other axis."""


@CAUSAL_ATTENTION.contract
@after(future, past)
def by_distance(fn: Guarded) -> None:
    """What turns vectors by their positions leaves the distance alone."""
    if told := wrongly_turned(fn):
        raise Broken(told)


@CAUSAL_ATTENTION.contract
@after(future, past, by_distance)
def sums_to_one(fn: Guarded) -> None:
    """Of equal positions every row gathers the same."""
    x = arguments(19)[:, :1].expand(-1, SEQ, -1).contiguous()
    got = fn(x)
    says = (
        "All positions hold the same vector, so that their weighted mean is "
        "the same in each row: do the weights of a row sum to 1? A mask that "
        "multiplies the weights after the softmax leaves less."
    )
    same(fn, got, got[:, -1:].expand_as(got), says)


@CAUSAL_ATTENTION.contract
@after(sentences_apart)
def content(fn: Guarded) -> None:
    """The weights depend on what stands there."""
    says = (
        "The output is a linear function of `x`, as if all weights were "
        "constant: do queries and keys meet, in a softmax?"
    )
    require_not_linear(fn, arguments(29), arguments(31), says)


CAUSAL_ATTENTION.contract(
    divided_by_the_root_of_a_head(lambda: (arguments(37),))
)


# Known mistakes


class Causal(nn.Module):
    """Three heads of width 4, right but for what a mistake puts in."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def split(self, x):
        """(batch, seq, d_model) to (batch, head, seq, head_dim)."""
        return split_heads(x, 3)

    def mask(self, seq):
        """Who may look at whom."""
        return causal(seq)

    def scores(self, q, k):
        """How well each query fits each key."""
        return q @ k.mT / q.shape[-1] ** 0.5

    def weigh(self, scores, mask):
        """The weights of scores (batch, head, query, key)."""
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def join(self, heads):
        """The way back from ``split``."""
        return merge_heads(heads)

    def forward(self, x):
        """What each position gathers from its past."""
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        scores = self.scores(q, k)
        weights = self.weigh(scores, self.mask(scores.shape[-1]))
        return self.out(self.join(weights @ v))


@CAUSAL_ATTENTION.mistake(
    symptom="the loss goes to 0 in an hour, and it writes nonsense",
)
class MaskThrownAway(Causal):
    """The result of `masked_fill` is given no name, and so is lost."""

    def weigh(self, scores, mask):
        scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="the loss is near 0, as each row reads its own answer",
)
class OffByOne(Causal):
    """The diagonal above the main one stays: each row sees the next token."""

    def mask(self, seq):
        return torch.ones(seq, seq, dtype=torch.bool).tril(1)


@CAUSAL_ATTENTION.mistake(
    symptom="the loss falls fast, and the output is a fixed sentence",
)
class TriangleTurnedRound(Causal):
    """Each row sees its future, and nothing of its past."""

    def mask(self, seq):
        return causal(seq).mT


@CAUSAL_ATTENTION.mistake(
    symptom="each word guesses its successor without looking at itself",
)
class DiagonalHidden(Causal):
    """The mask begins below the diagonal; the first row gets equal weights."""

    def weigh(self, scores, mask):
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(~mask.tril(-1), lowest).softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="each word guesses its successor without looking at itself",
    level=RISK,
    why=FORETOLD,
)
class NothingForTheFirst(Causal):
    """The mask begins below the diagonal; the first row is wiped out."""

    def weigh(self, scores, mask):
        lowest, before = torch.finfo(scores.dtype).min, mask.tril(-1)
        return scores.masked_fill(~before, lowest).softmax(-1) * before


@CAUSAL_ATTENTION.mistake(
    symptom="early words get small vectors, for most of their row is hidden",
)
class MultipliedAfterwards(Causal):
    """The mask wipes weights out after the softmax, which counted them."""

    def weigh(self, scores, mask):
        return scores.softmax(-1) * mask


@CAUSAL_ATTENTION.mistake(
    symptom="the loss is a little too good, and it never writes as well",
)
class FilledWithZero(Causal):
    """Hidden scores become 0, a score like any other."""

    def weigh(self, scores, mask):
        return scores.masked_fill(~mask, 0).softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="the future leaks through the sums of the columns",
)
class SoftmaxOverTheQueries(Causal):
    """Columns sum to 1: each key shares itself out among the queries."""

    def weigh(self, scores, mask):
        return scores.masked_fill(~mask, -torch.inf).softmax(-2)


@CAUSAL_ATTENTION.mistake(
    symptom="trains, and stays behind: a word's place decides what it sees",
)
class SplitByViewAlone(Causal):
    """Cut into heads by one `view`, and joined as is right."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)


@CAUSAL_ATTENTION.mistake(
    symptom="each word gets parts of what was gathered for other words",
)
class JoinedByViewAlone(Causal):
    """Joined by `reshape` without the transpose back."""

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


@CAUSAL_ATTENTION.mistake(
    symptom="trains like a network without attention: the past never matters",
)
class HeadsAttendToHeads(Causal):
    """The transpose is missing twice: heads of one word ask each other."""

    def split(self, x):
        return x.unflatten(-1, (3, -1))

    def weigh(self, scores, mask):
        return scores.softmax(-1)

    def join(self, heads):
        return heads.flatten(2)


@CAUSAL_ATTENTION.mistake(
    symptom="right in batches of one; else words ask other sentences",
)
class PositionsFirst(Causal):
    """The axes are read as (seq, batch, d_model)."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


@CAUSAL_ATTENTION.mistake(
    symptom="a word's vector changes as the text goes on",
)
class DividedByTheLength(Causal):
    """Divides by the number of words that there are, its future included."""

    def forward(self, x):
        return super().forward(x) / x.shape[1]


@CAUSAL_ATTENTION.mistake(
    symptom="the past is an average, whatever it says",
)
class MeanOfThePast(Causal):
    """Queries and keys never meet: all of the past counts the same."""

    def weigh(self, scores, mask):
        # Of the scores no number is left, but their gradient is asked for.
        return (0 * scores).masked_fill(~mask, -torch.inf).softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="the same sentence is answered otherwise each time",
)
class DropoutLeftOn(Causal):
    """`F.dropout` is on unless it is told that training is over."""

    def weigh(self, scores, mask):
        return F.dropout(super().weigh(scores, mask), 0.5)


@CAUSAL_ATTENTION.mistake(
    symptom="a small model learns as well; with many heads it learns to look "
    "at one place much later",
)
class DividedByTheWholeWidth(Causal):
    """A head was written by itself first, where both widths are the same."""

    def scores(self, q, k):
        return q @ k.mT / 12**0.5


@CAUSAL_ATTENTION.mistake(
    symptom="the loss in evaluation is far below that of training, and it "
    "writes nonsense",
)
class MaskedWhileItTrains(Causal):
    """`is_causal` is handed over as `self.training`, as dropout is."""

    def weigh(self, scores, mask):
        return super().weigh(scores, mask | (not self.training))


@CAUSAL_ATTENTION.mistake(
    symptom="the loss falls at once; the last row gets equal weights",
)
class FilledWhereTheTriangleIs(Causal):
    """The triangle says who may attend, and `masked_fill` hides these."""

    def weigh(self, scores, mask):
        lowest = torch.finfo(scores.dtype).min
        return scores.masked_fill(mask, lowest).softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="as without a mask, but for a little more weight on the past",
)
class TriangleAdded(Causal):
    """The triangle of 0 and 1 is added to the scores, and hides nothing."""

    def weigh(self, scores, mask):
        return (scores + mask.to(scores.dtype)).softmax(-1)


@CAUSAL_ATTENTION.mistake(
    symptom="the first text is written well, the second goes on with it",
)
class CacheNeverEmptied(Causal):
    """Keys and values of one call are still there in the next."""

    def forward(self, x):
        seq = x.shape[1]
        kept = getattr(self, "kept", None)
        kept = kept if kept is not None and len(kept) == len(x) else x[:, :0]
        self.kept = torch.cat([kept, x.detach()], 1)[:, -16:]
        return super().forward(torch.cat([kept, x], 1))[:, -seq:]
