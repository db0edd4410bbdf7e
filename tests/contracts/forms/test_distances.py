"""Attention that knows how far apart positions are is right, and noted."""

from functools import partial

import pytest
import torch
from contracts.right import built
from contracts.right.attention import masked_by_lowest
from torch import nn

from companion.contracts import adapters, check
from companion.contracts.multihead.causal_attention import Causal
from companion.contracts.multihead.multihead import Heads
from companion.contracts.transformer.language_model import Language
from companion.multihead import merge_heads, split_heads
from companion.positions import rotate

pytestmark = pytest.mark.once

ORDER = "Reordering the positions reorders the rows"
TWICE = "Saying everything twice changes no row"
FUTURE = "With a causal mask no row sees its future"


def turned(x, first=0):
    return rotate(x, torch.arange(first, first + x.shape[-2]))


class Turned(Heads):
    """RoPE: queries and keys are turned by their positions."""

    def scores(self, q, k):
        return super().scores(turned(q), turned(k))


class Sloped(Heads):
    """ALiBi: what is further away has a lower score."""

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        slopes = 2.0 ** -torch.arange(1, 4)[:, None, None]
        far = (place - place[:, None]).abs()
        return super().scores(q, k) - slopes * far


class Buckets(Heads):
    """T5 with another name: a learned number for each distance."""

    def __init__(self):
        super().__init__()
        self.far = nn.Embedding(33, 3)

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        at = (place - place[:, None]).clamp(-16, 16) + 16
        return super().scores(q, k) + self.far(at).permute(2, 0, 1)


KNOWING = [Turned, Sloped, Buckets]


@pytest.mark.parametrize("make", KNOWING)
def test_attention_that_knows_distances_has_a_note_and_no_fault(make):
    report = check("multihead", built(make))
    assert report.passed, str(report)
    assert [f.contract for f in report.notes] == [ORDER, TWICE]
    (group,) = report.grouped()
    assert "how far apart" in group[0].message
    assert "RoPE" in group[0].excuse
    assert not report.risks


class Layer(nn.Module):
    """A layer whose norms come first, and then one more norm."""

    def __init__(self, make):
        super().__init__()
        self.attend = make()
        self.one, self.two, self.last = (nn.LayerNorm(12) for _ in range(3))
        self.net = nn.Sequential(
            nn.Linear(12, 29), nn.ReLU(), nn.Linear(29, 12)
        )

    def forward(self, x, mask=None):
        x = x + self.attend(self.one(x), mask)
        return self.last(x + self.net(self.two(x)))


@pytest.mark.parametrize("make", KNOWING)
def test_an_encoder_that_knows_distances_has_a_note_and_no_fault(make):
    report = check("encoder", built(lambda: Layer(make)))
    assert report.passed, str(report)
    assert [f.contract for f in report.notes] == [ORDER]


class HandsItsTableOn(nn.Module):
    """The first layer of a T5 makes scores of distances, and of the mask.

    The next one is given them, and looks at no mask.
    """

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))
        self.relative = nn.Embedding(33, 3)
        self.one, self.last = nn.LayerNorm(12), nn.LayerNorm(12)
        self.net = nn.Sequential(
            nn.Linear(12, 29), nn.ReLU(), nn.Linear(29, 12)
        )

    def forward(self, x, mask, bias):
        y = self.one(x)
        q, k, v = (split_heads(p(y), 3) for p in (self.q, self.k, self.v))
        if bias is None:
            place = torch.arange(x.shape[1])
            at = (place - place[:, None]).clamp(-16, 16) + 16
            bias = self.relative(at).permute(2, 0, 1)[None]
            if mask is not None:
                bias = bias + torch.where(mask, 0, torch.finfo(x.dtype).min)
        weights = (q @ k.mT / 2 + bias).softmax(-1)
        x = x + self.o(merge_heads(weights @ v))
        return self.last(x + self.net(x)), bias


def test_vectors_are_given_to_no_argument_that_is_called_a_mask():
    """They once were: (x, x, mask), and no gradient reached the table."""
    report = check("encoder", built(HandsItsTableOn))
    assert report.passed, str(report)
    assert report.assumed[0] == (
        "Called as yours: the first of what it returned was taken."
    )


class QueriesOnly(Heads):
    """Keys are left as they are, so that places count, and not distances."""

    def scores(self, q, k):
        return super().scores(turned(q), k)


class KeysByView(Heads):
    """The keys are transposed by a view: scores mix up the positions."""

    def scores(self, q, k):
        *lead, seq, width = k.shape
        keys = k.reshape(*lead, width, seq)
        return q @ keys / width**0.5


class AddedAgain(Heads):
    """Positions are added to the vectors once more."""

    def forward(self, x, mask=None):
        place = torch.arange(x.shape[1])[:, None] * torch.ones(12)
        return super().forward(x + place.sin(), mask)


class JoinedByView(Turned):
    """RoPE is right, and the transpose back is missing."""

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


class SplitByView(Turned):
    """RoPE is right, and heads are split by one view."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)


class Past(Turned):
    """A causal mask is built in."""

    def weigh(self, scores, mask):
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        return masked_by_lowest(scores, past if mask is None else mask & past)


@pytest.mark.parametrize(
    "make", [QueriesOnly, KeysByView, AddedAgain, JoinedByView, SplitByView]
)
def test_what_goes_by_the_place_and_not_by_distances_stays_a_fault(make):
    report = check("multihead", built(make))
    assert ORDER in [f.contract for f in report.faults], str(report)


def test_a_causal_mask_that_nobody_gave_stays_a_fault_where_vectors_turn():
    report = check("multihead", built(Past))
    (first, *_) = report.faults
    assert first.contract == ORDER
    assert 'check("causal_attention", …)' in first.message


class WithATable(Causal):
    """A vector of a table for each pair is added to the key's."""

    def __init__(self, at):
        super().__init__()
        self.table, self.at = nn.Embedding(40, 4), at

    def scores(self, q, k):
        i = torch.arange(q.shape[-2])
        rows = self.table(self.at(i[:, None], i))
        return super().scores(q, k) + (q[..., None, :] * rows).sum(-1)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (lambda i, j: i - j + 20, ""),
        (lambda i, j: i + j, "the sum of their positions"),
        (lambda i, j: 0 * i + j, ""),
    ],
    ids=["distance", "sum", "place"],
)
def test_a_table_that_is_read_at_the_sum_of_two_positions_is_a_fault(at, said):
    report = check("causal_attention", built(partial(WithATable, at)))
    assert bool(report.faults) == bool(said), str(report)
    assert said in "".join(f.message for f in report.faults)


class UpsideDown(Turned):
    def weigh(self, scores, mask):
        return super().weigh(scores, None if mask is None else ~mask)


class Ignored(Turned):
    def weigh(self, scores, mask):
        return scores.softmax(-1)


class Afterwards(Turned):
    def weigh(self, scores, mask):
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask


class Squared(Turned):
    """What a row gathers is no mean."""

    def weigh(self, scores, mask):
        return super().weigh(scores, mask) ** 2


def test_a_mask_upside_down_is_named_where_vectors_turn():
    report = check("multihead", built(UpsideDown))
    assert ORDER in [f.contract for f in report.notes], str(report)
    (group,) = [g for g in report.grouped() if g[0].level == "fault"]
    assert group[0].contract == FUTURE
    assert "The mask is upside down" in group[0].message


@pytest.mark.parametrize("make", [Ignored, Afterwards])
def test_a_mask_that_hides_nothing_is_a_fault_where_vectors_turn(make):
    report = check("multihead", built(make))
    assert FUTURE in [f.contract for f in report.faults], str(report)


def test_weights_that_do_not_sum_to_1_are_a_fault_where_vectors_turn():
    report = check("multihead", built(Squared))
    (first, *_) = report.faults
    assert first.contract == TWICE, str(report)
    assert "do the weights of a row sum to 1" in first.message


# A learned vector for each distance, added to the keys and to the values


class Vectors(Heads):
    def __init__(self):
        super().__init__()
        self.of_keys, self.of_values = nn.Embedding(9, 4), nn.Embedding(9, 4)

    def at(self, seq):
        place = torch.arange(seq)
        return (place - place[:, None]).clamp(-4, 4) + 4

    def scores(self, q, k):
        far = self.of_keys(self.at(q.shape[-2]))
        return (q @ k.mT + (q[..., None, :] * far).sum(-1)) / 2

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        weights = self.weigh(self.scores(q, k), mask)
        far = self.of_values(self.at(x.shape[1]))
        gathered = weights @ v + (weights[..., None] * far).sum(-2)
        return self.o(self.join(gathered))


class VectorsOfFive(Vectors):
    def forward(self, x, mask=None):
        if x.shape[1] != 5:
            raise ValueError(f"5 positions, not {x.shape[1]}")
        return super().forward(x, mask)


class VectorsByPlace(VectorsOfFive):
    """The vectors belong to places, and not to distances."""

    def at(self, seq):
        return torch.arange(seq).expand(seq, -1)


def test_a_vector_for_each_distance_in_keys_and_values_has_a_note():
    report = check("multihead", built(Vectors))
    assert report.passed, str(report)
    assert [f.contract for f in report.notes] == [ORDER, TWICE]


def test_so_it_is_where_sentences_have_one_length_and_the_length_is_told():
    report = check("multihead", built(VectorsOfFive))
    assert [f.contract for f in report.notes] == [ORDER, TWICE], str(report)
    assert all("5 positions, not" in f.message for f in report.faults)
    assert ORDER in [
        f.contract for f in check("multihead", built(VectorsByPlace)).faults
    ]


# Learned numbers for each distance, under a name that says so


class Relative(Heads):
    """T5: nothing divides, but the queries are drawn smaller."""

    def __init__(self):
        super().__init__()
        self.relative_bias = nn.Embedding(33, 3)
        nn.init.normal_(self.q.weight, std=0.5 * 12**-0.5)
        nn.init.normal_(self.k.weight, std=12**-0.5)

    def scores(self, q, k):
        place = torch.arange(q.shape[-2])
        at = (place - place[:, None]).clamp(-16, 16) + 16
        return q @ k.mT + self.relative_bias(at).permute(2, 0, 1)


class InATuple(Relative):
    def forward(self, x, mask=None):
        return super().forward(x, mask), "more"


@pytest.mark.parametrize(
    "fn",
    [
        built(Relative),
        built(Relative).forward,
        built(InATuple),
        adapters.first_of(built(InATuple)),
    ],
    ids=["module", "method", "tuple", "adapter"],
)
def test_check_itself_makes_numbers_for_distances_equal(fn):
    report = check("multihead", fn)
    assert ORDER in report.held, str(report)
    assert report.assumed[-1] == (
        "`relative_bias.weight` was the same for all distances"
    )
    # So that the scores alone are heard.
    (note,) = report.notes
    assert "T5 leaves the division out" in note.why


def test_numbers_for_distances_are_what_they_were_after_a_check():
    module = built(Relative)
    before = module.relative_bias.weight.clone()
    check("multihead", module)
    assert torch.equal(module.relative_bias.weight, before)


class RelativeJoinedByView(Relative):
    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


def test_equal_numbers_for_distances_excuse_no_other_mistake():
    report = check("multihead", built(RelativeJoinedByView))
    assert ORDER in [f.contract for f in report.faults]
    assert "all distances" in report.assumed[-1]


def test_to_the_letter_numbers_for_distances_stay_as_they_are():
    report = check("multihead", built(Relative), strict=True)
    assert ORDER in [f.contract for f in report.faults]


class ByBuckets(Heads):
    """T5: from half of its rows on, distances share rows up to the 128th."""

    def __init__(self, last=15, most=4096):
        super().__init__()
        self.relative_bias = nn.Embedding(32, 3)
        self.last, self.most = last, most

    def scores(self, q, k):
        i = torch.arange(len(q[0, 0]))
        if len(i) > self.most:
            raise IndexError(f"at most {self.most} positions")
        far = i - i[:, None]
        shared = 8 + 8 * (far.abs().clamp(min=8) / 8).log2() / 4
        row = torch.where(far.abs() < 8, far.abs(), shared.long())
        row = row.clamp(max=self.last) + 16 * (far > 0)
        return super().scores(q, k) + self.relative_bias(row).permute(2, 0, 1)


LENGTH = "It takes sentences of any length, one at a time too"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (ByBuckets, []),
        (partial(ByBuckets, last=31), [LENGTH]),
        (partial(ByBuckets, most=60), []),
        (Relative, []),
    ],
    ids=["kept within", "beyond", "as many as it says", "all far ones alike"],
)
def test_a_distance_that_has_no_row_in_its_table_is_a_risk(make, said):
    report = check("multihead", built(make))
    assert [f.contract for f in report.risks] == said, str(report)
    for risk in report.risks:
        assert "Of 512 positions it raises IndexError" in risk.message
        assert "`relative_bias`" in risk.message


class PastByBuckets(Causal):
    def __init__(self, last):
        super().__init__()
        self.relative_bias, self.last = nn.Embedding(16, 3), last

    def scores(self, q, k):
        i = torch.arange(q.shape[-2])
        row = ((i[:, None] - i) // 12).clamp(0, self.last)
        return super().scores(q, k) + self.relative_bias(row).permute(2, 0, 1)


@pytest.mark.parametrize(("last", "risks"), [(15, 0), (63, 1)])
def test_so_it_is_where_the_causal_mask_is_built_in(last, risks):
    report = check("causal_attention", built(partial(PastByBuckets, last)))
    assert len(report.risks) == risks, str(report)


# Numbers for each distance that are right under a causal mask alone


class Skewed(Heads):
    """Music Transformer: a padded column moves each row on by one."""

    def __init__(self):
        super().__init__()
        self.E = nn.Embedding(32, 4)

    def scores(self, q, k):
        n = q.shape[-2]
        far = nn.functional.pad(q @ self.E.weight[-n:].mT, (1, 0))
        far = far.reshape(*far.shape[:2], n + 1, n)[:, :, 1:]
        return (q @ k.mT + far) / q.shape[-1] ** 0.5


class SkewedHiding(Skewed):
    def weigh(self, scores, mask):
        return super().weigh(scores, None if mask is None else ~mask)


@pytest.mark.parametrize(
    ("make", "mask"), [(Skewed, None), (SkewedHiding, "hidden")]
)
def test_what_knows_distances_under_a_causal_mask_alone_is_a_question(
    make, mask
):
    report = check("multihead", built(make), mask=mask)
    assert report.passed, str(report)
    first, *_ = report.risks
    assert first.contract == ORDER
    assert "made for a causal mask" in first.message
    assert "`adapters.with_causal_mask(…)`" in first.why
    assert len(report.grouped()) == 1, str(report)


def test_with_its_causal_mask_it_is_right():
    with_it = adapters.with_causal_mask(built(Skewed))
    assert check("causal_attention", with_it).passed


class SkewedJoinedByView(Skewed):
    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


class SkewedTheOtherWay(Skewed):
    """Padded on the other side: a row gets the distances of others."""

    def scores(self, q, k):
        n = q.shape[-2]
        far = nn.functional.pad(q @ self.E.weight[:n].mT, (0, 1))
        far = far.reshape(*far.shape[:2], n + 1, n)[:, :, :-1]
        return (q @ k.mT + far) / q.shape[-1] ** 0.5


class SkewedIgnoringPadding(Skewed):
    def weigh(self, scores, mask):
        if mask is not None and mask.shape[-2] == 1:
            mask = None
        return super().weigh(scores, mask)


@pytest.mark.parametrize(
    "make",
    [
        SkewedJoinedByView,
        SkewedTheOtherWay,
        SkewedIgnoringPadding,
        SkewedHiding,
    ],
)
def test_a_causal_mask_excuses_nothing_that_it_does_not_mend(make):
    report = check("multihead", built(make))
    assert ORDER in [f.contract for f in report.faults]


ABSENT = "Hidden positions might as well not be there"


def test_a_layer_made_for_a_causal_mask_is_the_same_question():
    report = check("encoder", built(lambda: Layer(Skewed)))
    assert report.passed, str(report)
    assert [f.contract for f in report.risks][:2] == [ORDER, ABSENT]
    assert len(report.grouped()) == 1, str(report)


class CountsTheLength(Heads):
    """Scores grow with the number of positions, hidden ones too."""

    def scores(self, q, k):
        return super().scores(q, k) * q.shape[-2]


@pytest.mark.parametrize("make", [SkewedTheOtherWay, CountsTheLength])
def test_a_layer_that_no_causal_mask_mends_counts_what_is_hidden(make):
    report = check("encoder", built(lambda: Layer(make)))
    assert ABSENT in [f.contract for f in report.faults], str(report)


# A window: nothing is seen that is further back


PAST = "Every row sees itself and all its past"


def banded(seq, width):
    return torch.ones(seq, seq, dtype=torch.bool).tril().triu(-width)


class Local(Causal):
    width = 2

    def mask(self, seq):
        return banded(seq, self.width)


class LocalOne(Local):
    width = 1


class LocalThree(Local):
    width = 3


@pytest.mark.parametrize("make", [LocalOne, Local, LocalThree])
def test_causal_attention_within_a_window_has_a_note_and_no_fault(make):
    report = check("causal_attention", built(make))
    (note,) = report.failures
    assert (note.level, note.contract) == ("note", PAST)
    assert f"sees itself and {make.width} before it" in note.message
    assert "sliding window" in note.why


class InBlocks(Causal):
    """Each row sees its own block only, which is no window."""

    def mask(self, seq):
        block = torch.arange(seq) // 3
        return super().mask(seq) & (block[:, None] == block)


class OfTheLength(Causal):
    """The window grows with the sentence."""

    def mask(self, seq):
        return banded(seq, seq // 2)


class Ahead(Causal):
    """It sees what comes next, too."""

    def mask(self, seq):
        return torch.ones(seq, seq, dtype=torch.bool).tril(1).triu(-2)


class NotItself(Causal):
    def mask(self, seq):
        return banded(seq, 2) & ~torch.eye(seq, dtype=torch.bool)


@pytest.mark.parametrize("make", [InBlocks, OfTheLength, Ahead, NotItself])
def test_what_is_no_window_of_one_width_stays_a_fault(make):
    assert check("causal_attention", built(make)).faults


class LocalLanguage(Language):
    width = 1

    def mask(self, length, layer):
        return banded(length, self.width)


class OneLayer(LocalLanguage):
    def __init__(self):
        super().__init__()
        del self.layers[1]


class TwoSeen(OneLayer):
    width = 2


@pytest.mark.parametrize(
    ("make", "seen"), [(LocalLanguage, 2), (OneLayer, 1), (TwoSeen, 2)]
)
def test_a_language_model_within_a_window_has_a_note_and_no_fault(make, seen):
    report = check("language_model", built(make))
    (note,) = report.failures
    assert note.level == "note"
    assert f"sees itself and {seen} before it" in note.message


class WithoutPlaces(TwoSeen):
    def embedded(self, tokens):
        return self.embed(tokens)


def test_within_a_window_too_the_order_counts():
    report = check("language_model", built(WithoutPlaces))
    said = " ".join(f.message for f in report.faults)
    assert "Tokens 2 and 3 changed places" in said, str(report)
