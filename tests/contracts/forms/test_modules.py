"""Components with weights of their own: modules, and what they may return."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.odd.multihead import transposed_mask
from contracts.right import RIGHT, built
from contracts.right.blocks import network
from contracts.right.multihead import Heads
from torch import nn

from companion import multihead, positions
from companion.contracts import COMPONENTS, check
from companion.contracts.blocks.feed_forward import ConvolutionOfWidthThree
from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, one_tensor
from companion.contracts.engine.runner import outcomes
from companion.contracts.engine.universal import contracts_of
from companion.contracts.multihead.causal_attention import Causal
from companion.contracts.multihead.multihead import (
    MultipliedAfterwards,
    SoftmaxOverTheQueries,
    SplitByViewAlone,
)
from companion.contracts.multihead.split_heads import viewed_straight
from companion.contracts.positions.add_positions import indexed_by_the_batch
from companion.contracts.positions.rope import turned_by_place

pytestmark = pytest.mark.once


def test_heads_of_any_width_keep_the_contracts():
    """The usual ones of the package are tried with what check_test compares."""
    heads = built(
        lambda: multihead.MultiHeadAttention(12, 5, head_dim=7, v_head_dim=11)
    )
    report = check("multihead", heads)
    assert report.passed, str(report)


def test_rotations_by_complex_numbers_keep_the_contracts():
    report = check("rope", positions.rotate_complex)
    assert report.passed, str(report)


@pytest.mark.parametrize("std", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("num_heads", [1, 3, 12])
def test_weights_of_any_size_raise_no_false_alarm(std, num_heads):
    """Scores near 0, and scores that leave all the weight on one key."""
    for seed in range(3):
        attention = built(lambda: Heads(num_heads), seed)
        feed_forward = built(lambda: network(nn.ReLU()), seed)
        for module in (attention, feed_forward):
            for parameter in module.parameters():
                nn.init.normal_(parameter, 0, std)
        for component, module in (
            ("multihead", attention),
            ("feed_forward", feed_forward),
        ):
            report = check(component, module)
            assert report.passed, str(report)


def test_rounding_is_not_taken_for_a_leak():
    """Every position adds to a sum which is then taken away again."""
    right = RIGHT["feed_forward"][0]

    def roundabout(x):
        total = x.sum(1, keepdim=True)
        return right((x + total) - total)

    x = draw(2, 5, 12, seed=7)
    other = torch.cat([x[:, :4], 3 * x[:, 4:]], 1)
    assert not torch.equal(roundabout(x)[:, 0], roundabout(other)[:, 0])
    report = check("feed_forward", roundabout)
    assert report.passed, str(report)


def test_pytorchs_module_without_weights_needs_a_mask_turned_round_only():
    inner = built(lambda: nn.MultiheadAttention(12, 3, batch_first=True))

    def attend(x, mask=None):
        if mask is not None:
            batch, seq, _ = x.shape
            hidden = ~mask.expand(batch, 3, seq, seq)
            mask = hidden.reshape(-1, seq, seq)
        return inner(x, x, x, attn_mask=mask, need_weights=False)[0]

    report = check("multihead", attend)
    assert report.passed, str(report)


# What follows from a mistake is told with it


@pytest.mark.parametrize(
    ("component", "fn", "named", "failures"),
    [
        ("split_heads", viewed_straight, "A `view` straight", 3),
        ("multihead", built(SplitByViewAlone), "Attention knows no order", 6),
        ("add_positions", indexed_by_the_batch, "indexed by the batch", 3),
        ("rope", turned_by_place, "do the angles come from `positions`", 3),
        (
            "feed_forward",
            built(ConvolutionOfWidthThree),
            "a convolution run over",
            3,
        ),
    ],
)
def test_what_a_mistake_brings_about_is_told_with_it(
    component, fn, named, failures
):
    report = check(component, fn)
    assert len(report.failures) == failures
    (group,) = report.grouped()
    assert named in group[0].message


@pytest.mark.parametrize(
    ("component", "fn", "held"),
    [
        ("split_heads", viewed_straight, "One head is the whole vector"),
        ("feed_forward", built(ConvolutionOfWidthThree), "It is not linear"),
        (
            "multihead",
            transposed_mask,
            "A mask that hides nothing changes nothing",
        ),
    ],
)
def test_what_holds_in_spite_of_a_mistake_is_not_said_to_fail(
    component, fn, held
):
    assert held in check(component, fn).held


@pytest.mark.parametrize(
    ("fn", "named"),
    [
        (
            built(MultipliedAfterwards),
            "multiplies the weights after the softmax",
        ),
        (built(SoftmaxOverTheQueries), "The softmax runs over the queries"),
        (transposed_mask, "The mask is transposed"),
    ],
)
def test_a_wrong_mask_has_one_name_under_every_mask(fn, named):
    (group,) = check("multihead", fn).grouped()
    contracts = [failure.contract for failure in group]
    assert named in group[0].message
    assert "With a causal mask no row sees its future" in contracts
    assert "No row sees the padding of its own sentence" in contracts


def test_what_is_compared_with_no_pytorch_does_not_say_so():
    names = {
        component.name: [n for n in contracts_of(component) if "agrees" in n]
        for component in COMPONENTS.values()
    }
    assert names["padding_mask"] == ["It agrees with tokens != pad"]
    assert names["sinusoidal"] == ["It agrees with the formula"]
    assert names["split_heads"] == ["It agrees with PyTorch"]
    assert names["rope"] == []


def test_a_large_bias_is_not_taken_for_a_norm():
    """Alike and of mean square 1, because they hardly move at all."""
    bias = F.layer_norm(draw(12, seed=3), (12,))
    right = RIGHT["feed_forward"][0]
    report = check("feed_forward", lambda x: bias + 1e-4 * right(x))
    assert "The vectors it returns have sizes of their own" in report.held


def test_the_row_whose_gradient_is_nan_is_a_row_and_not_a_sentence():
    def attend(x, mask=None):
        """Only the query has a gradient."""
        scores = x @ x.detach().mT
        if mask is not None:
            mask = mask[:, 0] if mask.ndim == 4 else mask
            scores = scores + torch.zeros(()).masked_fill(~mask, -torch.inf)
        return scores.softmax(-1).nan_to_num(0) @ x.detach()

    report = check("multihead", attend)
    assert "The gradient of `x` is NaN in row 1." in str(report)


# What a module is told


def test_a_class_is_told_to_be_made_a_module_first():
    message = gate_message("feed_forward", nn.Linear)
    assert message == (
        "It is the class Linear: make a module of it first, "
        '`check("feed_forward", Linear(...))`.'
    )


def test_a_module_with_other_arguments_is_told_how_it_is_called():
    message = gate_message("multihead", nn.CosineEmbeddingLoss())
    assert "It cannot be called as `multihead(x)`" in message
    assert "The contracts call `multihead(x, mask=None)`" in message
    assert "check.md#adapters" in message


class Dropping(nn.Module):
    """PyTorch's own attention, which drops out weights while it trains."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(12, 3, 0.2, batch_first=True)

    def forward(self, x, mask=None):
        return self.inner(x, x, x, need_weights=False)[0]


def by_function(x, mask=None):
    one = x.unsqueeze(1)
    return F.scaled_dot_product_attention(one, one, one, dropout_p=0.2)[:, 0]


@pytest.mark.parametrize("make", [Dropping, lambda: by_function])
def test_dropout_inside_attention_is_named(make):
    assert "dropout is on" in gate_message("multihead", built(make))


def test_dropout_in_training_mode_is_named_and_evaluation_mode_passes():
    module = built(lambda: network(nn.Sequential(nn.ReLU(), nn.Dropout(0.3))))
    assert "dropout is on" in gate_message("feed_forward", module)
    assert check("feed_forward", module.eval()).passed


def test_a_dropout_that_is_off_is_not_blamed_for_what_a_function_keeps():
    inner = built(lambda: network(nn.Dropout(0.3))).eval()
    calls = itertools.count()
    message = gate_message("feed_forward", lambda x: inner(x) + next(calls))
    assert "dropout" not in message


def test_other_random_numbers_are_not_called_dropout():
    right = RIGHT["feed_forward"][0]
    message = gate_message("feed_forward", lambda x: right(x) + torch.rand(()))
    assert "does it draw" in message
    assert "dropout" not in message


def test_a_function_that_works_elsewhere_is_told_where_its_inputs_are():
    def elsewhere(x):
        raise RuntimeError(
            "Expected all tensors to be on the same device, but got two"
        )

    assert "gets its inputs on the CPU" in gate_message(
        "feed_forward", elsewhere
    )


def test_the_way_a_module_is_shown_need_not_be_its_call():
    module = built(lambda: Heads(3))
    assert check("multihead", module.forward).passed


# What is put back


class Meddling(nn.Module):
    """Changes its numbers, its buffers and its mode whenever it is called."""

    def __init__(self):
        super().__init__()
        self.inner = network(nn.ReLU())
        self.calls = nn.Buffer(torch.zeros(()))

    def forward(self, x):
        result = self.inner(x)
        self.eval()
        with torch.no_grad():
            self.calls += 1
            self.inner[0].weight *= 2
        return result


@pytest.mark.parametrize("part", ["__call__", "forward"])
def test_a_module_gets_back_its_numbers_buffers_and_mode(part):
    module = built(Meddling)
    before = {k: v.clone() for k, v in module.state_dict().items()}
    check("feed_forward", getattr(module, part))
    assert module.training
    assert module.inner.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_check_between_forward_and_backward_spoils_nothing():
    module = built(lambda: network(nn.ReLU()))
    loss = module(draw(2, 3, 12, seed=1)).sum()
    assert check("feed_forward", module).passed
    loss.backward()
    assert module[0].weight.grad is not None


def test_gradients_of_the_weights_stay_what_they_were():
    module = built(lambda: network(nn.ReLU()))
    assert check("feed_forward", module).passed
    assert all(parameter.grad is None for parameter in module.parameters())


# What else a component may take and return


def component(**others):
    """One that takes a number, and returns what it says."""
    words = {
        "name": "thing",
        "signature": "thing(n)",
        "returns": "something",
        "cases": lambda: {"as it is": (3,)},
    }
    return Component(**{**words, **others})


def message_of(component, fn):
    found = [broken for _, broken in outcomes(Guarded(component, fn)) if broken]
    return found[0].message if found else ""


def test_what_a_component_lacks_is_not_asked_for():
    names = list(contracts_of(component(shape_contract="It returns a number")))
    assert names == [
        "It returns a number",
        "The same inputs give the same output",
    ]


def test_a_component_may_return_a_plain_number():
    def read(fn, result, args):
        if not isinstance(result, int):
            raise Broken("It is not a number.")
        return result

    counts = component(read=read)
    state = iter(range(10))
    assert message_of(counts, lambda n: n + 1) == ""
    assert message_of(counts, str).startswith("It is not a number. Meant so?")
    assert message_of(counts, lambda n: next(state)) == (
        "The second call differs: does it draw, or keep something? It returned "
        "1, and then 2."
    )


def test_a_component_may_return_several_tensors_each_of_them_finite():
    pairs = component(read=lambda fn, result, args: result)
    nan = torch.tensor([[1.0, torch.nan]])
    assert message_of(pairs, lambda n: [torch.ones(1, 2)] * n) == ""
    assert message_of(pairs, lambda n: (torch.ones(1, 2), nan)) == (
        "Row 0, feature 1 is NaN. The arguments were n 3."
    )


def test_a_component_may_return_booleans():
    masks = component(shape=lambda n: (n, n), dtype=torch.bool, read=one_tensor)
    assert message_of(masks, lambda n: torch.eye(n).bool()) == ""
    assert message_of(masks, torch.eye) == (
        "It returned float32: expected bool."
    )
    state = itertools.cycle([True, False])

    def changing(n):
        return torch.full((n, n), next(state))

    assert "yours is False, expected True" in message_of(masks, changing)


def test_a_size_may_be_left_open():
    logits = component(shape=lambda n: (n, None), dtype=torch.float32)
    assert message_of(logits, lambda n: torch.ones(n, 7)) == ""
    assert message_of(logits, lambda n: torch.ones(7, n)).startswith(
        "It returned shape (7, 3): expected (3, any), something."
    )


def test_a_component_may_turn_what_it_is_given_into_a_function():
    constants = component(
        adapt=lambda given: lambda n: given,
        read=lambda fn, result, args: result,
    )
    guarded = Guarded(constants, 41)
    assert guarded.given == 41
    assert guarded(3) == 41


def test_a_kink_within_a_step_is_no_wrong_gradient():
    """A ReLU has no slope at 0, and a step of 0.01 often meets one."""
    x = draw(2, 5, 12, seed=3)
    kinked = component(
        signature="thing(x)", cases=lambda: {"": (x,)}, shape=lambda x: x.shape
    )
    # Each bends within 0.001 to 0.005 of where it is asked.
    fn = built(lambda: nn.Linear(12, 12))
    bend = (fn(x) + 0.0005).detach()
    assert message_of(kinked, lambda x: 30 * (fn(x) - bend).relu()) == ""
    assert message_of(kinked, lambda x: 30 * fn(x.detach() + 0 * x)) != ""


PART = "Every weight of a module takes part"


class OfItsOwnCache(Causal):
    """Keys are written into a buffer in each call, with their graph."""

    name = "keys_cache"

    def __init__(self):
        super().__init__()
        self.register_buffer(self.name, torch.zeros(4, 3, 32, 4))

    def kept(self, k):
        buffer = getattr(self, self.name)
        buffer[: len(k), :, : k.shape[2]] = self.stored(k)
        return buffer[: len(k), :, : k.shape[2]]

    def stored(self, k):
        return k

    def scores(self, q, k):
        return super().scores(q, self.kept(k))


class OfALongText(OfItsOwnCache):
    """Named for no cache, so that it may be meant for training."""

    name = "written"


class LeavesItsGraph(OfItsOwnCache):
    def kept(self, k):
        super().kept(k)
        return k

    def stored(self, k):
        return k.detach()


class ShowsItsWeights(Causal):
    """What was seen is kept for a figure, and made anew in each call."""

    def weigh(self, scores, mask):
        self.seen_cache = super().weigh(scores, mask)
        return self.seen_cache


class MadeOnce(Causal):
    """Numbers for distances are computed from a weight, but only once."""

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(()))
        place = torch.arange(32)
        self.far = self.slope * (place - place[:, None])

    def scores(self, q, k):
        seq = q.shape[-2]
        return super().scores(q, k) + self.far[:seq, :seq]


def test_a_cache_that_keeps_its_graph_is_a_risk_that_names_buffer_and_cure():
    report = check("causal_attention", built(OfItsOwnCache))
    (risk,) = report.risks
    assert report.passed
    assert risk.contract == PART
    assert "`keys_cache` keeps what the last call computed" in risk.message
    assert "`.detach()`" in risk.message
    assert "in code that is trained it is a fault" in risk.why


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (OfALongText, "`written` keeps what the last call computed"),
        (MadeOnce, "`far` is computed once and kept, with its graph"),
    ],
)
def test_what_a_second_step_of_training_raises_for_is_named(make, named):
    (fault,) = check("causal_attention", built(make)).faults
    assert fault.contract == PART
    assert fault.message.startswith(named)


@pytest.mark.parametrize("make", [LeavesItsGraph, ShowsItsWeights])
def test_what_is_kept_without_harm_to_training_is_right(make):
    report = check("causal_attention", built(make))
    assert not report.failures, str(report)


class InFloat32(nn.LayerNorm):
    """It norms in float32, as its weights are, and gives back what it got."""

    def forward(self, x):
        return super().forward(x.float()).to(x.dtype)


class SquaredInHalf(nn.Module):
    """It squares in the type that it gets: large numbers become infinite."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(12))

    def forward(self, x):
        mean = (300 * x).square().mean(-1, keepdim=True).sqrt() / 300
        return x / mean * self.weight.to(x.dtype)


def test_weights_in_float32_are_right_under_autocast():
    half = "It works in half precision"
    report = check("layer_norm", InFloat32(12))
    [told] = [f.why for f in report.risks if f.contract == half]
    assert "as under autocast, it is right; it bites once `.half()`" in told
    report = check("rms_norm", SquaredInHalf())
    [told] = [f.why for f in report.failures if f.contract == half]
    assert "it bites once the model runs in float16 or under autocast" in told
