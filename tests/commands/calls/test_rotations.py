"""Functions and modules that turn vectors, called as public code calls them.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, said

TURNS = """
def apply_rope(x, positions):
    AXES
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[..., None] * rates
    cos, sin = ANGLES
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
"""
OF_ONE = {
    "AXES": "positions = torch.arange(x.shape[-2])",
    "ANGLES": "angles.cos(), angles.sin()",
    "x, positions": "x",
}
OF_FOUR = {
    "AXES": "batch, heads, length, width = x.shape",
    "ANGLES": "angles.cos(), angles.sin()",
}
OF_EACH = {
    "AXES": "batch, heads, length, width = x.shape",
    "ANGLES": "angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)",
    # Only with an axis for the sentences.
    "positions[..., None]": "positions[:, :, None]",
}


def written(changes):
    text = TURNS
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("changes", [OF_ONE, OF_FOUR, OF_EACH])
def test_a_rotation_of_the_usual_axes_is_right(told, changes):
    text = written(changes)
    parts, left = told(text)
    assert left == {}
    assert parts["apply_rope"]["component"] == "rope"
    assert not faults(parts["apply_rope"])
    parts, _ = told(text.replace("+ b * cos", "- b * cos"))
    assert faults(parts["apply_rope"])


def test_positions_that_it_counts_itself_are_told(told):
    parts, _ = told(written(OF_ONE))
    assert "each vector stood at its position" in said(parts["apply_rope"])


def test_that_it_takes_four_axes_only_is_a_risk(told):
    parts, _ = told(written(OF_FOUR))
    part = parts["apply_rope"]
    assert contracts(part) == (
        "It takes any number of axes before (seq, head_dim)"
    )
    assert "axes for the batch and for the heads" in excuses(part)
    # With wrong numbers for other axes it is a fault, as nothing is raised.
    mixed = written(OF_FOUR | {"AXES": "x = x * (1 + (x.ndim == 5))"})
    parts, _ = told(mixed)
    assert faults(parts["apply_rope"])


ATTENDS = """
def turn(x, position_ids):
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = (position_ids[..., None] * rates).unsqueeze(1)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class CausalAttention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads = n_heads
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, position_ids, attn_mask=None):
        n = x.size(1)
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        q, k = turn(q, position_ids), turn(k, position_ids)
        scores = q @ k.mT / q.size(-1) ** 0.5
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
        if attn_mask is not None:
            scores = scores.masked_fill(attn_mask == 0, -torch.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
IN_VAIN = "What is turned by its position knows places"


def test_it_gets_positions_in_order_where_order_is_asked_for(told):
    parts, left = told(ATTENDS)
    assert left == {}
    assert IN_VAIN not in contracts(parts["CausalAttention"])
    turned = "q, k = turn(q, position_ids), turn(k, position_ids)"
    in_vain = (
        "heads = torch.arange(self.heads)[None]\n"
        "        q, k = (turn(x.transpose(1, 2), heads).transpose(1, 2) "
        "for x in (q, k))"
    )
    assert turned in ATTENDS
    parts, _ = told(ATTENDS.replace(turned, in_vain))
    assert IN_VAIN in contracts(parts["CausalAttention"])


ALONG = """
def rope(x, dim):
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = torch.arange(x.shape[dim])[:, None] * rates
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
"""


def test_an_axis_is_no_row_of_positions(told):
    parts, left = told(ALONG)
    assert parts == {}
    assert "its argument `dim` is another's" in left["rope"]


def test_the_width_of_a_head_may_have_to_be_given(told):
    wanted = written(OF_EACH).replace(
        "x, positions)", "x, positions, head_dim)"
    )
    wanted = wanted.replace(
        "x.shape[-1], 2) / x.shape[-1]", "head_dim, 2) / head_dim"
    )
    parts, left = told(wanted)
    assert left == {}
    assert not faults(parts["apply_rope"])


BLOCK = """
class EncoderLayer(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.heads = num_heads
        self.three, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 24), nn.Linear(24, dim)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)) for y in
            self.three(self.norm1(x)).chunk(3, -1)
        )
        TURNED
        weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).flatten(2))
        return x + self.down(self.up(self.norm2(x)).relu())
"""
HEADS = "q, k, v = (y.transpose(1, 2) for y in (q, k, v))"


def test_what_turns_heads_and_no_positions_within_a_layer_is_a_risk(told):
    turns = TURNS.replace("apply_rope", "turn")
    for old, new in OF_ONE.items():
        turns = turns.replace(old, new)
    turned = "q, k = turn(q), turn(k)"
    lines = (turned, HEADS), (HEADS, turned)
    late, early = ("\n        ".join(pair) for pair in lines)
    parts, left = told(turns + BLOCK.replace("TURNED", late))
    assert left == {}
    assert IN_VAIN in contracts(parts["EncoderLayer"])
    parts, _ = told(turns + BLOCK.replace("TURNED", early))
    assert IN_VAIN not in contracts(parts["EncoderLayer"])


FROM_A_START = """
class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.rates = base ** (-torch.arange(0, dim, 2) / dim)

    def forward(self, x, start_pos: int):
        at = torch.arange(start_pos, start_pos + x.shape[1])
        angles = (at[:, None] * self.rates)[None, :, None]
        a, b = x[..., 0::2], x[..., 1::2]
        turned = a * angles.cos() - b * angles.sin()
        other = a * angles.sin() + b * angles.cos()
        return torch.stack((turned, other), -1).flatten(-2)
"""


def test_a_rotary_module_may_be_called_pe(told):
    text = FROM_A_START.replace("RotaryEmbedding", "RotaryPE")
    parts, left = told(text.replace("dim", "d_k"))
    assert left == {}
    assert not faults(parts["RotaryPE"])


def test_a_rotation_may_want_the_position_of_its_first_vector(told):
    parts, left = told(FROM_A_START)
    assert left == {}
    assert not faults(parts["RotaryEmbedding"])
    assert "its `start_pos` was 0" in said(parts["RotaryEmbedding"])
    parts, _ = told(FROM_A_START.replace(" - b", " + b"))
    assert faults(parts["RotaryEmbedding"])


SINES_FIRST = """
def apply_rope(q, k, sin, cos):
    def turn(x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return turn(q), turn(k)
"""


def test_sines_may_stand_before_cosines(told):
    parts, left = told(SINES_FIRST)
    assert left == {}
    assert not faults(parts["apply_rope"])
    parts, _ = told(SINES_FIRST.replace("+ a * sin", "- a * sin"))
    assert faults(parts["apply_rope"])


OF_ALL_HEADS = """
class RotaryEmbedding(nn.Module):
    def __init__(self, max_len, n_heads, dim):
        super().__init__()
        width = dim // n_heads
        self.rates = 10000.0 ** (-torch.arange(0, width, 2) / width)

    def turn(self, x):
        angles = torch.arange(x.shape[-2])[:, None] * self.rates
        count = 2 * len(self.rates)
        part, rest = x[..., :count], x[..., count:]
        a, b = part[..., 0::2], part[..., 1::2]
        turned = a * angles.cos() - b * angles.sin()
        other = a * angles.sin() + b * angles.cos()
        whole = torch.stack((turned, other), -1).flatten(-2)
        return torch.cat([whole, rest], -1)

    def forward(self, q, k):
        return self.turn(q), self.turn(k)
"""


def test_the_width_of_a_rotation_may_be_that_of_all_heads(told):
    parts, left = told(OF_ALL_HEADS)
    assert left == {}
    assert not faults(parts["RotaryEmbedding"])
    parts, _ = told(OF_ALL_HEADS.replace("2) / width)", "2) * 2 / width)"))
    assert faults(parts["RotaryEmbedding"])
