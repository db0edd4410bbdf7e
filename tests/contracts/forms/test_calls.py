"""How check finds out in which way code wants to be called."""

import inspect
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.right import RIGHT, built
from contracts.right.public import PORTS
from contracts.right.standins import (
    STANDINS,
    WIDTH,
    EveryMaskIsGiven,
    LengthsOfEachQuery,
    Projected,
    Recurrent,
    SequenceFirstTranslator,
    Stack,
    adapter_lines,
    softmax_with_lengths,
    weigh,
    with_lengths,
)
from torch import nn

from companion.commands import check as command
from companion.commands.check.judging import told
from companion.commands.check.process import Section
from companion.commands.check.target import Target
from companion.contracts import adapters, check, check_model
from companion.contracts.engine.compare import draw
from companion.contracts.engine.runner import NOT_TRIED
from companion.words import say, understood

pytestmark = pytest.mark.once

PAGE = Path(__file__).parents[3] / "book" / "check.md"


@pytest.mark.parametrize("name", STANDINS)
def test_what_is_right_in_its_own_style_is_called_in_its_own_way(name):
    known = STANDINS[name]
    words = {"mask": known.mask} if known.mask else {}
    report = check(known.component, known.make(), **words)
    assert report.passed, str(report)
    told = [t for t in report.assumed if not t.startswith(NOT_TRIED)]
    assert bool(told) == bool(known.said), told
    assert known.said in " ".join(told)


@pytest.mark.once  # The hook that checks shapes wraps an adapter.
def test_nine_in_ten_public_styles_need_one_adapter_line_at_most():
    lines = [k.lines for k in (*STANDINS.values(), *PORTS.values())]
    none, one = lines.count(0), lines.count(1)
    assert none + one >= 0.9 * len(lines)
    words = " ".join(PAGE.read_text("utf-8").split())
    assert (
        f"Of the {len(lines)} right implementations that the tests of this "
        f"course hold in public styles, {none} need no adapter, {one} need one "
        f"line, and {len(lines) - none - one} need more."
    ) in words


@pytest.mark.once  # The hook that checks shapes wraps an adapter.
def test_the_lines_of_an_adapter_are_counted_as_they_are_written():
    yours = STANDINS["softmax: of_arrays"]
    assert yours.lines == 1
    twice = adapters.first_of(adapters.from_numpy(lambda x, axis: (x,)))
    assert adapter_lines(twice) == 2
    assert adapter_lines(nn.Identity()) == 0
    assert STANDINS["greedy_decode: with_a_model"].lines == 3
    assert PORTS["BehindLengths"].lines == 3


# What is called as the contracts call


@pytest.mark.parametrize("component", RIGHT)
def test_of_what_the_contracts_can_call_nothing_is_said(component):
    assumed = check(component, RIGHT[component][0]).assumed
    assert [said for said in assumed if not said.startswith(NOT_TRIED)] == []


def test_a_plain_call_costs_three_calls_more_at_most():
    calls = []
    right = RIGHT["attention"][0]

    def attention(q, k, v, mask=None):
        calls.append(inspect.stack()[1].function)
        return right(q, k, v, mask)

    check("attention", attention)
    # Its cases, and not one more.
    assert calls[:4] == ["call"] * 4
    assert "styled" not in calls


def test_what_is_written_yet_is_not_asked_again():
    calls = []

    def multihead(x, mask=None):
        calls.append(x)
        raise NotImplementedError

    assert "Nothing is written here yet" in gate_message("multihead", multihead)
    assert len(calls) == 2


# What no shape can tell


class TrueHides(Projected):
    def forward(self, x, mask=None):
        return self.attend(x, x, x, None if mask is None else ~mask)[0]


def test_what_true_means_is_asked_for_and_never_guessed():
    module = built(TrueHides)
    report = check("multihead", module)
    assert not report.passed
    (said,) = report.assumed
    assert said == (
        "If True hides in your masks, no contract finds a fault. Say so: "
        '`check("multihead", …, mask="hidden")`.'
    )
    assert check("multihead", module, mask="hidden").passed
    assert check("multihead", module, mask="shown").assumed == (
        "If True hides in your masks after all, no contract finds a fault. Say "
        'so: `mask="hidden"`.',
    )
    assert check("multihead", adapters.mask_turned(module)).passed


def test_that_the_sequence_comes_first_is_said_and_never_guessed():
    table = draw(64, 1, WIDTH, seed=3)

    def add(x):
        return x + table[: len(x)]

    report = check("add_positions", add)
    assert not report.passed
    (said,) = report.assumed
    assert said.startswith("If the sequence comes first in yours, no contract")
    assert said.endswith("Say so: `adapters.sequence_first(…)`.")
    assert check("add_positions", adapters.sequence_first(add)).passed


class WrongWhereverItStands(SequenceFirstTranslator):
    """Its targets see their future."""

    def past(self, tgt):
        return super().past(tgt).new_zeros(tgt.shape[1], tgt.shape[1])


def test_the_sequence_is_put_first_where_the_shapes_of_a_translator_say_so():
    report = check("translation_model", built(SequenceFirstTranslator).eval())
    assert report.passed
    assert "for its shapes fit only so" in report.assumed[0]
    report = check("translation_model", built(WrongWhereverItStands).eval())
    assert not report.passed
    assert "for its shapes fit only so" in report.assumed[0]
    assert "future" in report.faults[0].contract


class LooksOver(Projected):
    """Sequence first, with a mask (seq, seq); ``shift`` spoils the mask."""

    shift = 0

    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.roll(self.shift, -1)
        found = self.attend(*[x.transpose(0, 1)] * 3, mask)[0]
        return found.transpose(0, 1)


class LooksOverTheWrongOnes(LooksOver):
    shift = 1


def test_elsewhere_the_sequence_is_put_first_only_if_that_is_right():
    report = check("multihead", built(LooksOver))
    assert report.passed
    assert "for its shapes fit only so" in report.assumed[0]
    report = check("multihead", built(LooksOverTheWrongOnes))
    assert not report.passed
    assert "sequence" not in " ".join(report.assumed)


def test_a_translator_that_may_hide_what_is_true_says_so():
    report = check("translation_model", built(EveryMaskIsGiven).eval())
    assert not report.passed
    assert "If True hides in your masks, no contract finds" in report.assumed[1]


def test_a_loss_of_one_row_a_token_is_told_its_adapter_and_is_no_guess():
    """As code it is what forgets that PyTorch wants the classes second."""

    def loss(pred, gold, smoothing, pad):
        return F.cross_entropy(
            pred, gold, ignore_index=pad, label_smoothing=smoothing
        )

    report = check("label_smoothing", loss)
    assert not report.passed
    assert report.assumed == (
        "If yours takes one row a token, (tokens, vocab) and (tokens,), no "
        "contract finds a fault. Say so: `adapters.one_row_a_token(…)`.",
    )
    assert check("label_smoothing", adapters.one_row_a_token(loss)).passed


@pytest.mark.bad_input
def test_a_word_about_masks_has_to_be_known_and_there_has_to_be_a_mask():
    with pytest.raises(ValueError, match=r"^mask: expected .* got 'True'"):
        check("attention", F.scaled_dot_product_attention, mask="True")
    with pytest.raises(ValueError, match=r"^mask: 'softmax' has no mask"):
        check("softmax", torch.softmax, mask="hidden")


class WithoutAMask(Stack):
    """Right if it is given a causal mask, which may be left out."""

    def forward(self, tokens, mask=None):
        free = torch.ones(1, 1).bool()
        return self.head(self.states(tokens, free if mask is None else mask))


def test_a_language_model_that_was_not_given_its_mask_is_told_so():
    report = check("language_model", built(WithoutAMask))
    assert not report.passed
    assert report.assumed == (
        "If it is to be given a causal mask, no contract finds a fault. Say "
        'so: `check("language_model", …, mask="shown")`.',
    )
    report = check("language_model", built(WithoutAMask), mask="shown")
    assert report.passed
    assert "it got the causal mask too" in report.assumed[0]


# What is wrong stays wrong, in whatever form it is called


class Wrong(Projected):
    """A right call with the wrong half of a mask."""

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1).mT
        return self.attend(query, key, value, mask)


def test_a_mistake_is_named_behind_a_form_too():
    report = check("multihead", built(Wrong))
    assert not report.passed
    assert "The mask is transposed" in report.failures[0].message
    assert "Called as yours" in report.assumed[0]


def lengths_ignored(queries, keys, values, valid_lens=None):
    return with_lengths(queries, keys, values)


def lengths_off_by_one(queries, keys, values, valid_lens=None):
    if valid_lens is not None:
        valid_lens = valid_lens + 1
    return with_lengths(queries, keys, values, valid_lens)


def one_key_too_few(queries, keys, values, valid_lens=None):
    if valid_lens is not None:
        valid_lens = (valid_lens - 1).clamp(min=0)
    return with_lengths(queries, keys, values, valid_lens)


def lengths_of_another_sentence(queries, keys, values, src_len=None):
    if src_len is None:
        return with_lengths(queries, keys, values)
    rows = queries.shape[1]
    each = src_len.repeat(rows).view(len(queries), rows, 1)
    return LengthsOfEachQuery()(queries, keys, values, each.squeeze(2))[0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lengths_ignored, "The mask is not used"),
        (lengths_off_by_one, "Row 0 sees key 1"),
        (one_key_too_few, "Row 0 does not see key 3"),
        (lengths_of_another_sentence, "Row 1 sees key 2"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_wrong_with_lengths_is_found_without_an_adapter(wrong, told):
    report = check("attention", wrong)
    assert "how many of the first keys count" in report.assumed[0]
    assert told in " ".join(f.message for f in report.faults)
    assert not check("attention", adapters.valid_lengths(wrong)).passed


def test_a_softmax_with_one_length_too_much_is_found_without_an_adapter():
    def softmax(scores, valid_lens):
        return softmax_with_lengths(scores, valid_lens + 1)

    report = check("masked_softmax", softmax)
    assert "how many of the first keys count" in report.assumed[0]
    assert not report.passed


def test_lengths_beside_a_mask_are_no_mask():
    def attention(q, k, v, mask=None, lengths=None):
        return F.scaled_dot_product_attention(q, k, v, mask)

    assert check("attention", attention).assumed == ()


class ThreeAndLengths(Projected):
    """Lengths count the keys."""

    def forward(self, queries, keys, values, valid_lens=None):
        may = None
        if valid_lens is not None:
            may = torch.arange(keys.shape[1]) < valid_lens[:, None]
            may = may[:, None, None].expand(-1, 3, queries.shape[1], -1)
        return self.attend(queries, keys, values, may)[0]


class XAndLengths(ThreeAndLengths):
    def forward(self, x, lengths):
        return super().forward(x, x, x, lengths)


class OneKeyTooMany(ThreeAndLengths):
    def forward(self, queries, keys, values, valid_lens=None):
        more = None if valid_lens is None else valid_lens + 1
        return super().forward(queries, keys, values, more)


class BesideAFlag(ThreeAndLengths):
    """Any `forward_mask` makes it causal; padding gets zeros."""

    def forward(self, x, valid_lens=None, forward_mask=None):
        seq = x.shape[1]
        may = torch.ones(len(x), 3, seq, seq, dtype=torch.bool)
        if forward_mask is not None:
            may = may.tril()
        if valid_lens is not None:
            real = torch.arange(seq) < valid_lens[:, None, None, None]
            may = may & real & real.mT
        return self.attend(x, x, x, may)[0]


class AnotherLength(BesideAFlag):
    def forward(self, x, valid_lens=None, forward_mask=None):
        more = None if valid_lens is None else self.wrong(valid_lens)
        return super().forward(x, more, forward_mask)

    def wrong(self, lengths):
        return lengths + 1


class OfAnotherSentence(AnotherLength):
    def wrong(self, lengths):
        return lengths.flip(0)


class Ignored(AnotherLength):
    def wrong(self, lengths):
        return None


class BlockOfLengths(BesideAFlag):
    """A layer of an encoder around it."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)
        self.net = nn.Sequential(
            nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)
        )

    def forward(self, x, valid_lens=None, forward_mask=None):
        x = self.one(x + super().forward(x, valid_lens, forward_mask))
        return self.two(x + self.net(x))


class BlockOfOneTooMany(BlockOfLengths, AnotherLength):
    """Its attention counts one word too many."""


def test_lengths_of_a_layer_are_found():
    for make in (ThreeAndLengths, XAndLengths):
        report = check("multihead", built(make).eval())
        assert report.passed
        assert "how many of the first keys count" in report.assumed[0]
    assert not check("multihead", built(OneKeyTooMany).eval()).passed


@pytest.mark.parametrize(
    ("component", "make"),
    [("multihead", BesideAFlag), ("encoder", BlockOfLengths)],
)
def test_lengths_are_given_beside_what_is_called_a_mask_and_is_a_flag(
    component, make
):
    report = check(component, built(make).eval())
    assert not report.failures, str(report)
    assert "`valid_lens` was taken for how many" in report.assumed[0]
    assert "`forward_mask` was not given, for any mask" in report.assumed[0]
    assert understood(say(report.assumed[0])), say(report.assumed[0])


@pytest.mark.parametrize(
    ("component", "make"),
    [
        ("multihead", AnotherLength),
        ("multihead", OfAnotherSentence),
        ("multihead", Ignored),
        ("encoder", BlockOfOneTooMany),
    ],
)
def test_wrong_lengths_beside_a_flag_are_found(component, make):
    assert check(component, built(make).eval()).faults


def test_the_adapter_of_lengths_takes_what_attends_to_itself():
    def counting(x, counts=None):
        return right(x, counts)

    right, wrong = built(BesideAFlag).eval(), built(AnotherLength).eval()
    assert check("multihead", adapters.valid_lengths(counting)).passed
    report = check("multihead", adapters.valid_lengths(wrong))
    assert report.faults


class Raises(Projected):
    """Another form of a call, in which one length is too much."""

    def forward(self, query, key, value, mask=None):
        if query.shape[1] == 11:
            raise ValueError("eleven")
        return self.attend(query, key, value, mask)[0]


def test_the_line_that_is_named_is_the_learners_own():
    report = check("multihead", built(Raises))
    assert not report.passed
    (message,) = {f.message for f in report.failures}
    assert (
        'in line 3 of `Raises.forward`, `raise ValueError("eleven")`' in message
    )


def test_a_norm_gets_back_its_gain_its_width_and_its_eps():
    norm = nn.LayerNorm(13, eps=0.25)
    before = norm.weight
    assert check("layer_norm", norm).passed
    assert norm.weight is before
    assert (norm.normalized_shape, norm.eps) == ((13,), 0.25)
    assert norm.weight.grad is None


def test_a_norm_with_its_gain_in_the_wrong_place_is_found():
    class Norm(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x) + self.bias

    report = check("layer_norm", Norm(7))
    assert not report.passed


class OnePlus(nn.Module):
    """Multiplies by 1 + w, and w starts at 0."""

    def __init__(self, width=12):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), 1e-6

    def forward(self, x):
        size = (x.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return x / size * (1 + self.weight)


def test_a_norm_that_multiplies_by_one_and_its_weight_is_right():
    report = check("rms_norm", OnePlus())
    assert report.passed
    assert "1 + `weight` is its gain" in report.assumed[0]
    part = check_model(OnePlus()).parts[0].judged
    assert part.component == "rms_norm"
    assert part.report.passed


def test_a_norm_that_makes_everything_twice_as_long_is_still_found():
    norm = OnePlus()
    nn.init.ones_(norm.weight)
    assert check("rms_norm", norm).faults


class Lone(nn.Module):
    """A LayerNorm whose bias can be left out."""

    def __init__(self, width=12):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), None
        self.eps = 1e-5

    def forward(self, x):
        shape = self.weight.shape
        return F.layer_norm(x, shape, self.weight, self.bias, self.eps)


@pytest.mark.parametrize("make", [Lone, lambda: nn.LayerNorm(12, bias=False)])
def test_a_layer_norm_without_a_bias_is_right(make):
    report = check("layer_norm", make())
    assert report.passed
    assert "it has no bias" in report.assumed[0]


def test_a_layer_norm_without_a_bias_that_leaves_the_mean_is_found():
    assert check("layer_norm", nn.RMSNorm(12)).faults


class FromAStart(nn.Module):
    """A language model that wants to know where its tokens start."""

    def __init__(self):
        super().__init__()
        self.inner = RIGHT["language_model"][0]

    def forward(self, tokens, start_pos: int):
        return self.inner(tokens)


def test_a_report_says_that_a_start_was_given_as_zero():
    report = check("language_model", built(FromAStart))
    assert report.passed
    assert "`start_pos` was 0" in report.assumed[0]


# Attention that is causal


@pytest.mark.parametrize("batch", [True, False])
def test_arrays_in_a_tuple_are_converted_too(batch):
    def looks(q, k, v, mask=None):
        scores = q @ np.swapaxes(k, -2, -1) / np.sqrt(q.shape[-1])
        scores = scores if mask is None else np.where(mask, scores, -1e9)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        return weights @ v, weights

    converted = adapters.from_numpy(looks, batch=batch)
    report = check("attention", converted)
    assert not report.faults, report
    assert "the first of what it returned was taken" in str(report)
    assert not check("attention", adapters.first_of(converted)).faults
    # Of each of several results the gradient is measured.
    x = torch.ones(1, 2, 3, dtype=torch.float64, requires_grad=True)
    double = adapters.from_numpy(lambda x: (2 * x, 3 * x), batch=batch)
    one, other = double(x)
    (one.sum() + other.sum()).backward()
    assert torch.allclose(x.grad, torch.full_like(x, 5.0))


def test_multihead_with_a_mask_built_in_is_sent_to_its_component():
    for given in (RIGHT["causal_attention"][1], lambda q, k, v: v):
        message = gate_message("multihead", given)
        assert 'try `check("causal_attention", …)`' in message


def test_messages_about_a_call_or_a_shape_name_the_page():
    wrong = {
        "multihead": lambda x, mask, a, b, c: x,
        "add_positions": lambda x: x[0],
        "language_model": lambda tokens: torch.ones(5, 2, 11),
    }
    messages = {c: gate_message(c, fn) for c, fn in wrong.items()}
    for message in messages.values():
        assert "check.md#adapters" in message
        assert "Write `def" not in message
    assert "`adapters.added_from`" in messages["add_positions"]
    assert "`adapters.sequence_first`" in messages["language_model"]


# The page


def test_the_page_names_every_adapter():
    page = PAGE.read_text("utf-8")
    for name in adapters.__all__:
        assert f"`{name}" in page or f"adapters.{name}" in page, name


def test_the_mask_stands_first_in_the_docstring_of_an_adapter():
    for name in adapters.__all__:
        first = inspect.getdoc(getattr(adapters, name)).partition(".")[0]
        assert re.match("Masks?( returned)?: ", first), name


class Quoted(Projected):
    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        return self.attend(query, key, value, mask)


def test_the_page_quotes_what_is_assumed_word_for_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    quoted = re.findall(r"```text\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    (shown,) = (text for text in quoted if "Called as yours" in text)
    found = told(check("multihead", built(Quoted)))
    part = {"name": "Quoted", "line": 1, "found": found}
    lines = command.report(Section(Target(Path("mine.py"))), part)
    assert shown.splitlines() == lines[1 : 1 + len(shown.splitlines())]


def test_a_form_is_found_quickly():
    """A recurrent model fits at the second look, a translator after many."""
    check("language_model", built(Recurrent))
    began = time.perf_counter()
    check("language_model", built(Recurrent))
    assert time.perf_counter() - began < 2


class OfFourMasks(nn.Module):
    """A right translator of masks (batch, key), and of one of the order."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(11, 12), nn.Embedding(11, 12)
        self.body = nn.Transformer(12, 4, 1, 1, 24, batch_first=True)
        self.out = nn.Linear(12, 11)

    def forward(
        self, src, tgt, src_pad_mask, tgt_pad_mask, tgt_mask, memory_pad_mask
    ):
        x = self.body(
            self.src(src), self.tgt(tgt), tgt_mask=tgt_mask,
            src_key_padding_mask=src_pad_mask,
            tgt_key_padding_mask=tgt_pad_mask,
            **self.of_memory(memory_pad_mask),
        )  # fmt: skip
        return self.out(x)

    def of_memory(self, mask):
        return {"memory_key_padding_mask": mask}


class OfPaddingForOrder(OfFourMasks):
    """A mistake: the padding is (batch, src), and (tgt, src) is wanted."""

    def of_memory(self, mask):
        return {"memory_mask": mask, **super().of_memory(mask)}


class NeverComesBack(OfFourMasks):
    """It raises whatever its masks are."""

    def __init__(self):
        super().__init__()
        self.out = nn.Linear(13, 11)


@pytest.mark.parametrize(
    ("make", "raised", "always"),
    [
        (OfPaddingForOrder, "attn_mask is", False),
        (NeverComesBack, "shapes cannot be multiplied", True),
    ],
)
def test_of_the_calls_with_masks_the_one_that_got_furthest_is_told(
    make, raised, always
):
    (left,) = check_model(built(make).eval()).unjudged
    assert "It raised RuntimeError in line" in left.reason
    assert "of `OfFourMasks.forward`, `" in left.reason
    assert raised in left.reason
    assert "Called as yours: it got the masks too" in left.reason
    assert "missing a required argument" not in left.reason
    assert "`lambda src, tgt: yours(…)`" in left.reason
    assert "with_masks" not in left.reason
    assert ("Only a risk: it is right if" in left.reason) == always
    assert "按你的方式调用：还传入了掩码，" in say(left.reason, "zh")


class OfFourAxes(OfFourMasks):
    """A right one, of whose masks two have four axes, and one has two."""

    def forward(self, src, tgt, src_pad_mask, tgt_mask, memory_pad_mask):
        sizes = src_pad_mask.ndim, tgt_mask.ndim, memory_pad_mask.ndim
        if sizes != (2, 4, 4):
            raise ValueError(f"masks of {sizes} axes")
        hide, own = ~src_pad_mask, ~tgt_mask[0, 0]
        of_memory = ~memory_pad_mask[:, 0, 0]
        return super().forward(src, tgt, hide, None, own, of_memory)


def test_what_wants_masks_that_are_not_tried_has_no_risk():
    (left,) = check_model(built(OfFourAxes).eval()).unjudged
    assert "It raised ValueError in line" in left.reason
    assert "Only a risk" not in left.reason


class OfTwoMasks(nn.Module):
    """It wants two masks, and another thing that nobody knows."""

    def forward(self, src, tgt, src_mask, tgt_mask, weights):
        return F.one_hot(tgt, 11).float() + weights


def test_masks_are_given_by_the_adapter_where_it_has_all():
    report = check("translation_model", OfTwoMasks())
    assert "missing a required argument" in report.failures[0].message
    assert "`adapters.with_masks`" in report.failures[0].message


def of_three(q, k, v, mask=None, wrong=1.0):
    """Attention of three axes, whose mask may have two or three."""
    scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5 * wrong
    may = None if mask is None else mask.expand_as(scores)
    return torch.bmm(weigh(scores, may), v)


def of_three_with_one_mask(q, k, v, mask=None):
    batch, _, _ = q.shape
    return of_three(q, k, v, None if mask is None else mask.repeat(batch, 1, 1))


def hiding_of_three(q, k, v, mask=None):
    return of_three(q, k, v, None if mask is None else ~mask)


@pytest.mark.parametrize("mine", [of_three, of_three_with_one_mask])
def test_attention_of_three_axes_only_is_given_three(mine):
    report = check("attention", mine)
    assert report.passed, str(report)
    assert "it takes three axes and no others" in report.assumed[0]
    alone = "each was given alone" in report.assumed[0]
    assert alone == (mine is of_three_with_one_mask)
    assert understood(say(report.assumed[0])), say(report.assumed[0])


def test_what_is_wrong_with_three_axes_is_found():
    def unscaled(q, k, v, mask=None):
        return of_three(q, k, v, mask, q.shape[-1] ** 0.5)

    assert "not scaled" in check("attention", unscaled).faults[0].message
    told = check("attention", hiding_of_three).assumed
    assert any("If True hides in your masks" in said for said in told)
    assert check("attention", hiding_of_three, mask="hidden").passed


def test_what_is_wrong_with_four_axes_and_says_nothing_of_three_is_a_fault():
    def by_number(q, k, v, mask=None):
        return weigh(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, mask) @ v

    assert check("attention", by_number).faults
