"""Positions that a module adds to the rows of its ids are judged alone."""

import pytest
from commands.parts import contracts, faults, said, told_of

SINUSOIDS = """
class Embeddings(nn.Module):
    def __init__(self, vocab_size, d_model, max_len=100, dropout=0.1):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.times, self.drop = d_model**0.5, nn.Dropout(dropout)
        rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        angles = torch.arange(max_len)[:, None] * rates
        both = torch.stack([angles.sin(), angles.cos()], -1)
        self.register_buffer("places", both.flatten(1))

    def forward(self, tokens):
        rows = self.words(tokens) * self.times
        return self.drop(rows + self.places[: tokens.size(1)])
"""


def test_positions_beside_rows_of_ids_are_judged(told):
    parts, left = told(SINUSOIDS)
    assert left == {}
    part = parts["Embeddings"]
    assert part["component"] == "add_positions"
    assert not told_of(part)
    assert "what it adds to the rows of its ids" in said(part)


def test_what_is_wrong_with_them_is_found(told):
    twice = SINUSOIDS.replace(
        "arange(0, d_model, 2) /", "arange(d_model // 2) /"
    )
    parts, _ = told(twice)
    assert "rates of the formula" in contracts(parts["Embeddings"])
    assert faults(parts["Embeddings"])


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # More than a sum: a norm, a mean of neighbours, no positions.
        ("self.drop(rows", "nn.functional.layer_norm(rows * 2, (12,)) + (rows"),
        ("self.drop(rows", "self.drop(rows + rows.mean(1, True)"),
        ("+ self.places[: tokens.size(1)]", ""),
    ],
)
def test_what_does_more_or_less_is_not_judged(told, right, wrong):
    assert right in SINUSOIDS
    parts, _ = told(SINUSOIDS.replace(right, wrong))
    assert "add_positions" not in {p["component"] for p in parts.values()}


THROWN_AWAY = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.register_buffer("table", torch.randn(1, max_len, d_model))

    def forward(self, x):
        x + self.table[:, : x.size(1)]
        return x
"""


def test_positions_that_are_thrown_away_are_told(told):
    parts, left = told(THROWN_AWAY)
    assert parts == {}
    assert "is the sum thrown away" in left["PositionalEncoding"]
    # Under another name it may do nothing on purpose.
    _, left = told(THROWN_AWAY.replace("PositionalEncoding", "Placeholder"))
    assert left == {}


BY_A_MASK = """
class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.rows = nn.Embedding(max_length + 1, d_model, padding_idx=0)

    def forward(self, attention_mask):
        real = attention_mask.long()
        return self.rows(real.cumsum(1) * real)
"""


def test_what_takes_a_mask_alone_gets_no_ids(section_of):
    [left] = section_of(BY_A_MASK).unjudged
    assert left["level"] == ""
    assert "`attention_mask`" in left["reason"]


AT_POSITIONS = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        TABLE

    def forward(self, x, position_ids):
        return x + self.rows ROWS
"""
TABLES = [
    ("self.rows = nn.Embedding(max_len, d_model)", "(position_ids)"),
    (
        'self.register_buffer("rows", torch.randn(max_len, d_model))',
        "[position_ids.long()]",
    ),
]


@pytest.mark.parametrize(("table", "rows"), TABLES)
def test_positions_that_have_to_be_given_are(told, table, rows):
    text = AT_POSITIONS.replace("TABLE", table).replace(" ROWS", rows)
    parts, left = told(text)
    assert left == {}
    part = parts["PositionalEncoding"]
    assert "it got the positions 0, 1, …" in said(part)
    assert not faults(part)
    wrong = text.replace("x + self", "x + 0 * self")
    assert not told(wrong)[0]


ONE_ROW = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.register_buffer("table", torch.randn(1, max_len, d_model))

    def forward(self, x):
        return x + self.table[:, x.shape[1]]
"""


def test_one_row_for_all_positions_is_told(section_of):
    [left] = section_of(ONE_ROW).unjudged
    assert left["level"] == "risk"
    assert "changes all of them alike" in left["reason"]
    rows = ONE_ROW.replace("[:, x.shape[1]]", "[:, : x.shape[1]]")
    assert section_of(rows).unjudged == []
    other = ONE_ROW.replace("PositionalEncoding", "Shift")
    [left] = section_of(other).unjudged
    assert left["level"] == ""


OWN_RATES = """
import math


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        place = torch.arange(max_len)[:, None]
        rates = torch.exp(torch.arange(0, d_model, 2) * STEP)
        table = torch.zeros(max_len, d_model)
        table[:, 0::2], table[:, 1::2] = (
            (place * rates).sin(), (place * rates).cos()
        )
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


def test_an_exponent_that_is_one_less_is_named(told):
    right = OWN_RATES.replace("STEP", "(-math.log(10000.0) / d_model)")
    assert not faults(told(right)[0]["PositionalEncoding"])
    wrong = OWN_RATES.replace("STEP", "(-math.log(10000.0) / d_model - 1)")
    [fault] = faults(told(wrong)[0]["PositionalEncoding"])
    assert fault.startswith("1 is taken from the exponent")


HOLDS_NAN = OWN_RATES.replace("torch.exp(", "1 / (").replace("STEP", "10000")
OTHERS = """

class Encoder(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.places = PositionalEncoding(d_model)
        self.layer = nn.TransformerEncoderLayer(
            d_model, num_heads, 24, 0.0, batch_first=True
        )

    def forward(self, x):
        return self.layer(self.places(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.stack = Encoder(d_model, num_heads)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        return self.out(self.stack(self.words(ids)))


class Keeps(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.cache = torch.empty(d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x + self.cache).relu())
"""


def test_a_table_that_holds_nan_is_named_in_all_that_has_it(told):
    parts, left = told(HOLDS_NAN + OTHERS)
    assert left == {}
    for name, held in (
        ("PositionalEncoding", "`table`"),
        ("Encoder", "`places.table`"),
        ("GPT", "`stack.places.table`"),
    ):
        [fault] = faults(parts[name])
        assert f"{held} holds NaN as soon as it is built" in fault
    # What a call is to fill holds nothing yet.
    assert not faults(parts["Keeps"])


KEEPS_ITS_WEIGHTS = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.weights = num_heads, None
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, key_pad):
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(key_pad[:, None, None], -torch.inf)
        self.weights = scores.softmax(-1).detach()
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_what_is_kept_of_a_call_makes_no_nan_of_the_next(told):
    """A mask that hides all was tried before, for what True means is open."""
    parts, _ = told(KEEPS_ITS_WEIGHTS)
    assert not faults(parts["Attention"])
    assert "Only you know" in said(parts["Attention"])


def test_a_size_may_be_a_number_of_axes(told):
    """So many that PyTorch itself takes no such tensor everywhere."""
    text = """
class PositionalEncoder(nn.Module):
    def __init__(self, d_model, max_len, who_knows=70):
        super().__init__()
        self.table = torch.randn(max_len, d_model).view(
            *[1] * (who_knows - 2), max_len, d_model
        )

    def forward(self, x):
        return x + self.table[:, : x.shape[-2]]
"""
    _, left = told(text)
    assert "no usual call was understood" in left["PositionalEncoder"]
