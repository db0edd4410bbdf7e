"""Right code that wants other arguments, other shapes or other sizes.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, said, told_of

from companion.commands.check.target import targets
from companion.contracts import check
from companion.contracts.engine.scale import BY_THE_ROOT, Heard
from companion.contracts.multihead.multihead import Heads

KEYS_ALONE = """
class Attend(nn.Module):
    def forward(self, q, k, v, mask=None):
        scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            b, j = mask.shape
            scores = scores.masked_fill(~mask.view(b, 1, 1, j), -1e30)
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
"""


def test_heads_beside_a_mask_of_keys_are_asked_row_by_row(told):
    parts, _ = told(KEYS_ALONE)
    assert not faults(parts["Attend"])
    assert "its masks are (batch, key)" in said(parts["Attend"])
    parts, _ = told(KEYS_ALONE.replace("~mask.view", "mask.view"))
    assert "upside down" in told_of(parts["Attend"])


TWO_OR_FOUR = """
def attention(q, k, v, mask=None):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        if mask.ndim == 2:
            mask = mask[:, None, None, :]
        scores = scores.masked_fill(~mask, -1e30)
    return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
"""


def test_masks_may_have_two_axes_or_four_and_no_three(told):
    parts, _ = told(TWO_OR_FOUR)
    assert not faults(parts["attention"])
    late = TWO_OR_FOUR.replace(", -1e30", ", 0.0")
    assert faults(told(late)[0]["attention"])


WITH_A_BATCH = """
def attention(q, k, v, mask=None):
    rows = "b ... i d, b ... j d -> b ... i j".replace(" ", "")
    scores = torch.einsum(rows, q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    seen = "b...ij,b...jd->b...id"
    return torch.einsum(seen, scores.softmax(-1), v)
"""


def test_a_lone_sentence_gets_the_axis_for_the_batch_that_is_wanted(told):
    parts, _ = told(WITH_A_BATCH)
    assert not faults(parts["attention"])
    assert "it wants an axis for the batch" in said(parts["attention"])
    parts, _ = told(WITH_A_BATCH.replace(" * q.shape[-1] ** -0.5", ""))
    assert faults(parts["attention"])


SHORT = """
block_size = 8


class CausalAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.heads = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.out = nn.Linear(n_embd, n_embd)
        full = torch.ones(block_size, block_size)
        self.register_buffer("tril", full.tril())

    def forward(self, x):
        t, cut = x.shape[1], (self.heads, -1)
        q, k, v = (y.unflatten(-1, cut).transpose(1, 2)
                   for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.out(seen.flatten(2))
"""


def test_a_mask_of_eight_positions_is_asked_for_no_more(told):
    parts, _ = told(SHORT)
    assert not faults(parts["CausalAttention"])
    parts, _ = told(SHORT.replace("tril()", "tril(1)"))
    assert faults(parts["CausalAttention"])


HEAD = """
class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size):
        super().__init__()
        make = lambda: nn.Linear(n_embd, head_size, bias=False)
        self.q, self.k, self.v = make(), make(), make()
        full = torch.ones(block_size, block_size)
        self.register_buffer("tril", full.tril())

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
        return scores.softmax(-1) @ v
"""


def test_a_single_head_is_judged_as_wide_as_it_is(told):
    parts, _ = told(HEAD)
    assert not faults(parts["Head"])
    assert "its output, 4 wide, was filled up with zeros" in said(parts["Head"])
    parts, _ = told(HEAD.replace("* q.shape[-1]", "* x.shape[-1]"))
    [fault] = faults(parts["Head"])
    assert fault.startswith("The scores of each head are divided by √12")


CLASSIFIES = """
class ClassificationHead(nn.Module):
    def __init__(self, d_model, num_classes):
        super().__init__()
        self.up = nn.Linear(d_model, d_model)
        self.down = nn.Linear(d_model, num_classes)

    def forward(self, x):
        return self.down(torch.relu(self.up(x))).log_softmax(-1)
"""


def test_a_head_that_classifies_is_no_head_of_attention(told):
    parts, left = told(CLASSIFIES)
    assert not parts
    assert "It returned shape (2, 5, 11)" in left["ClassificationHead"]


BUILT_FOR_A_WIDTH = """
class Scaled(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.head_dim = d_model // num_heads

    def forward(self, queries, keys, values, attn_mask=None):
        scores = torch.einsum("nlhd,nshd->nhls", queries, keys)
        scores = scores / self.head_dim**0.5
        if attn_mask is not None:
            scores = scores + attn_mask
        return torch.einsum("nhls,nshd->nlhd", scores.softmax(-1), values)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, q, k, v, mask=None):
        scores = torch.matmul(q / self.temperature, k.transpose(2, 3))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return torch.matmul(scores.softmax(-1), v), scores
"""


def test_a_scale_for_the_heads_it_is_built_for_is_a_risk(told):
    parts, _ = told(BUILT_FOR_A_WIDTH)
    for name, number in (
        ("Scaled", "head_dim"),
        ("ScaledDotProductAttention", "temperature"),
    ):
        assert not faults(parts[name])
        assert f"these `{number}` is made" in excuses(parts[name])
    wrong = BUILT_FOR_A_WIDTH.replace("self.head_dim**0.5", "self.head_dim")
    assert faults(told(wrong)[0]["Scaled"])


SCHEDULES = """
from torch.optim.lr_scheduler import _LRScheduler


class ScheduledOptim:
    def __init__(self, optimizer, init_lr, d_model, n_warmup_steps):
        self.optimizer, self.init_lr = optimizer, init_lr
        self.d_model, self.warm, self.n = d_model, n_warmup_steps, 0

    def step_and_update_lr(self):
        self.n += 1
        rate = min(self.n**-0.5, self.n * self.warm**-1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.init_lr * self.d_model**-0.5 * rate
        self.optimizer.step()


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer, step=0):
        self.optimizer, self.made, self.factor = optimizer, step, factor
        self.size, self.warm = model_size, warmup

    def step(self):
        self.made += 1
        rate = min(self.made**-0.5, self.made * self.warm**-1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.factor * self.size**-0.5 * rate


class NoamScheduler(_LRScheduler):
    def __init__(self, optimizer, factor, model_size, warmup_steps):
        self.optimizer, self.factor = optimizer, factor
        self.size, self.warm, self.made = model_size, warmup_steps, 0

    def step(self):
        self.made += 1
        rate = min(self.made**-0.5, self.made * self.warm**-1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.factor * self.size**-0.5 * rate


class ScheduledOptimizer:
    def __init__(self, optimizer, init_lr, n_warmup_steps):
        self.optimizer, self.init_lr, self.n = optimizer, init_lr, 0

    def step(self):
        self.n += 1
"""


def test_schedules_are_asked_by_whatever_counts_their_steps(told):
    parts, left = told(SCHEDULES)
    assert {*parts} == {"ScheduledOptim", "NoamOpt", "NoamScheduler"}
    assert not any(map(faults, parts.values()))
    assert left["ScheduledOptimizer"].startswith("it warms up by a rule of its")
    wrong = SCHEDULES.replace("self.warm**-1.5", "self.warm**-0.5")
    parts, _ = told(wrong)
    assert all(map(faults, parts.values()))


SIZES = """
from dataclasses import dataclass


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff=None):
        super().__init__()
        d_ff = d_ff or 64 * int(8 * d_model / 3 // 64)
        self.up = nn.Linear(d_model, d_ff, bias=False)
        self.gate = nn.Linear(d_model, d_ff, bias=False)
        self.down = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


@dataclass(frozen=True)
class Config:
    vocab_size = 50304
    n_ctx = 1024
    d_model = 768
    n_heads = 12


class GPT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        d = config.d_model
        self.tok = nn.Embedding(config.vocab_size, d)
        self.pos = nn.Embedding(config.n_ctx, d)
        self.layer = nn.TransformerEncoderLayer(
            d, config.n_heads, batch_first=True
        )
        self.out = nn.Linear(d, config.vocab_size)

    def forward(self, ids):
        t = ids.shape[1]
        future = torch.ones(t, t).triu(1).bool()
        x = self.tok(ids) + self.pos(torch.arange(t))
        return self.out(self.layer(x, src_mask=future))


class BertConfig:
    def __init__(self, hidden_size=12, num_attention_heads=3):
        self.hidden_size = hidden_size
        self.num_attention_heads = num_attention_heads

    def __eq__(self, other):
        return self.__dict__ == other.__dict__


class BertSelfAttention(nn.Module):
    config_class = BertConfig

    def __init__(self, config: BertConfig):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            config.hidden_size, config.num_attention_heads, batch_first=True
        )

    def forward(self, x):
        return self.attention(x, x, x)[0]
"""


def test_sizes_are_chosen_with_which_there_is_something_to_judge(told):
    parts, _ = told(SIZES)
    assert not any(map(faults, parts.values()))
    assert {*parts} == {"SwiGLU", "GPT", "BertSelfAttention"}
    assert "d_model=24" in said(parts["SwiGLU"])
    assert "vocab_size=11" in said(parts["GPT"])


STACK = """
class EncoderLayer(nn.Module):
    def __init__(self, attention_block, dropout):
        super().__init__()
        self.attention_block = attention_block

    def forward(self, x, mask):
        return x + self.attention_block(x, x, x, mask)


class Encoder(nn.Module):
    def __init__(self, features, layers: nn.ModuleList):
        super().__init__()
        self.layers, self.norm = layers, nn.LayerNorm(features)

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
"""


def test_what_is_missing_is_named_as_an_argument_of_that_class(told):
    _, left = told(STACK)
    assert "its argument `layers` is" in left["Encoder"]
    assert "its argument `attention_block` is" in left["EncoderLayer"]


TABLE = """
def apply_rope(x, freqs):
    half = x.shape[-1] // 2
    cos, sin = freqs[: x.shape[2]].unbind(-1)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
"""


def test_cosines_and_sines_may_stand_in_one_table(told):
    parts, _ = told(TABLE)
    assert not faults(parts["apply_rope"])
    assert "cosines and sines in one table" in said(parts["apply_rope"])
    parts, _ = told(TABLE.replace("a * cos - b", "a * cos + b"))
    assert faults(parts["apply_rope"])


REORDERS = """
def apply_rope(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
"""


def test_neighbours_that_are_written_as_halves_are_a_note(told):
    parts, _ = told(REORDERS)
    assert not faults(parts["apply_rope"])
    assert "puts the dimensions into another order" in told_of(
        parts["apply_rope"]
    )
    parts, _ = told(REORDERS.replace("a * cos - b", "a * cos + b"))
    assert faults(parts["apply_rope"])


GAIN = """
def rms_norm(x, weight, eps=1e-6):
    size = x.float().square().mean(-1, keepdim=True) + eps
    return (x.float() * size.rsqrt() * (1.0 + weight.float())).to(x.dtype)
"""


def test_a_function_may_store_its_gain_less_one(told):
    parts, _ = told(GAIN)
    assert not faults(parts["rms_norm"])
    assert "as Gemma's" in excuses(parts["rms_norm"])
    assert faults(told(GAIN.replace("1.0 + ", "2.0 * "))[0]["rms_norm"])


MASKS = """
def create_causal_mask(seq_len: int, device: torch.device):
    return torch.ones(seq_len, seq_len, device=device).tril()


class AttentionBlock(nn.Module):
    def __init__(self, dimension, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dimension, 3 * dimension)
        self.out = nn.Linear(dimension, dimension)
        self.n1, self.n2 = nn.LayerNorm(dimension), nn.LayerNorm(dimension)
        self.ff = nn.Sequential(
            nn.Linear(dimension, 16), nn.ReLU(), nn.Linear(16, dimension)
        )

    def forward(self, inputs, blocked=None):
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for t in self.qkv(inputs).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if blocked is not None:
            scores = scores.masked_fill(blocked, float("-inf"))
        seen = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        hidden = self.n1(inputs + self.out(seen))
        return self.n2(hidden + self.ff(hidden))
"""


def test_masks_may_want_a_device_or_be_called_blocked(told):
    parts, _ = told(MASKS)
    assert not any(map(faults, parts.values()))
    assert "If True hides in your masks" in said(parts["AttentionBlock"])
    wrong = MASKS.replace("tril()", "tril(1)").replace(
        "scores = scores.masked_fill", "scores.masked_fill"
    )
    parts, _ = told(wrong)
    assert all(map(faults, parts.values()))


def test_an_expression_may_be_longer_than_the_name_of_a_file():
    call = f"mine.py:Model({', '.join(f'argument_{i}={i}' for i in range(40))})"
    [target] = targets(call)
    assert str(target.path) == "mine.py"
    assert target.name == call.removeprefix("mine.py:")


REMEMBERS = """
class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        rates = 10000 ** (-torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("rates", rates)
        self.register_buffer("known", torch.zeros(512, dim))
        self.known_rows = 0

    def turn(self, x):
        n = x.shape[-2]
        if self.known_rows < n:
            angles = torch.arange(n)[:, None] * self.rates
            self.known[:n] = angles.repeat_interleave(2, dim=-1)
            self.known_rows = n
        angles = self.known[:n]
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        other = torch.stack((-b, a), dim=-1).flatten(-2)
        return x * angles.cos() + other * angles.sin()


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.rotary = Rotary(dim // heads)
        self.rotary.apply = staticmethod(len)  # It cannot be copied so.
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for t in self.qkv(self.norm(x)).chunk(3, -1))
        scores = self.rotary.turn(q) @ self.rotary.turn(k).mT
        weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_what_a_module_remembers_is_put_back_with_its_numbers(told):
    parts, _ = told(REMEMBERS)
    assert not faults(parts["Attention"])
    assert "still knows no order" not in told_of(parts["Attention"])
    assert "rate of dropout" not in told_of(parts["Attention"])
    assert "It knows how far apart positions are" in told_of(parts["Attention"])


ROTATES = """
class RotaryPositionalEmbedding(nn.Module):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        rates = theta ** (-torch.arange(0, d_k, 2).float() / d_k)
        angles = torch.outer(torch.arange(max_seq_len).float(), rates)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x, token_positions):
        cos, sin = self.cos[token_positions], self.sin[token_positions]
        if cos.dim() == 2:
            cos, sin = cos[None], sin[None]
        a, b = x[..., 0::2], x[..., 1::2]
        turned = a * cos - b * sin, a * sin + b * cos
        return torch.stack(turned, -1).flatten(-2)


class RotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rates = 10000 ** (-torch.arange(0, dim, 2).float() / dim)

    def forward(self, x, seq_len):
        angles = torch.outer(torch.arange(seq_len).float(), self.rates)
        angles = angles.repeat_interleave(2, -1)
        a, b = x[..., 0::2], x[..., 1::2]
        other = torch.stack((-b, a), -1).flatten(-2)
        return x * angles.cos() + other * angles.sin()
"""


def test_a_rotation_may_want_a_batch_or_a_length(told):
    parts, _ = told(ROTATES)
    assert not any(map(faults, parts.values()))
    assert "has an axis for the batch" in excuses(
        parts["RotaryPositionalEmbedding"]
    )
    wrong = ROTATES.replace("a * cos - b", "a * cos + b")
    wrong = wrong.replace("(-b, a)", "(b, a)")
    parts, _ = told(wrong)
    assert all(map(faults, parts.values()))


OTHER_ROTATIONS = """
def other(x):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((-b, a), -1).flatten(-2)


def apply_rotary_pos_emb(t, freqs, scale=1):
    freqs = freqs[:, -t.shape[-2] :, :]
    freqs = freqs[:, None] if t.ndim == 4 else freqs
    return t * freqs.cos() * scale + other(t) * freqs.sin() * scale


class RotaryEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rates = 10000 ** (-torch.arange(0, dim, 2).float() / dim)

    def forward(self, x, seq_len):
        angles = torch.outer(torch.arange(seq_len).float(), self.rates)
        angles = torch.cat((angles, angles), -1)
        return angles.cos()[None, :, None], angles.sin()[None, :, None]


class RoPE(RotaryEmbedding):
    def forward(self, q, k, positions):
        angles = (positions.float()[..., None] * self.rates)[:, None]
        return self.turn(q, angles), self.turn(k, angles)

    def turn(self, x, angles):
        cos, sin = angles.cos(), angles.sin()
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
"""


def test_rotations_may_get_angles_or_positions_or_make_tables(told):
    parts, _ = told(OTHER_ROTATIONS)
    assert {*parts} == {"apply_rotary_pos_emb", "RotaryEmbedding", "RoPE"}
    assert not any(map(faults, parts.values()))
    assert "it got the angles to turn by" in said(parts["apply_rotary_pos_emb"])
    wrong = OTHER_ROTATIONS.replace("(-b, a)", "(b, a)")
    wrong = wrong.replace("a * cos - b", "a * cos + b")
    parts, _ = told(wrong.replace("10000 **", "100 *"))
    assert all(map(faults, parts.values()))


NO_MASK = """
def scaled_dot_product_attention(Q, K, V):
    scores = Q @ K.transpose(-2, -1) / Q.shape[2] ** 0.5
    return torch.softmax(scores, dim=-1) @ V
"""


def test_a_function_of_three_vectors_alone_is_judged_within_heads(told):
    parts, _ = told(NO_MASK)
    part = parts["scaled_dot_product_attention"]
    assert part["component"] == "multihead"
    assert not faults(part)
    wrong = NO_MASK.replace("dim=-1", "dim=1")
    assert faults(told(wrong)[0]["scaled_dot_product_attention"])


IN_PLACE = """
class Attention(nn.Module):
    def __init__(self, d_model, n_head, dropout=0.6):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, n_head, batch_first=True)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)

    def forward(self, x):
        out = self.dropout(torch.relu(self.inner(x, x, x)[0]))
        out += x
        return self.norm(out)
"""


def test_what_is_changed_in_place_behind_dropout_is_a_risk(told):
    parts, _ = told(IN_PLACE)
    assert not faults(parts["Attention"])
    assert "It trains with a rate of dropout" in excuses(parts["Attention"])
    bare = IN_PLACE.replace("self.dropout(torch", "(torch")
    assert faults(told(bare)[0]["Attention"])


ROWS_ALONE = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        i = torch.arange(0, d_model, 2) / d_model
        angles = torch.arange(max_len)[:, None] / 10000**i
        rows = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("rows", rows)

    def forward(self, x):
        batch, seq, width = x.size()
        return self.rows[:seq]
"""


def test_rows_of_positions_alone_are_added_to_vectors(told):
    parts, _ = told(ROWS_ALONE)
    assert not faults(parts["PositionalEncoding"])
    assert "it returns positions alone" in said(parts["PositionalEncoding"])
    twice = ROWS_ALONE.replace("d_model, 2) / d", "d_model, 2) * 2 / d")
    parts, _ = told(twice)
    assert faults(parts["PositionalEncoding"])


UNCUT = """
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model, n_heads, context_size):
        super().__init__()
        self.core = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        hidden = torch.ones(context_size, context_size).triu(1).bool()
        self.register_buffer("hidden", hidden)

    def forward(self, x):
        return self.core(
            x, x, x, attn_mask=self.hidden, need_weights=False, is_causal=True
        )[0]
"""


def test_pytorch_does_not_look_at_a_mask_beside_is_causal(told):
    parts, _ = told(UNCUT)
    assert not faults(parts["CausalSelfAttention"])
    # With the weights it does.
    wrong = UNCUT.replace("need_weights=False, ", "").replace("u(1)", "u(2)")
    parts, _ = told(wrong)
    assert faults(parts["CausalSelfAttention"])


WITHOUT_WEIGHTS = """
class ScaledDotProductAttention(nn.Module):
    def __init__(self, d_k):
        super().__init__()
        self.d_k = d_k

    def forward(self, query, key, value, attn_mask):
        scores = query @ key.transpose(-2, -1) / self.d_k ** 0.5
        scores = scores.masked_fill(attn_mask, -1e9)
        return scores.softmax(-1) @ value
"""


def test_a_scale_is_judged_by_queries_and_keys_that_come_in(told):
    parts, _ = told(WITHOUT_WEIGHTS)
    name = "ScaledDotProductAttention"
    assert parts[name]["component"] == "attention"
    assert not faults(parts[name])
    assert "right if its heads have 4 numbers" in excuses(parts[name])
    unscaled = WITHOUT_WEIGHTS.replace(" / self.d_k ** 0.5", "")
    parts, _ = told(unscaled)
    assert "The scores are not scaled" in faults(parts[name])[0]
    parts, _ = told(unscaled.replace("ScaledDot", "Dot"))
    assert not faults(parts["DotProductAttention"])
    assert "as in Luong's attention" in excuses(parts["DotProductAttention"])


MEMORY_FIRST = """
class CrossAttention(nn.Module):
    def __init__(self, dim, heads=3):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, encoder_embs, x, query_pos=None, key_pos=None):
        if query_pos is not None:
            x = x + query_pos
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in (self.q(x), self.k(encoder_embs), self.v(encoder_embs))
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""


def test_attention_may_take_the_memory_first_and_positions_behind(told):
    parts, _ = told(MEMORY_FIRST)
    assert not told_of(parts["CrossAttention"])
    parts, _ = told(MEMORY_FIRST.replace("self.v(encoder_embs)", "self.v(x)"))
    assert "For 5 queries and 10 keys" in told_of(parts["CrossAttention"])
    parts, _ = told(MEMORY_FIRST.replace("q.shape[-1]", "x.shape[-1]"))
    assert "√12" in faults(parts["CrossAttention"])[0]


A_SCALE = """
class AttentionHead(nn.Module):
    def forward(self, q, k, v, scale=None):
        scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
        return scores.softmax(-1) @ v
"""


def test_a_scale_behind_three_vectors_is_no_mask(told):
    parts, _ = told(A_SCALE)
    assert not faults(parts["AttentionHead"])
    parts, _ = told(A_SCALE.replace("softmax(-1)", "softmax(-2)"))
    assert "over the queries" in faults(parts["AttentionHead"])[0]


ROWS_FOR_ALL = """
class LearnedPositions(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.table = nn.Embedding(max_len, d_model)

    def forward(self, x):
        at = torch.arange(x.size(1))
        return self.table(at.expand(x.size(0), -1))
"""


def test_positions_may_be_returned_for_each_sentence(told):
    parts, _ = told(ROWS_FOR_ALL)
    assert parts["LearnedPositions"]["component"] == "add_positions"
    assert not faults(parts["LearnedPositions"])
    parts, _ = told(ROWS_FOR_ALL.replace("x.size(1))", "x.size(1)) % 3"))
    assert faults(parts["LearnedPositions"])


FROM_ONE = """
class Heads(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, attention_mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if attention_mask is not None:
            scores = scores + (1 - attention_mask) * -1e9
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_a_mask_that_is_subtracted_from_one_is_not_read_as_added(told):
    parts, _ = told(FROM_ONE)
    assert not faults(parts["Heads"])
    assert "its masks are numbers, 1 and 0" in said(parts["Heads"])
    # As one that is added it would hide, for 1 - (−∞) is infinite.
    parts, _ = told(FROM_ONE.replace("-1e9", "-1e-9"))
    assert "The mask is not used" in faults(parts["Heads"])[0]


OF_ONE_LENGTH = """
class CausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_in, d_out) for _ in range(3))
        future = torch.ones(context_length, context_length).triu(1)
        self.register_buffer("future", future.bool())

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / x.shape[-1] ** 0.5
        scores = scores.masked_fill(self.future, -torch.inf)
        return scores.softmax(-1) @ self.v(x)
"""


def test_what_takes_one_length_is_built_anew_for_each(told):
    parts, left = told(OF_ONE_LENGTH)
    assert left == {}
    assert not faults(parts["CausalAttention"])
    assert "was built anew for each" in said(parts["CausalAttention"])
    parts, _ = told(OF_ONE_LENGTH.replace("scores = scores.m", "scores.m"))
    assert "which is in its future" in faults(parts["CausalAttention"])[0]
    parts, _ = told(OF_ONE_LENGTH.replace(" / x.shape[-1] ** 0.5", ""))
    assert "not divided by anything" in faults(parts["CausalAttention"])[0]


DROPPED_IN_FRONT = """
class TransformerBlock(nn.Module):
    def __init__(self, d_model, nhead, num_layers, dropout=0.1):
        super().__init__()
        self.places = nn.Parameter(torch.randn(64, d_model))
        self.drop = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead, 24, dropout, batch_first=True
        )
        self.stack = nn.TransformerEncoder(layer, num_layers)

    def forward(self, x):
        return self.stack(self.drop(x + self.places[: x.size(1)]))
"""


def test_dropout_on_the_sum_of_embeddings_is_no_note_of_a_layer(told):
    parts, _ = told(DROPPED_IN_FRONT)
    assert "Dropout" not in contracts(parts["TransformerBlock"])


SCALED_IF_ASKED = """
class Attention(nn.Module):
    def __init__(self, nx, n_ctx, n_head, scale=False):
        super().__init__()
        self.heads, self.scale = n_head, scale
        self.register_buffer("past", torch.ones(n_ctx, n_ctx).tril())
        self.qkv, self.out = nn.Linear(nx, 3 * nx), nn.Linear(nx, nx)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT
        if self.scale:
            scores = scores / v.size(-1) ** 0.5
        n = x.size(1)
        scores = scores.masked_fill(self.past[:n, :n] == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_what_scales_if_it_is_asked_to_is_asked(told):
    parts, _ = told(SCALED_IF_ASKED)
    assert not faults(parts["Attention"])
    assert "scale=True" in said(parts["Attention"])
    parts, _ = told(SCALED_IF_ASKED.replace("v.size(-1) ** 0.5", "1"))
    assert "not divided by anything" in faults(parts["Attention"])[0]


BESIDE_IS_CAUSAL = (
    UNCUT
    + """

class Block(nn.Module):
    def __init__(self, d_model, n_heads, context_size):
        super().__init__()
        self.attend = CausalSelfAttention(d_model, n_heads, context_size)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return x + self.attend(self.norm(x))
"""
)


def test_nor_does_it_in_a_block(told):
    parts, _ = told(BESIDE_IS_CAUSAL)
    assert not faults(parts["Block"])
    spare = "        self.spare = nn.LayerNorm(d_model)\n\n    def forward"
    parts, _ = told(BESIDE_IS_CAUSAL.replace("\n    def forward", spare))
    assert any("takes no part" in fault for fault in faults(parts["Block"]))


FLAG = """
class DotAttention(nn.Module):
    def forward(self, queries, keys, values, flag):
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        return scores.softmax(-1) @ values
"""


def test_a_required_flag_behind_three_vectors_is_no_mask(told):
    parts, _ = told(FLAG)
    assert not faults(parts["DotAttention"])
    parts, _ = told(FLAG.replace("softmax(-1)", "softmax(-2)"))
    assert "over the queries" in faults(parts["DotAttention"])[0]


PATHS = """
class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return x


class Block(nn.Module):
    def __init__(self, dim: int, num_heads: int, drop_path: float):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.MultiheadAttention(dim, num_heads, batch_first=True)
        self.path = DropPath(drop_path) if drop_path > 0 else nn.Identity()

    def forward(self, x):
        y = self.norm(x)
        return x + self.path(self.attend(y, y, y, need_weights=False)[0])
"""


def test_what_is_said_to_be_a_number_is_no_module(told):
    parts, left = told(PATHS)
    assert "Block" not in left
    assert not faults(parts["Block"])
    parts, _ = told(PATHS.replace("y = self.norm(x)", "y = self.norm(x[:1])"))
    assert faults(parts["Block"])


NEVER_BEGUN = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        self.heads = num_heads

    def forward(self, x):
        return x
"""


def test_a_module_that_never_calls_super_is_told_so(told):
    _, left = told(NEVER_BEGUN)
    assert "never calls `super().__init__()`" in left["Attention"]


THREE_AXES_OF_A_GAIN = """
class LayerNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * self.scale.view(1, 1, -1) + self.shift.view(1, 1, -1)
"""


def test_a_gain_of_three_axes_is_a_risk(told):
    parts, _ = told(THREE_AXES_OF_A_GAIN)
    assert not faults(parts["LayerNorm"])
    assert "Vectors without a batch" in excuses(parts["LayerNorm"])
    parts, _ = told(THREE_AXES_OF_A_GAIN.replace("rsqrt", "sqrt"))
    assert "LayerNorm" not in parts or faults(parts["LayerNorm"])


OF_PARTS = """
class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, h, batch_first=True)

    def forward(self, query, key, value, mask=None):
        return self.inner(query, key, value, attn_mask=mask)[0]


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())


class EncoderLayer(nn.Module):
    def __init__(self, size, self_attn, feed_forward):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.one, self.two = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x):
        x = self.one(x + self.self_attn(x, x, x))
        return self.two(x + self.feed_forward(x))
"""


def test_a_layer_gets_the_attention_and_the_network_of_its_file(told):
    parts, left = told(OF_PARTS)
    assert "EncoderLayer" not in left
    assert not faults(parts["EncoderLayer"])
    assert "feed_forward=PositionwiseFeedForward" in said(parts["EncoderLayer"])
    parts, _ = told(OF_PARTS.replace("self.two(x", "self.one(x"))
    assert "takes no part" in faults(parts["EncoderLayer"])[0]
    # Of two it cannot be told which one is meant.
    _, left = told(
        f"{OF_PARTS}\n\nclass OtherAttention(nn.Module):\n    pass\n"
    )
    assert "nothing says what its argument" in left["EncoderLayer"]


def test_what_a_listener_cannot_read_is_no_mistake_of_theirs(monkeypatch):
    def fails(heard, args, kwargs):
        raise RuntimeError("unheard of")

    assert BY_THE_ROOT in check("multihead", Heads()).held
    monkeypatch.setattr(Heard, "hear_softmax", fails)
    report = check("multihead", Heads())
    assert report.passed, str(report)
    assert BY_THE_ROOT in " ".join(report.assumed)


THREE_NAMES = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.wq, self.wk = (nn.Linear(d_model, d_model) for _ in range(2))
        self.wv, self.wo = (nn.Linear(d_model, d_model) for _ in range(2))

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, ARGUMENTS, mask=None):
        q = self.split(self.wq(ASKS))
        k = self.split(self.wk(key))
        v = self.split(self.wv(GATHERED))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize("order", ["query, key, value", "value, key, query"])
def test_values_that_ask_and_queries_that_are_gathered_are_a_risk(told, order):
    text = THREE_NAMES.replace("ARGUMENTS", order)
    right = text.replace("ASKS", "query").replace("GATHERED", "value")
    parts, _ = told(right)
    assert "exchanged" not in told_of(parts["MultiHeadAttention"])
    wrong = text.replace("ASKS", "value").replace("GATHERED", "query")
    parts, _ = told(wrong)
    assert not faults(parts["MultiHeadAttention"])
    assert "it gathers `query`, and `value` asks" in told_of(
        parts["MultiHeadAttention"]
    )
