"""A block that adds positions inside is right, and so is a BatchNorm in it."""

import math

import pytest
import torch
from contracts.right import built
from torch import nn

from companion.contracts import check, check_model
from companion.positions import sinusoidal

pytestmark = pytest.mark.once

ORDER = "Reordering the positions reorders the rows"
TRAINING = "In training mode too no sentence sees another"


class Attends(nn.Module):
    """Half of a Conformer's block: norm, positions, attention and residual."""

    table: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("table", sinusoidal(32, 12))
        self.norm, self.last = nn.LayerNorm(12), nn.LayerNorm(12)
        self.attend = nn.MultiheadAttention(12, 3, batch_first=True)

    def places(self, x):
        return self.table[: x.shape[1]]

    def forward(self, x, padding_mask=None):
        y = self.norm(x) + self.places(x)
        y, _ = self.attend(y, y, y, padding_mask, need_weights=False)
        return self.last(x + y)


class Learned(Attends):
    def __init__(self):
        super().__init__()
        self.table = None
        self.rows = nn.Embedding(32, 12)

    def places(self, x):
        return self.rows(torch.arange(x.shape[1]))


class Loose(Attends):
    """The table is a plain tensor with an axis for the batch."""

    def __init__(self):
        super().__init__()
        del self.table
        self.loose = sinusoidal(32, 12)[None]

    def places(self, x):
        return self.loose[:, : x.shape[1]]


class Twice(Learned):
    """Each of two layers has a table of its own."""

    def __init__(self):
        super().__init__()
        self.other = Loose()

    def forward(self, x, padding_mask=None):
        return self.other(super().forward(x, padding_mask), padding_mask)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (Attends, "`table` adds positions inside"),
        (Learned, "`rows` adds positions inside"),
        (Loose, "`loose` adds positions inside"),
        (Twice, "`rows` adds positions inside"),
    ],
)
def test_an_encoder_with_a_table_of_positions_has_a_note_and_no_fault(
    make, named
):
    module = built(make)
    before = {name: x.clone() for name, x in module.state_dict().items()}
    part = check_model(module).parts[0].judged
    assert part.component == "encoder"
    assert part.report.passed, str(part.report)
    assert [f.contract for f in part.report.failures] == [ORDER]
    (note,) = part.report.notes
    assert note.message.startswith(named)
    assert "without positions" in note.why
    assert all(x.equal(before[n]) for n, x in module.state_dict().items())


class Computed(nn.Module):
    """Its sinusoids are made in each call, and stand in no table."""

    def __init__(self, wrong=False):
        super().__init__()
        self.attend = nn.MultiheadAttention(12, 3, batch_first=True)
        self.one, self.last = nn.LayerNorm(12), nn.LayerNorm(12)
        self.wide, self.narrow = nn.Linear(12, 29), nn.Linear(29, 12)
        self.wrong = wrong

    def places(self, seq):
        return sinusoidal(seq, 12)

    def forward(self, x, padding_mask=None):
        x = 12**0.5 * x + self.places(x.shape[1])
        y, _ = self.attend(x, x, x, padding_mask, need_weights=False)
        y = y.reshape(-1, 12, x.shape[1]).mT if self.wrong else y
        x = self.one(x + y)
        return self.last(x + self.narrow(self.wide(x).relu()))


class OfLengths(Computed):
    def forward(self, x, lengths=None):
        if lengths is None:
            lengths = torch.full((len(x),), x.shape[1])
        place = torch.arange(x.shape[1])
        return super().forward(x, place >= torch.as_tensor(lengths)[:, None])


class OneAngle(Computed):
    """What is added says where a word stands, and is no row of sinusoids."""

    def places(self, seq):
        return torch.arange(seq)[:, None].sin().expand(-1, 12)


@pytest.mark.parametrize(
    ("make", "mask"), [(Computed, "hidden"), (OfLengths, None)]
)
def test_sinusoids_that_are_made_in_each_call_are_a_note_too(make, mask):
    report = check("encoder", built(make), mask=mask)
    assert report.passed, str(report)
    [note] = [f for f in report.notes if f.contract == ORDER]
    assert "It adds sinusoids to `x`" in note.message
    assert "comes without positions" in note.why


@pytest.mark.parametrize("make", [OneAngle, lambda: Computed(wrong=True)])
def test_sinusoids_excuse_nothing_that_they_do_not_explain(make):
    report = check("encoder", built(make), mask="hidden")
    assert ORDER in [f.contract for f in report.faults], str(report)


class OnTheWay(Attends):
    """No table is held, so that nobody can take the positions away."""

    def places(self, x):
        return sinusoidal(x.shape[1], 12)


class ReadWrongly(Attends):
    """It has a table, and mixes up positions and features as well."""

    def forward(self, x, padding_mask=None):
        y = super().forward(x, padding_mask)
        return y + y.reshape(len(x), 12, -1).mT


class NotInUse(ReadWrongly):
    def places(self, x):
        return torch.zeros(12)


@pytest.mark.parametrize("make", [OnTheWay, ReadWrongly, NotInUse])
def test_a_table_excuses_nothing_that_it_does_not_explain(make):
    report = check("encoder", built(make), mask="hidden")
    assert ORDER in [f.contract for f in report.faults]


class Convolving(nn.Module):
    """The other half: a convolution that hides the padding."""

    def __init__(self):
        super().__init__()
        self.attend, self.norm = Attends(), nn.LayerNorm(12)
        self.wide, self.out = nn.Conv1d(12, 24, 1), nn.Conv1d(12, 12, 1)
        self.depth = nn.Conv1d(12, 12, 3, padding=1, groups=12)
        self.bn = nn.BatchNorm1d(12)

    def forward(self, x, padding_mask=None):
        x = self.attend(x, padding_mask)
        y = nn.functional.glu(self.wide(self.norm(x).mT), 1)
        y = self.bn(self.depth(self.hidden(y, padding_mask)))
        return x + self.out(nn.functional.silu(y)).mT

    def hidden(self, y, padding_mask):
        if padding_mask is None:
            return y
        return y.masked_fill(padding_mask[:, None], 0)


class AlsoOverTheBatch(Convolving):
    def forward(self, x, padding_mask=None):
        y = super().forward(x, padding_mask)
        return y - y.mean(0, keepdim=True) if self.training else y


def test_the_batch_norm_of_a_convolution_is_a_risk_that_names_it():
    part = check_model(built(Convolving)).parts[0].judged
    assert part.report.passed, str(part.report)
    (note,) = part.report.notes
    assert note.message.startswith(
        "`table` adds positions inside, and `depth` is a convolution over them"
    )
    (risk,) = part.report.risks
    assert risk.contract == TRAINING
    assert "`bn` is a BatchNorm" in risk.message
    assert "Conformer" in risk.why


class SeesThePadding(Convolving):
    def __init__(self):
        super().__init__()
        self.attend.table.zero_()

    def hidden(self, y, padding_mask):
        return y


def test_a_convolution_that_sees_the_padding_is_a_risk_of_that_alone():
    report = check("encoder", built(SeesThePadding).eval(), mask="hidden")
    assert report.passed
    risk = next(f for f in report.risks if "see the padding" in f.contract)
    assert "`depth` is a convolution over positions beside" in risk.message
    (note,) = report.notes
    assert note.message.startswith("`depth` is a convolution over positions")


class ByDistance(Attends):
    def __init__(self):
        super().__init__()
        self.rel_bias = nn.Embedding(67, 1)

    def forward(self, x, padding_mask=None):
        y, at = self.norm(x), torch.arange(x.shape[1])
        bias = self.rel_bias(at - at[:, None] + 33)[..., 0]
        if padding_mask is not None:
            padding_mask = torch.zeros(x.shape[:2]).masked_fill(
                padding_mask, -1e9
            )
        y, _ = self.attend(y, y, y, padding_mask, attn_mask=bias)
        return self.last(x + y)


class DistancesToo(SeesThePadding):
    def __init__(self):
        super().__init__()
        self.attend = ByDistance()


def test_a_convolution_beside_numbers_for_distances_mixes_up_no_heads():
    report = check("encoder", built(DistancesToo).eval(), mask="hidden")
    assert report.passed
    risk = next(f for f in report.risks if "see the padding" in f.contract)
    assert "`depth` is a convolution over positions beside" in risk.message
    (note,) = report.notes
    assert note.message.startswith("`rel_bias` holds numbers for distances")


def test_a_batch_norm_excuses_nothing_that_it_does_not_explain():
    report = check("encoder", built(AlsoOverTheBatch), mask="hidden")
    assert TRAINING in [f.contract for f in report.faults]


class Broken(Attends):
    def forward(self, x, padding_mask=None):
        return super().forward(x, padding_mask) - x.mean(0)


def test_masks_that_pytorchs_layer_gets_are_read_as_it_reads_them():
    part = check_model(built(Broken)).parts[0].judged
    assert part.report.faults
    said = " ".join((*part.assumed, *part.report.assumed))
    assert "so that True hides, as in PyTorch's `MultiheadAttention`" in said
    assert "added to the scores" not in said


class Sinusoids(nn.Module):
    """Adds sinusoids from a buffer, as most do."""

    def __init__(self, width=12):
        super().__init__()
        place, i = torch.arange(64.0)[:, None], torch.arange(0, width, 2)
        self.register_buffer("pe", self.filled(place, i, width))

    def filled(self, place, i, width):
        table = torch.zeros(len(place), width)
        angle = self.angles(place, i, width)
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
        return table

    def angles(self, place, i, width):
        return place * torch.exp(-i * (math.log(10000.0) / width))

    def forward(self, x):
        return x + self.pe[: x.shape[1]]


class Halves(Sinusoids):
    def filled(self, place, i, width):
        angle = self.angles(place, i, width)
        return torch.cat([angle.sin(), angle.cos()], -1)


class AsInTensor2Tensor(Halves):
    def angles(self, place, i, width):
        return place * 1e4 ** (-i / 2 / (width / 2 - 1))


class OfAnotherBase(Sinusoids):
    def angles(self, place, i, width):
        return place / 1000 ** (i / width)


class FromOne(Sinusoids):
    def angles(self, place, i, width):
        return super().angles(place + 1, i, width)


class TenTimes(Halves):
    def forward(self, x):
        return x + 10 * self.pe[: x.shape[1]]


@pytest.mark.parametrize("width", [12, 18])
@pytest.mark.parametrize(
    "make", [Sinusoids, Halves, AsInTensor2Tensor, FromOne, TenTimes]
)
def test_sinusoids_that_are_added_may_have_any_layout(make, width):
    (part,) = check_model(built(lambda: make(width))).parts
    assert part.judged.component == "add_positions"
    assert not part.judged.report.failures, str(part.judged.report)


def test_another_base_of_sinusoids_that_are_added_is_a_note_that_names_it():
    (part,) = check_model(built(lambda: OfAnotherBase(18))).parts
    (note,) = part.judged.report.failures
    assert note.level == "note"
    assert note.message == "The base is 1000: the paper's is 10000."


class OfBaseAHundred(Sinusoids):
    def angles(self, place, i, width):
        return place / 100 ** (i / width)


def test_half_the_exponent_is_a_risk_where_the_base_may_be_100():
    (part,) = check_model(built(OfBaseAHundred)).parts
    (risk,) = part.judged.report.failures
    assert risk.level == "risk"
    assert risk.message.startswith("The exponent is i/d")
    assert risk.why.startswith("It is right if the base is meant to be 100")


@pytest.mark.parametrize("width", [2, 5, 8, 10, 17])
@pytest.mark.parametrize("trained", [False, True])
def test_positions_of_any_width_are_a_sum(width, trained):
    positions = built(lambda: OfAnyWidth(width)).eval()
    if not trained:
        positions.table.data = sinusoidal(19, width + width % 2)[:, :width]
    (part,) = check_model(positions).parts
    assert part.judged.component == "add_positions"
    assert part.judged.report.passed, str(part.judged.report)


@pytest.mark.parametrize("width", [5, 8])
def test_narrow_positions_that_come_again_are_a_fault(width):
    (part,) = check_model(built(lambda: ComingAgain(width)).eval()).parts
    assert part.judged.component == "add_positions"
    assert part.judged.report.faults


class OfAnyWidth(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(19, width))

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class ComingAgain(OfAnyWidth):
    """Every other position gets the same vector."""

    def forward(self, x):
        return x + self.table[torch.arange(x.shape[1]) % 2]


class Multiplied(Sinusoids):
    def angles(self, place, i, width):
        return place * 10000.0 ** (i / width)


class TwiceTheDimension(Sinusoids):
    def angles(self, place, i, width):
        return place / 10000.0 ** (2 * i / width)


class InHalves(TwiceTheDimension, Halves):
    pass


class MultipliedInHalves(Multiplied, Halves):
    pass


class HalfTheExponent(Sinusoids):
    def angles(self, place, i, width):
        return place / 10000.0 ** (i / 2 / width)


class HalfFromOne(HalfTheExponent, FromOne):
    def forward(self, x):
        return x + self.pe[1 : 1 + x.shape[1]]


def exponents(i, width):
    return 10000 ** (-i / 2 / width)


class HalfByAFunction(Halves):
    def angles(self, place, i, width):
        return place * exponents(i, width)


class SinesInBoth(Sinusoids):
    def filled(self, place, i, width):
        return self.angles(place, i, width).sin().repeat_interleave(2, -1)


class ASineForEach(Sinusoids):
    """Every dimension is a sine, with a rate of its own."""

    factor = 1

    def filled(self, place, i, width):
        j = torch.arange(width)
        return (place * 10000.0 ** (-self.factor * j / width)).sin()


class ASineForEachTwice(ASineForEach):
    factor = 2


class CosinesOfTheirOwn(Sinusoids):
    """The exponent of a cosine is that of its dimension."""

    factor = 1

    def angles(self, place, i, width):
        return place / 10000.0 ** (self.factor * i / width)

    def filled(self, place, i, width):
        table = torch.zeros(len(place), width)
        table[:, 0::2] = self.angles(place, i, width).sin()
        table[:, 1::2] = self.angles(place, i + 1, width).cos()
        return table


class CosinesAndTwice(CosinesOfTheirOwn):
    factor = 2


class CosinesMultiplied(CosinesOfTheirOwn):
    factor = -1


@pytest.mark.parametrize("width", [12, 18])
@pytest.mark.parametrize(
    ("make", "named"),
    [
        (Multiplied, "The position is multiplied by 10000^(2i/d)"),
        (MultipliedInHalves, "The position is multiplied by 10000^(2i/d)"),
        (TwiceTheDimension, "The dimension is taken for i"),
        (InHalves, "The dimension is taken for i"),
        (HalfTheExponent, "The exponent is i/d"),
        (HalfFromOne, "The exponent is i/d"),
        (HalfByAFunction, "The exponent is i/d"),
        (SinesInBoth, "There are no cosines"),
        (ASineForEach, "There are no cosines"),
        (ASineForEachTwice, "There are no cosines"),
        (CosinesOfTheirOwn, "Every dimension has a frequency of its own"),
        (CosinesAndTwice, "The dimension is taken for i"),
        (CosinesMultiplied, "The position is multiplied by 10000^(j/d)"),
    ],
)
def test_sinusoids_that_are_added_with_wrong_rates_are_a_fault(
    make, named, width
):
    (part,) = check_model(built(lambda: make(width))).parts
    (fault,) = part.judged.report.faults
    assert fault.contract == "Sinusoids have the rates of the formula"
    assert fault.message.startswith(named)


class LooksUpAndScales(Sinusoids):
    """Multiplies by √d first, which an embedding may have left to it."""

    def forward(self, x):
        return x * x.shape[-1] ** 0.5 + self.pe[: x.shape[1]]


class TwiceAndScales(LooksUpAndScales, CosinesAndTwice):
    pass


def test_what_scales_by_the_root_of_the_width_adds_positions_too():
    (part,) = check_model(built(LooksUpAndScales)).parts
    assert part.judged.component == "add_positions"
    assert not part.judged.report.risks
    assert part.judged.report.passed
    (part,) = check_model(built(TwiceAndScales)).parts
    (fault,) = part.judged.report.faults
    assert fault.message.startswith("The dimension is taken for i")


def test_the_rate_that_was_measured_is_told_beside_the_right_one():
    (part,) = check_model(built(HalfTheExponent)).parts
    (fault,) = part.judged.report.faults
    assert "Pair 1 turns by 0.464 a step, expected 0.215." in fault.message
    (part,) = check_model(built(CosinesOfTheirOwn)).parts
    (fault,) = part.judged.report.faults
    assert "its sine turns by 1 a step, and its cosine by 0.464" in (
        fault.message
    )
