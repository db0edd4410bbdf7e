"""What only a module can break: unused weights, norms, a wrong root."""

import copy
import functools

import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.right import built
from contracts.right.multihead import WIDTH
from contracts.right.transformer import PostNorm, PyTorchs
from torch import nn

from companion.contracts import COMPONENTS, check
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.modules.common import is_unused
from companion.contracts.engine.scale import as_drawn, attentions, hidden_score
from companion.contracts.multihead.multihead import Heads, padding
from companion.contracts.transformer.encoder import Stack
from companion.contracts.transformer.language_model import Language
from companion.masks import causal_mask
from companion.multihead import MultiHeadAttention

pytestmark = pytest.mark.once

PART = "Every weight of a module takes part"
APART = "In training mode too no sentence sees another"


class LostItsNetwork(PostNorm):
    """The second half of every layer is built, and never called."""

    def forward(self, x, mask=None):
        for attend, norm1, *_ in self.layers:
            x = norm1(x + attend(x, mask))
        return x


class Experts(nn.Module):
    """Two networks, of which each vector goes through one."""

    def __init__(self):
        super().__init__()
        self.one, self.other = (
            nn.Sequential(nn.Linear(WIDTH, 31), nn.ReLU(), nn.Linear(31, WIDTH))
            for _ in range(2)
        )

    def forward(self, x):
        first = x.square().sum(-1, keepdim=True) > WIDTH
        return torch.where(first, self.one(x), self.other(x))


class Routed(nn.Module):
    """Eight networks with dropout, and the two that a router likes best."""

    def __init__(self, spare=False):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(WIDTH, 9),
                nn.SiLU(),
                nn.Dropout(0.2),
                nn.Linear(9, WIDTH),
            )
            for _ in range(8)
        )
        self.router = nn.Linear(WIDTH, 7 if spare else 8, bias=False)

    def forward(self, x):
        rows = x.flatten(0, -2)
        best, which = self.router(rows).softmax(-1).topk(2)
        out = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            row, place = (which == i).nonzero(as_tuple=True)
            if len(row):
                said = best[row, place, None] * expert(rows[row])
                out = out.index_add(0, row, said)
        return out.view(x.shape)


class WithItsOwnLoss(Language):
    """A part of it is trained by its own loss alone, and one by a value."""

    def __init__(self):
        super().__init__()
        self.copy, self.value = nn.Linear(12, 11), nn.Linear(12, 1)
        self.head = nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 11))

    def forward(self, tokens, targets=None):
        x = self.head[0](self.states(tokens))
        found = {"logits": self.head[1](x), "value": self.value(x)}
        if targets is not None:
            both = found["logits"] + self.copy(x)
            found["loss"] = F.cross_entropy(
                both.flatten(0, 1), targets.view(-1)
            )
        return found

    def states(self, tokens):
        """What the layers make of the tokens."""
        x = self.embedded(tokens)
        for layer in self.layers:
            x = layer(x, causal_mask(tokens.shape[1]))
        return x


class BatchNormed(nn.Module):
    """A feed-forward network with a BatchNorm, which eval mode hides."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)
        self.norm = nn.BatchNorm1d(31)

    def forward(self, x):
        inner = self.norm(self.up(x).mT).mT
        return self.down(inner.relu())


def failed(report):
    return {failure.contract for failure in report.failures}


def test_a_layer_that_lost_its_network_is_named_by_the_first_unused_weight():
    module = built(LostItsNetwork).eval()
    report = check("encoder", module)
    assert failed(report) == {PART}
    assert report.failures[0].message.startswith(
        "`layers.0.2.weight` takes no part: no gradient reaches it, whatever "
        "the input. Is it built and never called"
    )
    assert report.failures[0].message.endswith(" So it is with 11 more.")


def test_a_bound_method_is_asked_for_the_weights_of_its_module():
    module = built(LostItsNetwork).eval()
    assert failed(check("encoder", module.forward)) == {PART}


def test_a_bias_may_have_no_slope_and_a_matrix_may_not():
    # That of the keys adds the same to all scores of a row.
    bias, matrix = torch.zeros(3), torch.zeros(3, 2)
    assert not is_unused(bias, gradient=torch.zeros(3))
    assert is_unused(matrix, gradient=torch.zeros(3, 2))
    assert is_unused(bias, gradient=None)


def test_frozen_weights_are_not_asked_for():
    module = built(LostItsNetwork).eval()
    for layer in module.layers:
        for part in layer[2:]:
            part.requires_grad_(False)
    assert check("encoder", module).passed


def test_an_expert_for_some_vectors_only_takes_part():
    report = check("feed_forward", built(Experts).eval())
    assert not failed(report) & {PART, APART}


@pytest.mark.parametrize("seed", range(3))
def test_an_expert_that_few_vectors_choose_is_not_called_dead(seed):
    """Nor does what experts drop out for one sentence count for another."""
    report = check("feed_forward", built(Routed, seed).eval())
    assert not failed(report) & {PART, APART}


def test_an_expert_that_no_router_can_choose_takes_no_part():
    report = check("feed_forward", built(lambda: Routed(spare=True)).eval())
    assert failed(report) == {PART}
    assert "`experts.7.0.weight` takes no part" in report.failures[0].message


def test_what_a_models_own_loss_trains_takes_part():
    model = built(WithItsOwnLoss).eval()
    assert check("language_model", model).passed
    model.value.requires_grad_(False)
    model.forward = lambda tokens: WithItsOwnLoss.forward(model, tokens)
    assert failed(check("language_model", model)) == {PART}


class OneMatrix(nn.Module):
    """Queries, keys and values of one matrix; a name may stand there twice."""

    def __init__(self, taken=(0, 1, 2), keys=WIDTH):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, WIDTH + 2 * keys, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.taken, self.keys = taken, keys

    def forward(self, x):
        three = self.qkv(x).split([WIDTH, self.keys, self.keys], -1)
        q, k, v = (
            three[i].unflatten(-1, (-1, 4)).transpose(1, 2) for i in self.taken
        )
        got = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
        return self.out(got.transpose(1, 2).flatten(2))


@pytest.mark.parametrize(
    ("taken", "keys", "told"),
    [
        ((0, 0, 2), WIDTH, "The numbers 12 to 23 that `qkv.weight` makes"),
        ((0, 1, 1), WIDTH, "The numbers 24 to 35 that `qkv.weight` makes"),
        ((1, 1, 2), WIDTH, "The numbers 0 to 11 that `qkv.weight` makes"),
        ((0, 1, 1), 4, "The numbers 16 to 19 that `qkv.weight` makes"),
    ],
)
def test_a_third_of_one_matrix_that_nobody_uses_is_named(taken, keys, told):
    for right in (taken, (0, 1, 2)):
        module = built(lambda right=right: OneMatrix(right, keys)).eval()
        report = check("causal_attention", module)
        assert failed(report) == ({PART} if right == taken else set())
        said = " ".join(failure.message for failure in report.failures)
        assert said.startswith(told if right == taken else "")


def test_batch_norm_shows_in_training_and_leaves_no_trace():
    module = built(BatchNormed).eval()
    before = module.norm.running_mean.clone()
    report = check("feed_forward", module)
    assert failed(report) == {APART}
    assert "BatchNorm" in report.failures[0].message
    assert not module.training
    assert not module.norm.training
    assert module.norm.running_mean.equal(before)


def test_dropout_in_training_mode_is_no_alarm():
    module = built(lambda: PyTorchs(dropout=0.5)).eval()
    assert check("encoder", module).passed
    assert not module.training


@pytest.mark.parametrize("contract", [PART, APART])
def test_a_function_is_not_asked_for_weights_that_nobody_can_find(contract):
    module = built(PostNorm).eval()
    as_function = check("encoder", lambda x, mask=None: module(x, mask))
    assert contract in check("encoder", module).held
    assert contract not in as_function.held + as_function.untried
    assert as_function.passed


def test_a_list_of_tensors_is_described_by_its_length():
    def clip_gradients(gradients, scale, max_norm):
        return [g / nothing for g in gradients]  # noqa: F821

    assert gate_message("clip_gradients", clip_gradients).endswith(
        "The arguments were gradients of 3 tensors, scale 2.0, max_norm 1.0."
    )


# By how much scores are multiplied


ROOT = "The scores of a head are divided by the root of its width"


class Scaled(Heads):
    """Heads whose queries, keys and scores are multiplied by anything."""

    def __init__(self, heads=3, queries=1.0, keys=1.0, scores=1.0):
        super().__init__()
        self.count = heads
        self.factors = queries, keys, scores

    def split(self, x):
        return x.unflatten(-1, (self.count, -1)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        one, other, both = self.factors
        weights = self.weigh((one * q) @ (other * k).mT * both, mask)
        return self.o(self.join(weights @ v))


def heard(component, fn):
    guarded = Guarded(COMPONENTS[component], fn)
    return attentions(guarded, guarded.component.example)


def rooted(fn, component="multihead"):
    """What is found about the root, and nothing else is amiss."""
    report = check(component, fn)
    found = [f for f in report.failures if f.contract == ROOT]
    assert [f for f in report.faults if f.contract != ROOT] == []
    return found[0] if found else None


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6])
def test_pytorchs_function_and_a_product_by_hand_are_heard_alike(heads):
    """PyTorch divides by the root of the last axis; so does our module."""
    fused = built(lambda: MultiHeadAttention(12, heads)).eval()
    by_hand = built(lambda: Scaled(heads, scores=(12 / heads) ** -0.5))
    for fn in (fused, by_hand):
        [one] = heard("multihead", fn)
        assert one.factor == pytest.approx((12 / heads) ** -0.5, rel=1e-4)
        assert (one.head, one.width) == (12 // heads, 12)
        assert rooted(fn) is None


@pytest.mark.parametrize(
    "factors", [(0.3, 1, 1), (1, 0.3, 1), (1, 1, 0.3), (0.6, 1.5, 1 / 3)]
)
def test_it_does_not_matter_where_a_factor_stands(factors):
    [one] = heard("multihead", built(lambda: Scaled(3, *factors)))
    assert one.factor == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (12**-0.5, "divided by √12, the root of d_model"),
        (1.0, "not divided by anything"),
        (0.25, "divided by 4, its width"),
        (2.0, "multiplied by √4"),
        (3**-0.5, "divided by √3, the root of the number of heads"),
        (5**-0.5, "divided by √5, the root of the number of positions"),
        (2**-0.5, "divided by √2, the root of the number of sentences"),
    ],
)
@pytest.mark.parametrize("place", [0, 2])
def test_a_wrong_number_under_the_root_is_named(factor, words, place):
    factors = [1.0, 1.0, 1.0]
    factors[place] = factor
    found = rooted(built(lambda: Scaled(3, *factors)))
    assert found.level == "fault"
    assert words in found.message


class OneProjectionForAllHeads(nn.Module):
    """Each head is projected by the same matrix, of a head's width."""

    def __init__(self, divisor, heads=3, head=4):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(head, head) for _ in "qkv")
        self.out = nn.Linear(heads * head, heads * head)
        self.heads, self.divisor = heads, divisor

    def forward(self, x, mask=None):
        four = x.unflatten(-1, (self.heads, -1))
        q, k, v = (part(four) for part in (self.q, self.k, self.v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.divisor
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        seen = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        return self.out(seen.flatten(2))


def test_the_root_of_d_model_is_named_where_all_heads_share_a_projection():
    found = rooted(built(lambda: OneProjectionForAllHeads(12**0.5)))
    assert found.level == "fault"
    assert "divided by √12, the root of d_model" in found.message
    assert rooted(built(lambda: OneProjectionForAllHeads(2))) is None


def test_one_head_is_as_wide_as_the_model():
    assert rooted(built(lambda: Scaled(1, scores=12**-0.5))) is None


def test_another_factor_is_a_note_and_so_is_one_folded_into_the_weights():
    found = rooted(built(lambda: Scaled(3, scores=0.123)))
    assert found.level == "note"
    assert "multiplied by 0.123: 1/√4 is 0.5" in found.message

    folded = built(Scaled)
    for x in folded.q.parameters():
        x.data /= 2
    found = rooted(folded)
    assert found.level == "note"
    assert "T5 leaves the division out" in found.excuse


@pytest.mark.parametrize("grown", ["q", "qk"])
def test_weights_that_have_moved_may_hold_the_factor_which_is_a_risk(grown):
    """A trained T5 has never divided, and its queries may be of any size."""
    trained = built(lambda: Scaled(4))
    for name in grown:
        for x in getattr(trained, name).parameters():
            x.data *= 3
    found = rooted(trained)
    assert found.level == "risk"
    assert "not divided by anything" in found.message
    assert "as those of a trained T5 do" in found.excuse
    assert check("multihead", trained).passed


def test_a_matrix_that_gradients_have_moved_is_not_as_drawn():
    weight = nn.Parameter(nn.Linear(48, 48).weight.detach().clone())
    assert as_drawn(weight.detach())
    optimizer = torch.optim.Adam([weight], lr=0.05)
    x = torch.randn(64, 48, generator=torch.Generator().manual_seed(3))
    for _ in range(40):
        optimizer.zero_grad()
        F.mse_loss(x @ weight.T, x.roll(1, -1)).backward()
        optimizer.step()
    assert not as_drawn(weight.detach())


DRAWS = {
    "linear": lambda w: nn.init.kaiming_uniform_(w, a=5**0.5),
    "xavier": nn.init.xavier_uniform_,
    "xavier_normal": nn.init.xavier_normal_,
    "gpt": lambda w: nn.init.normal_(w, std=0.02),
    "t5 keys": lambda w: nn.init.normal_(w, std=w.shape[1] ** -0.5),
    "kaiming": nn.init.kaiming_normal_,
    "plain": nn.init.normal_,
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", [(11, 13), (192, 64), (3, 4, 12)])
def test_the_usual_draws_are_known_so_that_no_fault_hides_behind_them(
    name, shape
):
    torch.manual_seed(7)
    # One matrix for each head is drawn as one matrix.
    weight = torch.empty(shape[0], shape[1] * (shape[2] if shape[2:] else 1))
    assert as_drawn(DRAWS[name](weight).reshape(shape))


def test_not_dividing_is_a_fault_whatever_the_usual_draw():
    for draw in ("xavier", "gpt", "kaiming", "linear"):
        torch.manual_seed(5)
        module = built(lambda: Scaled(3))
        for part in (module.q, module.k):
            DRAWS[draw](part.weight)
        assert rooted(module).level == "fault"


def test_without_a_softmax_nothing_is_heard():
    assert heard("feed_forward", nn.Linear(12, 12)) == []


def test_all_attentions_of_a_stack_are_heard_one_by_one():
    assert [a.head for a in heard("encoder", built(Stack).eval())] == [4, 4]


def test_a_hidden_score_that_counts_is_told_with_its_value():
    def score(value, x, mask):
        class Filled(Heads):
            def weigh(self, scores, mask):
                return scores.masked_fill(~mask, value).softmax(-1)

        guarded = Guarded(COMPONENTS["multihead"], built(Filled))
        return hidden_score(guarded, (x, mask), mask.expand(2, 1, 5, 5)[:, 0])

    x = torch.randn(2, 5, 12)
    for mask in (padding(2, 4), causal_mask(5)[None, None]):
        assert score(0.5, x, mask) == 0.5
        assert score(1e-9, x, mask) == pytest.approx(1e-9)
        assert score(-1e9, x, mask) is None
        assert score(-torch.inf, x, mask) is None


# A partial of a module, or of its class


class WithASpare(Heads):
    def __init__(self):
        super().__init__()
        self.spare = nn.Linear(3, 3)

    def forward(self, x, mask=None, loud=False):
        return super().forward(x, mask) * (1 + loud)


def test_what_stands_behind_a_partial_is_judged_as_a_module():
    fn = functools.partial(built(WithASpare), loud=True)
    (failure,) = check("multihead", fn).faults
    assert "`spare.weight` takes no part" in failure.message
    whole = check("multihead", functools.partial(built(Heads)))
    assert "Every weight of a module takes part" in whole.held


def test_a_partial_of_a_function_is_a_function():
    fn = functools.partial(F.scaled_dot_product_attention, dropout_p=0.0)
    assert check("attention", fn).passed
    fn = functools.partial(F.scaled_dot_product_attention, scale=1.0)
    (first, *_) = check("attention", fn).faults
    assert "The scores are not scaled" in first.message


def test_a_partial_of_a_class_is_to_be_called_first():
    report = check("multihead", functools.partial(MultiHeadAttention, 12, 3))
    (failure,) = report.faults
    assert "a partial of the class MultiHeadAttention" in failure.message


class Copied(nn.Module):
    """Two networks in turn, each copied from one that stands by itself."""

    def __init__(self, calls=(0, 1), copied=True):
        super().__init__()
        self.template = self.network()
        self.copies = nn.ModuleList(
            copy.deepcopy(self.template) if copied else self.network()
            for _ in "12"
        )
        self.calls = calls

    def network(self):
        return nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12))

    def forward(self, x):
        for i in self.calls:
            x = self.copies[i](x)
        return x


@pytest.mark.parametrize(
    ("copied", "calls", "level"),
    [(True, (0, 1), "risk"), (False, (0, 1), "risk"), (True, (0, 0), "fault")],
)
def test_a_template_that_is_kept_beside_its_copies_is_a_risk(
    copied, calls, level
):
    report = check("feed_forward", built(lambda: Copied(calls, copied)))
    [failure] = [f for f in report.failures if "takes no part" in f.message]
    assert failure.level == level, str(report)


@pytest.mark.parametrize("name", ["second", "layer_norm", "out"])
def test_what_no_name_calls_a_template_is_forgotten(name):
    module = built(lambda: Copied(copied=False))
    setattr(module, name, module.template)
    del module.template
    [fault] = check("feed_forward", module).faults
    assert f"`{name}.0.weight` takes no part" in fault.message


def test_a_layer_of_another_size_than_those_of_the_list_is_forgotten():
    module = built(lambda: Copied(copied=False))
    module.template = nn.Sequential(
        nn.Linear(12, 31), nn.GELU(), nn.Linear(31, 12)
    )
    [fault] = check("feed_forward", module).faults
    assert "`template.0.weight` takes no part" in fault.message


class TwoAlike(Copied):
    """One network is copied beside the other, and never called."""

    def __init__(self):
        super().__init__()
        del self.copies
        self.forgotten = copy.deepcopy(self.template)

    def forward(self, x):
        return self.template(x)


class GathersTwice(nn.Module):
    """Two sequences ask each other, and each gets what it gathers."""

    def __init__(self, both=True):
        super().__init__()
        self.asks, self.out, self.values, self.back, self.other = (
            nn.Linear(12, 12) for _ in range(5)
        )
        self.both = both

    def forward(self, x, context):
        scores = self.asks(x) @ self.other(context).mT / 12**0.5
        one = self.out(scores.softmax(-1) @ context)
        two = self.back(scores.mT.softmax(-1) @ self.values(x))
        return one, two if self.both else two.mean()


@pytest.mark.parametrize("both", [True, False])
def test_what_another_sequence_gathers_counts_too(both):
    report = check("multihead", built(lambda: GathersTwice(both)))
    assert (PART in report.held) == both, str(report)


def test_a_copy_that_stands_beside_what_is_called_is_no_template():
    [fault] = check("feed_forward", built(TwoAlike)).faults
    assert "`forgotten.0.weight` takes no part" in fault.message


def test_one_of_a_list_of_copies_that_is_never_called_is_no_template():
    module = built(lambda: Copied((0, 0)))
    del module.template
    [fault] = check("feed_forward", module).faults
    assert "`copies.1.0.weight` takes no part" in fault.message


class Rounds(nn.Module):
    """A network whose numbers are rounded at the end."""

    def __init__(self, straight_through=False):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)
        self.straight_through = straight_through

    def forward(self, x):
        y = self.down(self.up(x).relu())
        rounded = torch.round(y, decimals=3)
        return y + (rounded - y).detach() if self.straight_through else rounded


def test_rounding_that_lets_no_gradient_through_is_named():
    (fault,) = check("feed_forward", built(Rounds)).faults
    assert fault.contract == PART
    assert "numbers are rounded on the way" in fault.message
    right = built(lambda: Rounds(straight_through=True))
    assert check("feed_forward", right).passed
