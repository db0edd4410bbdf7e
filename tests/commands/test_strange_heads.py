"""``check`` on attention that takes its heads as an axis, and on odd weights.

The code is written anew, in the style of what was found in repositories.
"""

from pathlib import Path

import pytest
import torch
from torch import nn

from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target
from companion.contracts import check
from companion.contracts.discovery.heads import BEHIND

pytestmark = pytest.mark.once

BEGIN = """
import torch
import torch.nn.functional as F
from torch import nn
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A name is not folded then.

    def judge(text):
        path = Path("mine.py")
        path.write_text(BEGIN + text, encoding="utf-8")
        section = judged(Target(path), Asked())
        assert not section.error
        parts = {p["name"]: p for p in section.parts}
        left = {one["name"]: one["reason"] for one in section.unjudged}
        return parts, left

    return judge


def faults(part):
    groups = part["found"]["failed"]
    return [g["message"] for g in groups if g["level"] == "fault"]


def said(part):
    return " ".join(part["found"]["assumed"])


ON_HEADS = """
class Gathers(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, q, k, v):
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        return torch.einsum("bhqk,bkhd->bqhd", self.drop(scores.softmax(-1)), v)
"""


def test_attention_on_heads_that_takes_no_mask_is_judged_within_heads(told):
    parts, left = told(ON_HEADS)
    assert left == {}
    assert parts["Gathers"]["component"] == "multihead"
    assert not faults(parts["Gathers"])
    assert BEHIND in said(parts["Gathers"])
    for right, wrong, message in (
        (" / q.shape[-1] ** 0.5", "", "The scores are not divided by"),
        ("softmax(-1)", "softmax(-2)", "runs over the queries"),
    ):
        parts, _ = told(ON_HEADS.replace(right, wrong))
        assert message in " ".join(faults(parts["Gathers"]))


WRITTEN = """
class Gathers(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            batch, heads, rows, keys = mask.shape
            assert (batch, heads) == scores.shape[:2]
            scores = scores.masked_fill(~mask, -1e9)
        return (self.drop(scores.softmax(-1)) @ v).transpose(1, 2)
"""


def test_masks_are_written_out_for_what_wants_all_four_axes(told):
    parts, left = told(WRITTEN)
    assert left == {}
    assert not faults(parts["Gathers"])
    assert "its masks are (batch, 1, seq, seq)" in said(parts["Gathers"])
    parts, left = told(WRITTEN.replace("-1e9", "-1e-9"))
    assert "it takes three vectors" in left["Gathers"]
    assert parts == {}


AS_WIDE = """
class Gathers(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None, causal=False):
        sizes = q.shape
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if mask is not None:
            batch, heads, rows, keys = mask.shape
            assert batch == len(q)
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return y.transpose(1, 2).reshape(sizes)
"""


def test_values_may_have_to_be_as_wide_as_keys(told):
    parts, left = told(AS_WIDE)
    assert left == {}
    assert parts["Gathers"]["component"] == "multihead"
    assert not faults(parts["Gathers"])
    assert BEHIND in said(parts["Gathers"])
    wrong = AS_WIDE.replace("(q, k, v, mask,", "(q, k, v, None,")
    parts, left = told(wrong)
    assert parts == {}
    assert "it takes three vectors" in left["Gathers"]


TWO_MASKS = """
class Matches(nn.Module):
    def forward(self, queries, keys, values, q_mask=None, kv_mask=None):
        scores = torch.einsum("nlhd,nshd->nlsh", queries, keys)
        if kv_mask is not None and q_mask is not None:
            seen = q_mask[:, :, None, None] & kv_mask[:, None, :, None]
            scores = scores.masked_fill(~seen, -torch.inf)
        weights = (scores / queries.size(3) ** 0.5).softmax(2)
        return torch.einsum("nlsh,nshd->nlhd", weights, values)
"""


def test_attention_on_heads_with_several_masks_is_judged_without(told):
    parts, left = told(TWO_MASKS)
    assert left == {}
    assert not faults(parts["Matches"])
    assert "it takes several masks, kv_mask, q_mask" in said(parts["Matches"])
    assert "it takes no mask" not in said(parts["Matches"])
    parts, _ = told(TWO_MASKS.replace(" / queries.size(3) ** 0.5", ""))
    assert faults(parts["Matches"])


OF_THREE_AXES = """
def attn(q, k, v, mask=None):
    scores = torch.einsum("bid,bjd->bij", q, k)SCALED
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.finfo(scores.dtype).max)
    return torch.einsum("bij,bjd->bid", scores.softmax(-1), v)


class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4).flatten(1, 2)
        y = attn(QUERIES, k, v)
        return self.o(y.unflatten(0, (len(x), -1)).transpose(1, 2).flatten(2))
"""
HALF = " / q.shape[-1] ** 0.5"


def test_sums_over_three_axes_get_three_axes(told):
    text = OF_THREE_AXES.replace("SCALED", HALF).replace("QUERIES", "q")
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["attn"]) + faults(parts["Heads"])
    parts, _ = told(text.replace("softmax(-1)", "softmax(1)"))
    assert faults(parts["attn"])


def test_queries_may_be_scaled_before_a_function_is_called(told):
    text = OF_THREE_AXES.replace("SCALED", "")
    parts, _ = told(text.replace("QUERIES", "q * self.scale"))
    assert not faults(parts["attn"]) + faults(parts["Heads"])
    risk = parts["attn"]["found"]["failed"][0]
    assert "The scores are not scaled" in risk["message"]
    assert "scaled before, as they may be in line 22" in risk["excuse"]
    parts, _ = told(text.replace("QUERIES", "q"))
    assert "The scores are not scaled" in faults(parts["attn"])[0]
    assert "not divided by anything" in faults(parts["Heads"])[0]


MADE_FOR_HEADS = """
class Attend(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * self.scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)


class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.attend = heads, Attend((dim // heads) ** -0.5)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        y = self.attend(*parts.permute(2, 0, 3, 1, 4), mask)
        return self.o(y.transpose(1, 2).flatten(2))
"""


def test_a_scale_that_is_made_for_one_width_of_the_heads_is_a_risk(told):
    parts, _ = told(MADE_FOR_HEADS)
    assert not faults(parts["Attend"]) + faults(parts["Heads"])
    excuses = [g["excuse"] for g in parts["Attend"]["found"]["failed"]]
    assert "its heads have 4 numbers: for these `scale` is made" in excuses[0]
    for right, wrong in (
        ("-1e9", "-1e-9"),
        (", k) * self.scale", ", k)"),  # It has one, and does not use it.
    ):
        parts, _ = told(MADE_FOR_HEADS.replace(right, wrong))
        assert faults(parts["Attend"])
    parts, _ = told(MADE_FOR_HEADS.replace("(dim // heads)", "dim"))
    assert "a head compares vectors of 4 numbers" in faults(parts["Heads"])[0]


ASKED_IF_TRUE = """
class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.memory = nn.Parameter(torch.empty(0, dim))
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in (self.q(query), self.k(key), self.v(value))
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if MASK:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_a_mask_that_is_asked_whether_it_is_true_is_told_so(told):
    parts, _ = told(ASKED_IF_TRUE.replace("MASK", "mask is not None"))
    assert not faults(parts["Heads"])  # Nor of a memory without a number.
    Path("mine.py").write_text(BEGIN + ASKED_IF_TRUE.replace("MASK", "mask"))
    [one] = judged(Target(Path("mine.py")), Asked()).unjudged
    assert one["level"] == "risk"
    assert "`if mask:`: Boolean value of Tensor" in one["reason"]
    assert "write `if mask is not None`" in one["reason"]


class RefusesMasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x, mask=None):
        assert mask is None
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 4)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2))


def test_what_refuses_masks_computes_nothing_wrong_with_them():
    report = check("multihead", RefusesMasks())
    assert report.passed, str(report)
    assert "It refuses this mask by itself" in report.risks[0].why


def test_a_mask_that_is_not_written_yet_is_none_that_is_refused():
    def my_causal_mask(length):
        raise NotImplementedError

    assert check("causal_mask", my_causal_mask).faults

    def causal_mask(length):
        assert length > 3
        return torch.ones(length, length).tril() > 0

    assert check("causal_mask", causal_mask).faults


def test_what_finds_no_memory_is_a_risk():
    def softmax(scores, dim):
        if scores.ndim > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return torch.softmax(scores, dim)

    report = check("softmax", softmax)
    assert report.risks
    assert not report.faults, str(report)
    assert "needs more memory than it may take" in report.risks[0].why


GATED = """
class Attends(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class RMS(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        mean = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(mean + self.eps) * self.weight


class Feeds(nn.Sequential):
    def __init__(self, dim):
        super().__init__(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        )


class Gate(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.inner, self.norm = inner, RMS(dim)
        self.gru = nn.GRUCell(dim, dim)

    def forward(self, x):
        y = self.inner(self.norm(x))
        return self.gru(y.flatten(0, 1), x.flatten(0, 1)).view(x.shape)


class Plain(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attend, self.feed = Attends(dim, heads), Feeds(dim)
        self.n1, self.n2 = RMS(dim), RMS(dim)

    def forward(self, x):
        x = x + self.attend(self.n1(x))
        return x + self.feed(self.n2(x))


class Model(nn.Module):
    def __init__(self, vocab_size, dim, depth, heads, max_len):
        super().__init__()
        self.ids = nn.Embedding(vocab_size, dim)
        self.places = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(
            LAYERS for _ in range(depth)
        )
        self.norm, self.out = RMS(dim), nn.Linear(dim, vocab_size)

    def forward(self, ids):
        x = self.ids(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))
"""


def test_behind_a_recurrent_gate_no_sum_is_missed(told):
    layers = "nn.Sequential(Gate(dim, Attends(dim, heads)), "
    layers += "Gate(dim, Feeds(dim)))"
    parts, _ = told(GATED.replace("LAYERS", layers))
    assert not faults(parts["Model"])


def test_a_norm_that_is_called_rms_is_judged_and_seen_before_a_sum(told):
    text = GATED.replace("LAYERS", "Plain(dim, heads)")
    parts, _ = told(text)
    assert not faults(parts["Model"]) + faults(parts["RMS"])
    parts, _ = told(
        text.replace(
            "return x + self.feed(self.n2(x))",
            "x = self.n2(x)\n        return x + self.feed(x)",
        )
    )
    [fault] = faults(parts["Model"])
    assert "a sum starts from what `layers.0.n2` returned" in fault
    parts, _ = told(text.replace("x.pow(2).mean(", "x.pow(2).sum("))
    assert "It divides by the length of the vector" in faults(parts["RMS"])[0]


WITHOUT_A_GAIN = """
class QueryNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x):
        return F.rms_norm(x, (self.dim,), None, self.eps)


class PlainLayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        less = x - x.mean(-1, keepdim=True)
        mean = less.pow(2).mean(-1, keepdim=True)
        return less / (mean + self.eps).sqrt()
"""


def test_a_norm_without_a_gain_gets_the_contracts_own_behind_it(told):
    parts, _ = told(WITHOUT_A_GAIN)
    kinds = {name: part["component"] for name, part in parts.items()}
    assert kinds == {"QueryNorm": "rms_norm", "PlainLayerNorm": "layer_norm"}
    for part in parts.values():
        assert not faults(part)
        assert "a module without a gain" in said(part)


class LessThanTheMean(nn.Module):
    def forward(self, x):
        less = x - 0.9 * x.mean(-1, keepdim=True)
        return less / (less.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


class GainsAreNoParameter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.ones(12)

    def forward(self, x):
        return nn.functional.rms_norm(x, (12,), None, 1e-5) * self.gain


def test_a_gain_that_is_a_plain_tensor_is_not_taken_for_none():
    assert check("rms_norm", GainsAreNoParameter()).faults


def test_what_is_wrong_with_a_norm_without_a_gain_is_found():
    report = check("layer_norm", LessThanTheMean())
    assert "a module without a gain" in report.assumed[0]
    assert report.faults


INDEXED = """
class Indexed(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.index = nn.Linear(dim, 7)

    def forward(self, x, return_aux=False):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.o(y.transpose(1, 2).flatten(2))
        return (y, {"scores": self.index(x)}) if return_aux else y
"""


def test_weights_behind_a_switch_of_forward_are_a_risk(told):
    parts, _ = told(INDEXED)
    assert not faults(parts["Indexed"])
    [risk] = parts["Indexed"]["found"]["failed"]
    assert risk["level"] == "risk"
    assert "`index.weight` takes no part" in risk["message"]
    assert "With `return_aux=True`" in risk["excuse"]
    parts, _ = told(INDEXED.replace("self.index(x)}", "self.index.bias}"))
    assert "`index.weight` takes no part" in faults(parts["Indexed"])[0]


ASKS_FOR_MORE = """
class Dummy(type):
    def __getattr__(cls, key):
        raise ImportError(f"{cls.__name__} wants another package")


class Pipeline(metaclass=Dummy):
    def __init__(self, *args):
        raise ImportError("another package")


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


Mask = causal_mask


class Feeds(nn.Sequential):
    def __init__(self, dim):
        super().__init__(
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        )


FeedForward = Feeds
"""


def test_what_raises_whatever_it_is_asked_hinders_nothing(told):
    parts, _ = told(ASKS_FOR_MORE)
    assert not faults(parts["causal_mask"])


def test_another_name_for_a_class_is_judged_once(told):
    parts, _ = told(ASKS_FOR_MORE)
    assert {*parts} == {"causal_mask", "Feeds"}


ANOTHER = """
class Asks(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, context):
        split = LENGTH, self.heads, x.shape[-1] // self.heads
        q = self.q(x).unflatten(-1, split[1:]).transpose(1, 2)
        k, v = (
            y.reshape(len(x), *split).transpose(1, 2)
            for y in (self.k(context), self.v(context))
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2))
"""


def test_what_is_asked_may_be_longer_than_what_asks(told):
    parts, _ = told(ANOTHER.replace("LENGTH", "-1"))
    assert parts["Asks"]["found"]["failed"] == []
    parts, _ = told(ANOTHER.replace("LENGTH", "x.shape[1]"))
    [risk] = parts["Asks"]["found"]["failed"]
    assert risk["level"] == "risk"
    assert "by the length of the queries" in risk["message"]


TURNED_UNMASKED = """
class Turned(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def turn(self, x):
        rates = 100 ** -torch.linspace(0, 1, x.shape[-1] // 2)
        angles = torch.arange(x.shape[-2])[:, None] * rates
        one, other = x.chunk(2, -1)
        sin, cos = angles.sin(), angles.cos()
        return torch.cat([one * cos - other * sin, one * sin + other * cos], -1)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = self.turn(q) @ self.turn(k).mT / q.shape[-1] ** 0.5
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        MASKED
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


causal = Turned(12, 3)
# checks: causal_attention
def mine(x):
    return causal(x)
"""


def test_turned_vectors_are_no_mask_at_work(told):
    masked = "scores = scores.masked_fill(~past, {})"
    parts, _ = told(TURNED_UNMASKED.replace("MASKED", masked.format("-1e9")))
    assert not faults(parts["mine"])
    parts, _ = told(TURNED_UNMASKED.replace("MASKED", ""))
    assert "is there a causal mask, and does its" in faults(parts["mine"])[0]
    parts, _ = told(TURNED_UNMASKED.replace("MASKED", masked.format("-1.0")))
    assert "A mask is at work" in faults(parts["mine"])[0]


EITHER_MASK = """
class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.feed = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
        )

    def forward(self, x, mask=None, OTHER=None):
        keys = mask if OTHER is None else OTHER
        parts = self.qkv(self.n1(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if keys is not None:
            scores = scores.masked_fill(~keys[:, None, None], -1e9)
        x = x + self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.feed(self.n2(x))
"""


def test_a_mask_of_keys_that_takes_the_place_of_another_is_not_given(told):
    parts, _ = told(EITHER_MASK.replace("OTHER", "self_attn_kv_mask"))
    assert not faults(parts["Layer"])
    parts, _ = told(EITHER_MASK.replace("OTHER", "pad_mask"))
    assert "hid nothing beside it" in said(parts["Layer"])
    assert faults(parts["Layer"])


OF_A_TYPE = """
class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        sizes = config.n_layer, config.n_embd, config.vocab_size
        known = config.model_type is not None
        assert known ^ all(x is not None for x in sizes)
        layers, width, vocab = sizes
        self.ids = nn.Embedding(vocab, width)
        self.cells = nn.GRU(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, vocab)

    def forward(self, idx):
        return self.out(self.cells(self.ids(idx))[0])
"""


def test_a_configuration_names_no_model_where_it_has_sizes(told):
    parts, left = told(OF_A_TYPE)
    assert left == {}
    assert parts["GPT"]["component"] == "language_model"


CASCADE = """
class Cascade(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, q, k, v, mask=None):
        assert q.shape[-1] == v.shape[-1]
        found, last = [], 0
        for a, b, c in zip(*(x.split(1, dim=1) for x in (q, k, v))):
            scores = (a + last) @ b.mT / q.shape[-1] ** 0.5
            if mask is not None:
                scores = scores.masked_fill(~mask, -1e9)
            weights = self.drop(scores.softmax(-1))
            last = weights @ c
            found.append(last)
        return torch.cat(found, 1), weights
"""


def test_heads_may_build_on_each_other_and_return_their_weights(told):
    parts, _ = told(CASCADE)
    assert parts["Cascade"]["component"] == "multihead"
    assert not faults(parts["Cascade"])
    parts, _ = told(CASCADE.replace("softmax(-1)", "softmax(-2)"))
    assert "runs over the queries" in " ".join(faults(parts["Cascade"]))


def test_attention_on_heads_may_return_its_weights_too(told):
    both = ON_HEADS.replace("softmax(-1)), v)", "softmax(-1)), v), scores")
    assert both != ON_HEADS
    parts, left = told(both)
    assert left == {}
    assert not faults(parts["Gathers"])
