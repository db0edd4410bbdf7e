"""Language models whose attention turns queries and keys by their places."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from contracts.right import built
from contracts.right.turning import Attention, Decoder, Layer, kept, turned
from torch import nn

from companion.contracts import check, check_model
from companion.contracts.positions import turned as says

pytestmark = pytest.mark.once

ORDER = "The order of the past counts"


def failed(report):
    return {failure.contract for failure in report.failures}


@pytest.mark.parametrize("std", [None, 0.02, 0.001])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_small_weights_do_not_hide_that_the_order_counts(std, num_layers):
    """Positions that turn move the logits less than rounding does."""
    for seed in range(3):
        make = partial(Decoder, num_layers=num_layers, std=std)
        report = check("language_model", built(make, seed).eval())
        assert report.passed, str(report)


@pytest.mark.parametrize("num_layers", [1, 2])
def test_small_weights_without_positions_know_no_order(num_layers):
    options = {"num_layers": num_layers, "std": 0.001, "q": kept, "k": kept}
    report = check("language_model", built(lambda: Decoder(**options)).eval())
    assert ORDER in failed(report)


class WithoutFirst(Layer):
    """What attention says replaces what came in."""

    def forward(self, x):
        x = self.attend(self.norm1(x))
        return x + self.network(self.norm2(x))


class WithoutSecond(Layer):
    """What the network says replaces what came in."""

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return self.network(self.norm2(x))


class PostLN(Layer):
    """The sum is normed."""

    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.network(x))


class PostLNWithoutFirst(PostLN):
    """The norm has kept its place, and the sum is gone."""

    def forward(self, x):
        x = self.norm1(self.attend(x))
        return self.norm2(x + self.network(x))


class SideBySide(Layer):
    """Attention and network read the same norm, as in PaLM."""

    def forward(self, x):
        y = self.norm1(x)
        return x + self.attend(y) + self.network(self.norm2(y))


class Mixing(Layer):
    """What came in and what it says are mixed by a learned (2, width)."""

    def __init__(self, **options):
        super().__init__(**options)
        self.mix = nn.Parameter(torch.ones(2, 12))

    def forward(self, x):
        x = self.mix[0] * x + self.mix[1] * self.attend(self.norm1(x))
        return x + self.network(self.norm2(x))


class AddedOutside(Decoder):
    """The model adds, and its layers are pairs, or stand in two lists."""

    def __init__(self, pairs):
        super().__init__(num_layers=0)
        made = [(Attention(), Layer().network) for _ in range(2)]
        if pairs:
            self.layers = nn.ModuleList(map(nn.ModuleList, made))
        else:
            lists = zip(*made, strict=True)
            self.attends, self.networks = map(nn.ModuleList, lists)

    def forward(self, tokens):
        x = self.embed(tokens)
        pairs = self.layers or zip(self.attends, self.networks, strict=True)
        for attend, network in pairs:
            x = x + attend(x)
            x = x + network(x)
        return self.head(self.norm(x))


class InARow(nn.Sequential):
    """A whole model in a Sequential, which maps into its layers, and out."""

    def __init__(self):
        wide = nn.Sequential(nn.Linear(17, 12), Layer(), nn.Linear(12, 12))
        super().__init__(nn.Embedding(11, 17), wide, nn.Linear(12, 11))


PATH = "A path leads past every sub-layer"
ITS_OWN = "Each layer has weights of its own"


@pytest.mark.parametrize(
    ("layer", "lost"),
    [
        (WithoutFirst, "attend"),
        (WithoutSecond, "network"),
        (PostLNWithoutFirst, "attend"),
    ],
)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_a_lost_residual_is_named_with_its_sub_layer(layer, lost, num_layers):
    make = partial(Decoder, layer, num_layers)
    report = check("language_model", built(make).eval())
    ((failure, *_),) = report.grouped()
    assert (failure.contract, failure.level) == (PATH, "fault")
    assert f"weights of `layers.0.{lost}` at 0" in failure.message


@pytest.mark.parametrize(
    "make",
    [
        lambda: Decoder(PostLN),
        lambda: Decoder(SideBySide),
        lambda: Decoder(Mixing),
        lambda: AddedOutside(pairs=True),
        lambda: AddedOutside(pairs=False),
        InARow,
    ],
)
def test_residuals_may_stand_wherever_they_do_their_work(make):
    report = check("language_model", built(make).eval())
    assert report.passed, str(report)
    assert PATH in report.held


class FromWhatAttentionSaid(Layer):
    """The second sum starts from what attention said alone."""

    def forward(self, x):
        said = self.attend(self.norm1(x))
        return said + self.network(self.norm2(x + said))


@pytest.mark.parametrize("num_layers", [1, 3])
def test_two_sub_layers_that_lead_past_each_other_only_are_both_named(
    num_layers,
):
    make = partial(Decoder, FromWhatAttentionSaid, num_layers)
    report = check("language_model", built(make).eval())
    (fault,) = report.faults
    assert fault.contract == PATH
    for part in ("attend", "network"):
        assert f"`layers.0.{part}`" in fault.message
    assert "with both at 0 none does" in fault.message


SUMS = "Every sub-layer adds to what the one before it left"


class FromTheNormed(Layer):
    """The first sum starts from the normed vector, and the second does not."""

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attend.forward(x)
        return x + self.network(self.norm2(x))


class SecondFromTheNormed(Layer):
    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        x = self.norm2(x)
        return x + self.network(x)


class BackToTheInput(Layer):
    """The second sum starts from what came into the layer."""

    def forward(self, x):
        h = x + self.attend(self.norm1(x))
        return x + self.network(self.norm2(h))


@pytest.mark.parametrize(
    ("layer", "told"),
    [
        (FromTheNormed, "starts from what `layers.0.norm1` returned"),
        (SecondFromTheNormed, "starts from what `layers.0.norm2` returned"),
        (BackToTheInput, "With the weights of `layers.0.network` at 0"),
    ],
)
def test_a_sum_that_starts_from_something_else_is_named(layer, told):
    report = check("language_model", built(partial(Decoder, layer)).eval())
    assert failed(report) == {SUMS}
    assert told in report.faults[0].message


class NormsTurnedIn(Layer):
    """Post-LN, with the norm of each sum where the next one begins."""

    def forward(self, x):
        x = self.norm1(x)
        x = x + self.attend(x)
        x = self.norm2(x)
        return x + self.network(x)


class FirstPostLN(Layer):
    def forward(self, x):
        x = self.norm1(x + self.attend(x))
        return x + self.network(self.norm2(x))


class LastPostLN(Layer):
    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return self.norm2(x + self.network(x))


class NormedBothSides(Layer):
    """A norm behind each sub-layer too, as in Gemma 2."""

    def __init__(self, **options):
        super().__init__(**options)
        self.norm3, self.norm4 = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(self, x):
        x = x + self.norm3(self.attend(self.norm1(x)))
        return x + self.norm4(self.network(self.norm2(x)))


@pytest.mark.parametrize(
    "layer", [NormsTurnedIn, FirstPostLN, LastPostLN, NormedBothSides]
)
def test_norms_may_stand_wherever_each_sum_has_its_own(layer):
    report = check("language_model", built(partial(Decoder, layer)).eval())
    assert report.passed, str(report)
    assert SUMS in report.held


class OfShortVectors(Layer):
    """Refuses what no embedding would give it."""

    def forward(self, x):
        assert x.abs().max() < 100
        return super().forward(x)


def test_a_layer_that_refuses_long_vectors_is_right():
    make = partial(Decoder, OfShortVectors)
    report = check("language_model", built(make).eval())
    assert report.passed, str(report)


def test_one_layer_that_is_listed_again_is_a_risk():
    model = built(Decoder).eval()
    model.layers = nn.ModuleList([model.layers[0]] * 3)
    (failure,) = check("language_model", model).failures
    assert (failure.contract, failure.level) == (ITS_OWN, "risk")
    assert "`layers` holds one and the same layer 3 times" in failure.message


DISTANCE = "What turns vectors by their positions leaves the distance alone"
no_minus = partial(turned, plus=-1.0)
two_angles = partial(turned, apart=0.1)


def the_other_way(x):
    """Turn back what ``turned`` turns."""
    return turned(x.flip(-2)).flip(-2)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("make", [Attention, Decoder])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"k": kept}, says.QUERIES_ONLY),
        ({"q": kept}, says.KEYS_ONLY),
        ({"q": no_minus, "k": no_minus}, says.LENGTHS),
        ({"q": two_angles, "k": two_angles}, says.LENGTHS),
        ({"k": the_other_way}, says.ANGLES),
        ({"v": turned}, says.VALUES),
    ],
)
def test_a_wrong_rotation_inside_is_named(make, options, told, fused):
    component = "language_model" if make is Decoder else "causal_attention"
    module = built(partial(make, **options, fused=fused)).eval()
    report = check(component, module)
    assert told in {failure.message for failure in report.failures}
    assert DISTANCE in failed(report)


class OnceMore(Decoder):
    """Learned positions too, which alone make vectors unlike."""

    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(16, 12)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class LargestSubtracted(Attention):
    """A row of scores is shifted, which no softmax sees."""

    def forward(self, x):
        split = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        q, k, v = self.q(split[0]), self.k(split[1]), split[2]
        scores = torch.einsum("bhid,bhjd->bhij", q, k) / 2
        hidden = torch.ones_like(scores).triu(1).bool()
        scores = scores.masked_fill(hidden, -torch.inf)
        scores = scores - scores.amax(-1, keepdim=True)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    ("component", "make"),
    [
        ("causal_attention", Attention),
        ("causal_attention", partial(Attention, kept, kept)),
        ("language_model", Decoder),
        ("language_model", partial(Decoder, num_layers=4)),
    ],
)
def test_a_right_rotation_inside_is_right(component, make, fused):
    for seed in range(3):
        module = built(partial(make, fused=fused), seed).eval()
        report = check(component, module)
        assert report.passed, str(report)


@pytest.mark.parametrize(
    ("component", "make"),
    [("causal_attention", LargestSubtracted), ("language_model", OnceMore)],
)
def test_a_rotation_is_right_beside_what_else_there_is(component, make):
    report = check(component, built(make).eval())
    assert report.passed, str(report)


class Hiding(Attention):
    """Hides what a mask says, with -∞."""

    def __init__(self, keeps=torch.triu, diagonal=0):
        super().__init__()
        self.keeps, self.diagonal = keeps, diagonal
        self.register_buffer("past", torch.ones(16, 16).tril())

    def forward(self, x):
        split = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        q, k, v = split
        scores = q @ k.mT / 2
        hidden = self.keeps(torch.ones_like(scores), self.diagonal).bool()
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class HidesItself(Layer):
    """`triu(0)` hides the diagonal too, so that row 0 sees nothing."""

    def __init__(self):
        super().__init__()
        self.attend = Hiding()


def test_logits_that_are_nan_for_any_ids_are_a_fault():
    report = check_model(built(partial(Decoder, HidesItself)).eval())
    assert report.kind == "language_model"
    (failure,) = report.parts[0].judged.report.faults
    assert "logit 0 is NaN" in failure.message
    assert "`triu(1)` what to hide" in failure.message


def test_nan_that_undrawn_weights_make_is_no_fault_of_the_code():
    model = built(Decoder).eval()
    model.head.weight.data.fill_(torch.nan)
    assert check_model(model).kind == ""


@pytest.mark.parametrize(
    ("options", "told"),
    [((torch.triu, 0), "`tril(-1)` hides it"), ((torch.tril, 0), "mask == 0")],
)
def test_a_row_that_sees_nothing_is_told_why(options, told):
    (part,) = check_model(built(partial(Hiding, *options)).eval()).parts
    assert part.judged.component == "causal_attention"
    assert told in part.judged.report.faults[0].message


class GatedMLP(nn.Sequential):
    """Two matrices, and what stood between them is gone."""

    def __init__(self):
        super().__init__(nn.Linear(12, 31), nn.Linear(31, 12))


class CausalSelfAttention(Attention):
    """Cut into heads by one `view`, so that a few rows see their future."""

    def forward(self, x):
        split = (y.reshape(len(x), 3, -1, 4) for y in self.qkv(x).chunk(3, -1))
        got = F.scaled_dot_product_attention(*split, is_causal=True)
        return self.out(got.transpose(1, 2).flatten(2))


class TurnsAllAttention(Attention):
    """Values are turned too, and so equal vectors make unequal rows."""

    def __init__(self):
        super().__init__(v=turned)


class AheadAttention(Attention):
    """`triu(2)` hides one position too few."""

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(2).bool()
        scores = (q @ k.mT / 12**0.5).masked_fill(hidden, -torch.inf)
        return self.out(scores.softmax(-1) @ v)


@pytest.mark.parametrize(
    ("make", "component", "told"),
    [
        (GatedMLP, "feed_forward", "two matrices do here what one could"),
        (CausalSelfAttention, "causal_attention", "mix positions and heads"),
        (TurnsAllAttention, "causal_attention", says.VALUES),
        (AheadAttention, "causal_attention", "The mask is off by one"),
    ],
)
def test_what_is_not_known_by_what_it_does_is_known_by_its_name(
    make, component, told
):
    (part,) = check_model(built(make).eval()).parts
    assert part.judged.component == component
    assert told in " ".join(f.message for f in part.judged.report.faults)


class AttentionOfNormedKeys(Attention):
    """What keys and values are made of is normed, as in latent attention."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)

    def forward(self, x):
        return super().forward(self.norm(x))


class AttentionAndItsInput(Attention):
    """Adds its input, and norms the sum."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(12), nn.LayerNorm(12)])

    def forward(self, x):
        return self.norms[1](x + super().forward(self.norms[0](x)))


class ShiftedAttention(Attention):
    """Looks at its neighbour through a convolution first."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(12, 12, 3)

    def forward(self, x):
        near = self.conv(F.pad(x.mT, (2, 0))).mT
        return super().forward(near.tanh())


class PlacedAttention(Attention):
    """Adds a learned vector for each position, inside."""

    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(16, 12)

    def forward(self, x):
        return super().forward((x + self.places.weight[: x.shape[1]]).tanh())


@pytest.mark.parametrize(
    "make",
    [
        AttentionOfNormedKeys,
        AttentionAndItsInput,
        ShiftedAttention,
        PlacedAttention,
        nn.Linear,
    ],
)
def test_no_name_makes_a_fault_of_what_is_right(make):
    module = make(12, 12) if make is nn.Linear else built(make)
    for part in check_model(module.eval()).parts:
        assert part.judged.report.passed, str(part.judged.report)


class WithACache(Attention):
    """Takes a cache beside its vectors, which is no mask."""

    def __init__(self, axis):
        super().__init__()
        self.axis = axis

    def forward(self, x, cache=None, layer_idx=None):
        assert cache is None or layer_idx is not None
        split = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        q, k, v = split
        scores = q @ k.mT / 2
        hidden = torch.ones_like(scores).triu(1).bool()
        weights = scores.masked_fill(hidden, -torch.inf).softmax(self.axis)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class CausalAttention(WithACache):
    """Its name says that it hides the future."""


class OverAnother(Layer):
    """A layer whose softmax runs over another axis."""

    def __init__(self, axis):
        super().__init__()
        self.attend = WithACache(axis)


@pytest.mark.parametrize(
    ("axis", "told"),
    [
        (-2, "The softmax runs over the queries"),
        (1, "that of the heads: it belongs over the keys"),
    ],
)
def test_a_softmax_over_another_axis_is_named(axis, told):
    (part,) = check_model(built(partial(CausalAttention, axis)).eval()).parts
    assert part.judged.component == "causal_attention"
    model = built(partial(Decoder, partial(OverAnother, axis))).eval()
    (whole, *_) = check_model(model).parts
    for report in (part.judged.report, whole.judged.report):
        said = " ".join(failure.message for failure in report.faults)
        assert told in said
        assert "in order" not in said


class BatchAsPositions(Attention):
    """Cuts into heads as if the sentences were the positions."""

    def forward(self, x):
        batch, seq, _ = x.shape
        split = self.qkv(x).view(seq, batch, 3, 3, 4).transpose(0, 1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(got.transpose(1, 2).flatten(2))


class Swapped(Layer):
    """Its attention reads other sentences."""

    def __init__(self):
        super().__init__()
        self.attend = BatchAsPositions()


def test_where_sentences_see_each_other_no_mask_is_said_to_be_in_order():
    report = check("language_model", built(partial(Decoder, Swapped)).eval())
    said = " ".join(failure.message for failure in report.faults)
    assert "do sentences see each other" in said
    assert "in order" not in said


class RMSNorm(nn.Module):
    """Gemma's gain begins at 0, and the 1 that is added to it is lost."""

    def __init__(self, plus=0.0):
        super().__init__()
        self.scale, self.plus = nn.Parameter(torch.zeros(12)), plus

    def forward(self, x):
        y = x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return y * (self.plus + self.scale)


def test_a_norm_whose_gain_is_0_lets_nothing_through():
    (part,) = check_model(RMSNorm()).parts
    assert part.judged.component == "rms_norm"
    *_, failure = part.judged.report.failures
    assert "or is `1 +` missing" in failure.message
    assert failure.level == "risk"
    (part,) = check_model(RMSNorm(plus=1.0)).parts
    assert part.judged.report.passed


class ByAMask(Layer):
    """Its mask multiplies, and nothing turns; positions are added below."""

    def __init__(self):
        super().__init__(q=kept, k=kept, fused=False)
        self.attend = Multiplied()


class Multiplied(nn.Module):
    """The scores are times 1 or 0, and what is hidden is made small then."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(12, 36) / 12**0.5)
        self.b, self.out = nn.Parameter(torch.zeros(36)), nn.Linear(12, 12)

    def forward(self, x):
        batch, seq, _ = x.shape
        made = torch.addmm(self.b, x.reshape(-1, 12), self.w)
        q, k, v = made.view(batch, seq, 3, 3, 4).permute(2, 0, 3, 1, 4)
        may = torch.ones(seq, seq).tril()
        scores = q @ k.mT / 2 * may - 1e10 * (1 - may)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class WithPlaces(Decoder):
    def __init__(self):
        super().__init__(ByAMask)
        self.places = nn.Embedding(64, 12)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class Smeared(Attention):
    """Each value has a share of the one before, and keys turn rightly."""

    def __init__(self):
        def smear(v):
            return v + 0.5 * F.pad(v, (0, 0, 1, -1))

        super().__init__(v=smear)


class Sharpened(Attention):
    """Queries grow with the logarithm of how many keys they see."""

    def __init__(self):
        def grow(q):
            seen = torch.arange(2.0, 2 + q.shape[-2])
            return turned(q) * seen.log()[:, None]

        super().__init__(q=grow)


class SmearedLayer(Layer):
    def __init__(self):
        super().__init__()
        self.attend = Smeared()


class SharpenedLayer(Layer):
    def __init__(self):
        super().__init__()
        self.attend = Sharpened()


class LedIn(Layer):
    """A matrix leads into it, and then all is as usual."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(12, 12)

    def forward(self, x):
        return super().forward(self.inner(x))


class Shortcut(Layer):
    """What leads past its network is a matrix."""

    def __init__(self):
        super().__init__()
        self.past = nn.Linear(12, 12)

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return self.past(x) + self.network(self.norm2(x))


@pytest.mark.parametrize(
    "make",
    [
        WithPlaces,
        partial(Decoder, SmearedLayer),
        partial(Decoder, SharpenedLayer),
        partial(Decoder, LedIn),
        partial(Decoder, Shortcut),
    ],
)
def test_other_ways_to_know_places_or_to_lead_past_are_right(make):
    report = check("language_model", built(make).eval())
    assert report.passed, str(report)


class WithASink(Attention):
    """A share of each row goes to nothing."""

    def forward(self, x):
        split = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        q, k, v = self.q(split[0]), self.k(split[1]), split[2]
        scores = q @ k.mT / 2
        hidden = torch.ones_like(scores).triu(1).bool()
        scores = F.pad(scores.masked_fill(hidden, -torch.inf), (0, 1))
        weights = scores.softmax(-1)[..., :-1]
        return self.out((weights @ v).transpose(1, 2).flatten(2))


def test_a_sink_that_takes_a_share_is_a_risk():
    kind = type("CausalSelfAttention", (WithASink,), {})
    (part,) = check_model(built(kind).eval()).parts
    report = part.judged.report
    assert part.judged.component == "causal_attention"
    assert report.passed
    (risk,) = report.risks
    assert "with a sink" in risk.why
