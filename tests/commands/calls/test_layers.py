"""Layers of decoders, beside a memory, and layers that take three vectors.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, said, told_of

ATTENTION = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
DECODES = """
class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.own = Attention(d_model, num_heads)
        self.cross = Attention(d_model, num_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, enc_output, src_mask, tgt_mask):
        x = self.n1(x + self.own(x, x, x, tgt_mask))
        x = self.n2(x + self.cross(x, enc_output, enc_output, src_mask))
        return self.n3(x + self.down(self.up(x).relu()))
"""


def test_a_layer_of_a_decoder_is_judged_beside_a_memory(told):
    parts, left = told(ATTENTION + DECODES)
    assert left == {}
    layer = parts["DecoderLayer"]
    assert layer["component"] == "encoder"
    assert not told_of(layer)
    assert "it is a decoder's" in said(layer)
    assert "`enc_output` was the same for all sentences" in said(layer)


@pytest.mark.parametrize(
    ("right", "wrong", "contract"),
    [
        (
            "self.own(x, x, x, tgt_mask)",
            "self.own(x, x, x)",
            "In no layer does a word see the padding of its sentence",
        ),
        (
            "x + self.down",
            "self.down",
            "A path leads past every sub-layer",
        ),
        (
            "q.size(-1) ** 0.5",
            "(q.size(-1) * self.heads) ** 0.5",
            "The scores of a head are divided by the root of its width",
        ),
    ],
)
def test_what_is_wrong_with_it_is_found(told, right, wrong, contract):
    text = (ATTENTION + DECODES).replace(right, wrong)
    parts, _ = told(text)
    assert contract in contracts(parts["DecoderLayer"])
    assert faults(parts["DecoderLayer"])


def test_it_is_not_judged_where_its_memory_is_not_known(told):
    lost = DECODES.replace("enc_output, enc_output", "x, x")
    _, left = told(ATTENTION + lost)
    assert (
        "a decoder, which has no contracts of its own" in left["DecoderLayer"]
    )


THREE = """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, forward_expansion):
        super().__init__()
        self.attention = Attention(d_model, num_heads)
        self.up = nn.Linear(d_model, forward_expansion * d_model)
        self.down = nn.Linear(forward_expansion * d_model, d_model)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, value, key, query, mask):
        x = self.n1(query + self.attention(query, key, value, mask))
        return self.n2(x + self.down(self.up(x).relu()))
"""


def test_a_layer_of_three_vectors_gets_the_same_three_times(told):
    parts, left = told(ATTENTION + THREE)
    assert left == {}
    layer = parts["TransformerBlock"]
    assert layer["component"] == "encoder"
    assert not told_of(layer)
    assert "its queries, keys and values were the same" in said(layer)
    parts, _ = told(ATTENTION + THREE.replace("query + self", "self"))
    assert faults(parts["TransformerBlock"])
    unmasked = THREE.replace("value, mask))", "value))")
    parts, _ = told(ATTENTION + unmasked)
    assert faults(parts["TransformerBlock"])


OF_KEYS = (
    THREE
    + """
class DecoderBlock(nn.Module):
    def __init__(self, d_model, num_heads, forward_expansion):
        super().__init__()
        self.own = Attention(d_model, num_heads)
        self.norm = nn.LayerNorm(d_model)
        self.block = TransformerBlock(d_model, num_heads, forward_expansion)

    def forward(self, x, value, key, src_mask, trg_mask):
        query = self.norm(x + self.own(x, x, x, trg_mask))
        return self.block(value, key, query, src_mask)
"""
)


def test_a_memory_may_be_given_as_keys_and_values(told):
    parts, left = told(ATTENTION + OF_KEYS)
    assert left == {}
    assert not told_of(parts["DecoderBlock"])
    assert "`value` and `key` were the same" in said(parts["DecoderBlock"])
    parts, _ = told(ATTENTION + OF_KEYS.replace("x, x, x, trg_mask", "x, x, x"))
    assert faults(parts["DecoderBlock"])


ONE_LENGTH = """
class Positions(nn.Module):
    def __init__(self, seq_len, d_model):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, seq_len, d_model))

    def forward(self, x):
        return x + self.table
"""


RECORD = """
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    seq_len: int = 100
    d_model: int = 100
"""
SETTINGS = """
class Config:
    seq_len = 100
    d_model = 100
"""


@pytest.mark.parametrize(
    ("config", "argument"),
    [
        ("", ""),
        ("", "config"),
        (RECORD, "config: Config"),
        (SETTINGS, "config"),
    ],
)
def test_positions_of_one_length_are_built_for_each(told, config, argument):
    text = config + ONE_LENGTH
    if argument:
        text = text.replace(
            "seq_len, d_model)", "config.seq_len, config.d_model)"
        )
        text = text.replace("config.seq_len, config.d_model):", f"{argument}):")
    parts, left = told(text)
    assert left == {}
    assert parts["Positions"]["component"] == "add_positions"
    assert not faults(parts["Positions"])
    assert "built anew for each" in said(parts["Positions"])
    parts, _ = told(text.replace("x + self.table", "x * 2 + self.table"))
    assert not parts or faults(parts["Positions"])


BASE_FOR_LENGTH = """
class Positions(nn.Module):
    def __init__(self, seq_len, d_model, max_len=5000):
        super().__init__()
        place = torch.arange(seq_len)[:, None]
        rates = max_len ** (-torch.arange(0, d_model, 2) / d_model)
        self.table = torch.zeros(seq_len, d_model)
        self.table[:, 0::2] = (place * rates).sin()
        self.table[:, 1::2] = (place * rates).cos()

    def forward(self, x):
        return x + self.table
"""


def test_what_is_built_for_a_length_keeps_what_has_a_default(told):
    """The longest length may stand there for something else."""
    parts, _ = told(BASE_FOR_LENGTH)
    assert not faults(parts["Positions"])
    assert "built anew for each" in said(parts["Positions"])
    wrong = BASE_FOR_LENGTH.replace("max_len **", "(max_len + seq_len) **")
    assert faults(told(wrong)[0]["Positions"])


LONE = """
class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(hidden_size, hidden_size) for _ in range(4)
        )

    def forward(self, x, attention_mask):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        later = torch.ones(x.size(1), x.size(1)).triu(1).bool()
        scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(later, -1e9)
        weights = (scores + attention_mask).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class GPT2Layer(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.attention = Attention(hidden_size, num_heads)
        self.norm1 = nn.LayerNorm(hidden_size)
        self.norm2 = nn.LayerNorm(hidden_size)
        self.network = nn.Sequential(
            nn.Linear(hidden_size, 24), nn.GELU(), nn.Linear(24, hidden_size)
        )

    def forward(self, hidden_states, attention_mask):
        x = hidden_states
        x = x + self.attention(self.norm1(x), attention_mask)
        return x + self.network(self.norm2(x))
"""


def test_a_causal_block_alone_gets_a_mask_as_long_as_its_sentence(told):
    parts, left = told(LONE)
    assert left == {}
    assert parts["GPT2Layer"]["component"] == "language_model"
    assert not told_of(parts["GPT2Layer"])
    # The attention in it wants one as well.
    assert parts["Attention"]["component"] == "causal_attention"
    assert not told_of(parts["Attention"])
    assert "the mask that it wants hid nothing" in said(parts["Attention"])
    parts, _ = told(LONE.replace("triu(1)", "triu(2)"))
    assert faults(parts["Attention"])


FIRST = """x = hidden_states
        x = x + self.attention(self.norm1(x),"""


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("return x + self", "return self", "the weights of `network` at 0"),
        (
            FIRST,
            FIRST.replace("= hid", "= self.norm1(hid")
            .replace("states\n", "states)\n")
            .replace("self.norm1(x)", "x"),
            "In `GPT2Layer` a sum starts from what `norm1` returned",
        ),
    ],
)
def test_residuals_of_a_block_alone_are_looked_at(told, right, wrong, words):
    assert right in LONE
    parts, _ = told(LONE.replace(right, wrong))
    assert words in told_of(parts["GPT2Layer"])
    assert faults(parts["GPT2Layer"])


GLOBAL = """
n_embd = 48


class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.k, self.q, self.v = (
            nn.Linear(n_embd, head_size, bias=False) for _ in range(3)
        )

    def forward(self, x):
        later = torch.ones(x.size(1), x.size(1)).triu(1).bool()
        k, q = self.k(x), self.q(x)
        scores = (q @ k.mT * k.size(-1) ** -0.5).masked_fill(later, -torch.inf)
        return scores.softmax(-1) @ self.v(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, head_size):
        super().__init__()
        self.heads = nn.ModuleList(Head(head_size) for _ in range(num_heads))
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], -1))
"""


def test_heads_may_have_to_be_as_wide_as_a_number_outside_the_class(told):
    parts, left = told(GLOBAL)
    assert left == {}
    several = parts["MultiHeadAttention"]
    assert "MultiHeadAttention(num_heads=2, head_size=24)" in said(several)
    assert not told_of(several)
    parts, _ = told(GLOBAL.replace("k.size(-1) ** -0.5", "n_embd ** -0.5"))
    assert "divided by √48" in told_of(parts["MultiHeadAttention"])


GATED = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.attention = nn.MultiheadAttention(
            d_model, num_heads, batch_first=True
        )
        self.network = nn.Sequential(
            nn.Linear(d_model, 24), nn.GELU(), nn.Linear(24, d_model)
        )
        self.one, self.two = (nn.Parameter(torch.zeros(1)) for _ in "12")

    def forward(self, x):
        x = x + self.one * self.attention(x, x, x)[0]
        return x + self.two * self.network(self.norm(x))
"""


def test_a_layer_may_begin_behind_gates_that_are_shut(told):
    parts, left = told(GATED)
    assert left == {}
    assert not faults(parts["Layer"])
    parts, _ = told(GATED.replace("x, x)[0]", "x, x)[0].flip(1)"))
    assert "Reordering the positions" in contracts(parts["Layer"])


OF_TWO = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.asked = nn.Linear(d_model, d_model)
        self.keys_and_values = nn.Linear(d_model, 2 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, xquery, xother):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in (
                self.asked(xquery), *self.keys_and_values(xother).chunk(2, -1)
            )
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize("name", ["xother", "key_value", "glox"])
def test_another_sequence_may_have_any_name(told, name):
    text = OF_TWO.replace("xother", name)
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["Layer"])
    parts, _ = told(text.replace(".softmax(-1)", ".softmax(-2)"))
    assert faults(parts["Layer"])


@pytest.mark.parametrize(
    "body",
    [
        "self.out(xquery + xother)",
        "self.asked(xquery).tanh() + xother",
        "self.asked(xquery).sigmoid() * xother",
    ],
)
def test_what_joins_two_in_another_way_is_not_judged(told, body):
    lines = OF_TWO.partition("    def forward")[0]
    text = f"{lines}    def forward(self, xquery, xother): return {body}"
    parts, left = told(text)
    assert parts == {}
    assert "Layer" in left


IN_LOOPS = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.width = d_model // n_heads
        self.maps = nn.ModuleList(
            nn.Linear(self.width, 3 * self.width) for _ in range(n_heads)
        )
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        rows = []
        for sentence in x:
            heads = []
            for i, one in enumerate(self.maps):
                part = sentence[:, i * self.width : (i + 1) * self.width]
                q, k, v = one(part).chunk(3, -1)
                heads.append(self.softmax(q @ k.T / self.width**0.5) @ v)
            rows.append(torch.cat(heads, -1))
        return torch.stack(rows)
"""


def test_attention_may_take_sentences_and_heads_one_by_one(told):
    parts, left = told(IN_LOOPS)
    assert left == {}
    assert not faults(parts["Attention"])
    parts, _ = told(IN_LOOPS.replace("dim=-1", "dim=0"))
    assert "runs over the queries" in told_of(parts["Attention"])


OVER_THE_BATCH = """
class NAMEEncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            d_model, n_heads, batch_first=True
        )
        self.network = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model)
        )
        self.one, self.two = (nn.BatchNorm1d(d_model) for _ in "12")

    def forward(self, x):
        x = self.one((x + self.attention(x, x, x)[0]).mT).mT
        return self.two((x + self.network(x)).mT).mT
"""


def test_a_norm_over_the_batch_is_a_risk_where_the_class_says_so(told):
    parts, left = told(OVER_THE_BATCH.replace("NAME", "BatchNorm"))
    assert left == {}
    part = parts["BatchNormEncoderLayer"]
    assert not faults(part)
    assert "In training mode too" in contracts(part)
    parts, _ = told(OVER_THE_BATCH.replace("NAME", ""))
    assert faults(parts["EncoderLayer"])


STRAIGHT = """
class Rounded(nn.Linear):
    def forward(self, x):
        near = (8 * x).round() / 8
        return super().forward(PASSED)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = Rounded(d_model, d_ff), Rounded(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_a_gradient_that_is_passed_straight_through_is_a_note(told):
    parts, _ = told(STRAIGHT.replace("PASSED", "x + (near - x).detach()"))
    assert not faults(parts["FeedForward"])
    assert "straight-through" in excuses(parts["FeedForward"])
    # Without rounding, or without any gradient, it is a fault.
    # Where nothing is rounded its gradient is wrong all the same.
    cut = STRAIGHT.replace("PASSED", "near + 2 * x.detach()")
    parts, _ = told(cut)
    assert faults(parts["FeedForward"])
    wrong = STRAIGHT.replace("PASSED", "x + (x * x).detach()")
    parts, _ = told(wrong.replace("(8 * x).round() / 8", "x"))
    assert faults(parts["FeedForward"])
    quantized = "torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)"
    parts, _ = told(STRAIGHT.replace("PASSED", quantized))
    assert "straight-through" in excuses(parts["FeedForward"])
    parts, _ = told(STRAIGHT.replace("PASSED", "near.detach()"))
    assert faults(parts["FeedForward"])


NOISY = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, num_experts=4):
        super().__init__()
        self.gate = nn.Linear(d_model, num_experts)
        self.noise = nn.Linear(d_model, num_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
            )
            for _ in range(num_experts)
        )

    def forward(self, x):
        logits = self.gate(x)
        if self.training:
            logits = logits + torch.randn_like(logits) * self.noise(x)
        shares = logits.softmax(-1)
        return sum(
            shares[..., i, None] * f(x) for i, f in enumerate(self.experts)
        )
"""


def test_weights_that_count_in_training_alone_take_part(told):
    parts, left = told(NOISY)
    assert left == {}
    assert not faults(parts["FeedForward"])
    parts, _ = told(NOISY.replace("self.training", "False"))
    assert "`noise.weight` takes no part" in told_of(parts["FeedForward"])


A_MAP = """
class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, y):
        scores = self.q(x) @ self.k(y).mT / x.shape[-1] ** 0.5
        return scores.softmax(-1)
"""


def test_a_map_of_positions_is_no_narrow_head(told):
    parts, left = told(A_MAP)
    assert parts == {}
    assert "It returned shape (2, 5, 5)" in left["CrossAttention"]


POINTS = """
class NAME(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim):
        super().__init__()
        self.up = nn.Linear(input_dim, hidden_dim)
        self.norm = nn.BatchNorm1d(hidden_dim)
        self.down = nn.Linear(hidden_dim, output_dim)

    def forward(self, x):
        points = self.norm(self.up(x.flatten(0, 1))).relu()
        return self.down(points).view(x.shape)
"""


def test_a_batch_norm_in_a_network_of_points_is_a_risk(told):
    parts, left = told(POINTS.replace("NAME", "MLP"))
    assert left == {}
    assert not faults(parts["MLP"])
    assert "points or pixels" in excuses(parts["MLP"])
    parts, _ = told(POINTS.replace("NAME", "PositionwiseFeedForward"))
    assert faults(parts["PositionwiseFeedForward"])


CAUSAL_BESIDE_KEYS = """
class CausalBlock(nn.Module):
    def __init__(self, embed_dim, n_head):
        super().__init__()
        self.heads = n_head
        self.one, self.two = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)
        self.into = nn.Linear(embed_dim, 3 * embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)
        self.net = nn.Sequential(
            nn.Linear(embed_dim, 24), nn.SiLU(), nn.Linear(24, embed_dim)
        )

    def forward(self, x, key_pad_mask):
        b, n, d = x.shape
        q, k, v = (
            y.view(b, n, self.heads, -1).transpose(1, 2)
            for y in self.into(self.one(x)).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(key_pad_mask[:, None, None], -1e10)
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(future, -1e10).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, n, d))
        return x + self.net(self.two(x))
"""


@pytest.mark.parametrize("name", ["key_pad_mask", "padding_mask", "mask"])
@pytest.mark.parametrize("mask", ["key_pad_mask", "~key_pad_mask"])
@pytest.mark.parametrize("low", ["-1e10", "-torch.inf"])
def test_a_mask_of_keys_hides_nothing_beside_one_that_is_built_in(
    told, name, mask, low
):
    text = CAUSAL_BESIDE_KEYS.replace("key_pad_mask[", f"{mask}[")
    text = text.replace("key_pad_mask", name).replace("-1e10", low)
    parts, left = told(text)
    assert left == {}
    part = parts["CausalBlock"]
    assert part["component"] == "language_model"
    assert not faults(part)
    parts, _ = told(text.replace("x = x + self.out", "x = self.out"))
    assert faults(parts["CausalBlock"])


HANDED_ON = """
class Attention(nn.Module):
    def __init__(self, hidden_dim, num_heads):
        super().__init__()
        self.heads = num_heads
        self.into = nn.Linear(hidden_dim, 3 * hidden_dim)
        self.out = nn.Linear(hidden_dim, hidden_dim)
        self.up = nn.Parameter(torch.randn(1, num_heads, 1, 1))

    def forward(self, x, parents=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.into(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if parents is not None:
            alike = parents[:, None, :, None] == parents[:, None, None]
            scores = scores + alike * self.up
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class TreeLayer(nn.Module):
    def __init__(self, hidden_dim, num_heads):
        super().__init__()
        self.attention = Attention(hidden_dim, num_heads)
        self.one, self.two = (nn.LayerNorm(hidden_dim) for _ in "12")
        self.net = nn.Sequential(
            nn.Linear(hidden_dim, 24), nn.ReLU(), nn.Linear(24, hidden_dim)
        )

    def forward(self, x, parents=None):
        x = self.one(x + self.attention(x, parents))
        return self.two(x + self.net(x))
"""


def test_what_a_layer_hands_on_may_be_what_a_weight_waits_for(told):
    parts, left = told(HANDED_ON)
    assert left == {}
    assert not faults(parts["TreeLayer"])
    assert "where `parents` is given" in excuses(parts["TreeLayer"])
    parts, _ = told(HANDED_ON.replace("(x, parents))", "(x))"))
    assert "`attention.up` takes no part" in faults(parts["TreeLayer"])[0]


WITH_PLACES = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        angles = torch.outer(torch.arange(64.0), rates)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("table", table)
        self.into = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def split(self, x):
        return SPLIT

    def forward(self, x, mask=None):
        x = x + self.table[: x.shape[1]]
        q, k, v = map(self.split, self.into(x).chunk(3, -1))
        scores = q @ k.mT SCALED
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
SPLIT = "x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)"
BY_VIEW = "x.reshape(len(x), self.num_heads, -1, x.shape[2] // self.num_heads)"


def test_attention_may_add_sinusoids_and_is_told_of_a_view_beside_them(told):
    text = WITH_PLACES.replace("SCALED", "/ q.shape[-1] ** 0.5")
    parts, _ = told(text.replace("SPLIT", SPLIT))
    assert not faults(parts["MultiHeadAttention"])
    assert "It adds sinusoids to `x`" in told_of(parts["MultiHeadAttention"])
    parts, _ = told(text.replace("SPLIT", BY_VIEW))
    assert any("`view` mix" in f for f in faults(parts["MultiHeadAttention"]))


def test_scores_that_are_multiplied_by_the_root_of_the_width_are_wrong(told):
    text = WITH_PLACES.replace("SPLIT", SPLIT)
    parts, _ = told(text.replace("SCALED", "* x.shape[-1] ** 0.5"))
    [fault] = faults(parts["MultiHeadAttention"])
    assert "are multiplied by √12, the root of d_model" in fault


BESIDE_A_CONVOLUTION = """
class ConformerBlock(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(d_model) for _ in "12")
        self.attend = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.mix = nn.Conv1d(d_model, d_model, 3, padding=1)
        self.network = nn.Sequential(
            nn.Linear(d_model, 29), nn.SiLU(), nn.Linear(29, d_model)
        )

    def forward(self, x, key_padding_mask=None):
        h = self.norm1(x)
        x = x + self.attend(h, h, h, key_padding_mask=HIDDEN)[0]
        x = x + self.mix(self.norm2(x).mT).mT
        return x + self.network(x)
"""


def test_a_convolution_that_sees_padding_is_a_risk_of_a_layer(told):
    text = BESIDE_A_CONVOLUTION.replace("HIDDEN", "key_padding_mask")
    parts, _ = told(text)
    part = parts["ConformerBlock"]
    assert not faults(part)
    assert "In no layer does a word see the padding" in contracts(part)
    assert "`mix` is a convolution over positions beside" in told_of(part)
    parts, _ = told(BESIDE_A_CONVOLUTION.replace("HIDDEN", "None"))
    assert "The mask is not used" in faults(parts["ConformerBlock"])[0]


TIMES_INFINITY = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.qkv = num_heads, nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + (~mask) * -FAR
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attend = SelfAttention(d_model, num_heads)
        self.norm = nn.LayerNorm(d_model)
        self.network = nn.Sequential(
            nn.Linear(d_model, 29), nn.ReLU(), nn.Linear(29, d_model)
        )

    def forward(self, x, mask=None):
        x = x + self.attend(x, mask)
        return x + self.network(self.norm(x))
"""


def test_a_mask_times_infinity_is_told_as_that(told):
    parts, _ = told(TIMES_INFINITY.replace("FAR", "1e9"))
    assert not any(map(faults, parts.values()))
    parts, _ = told(TIMES_INFINITY.replace("FAR", "torch.inf"))
    assert len(parts) == 2
    for part in parts.values():
        assert "0 · (−∞) is NaN" in faults(part)[0]


ROWS_FOR_EACH = """
class PositionalEncoding(nn.Module):
    def __init__(self, num_units):
        super().__init__()
        self.num_units = num_units

    def forward(self, x):
        batch, seq = x.shape[:2]
        place = torch.arange(seq)[:, None]
        rates = 10000 ** (-FACTOR * torch.arange(self.num_units // 2) / 6)
        both = torch.stack([(place * rates).sin(), (place * rates).cos()], -1)
        return both.flatten(1).expand(batch, seq, self.num_units)
"""


def test_positions_alone_may_be_written_out_for_each_sentence(told):
    parts, left = told(ROWS_FOR_EACH.replace("FACTOR", "1"))
    assert left == {}
    assert not faults(parts["PositionalEncoding"])
    parts, _ = told(ROWS_FOR_EACH.replace("FACTOR", "2"))
    assert faults(parts["PositionalEncoding"])


OF_ITS_OWN_WIDTH = """
class TemporalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return NORMED
"""


def test_the_norm_of_a_wider_layer_is_seen_behind_its_sum(told):
    behind = "self.norm(self.attend(x, x, x)[0] + x)"
    parts, _ = told(OF_ITS_OWN_WIDTH.replace("NORMED", behind))
    assert told_of(parts["TemporalAttention"]) == ""
    added = "self.norm(x) + self.attend(*[self.norm(x)] * 3)[0]"
    parts, _ = told(OF_ITS_OWN_WIDTH.replace("NORMED", added))
    assert "starts from the normed" in told_of(parts["TemporalAttention"])


OF_A_DECODER = """
class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.attend, self.ask = (
            nn.MultiheadAttention(d_model, heads, batch_first=True)
            for _ in "12"
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in "123")
        self.ff = nn.Sequential(
            nn.Linear(d_model, 29), nn.ReLU(), nn.Linear(29, d_model)
        )

    def forward(self, x, memory, src_mask=None, tgt_mask=None):
        x = self.norms[0](x + self.attend(x, x, x, tgt_mask)[0])
        x = self.norms[1](x + self.ask(x, memory, memory, src_mask)[0])
        return self.norms[2](CARRIED + self.ff(x))
"""


def test_a_layer_of_a_decoder_is_known_by_its_memory_with_a_fault_too(told):
    parts, _ = told(OF_A_DECODER.replace("CARRIED", "0"))
    assert "a memory of 4 vectors" in said(parts["DecoderLayer"])
    [fault] = faults(parts["DecoderLayer"])
    assert "the residual connection around it missing" in fault


KEYS_FIRST = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        weights = (k @ q.mT / q.shape[-1] ** 0.5).softmax(-2)
        return self.out((weights.mT @ v).transpose(1, 2).flatten(2))
"""


def test_scores_may_have_the_keys_before_the_queries(told):
    parts, left = told(KEYS_FIRST)
    assert left == {}
    assert not faults(parts["SelfAttention"])
    parts, _ = told(KEYS_FIRST.replace("weights.mT @ v", "weights @ v"))
    [fault] = faults(parts["SelfAttention"])
    assert fault.startswith("The softmax runs over the queries")


VIEWS_ITS_MASK = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, pad_mask=None):
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if pad_mask is not None:
            keys = pad_mask.view(x.shape[0], 1, 1, x.shape[1])
            scores = scores.masked_fill(keys == 0, -1e9)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in "12")
        self.attend = Attention(d_model, num_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, pad_mask=None):
        x = x + self.attend(self.norms[0](x), pad_mask)
        return x + self.down(self.up(self.norms[1](x)).relu())
"""


def test_a_layer_may_view_the_mask_of_keys_that_it_is_given(told):
    parts, left = told(VIEWS_ITS_MASK)
    assert left == {}
    assert not faults(parts["Block"])
    assert "each row was asked alone" in said(parts["Block"])
    wrong = VIEWS_ITS_MASK.replace("keys == 0, -1e9", "keys == 0, 0.0")
    assert faults(told(wrong)[0]["Block"])


ADDS_TO_ITS_NORMS = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attend = nn.MultiheadAttention(
            d_model, num_heads, batch_first=True
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in "12")
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.norms[0](x)
        x = x + self.attend(x, x, x)[0]
        x = self.norms[1](x)
        return x + self.down(self.up(x).relu())


class Stack(nn.Module):
    def __init__(self, num_layers, d_model, num_heads, d_ff):
        super().__init__()
        self.layers = nn.ModuleList(
            Layer(d_model, num_heads, d_ff) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
"""


def test_a_layer_may_add_to_what_it_norms_in_a_stack_that_ends_with_a_norm(
    told,
):
    """It computes what post-norm does, with one more norm in front."""
    parts, _ = told(ADDS_TO_ITS_NORMS)
    assert not faults(parts["Stack"])
    assert not faults(parts["Layer"])
    assert "in a stack that ends with a norm" in excuses(parts["Layer"])
    parts, _ = told(ADDS_TO_ITS_NORMS.replace("self.norm(x)", "x"))
    for name in ("Layer", "Stack"):
        assert "starts from the normed vector" in told_of(parts[name])
        assert faults(parts[name])
    alone = ADDS_TO_ITS_NORMS[: ADDS_TO_ITS_NORMS.index("class Stack")]
    assert faults(told(alone)[0]["Layer"])


def test_a_softmax_over_the_heads_is_named_where_a_mask_comes_too_late(told):
    text = VIEWS_ITS_MASK[: VIEWS_ITS_MASK.index("class Block")]
    parts, _ = told(text.replace("softmax(-1)", "softmax(1)"))
    for fault in faults(parts["Attention"]):
        assert "that of the heads: it belongs over the keys" in fault


BY_LONG_NAMES = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(d_model, d_model) for _ in "1234")
        self.num_heads = num_heads

    def forward(self, key_input, query_input, value_input):
        k, q, v = (
            f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for f, x in zip(
                self.maps, (key_input, query_input, value_input), strict=False
            )
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.maps[3]((weights @ v).transpose(1, 2).flatten(2))
"""


def test_queries_that_come_second_are_known_by_a_longer_name(told):
    parts, _ = told(BY_LONG_NAMES)
    assert not parts["Attention"]["found"]["failed"]
    wrong = BY_LONG_NAMES.replace("key_input, query_input, v", "a, b, v")
    wrong = wrong.replace("(key_input, query_input", "(a, b")
    [risk] = told(wrong)[0]["Attention"]["found"]["failed"]
    assert "For 5 queries and 10 keys" in risk["message"]


FOUR_AXES = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(d_model, d_model) for _ in "1234")
        self.num_heads = num_heads

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for f, x in zip(self.maps, (q, k, v), strict=False)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None and mask.dim() == 4:
            scores = scores.masked_fill(mask == 0, -1e9)
        y = scores.softmax(-1) @ v
        return self.maps[3](y.transpose(1, 2).flatten(2))
"""


def test_a_mask_may_count_only_if_it_has_four_axes(told):
    parts, _ = told(FOUR_AXES)
    assert not faults(parts["Attention"])
    assert "its masks are (batch, 1, seq, seq)" in said(parts["Attention"])
    # One of seven axes never comes.
    parts, _ = told(FOUR_AXES.replace("mask.dim() == 4", "mask.dim() == 7"))
    assert "The mask is not used" in faults(parts["Attention"])[0]
    parts, _ = told(FOUR_AXES.replace("mask == 0", "mask.mT == 0"))
    assert faults(parts["Attention"])


IN_A_BLOCK = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in "12")
        self.attend = Attention(d_model, num_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x + self.attend(self.norms[0](x))
        return x + self.down(self.up(self.norms[1](x)).relu())
"""


def test_a_softmax_over_the_queries_is_a_risk_in_a_layer_without_a_mask(told):
    parts, _ = told(IN_A_BLOCK)
    assert not parts["Block"]["found"]["failed"]
    parts, _ = told(IN_A_BLOCK.replace("softmax(-1)", "softmax(-2)"))
    assert not faults(parts["Block"])
    assert "The softmax runs over the queries" in told_of(parts["Block"])
    assert "as slots do" in excuses(parts["Block"])
    assert faults(parts["Attention"])


TURNED_IN = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attend = nn.MultiheadAttention(
            d_model, num_heads, batch_first=True
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in "12")
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        past = torch.ones(x.shape[1], x.shape[1]).triu(1) == 1
        x = self.norms[0](x)
        x = x + self.attend(x, x, x, attn_mask=past)[0]
        x = self.norms[1](x)
        return x + self.down(self.up(x).relu())


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff, num_layers):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            Layer(d_model, num_heads, d_ff) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.words(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))
"""


def test_each_sum_of_a_language_model_may_start_from_its_own_norm(told):
    """PyTorch's attention draws biases of 0, so that a norm hides a factor."""
    parts, _ = told(TURNED_IN)
    assert not faults(parts["GPT"])
    wrong = TURNED_IN.replace(
        "x = self.norms[1](x)\n        return x + self.down(self.up(x)",
        "return x + self.down(self.up(self.norms[1](x))",
    )
    assert "a sum starts from what" in told_of(told(wrong)[0]["GPT"])
