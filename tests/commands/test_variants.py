"""What a published variant does on purpose is no fault; beside it, what is.

The code is written anew, in the style of what was found in repositories.
"""

import pytest

from tests.commands.parts import contracts, excuses, faults, said, told_of

pytestmark = pytest.mark.once

OPTIONAL_MEMORY = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, x, memory=None, mask=None):
        context = x if memory is None else memory
        q, k, v = (
            f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, y in ((self.q, x), (self.k, context), (self.v, context))
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores + mask
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.own = Attention(d_model, num_heads)
        self.cross = Attention(d_model, num_heads)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, mask=None, context=None):
        x = self.n1(x + self.own(x, None, mask))
        if context is not None:
            x = self.n2(x + self.cross(x, context))
        return self.n3(x + self.down(self.up(x).relu()))
"""


def test_weights_that_wait_for_an_optional_memory_are_a_risk(told):
    parts, _ = told(OPTIONAL_MEMORY)
    assert not faults(parts["Layer"])
    assert "With `context` they take part" in excuses(parts["Layer"])
    never = OPTIONAL_MEMORY.replace("if context is not None", "if False")
    parts, _ = told(never)
    assert "`cross.q.weight` takes no part" in " ".join(faults(parts["Layer"]))


OPTIONAL_BIAS = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads, self.gain = n_heads, nn.Parameter(torch.ones(n_heads))
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None, bias=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if bias is not None:
            scores = scores + self.gain[:, None, None] * bias[:, None]
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_so_are_those_that_wait_for_a_number_for_each_pair(told):
    parts, _ = told(OPTIONAL_BIAS)
    assert not faults(parts["SelfAttention"])
    assert "With `bias` they take part" in excuses(parts["SelfAttention"])
    parts, _ = told(OPTIONAL_BIAS.replace("self.gain[:, None, None] *", ""))
    assert "`gain` takes no part" in faults(parts["SelfAttention"])[0]


EXPERTS = """
class Routed(nn.Module):
    def __init__(self, d_model, n_routed_experts=128, k=2):
        super().__init__()
        self.k, self.gate = k, nn.Linear(d_model, n_routed_experts)
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(d_model, 5), nn.GELU(), nn.Linear(5, d_model)
            )
            for _ in range(n_routed_experts)
        )

    def forward(self, x):
        rows = x.flatten(0, -2)
        top, chosen = self.gate(rows).topk(self.k)
        out = [
            sum(w * self.experts[i](row) for i, w in zip(c, t))
            for row, t, c in zip(rows, top.softmax(-1), chosen.tolist())
        ]
        return torch.stack(out).view_as(x)
"""


def test_each_of_many_experts_is_chosen_by_some_router(told):
    parts, _ = told(EXPERTS)
    assert not faults(parts["Routed"])
    last_never = EXPERTS.replace(
        "nn.Linear(d_model, n_routed_experts)",
        "nn.Linear(d_model, n_routed_experts - 1)",
    )
    parts, _ = told(last_never)
    [fault] = faults(parts["Routed"])
    assert "`experts.127.0.weight` takes no part" in fault


SINUSOIDS = """
class PositionalEmbedding(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        i = torch.arange(0, d_model, 2).float()
        self.register_buffer("rates", 100000.0 ** -(i / d_model))

    def forward(self, x):
        place = torch.arange(x.shape[1], device=x.device).float()
        angle = place[:, None] * self.rates
        return torch.cat([angle.sin(), angle.cos()], dim=-1)[None]
"""


@pytest.mark.parametrize("base", [50000, 90000, 100000, 200000, 500000])
def test_another_base_is_no_exponent_that_is_rounded_down(told, base):
    parts, _ = told(SINUSOIDS.replace("100000.0", f"{base}.0"))
    assert not faults(parts["PositionalEmbedding"])
    assert f"The base is {base}" in told_of(parts["PositionalEmbedding"])


def test_an_exponent_that_is_rounded_down_is_told_in_halves_too(told):
    rounded = SINUSOIDS.replace(
        "100000.0 ** -(i / d_model)",
        "(i * (-torch.tensor(10000.0).log() / d_model // 2)).exp()",
    )
    parts, _ = told(rounded)
    [fault] = faults(parts["PositionalEmbedding"])
    assert fault.startswith("The exponent is rounded down")


LOW_RANK = """
class LowRank(nn.Module):
    def __init__(self, dim, rank=5):
        super().__init__()
        self.down = nn.Linear(dim, rank, bias=False)
        self.up = nn.Linear(rank, dim)

    def forward(self, x):
        return self.up(self.down(x))


class Layer(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads = n_heads
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (LowRank(dim) for _ in range(4))
        self.net = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
        )

    def forward(self, x):
        y = self.n1(x)
        q, k, v = (
            f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        seen = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True
        )
        z = x + self.o(seen.transpose(1, 2).flatten(2))
        return z + self.net(self.n2(z))


class Small(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, n_layers, max_len):
        super().__init__()
        self.token = nn.Embedding(vocab_size, dim)
        self.place = nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList(
            Layer(dim, n_heads) for _ in range(n_layers)
        )
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, vocab_size)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.token(ids) + self.place(places)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
"""


def test_projections_of_a_low_rank_are_no_networks(told):
    parts, _ = told(LOW_RANK)
    assert not faults(parts["Small"])
    parts, _ = told(LOW_RANK.replace("return z + self", "return x + self"))
    assert "nothing that attention says reaches" in faults(parts["Small"])[0]


FROM_TWO = """
class PositionalEmbedding(nn.Embedding):
    def forward(self, x):
        places = torch.arange(2, x.size(1) + 2, device=x.device)
        return super().forward(places)
"""


def test_a_table_of_positions_may_begin_at_its_third_row(told):
    parts, _ = told(FROM_TWO)
    assert parts["PositionalEmbedding"]["component"] == "add_positions"
    assert not faults(parts["PositionalEmbedding"])
    parts, _ = told(FROM_TWO.replace("forward(places)", "forward(places % 7)"))
    assert faults(parts["PositionalEmbedding"])


STATES = """
class Encoder(nn.Module):
    def __init__(self, vocab_size, hidden, n_layers):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, hidden)
        self.rnn = nn.LSTM(hidden, hidden, n_layers)

    def forward(self, ids):
        rows, (hidden, cell) = self.rnn(self.embedding(ids))
        return hidden, cell
"""


def test_the_states_of_a_recurrent_encoder_are_no_logits(told):
    parts, left = told(STATES)
    assert not parts
    assert "what a recurrent layer keeps comes out" in left["Encoder"]
    parts, _ = told(STATES.replace("return hidden, cell", "return rows"))
    assert parts["Encoder"]["component"] == "language_model"


DILATED = """
class Dilated(nn.Module):
    def __init__(self, d_model, rate=2, n_heads=1):
        super().__init__()
        self.heads, self.rate = n_heads, rate
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        place = torch.arange(x.shape[1], device=x.device)
        seen = (place[:, None] - place) % self.rate == 0
        if mask is not None:
            seen = seen & mask.bool()[:, None]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~seen, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_dilated_attention_is_not_judged_as_if_all_saw_all(told):
    parts, left = told(DILATED)
    assert not parts
    assert "sees those at some distances only" in left["Dilated"]
    never_the_first = "(place + 0 * place[:, None]) > 0"
    parts, _ = told(
        DILATED.replace(
            "(place[:, None] - place) % self.rate == 0", never_the_first
        )
    )
    assert faults(parts["Dilated"])


UNSCALED = """
class T5Attention(nn.Module):
    def __init__(self, d_model, num_heads, d_kv=16):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v = (
            nn.Linear(d_model, num_heads * d_kv, bias=False) for _ in range(3)
        )
        self.o = nn.Linear(num_heads * d_kv, d_model, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        scores = q @ k.mT
        if mask is not None:
            scores = scores + mask
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""

DEVIATION = """
class BiasFreeLayerNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        variance = x.var(-1, keepdim=True, unbiased=False)
        return x / (variance + 1e-5).sqrt() * self.weight
"""

FROM_ONES = """
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        size = (x.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return x / size * (1 + self.weight)
"""


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (UNSCALED, "T5Attention", "as a T5 draws them"),
        (DEVIATION, "BiasFreeLayerNorm", "layer norm without a bias"),
        (FROM_ONES, "RMSNorm", "as Gemma's are"),
    ],
)
def test_what_a_model_of_its_name_does_on_purpose_is_a_risk(
    told, text, name, why
):
    parts, _ = told(text)
    assert not faults(parts[name])
    assert why in excuses(parts[name])


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (UNSCALED, "T5Attention", "SelfAttention"),
        (UNSCALED, "q @ k.mT", "q @ k.mT / 16"),
        (DEVIATION, "BiasFreeLayerNorm", "RMSNorm"),
        (DEVIATION, "self.weight\n", "self.weight * 3\n"),
        (FROM_ONES, "(1 + self.weight)", "(2 + self.weight)"),
        (FROM_ONES, "        size =", "        x *= 2\n        size ="),
    ],
)
def test_without_the_name_or_with_more_it_is_a_fault(told, text, before, after):
    parts, _ = told(text.replace(before, after))
    [part] = parts.values()
    assert faults(part)


BY_TABLES = """
def rotate_half(x):
    one, two = x.chunk(2, -1)
    return torch.cat([-two, one], -1)


def rotate_pairs(x):
    return torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def apply_rotary_looked_up(q, k, cos, sin, position_ids):
    cos, sin = (
        table.squeeze(1).squeeze(0)[position_ids].unsqueeze(1)
        for table in (cos, sin)
    )
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def apply_rope(x, freqs_cos, freqs_sin):
    cos, sin = freqs_cos[: x.shape[1], None], freqs_sin[: x.shape[1], None]
    return x * cos + rotate_pairs(x) * sin


def apply_rotary_emb(x, cos, sin):
    one, two = x[..., 0::2], x[..., 1::2]
    pairs = [one * cos - two * sin, one * sin + two * cos]
    return torch.stack(pairs, -1).flatten(-2)
"""


def test_rotations_that_are_given_cosines_and_sines_are_judged(told):
    parts, left = told(BY_TABLES)
    assert not left
    layouts = ["both halves alike"] * 2
    layouts += ["each angle twice in a row", "one angle for a pair"]
    assert len(parts) == len(layouts)
    for part, layout in zip(parts.values(), layouts, strict=True):
        assert not faults(part)
        assert f"tables of cosines and sines, {layout}" in said(part)


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        ("[-two, one]", "[two, one]", 2),
        ("[-x[..., 1::2], x", "[x[..., 1::2], x", 1),
        ("one * sin + two", "one * sin - two", 1),
    ],
)
def test_a_sign_that_is_lost_in_them_is_a_fault(told, before, after, broken):
    parts, _ = told(BY_TABLES.replace(before, after))
    wrong = [part for part in parts.values() if faults(part)]
    assert len(wrong) == broken
    assert all("changes its length" in contracts(part) for part in wrong)


PICTURE_FIRST = """
class Captions(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_heads, vision_dim=7):
        super().__init__()
        self.token = nn.Embedding(vocab_size, hidden_size)
        self.place = nn.Embedding(40, hidden_size)
        self.project = nn.Linear(vision_dim, hidden_size)
        self.layer = nn.TransformerEncoderLayer(
            hidden_size, num_heads, 24, 0.0, batch_first=True
        )
        self.head = nn.Linear(hidden_size, vocab_size)

    def forward(self, ids, pixel_values=None):
        n, before = ids.shape[1], 0
        x = self.token(ids) + self.place(torch.arange(n))
        if pixel_values is not None:
            picture = self.project(pixel_values)
            before = picture.shape[1]
            x = torch.cat([picture, x], 1)
        whole = n + before
        later = torch.ones(whole, whole, dtype=torch.bool).triu(1)
        return self.head(self.layer(x, src_mask=later))[:, before:]
"""


def test_weights_that_the_code_uses_with_an_argument_only_are_a_risk(told):
    parts, _ = told(PICTURE_FIRST)
    assert not faults(parts["Captions"])
    assert "where `pixel_values` is given" in excuses(parts["Captions"])
    never = PICTURE_FIRST.replace("if pixel_values is not None", "if False")
    parts, _ = told(never)
    assert "`project.weight` takes no part" in faults(parts["Captions"])[0]


NEVER_GIVEN = """
class Model(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, d_ff):
        super().__init__()
        self.token = nn.Embedding(vocab_size, d_model)
        self.layer = Layer(d_model, num_heads, d_ff)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        later = torch.full((n, n), -1e9).triu(1)
        return self.head(self.layer(self.token(ids), later))
"""


def test_what_a_layer_inside_waits_for_it_never_gets(told):
    parts, _ = told(OPTIONAL_MEMORY + NEVER_GIVEN)
    assert "`layer.cross.q.weight` takes no part" in " ".join(
        faults(parts["Model"])
    )


SPARSE = """
class NAMED(nn.Module):
    def __init__(self, d_model, n_heads, reach=1):
        super().__init__()
        self.heads, self.reach = n_heads, reach
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        place = torch.arange(x.shape[1])
        far = (place[:, None] - place).abs() > self.reach
        far = far & (place % 3 != 0)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            far = far | mask
        scores = scores.masked_fill(far, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_what_is_called_another_kind_of_attention_has_no_faults(told):
    parts, left = told(SPARSE.replace("NAMED", "StridedSparseAttention"))
    assert not parts
    assert "another kind of attention" in left["StridedSparseAttention"]
    parts, _ = told(SPARSE.replace("NAMED", "SelfAttention"))
    assert faults(parts["SelfAttention"])
    wide = SPARSE.replace("NAMED", "LocalAttention")
    wide = wide.replace("reach=1", "reach=90")
    parts, left = told(wide)  # All see all: there is nothing to excuse.
    assert not left
    assert not faults(parts["LocalAttention"])


COSINES_FIRST = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        place = torch.arange(40).float()[:, None]
        i = torch.arange(d_model).float()
        i = RATE
        angle = place / 10000.0 ** (i / d_model)
        table = torch.where(torch.arange(d_model) % 2 == 0,
                            angle.cos(), angle.sin())
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


@pytest.mark.parametrize("rate", ["2 * i", "i"])
def test_a_dimension_for_i_is_told_where_cosines_come_first(told, rate):
    parts, _ = told(COSINES_FIRST.replace("RATE", rate))
    [fault] = faults(parts["PositionalEncoding"])
    assert "Pair 0: its sine turns by 0." in fault
    parts, _ = told(COSINES_FIRST.replace("RATE", "i - i % 2"))
    assert not faults(parts["PositionalEncoding"])


BY_IDS = """
class PositionalEmbedding(nn.Module):
    def __init__(self, n_seq, n_emb):
        super().__init__()
        place = torch.arange(n_seq).float()[:, None]
        i = torch.arange(0, n_emb, 2).float()
        angle = place * 10000.0 ** -(i / n_emb)
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        self.table = nn.Embedding.from_pretrained(table)

    def forward(self, ids):
        places = torch.arange(ids.shape[1]).expand(ids.shape) + 1
        return self.table(places.masked_fill(ids == 0, 0))
"""


def test_positions_that_leave_padding_at_0_are_judged(told):
    parts, _ = told(BY_IDS)
    assert parts["PositionalEmbedding"]["component"] == "add_positions"
    assert not faults(parts["PositionalEmbedding"])
    parts, _ = told(BY_IDS.replace("angle.cos()", "angle.sin()"))
    [fault] = faults(parts["PositionalEmbedding"])
    assert fault.startswith("There are no cosines")


EIGHT_HEADS = """
class Layer(nn.Module):
    def __init__(self, model_dimensions, nb_units):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            model_dimensions, 8, batch_first=True
        )
        self.n1, self.n2 = (nn.LayerNorm(model_dimensions) for _ in range(2))
        self.up = nn.Linear(model_dimensions, nb_units)
        self.down = nn.Linear(nb_units, model_dimensions)

    def forward(self, x, key_padding_mask=None):
        seen, _ = self.attention(x, x, x, key_padding_mask=key_padding_mask)
        x = self.n1(x + seen)
        return self.n2(x + self.down(self.up(x).relu()))
"""


def test_what_has_8_heads_inside_is_built_twice_as_wide(told):
    parts, left = told(EIGHT_HEADS)
    assert not left
    assert "Layer(model_dimensions=24" in said(parts["Layer"])
    assert not faults(parts["Layer"])


SCALE = """
def attention(q, k, v, scale, mask=None):
    scores = q @ k.mT / scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    return scores.softmax(-1) @ v


def scaled_dot_product_attention(q, k, v, scale, mask=None):
    scores = q @ k.mT * scale
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    return scores.softmax(-1) @ v
"""


def test_a_scale_that_is_given_multiplies_or_divides(told):
    parts, _ = told(SCALE)
    one, two = parts.values()
    assert not faults(one)
    assert not faults(two)
    assert "by which it divides" in said(one)
    assert "by which it divides" not in said(two)
    parts, _ = told(SCALE.replace("scale\n", "scale**2\n"))
    assert all(map(faults, parts.values()))


TWO_SEQUENCES = """
def padding_mask(seq_k, seq_q):
    rows = seq_q.size(1)
    return seq_k.ne(0).unsqueeze(1).expend(-1, rows, -1)
"""


def test_what_two_sequences_raise_is_told_of_them(told):
    parts, _ = told(TWO_SEQUENCES)
    [fault] = faults(parts["padding_mask"])
    assert "'Tensor' object has no attribute 'expend'" in fault
    assert "it was called as (tokens, tokens)" in said(parts["padding_mask"])
    parts, _ = told(TWO_SEQUENCES.replace("expend", "expand"))
    assert not faults(parts["padding_mask"])


OVER_THE_HEADS = """
class MultiHeadAttn(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, q, k, v):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(DIM)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttn(d_model, n_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.n1(x + self.attention(x, x, x))
        return self.n2(x + self.down(self.up(x).relu()))
"""


def test_a_softmax_over_the_heads_is_told_of_attention_and_its_layer(told):
    parts, _ = told(OVER_THE_HEADS.replace("DIM", "1"))
    for name in ("MultiHeadAttn", "Block"):
        [fault] = faults(parts[name])
        assert "A softmax runs over axis 1 of (2, 3, 5, 5)" in fault
    parts, _ = told(OVER_THE_HEADS.replace("DIM", "-1"))
    assert not faults(parts["Block"])


def test_a_layer_whose_attention_compares_heads_is_no_network(told):
    heads = OVER_THE_HEADS.replace(".transpose(1, 2)", "")
    parts, _ = told(heads.replace("DIM", "-1"))
    assert parts["Block"]["component"] == "encoder"
    [fault] = faults(parts["Block"])
    assert "Each sees itself only" in fault
    assert "a part of it is called attention" in said(parts["Block"])


def test_a_memory_that_may_be_given_makes_a_decoder_of_what_has_faults(told):
    asks_itself = OPTIONAL_MEMORY.replace("context=None", "enc_output=None")
    asks_itself = asks_itself.replace(
        "if context is not None:\n            x = self.n2(x + self.cross(x, "
        "context))",
        "x = self.n2(x + self.cross(x, enc_output))",
    )
    hidden = asks_itself.replace("scores + mask", "scores + mask[:, :, :1]")
    parts, left = told(hidden)
    assert "a decoder, which has no contracts" in left["Layer"]
    parts, left = told(hidden.replace("enc_output", "other"))
    assert faults(parts["Layer"])


MASKS_OF_IDS = """
def get_attn_subsequent_mask(seq):
    return torch.ones(len(seq), seq.size(1), seq.size(1)).triu(1).byte()


def create_look_ahead_mask(tokens):
    n = tokens.size(1)
    return torch.ones(1, n, n).triu(1).bool()


def positional_encoding(max_len, d_model):
    i = torch.arange(0, d_model, 2).float()
    angle = torch.arange(max_len).float()[:, None] / 10000.0 ** (i / d_model)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[None]
"""


def test_a_causal_mask_of_ids_and_a_table_with_an_axis_more_are_judged(told):
    parts, left = told(MASKS_OF_IDS)
    assert not left
    assert len(parts) == 3
    assert not any(map(faults, parts.values()))
    assert "it got ids" in said(parts["get_attn_subsequent_mask"])
    assert "axis of size 1" in said(parts["positional_encoding"])
    wrong = MASKS_OF_IDS.replace("triu(1)", "triu(0)").replace("i / d", "i * d")
    parts, _ = told(wrong)
    assert all(map(faults, parts.values()))


ACTIVATION = """
class Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            d_model, n_heads, batch_first=True
        )
        self.net = nn.Sequential(
            nn.Linear(d_model, d_ff), ACT, nn.Linear(d_ff, d_model)
        )
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, key_padding_mask=None):
        seen, _ = self.attention(x, x, x, key_padding_mask=key_padding_mask)
        x = self.n1(x + seen)
        return self.n2(x + self.net(x))
"""


@pytest.mark.parametrize(
    "act", ["nn.ReLU()", "nn.ReLU(inplace=True)", "nn.GELU()"]
)
def test_an_activation_in_place_is_one_too(told, act):
    parts, _ = told(ACTIVATION.replace("ACT", act))
    assert not faults(parts["Block"])


@pytest.mark.parametrize("act", ["nn.Dropout(0.1)", "nn.Identity()"])
def test_a_network_without_an_activation_is_told_of_its_layer(told, act):
    parts, _ = told(ACTIVATION.replace("ACT", act))
    [fault] = faults(parts["Block"])
    assert fault.startswith("A linear map from 12 to 24 numbers is followed")


def test_projections_to_a_rank_that_is_wide_are_no_networks(told):
    parts, _ = told(LOW_RANK.replace("rank=5", "rank=31"))
    assert not faults(parts["Small"])


MIXED_HEADS = """
class NAME(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.qkv = num_heads, nn.Linear(d_model, 3 * d_model)
        self.mix = nn.Linear(num_heads, num_heads)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in self.qkv(x).chunk(3, -1)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        weights = self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""

BESIDE_THE_KEYS = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attend = nn.MultiheadAttention(
            d_model, num_heads, add_zero_attn=ZERO, batch_first=True
        )

    def forward(self, x):
        return self.attend(x, x, x)[0] * x.shape[1] ** LENGTH
"""


def test_rows_that_do_not_sum_to_1_on_purpose_are_a_risk(told):
    name = "TalkingHeadAttention"
    parts, _ = told(MIXED_HEADS.replace("NAME", name))
    assert not faults(parts[name])
    assert "heads are mixed behind the softmax" in excuses(parts[name])
    parts, _ = told(MIXED_HEADS.replace("NAME", "SelfAttention"))
    assert faults(parts["SelfAttention"])
    text = BESIDE_THE_KEYS.replace("LENGTH", "0")
    parts, _ = told(text.replace("ZERO", "True"))
    assert not faults(parts["SelfAttention"])
    assert "a sink that takes a share" in excuses(parts["SelfAttention"])
    parts, _ = told(BESIDE_THE_KEYS.replace("ZERO", "False")
                    .replace("LENGTH", "1"))  # fmt: skip
    assert faults(parts["SelfAttention"])


CLASS_FIRST = """
class NAME(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.attend = nn.MultiheadAttention(
            d_model, num_heads, batch_first=True
        )

    def forward(self, x):
        first = self.attend(x[:, :1], x, x)[0]
        return torch.cat([first, x[:, 1:]], 1)
"""


def test_attention_of_the_first_row_alone_is_another_kind(told):
    parts, left = told(CLASS_FIRST.replace("NAME", "ClassAttention"))
    assert not parts
    assert "another kind of attention" in left["ClassAttention"]
    parts, _ = told(CLASS_FIRST.replace("NAME", "SelfAttention"))
    assert faults(parts["SelfAttention"])


AS_A_SET = """
class NAME(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in "qkvo"
        )

    def forward(self, x, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        scores = q @ k.mT / x.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        y = (q + scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return y + self.o(y).relu()
"""


def test_a_set_transformer_may_divide_by_the_root_of_the_width(told):
    parts, _ = told(AS_A_SET.replace("NAME", "SAB"))
    assert not faults(parts["SAB"])
    assert "the published Set Transformer" in excuses(parts["SAB"])
    parts, _ = told(AS_A_SET.replace("NAME", "Block"))
    assert "the root of d_model" in faults(parts["Block"])[0]
