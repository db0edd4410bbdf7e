"""``check`` finds faults that it once missed, in code written in that style.

It builds a class with small sizes and without dropout: what shows only with
others has to be looked for.
"""

from pathlib import Path

import pytest
from commands.parts import excuses, faults, told_of

from companion.commands import main
from companion.commands.check import worst
from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target

pytestmark = pytest.mark.once

BEGIN = """
from dataclasses import dataclass
import torch
import torch.nn.functional as F
from torch import nn
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A name is not folded then.

    def write(text, name="mine.py"):
        path = Path(name)
        path.write_text(BEGIN + text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def told(written):
    def judge(text, name="", **asked):
        section = judged(Target(written(text), name=name), Asked(**asked))
        assert not section.error
        parts = {p["name"]: p for p in section.parts}
        left = {one["name"]: one["reason"] for one in section.unjudged}
        return parts, left

    return judge


@pytest.fixture
def printed(capfd):
    def run(*args):
        code = main(["check", *map(str, args)])
        return code, " ".join(capfd.readouterr().out.split())

    return run


def messages(part, level="fault"):
    groups = part["found"]["failed"]
    return [g["message"] for g in groups if g["level"] == level]


def said(part):
    return " ".join(part["found"]["assumed"])


LOOKS = """
class Looks(nn.Module):
    def __init__(self, HOW):
        super().__init__()
        self.heads, self.p = SIZES
        self.drop = nn.Dropout(self.p)
        self.three, self.out = (nn.Linear(12, n * 12) for n in (3, 1))

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.three(x).chunk(3, -1)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        y = DROPPED @ v
        return self.out(y.transpose(1, 2).flatten(2))
"""
PLAIN = LOOKS.replace("HOW", "d_model, num_heads, dropout=0.1").replace(
    "SIZES", "num_heads, dropout"
)
OF_CONFIG = """
@dataclass
class Config:
    num_heads: int = 3
    attn_pdrop: float = 0.1

""" + LOOKS.replace("HOW", "config: Config").replace(
    "SIZES", "config.num_heads, config.attn_pdrop"
)
OF_ANY_CONFIG = LOOKS.replace("HOW", "cfg").replace(
    "SIZES", "cfg.num_heads, cfg.dropout"
)
ON = "F.dropout(weights, self.p)"
IN_FORWARD = "nn.Dropout(self.p)(weights)"
LOST = "`F.dropout` needs `training=self.training`"


@pytest.mark.parametrize("style", [PLAIN, OF_CONFIG, OF_ANY_CONFIG])
@pytest.mark.parametrize("dropped", [ON, IN_FORWARD])
def test_dropout_that_stays_on_in_evaluation_is_a_fault(told, style, dropped):
    parts, _ = told(style.replace("DROPPED", dropped))
    (message,) = messages(parts["Looks"])
    assert "in eval mode, the second call differs: dropout is on" in message
    assert LOST in message
    assert parts["Looks"]["found"]["failed"][0]["names"] == [
        "The same inputs give the same output"
    ]


@pytest.mark.parametrize("style", [PLAIN, OF_CONFIG, OF_ANY_CONFIG])
@pytest.mark.parametrize(
    "dropped",
    [
        "self.drop(weights)",
        "F.dropout(weights, self.p, training=self.training)",
        "F.dropout(weights, self.p if self.training else 0.0)",
        # What it keeps changes what it returns, and no dropout is drawn.
        "self.kept(weights)",
    ],
)
def test_dropout_that_eval_switches_off_is_none(told, style, dropped):
    keeps = """
    def kept(self, weights):
        self.calls = getattr(self, "calls", 0) + (self.p > 0)
        return weights * (1 + self.calls)
"""
    parts, _ = told((style + keeps).replace("DROPPED", dropped))
    assert worst(parts["Looks"]["found"]) == ""


LAYER = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads, layer_drop=0.1):
        super().__init__()
        self.p = layer_drop
        self.inside = nn.TransformerEncoderLayer(
            d_model, num_heads, 24, batch_first=True
        )

    def forward(self, x):
        keep = torch.rand(len(x), 1, 1) > self.p
        return torch.where(keep IN_TRAINING, self.inside(x), x)


class Talks(nn.Module):
    def __init__(self, vocab_size, d_model, dropout):
        super().__init__()
        self.p = dropout
        self.words = nn.Embedding(vocab_size, d_model)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = F.dropout(self.words(ids), self.p, IN_USE)
        at = torch.arange(1, ids.shape[1] + 1)[:, None]
        return self.out(F.silu((x * at).cumsum(1) / at))


def make_model(vocab_size, d_model, dropout=0.1):
    return Talks(vocab_size, d_model, dropout)
"""


def test_layers_models_and_what_builds_them_are_heard_too(told):
    wrong = LAYER.replace("IN_TRAINING", "").replace("IN_USE", "True")
    parts, _ = told(wrong)
    for name in ("Layer", "Talks", "make_model"):
        assert LOST in " ".join(messages(parts[name])), name
    right = LAYER.replace("IN_TRAINING", "| (not self.training)")
    parts, _ = told(right.replace("IN_USE", "self.training"))
    for name in ("Layer", "Talks", "make_model"):
        assert not messages(parts[name]), name


def test_a_module_in_eval_mode_is_not_told_to_be_put_there(told):
    instance = (
        PLAIN.replace("DROPPED", IN_FORWARD)
        + """
# checks: causal_attention
looks = Looks(12, 3).eval()
"""
    )
    parts, _ = told(instance)
    (message,) = messages(parts["looks"])
    assert "The second call differs: dropout is on in evaluation" in message
    assert LOST in message
    assert "call `.eval()`" not in message


LISTED = """
class Layers(nn.Module):
    def __init__(self, d_model, num_heads, num_layers):
        super().__init__()
        self.layers = [
            nn.TransformerEncoderLayer(d_model, num_heads, 24, RATE,
                                       batch_first=True)
            for _ in range(num_layers)
        ]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


@pytest.mark.parametrize("rate", ["0.1", "0.0"])
def test_layers_that_nothing_trains_are_a_fault_with_dropout_too(
    written, printed, rate
):
    code, out = printed(written(LISTED.replace("RATE", rate)))
    assert code == 1
    assert "`layers` is a plain list: what it holds is not among the" in out
    assert "1 file, 1 part judged, 1 with faults, 0 not judged" in out


def test_a_layer_that_is_lent_is_no_fault(told):
    lent = LISTED.replace("range(num_layers)", "range(1)")
    parts, left = told(lent.replace("RATE", "0.1"))
    assert not parts
    assert "`layers` is a plain list" in left["Layers"]


WAITS = """
class Waits(nn.Module):
    def __init__(self, d_model, vocab_size):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.to_logits = nn.Linear(d_model, vocab_size)
        self.memory = None

    def encode(self, src):
        self.memory = self.words(src).mean(1, keepdim=True)

    def forward(self, ids):
        if self.memory is None:
            return ids
        return self.to_logits(self.words(ids) + self.memory)


class Drops(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(x, self.p, self.training)
"""


@pytest.mark.parametrize("name", ["", ":Waits"])
def test_what_gives_back_what_goes_in_is_listed_if_it_has_weights(
    written, printed, name
):
    code, out = printed(f"{written(WAITS)}{name}")
    assert code == 2
    assert "Waits: it gives back what goes in, and has weights" in out
    assert "0 parts judged, 0 with faults, 1 not judged" in out


def test_what_does_nothing_in_use_is_listed_if_it_is_asked_for(
    written, printed
):
    code, out = printed(f"{written(WAITS)}:Drops")
    assert code == 2
    assert "Drops: in use it does nothing" in out


ALONE = """
class Alone(nn.Module):
    def __init__(self, embed_dim, n_query):
        super().__init__()
        self.heads = n_query
        self.q = nn.Linear(embed_dim, n_query * embed_dim)
        self.k, self.v = (nn.Linear(embed_dim, embed_dim) for _ in "kv")
        self.out = nn.Linear(n_query * embed_dim, embed_dim)

    def forward(self, x, mask=None):
        seq, width = x.shape
        q = self.q(x).view(seq, self.heads, width).transpose(0, 1)
        scores = q @ self.k(x).T / width**0.5
        if mask is not None:
            lowest = torch.finfo(scores.dtype).min
            scores = scores.masked_fill(mask == 0, lowest)
        y = scores.softmax(-1) @ self.v(x)
        return self.out(y.transpose(0, 1).flatten(1))


class Rows(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.up, self.down = (nn.Linear(embed_dim, embed_dim) for _ in "ud")

    def forward(self, x):
        batch, width = x.shape
        return self.down(self.up(x).relu())
"""


def test_what_takes_one_sentence_is_told_its_adapter_and_right_with_it(told):
    _, left = told(ALONE)
    assert (
        "if it is meant so, judge `adapters.one_sentence(…)`" in left["Alone"]
    )
    assert "one_sentence" not in left["Rows"]
    parts, _ = told(
        ALONE
        + """
from companion.contracts import adapters

# checks: multihead
each = adapters.one_sentence(Alone(12, 3))
"""
    )
    assert parts["each"]["found"]["headline"].startswith("multihead: no fault")
    assert not messages(parts["each"])


@pytest.mark.parametrize(
    "name",
    [
        "n_query",
        "num_queries",
        "n_q",
        "q_heads",
        "query_heads",
        "encoder_attention_heads",
        "num_encoder_heads",
        "n_decoder_heads",
        "enc_heads",
    ],
)
def test_a_number_of_heads_goes_by_many_names(told, name):
    style = PLAIN.replace("DROPPED", "weights").replace("num_heads", name)
    parts, _ = told(style)
    assert f"{name}=3" in said(parts["Looks"])


RATES = """
class Attends(nn.Module):
    def __init__(self, d_model, causal=False, dropout=0.1):
        super().__init__()
        self.three, self.causal = nn.Linear(d_model, 3 * d_model), causal
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.three(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(self.causal))
        return self.drop(y)


class Layer(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.attend, self.drop = Attends(d_model, HANDED), nn.Dropout(dropout)
        self.norm, self.wide = nn.LayerNorm(d_model), nn.Linear(d_model, d_ff)
        self.narrow = nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x + self.attend(self.norm(x))
        return self.norm(x + self.drop(self.narrow(self.wide(x).relu())))
"""


@pytest.mark.parametrize(
    ("handed", "risks"), [("dropout=dropout", 0), ("dropout", 1)]
)
def test_a_rate_that_is_handed_to_another_argument_is_a_risk(
    told, handed, risks
):
    parts, _ = told(RATES.replace("HANDED", handed))
    assert not messages(parts["Layer"])
    found = messages(parts["Layer"], "risk")
    assert len(found) == risks, found
    assert all("something else than without dropout" in m for m in found)


TWO_MATRICES = """
class NAME(nn.Module):
    def __init__(self, SIZE, ffn_dim, WORDS=99):
        super().__init__()
        self.wide, self.narrow = nn.Linear(SIZE, 24), nn.Linear(24, SIZE)

    def forward(self, x):
        return self.narrow(self.wide(x))

"""


@pytest.mark.parametrize(
    ("name", "size", "words"),
    [
        ("FFN", "n_dim", "words"),
        ("FeedForwardBlock", "ndim", "n_voc"),
        ("PointWiseFeedForward", "n_dims", "voc_size"),
        ("PoswiseFeedForwardNet", "num_features", "voc"),
        ("PositionWiseFFN", "ffn_num_outputs", "n_items"),
    ],
)
def test_names_of_networks_and_sizes_are_known(told, name, size, words):
    style = TWO_MATRICES.replace("NAME", name).replace("SIZE", size)
    parts, _ = told(style.replace("WORDS", words))
    assert parts[name]["component"] == "feed_forward"
    assert "not linear" in parts[name]["found"]["failed"][0]["names"][0]
    assert f"{size}=12, ffn_dim=24, {words}=11" in said(parts[name])


def test_rates_and_ratios_go_by_many_names(told):
    wanted = "dp1_rate, ffn_dp, encoder_ffn_rate, ff_expansion, groups"
    style = TWO_MATRICES.replace("self, SIZE", f"self, {wanted}, SIZE")
    parts, _ = told(
        style.replace("NAME", "FFN")
        .replace("SIZE", "d_model")
        .replace("WORDS", "more")
    )
    rates = "dp1_rate=0.0, ffn_dp=0.0, encoder_ffn_rate=0.0"
    assert f"FFN({rates}, ff_expansion=2, groups=3" in said(parts["FFN"])


def test_what_is_handed_to_dropout_is_its_rate(told):
    style = TWO_MATRICES.replace("self, SIZE", "self, dp_a, SIZE")
    style = style.replace("NAME", "FFN").replace("SIZE", "d_model")
    style = style.replace("WORDS", "more")
    _, left = told(style)
    assert "its argument `dp_a` is" in left["FFN"]
    drops = "super().__init__()\n        self.drop = nn.Dropout(p=dp_a)"
    parts, _ = told(style.replace("super().__init__()", drops))
    assert "FFN(dp_a=0.0" in said(parts["FFN"])


def test_q_and_v_are_widths_of_a_head_where_both_are_wanted(told):
    style = TWO_MATRICES.replace("self, SIZE", "self, q, v, SIZE")
    style = style.replace("SIZE", "d_model").replace("WORDS", "more")
    parts, _ = told(style.replace("NAME", "FFN"))
    assert "built as FFN(q=4, v=4, d_model=12" in said(parts["FFN"])
    _, left = told(style.replace("NAME", "MLP").replace("q, v, ", "v, "))
    assert "its argument `v` is" in left["MLP"]


ASKS_ANOTHER = """
class Asks(nn.Module):
    def __init__(self, n_channels):
        super().__init__()
        self.q, self.kv = nn.Linear(n_channels, 12), nn.Linear(n_channels, 24)
        self.o = nn.Linear(12, n_channels)

    def forward(self, NAMES, mask=None):
        k, v = self.kv(KEYS).chunk(2, -1)
        scores = self.q(QUERIES) @ k.mT / 12**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.o(scores.softmax(AXIS) @ v)


class Layer(nn.Module):
    def __init__(self, n_hidden):
        super().__init__()
        self.one, self.two = Asks(n_hidden), Asks(n_hidden)
        self.norm, self.wide = nn.LayerNorm(n_hidden), nn.Linear(n_hidden, 24)
        self.narrow = nn.Linear(24, n_hidden)

    def forward(self, NAMES, mask=None):
        QUERIES = self.norm(QUERIES + self.one(QUERIES, QUERIES))
        both = QUERIES + self.two(NAMES, mask)
        return self.norm(both + self.narrow(self.wide(both).relu()))
"""


@pytest.mark.parametrize(
    ("queries", "keys", "names"),
    [
        ("x", "y", "x, y"),
        ("x", "memory", "x, memory"),
        ("tgt", "src", "src, tgt"),
        ("target", "source", "target, source"),
    ],
)
def test_attention_to_another_sequence_is_judged_and_a_decoder_is_none(
    told, queries, keys, names
):
    style = ASKS_ANOTHER.replace("QUERIES", queries).replace("KEYS", keys)
    style = style.replace("NAMES", names)
    parts, left = told(style.replace("AXIS", "-1"))
    assert parts["Asks"]["component"] == "multihead"
    assert not messages(parts["Asks"])
    assert "it was called as (x, x, mask)" in said(parts["Asks"])
    assert "a decoder" in left["Layer"]


def test_a_softmax_over_the_queries_of_another_sequence_is_a_fault(told):
    style = ASKS_ANOTHER.replace("QUERIES", "x").replace("KEYS", "y")
    parts, _ = told(style.replace("NAMES", "x, y").replace("AXIS", "1"))
    assert "softmax" in messages(parts["Asks"])[0]


BUILT_WRONGLY = """
class Attention(nn.Module):
    def __init__(self, d_model, pieces=5):
        super().__init__()
        self.qkv, self.pieces = nn.Linear(d_model, 3 * d_model), pieces

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.pieces, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v)
        return y.transpose(1, 2).flatten(2)
"""


def test_what_raises_in_every_call_says_how_it_was_built(told):
    parts, left = told(BUILT_WRONGLY.replace("pieces=5", "pieces=7"))
    assert not parts
    assert "It was built as Attention(d_model=12). Only a" in left["Attention"]


def test_a_number_of_heads_that_stands_inside_gets_a_width_it_divides(told):
    parts, _ = told(BUILT_WRONGLY)
    assert not faults(parts["Attention"])
    assert "d_model=120" in said(parts["Attention"])
    joined = "y.transpose(1, 2).flatten(2)"
    parts, _ = told(BUILT_WRONGLY.replace(joined, "y.reshape(x.shape)"))
    assert faults(parts["Attention"])


STACK_OF_LAYERS = """
class EncoderBlock(nn.Module):
    def __init__(self, d_model: int, heads: int):
        super().__init__()
        self.look = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        y = self.norm(x)
        return x + self.look(y, y, y)[0]


class Norm(nn.Module):
    def __init__(self, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        apart = x - x.mean(-1, keepdim=True)
        root = (x.var(-1, keepdim=True, unbiased=False) + self.eps).sqrt()
        return self.gain * apart / root + self.bias


class Encoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers, self.norm = layers, Norm()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)
"""


def test_a_stack_that_is_given_its_layers_is_built_of_those_in_its_file(told):
    parts, _ = told(STACK_OF_LAYERS, "Encoder")
    assert parts["Encoder"]["component"] == "encoder"
    assert "layers=ModuleList(" in said(parts["Encoder"])
    assert not messages(parts["Encoder"])


def test_a_stack_without_layers_is_no_norm(told):
    alone = STACK_OF_LAYERS.replace("EncoderBlock", "Row")
    parts, left = told(alone, "Encoder")
    assert not parts
    assert "nothing says what its argument `layers` is" in left["Encoder"]
    made = f"{alone}\nmine = Encoder(nn.ModuleList())\n"
    parts, left = told(made, "mine")
    assert [*parts] == ["mine.norm (Norm)"]
    assert "its list of layers is empty" in left["mine"]


def test_what_its_writer_builds_in_the_file_counts_instead(told):
    parts, left = told(BUILT_WRONGLY + "built = Attention(12, 3)")
    assert parts["built"]["component"] == "multihead"
    assert not messages(parts["built"])
    assert not left


GROUPS = """
@dataclass
class Config:
    vocab_size: int = VOCAB
    hidden_size: int = 24
    num_attention_heads: int = HEADS
    num_key_value_heads: int = 4
    head_dim: int = 8
    max_len: int = 64
    act: str = "silu"
    attn_pdrop: float = 0.1


class Heads(nn.Module):
    def __init__(self, dim=24, n_heads=HEADS, n_kv_heads=4, head_dim=8):
        super().__init__()
        self.h, self.kv, self.wide = n_heads, n_kv_heads, head_dim
        self.q = nn.Linear(dim, n_heads * head_dim)
        self.k, self.v = (nn.Linear(dim, n_kv_heads * head_dim) for _ in "kv")
        self.o = nn.Linear(n_heads * head_dim, dim)

    def forward(self, x):
        q, k, v = (
            t.unflatten(-1, (n, self.wide)).transpose(1, 2)
            for t, n in (
                (self.q(x), self.h), (self.k(x), self.kv), (self.v(x), self.kv)
            )
        )
        k, v = (t.repeat_interleave(self.h // self.kv, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        wide = config.hidden_size
        self.words = nn.Embedding(config.vocab_size, wide)
        self.places = nn.Embedding(config.max_len, wide)
        self.heads = Heads(
            wide, config.num_attention_heads, config.num_key_value_heads,
            config.head_dim,
        )
        self.out = nn.Linear(wide, config.vocab_size)

    def forward(self, input_ids):
        x = self.words(input_ids)
        x = x + self.places.weight[: input_ids.shape[1]]
        return self.out(x + self.heads(x))
"""
SIX = GROUPS.replace("HEADS", "6")


def test_defaults_that_always_raise_are_a_risk_with_the_error_and_its_line(
    told,
):
    parts, _ = told(SIX.replace("VOCAB", "500"))
    style = SIX.replace("@dataclass", "@dataclass(frozen=True, slots=True)")
    assert told(style.replace("VOCAB", "500"))[0].keys() == parts.keys()
    for name, call in (
        ("Heads", "Heads()"),
        ("Model", "Model(config=Config())"),
    ):
        assert not messages(parts[name])
        (message,) = messages(parts[name], "risk")
        assert f"Built as {call}, with its own defaults," in message
        assert "It raised RuntimeError in line" in message
        assert "F.scaled_dot_product_attention(" in message


@pytest.mark.parametrize(
    "style",
    [
        GROUPS.replace("HEADS", "8").replace("VOCAB", "500"),
        # These stand for what is yet to be said, and nobody builds with them.
        SIX.replace("VOCAB", "-1"),
        SIX.replace("VOCAB", "1"),
        SIX.replace("int = VOCAB", "int"),
        # So large a model is not built.
        SIX.replace("VOCAB", "10**9"),
    ],
)
def test_defaults_that_work_or_are_none_or_are_large_are_no_risk(told, style):
    parts, _ = told(style)
    assert parts["Model"]["component"] == "language_model"
    assert worst(parts["Model"]["found"]) == ""


def test_the_sizes_that_were_put_into_a_configuration_are_told(told):
    parts, _ = told(SIX.replace("VOCAB", "500"))
    assert (
        "Model(config=Config(vocab_size=11, hidden_size=12, "
        "num_attention_heads=3, num_key_value_heads=3, head_dim=4, "
        "max_len=32, attn_pdrop=0.0))"
    ) in said(parts["Model"])


SLOW = """
class Slow(nn.Module):
    def __init__(self, d_model=512, max_len=5000):
        super().__init__()
        self.register_buffer("table", torch.zeros(max_len, d_model))
        for at in range(max_len):
            for i in range(d_model):
                self.table[at, i] = math.sin(at / 10 ** (i / d_model))

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


def test_defaults_that_take_long_are_left_alone(told):
    parts, _ = told("import math" + SLOW)
    assert parts["Slow"]["component"] == "add_positions"
    assert not messages(parts["Slow"], "risk")


UNDIVIDED = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, x):
        q, k, v = (
            part(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for part in (self.q, self.k, self.v)
        )
        past = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        scores = (q @ k.mT).masked_fill(~past, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Writer(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(32, d_model)
        self.attention = Attention(d_model, num_heads)
        self.head = nn.Linear(d_model, vocab_size)
        with torch.no_grad():
            self.attention.q.weight.mul_(FACTOR)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(x + self.attention(x))
"""


@pytest.mark.parametrize(
    ("factor", "headline"),
    [("0.5", "no fault in 14 contracts, 1 note"), ("1", "1 of 14 contracts")],
)
def test_undivided_scores_are_a_note_where_the_model_draws_smaller_queries(
    told, factor, headline
):
    parts, _ = told(UNDIVIDED.replace("FACTOR", factor))
    assert headline in parts["Attention"]["found"]["headline"]


STAYS_ON = """
class Attention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.h = n_head
        self.into = nn.ModuleList(nn.Linear(d_model, d_model) for _ in "qkv")

    def forward(self, query, key, value, mask=None):
        q, k, v = (f(t).unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for f, t in zip(self.into, (query, key, value)))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        weights = torch.dropout(scores.softmax(-1), 0.5, train=True)
        return (weights @ v).transpose(1, 2).flatten(-2)


class SelfAttention(Attention):
    def forward(self, x, mask=None):
        return super().forward(x, x, x, mask)
"""


@pytest.mark.parametrize("name", ["Attention", "SelfAttention"])
def test_dropout_that_is_on_in_eval_mode_is_a_fault_of_a_class_too(told, name):
    parts, _ = told(STAYS_ON)
    [fault] = faults(parts[name])
    assert "The second call differs" in fault
    parts, _ = told(STAYS_ON.replace("train=True", "train=self.training"))
    assert not faults(parts[name])


NEVER_SPLIT = """
class CausalSelfAttention(nn.Module):
    def __init__(self, embed_size, heads):
        super().__init__()
        self.head_dim = embed_size // heads
        self.qkv = nn.Linear(embed_size, 3 * embed_size)
        self.out = nn.Linear(embed_size, embed_size)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT / self.head_dim**0.5
        future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = scores.masked_fill(future, float("-inf")).softmax(-1)
        return self.out(weights @ v)
"""


def test_heads_that_are_never_split_are_told_by_their_scale(told):
    parts, _ = told(NEVER_SPLIT)
    [fault] = faults(parts["CausalSelfAttention"])
    assert "they are never split into heads" in fault
    # A factor of its own is another thing: nobody says that it is of heads.
    own = NEVER_SPLIT.replace("self.head_dim**0.5", "2.0").replace(
        "self.head_dim = embed_size // heads", "pass"
    )
    assert not faults(told(own)[0]["CausalSelfAttention"])


LONE_BLOCK = """
class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(),
            nn.Linear(4 * n_embd, n_embd),
        )

    def forward(self, x):
        t = x.shape[1]
        future = torch.ones(t, t).triu(1).bool()
        y = self.ln1(x)
        x = x + self.attn(y, y, y, attn_mask=future)[0]
        return x + self.mlp(self.ln2(x))
"""


@pytest.mark.parametrize(
    ("line", "wrong", "told_so"),
    [
        (
            "self.mlp(self.ln2(x))",
            "self.mlp(self.ln1(x))",
            "`ln2.weight` takes",
        ),
        ("nn.GELU(),\n", "\n", "an activation between"),
    ],
)
def test_a_causal_block_is_judged_in_a_model_made_around_it(
    told, line, wrong, told_so
):
    parts, _ = told(LONE_BLOCK)
    assert parts["Block"]["component"] == "language_model"
    assert not faults(parts["Block"])
    assert "in a language model that was made around it" in said(parts["Block"])
    parts, _ = told(LONE_BLOCK.replace(line, wrong))
    assert told_so in " ".join(faults(parts["Block"]))


def test_a_lone_block_may_have_a_window_or_norm_its_sums(told):
    window = LONE_BLOCK.replace(
        "future = torch.ones(t, t).triu(1).bool()",
        "i = torch.arange(t)\n"
        "        future = (i[:, None] < i) | (i[:, None] - i > 1)",
    )
    parts, _ = told(window)
    assert not faults(parts["Block"])
    [note] = messages(parts["Block"], "note")
    assert "a local window" in note
    sums = LONE_BLOCK.replace("y = self.ln1(x)", "y = x").replace(
        "x = x + self.attn(y, y, y, attn_mask=future)[0]",
        "x = self.ln1(x + self.attn(y, y, y, attn_mask=future)[0])",
    )
    sums = sums.replace(
        "return x + self.mlp(self.ln2(x))", "return self.ln2(x + self.mlp(x))"
    )
    assert not faults(told(sums)[0]["Block"])


def test_weights_of_a_lone_block_may_wait_for_an_argument(told):
    waits = LONE_BLOCK.replace(
        "self.mlp =",
        "self.extra = nn.Linear(n_embd, n_embd)\n        self.mlp =",
    ).replace("forward(self, x):", "forward(self, x, more=None):")
    parts, _ = told(waits)
    assert "`extra.weight` takes no part" in faults(parts["Block"])[0]
    used = waits.replace(
        "        return x",
        "        x = x + add(self.extra, more)\n        return x",
    )
    add = """
def add(extra, more):
    return 0 if more is None else extra(more)

"""
    parts, _ = told(add + used)
    assert not faults(parts["Block"])
    [risk] = messages(parts["Block"], "risk")
    assert "`extra.weight` takes no part" in risk


EARLY = """
import math


class PositionalEncoder(nn.Module):
    def __init__(self, dim, max_len):
        super().__init__()
        table, places = torch.zeros(max_len, dim), torch.arange(max_len)
        falls = -math.log(10000.0) / dim
        rates = torch.exp(torch.arange(0, dim, 2)) * falls
        table[:, 0::2] = torch.sin(places[:, None] * rates)
        table[:, 1::2] = torch.cos(places[:, None] * rates)
        self.register_buffer("table", table[None])

    def forward(self, x):
        return x + self.table[:, : x.size(1)]
"""


def test_a_parenthesis_of_exp_that_closes_too_early_is_named(told):
    parts, _ = told(EARLY)
    [fault] = faults(parts["PositionalEncoder"])
    assert fault.startswith("The parenthesis of `exp` closes too early")
    right = EARLY.replace("dim, 2)) * falls", "dim, 2) * falls)")
    assert not faults(told(right)[0]["PositionalEncoder"])


DROPS = """
class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_head, d_ff, dropout=0.1):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            d_model, n_head, batch_first=True
        )
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = self.n1(x + self.drop(self.attention(x, x, x)[0]))
        return self.n2(x + self.drop(self.ff(x)))
"""


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("x + self.drop(self.ff(x))", "self.drop(x) + self.ff(x)"),
        ("return self.n2(x + self", "return self.drop(self.n2(x) + self"),
    ],
)
def test_dropout_on_what_a_layer_carries_is_a_note(told, line, wrong):
    parts, _ = told(DROPS)
    assert not messages(parts["EncoderLayer"], "note")
    parts, _ = told(DROPS.replace(line, wrong))
    [note] = messages(parts["EncoderLayer"], "note")
    assert "dropout falls on what is carried past them too" in note


FEW_KEYS = """
class Attention(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        self.w, self.each = d_model // n_heads, n_heads // n_kv_heads
        self.q, self.o = (nn.Linear(d_model, d_model) for _ in "qo")
        self.kv = nn.Linear(d_model, 2 * n_kv_heads * self.w)

    def forward(self, x):
        k, v = self.kv(x).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (-1, self.w)).transpose(1, 2)
                   for t in (self.q(x), k, v))
        k, v = (t.repeat_interleave(self.each, 1) for t in (k, v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(seen.transpose(1, 2).flatten(2))
"""


def test_fewer_heads_for_keys_that_it_cannot_repeat_are_a_risk(told):
    parts, _ = told(FEW_KEYS)
    assert not messages(parts["Attention"], "risk")
    never = FEW_KEYS.replace("repeat_interleave(self.each, 1)", "clone()")
    parts, _ = told(never)
    [risk] = messages(parts["Attention"], "risk")
    assert "n_heads=6, n_kv_heads=2), it does not answer" in risk


ROW_0_FOR_PADDING = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        i = torch.arange(d_model)
        rates = 10000.0 ** (-(2 * (i // 2)) / d_model)
        table = torch.arange(max_len)[:, None] * rates
        table[:, 0::2], table[:, 1::2] = (
            table[:, 0::2].sin(), table[:, 1::2].cos()
        )
        table[0] = 0.0
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


WRONG_ROWS = [
    ("2 * i", "The dimension is taken for i"),
    ("i", "Every dimension has a frequency of its own"),
]


def test_rates_are_judged_where_row_0_is_that_of_padding(told):
    parts, left = told(ROW_0_FOR_PADDING)
    assert left == {}
    assert not faults(parts["PositionalEncoding"])
    for wrong, words in WRONG_ROWS:
        parts, _ = told(ROW_0_FOR_PADDING.replace("2 * (i // 2)", wrong))
        assert words in told_of(parts["PositionalEncoding"])


EXPERTS = """
class Router(nn.Module):
    def __init__(self, d_model, num_experts, top_k):
        super().__init__()
        self.experts = nn.ModuleList([
            nn.Sequential(
                nn.Linear(d_model, 24), nn.ReLU(), nn.Linear(24, d_model)
            )
            for _ in range(num_experts)
        ])
        self.gate, self.top_k = nn.Linear(d_model, num_experts), top_k

    def forward(self, x):
        weights, chosen = self.gate(x).topk(self.top_k)
        weights, y = weights.softmax(-1), torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            share = (weights * (chosen == i)).sum(-1, keepdim=True)
            y = y + share * expert(x)
        return y
"""


def test_a_plain_list_is_told_of_what_is_not_judged_too(told):
    parts, _ = told(EXPERTS)
    assert not faults(parts["Router"])
    plain = EXPERTS.replace("nn.ModuleList([", "list([")
    _, left = told(plain)
    assert "this is no feed-forward network" in left["Router"]
    assert "`experts` is a plain list" in left["Router"]


SWITCHED_OFF = """
class Block(nn.Module):
    def __init__(self, d_model, n_heads, apply_norm=False):
        super().__init__()
        self.attend = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.norm, self.apply_norm = nn.LayerNorm(d_model), apply_norm
        self.network = nn.Sequential(
            nn.Linear(d_model, 29), nn.ReLU(), nn.Linear(29, d_model)
        )

    def forward(self, x):
        x = x + self.attend(x, x, x)[0]
        if CONDITION:
            x = self.norm(x)
        return x + self.network(x)
"""


def test_what_a_switch_of_the_class_leaves_out_is_a_risk(told):
    parts, _ = told(SWITCHED_OFF.replace("CONDITION", "self.apply_norm"))
    assert not faults(parts["Block"])
    assert "where `self.apply_norm` is on" in excuses(parts["Block"])
    parts, _ = told(SWITCHED_OFF.replace("CONDITION", "x is None"))
    [fault] = faults(parts["Block"])
    assert fault.startswith("`norm.weight` takes no part")


THE_LARGEST = """
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
            scores = scores.masked_fill(~mask, -1e9)
        kept = scores.topk(1, -1).indices
        least = torch.full_like(scores, -1e9)
        scores = least.scatter(-1, kept, scores.gather(-1, kept))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_attention_that_keeps_the_largest_scores_is_another_kind(told):
    parts, left = told(THE_LARGEST)
    assert not parts
    assert (
        "is another kind of attention, by its name or"
        in (left["SelfAttention"])
    )
    parts, _ = told(THE_LARGEST.replace("topk(1, -1).indices", "argsort(-1)"))
    assert not faults(parts["SelfAttention"])
