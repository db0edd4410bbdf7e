"""Attention that its model gives the tables by which vectors turn."""

import pytest
from commands.parts import faults, said

from companion.contracts import check

BASE = """
import torch.nn.functional as F


def half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Base(nn.Module):
    def __init__(self, hidden_size, num_heads, num_kv_heads):
        super().__init__()
        self.heads, self.kv_heads = num_heads, num_kv_heads
        self.head_dim = hidden_size // num_heads
        few = num_kv_heads * self.head_dim
        self.q, self.out = (nn.Linear(hidden_size, hidden_size) for _ in "qo")
        self.k, self.v = (nn.Linear(hidden_size, few) for _ in "kv")

    def split(self, x):
        cut = (f(x).unflatten(-1, (-1, self.head_dim))
               for f in (self.q, self.k, self.v))
        return [each.transpose(1, 2) for each in cut]

    def attend(self, q, k, v, mask=None):
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1)
                for x in (k, v))
        own = mask is None
        seen = F.scaled_dot_product_attention(q, k, v, mask, is_causal=own)
        return self.out(seen.transpose(1, 2).flatten(2))

"""

TWO = """
class Attention(Base):
    def forward(self, x, cos, sin):
        q, k, v = self.split(x)
        q, k = (t * cos + half(t) * sin for t in (q, k))
        return self.attend(q, k, v)
"""

EACH_SENTENCE = """
class Attention(Base):
    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        cos, sin = (x.unsqueeze(1) for x in position_embeddings)
        q, k, v = self.split(hidden_states)
        q, k = (t * cos + half(t) * sin for t in (q, k))
        return self.attend(q, k, v), None
"""

COMPLEX = """
class Attention(Base):
    def turn(self, x, table):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * table).flatten(-2)

    def forward(self, x, start_pos, freqs_cis, mask):
        q, k, v = self.split(x)
        q, k = (self.turn(t, freqs_cis[: x.shape[1]]) for t in (q, k))
        if mask is None:
            return self.attend(q, k, v)
        return self.attend(q, k, v, mask)
"""

SIDE_BY_SIDE = """
class Attention(Base):
    def turn(self, x, table):
        a, b = x[..., 0::2], x[..., 1::2]
        cos, sin = table.unbind(-1)
        turned = a * cos - b * sin, b * cos + a * sin
        return torch.stack(turned, -1).flatten(3)

    def forward(self, x, freqs_cis, input_pos):
        q, k, v = self.split(x)
        q, k = (self.turn(t, freqs_cis[input_pos[0]]) for t in (q, k))
        return self.attend(q, k, v)
"""

ANGLES = """
class Attention(Base):
    def turn(self, x, angles):
        twisted = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        return x * angles.cos() + twisted * angles.sin()

    def forward(self, x, rotary_pos_emb):
        q, k, v = self.split(x)
        q, k = (self.turn(t, rotary_pos_emb) for t in (q, k))
        return self.attend(q, k, v)
"""


@pytest.mark.parametrize(
    ("attention", "tables"),
    [
        (TWO, "tables of cosines and sines, both halves alike"),
        (EACH_SENTENCE, "tables of cosines and sines, both halves alike"),
        (COMPLEX, "complex numbers that turn"),
        (SIDE_BY_SIDE, "tables of cosines and sines, side by side"),
        (ANGLES, "the angles to turn by, each angle twice in a row"),
    ],
)
def test_attention_gets_the_tables_that_its_arguments_name(
    told, attention, tables
):
    parts, _ = told(BASE + attention)
    assert not faults(parts["Attention"])
    assert f"it got {tables}, of base 10000" in said(parts["Attention"])
    lost = attention.replace("for t in (q, k))", "for t in (q, q))")
    parts, _ = told(BASE + lost)
    assert faults(parts["Attention"])


PLACES = """
class Attention(Base):
    def turn(self, x, places):
        rates = 10000 ** (-torch.arange(0, self.head_dim, 2) / self.head_dim)
        angles = torch.cat([places[..., None] * rates] * 2, -1)[:, None]
        return x * angles.cos() + half(x) * angles.sin()

    def forward(self, x, token_positions):
        q, k, v = self.split(x)
        q, k = (self.turn(t, token_positions) for t in (q, k))
        return self.attend(q, k, v)
"""


def test_attention_that_turns_by_the_positions_it_gets_gets_them(told):
    parts, _ = told(BASE + PLACES)
    assert not faults(parts["Attention"])
    assert "it got the positions 0, 1, 2" in said(parts["Attention"])
    parts, _ = told(BASE + PLACES.replace("q, k = (", "q, _ = ("))
    [fault] = faults(parts["Attention"])
    assert fault.startswith("Queries are turned by their positions and keys")


def test_the_tables_are_of_positions_so_that_turned_keys_alone_are_told(told):
    parts, _ = told(BASE + TWO.replace("q, k = (", "_, k = ("))
    [fault] = faults(parts["Attention"])
    assert fault.startswith("Keys are turned by their positions and queries")


def test_what_no_layout_makes_a_rotation_is_not_judged(told):
    _, left = told(BASE.replace("(-b, a)", "(b, a)") + TWO)
    assert left["Attention"].startswith("it is given tables that turn")


def test_what_is_told_of_a_weight_names_it_as_its_writer_does(told):
    own = BASE.replace("few = ", "self.idle = nn.Linear(2, 2)\n        few = ")
    parts, _ = told(own + TWO)
    [fault] = faults(parts["Attention"])
    assert fault.startswith("`idle.weight` takes no part")


def test_check_gives_tables_too():
    names = {}
    exec("import torch\nfrom torch import nn\n" + BASE + TWO, names)
    report = check("causal_attention", names["Attention"](12, 3, 1))
    assert report.passed
    assert any("both halves alike" in one for one in report.assumed)


DROPS = """
class Dropping(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, cos, sin):
        q, k, v = (
            each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for each in self.qkv(x).chunk(3, -1)
        )
        q, k = (t * cos + half(t) * sin for t in (q, k))
        seen = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, dropout_p=RATE
        )
        return self.out(seen.transpose(1, 2).flatten(2))
"""


def test_dropout_that_stays_on_is_told_beside_given_tables(told):
    if_training = "self.dropout if self.training else 0.0"
    parts, left = told(BASE + DROPS.replace("RATE", if_training))
    assert "Dropping" not in left
    assert not faults(parts["Dropping"])
    parts, _ = told(BASE + DROPS.replace("RATE", "self.dropout"))
    [fault] = faults(parts["Dropping"])
    assert "dropout is on in evaluation" in fault
