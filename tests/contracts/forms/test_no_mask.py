"""Attention and encoders that take no mask are judged without one."""

from typing import Annotated, Literal

import pytest
import torch
from contracts.known import gate_message
from contracts.right import built
from contracts.right.standins import weigh
from torch import nn

from companion.contracts import check, check_model
from companion.contracts.discovery.kinds.recognition import ATTENTION
from companion.contracts.engine.forms.adopt import NO_MASK
from companion.contracts.pytest_tests import judge
from companion.positions import rotate
from companion.words import say

pytestmark = pytest.mark.once

PATH = "A path leads past every sub-layer"
SAID = f"Called as yours: {NO_MASK}."
ORDER = "Reordering the positions reorders the rows"
TWICE = "Saying everything twice changes no row"


class Seeing(nn.Module):
    """Attention of a Vision Transformer: no mask, in a usual notation."""

    def __init__(self, dim=12, num_heads=3):
        super().__init__()
        self.heads, self.wide = num_heads, dim // num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def attend(self, q, k, v):
        return (q @ k.mT / self.wide**0.5).softmax(-1) @ v

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, self.wide))
        y = self.attend(*parts.permute(2, 0, 3, 1, 4))
        return self.proj(y.transpose(1, 2).flatten(2))


class WithItsWeights(Seeing):
    def forward(self, x):
        return super().forward(x), "weights"


class OfThree(Seeing):
    """What asks, what is asked and what is gathered are three arguments."""

    def made(self, x, which):
        return self.qkv(x).chunk(3, -1)[which]

    def split(self, x, length):
        wide = x.view(len(x), length, self.heads, self.wide)
        return wide.transpose(1, 2)

    def forward(self, query, key, value):
        made = map(self.made, (query, key, value), range(3))
        q, k, v = (self.split(x, x.shape[1]) for x in made)
        return self.proj(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim=12, num_heads=3, mlp_dim=24, attend=Seeing):
        super().__init__()
        self.attn = attend(dim, num_heads)
        self.one, self.two = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim)
        )

    def forward(self, x):
        x = x + self.attn(self.one(x))
        return x + self.mlp(self.two(x))


@pytest.mark.parametrize("make", [Seeing, WithItsWeights, OfThree])
def test_attention_without_a_mask_is_judged_by_what_needs_none(make):
    report = check("multihead", built(make))
    assert report.passed, str(report)
    assert not report.failures
    assert NO_MASK in report.assumed[0]
    assert report.headline == "multihead: all 12 contracts hold"
    assert not any("mask" in n and "ithout" not in n for n in report.held)


def test_an_encoder_without_a_mask_is_judged_by_what_needs_none():
    report = check("encoder", nn.Sequential(built(Block), nn.LayerNorm(12)))
    assert report.passed, str(report)
    assert not report.failures
    assert report.assumed == (SAID,)


class Undivided(Seeing):
    def attend(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v


class JoinedByView(Seeing):
    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, self.wide))
        y = self.attend(*parts.permute(2, 0, 3, 1, 4))
        return self.proj(y.reshape(x.shape))


class SplitByView(Seeing):
    def forward(self, x):
        parts = self.qkv(x).view(len(x), self.heads, -1, 3 * self.wide)
        return self.proj(self.attend(*parts.chunk(3, -1)).reshape(x.shape))


class Spare(Seeing):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.spare = nn.Linear(3, 3)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (Undivided, "not divided by anything"),
        (JoinedByView, "where heads are split or joined"),
        (SplitByView, "where heads are split or joined"),
        (Spare, "`spare.weight` takes no part"),
    ],
)
def test_what_is_wrong_with_attention_is_found_without_a_mask(make, named):
    report = check("multihead", built(make))
    assert report.faults, str(report)
    assert named in report.faults[0].message
    assert report.assumed[0] == SAID


class BlockWithoutAWord(Block):
    """The second norm is made, and never called."""

    def forward(self, x):
        x = x + self.attn(self.one(x))
        return x + self.mlp(x)


class BlockOverTheBatch(Block):
    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


class EncoderBlock(Block):
    """Its first residual is lost: there is no `x +` before attention."""

    def forward(self, x):
        x = self.attn(self.one(x))
        return x + self.mlp(self.two(x))


class Large(Block):
    """Its weights begin so large that a softmax gives one position all."""

    def __init__(self):
        super().__init__()
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight)


@pytest.mark.parametrize("seed", range(3))
def test_large_weights_hide_no_position(seed):
    torch.manual_seed(seed)
    report = check("encoder", Large().eval())
    assert "Without a mask every position sees every position" in report.held


class Pools(EncoderBlock):
    """Called so, it may be no layer."""


def test_a_layer_without_a_mask_that_adds_no_input_is_a_risk():
    part, *_ = check_model(built(EncoderBlock)).parts
    [[risk]] = part.judged.report.grouped()
    assert (risk.contract, risk.level) == (PATH, "risk")
    assert "Is a residual connection missing" in risk.message
    assert PATH not in part.judged.report.held
    report = check_model(built(Pools))
    assert "it adds no input" in str(report)


@pytest.mark.parametrize("make", [BlockWithoutAWord, BlockOverTheBatch])
def test_what_is_wrong_with_a_block_is_found_without_a_mask(make):
    assert check("encoder", built(make)).faults


class BesideAConvolution(Seeing):
    """A convolution over the positions of the values is added, as LePE is."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.near = nn.Conv1d(4, 4, 3, padding=1)

    def attend(self, q, k, v):
        near = self.near(v.mT.flatten(0, 1)).view(v.mT.shape).mT
        return super().attend(q, k, v) + near


class ConvolutionJoinedByView(BesideAConvolution):
    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, self.wide))
        y = self.attend(*parts.permute(2, 0, 3, 1, 4))
        return self.proj(y.reshape(x.shape))


def test_a_convolution_beside_attention_is_a_note_that_names_it():
    report = check("multihead", built(BesideAConvolution))
    assert not report.faults + report.risks, str(report)
    for note in report.notes:
        assert "`near` is a convolution over positions" in note.message
    report = check("multihead", built(ConvolutionJoinedByView))
    assert ORDER in [f.contract for f in report.faults]


class MixesItsWeights(Seeing):
    """Weights are mixed over the heads, and normed: as in re-attention."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.mix = nn.Parameter(torch.randn(self.heads, self.heads))
        self.renorm = nn.LayerNorm(self.heads)

    def weights(self, q, k):
        weights = (q @ k.mT / self.wide**0.5).softmax(-1)
        mixed = torch.einsum("bhij,hg->bijg", weights, self.mix)
        return self.renorm(mixed).permute(0, 3, 1, 2)

    def attend(self, q, k, v):
        return self.weights(q, k) @ v


class CountsItsWeights(MixesItsWeights):
    """And divides by the number of positions: that is for no norm."""

    def attend(self, q, k, v):
        return super().attend(q, k, v) / k.shape[-2]


def test_a_norm_of_the_weights_is_a_note_that_names_it():
    report = check("multihead", built(MixesItsWeights))
    [note] = report.failures
    assert (note.level, note.contract) == ("note", TWICE), str(report)
    assert "`renorm` is a norm that the weights go through" in note.message
    report = check("multihead", built(CountsItsWeights))
    assert TWICE in [f.contract for f in report.faults], str(report)


class Turning(Seeing):
    """RoPE inside: without a mask nobody can tell it from other places."""

    def attend(self, q, k, v):
        at = torch.arange(q.shape[-2])
        return super().attend(rotate(q, at), rotate(k, at), v)


class TurningJoinedByView(Turning):
    forward = JoinedByView.forward


class InAPicture(Seeing):
    """One half is turned by the row of a picture, one by the column."""

    def turn(self, x):
        at = torch.arange(x.shape[-2])
        one, other = x.chunk(2, -1)
        return torch.cat([rotate(one, at // 3), rotate(other, at % 3)], -1)

    def attend(self, q, k, v):
        return super().attend(self.turn(q), self.turn(k), v)


class TurningQueries(Seeing):
    def attend(self, q, k, v):
        return super().attend(rotate(q, torch.arange(q.shape[-2])), k, v)


def test_what_is_turned_by_its_positions_is_a_note_without_a_mask():
    report = check("multihead", built(Turning))
    assert not report.faults + report.risks, str(report)
    assert ORDER in [f.contract for f in report.notes]
    (group,) = report.grouped()
    assert "RoPE" in group[0].why
    assert check("multihead", built(TurningJoinedByView)).faults


def test_positions_of_two_numbers_are_a_risk_without_a_mask():
    report = check("multihead", built(InAPicture))
    assert report.passed, str(report)
    (group,) = report.grouped()
    assert group[0].contract == ORDER
    assert group[0].level == "risk"


def test_queries_that_are_turned_alone_are_a_fault_without_a_mask():
    [fault, *_] = check("multihead", built(TurningQueries)).faults
    assert fault.contract == ORDER
    assert "keys are not" in fault.message


class KeysOfTheQueries(OfThree):
    def forward(self, query, key, value):
        return super().forward(query, query, value)


class ValuesOfTheKeys(OfThree):
    def forward(self, query, key, value):
        return super().forward(query, key, key)


class AsLongAsTheQueries(OfThree):
    def forward(self, query, key, value):
        made = map(self.made, (query, key, value), range(3))
        q, k, v = (self.split(x, query.shape[1]) for x in made)
        return self.proj(self.attend(q, k, v).transpose(1, 2).flatten(2))


class CutAndMoved(OfThree):
    """Of more keys than queries it takes the first but one."""

    def forward(self, query, key, value):
        first = int(key.shape[1] > query.shape[1])
        return super().forward(query, key[:, first:], value[:, first:])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (KeysOfTheQueries, "Its argument `key` changes nothing"),
        (ValuesOfTheKeys, "Its argument `value` changes nothing"),
        (AsLongAsTheQueries, "split into heads by the length of the queries"),
        (CutAndMoved, "5 queries it was given 10 keys and values, each twice"),
    ],
)
def test_a_memory_of_its_own_is_asked_of_who_takes_three(make, said):
    report = check("multihead", built(make))
    assert report.passed, str(report)
    [[risk, *_]] = report.grouped()
    assert said in risk.message
    assert "translator" in risk.why


class KeysFirst(OfThree):
    def forward(self, key, value, query):
        return super().forward(query, key, value)


class ValuesFirst(OfThree):
    def forward(self, v, k, q):
        return super().forward(q, k, v)


class KeysOfTheQueriesBehind(OfThree):
    def forward(self, keys, values, queries):
        return super().forward(queries, queries, values)


class Small(OfThree):
    """Its weights begin so small that other keys hardly move a row."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.001)


class SmallHiding(Small):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.hidden = None

    def forward(self, query, key, value, mask=None):
        self.hidden = None if mask is None else mask[:, None]
        return super().forward(query, key, value)

    def attend(self, q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.hidden is not None:
            scores = scores.masked_fill(~self.hidden, -torch.inf)
        return scores.softmax(-1) @ v


def test_weights_that_begin_small_make_nothing_unheard():
    report = check("multihead", built(Small))
    assert not report.faults + report.risks, str(report)
    report = check("multihead", built(SmallHiding))
    assert "for the causal one" not in str(report)
    assert report.passed, str(report)


def test_names_say_which_of_three_is_the_memory():
    for make in (OfThree, KeysFirst, ValuesFirst):
        report = check("multihead", built(make))
        assert not report.faults + report.risks, str(report)
    [[risk, *_]] = check("multihead", built(KeysOfTheQueriesBehind)).grouped()
    assert "Its argument `keys` changes nothing" in risk.message


class AlongThePositions(Seeing):
    """Few keys and values, each a learned sum of those of all positions."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.shorter = nn.Parameter(torch.randn(37, 7) / 7)

    def attend(self, q, k, v):
        few = self.shorter[: k.shape[-2]].mT
        return super().attend(q, few @ k, few @ v)


class AlongJoinedByView(AlongThePositions):
    forward = JoinedByView.forward


def test_keys_that_are_mixed_along_the_positions_are_a_risk_that_says_so():
    report = check("multihead", built(AlongThePositions).eval())
    assert report.passed, str(report)
    assert ORDER in [f.contract for f in report.risks]
    assert "`shorter` has a row for each position" in report.risks[0].message
    assert check("multihead", built(AlongJoinedByView)).faults


class NotItself(Seeing):
    def attend(self, q, k, v):
        scores = q @ k.mT / self.wide**0.5
        own = torch.eye(scores.shape[-1], dtype=torch.bool)
        return scores.masked_fill(own, -1e9).softmax(-1) @ v


def test_a_row_that_leaves_itself_out_is_told_that_and_not_its_order():
    report = check("multihead", built(NotItself).eval())
    assert report.passed, str(report)
    assert ORDER in report.held
    [risk] = report.risks
    assert "is the diagonal of the scores hidden" in risk.message


class Ignoring(Seeing):
    def forward(self, x, mask=None):
        return super().forward(x)


class Additive(Seeing):
    """Its mask is there, and of a shape that nobody has heard of."""

    def forward(self, x, attn_mask=None):
        assert attn_mask is None or attn_mask.ndim == 7
        return super().forward(x)


class Unnamed(Seeing):
    """Its mask has an odd name, and cannot be added to the scores."""

    def forward(self, x, allowed=None):
        y = super().forward(x)
        return y if allowed is None else y + allowed.flatten()


def test_a_mask_that_is_there_is_tried():
    report = check("multihead", built(Ignoring))
    assert "The mask is not used" in report.faults[0].message
    assert NO_MASK not in str(check("multihead", built(Additive)).assumed)
    assert check("multihead", built(Unnamed)).faults


def test_a_test_of_a_contract_that_needs_a_mask_is_skipped():
    report = check("multihead", built(Seeing))
    with pytest.raises(pytest.skip.Exception, match="needs a mask"):
        judge(report, "With a causal mask no row sees its future")


def test_a_function_is_told_to_take_a_mask():
    module = built(Seeing)
    report = check("multihead", lambda x: module(x))
    assert report.untried
    assert "It cannot be called as" in report.failures[0].message


def test_a_module_without_a_mask_and_its_parts_are_judged():
    report = check_model(built(Block))
    found = {part.name: part.judged for part in report.parts}
    assert found[""].component == "encoder"
    assert found["attn"].component == "multihead"
    assert report.passed
    assert SAID in found["attn"].report.assumed


class LostTriangle(Seeing):
    """A causal mask is made, and what `masked_fill` returns is thrown away."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.register_buffer("mask", torch.ones(16, 16).tril())

    def attend(self, q, k, v):
        scores = q @ k.mT / self.wide**0.5
        seq = scores.shape[-1]
        scores.masked_fill(self.mask[:seq, :seq] == 0, -torch.inf)
        return scores.softmax(-1) @ v


def test_a_causal_mask_that_is_lost_is_found_as_before():
    (part,) = check_model(built(LostTriangle)).parts
    assert part.judged.component == "causal_attention"
    assert "is there a causal mask" in part.judged.report.faults[0].message


@pytest.mark.parametrize(
    "name",
    [
        "MultiHeadAttention",
        "SelfAttention",
        "Attention",
        "MultiHead",
        "MultiHeads",
        "Heads",
        "MHA",
    ],
)
def test_attention_that_mixes_up_its_positions_is_found_by_its_name(name):
    """Not each position sees all of them."""
    (part,) = check_model(built(type(name, (SplitByView,), {}))).parts
    assert part.judged.component == "multihead"
    (first, *_) = part.judged.report.faults
    assert "where heads are split or joined" in first.message


def test_a_gated_or_linear_attention_is_not_judged_by_its_name():
    """It may be right, and need not be attention as the contracts know it."""
    for name in ("GatedAttention", "LinearAttention", "AttentionBlock"):
        assert not ATTENTION.fullmatch(name)


class Forgotten(Seeing):
    """A triangle is made in the call, and hides nothing."""

    def attend(self, q, k, v):
        scores = q @ k.mT / self.wide**0.5
        past = torch.tril(torch.ones(scores.shape[-2:]))
        scores.masked_fill(past == 0, -torch.inf)
        return scores.softmax(-1) @ v


class CausalAttention(Seeing):
    """Its mask is missing altogether."""


@pytest.mark.parametrize(
    "make",
    [
        Forgotten,
        lambda: Block(attend=LostTriangle),
        lambda: Block(attend=Forgotten),
    ],
)
def test_what_may_have_lost_a_causal_mask_does_not_pass_for_right(make):
    report = check_model(built(make))
    whole = report.unjudged[0]
    assert whole.name == ""
    assert "If a causal mask is meant" in whole.reason
    assert 'check("causal_attention", …)' in whole.reason


def test_attention_that_is_called_causal_has_lost_its_mask():
    (part,) = check_model(built(CausalAttention)).parts
    assert part.judged.component == "causal_attention"
    (first, *_) = part.judged.report.faults
    assert "Every row sees all positions" in first.message


# What mixes positions, and is no attention


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.along = nn.Linear(5, 5)
        self.net = nn.Sequential(nn.Linear(12, 24), nn.GELU())
        self.back = nn.Linear(24, 12)

    def forward(self, x):
        x = x + self.along(x.mT).mT
        return x + self.back(self.net(x))


class Convolving(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(12, 12, 9, padding=4)

    def forward(self, x):
        return x + self.conv(x.mT).mT.relu()


class Fourier(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(12, 12)

    def forward(self, x):
        return self.out(torch.fft.fft2(x).real)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(12, 6, batch_first=True, bidirectional=True)

    def forward(self, x):
        return x + self.rnn(x)[0]


class OfOneLength(Seeing):
    """A learned number for each pair of places, as in a window."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.table = nn.Parameter(torch.randn(5, 5))

    def attend(self, q, k, v):
        return (q @ k.mT / self.wide**0.5 + self.table).softmax(-1) @ v


class Near(Seeing):
    """Each position sees those beside it."""

    def attend(self, q, k, v):
        at = torch.arange(q.shape[-2])
        far = (at - at[:, None]).abs() > 1
        scores = q @ k.mT / self.wide**0.5
        return scores.masked_fill(far, -torch.inf).softmax(-1) @ v


class Gated(Seeing):
    """A gate instead of a network, and the input is added elsewhere."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.gate = nn.Linear(12, 12)

    def forward(self, x):
        return super().forward(x) * self.gate(x).sigmoid()


@pytest.mark.parametrize(
    "make", [Mixer, Convolving, Fourier, Both, OfOneLength, Near, Gated]
)
def test_what_may_be_no_plain_attention_is_not_judged(make):
    report = check_model(built(make))
    assert not report.parts, str(report)
    assert "takes no mask, but" in report.unjudged[0].reason


class AddsPositions(nn.Module):
    """An encoder that is given no positions, and adds them itself."""

    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(16, 12))
        self.layers = nn.Sequential(Block(), Block(), nn.LayerNorm(12))

    def forward(self, x):
        return self.layers(x + self.places[: x.shape[1]])


def test_an_encoder_that_adds_positions_is_a_risk_without_a_mask():
    report = check_model(built(AddsPositions))
    whole = report.parts[0].judged
    assert whole.component == "encoder"
    assert report.passed, str(report)
    assert [f.contract for f in whole.report.risks] == [ORDER]


class Flagged(Seeing):
    """A flag stands where the contracts give a mask."""

    def forward(self, x, force_dropout=False):
        return super().forward(x)


class FlaggedByName(Seeing):
    """It is called as a mask is, and is none."""

    def forward(self, x, forward_mask=True, scale=1.0):
        return super().forward(x)


class FlaggedByType(Seeing):
    """A word says which mask it makes."""

    def forward(self, x, mask: str | None = None):
        return super().forward(x)


class FlaggedByItsText(Seeing):
    """The type is a text, as behind `from __future__ import annotations`."""

    def forward(self, x, mask: "Optional[str]" = None):  # noqa: F821
        return super().forward(x)


class FlaggedByWords(Seeing):
    """One of several words says which mask it makes."""

    def forward(self, x, mask: Literal["past", "all"] | None = None):
        return super().forward(x)


class FlaggedWithARange(Seeing):
    """Its type holds a list."""

    def forward(self, x, scale: Annotated[float, [0, 1]] = 1.0):
        return super().forward(x)


class FlaggedByAWord(Seeing):
    """A word is its default."""

    def forward(self, x, mask="none"):
        return super().forward(x)


class FlaggedBlock(Block):
    def forward(self, x, force_dropout=False):
        return super().forward(x)


class Keeping(Seeing):
    """What keeps keys and values stands where the contracts give a mask."""

    def forward(self, x, layer_past=None, layer_idx=None):
        assert layer_past is None or layer_idx is not None
        return super().forward(x)


def flagged(x, training=True):
    return SEEING(x)


SEEING = built(Seeing).eval()


@pytest.mark.parametrize(
    ("component", "mine"),
    [
        ("multihead", built(Flagged)),
        ("multihead", built(FlaggedByName)),
        ("multihead", built(FlaggedByType)),
        ("multihead", built(FlaggedByItsText)),
        ("multihead", built(FlaggedByWords)),
        ("multihead", built(FlaggedByAWord)),
        ("multihead", built(FlaggedWithARange)),
        ("multihead", built(Keeping)),
        ("multihead", flagged),
        ("encoder", built(FlaggedBlock)),
    ],
)
def test_a_flag_is_given_no_mask(component, mine):
    report = check(component, mine)
    assert report.passed, str(report)
    assert report.assumed == (SAID,)


def weighing(q, k, v, return_weights=False, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return weigh(scores, mask) @ v


def test_a_mask_behind_a_flag_is_given_by_its_name():
    assert check("attention", weighing).passed
    message = gate_message("attention", lambda q, k, v, drop=0.0: None)
    assert "`drop` is a flag, and no mask." in message
    cached = gate_message("attention", lambda q, k, v, kv_cache=None: None)
    assert "`kv_cache` is for a cache, and no mask." in cached
    assert "`drop` 是开关，不是掩码" in say(message)


class Added(Block):
    def forward(self, x, pos=None):
        return super().forward(x if pos is None else x + pos)


class Recurrent(Block):
    def forward(self, x, mems=None):
        y = super().forward(x if mems is None else torch.cat([mems, x], 1))
        return y[:, -x.shape[1] :]


class Unread(Block):
    def forward(self, x, cond=None):
        return super().forward(x)


class Swallowing(Block):
    def forward(self, x, *args, **kwargs):
        return super().forward(x)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Added, "`pos`"),
        (Recurrent, "`mems`"),
        (Unread, "`cond`"),
        (Swallowing, "`*args`"),
    ],
)
def test_what_is_not_called_a_mask_and_hides_nothing_is_none(kind, name):
    report = check("encoder", built(kind).eval())
    assert report.passed, str(report)
    told = f"given for {name}, which is called no mask and hides nothing"
    assert told in report.assumed[0]
    assert f"没有传 {name}" in say(report.assumed[0])


class Kept(Seeing):
    """Its mask has a name of no mask, and hides."""

    def forward(self, x, other=None):
        self.other = other
        return super().forward(x)

    def attend(self, q, k, v):
        return weigh(q @ k.mT / self.wide**0.5, self.other) @ v


def test_a_mask_of_another_name_is_one_if_it_hides():
    report = check("multihead", built(Kept).eval())
    assert report.passed, str(report)
    assert not report.assumed


class NormedSum(nn.Module):
    """Attention, its input and a norm, in one part that is called attention."""

    def __init__(self, dim=12, num_heads=3):
        super().__init__()
        self.attn = Seeing(dim, num_heads)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x + self.attn(x))


def test_attention_that_adds_its_input_before_its_norm_has_lost_none():
    kind = type("SelfAttention", (NormedSum,), {})
    part = check_model(built(kind).eval()).parts[0]
    assert part.judged.report.passed
    assert not any("adds no input" in said for said in part.judged.assumed)
