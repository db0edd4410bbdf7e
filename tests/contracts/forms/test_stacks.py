"""What an encoder's message blames: the mask, the attention, or the layers."""

from functools import partial

import pytest
import torch
from contracts.right import built
from torch import nn

from companion.contracts import check, check_model
from companion.contracts.engine.masking import causal
from companion.contracts.multihead.multihead import Heads
from companion.contracts.transformer.encoder import NORMED_STREAM
from companion.multihead import split_heads

pytestmark = pytest.mark.once

LAYERS = "does every layer get it"
VIEW = "does a `view` mix positions and heads for want of a transpose?"


class Layer(nn.Module):
    """Attention and a network, with a norm behind each sum."""

    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)
        self.net = nn.Sequential(
            nn.Linear(12, 29), nn.ReLU(), nn.Linear(29, 12)
        )

    def forward(self, x, mask=None):
        x = self.one(x + self.attend(x, mask))
        return self.two(x + self.net(x))


class Layered(nn.Module):
    """Layers around whatever attends in them."""

    def __init__(self, attend, count=2, layer=Layer):
        super().__init__()
        self.layers = nn.ModuleList(layer(attend()) for _ in range(count))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class FromWhatAttentionSaid(Layer):
    """The second sum starts from what attention said alone."""

    def forward(self, x, mask=None):
        said = self.attend(self.one(x), mask)
        return said + self.net(self.two(x + said))


class BothAtOnce(Layer):
    """Attention and network read the same vectors, as in PaLM."""

    def forward(self, x, mask=None):
        return x + self.attend(self.one(x), mask) + self.net(self.two(x))


class FromWhatCameIn(Layer):
    """The second sum starts from what came into the layer."""

    def forward(self, x, mask=None):
        said = self.attend(self.one(x), mask)
        return x + self.net(self.two(x + said))


PATH = "A path leads past every sub-layer"


@pytest.mark.parametrize("count", [1, 2])
def test_a_sum_that_leaves_behind_what_attention_said_is_a_fault(count):
    make = partial(Layered, Heads, count, FromWhatCameIn)
    report = check("encoder", built(make))
    (fault,) = [f for f in report.faults if f.contract == PATH]
    assert "not from what attention left" in fault.message


def test_a_sum_that_starts_from_what_attention_said_is_a_fault():
    report = check("encoder", built(lambda: FromWhatAttentionSaid(Heads())))
    (fault,) = [f for f in report.faults if f.contract == PATH]
    assert "with any of them alone something does" in fault.message
    report = check("encoder", built(lambda: BothAtOnce(Heads())))
    assert PATH in report.held, str(report)


class HidesTrue(Heads):
    """With -∞, so that a row which may see nobody is NaN."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        return scores.softmax(-1)


class Afterwards(Heads):
    """The mask multiplies the weights."""

    def weigh(self, scores, mask):
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask


class NearlyZero(Heads):
    """1e-9 instead of -1e9."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, 1e-9)
        return scores.softmax(-1)


class ByView(Heads):
    """Heads are split and joined without a transpose."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


class SplitByView(Heads):
    """Only the split lacks its transpose."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)


class JoinedByView(Heads):
    """Only the join lacks its transpose."""

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


class EachOthers(Heads):
    """Batch and heads are one axis, and the masks come in another order."""

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-1)
        batch, heads, seq, _ = scores.shape
        shown = mask.expand(batch, 1, seq, seq)[:, 0].repeat(heads, 1, 1)
        scores = scores.flatten(0, 1).masked_fill(~shown, -1e9)
        return scores.softmax(-1).unflatten(0, (batch, heads))


def told(attend, count):
    """What is told of a mask that hides less than it should."""
    report = check("encoder", built(lambda: Layered(attend, count)))
    (first, *_) = [f for f in report.faults if "padding" in f.contract]
    return first.message


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("attend", "words"),
    [
        (HidesTrue, "The mask is upside down: True means may attend"),
        (Afterwards, "reaches no scores before a softmax"),
        (NearlyZero, "Hidden scores become 1e-09 before the softmax"),
        (ByView, "Without a mask, too, not every row sees every position"),
        (SplitByView, VIEW),
        (JoinedByView, VIEW),
        (EachOthers, "Sentences get each other's mask"),
    ],
)
def test_what_is_wrong_inside_attention_is_not_put_down_to_the_layers(
    attend, words, count
):
    message = told(attend, count)
    assert words in message
    assert LAYERS not in message


class FirstOnly(Layered):
    """Only the first layer gets the mask."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
            mask = None
        return x


class Placed(FirstOnly):
    """It also adds positions, so that another order makes other rows."""

    def forward(self, x, mask=None):
        places = torch.arange(x.shape[1])[:, None].sin()
        return super().forward(x + places, mask)


@pytest.mark.parametrize("kind", [FirstOnly, Placed])
def test_a_mask_that_only_the_first_layer_gets_is_still_put_down_to_layers(
    kind,
):
    report = check("encoder", built(lambda: kind(Heads)))
    assert LAYERS in report.faults[0].message


class Model(nn.Module):
    """Layers over tokens with their places, under a causal mask."""

    def __init__(self, attend):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 12), nn.Embedding(16, 12)
        self.layers = Layered(attend)
        self.head = nn.Linear(12, 11)

    def placed(self, ids):
        return self.tokens(ids) + self.places.weight[: ids.shape[1]]

    def forward(self, tokens):
        return self.head(
            self.layers(self.placed(tokens), causal(tokens.shape[1]))
        )


class Translating(Model):
    """Its source's layers, and a target that adds the mean of their words."""

    def forward(self, src, tgt):
        real = (src != 0)[:, None, None]
        memory = self.layers(self.placed(src), real)
        scores = self.placed(tgt) @ memory.mT / 12**0.5
        weights = scores.masked_fill(~real[:, 0], -1e9).softmax(-1)
        return self.head(self.placed(tgt) + weights @ memory)


@pytest.mark.parametrize("attend", [SplitByView, JoinedByView])
def test_mixed_positions_of_a_language_model_are_not_put_down_to_its_mask(
    attend,
):
    report = check("language_model", built(lambda: Model(attend)))
    (first, *_) = [f for f in report.faults if "future" in f.contract]
    assert VIEW in first.message
    assert "the mask is in order" in first.message


class BothByView(SplitByView, JoinedByView):
    """Each head has some of the positions, and its rows go back to them."""


class WithoutTheFirst(Heads):
    """Its rows see no first position but their own, by its own mask."""

    def weigh(self, scores, mask):
        seq = scores.shape[-1]
        others = (torch.arange(seq) > 0) | torch.eye(seq, dtype=torch.bool)
        return super().weigh(scores, mask & others)


def test_a_past_that_is_lost_is_put_down_to_a_view_only_under_a_right_mask():
    report = check("language_model", built(lambda: Model(BothByView)))
    (past, *_) = report.faults
    assert VIEW in past.message
    assert "the mask is in order" in past.message
    report = check("language_model", built(lambda: Model(WithoutTheFirst)))
    (past, *_) = report.faults
    assert "do not move with token" in past.message
    assert VIEW not in past.message


@pytest.mark.parametrize(
    ("attend", "words"),
    [(JoinedByView, VIEW), (EachOthers, "Sentences get each other's mask")],
)
def test_padding_that_a_source_reads_has_its_own_cause(attend, words):
    report = check("translation_model", built(lambda: Translating(attend)))
    (first, *_) = [f for f in report.faults if "source" in f.contract]
    assert words in first.message


class OverThePositions(Layer):
    def forward(self, x, mask=None):
        x = x + self.attend(x, mask)
        x = (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True)
        return self.two(x + self.net(self.one(x)))


def test_of_one_layer_nobody_is_asked_whether_every_layer_gets_the_mask():
    report = check("encoder", built(lambda: OverThePositions(Heads())))
    (first, *_) = [f for f in report.faults if "padding" in f.contract]
    assert LAYERS not in first.message
    assert "Does a norm run over the positions?" in first.message


class FromTheNorms(Layer):
    """Both sums start from what a norm has returned."""

    def forward(self, x, mask=None):
        x = self.one(x)
        x = self.two(x + self.attend(x, mask))
        return x + self.net(x)


def test_a_single_layer_whose_residual_starts_from_a_norm_is_found_in_a_model():
    """Only the norm behind the last layer is not asked of a single one."""
    report = check_model(built(lambda: FromTheNorms(Heads())))
    (fault,) = report.parts[0].judged.report.faults
    assert fault.message == NORMED_STREAM


class AttentionFromTheNorm(Layer):
    """Only the sum of the attention starts from what a norm has returned."""

    def forward(self, x, mask=None):
        x = self.one(x)
        x = x + self.attend(x, mask)
        return x + self.net(self.two(x))


class NormedBefore(Layer):
    """Norms come first, as they should, and vectors enter through one more."""

    def __init__(self, attend):
        super().__init__(attend)
        self.enter = nn.LayerNorm(12)

    def forward(self, x, mask=None):
        x = self.enter(x)
        x = x + self.attend(self.one(x), mask)
        return x + self.net(self.two(x))


class SideBySide(NormedBefore):
    """Attention and network share one norm."""

    def forward(self, x, mask=None):
        x = self.enter(x)
        y = self.one(x)
        return x + self.attend(y, mask) + self.net(y)


def test_attention_whose_residual_starts_from_a_norm_is_found():
    made = built(lambda: AttentionFromTheNorm(Heads()))
    (fault,) = check("encoder", made).faults
    assert fault.message == NORMED_STREAM


@pytest.mark.parametrize("layer", [NormedBefore, SideBySide])
def test_a_norm_through_which_vectors_enter_is_no_normed_residual(layer):
    report = check("encoder", built(lambda: layer(Heads())))
    assert NORMED_STREAM not in [f.message for f in report.failures]


class WideAttention(nn.Module):
    """Four heads, 24 wide."""

    def __init__(self, width=24):
        super().__init__()
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(24, width)

    def forward(self, x, mask=None):
        q, k, v = split_heads(self.into(x), 12).chunk(3, 1)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Pointwise(nn.Module):
    """A network of convolutions that see one place."""

    def __init__(self, width):
        super().__init__()
        self.up = nn.Conv1d(width, 50, 1)
        self.down = nn.Conv1d(50, width, 1)

    def forward(self, x):
        return self.down(self.up(x.mT).relu()).mT


class Wide(nn.Module):
    """A layer of its own width, with a norm behind each sum."""

    def __init__(self, net=Pointwise):
        super().__init__()
        self.attend, self.net = WideAttention(), net(24)
        self.one, self.two = nn.LayerNorm(24), nn.LayerNorm(24)

    def forward(self, x, mask=None):
        x = self.one(x + self.attend(x, mask))
        return self.two(x + self.net(x))


class QuietNetwork(Wide):
    """Its network says little at first, and its attention more."""

    def __init__(self):
        super().__init__()
        said_little(self.net)


class QuietAttention(Wide):
    """Its attention says little at first, and its network more."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(24, 50), nn.ReLU(), nn.Linear(50, 24)
        )
        said_little(self.attend)


class Neighbours(QuietNetwork):
    """Its quiet convolutions see more than one place."""

    def __init__(self):
        super().__init__()
        self.net.up = nn.Conv1d(24, 50, 3, padding=1)
        self.net.down = nn.Conv1d(50, 24, 3, padding=1)
        said_little(self.net)


def said_little(part):
    """Draw small matrices, as BERT does."""
    for weight in part.parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=0.02)


class WideFromTheNorm(Wide):
    """The sum of the attention starts from what a norm has returned."""

    def forward(self, x, mask=None):
        x = self.one(x)
        x = x + self.attend(x, mask)
        return x + self.net(self.two(x))


def told_of_wide(layer, seed):
    torch.manual_seed(seed)
    (part,) = check_model(layer().eval()).parts[:1]
    assert part.judged.component == "encoder"
    return [f.message for f in part.judged.report.failures]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "layer", [Wide, QuietNetwork, QuietAttention, Neighbours]
)
def test_a_norm_behind_the_last_sum_is_seen_at_any_width(layer, seed):
    """Of wider vectors a part is read, which lies on no ellipsoid."""
    assert NORMED_STREAM not in told_of_wide(layer, seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_residual_that_starts_from_a_norm_is_found_at_any_width(seed):
    assert NORMED_STREAM in told_of_wide(WideFromTheNorm, seed)


class ConvolvedFromTheNorms(Layer):
    """Both sums start from a norm's vectors, and the network convolves."""

    def __init__(self, attend):
        super().__init__(attend)
        self.net = Pointwise(12)

    def forward(self, x, mask=None):
        x = self.one(x)
        x = self.two(x + self.attend(x, mask))
        return x + self.net(x)


def test_a_network_of_convolutions_hides_no_normed_residual():
    """A kernel that sees one place is the last matrix."""
    report = check("encoder", built(lambda: ConvolvedFromTheNorms(Heads())))
    assert NORMED_STREAM in [f.message for f in report.faults]


class AllOutputs(Layered):
    """Returns what each layer returned."""

    def forward(self, x, mask=None):
        found = []
        for layer in self.layers:
            x = layer(x, mask)
            found.append(x)
        return found


class OfKeys(Heads):
    """Takes a mask (batch, key) only."""

    def weigh(self, scores, mask):
        if mask is not None:
            batch, keys = mask.shape
            mask = mask.view(batch, 1, 1, keys)
        return super().weigh(scores, mask)


class Beside(Layered):
    """Returns something else beside its result, of the same shape."""

    def __init__(self, attend, *, state):
        super().__init__(attend)
        self.project, self.state = nn.Linear(12, 12), state

    def forward(self, x, mask=None):
        state = self.layers[0](x, mask)
        x = self.layers[1](state, mask)
        return (x, state) if self.state else (x, self.project(x.detach()))


@pytest.mark.parametrize("attend", [Heads, OfKeys])
def test_of_the_outputs_of_all_layers_the_last_is_the_result(attend):
    report = check("encoder", built(lambda: AllOutputs(attend)))
    assert report.passed, str(report)
    assert "the last of what it returned was taken" in " ".join(report.assumed)


@pytest.mark.parametrize("state", [True, False])
def test_the_first_is_the_result_beside_a_state_or_a_projection(state):
    report = check("encoder", built(lambda: Beside(Heads, state=state)))
    assert "the first of what it returned was taken" in " ".join(report.assumed)
