"""``check`` on what it once judged wrongly, or passed over, in repositories.

The code is written anew, in the style of what was found there.
"""

import json
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

LOOKS = """
class Looks(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.three, self.out = (nn.Linear(n_embd, n * n_embd) for n in (3, 1))

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for y in self.three(x).chunk(3, -1)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Odd(Looks):
    def __init__(self, who_knows):
        super().__init__(12, 3)


class Smooths(nn.Module):
    def __init__(self, size, padding_idx, smoothing):
        super().__init__()
        self.pad, self.mass = padding_idx, smoothing

    def forward(self, logits, target):
        return nn.functional.cross_entropy(
            logits,
            target,
            ignore_index=self.pad,
            label_smoothing=self.mass,
        )
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A name is not folded then.

    def write(text, name="mine.py"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
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


def faults(part):
    groups = part["found"]["failed"]
    return [g["message"] for g in groups if g["level"] == "fault"]


def said(part):
    return " ".join(part["found"]["assumed"])


def test_a_class_that_is_named_with_its_component_is_built(told):
    parts, _ = told(LOOKS, "Looks", components=("multihead",))
    assert not faults(parts["Looks"])
    assert "built as Looks(n_embd=12, n_head=3)" in said(parts["Looks"])
    parts, _ = told(LOOKS, "Smooths", components=("label_smoothing",))
    assert parts["Smooths"]["component"] == "label_smoothing"
    assert "made for its smoothing" in said(parts["Smooths"])


def test_one_that_cannot_be_built_is_not_judged_and_the_reason_is_told(
    written, printed
):
    code, out = printed(f"{written(LOOKS)}:Odd", "multihead")
    assert code == 2
    assert "Odd: nothing says what its argument `who_knows` is" in out


LOOSE = """
from dataclasses import dataclass
from os.path import join


def mixes(x, w, heads):
    return x @ w


class OldLooks:
    def __init__(self, d_model):
        self.w = torch.randn(d_model, d_model)

    def forward(self, x):
        return x @ self.w


@dataclass
class Sizes:
    width: int = 12


def _inner(x):
    return x


def main():
    pass


def softmax(scores, dim):
    return scores.softmax(dim)


def broken_softmax(scores):
    return scores


# checks: softmax
def marked(scores, dim):
    return scores.softmax(dim)
"""


def test_what_nothing_says_how_to_call_is_listed_in_one_line(written, printed):
    path = written(LOOSE)
    listed = "Not tried, for want of a name or mark: mixes, OldLooks, br"
    code, out = printed(path)
    assert code == 0
    assert f"{listed}oken_softmax." in out
    assert "main" not in out
    assert "Sizes" not in out
    assert "_inner" not in out
    # Who asks for one thing wants to hear of no other.
    assert "Not tried" not in printed(path, "softmax")[1]
    assert "Not tried" not in printed(f"{path}:softmax")[1]


def test_in_a_folder_they_are_listed_by_file_and_in_the_reports(
    written, printed
):
    written(LOOSE)
    many = [f"def f{i}(x):\n    return x\n" for i in range(12)]
    written("\n".join(many), "more.py")
    data, page = Path("all.json"), Path("all.html")
    _, out = printed(".", "--json", data, "--html", page)
    assert "mine.py: mixes, OldLooks, broken_softmax; more.py: f0, f1," in out
    assert "f7 and 4 more." in out
    files = json.loads(data.read_text())["files"]
    assert len(files[1]["untried"]) == 12
    assert "Not tried, for want of a name or mark: mixes," in page.read_text()


RAISES = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.three = nn.Linear(d_model, 3 * d_model)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.three(x).view(b, n, self.h, d // self.h).chunk(3, -1)
        return q


class Places(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super().__init__()
        self.register_buffer("at", torch.zeros(max_len, d_model))

    def forward(self, x):
        return x + self.at[: x.size(1)]


class Talks(nn.Module):
    def __init__(self, vocab_size, d_model, dropout=0.1):
        super().__init__()
        self.at = Places(d_model, dropout)


class Translates(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model):
        super().__init__()
        self.a = nn.Embedding(src_vocab, d_model)
        self.b = nn.Embedding(tgt_vocab, d_model)
        self.core = nn.Transformer(d_model, 3, 1, 1, 24, batch_first=True)

    def forward(self, src, tgt):
        y = self.b(tgt)[..., None]
        return self.core(self.a(src), y)


class Network(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_what_raises_is_told_with_its_class_line_and_code(told):
    parts, left = told(RAISES)
    assert [*parts] == ["Network"]
    inside = left["MultiHeadAttention"]
    assert "raised RuntimeError in line 3 of `MultiHeadAttention.forw" in inside
    assert "`q, k, v = self.three(x).view(b, n, self.h, d // self.h)" in inside
    built = left["Talks"]
    assert "Talks(vocab_size=11, d_model=12, dropout=0.0) raised Typ" in built
    assert "in line 3 of `Places.__init__`, `self.register_buffer(" in built
    both = left["Translates"]
    assert "in line 3 of `Translates.forward`, `return self.core" in both
    assert "missing a required argument" not in both


def test_what_raises_in_every_call_is_a_risk_and_the_last_line_says_so(
    written, printed
):
    path, data = written(RAISES), Path("all.json")
    code, out = printed(path, "--json", data)
    assert code == 0
    assert "✓ feed_forward: all" in out
    assert f"! {path}:5 MultiHeadAttention: " in out
    assert f"! {path}:32 Translates: " in out
    assert f"· {path}:26 Talks: " in out
    assert out.endswith(
        "1 file, 1 part judged, 0 with faults, 3 not judged, 2 of these with a "
        "risk"
    )
    [file] = json.loads(data.read_text())["files"]
    levels = {one["name"]: one["level"] for one in file["unjudged"]}
    assert levels == {
        "MultiHeadAttention": "risk",
        "Talks": "",
        "Translates": "risk",
    }
    written(RAISES.partition("class Places")[0], "other/mine.py")
    written("WIDTH = 12", "other/sizes.py")
    code, out = printed("other")
    assert code == 2
    assert out.endswith("1 not judged, 1 of these with a risk")


PLACED = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=32):
        super().__init__()
        self.register_buffer("pe", torch.randn(1, max_len, d_model))

    def forward(self, x):
        BODY
"""


@pytest.mark.parametrize(
    ("body", "level"),
    [
        ("return x + self.pe[:, : x.size(0)]", "risk"),
        # One sentence, channels in front, or heads: all may be meant so.
        ("n, _ = x.shape; return x + self.pe[0, :n]", ""),
        ("return x + self.pe[:, : x.shape[-1]].mT", ""),
        ("b, h, n, _ = x.shape; return x + self.pe[:, None, :n]", ""),
        # Nothing but whole tables, ids, or a length.
        ("return x + self.pe", ""),
        ("return self.pe[0][x]", ""),
        ("return self.pe[:, :x]", ""),
        ("raise NotImplementedError", ""),
    ],
)
def test_positions_that_raise_for_every_sentence_are_a_risk(
    written, body, level
):
    section = judged(Target(written(PLACED.replace("BODY", body))), Asked())
    levels = {one["name"]: one["level"] for one in section.unjudged}
    assert levels.get("PositionalEncoding", "") == level


NO_TABLE = """
class Places(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("at", torch.randn(max_len, 1, d_model))

    def forward(self, x):
        return x.unsqueeze(2) + self.at[: x.size(0)]


class Wants(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.turn = nn.Linear(d_model, d_model)

    def forward(self, x, table, places):
        return self.turn(x) * table["cos"][places]
"""


def test_what_has_no_table_looks_no_ids_up_and_other_arguments_are_no_risk(
    told, written
):
    _, left = told(NO_TABLE)
    assert "looks ids up" not in left["Places"]
    assert "in line 2 of `Places.forward`, `return x.unsq" in left["Places"]
    section = judged(Target(written(NO_TABLE)), Asked())
    assert [one["level"] for one in section.unjudged] == ["", ""]


HIDES = """
class Looks(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.three, self.out = (nn.Linear(d_model, n * d_model) for n in (3, 1))

    def forward(self, x, mask):
        q, k, v = (
            y.unflatten(-1, (self.h, -1)).transpose(1, 2)
            for y in self.three(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(mask, -torch.inf).softmax(-1)MORE
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize("more", ["", ".nan_to_num(0)"])
def test_a_mask_that_hides_all_does_not_stop_it_from_being_recognised(
    told, more
):
    text = HIDES.replace("MORE", more)
    parts, left = told(text)
    assert left == {}
    assert "If True hides in your masks, no contract" in said(parts["Looks"])
    parts, _ = told(text, mask="hidden")
    assert parts["Looks"]["component"] == "multihead"
    assert not faults(parts["Looks"])
    parts, _ = told(text, mask="shown")
    assert faults(parts["Looks"])
    assert "hides in your masks after all" in said(parts["Looks"])


@pytest.mark.parametrize(
    "what", ["mylib", "mylib/parts/net.py", "mylib.parts.net", "mylib/parts"]
)
def test_what_python_imports_from_the_current_folder_is_imported(
    written, printed, what
):
    norm = "class Eps:\n    pass\n"
    net = RAISES[RAISES.index("class Network") :]
    written(norm, "mylib/parts/sizes.py")
    written("from mylib.parts.sizes import Eps\n" + net, "mylib/parts/net.py")
    code, out = printed(what)
    assert code == 0
    assert "feed_forward: all 14 contracts hold" in out


@pytest.mark.parametrize("folder", ["my-clone", "3d.net", "plain"])
@pytest.mark.parametrize("beside", ["from .sizes", "from sizes"])
def test_a_package_may_be_a_clone_and_its_files_see_what_stands_beside_them(
    written, printed, folder, beside
):
    written("", f"{folder}/__init__.py")
    written("class Eps:\n    pass\n", f"{folder}/sizes.py")
    net = RAISES[RAISES.index("class Network") :]
    path = written(f"{beside} import Eps\n{net}", f"{folder}/net.py")
    for what in (folder, path):
        code, out = printed(what)
        assert code == 0
        assert "feed_forward: all 14 contracts hold" in out


@pytest.mark.parametrize("home", ["models", "code", "models/vision"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_package_needs_no_init_where_python_needs_none(
    written, printed, home, whole
):
    written("class Eps:\n    pass\n", f"{home}/parts/sizes.py")
    net = RAISES[RAISES.index("class Network") :]
    path = written(f"from ..parts.sizes import Eps\n{net}", f"{home}/in/net.py")
    code, out = printed("." if whole else path)
    assert code == 0
    assert "feed_forward: all 14 contracts hold" in out
    wrong = written(
        f"from ..parts.other import Eps\n{net}", f"{home}/in/bad.py"
    )
    assert printed(wrong)[0] != 0


def test_a_file_alone_finds_what_its_folder_holds(written, printed):
    written("class Eps:\n    pass\n", "mine/parts/sizes.py")
    net = RAISES[RAISES.index("class Network") :]
    path = written(f"from parts.sizes import Eps\n{net}", "mine/parts/net.py")
    for what in (path, f"{path}:Network(12, 24)"):
        assert "feed_forward: all 14 contracts hold" in printed(what)[1]


OFF_AT_0 = """
def keep_best(logits, top_k=0, top_p=0.0):
    if top_k > 0:
        least = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    return logits
"""


def test_a_filter_that_is_asked_for_keeps_its_own_word_for_off(
    written, printed
):
    path = written(OFF_AT_0)
    out = printed(f"{path}:keep_best", "sampling_filter")[1]
    assert "`top_p` is ignored" in out
    assert "✓ 6 hold" in out


FLOAT_FOR_PADDING = """
class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, dropout):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model, dropout)

    def forward(self, ids):
        return self.words(ids)
"""


def test_a_rate_in_place_of_an_id_is_a_risk(written, printed):
    path = written(FLOAT_FOR_PADDING)
    assert f"! {path}:5 Encoder: " in printed(path)[1]


ARRAYS = """
import numpy as np

def scaled_dot_product_attention(q, k, v):
    weights = np.exp(q - np.max(q, axis=-1, keepdims=True))
    return np.matmul(weights, v)

"""


def test_functions_of_arrays_are_told_the_adapter_by_whatever_name(
    written, printed
):
    _, out = printed(written(ARRAYS))
    assert "that of attention, and it could not be called with tensors" in out
    assert "`adapters.from_numpy(…)` lets it stay as it is" in out


GUESSED = """
class Encoder(nn.Module):
    def __init__(self, encoder_layers):
        super().__init__()
        self.encoder_layers = encoder_layers

    def forward(self, x, mask):
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return x


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, pad_idx=None):
        super().__init__()
        self.table, self.pad = nn.Embedding(vocab_size, d_model), pad_idx

    def forward(self, src, tgt):
        return self.table(src) * (src == self.pad).unsqueeze(-1)
"""


def test_what_raises_for_a_number_that_was_guessed_is_no_risk(written, printed):
    _, out = printed(written(GUESSED))
    assert "'int' object is not iterable" in out
    assert "'bool' object has no attribute" in out
    assert "!" not in out


BUNDLES = """
from dataclasses import dataclass


@dataclass
class Made:
    x: torch.Tensor


class Layer(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.three = nn.Linear(d_model, 3 * d_model)

    def forward(self, x, cache=None):
        q, k, v = self.three(x).chunk(3, -1)
        if cache is not None:
            k = torch.cat((cache, k), 1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return Made(x + y)


class Needs(Layer):
    def forward(self, x, mask):
        y = self.three(x).masked_fill(mask[..., :1, 0], 0.0)
        return y.view(3)


class Twice(Layer):
    def forward(self, x, other=None):
        return self.three(x) if other is None else other.three
"""


def test_the_reason_tells_what_the_plain_call_did(told):
    _, left = told(BUNDLES)
    assert left["Layer"].endswith("`x, cache`. It returned a Made.")
    # Not what `None` led to, where a mask is wanted.
    assert "in line 3 of `Needs.forward`, `return y.view(3)`" in left["Needs"]
    assert left["Twice"].endswith(
        "It returned shape (2, 5, 36) for (2, 5, 12)."
    )


MARKED = """
# checks: causal_mask
def hides(length):
    return torch.ones(length, length).triu(1) == 1
"""


def test_on_the_command_line_the_advice_is_what_is_typed_there(told):
    parts, _ = told(MARKED)
    assert "Say so: `--mask hidden`." in said(parts["hides"])
    parts, _ = told(MARKED, mask="shown")
    assert "after all, no contract finds a fault. Say so: `--mask h" in said(
        parts["hides"]
    )


BY_FORWARD = """
class Heads(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.three, self.out = (nn.Linear(dim, n * dim) for n in (3, 1))

    def forward(self, x, slopes, mask):
        q, k, v = (
            y.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for y in self.three(x).chunk(3, -1)
        )
        scores = q @ k.mT * slopes["scale"] + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.heads, self.norm = Heads(dim, n_heads), nn.LayerNorm(dim)

    def forward(self, x, slopes, mask):
        return x + self.heads.forward(self.norm(x), slopes, mask)


class Talker(nn.Module):
    def __init__(self, vocab_size, dim, n_heads):
        super().__init__()
        self.words, self.at = (nn.Embedding(n, dim) for n in (vocab_size, 64))
        self.block = Block(dim, n_heads)
        self.out = nn.Linear(dim, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.full((n, n), -torch.inf).triu(1)
        x = self.words(ids) + self.at.weight[:n]
        return self.out(self.block.forward(x, {"scale": 0.5}, mask).relu())
"""


def test_a_part_whose_forward_a_model_calls_is_seen_in_its_place(told):
    parts, left = told(BY_FORWARD)
    assert parts["Talker"]["component"] == "language_model"
    assert not faults(parts["Talker"])
    assert parts["Heads"]["component"] == "causal_attention"
    assert not faults(parts["Heads"])
    assert "It was judged with the whole" in left["Block"]


TURNS = """
class Turns(nn.Module):
    def __init__(self, head_dim, base=10000.0, max_len=64):
        super().__init__()
        slower = base ** (-torch.arange(0, head_dim, 2) / head_dim)
        at = torch.outer(torch.arange(64.0), slower)
        self.register_buffer("at", torch.polar(at**0, at))

    def forward(self, x, positions):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * self.at[positions]
        return torch.view_as_real(turned).flatten(-2)
"""


@pytest.mark.parametrize("width", ["head_dim", "dim"])
def test_a_module_that_turns_one_width_is_built_for_each_of_rope(told, width):
    text = TURNS.replace("head_dim", width)
    parts, _ = told(text, "Turns", components=("rope",))
    assert not faults(parts["Turns"])
    assert "built anew for each width" in said(parts["Turns"])
    text = text.replace("self.at[positions]", "self.at[: x.shape[-2]]")
    parts, _ = told(text, "Turns", components=("rope",))
    assert faults(parts["Turns"])


OWN_EMBEDDING = """
class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        rows = torch.randn(num_embeddings, embedding_dim)
        self.weight = nn.Parameter(rows)

    def forward(self, at):
        return self.weight[at]


class TransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads):
        super().__init__()
        self.emb, self.h = Embedding(vocab_size, d_model), num_heads
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, x):
        y = self.emb(x)
        two = y.view(*y.shape[:2], self.h, -1).transpose(1, 2)
        place = torch.arange(y.shape[1]).expand(len(y), -1)
        two = two * place[..., None]
        return self.head(two.transpose(1, 2).flatten(2))


class BertModel(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.words = Embedding(vocab_size, d_model)
        self.turn = nn.Linear(d_model, d_model)

    def forward(self, input_ids, attention_mask=None):
        return self.turn(self.words(input_ids) + places_of(input_ids))


class Loose(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(vocab_size, d_model))

    def forward(self, token_ids):
        x = self.rows[token_ids]
        return x @ x


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, tokens):
        return self.up(self.up(tokens))
"""


def test_a_model_with_an_embedding_of_its_own_raises_what_ids_make_it_raise(
    told, written
):
    _, left = told(OWN_EMBEDDING)
    assert "`two = two * place[..., None]`" in left["TransformerLM"]
    assert "NameError in line 2 of `BertModel.forward`" in left["BertModel"]
    assert "line 3 of `Loose.forward`, `return x @ x`" in left["Loose"]
    assert "no usual call was" in left["FeedForward"]
    names = ("TransformerLM", "BertModel", "Loose")
    assert all("no call with ids was und" in left[name] for name in names)
    section = judged(Target(written(OWN_EMBEDDING)), Asked())
    levels = {one["name"]: one["level"] for one in section.unjudged}
    assert levels == {
        "Embedding": "",
        **dict.fromkeys(names, "risk"),
        "FeedForward": "",
    }


def test_the_rows_of_an_embedding_of_its_own_are_the_vocabulary(told):
    text = OWN_EMBEDDING.replace("Embedding(vocab_size", "Embedding(7")
    _, left = told(text)
    assert "vocabulary has 7 tokens at most" in left["BertModel"]


WITHIN = """
from dataclasses import dataclass, field


@dataclass
class FFNConfig:
    kind: str = "relu"
    inner: int = 48


@dataclass
class NetConfig:
    d_model: int = 64
    ffn: FFNConfig = field(default_factory=FFNConfig)
    rates: list = field(default_factory=list)


class Net(nn.Module):
    def __init__(self, cfg: NetConfig):
        super().__init__()
        self.up = nn.Linear(cfg.d_model, cfg.ffn.inner)
        self.down = nn.Linear(cfg.ffn.inner, cfg.d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_a_dataclass_within_another_is_no_number(told):
    parts, left = told(WITHIN.replace("inner", "hidden_dim"))
    assert left == {}
    assert not faults(parts["Net"])
    built = "NetConfig(d_model=12, ffn=FFNConfig(hidden_dim=12))"
    assert f"built as Net(cfg={built})" in said(parts["Net"])


PLAIN = """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        assert config.gated is False
        self.up = nn.Linear(config.dim, config.wide)
        self.down = nn.Linear(config.wide, config.dim)

    def forward(self, x):
        return self.down(self.up(x).relu())


class TrainOptions:
    def __init__(self, out_dir):
        self.out_dir = out_dir
"""
SETTINGS = """

class NetConfig:
    def __init__(self, dim=64, gated=False):
        self.dim, self.gated, self.wide = dim, gated, 2 * dim
"""
CONSTANTS = """

class NetConfig:
    dim = 64
    wide = 31
    gated = False
"""


@pytest.mark.parametrize("config", [SETTINGS, CONSTANTS])
def test_a_configuration_of_the_file_that_is_no_dataclass_is_taken(
    told, config
):
    parts, left = told(PLAIN + config)
    assert left == {}
    assert not faults(parts["Net"])
    assert "built as Net(config=NetConfig(dim=12))" in said(parts["Net"])


def test_where_that_does_not_build_it_one_that_knows_all_names_does(told):
    other = "\n\nclass LoaderConfig:\n    rows = 3\n"
    text = PLAIN.replace("assert config.gated is False", "pass")
    parts, _ = told(text.replace("wide", "d_ff") + other)
    assert "Net(config=Sizes(dim=12, d_ff=24))" in said(parts["Net"])


def test_a_part_may_have_a_configuration_in_the_models(told):
    text = PLAIN.replace("config.dim", "config['feed_forward']['dim']")
    text = text.replace("config.wide", "config['feed_forward']['d_ff']")
    text = text.replace("assert config.gated is False", "pass")
    parts, left = told(text)
    assert left == {}
    assert "Net(config=Sizes(dim=12, d_ff=24))" in said(parts["Net"])
    _, left = told(text.replace("['d_ff']", "['who_knows']"))
    assert "who_knows" in left["Net"]


FIXED = """
class Looks(nn.Module):
    def __init__(self, chans=64, heads=8):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(chans, chans) for _ in range(4)
        )

    def forward(self, x, mask=None):
        batch, seq, width = x.shape
        q, k, v = (
            f(x).view(batch, seq, self.heads, width // self.heads).mT.mT
            for f in (self.q, self.k, self.v)
        )
        scores = q.transpose(1, 2) @ k.transpose(1, 2).mT
        scores = scores / (width // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        y = scores.softmax(-1) @ v.transpose(1, 2)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Narrow(Looks):
    def __init__(self, chans=64, heads=8):
        super().__init__(chans, heads)
        assert chans % heads == 0
"""


def test_sizes_that_do_not_fit_give_way_to_a_class_s_own_defaults(told):
    parts, left = told(FIXED)
    assert left == {}
    for name in ("Looks", "Narrow"):
        assert parts[name]["component"] == "multihead"
        assert not faults(parts[name])
        assert f"built as {name}()" in said(parts[name])


def test_k_beside_heads_is_a_width(told):
    parts, _ = told(FIXED.replace("chans=64", "k").replace("chans", "k"))
    assert "built as Looks(k=12, heads=3)" in said(parts["Looks"])


SEVERAL = """
class Both(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x):
        return x + sum(part(x) for part in self.parts)
"""
FIRST = """
class Block(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.look = nn.MultiheadAttention(d_model, n_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, mask=None):
        x = x + self.look(x, x, x, attn_mask=mask)[0]
        return x + self.down(self.up(x).relu())
"""
WHOLE = """
from block import Block


class Talks(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(32, d_model)
        self.block = Block(d_model, n_heads, d_ff)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        seq = ids.shape[1]
        past = torch.ones(seq, seq).triu(1).bool()
        x = self.words(ids) + self.places.weight[:seq]
        return self.out(self.block(x.transpose(0, 1), past).transpose(0, 1))
"""


def test_a_part_of_another_file_is_judged_in_the_whole_that_shows_its_axes(
    written, printed
):
    written(FIRST, "both/block.py")
    written(WHOLE, "both/whole.py")
    _, out = printed("both")
    assert "Talks.block (Block)" in out
    assert "the sequence comes first in it, for the whole is right" in out
    assert "0 not judged" in out


CHAIN = """

model = nn.Sequential(
    nn.Embedding(11, 12),
    Both(nn.Linear(12, 12), nn.Sequential(nn.Linear(12, 24), nn.ReLU(),
        nn.Linear(24, 12))),
    nn.Linear(12, 11),
)
only_pytorchs = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12))
"""


def test_a_chain_with_parts_of_somebodys_own_is_judged(told):
    parts, left = told(SEVERAL + CHAIN)
    assert parts["model"]["component"] == "language_model"
    assert parts["Both"]["component"] == "feed_forward"
    assert {*parts, *left} == {"model", "Both"}


def test_what_takes_any_number_of_parts_is_named(told):
    _, left = told(SEVERAL)
    assert left["Both"] == "built without any of `*parts`, it does nothing"


PADS = """
PAD = 1


def create_padding_mask(seq):
    return (seq != PAD)[:, None, None]


def generate_padding_mask(seq, pad_token=0):
    return (seq != pad_token)[:, None, None]


def make_pad_mask(query, key, pad_idx=1):
    return (key != pad_idx)[:, None, None].expand(-1, 1, query.shape[1], -1)


def get_pad_mask(seq):
    return (seq != 0)[:, None, None]
"""


def test_makers_of_padding_masks_are_called_as_they_are(told):
    parts, left = told(PADS)
    assert left == {}
    assert len(parts) == 4
    assert not any(map(faults, parts.values()))
    for name in ("create", "generate", "make"):
        found = next(p for n, p in parts.items() if n.startswith(name))
        assert not found["found"]["failed"], found
    levels = {g["level"] for g in parts["get_pad_mask"]["found"]["failed"]}
    assert levels == {"risk"}
    wrong = PADS.replace("[:, None, None]", "[:, None, :, None]")
    parts, _ = told(wrong)
    assert all(map(faults, parts.values()))


NAMES_ITSELF = """
from companion.contracts import adapters


class Sees(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in "qkv")

    def forward(self, query, key, value, key_padding_mask=None):
        q, k, v = (
            f(x).transpose(0, 1)
            for f, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = q @ k.mT / 12**0.5
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None], -1e9)
        return (scores.softmax(-1) @ v).transpose(0, 1)


# checks: multihead
sees = adapters.sequence_first(Sees())
"""


def test_a_marked_part_s_argument_may_say_what_true_means(told):
    parts, _ = told(NAMES_ITSELF)
    assert not faults(parts["sees"])
    assert "True hides, as `key_padding_mask` says" in said(parts["sees"])
    parts, _ = told(
        NAMES_ITSELF.replace("key_padding_mask[", "~key_padding_mask[")
    )
    assert not faults(parts["sees"])
    parts, _ = told(NAMES_ITSELF.replace("key_padding_mask", "key_mask"))
    assert faults(parts["sees"])


PYTORCH_INSIDE = """
from companion.contracts import adapters


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.MultiheadAttention(12, 3)
        self.up, self.down = nn.Linear(12, 24), nn.Linear(24, 12)
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)

    def forward(self, src, src_mask=None):
        seen, _ = self.attend(src, src, src, attn_mask=src_mask)
        src = self.one(src + seen)
        return self.two(src + self.down(self.up(src).relu()))


# checks: encoder
layer = adapters.sequence_first(Layer())
"""


def test_so_may_a_layer_of_pytorch_s_in_a_marked_part(told):
    parts, _ = told(PYTORCH_INSIDE)
    assert not faults(parts["layer"])
    assert "`MultiheadAttention` inside" in said(parts["layer"])
    lost = PYTORCH_INSIDE.replace("attn_mask=src_mask", "attn_mask=None")
    parts, _ = told(lost)
    assert faults(parts["layer"])


ROTARIES = """
class Angles(nn.Module):
    def __init__(self, head_dim, max_seq_len=2048, base=10000.0):
        super().__init__()
        slower = base ** -(torch.arange(0, head_dim, 2) / head_dim)
        at = torch.outer(torch.arange(max_seq_len).float(), slower)
        self.register_buffer("once", at)
        self.register_buffer("whole", torch.cat([at, at], -1))


class RotaryEmbedding(Angles):
    def forward(self, seq_len):
        at = self.whole[:seq_len]
        return at.cos(), at.sin()


class RotaryFrequencies(Angles):
    pass


class LongRoPE(Angles):
    def forward(self, x, seq_len=None):
        at = self.whole[: seq_len or x.shape[-2]]
        return at.cos()[None, None], at.sin()[None, None]


class My_Rotary(Angles):
    def forward(self, max_seq_len, *, device):
        return self.whole[:max_seq_len]


class RoPE(Angles):
    def forward(self, x, start=0):
        at = self.once[start : start + x.shape[-2]]
        a, b = x[..., 0::2], x[..., 1::2]
        turned = [a * at.cos() - b * at.sin(), a * at.sin() + b * at.cos()]
        return torch.stack(turned, -1).flatten(-2)


class RotaryPositionalEmbeddings(Angles):
    def forward(self, x):
        at = self.whole[: x.size(1), None]
        a, b = x.chunk(2, -1)
        return x * at.cos() + torch.cat([-b, a], -1) * at.sin()


class RotaryPosEnc(Angles):
    def forward(self, x, token_positions):
        at = self.once[token_positions]
        a, b = x[..., 0::2], x[..., 1::2]
        turned = [a * at.cos() - b * at.sin(), a * at.sin() + b * at.cos()]
        return torch.stack(turned, -1).flatten(-2)


class RotaryPositionalEncoding(RotaryPositionalEmbeddings):
    def forward(self, q, k):
        return super().forward(q), super().forward(k)
"""


def test_modules_that_turn_vectors_or_make_tables_for_it_are_judged(told):
    parts, left = told(ROTARIES)
    names = {"RotaryEmbedding", "LongRoPE", "My_Rotary", "RoPE"}
    names |= {"RotaryPositionalEmbeddings", "RotaryPositionalEncoding"}
    names |= {"RotaryPosEnc"}
    assert {n for n, p in parts.items() if p["component"] == "rope"} == names
    for name in names:
        assert not faults(parts[name]), parts[name]
    assert "by which vectors were turned" in said(parts["My_Rotary"])
    assert "at its position in a sentence" in said(parts["RoPE"])
    assert {*left} == {
        "RotaryFrequencies"
    }  # Angles is what others are made of.


def test_their_faults_are_told_but_of_other_angles_on_purpose_nothing(told):
    parts, _ = told(ROTARIES.replace("base ** -(", "base ** -(2 * "))
    assert len(parts) == 7
    for part in parts.values():
        assert any("The dimension 2i is taken for i" in m for m in faults(part))
    # Neighbours are turned, each by an angle of its own.
    apart = ROTARIES.replace(
        "a, b = x.chunk(2, -1)", "y = x.unflatten(-1, (-1, 2))"
    )
    apart = apart.replace(
        "torch.cat([-b, a], -1)", "(y.flip(-1) * SIGNS).flatten(-2)"
    )
    parts, _ = told("SIGNS = torch.tensor([-1, 1])\n" + apart)
    for name in ("RotaryPositionalEmbeddings", "RotaryPositionalEncoding"):
        [message] = faults(parts[name])[:1]
        assert "agree on which two dimensions make a pair" in message
    late = ROTARIES.replace(
        "torch.arange(max_seq_len)", "torch.arange(1, 1 + max_seq_len)"
    )
    parts, _ = told(late)
    # By how far two are apart, nothing is wrong with that.
    assert not any(map(faults, parts.values()))
    other = ROTARIES.replace("base=10000.0", "base=10000.0, scaling=2.0")
    parts, _ = told(other.replace("at = torch.outer(", "at = 2 * torch.outer("))
    assert not any(map(faults, parts.values()))


WARM = """
from torch.optim.lr_scheduler import LRScheduler


def warm(step, width, warmup):
    return width**-0.5 * min(step**-0.5, step * warmup**-1.5)


class NoamLR(LRScheduler):
    def __init__(self, optimizer, model_size, warmup_steps, last_epoch=-1):
        self.sizes = model_size, warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        rate = warm(self.last_epoch + 1, *self.sizes)
        return [base * rate for base in self.base_lrs]


class NoamOpt:
    def __init__(self, d_model, factor, warmup, optimizer):
        self.sizes, self.factor = (d_model, warmup), factor
        self.optimizer, self.steps, self.seed = optimizer, 0, 7

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.factor * warm(self.steps, *self.sizes)
        self.optimizer.step()


class NoamScheduler(NoamOpt):
    def __init__(self, optimizer, dim, warmup_steps, boost=3.0):
        super().__init__(dim, boost, warmup_steps, optimizer)


class NoamNetwork:
    def __init__(self, d_model, warmup):
        self.sizes = d_model, warmup


class WarmupOptimizer(NoamOpt):
    def __init__(self, base_optimizer, d_model, scale_factor, warmup_steps):
        super().__init__(d_model, scale_factor, warmup_steps, base_optimizer)


class ScheduledOptim:
    def __init__(self, optimizer, d_model, n_warmup_steps):
        self._optimizer, self.sizes = optimizer, (d_model, n_warmup_steps)
        self.n_current_steps = 0

    def step_and_update_lr(self):
        self.n_current_steps += 1
        for group in self._optimizer.param_groups:
            group["lr"] = warm(self.n_current_steps, *self.sizes)
        self._optimizer.step()


class WarmupScheduler:
    def __init__(self, optimizer, warmup_steps, total_steps):
        self.sizes = warmup_steps, total_steps
"""


def test_learning_rates_that_warm_up_by_their_name_are_judged(told, written):
    parts, left = told(WARM)
    right = {"NoamLR", "NoamOpt", "WarmupOptimizer", "ScheduledOptim"}
    assert {*parts} == right
    assert not any(map(faults, parts.values()))
    assert {p["component"] for p in parts.values()} == {"schedule"}
    assert {*left} == {"NoamScheduler", "WarmupScheduler"}
    assert "by a rule of its own" in left["WarmupScheduler"]
    parts, _ = told(WARM.replace("width**-0.5", "width**0.5"))
    for part in parts.values():
        assert "The sign of d_model's exponent is wrong" in faults(part)[0]


KEPT_IN_A_DICT = """
SIZES = {"d": 4096, "d_ff": 16384, "rate": 0.5, "name": "large"}


class Net(nn.Module):
    def __init__(self, cfg=SIZES):
        super().__init__()
        self.up = nn.Linear(cfg["d"], cfg["d_ff"])
        self.down = nn.Linear(cfg["d_ff"], cfg["d"])

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_a_dictionary_of_sizes_that_is_the_default_is_made_small(told):
    parts, _ = told(KEPT_IN_A_DICT)
    assert not faults(parts["Net"])
    assert "built as Net(cfg={'d': 12, 'd_ff': 24})" in said(parts["Net"])
