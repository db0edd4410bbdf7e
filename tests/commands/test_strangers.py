"""``check`` on files of strangers, each in another public style.

None of them has a mark, a name that the contracts know, or an adapter.
"""

import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from companion.commands import main
from companion.commands.check import worst
from companion.commands.check.process import REST, Asked, judged
from companion.commands.check.target import Target
from companion.contracts.discovery.heads import BEHIND

pytestmark = pytest.mark.once

BEGIN = """
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
"""

TABLES = """
class Sizes:
    pass


class Heads(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.groups = n_heads, n_heads // n_kv_heads
        self.wide = dim // n_heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.kv = nn.Linear(dim, 2 * n_kv_heads * self.wide, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)

    def forward(self, x, turns, mask):
        batch, seq, _ = x.shape
        q = self.q(x).view(batch, seq, -1, self.wide)
        k, v = self.kv(x).view(batch, seq, -1, 2, self.wide).unbind(3)
        q, k = turned(q, turns), turned(k, turns)
        k, v = (y.repeat_interleave(self.groups, 2) for y in (k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        scores = q @ k.mT / math.sqrt(self.wide) + mask
        y = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.o(y.reshape(batch, seq, -1))


def turned(x, turns):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turns[:, None]).flatten(-2)


class Talker(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, n_kv_heads):
        super().__init__()
        self.words = nn.Embedding(vocab_size, dim)
        self.heads = Heads(dim, n_heads, n_kv_heads)
        self.out = nn.Linear(dim, vocab_size)
        slower = torch.linspace(0, 0.9, dim // n_heads // 2)
        at = torch.outer(torch.arange(64.0), 1e4**-slower)
        self.turns = torch.polar(torch.ones_like(at), at)

    def forward(self, ids, begin=0):
        seq = ids.shape[1]
        mask = torch.full((seq, seq), -torch.inf).triu(DIAGONAL)
        x = self.words(ids)
        x = x + self.heads(x, self.turns[begin : begin + seq], mask)
        return self.out(F.silu(x))
"""

FIRST = """
class Places(nn.Module):
    def __init__(self, emb_size, maxlen=99):
        super().__init__()
        self.register_buffer("table", torch.randn(maxlen, 1, emb_size))

    def forward(self, x):
        return x + self.table[: len(x)]


class Both(nn.Module):
    def __init__(self, emb_size, src_vocab_size, tgt_vocab_size, nhead):
        super().__init__()
        self.a = nn.Embedding(src_vocab_size, emb_size)
        self.b = nn.Embedding(tgt_vocab_size, emb_size)
        self.places = Places(emb_size)
        self.reads = nn.MultiheadAttention(emb_size, nhead)
        self.looks = nn.MultiheadAttention(emb_size, nhead)
        self.out = nn.Linear(emb_size, tgt_vocab_size)

    def forward(self, src, trg, src_padding_mask, tgt_mask):
        x, y = self.places(self.a(src)), self.places(self.b(trg))
        x = x + self.reads(x, x, x, src_padding_mask)[0]
        y = y + self.looks(y, y, y, attn_mask=tgt_mask)[0]
        return self.out(y + self.looks(y, x, x, src_padding_mask)[0])
"""

BUILT = """
class Layer(nn.Module):
    def __init__(self, size, look):
        super().__init__()
        self.look, self.norm = look, nn.LayerNorm(size)

    def forward(self, x, memory, mask):
        return x + self.look(self.norm(x), memory, memory, mask)[0]


class Pair(nn.Module):
    def __init__(self, parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, src, tgt, src_mask, tgt_mask):
        seq = torch.arange(32)
        x = self.src(src) + self.at(seq[: src.shape[1]])
        y = self.tgt(tgt) + self.at(seq[: tgt.shape[1]])
        x = self.one(x, x, src_mask)
        y = self.two(y, y, tgt_mask)
        return self.three(y, x, src_mask)


class Look(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in "123")

    def forward(self, q, k, v, mask=None):
        scores = self.q(q) @ self.k(k).mT / math.sqrt(q.shape[-1])
        if mask is not None:
            _batch, _head, _rows, _keys = mask.shape
            scores = scores.masked_fill(mask[:, 0] == 0, -1e9)
        return scores.softmax(-1) @ self.v(v), scores


def build_model(src_vocab, tgt_vocab, d_model):
    return Pair({
        "src": nn.Embedding(src_vocab, d_model),
        "tgt": nn.Embedding(tgt_vocab, d_model),
        "at": nn.Embedding(32, d_model),
        "one": Layer(d_model, Look(d_model)),
        "two": Layer(d_model, Look(d_model)),
        "three": Layer(d_model, Look(d_model)),
        "generator": nn.Linear(d_model, tgt_vocab),
    })
"""

LOSS = """
class LabelSmoothing(nn.Module):
    def __init__(self, size, padding_idx, smoothing=0.0):
        super().__init__()
        self.size, self.pad, self.mass = size, padding_idx, smoothing

    def forward(self, logs, target):
        aim = torch.full_like(logs, self.mass / (self.size - 2))
        aim.scatter_(1, target[:, None], 1 - self.mass)
        aim[:, self.pad] = 0
        aim[target == self.pad] = 0
        return F.kl_div(logs, aim, reduction="sum")
"""

CLASSES = """
class SmoothedLoss(nn.Module):
    def __init__(self, smoothing=0.1):
        super().__init__()
        self.mass = smoothing

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=self.mass)


class SmoothLoss(nn.Module):
    def __init__(self, smoothing=0.1, rest=1):
        super().__init__()
        self.mass, self.rest = smoothing, rest

    def forward(self, logits, target):
        logs = logits.log_softmax(-1)
        share = self.mass / (logs.shape[-1] - self.rest)
        aim = torch.full_like(logs, share)
        aim = aim.scatter(-1, target[:, None], 1 - self.mass)
        return -(aim * logs).sum(-1).mean()


class SmoothEntropy(nn.Module):
    def __init__(self, smoothing=0.1, ignore_index=-100):
        super().__init__()
        self.mass, self.pad = smoothing, ignore_index

    def forward(self, logits, target):
        hot = torch.zeros_like(logits).scatter(1, target[:, None], 1)
        aim = hot * (1 - self.mass) + self.mass / logits.shape[-1]
        losses = -(aim * logits.log_softmax(-1)).sum(-1)
        return losses[target != self.pad].mean()
"""

ARRAYS = """
def layer_norm(x, g, b, eps=1e-5):
    rest = x - np.mean(x, axis=-1, keepdims=True)
    power = np.mean(rest**2, axis=-1, keepdims=True)
    return g * rest / np.sqrt(power + eps) + b


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)
"""

OTHERS = """
def greedy_decode(model, src, src_mask, max_len, start_symbol):
    return model


def subsequent_mask(size):
    return torch.full((size, size), float("-inf")).triu(1)


class ByTheirPlace(nn.Module):
    def __init__(self, embedding_dim, padding_idx):
        super().__init__()
        self.pad, self.table = padding_idx, torch.randn(64, embedding_dim)

    def forward(self, ids):
        return self.table[(ids != self.pad).cumsum(1)]


class Sum(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up, self.down = nn.Linear(size, 31), nn.Linear(31, size)
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        return self.norm(self.down(self.up(x).relu()) + x)


criterion = nn.CrossEntropyLoss()
"""


@pytest.fixture
def told(tmp_path):
    def judge(text, name="mine.py", **asked):
        path = tmp_path / name
        path.write_text(BEGIN + text, encoding="utf-8")
        section = judged(Target(path), Asked(**asked))
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


def test_a_part_gets_what_its_model_gives_it_beside_vectors(told):
    parts, left = told(TABLES.replace("DIAGONAL", "1"))
    assert parts["Talker"]["component"] == "language_model"
    assert parts["Heads"]["component"] == "causal_attention"
    assert "it got `turns`, `mask` as its model gives it" in said(
        parts["Heads"]
    )
    assert not faults(parts["Talker"])
    assert not faults(parts["Heads"])
    assert left == {}


def test_a_mistake_in_it_is_found_in_the_part_and_in_the_whole(told):
    parts, _ = told(TABLES.replace("DIAGONAL", "2"))
    assert any("future" in m for m in faults(parts["Talker"]))
    mistaken = TABLES.replace("DIAGONAL", "1").replace(
        "(scores.softmax(-1) @ v).transpose(1, 2)", "scores.softmax(-1) @ v"
    )
    parts, _ = told(mistaken, "other.py")
    assert any("split or joined" in m for m in faults(parts["Heads"]))


OF_A_MEMORY = """
class Cross(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.scale = width**-0.5

    def forward(self, src, tgt, mask):
        scores = self.scale * self.q(tgt) @ self.k(src).mT
        scores = scores.masked_fill(mask[:, None], -1e9)
        return scores.softmax(-1) @ self.v(src)


class Saying(nn.Module):
    def __init__(self, vocab=11, width=12):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Embedding(32, width)
        self.own = nn.MultiheadAttention(width, 3, batch_first=True)
        self.cross, self.out = Cross(width), nn.Linear(width, vocab)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)

    def placed(self, ids):
        return self.words(ids) + self.places.weight[: ids.shape[1]]

    def forward(self, src, tgt):
        y, seq = self.placed(tgt), tgt.shape[1]
        later = torch.ones(seq, seq).triu(1).bool()
        y = self.one(y + self.own(y, y, y, attn_mask=later)[0])
        return self.out(self.two(y + self.cross(self.placed(src), y, src == 0)))
"""


def test_what_gets_two_vectors_from_its_model_asks_the_other_sequence(told):
    parts, left = told(OF_A_MEMORY)
    assert left == {}
    assert not faults(parts["Saying"])
    assert not faults(parts["Cross"])
    assert "those that its model, which is right" in said(parts["Cross"])
    mixed = OF_A_MEMORY.replace("softmax(-1)", "softmax(-2)")
    parts, _ = told(mixed)
    assert faults(parts["Saying"])
    assert faults(parts["Cross"])


def test_where_the_sequence_comes_first_the_whole_shows_it_for_its_parts(told):
    parts, left = told(FIRST)
    whole = parts["Both"]
    assert not faults(whole)
    assert "hides, as in PyTorch's `MultiheadAttention` inside" in said(whole)
    assert "the sequence comes first in it" in said(whole)
    assert parts["Places"]["component"] == "add_positions"
    assert "for the whole is right" in said(parts["Places"])
    assert left == {}


def test_a_mistake_is_named_where_the_sequence_comes_first_too(told):
    lost = FIRST.replace(", attn_mask=tgt_mask", "")
    parts, _ = told(lost)
    assert any("future" in m for m in faults(parts["Both"]))
    assert "the sequence comes first in it" in said(parts["Both"])


def test_alone_such_a_part_is_not_judged_and_both_readings_are_told(told):
    parts, left = told(FIRST.partition("class Both")[0])
    assert parts == {}
    assert "`adapters.sequence_first(…)`" in left["Places"]
    assert "If the batch comes first, this is a fault" in left["Places"]


def test_a_model_that_a_function_builds_is_judged_with_its_output_layer(told):
    parts, _ = told(BUILT)
    whole = parts["build_model"]
    assert whole["component"] == "translation_model"
    assert not faults(whole)
    assert "built as build_model(src_vocab=11, tgt_vocab=11" in said(whole)
    assert "`generator` stands on top, which its `forward` lea" in said(whole)
    assert not faults(parts["Look"])
    assert not faults(parts["Layer"])


def test_an_output_layer_stands_on_top_where_there_is_another_fault(told):
    lost = BUILT.replace("self.three(y, x, src_mask)", "self.three(y, x, None)")
    parts, _ = told(lost)
    whole = parts["build_model"]
    assert "`generator` stands on top" in said(whole)
    assert faults(whole)
    assert not any("takes no part" in m for m in faults(whole))


def test_an_output_layer_stands_on_top_in_either_reading_of_masks(told):
    hides = BUILT.replace("mask[:, 0] == 0", "mask[:, 0]")
    parts, _ = told(hides)
    whole = parts["build_model"]
    assert "`generator` stands on top" in said(whole)
    assert "If True hides in your masks, no contract finds a f" in said(whole)
    assert not faults(whole)


WORDS_ONLY = """
class MultiHeadAttention(nn.Module):
    def __init__(self, heads, d_model):
        super().__init__()
        self.heads = heads
        self.all = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, *, mask=None, hidden_states):
        x = self.all(hidden_states).unflatten(-1, (3, self.heads, -1))
        q, k, v = x.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_what_wants_its_arguments_by_name_only_is_judged(told):
    parts, left = told(WORDS_ONLY)
    assert left == {}
    assert not faults(parts["MultiHeadAttention"])
    assert "given by their names" in said(parts["MultiHeadAttention"])
    wrong = WORDS_ONLY.replace(" * q.shape[-1] ** -0.5", "")
    parts, _ = told(wrong)
    assert faults(parts["MultiHeadAttention"])


def test_a_part_whose_eval_raises_is_not_judged(told):
    raises = (
        WORDS_ONLY
        + """
    def train(self, mode=True):
        raise RuntimeError("sizes do not fit")
"""
    )
    parts, left = told(raises)
    assert parts == {}
    assert (
        "`eval()` raised RuntimeError in line 2 of"
        in (left["MultiHeadAttention"])
    )


ENDS = """
import os


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(12, 24), nn.Linear(24, 12)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Ends(nn.Module):
    def __init__(self, unknown):
        super().__init__()

    def forward(self, x):
        os._exit(3)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.ends = Network(), Ends(0)

    def forward(self, x):
        return self.network(x)
"""


def test_where_the_rest_ends_the_process_it_is_told_as_not_judged(told):
    parts, left = told(ENDS)
    assert not faults(parts["Whole"])
    assert "Its process ended" in left[REST]


def test_what_was_judged_of_a_model_is_told_though_its_process_ends(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(BEGIN + ENDS, encoding="utf-8")
    parts = judged(Target(path, name="Whole()"), Asked()).parts
    components = [p["component"] for p in parts]
    assert components == ["feed_forward", "feed_forward", ""]
    assert not any(map(faults, parts[:2]))
    assert "Its process ended" in str(parts[2]["found"]["failed"])


RECURRENT = """
class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, two_ways=BOTH):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.cells = nn.GRU(d_model, d_model, bidirectional=two_ways)
        self.back = nn.Linear(d_model * (1 + two_ways), d_model)

    def forward(self, tokens):
        return self.back(self.cells(self.words(tokens))[0])
"""


@pytest.mark.parametrize("both", ["True", "False"])
def test_where_a_recurrent_layer_runs_along_the_first_axis_it_is_a_risk(
    told, both
):
    parts, left = told(RECURRENT.replace("BOTH", both))
    assert left == {}
    part = parts["Encoder"]
    assert not faults(part)
    assert "wrong if the batch does" in str(part["found"]["failed"])
    # What has nothing to do with the axes stays a fault.
    unused = "self.spare = nn.Linear(3, 5)\n        self.words ="
    text = RECURRENT.replace("BOTH", both).replace("self.words =", unused)
    parts, _ = told(text)
    assert any("takes no part" in m for m in faults(parts["Encoder"]))
    # Whoever puts the batch first says so, and is taken at the word.
    first = RECURRENT.replace("BOTH", "False").replace(
        "bidirectional", "batch_first=True, bidirectional"
    )
    parts, _ = told(first)
    assert parts["Encoder"]["found"]["failed"] == []


STACK = """
import copy


class TransformerEncoderLayer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.looks = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.up, self.down = nn.Linear(d_model, 24), nn.Linear(24, d_model)
        self.one, self.two = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.one(x + self.looks(x, x, x)[0])
        return self.two(x + self.down(self.up(x).relu()))


class TransformerEncoder(nn.Module):
    def __init__(self, encoder_layer, num_layers):
        super().__init__()
        each = (copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.layers = nn.ModuleList(each)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


def test_a_stack_that_is_handed_a_layer_gets_that_of_its_file(told):
    parts, left = told(STACK)
    assert left == {}
    assert "encoder_layer=TransformerEncoderLayer(" in said(
        parts["TransformerEncoder"]
    )


def test_an_operator_that_is_handed_over_is_no_configuration(told):
    wants = WORDS_ONLY.replace(
        "heads, d_model", "heads, d_model, opt: nn.Module"
    )
    parts, left = told(wants)
    assert parts == {}
    assert "its argument `opt`" in left["MultiHeadAttention"]


def test_a_multiple_for_padding_is_no_id(told):
    wants = WORDS_ONLY.replace("heads, d_model", "heads, d_model, pad_multiple")
    wants = wants.replace(
        "self.heads = heads", "self.heads = heads % pad_multiple + heads"
    )
    parts, _ = told(wants)
    assert not faults(parts["MultiHeadAttention"])


HEADS_BEHIND = """
import torch


def dot_product_attention(query, key, value, mask=None):
    batch, seq, heads, width = query.shape
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key) / width**0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), value)
"""


def test_a_function_with_its_heads_behind_the_positions_is_judged(told):
    parts, left = told(HEADS_BEHIND)
    assert left == {}
    assert not faults(parts["dot_product_attention"])
    assert BEHIND in said(parts["dot_product_attention"])
    wrong = HEADS_BEHIND.replace("softmax(-1)", "softmax(-2)")
    parts, _ = told(wrong)
    assert faults(parts["dot_product_attention"])


def test_an_output_layer_that_is_called_for_nothing_stays_a_fault(told):
    lost = BUILT.replace("d_model, tgt_vocab)", "7, tgt_vocab)")
    parts, _ = told(lost)
    assert any("takes no part" in m for m in faults(parts["build_model"]))


def test_a_loss_that_is_made_for_its_smoothing_is_tried_in_every_form(told):
    parts, _ = told(LOSS)
    loss = parts["LabelSmoothing"]
    assert loss["component"] == "label_smoothing"
    assert not faults(loss)
    assert "it got log-probabilities" in said(loss)
    assert "divided by the number of real tokens" in said(loss)
    wrong = LOSS.replace("aim[target == self.pad] = 0", "pass")
    parts, _ = told(wrong, "other.py")
    assert faults(parts["LabelSmoothing"])


SUMMED = (
    LOSS.replace("aim.scatter_(1,", "aim.scatter_(-1,")
    .replace("target[:, None]", "target[..., None]")
    .replace("aim[:, self.pad]", "aim[..., self.pad]")
    .replace(
        'F.kl_div(logs, aim, reduction="sum")',
        'F.kl_div(logs, aim, reduction="sum") / logs.size(0)',
    )
)


def test_a_loss_over_the_number_of_sentences_is_a_risk_that_says_so(told):
    asking = SUMMED.replace("aim = ", "assert logs.ndim == 3\n        aim = ")
    for place, source in enumerate((SUMMED, asking)):
        parts, _ = told(source, f"summed{place}.py")
        loss = parts["LabelSmoothing"]
        assert not faults(loss)
        assert levels(loss)["Every real token counts the same"] == "risk"
        assert "it got sentences, (batch, seq, vocab)" in said(loss)
    wrong = SUMMED.replace("aim[target == self.pad] = 0", "pass")
    parts, _ = told(wrong, "padded.py")
    assert faults(parts["LabelSmoothing"])


def test_what_a_loss_raised_in_every_call_is_told(told):
    asking = LOSS.replace("aim = ", "assert logs.ndim == 5\n        aim = ")
    _, left = told(asking)
    assert "It raised AssertionError" in left["LabelSmoothing"]


def levels(part):
    return {m: g["level"] for g in part["found"]["failed"] for m in g["names"]}


def test_a_loss_without_a_word_of_padding_counts_it_as_a_risk(told):
    parts, _ = told(CLASSES)
    padding = "The logits at padding do not count"
    assert levels(parts["SmoothedLoss"]) == {padding: "risk"}
    own = levels(parts["SmoothLoss"])
    assert own.pop(padding) == "risk"
    assert {*own.values()} == {"note"}, own
    for word in ("pad=0", "ignore_index=-100"):
        asked = CLASSES.replace("smoothing=0.1)", f"smoothing=0.1, {word})")
        parts, _ = told(asked, f"{word[:3]}.py")
        told_of = " ".join(faults(parts["SmoothedLoss"]))
        assert "Padding is counted" in told_of


def test_a_loss_that_leaves_out_padding_0_halfway_is_no_classifiers(told):
    half = CLASSES.replace(
        "return -(aim * logs).sum(-1).mean()",
        "return -(aim * logs).sum(-1).sum() / (target != 0).sum()",
    )
    parts, _ = told(half)
    assert any("Other logits" in m for m in faults(parts["SmoothLoss"]))


def test_to_what_the_masses_of_a_target_sum_is_told(told):
    parts, _ = told(CLASSES.replace("rest=1", "rest=2"))
    [message] = faults(parts["SmoothLoss"])
    assert "The masses of its target sum to 1.02, not to 1" in message


def test_a_loss_that_raises_with_its_own_padding_is_told_so(told):
    parts, _ = told(CLASSES)
    [group] = parts["SmoothEntropy"]["found"]["failed"]
    assert group["level"] == "risk"
    assert "With its own default `ignore_index=-100` it" in group["message"]
    assert "-100 is out of bounds" in group["message"]


def test_numpy_is_no_fault_and_its_adapter_is_named(told, capfd, tmp_path):
    parts, left = told(ARRAYS)
    assert parts == {}
    for name in ("layer_norm", "softmax"):
        assert "`adapters.from_numpy(…)` lets it stay as it is" in left[name]
    assert main(["check", str(tmp_path / "mine.py")]) == 2
    assert "✗" not in capfd.readouterr().out


TRIANGLE = """
class Past(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.all, self.out = (nn.Linear(n_embd, n * n_embd) for n in (3, 1))
        self.register_buffer("tri", torch.ones(1, 1, 64, 64).tril())

    def forward(self, x):
        batch, seq, width = x.shape
        q, k, v = (
            y.view(batch, seq, self.n_head, -1).transpose(1, 2)
            for y in self.all(x).chunk(3, -1)
        )
        scores = q @ k.mT / math.sqrt(k.size(-1))
        hidden = self.tri[..., :seq, :seq] == 0
        y = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, seq, width))
"""


def test_a_triangle_that_it_keeps_says_that_attention_is_to_be_causal(told):
    parts, _ = told(TRIANGLE)
    assert parts["Past"]["component"] == "causal_attention"
    assert not faults(parts["Past"])
    parts, _ = told(TRIANGLE.replace("y.transpose(1, 2)", "y"), "other.py")
    assert parts["Past"]["component"] == "causal_attention"
    assert any("split or joined" in m for m in faults(parts["Past"]))


def test_a_name_alone_makes_nothing_a_fault(told):
    parts, left = told(OTHERS)
    assert "its argument `model` is another's" in left["greedy_decode"]
    mask = parts["subsequent_mask"]
    assert not faults(mask)
    assert "added to the scores" in said(mask)
    assert "a table of positions" in left["ByTheirPlace"]
    assert parts["Sum"]["component"] == "feed_forward"
    assert "without the norm inside, and less its input" in said(parts["Sum"])
    assert worst(parts["Sum"]["found"]) == ""
    assert "criterion" not in {**parts, **left}


def test_a_residual_that_is_lost_before_a_norm_is_a_risk(told):
    parts, _ = told(OTHERS.replace(".relu()) + x)", ".relu()))"))
    report = parts["Sum"]["found"]
    assert not faults(parts["Sum"])
    [lost] = report["failed"]
    assert lost["level"] == "risk"
    assert "Is `x +` missing?" in lost["message"]
    assert "adds no input" in said(parts["Sum"])
    # What adds twice its input is no such thing.
    parts, _ = told(OTHERS.replace("+ x)", "+ 2 * x)"), "other.py")
    assert "adds no input" not in said(parts["Sum"])


AHEAD = """
class Looks(nn.Module):
    def __init__(self, dim, heads=3):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(dim)
        self.all, self.out = (nn.Linear(dim, n * dim) for n in (3, 1))

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.all(self.norm(x)).chunk(3, -1)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.finfo(q.dtype).max)
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))
"""


def test_attention_behind_a_norm_whose_input_is_added_elsewhere_is_right(told):
    parts, _ = told(AHEAD)
    assert parts["Looks"]["component"] == "multihead"
    assert not faults(parts["Looks"])
    assert "judged without the norm inside" in said(parts["Looks"])
    assert "adds no input" not in said(parts["Looks"])
    parts, _ = told(AHEAD.replace("y.transpose(1, 2)", "y"), "other.py")
    assert any("split or joined" in m for m in faults(parts["Looks"]))


NORMED_HEADS = """
class AttentionBlock(nn.Module):
    def __init__(self, dim, heads=3):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(dim)
        self.of_q, self.of_k = (nn.LayerNorm(dim // heads) for _ in "12")
        self.all, self.out = (nn.Linear(dim, n * dim) for n in (3, 1))

    def forward(self, x, mask=None):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.all(self.norm(x)).chunk(3, -1)
        )
        scores = self.of_q(q) @ self.of_k(k).mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.finfo(q.dtype).max)
        y = scores.softmax(-1) @ v
        y = self.out(y.transpose(1, 2).reshape(x.shape))
        return y
"""


def test_attention_that_norms_its_heads_needs_no_input_inside(told):
    parts, _ = told(NORMED_HEADS)
    own = parts["AttentionBlock"]
    assert own["component"] == "multihead"
    assert not faults(own)
    assert "it is one attention and its projection" in said(own)
    assert "adds no input" not in said(own)


def test_what_ends_with_a_norm_there_and_adds_no_input_is_a_risk(told):
    last = "return F.layer_norm(y, x.shape[2:])"
    parts, _ = told(NORMED_HEADS.replace("return y", last))
    assert not faults(parts["AttentionBlock"])
    assert "adds no input" in said(parts["AttentionBlock"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # A whole layer that has lost both of its residuals.
        ("return y", "return self.out(self.norm(y).relu())"),
        ("y.transpose(1, 2)", "y"),
        ("~mask", "mask"),
    ],
)
def test_what_else_is_wrong_with_such_attention_is_a_fault(told, old, new):
    parts, _ = told(NORMED_HEADS.replace(old, new), mask="shown")
    assert faults(parts["AttentionBlock"])


BY_VIEW = """
class Map(nn.Module):
    def __init__(self, out_features, in_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_features, out_features) / 5)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        y = torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight)
        return y.view(*x.shape[:-1], -1)


class Past(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.all, self.out = Map(3 * n_embd, n_embd), Map(n_embd, n_embd)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            y.view(b, n, self.n_head, -1).transpose(1, 2)
            for y in self.all(x).split(d, 2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, n, d))
"""


def test_what_views_its_input_can_be_recognised_too(told):
    parts, _ = told(BY_VIEW)
    assert parts["Past"]["component"] == "causal_attention"
    assert not faults(parts["Past"])


FAR = """
class Knows(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.relative_bias = n_heads, nn.Embedding(64, n_heads)
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in "1234"
        )

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = (
            p(x).view(b, n, self.n_heads, -1).transpose(1, 2)
            for p in (self.q, self.k, self.v)
        )
        at = torch.arange(n)
        far = self.relative_bias(at - at[:, None] + 32).permute(2, 0, 1)
        scores = q @ k.mT / math.sqrt(d // self.n_heads) + far
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        y = scores.softmax(-1) @ v
        return self.o(y.transpose(1, 2).reshape(b, n, d))
"""


def test_a_learned_number_for_each_distance_is_no_fault(told):
    parts, _ = told(FAR)
    assert not faults(parts["Knows"])
    assert "was the same for all distances" in said(parts["Knows"])
    parts, _ = told(FAR.replace("y.transpose(1, 2)", "y"), "other.py")
    assert faults(parts["Knows"])


WRONG = """
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        return self.weight * x / (x.square().mean(-1, keepdim=True) + self.eps)


class Talks(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = F.dropout(self.words(ids), 0.3)
        return self.out(x.cumsum(1).relu())
"""


OVER_HEADS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.wq, self.wk, self.wv, self.dense = (
            nn.Linear(d_model, d_model) for _ in "1234"
        )

    def forward(self, v, k, q, mask=None):
        q, k, v = (
            w(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for w, x in ((self.wq, q), (self.wk, k), (self.wv, v))
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        y = (scores.softmax(DIM) @ v).transpose(1, 2)
        return self.dense(y.flatten(2)), scores
"""


def test_attention_by_name_whose_weights_are_no_averages_is_a_fault(told):
    parts, _ = told(OVER_HEADS.replace("DIM", "1"))
    assert parts["MultiHeadAttention"]["component"] == "multihead"
    assert faults(parts["MultiHeadAttention"])
    parts, _ = told(OVER_HEADS.replace("DIM", "-1"), "other.py")
    assert not faults(parts["MultiHeadAttention"])


def test_a_norm_by_name_that_norms_nothing_and_dropout_in_use_are_faults(told):
    parts, _ = told(WRONG)
    assert parts["RMSNorm"]["component"] == "rms_norm"
    assert faults(parts["RMSNorm"])
    assert any("dropout is on" in m for m in faults(parts["Talks"]))


def test_a_mark_with_another_call_stays_a_fault(told):
    marked = "# checks: greedy_decode" + OTHERS.partition("\n\n\n")[0]
    parts, _ = told(marked)
    assert re.search("cannot be called", *faults(parts["greedy_decode"]))


LOADED = """
import sys
from pathlib import Path

from companion.commands.check import process
from companion.commands.check.target import Target

said = []
process._judge(said.append, Target(Path("mine.py")), process.Asked(), [], [])
assert any("parts" in message for message in said), said
names = {name.partition(".")[0] for name in sys.modules}
print(*sorted(names & set(sys.argv[1:])))
"""


def test_the_command_loads_torch_and_of_what_else_is_installed_jaxtyping(
    tmp_path,
):
    (tmp_path / "mine.py").write_text(BEGIN + TABLES.replace("DIAGONAL", "1"))
    told = subprocess.run(
        [sys.executable, "-c", LOADED, *packages_distributions()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # What torch loads by itself: its time is no part of the command's.
    theirs = "import sys, torch; print(*sys.modules)"
    beside = subprocess.run(
        [sys.executable, "-c", theirs],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name.partition(".")[0] for name in beside.stdout.split()}
    loaded = set(told.stdout.split())
    assert "torch" in loaded
    assert loaded - names - {"companion"} == {"jaxtyping"}


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_what_is_copied_for_each_part_has_no_pool_of_threads():
    """A copy of it would wait for ever in its first loop on two threads."""
    ask = "import companion.commands.preloaded, os, torch;"
    ask += "print(torch.get_num_threads(), len(os.listdir('/proc/self/task')))"
    plain = "import os, torch; print(1, len(os.listdir('/proc/self/task')))"
    both = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "4"},
        ).stdout
        for code in (ask, plain)
    ]
    assert both[0] == both[1]


HIDING = """
class Heads(nn.Module):
    def __init__(self, d=12, heads=3):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x, mask=None):
        batch, n, d = x.shape
        parts = self.qkv(x).view(batch, n, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (d // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


SHOWING = HIDING.replace("Heads", "Shown").replace("(mask, -1", "(~mask, -1")
BY_NAME = """
def attention(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    return scores.softmax(-1) @ v


# checks: causal_mask
def marked(length):
    return torch.ones(length, length).triu(1) == 1


def look_ahead_mask(length):
    return torch.ones(length, length).triu(1) == 1


def added(length):
    return torch.full((length, length), -torch.inf).triu(1)


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    return (scores if mask is None else scores + mask).softmax(-1) @ v
"""
OWN = SHOWING.replace("Shown", "Past").replace(
    "if mask is not None:", "if mask := [torch.ones(n, n).tril() > 0]:"
)
OWN = OWN.replace("(~mask, -1", "(~mask[0], -1")
ASKED = "Only you know: say `--mask hidden` or `--mask shown`"
OTHERWISE = (
    "in your masks after all, no contract finds a fault. Say so: `--mask "
)


def signs(parts):
    """The worst level of each part."""
    return {name: worst(part["found"]) for name, part in parts.items()}


def test_what_true_means_is_asked_where_nothing_says_it(told):
    parts, left = told(HIDING + SHOWING + OWN + BY_NAME)
    assert left == {}
    assert signs(parts) == {
        "Heads": "risk",
        "Shown": "risk",  # Of rows that may attend to nothing, as all here.
        "Past": "risk",  # Of the mask that it takes, and never reads.
        "attention": "risk",
        "marked": "fault",
        "look_ahead_mask": "risk",
        "scaled_dot_product_attention": "risk",
    }
    asking = {name for name, part in parts.items() if ASKED in said(part)}
    assert asking == {"Heads", "attention", "look_ahead_mask"}
    assert "read as added" in said(parts["scaled_dot_product_attention"])
    assert "If True hides in your masks, no contract" in said(parts["marked"])


@pytest.mark.parametrize(
    ("word", "wrong"),
    [
        ("shown", {"Heads", "attention", "marked", "look_ahead_mask"}),
        ("hidden", {"Shown"}),
    ],
)
def test_what_the_user_says_of_masks_is_not_read_the_other_way(
    told, word, wrong
):
    text = HIDING + SHOWING + OWN + BY_NAME.partition("def added")[0]
    parts, _ = told(text, mask=word)
    assert {name for name in parts if faults(parts[name])} == wrong
    for name, part in parts.items():
        assert ASKED not in said(part)
        assert (OTHERWISE in said(part)) == (name in wrong)


def test_a_question_is_no_reason_to_fail_and_names_what_to_type(
    tmp_path, capfd
):
    path = tmp_path / "mine.py"
    path.write_text(BEGIN + HIDING, encoding="utf-8")
    assert main(["check", str(path)]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert ASKED in out
    assert "! With a causal mask no row sees its future" in out
    assert main(["check", str(path), "--mask", "shown"]) == 1
    assert main(["check", str(path), "--mask", "hidden"]) == 0


WHOLE = """
class Talks(nn.Module):
    def __init__(self, vocab_size, d=12):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d)
        self.at = nn.Embedding(32, d)
        self.looks = Heads(d)
        self.out = nn.Linear(d, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.at.weight[:n]
        x = x + self.looks(x, torch.ones(n, n).triu(1).bool())
        return self.out(x.relu())
"""


def test_a_whole_model_that_is_right_answers_for_its_parts(told):
    parts, _ = told(HIDING + WHOLE)
    assert not faults(parts["Talks"])
    assert "in those that its model, which is right, hands" in said(
        parts["Heads"]
    )
    assert ASKED not in said(parts["Heads"])
    # With a fault in the whole nothing is answered.
    parts, _ = told(HIDING + WHOLE.replace("triu(1)", "tril()"), "other.py")
    assert faults(parts["Talks"])
    assert ASKED in said(parts["Heads"])
