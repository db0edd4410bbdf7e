"""What ``check`` tells of public code: once, as a risk, or with what to type.

The code is written anew, in the style of what was found there.
"""

from pathlib import Path

import pytest

from companion.commands import main
from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target

pytestmark = pytest.mark.once

BEGIN = """
import torch
from torch import nn
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="mine.py"):
        Path(name).write_text(BEGIN + text, encoding="utf-8")
        return Path(name)

    return write


@pytest.fixture
def found(written):
    def judge(text, name=""):
        section = judged(Target(written(text), name=name), Asked())
        assert not section.error
        return section

    return judge


@pytest.fixture
def printed(capfd):
    def run(*args):
        code = main(["check", *map(str, args)])
        return code, " ".join(capfd.readouterr().out.split())

    return run


TALKS = """
class Mixes(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Linear(12, 12)

    def forward(self, x, past, places):
        x = self.turn(x)
        scores = (x @ x.mT).masked_fill(past == 0, -1e9)
        return scores.softmax(-1) @ x


class Talks(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.words = nn.Embedding(vocab_size, 12)
        self.places = nn.Embedding(64, 12)
        self.mixes = Mixes()
        self.head = nn.Linear(12, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        past = torch.ones(n, n).tril()
        return self.head(self.mixes(self.words(ids), past, self.places))
"""


def test_a_model_of_another_file_is_told_once_and_so_are_its_parts(
    written, found
):
    written(TALKS, "lm.py")
    section = found("from lm import Talks\n\nmodel = Talks(vocab_size=11)\n")
    names = [part["name"] for part in section.parts]
    assert names == ["model", "model.mixes (Mixes)"]


RAISES = """
class CausalSelfAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.three = nn.Linear(d_model, 3 * d_model)

    def forward(self, x, mask=None):
        q, k, v = self.three(x).chunk(3, -1)
        return (q @ k).softmax(-1) @ v


class ScaledDotProductAttention(nn.Module):
    def forward(self, Q, K, V, attn_mask):
        scores = Q @ K.mT / width**0.5
        return scores.masked_fill(attn_mask, -1e9).softmax(-1) @ V


class TransformerEncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.looks = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, src, src_mask=None):
        return src + self.looks(src, src, src)


class MLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_model, d_ff)

    def forward(self, inputs):
        return self.down(self.up(inputs).relu())


class Transformer(nn.Module):
    def __init__(self, n_vocab, d_model):
        super().__init__()
        self.words = nn.Embedding(n_vocab, d_model)

    def forward(self, x, y, training=None):
        scores = self.words(y) @ self.words(x).mT
        return scores.masked_fill(torch.zeros(scores.shape).long(), 0.0)


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)

    def forward(self, inputs):
        return self.words(inputs).view(7, 7)
"""


def test_what_raises_under_any_usual_name_is_a_risk(found):
    section = found(RAISES)
    levels = {one["name"]: one["level"] for one in section.unjudged}
    assert levels == dict.fromkeys(
        (
            "CausalSelfAttention",
            "ScaledDotProductAttention",
            "TransformerEncoderLayer",
            "MLP",
            "Transformer",
            "GPT",
        ),
        "risk",
    )


OTHERWISE = """
class Attention(nn.Module):  # One query, many values.
    def __init__(self, d_model):
        super().__init__()
        self.turn = nn.Linear(d_model, d_model)

    def forward(self, query, values):
        scores = (self.turn(query)[:, None] + values).tanh()
        return (scores.softmax(1) * values).sum(1)


class MLP(nn.Module):  # Of digits.
    def __init__(self):
        super().__init__()
        self.rows = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def forward(self, x):
        return self.rows(x)


class FeedForward(nn.Module):  # Of images.
    def __init__(self, dim):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 1)

    def forward(self, x):
        return self.conv(x)


class TransformerEncoder(nn.Module):  # Of one length.
    def __init__(self, d_model, seq_len):
        super().__init__()
        self.places = nn.Parameter(torch.randn(1, seq_len, d_model))

    def forward(self, x):
        return x + self.places


class GPT(TransformerEncoder):
    def __init__(self, vocab_size, d_model, block_size):
        super().__init__(d_model, block_size)
        self.words = nn.Embedding(vocab_size, d_model)

    def forward(self, x):
        return self.words(x) + self.places


class Transformer(nn.Module):  # Of one length, with a table that is no buffer.
    def __init__(self, n_vocab, d_model, max_len):
        super().__init__()
        self.table = torch.randn(1, max_len, d_model)
        self.words = nn.Embedding(n_vocab, d_model)

    def forward(self, x, y, training=None):
        x, y = self.words(x) + self.table, self.words(y) + self.table
        return (y @ x.mT).softmax(-1) @ x


class LanguageModel(nn.Module):  # Of one length, of which there is a note.
    def __init__(self, vocab_size, d_model, block_size):
        super().__init__()
        self.block_size = block_size
        self.words = nn.Embedding(vocab_size, d_model)

    def forward(self, inputs):
        return self.words(inputs).view(2, self.block_size, -1)


class TransformerBlock(nn.Module):  # Two kinds of vectors.
    def forward(self, x, y):
        return x + y.mean(1, keepdim=True)


class EncoderLayer(nn.Module):  # Others are made of it.
    def forward(self, x, mask=None):
        raise NotImplementedError


class Encoder(nn.Module):
    def forward(self, x):
        assert x.shape[1] == 77
        return x


class TransformerVisualizer(nn.Module):
    def forward(self, x):
        raise RuntimeError("no window")


class GPTTokenizer(nn.Module):
    def forward(self, inputs):
        return inputs.words()


class AttentionConfig(nn.Module):
    def forward(self, x):
        return x.sizes


class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.cell = nn.LSTM(d_model, d_model)

    def forward(self, x, y):
        return self.cell(self.words(x), (y, y))
"""


def test_what_wants_to_be_called_otherwise_or_is_something_else_is_no_risk(
    found,
):
    section = found(OTHERWISE)
    assert [one for one in section.unjudged if one["level"]] == []
    # What has one length is built for each.
    judged = [part["name"] for part in section.parts]
    assert judged == ["TransformerEncoder"]
    assert len(section.unjudged) == OTHERWISE.count("\nclass ") - len(judged)


BUILT = """
from dataclasses import dataclass


class Heads(nn.Module):
    def __init__(self, n_heads, d_model, d_query, d_value):
        super().__init__()
        self.h = n_heads
        self.q = nn.Linear(d_model, n_heads * d_query)
        self.k = nn.Linear(d_model, n_heads * d_query)
        self.v = nn.Linear(d_model, n_heads * d_value)
        self.out = nn.Linear(n_heads * d_value, d_model)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        q, k, v = (
            f(x).view(b, n, self.h, -1).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, -1))


class Network(nn.Module):
    def __init__(self, d_input, d_hidden, d_output, theta, rope_theta, lr):
        super().__init__()
        assert theta == rope_theta == 10000 and 0 < lr < 1
        self.up = nn.Linear(d_input, d_hidden)
        self.down = nn.Linear(d_hidden, d_output)
        self.made = torch.optim.Adam(self.parameters(), lr)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Reads(Network):
    def __init__(self, config):
        more = config.mem_len, config.post_norm
        assert more == (0, False)
        super().__init__(12, 24, 12, config.theta, 1e4, config.lr)


class Keeps(Network):
    def __init__(self, d_model, theta=500000.0, lr=0.5):
        assert (theta, lr) == (500000.0, 0.5)
        super().__init__(d_model, 24, 12, 1e4, 1e4, lr)


@dataclass
class Made:
    d_model: int = 512
    rope_theta: float = 500000.0


class KeepsInIt(Network):
    def __init__(self, config: Made):
        assert config.rope_theta == 500000.0
        super().__init__(config.d_model, 24, 12, 1e4, 1e4, 0.5)
"""


def test_a_class_is_built_from_more_names_and_a_base_of_its_own_stays(found):
    section = found(BUILT)
    assert not section.unjudged
    kinds = {part["name"]: part["component"] for part in section.parts}
    assert kinds == {
        "Heads": "multihead",
        "Network": "feed_forward",
        "Reads": "feed_forward",
        "Keeps": "feed_forward",
        "KeepsInIt": "feed_forward",
    }


UNKNOWN = """
class Network(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Odd(nn.Module):
    def __init__(self, width, who_knows, network, dropout=0.1):
        super().__init__()
        self.inner = network if who_knows == 7 else None

    def forward(self, x):
        return self.inner(x)


class Reads(nn.Module):
    def __init__(self, d_model, config):
        super().__init__()
        self.way = config.way
"""


def test_where_an_argument_is_unknown_the_line_to_type_is_told(
    written, printed
):
    path = written(UNKNOWN)
    _, out = printed(path)
    line = (
        f'python -m companion check "{path}:Odd(width=12, who_knows=…, '
        'network=Network(d_model=12, d_ff=24), dropout=0.0)"'
    )
    assert f"`who_knows` is. Say it in place of each …: `{line}`" in out
    assert f'`python -m companion check "{path}:Reads(d_model=12, conf' in out
    typed = line.replace("…", "7").partition('"')[2].rstrip('"')
    code, out = printed(typed)
    assert code == 0
    assert "✓ feed_forward: all 14 contracts hold" in out
    _, out = printed(f"{path}:Odd", "feed_forward")
    assert 'dropout=0.0)" feed_forward`' in out


def test_of_one_file_too_the_last_line_is_the_total(written, printed):
    _, out = printed(written(UNKNOWN))
    assert out.endswith("1 file, 1 part judged, 0 with faults, 2 not judged")


BATCH_FIRST = """
class Heads(nn.Module):
    def __init__(self, embed_dim, num_heads, batch_first=False):
        super().__init__()
        self.first = batch_first
        self.turn = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        x = x if self.first else x.transpose(0, 1)
        y = (self.turn(x) @ x.mT / 12**0.5).softmax(-1) @ x
        return y if self.first else y.transpose(0, 1)


class Layer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.looks = nn.MultiheadAttention(d_model, num_heads)

    def forward(self, x):
        return self.looks(x, x, x)[0]


class Bare(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.turn = nn.Linear(d_model, d_model)

    def forward(self, x):
        return (self.turn(x).transpose(0, 1) @ x.permute(1, 2, 0)).softmax(
            -1
        ).transpose(0, 1).transpose(1, 0).bmm(x.transpose(0, 1)).transpose(0, 1)
"""


def test_that_the_sequence_is_first_by_default_is_told_with_the_word(found):
    section = found(BATCH_FIRST)
    reasons = {one["name"]: one["reason"] for one in section.unjudged}
    word = "as by default: with `batch_first=True` the batch comes first"
    assert reasons["Heads"].endswith(f"`batch_first` is False, {word}")
    inside = "`batch_first` is False in `looks` (MultiheadAttention), "
    assert reasons["Layer"].endswith(inside + word)
    assert reasons["Bare"].endswith("this is a fault")


LIMITED = """
class Talks(nn.Module):
    def __init__(self, vocab_size, d_model, block_size):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Parameter(torch.randn(1, block_size, d_model))
        self.turn = nn.Linear(d_model, d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def looks(self, x, before):
        seen = torch.cat([before, x], 1)
        scores = self.turn(x) @ seen.mT / x.shape[-1] ** 0.5
        past = torch.ones_like(scores[0]).tril(before.shape[1])
        y = scores.masked_fill(past == 0, -1e9).softmax(-1) @ seen
        return self.head(x + y)

    def forward(self, ids):
        x = self.words(ids) + self.places
        return self.looks(x, x[:, :0])


class Keeps(Talks):
    before = None

    def forward(self, ids):
        x = self.words(ids) + self.places[:, : ids.shape[1]]
        before = x[:, :0] if self.before is None else self.before
        self.before = x
        return self.looks(x, before)


class Changes(Talks):
    def forward(self, ids):
        x = self.words(ids) + self.places[:, : ids.shape[1]]
        with torch.no_grad():
            self.turn.weight.add_(x.mean())
        return self.looks(x, x[:, :0])


class Draws(Talks):
    def forward(self, ids):
        x = self.words(ids) + self.places[:, : ids.shape[1]]
        return self.looks(x + torch.rand(1), x[:, :0])


five = Talks(11, 12, 5)
eight = Talks(11, 12, 8)
"""


def test_a_memory_or_one_length_is_told_and_other_changes_stay_faults(found):
    section = found(LIMITED)
    reasons = {one["name"]: one["reason"] for one in section.unjudged}
    assert [*reasons] == ["Talks", "Keeps", "five", "eight"]
    assert "it keeps something from one call to the next" in reasons["Keeps"]
    for name, length in {"Talks": 32, "five": 5, "eight": 8}.items():
        begins = f"it takes rows of {length} ids and of no other length"
        assert reasons[name].startswith(begins)
    assert [part["name"] for part in section.parts] == ["Changes", "Draws"]
    for part in section.parts:
        assert "second call differs" in str(part["found"]["failed"])
