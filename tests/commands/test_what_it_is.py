"""What ``check`` takes a part for, how it builds it, and what it leaves alone.

The code is written anew, in the style of what was found in repositories.
"""

from pathlib import Path

import pytest

from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target

pytestmark = pytest.mark.once

BEGIN = """
import os

import torch
from torch import nn
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # A name is not folded then.

    def judge(text):
        path = Path("mine.py")
        path.write_text(BEGIN + text, encoding="utf-8")
        section = judged(Target(path), Asked())
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


HANDED_ON = """
class Gathers(nn.Module):
    def __init__(self, d_block, nh, dropout=0.5):
        super().__init__()
        self.nh, self.drop = nh, nn.Dropout(dropout)
        self.qkv = nn.Linear(d_block, 3 * d_block)
        self.out = nn.Linear(d_block, d_block)


class Softly(Gathers):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.nh, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = self.drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_words_that_a_class_hands_on_are_those_of_the_class_above(told):
    parts, left = told(HANDED_ON)
    assert left == {}  # What has no `forward` is no part.
    assert "Softly(d_block=12, nh=3, dropout=0.0)" in said(parts["Softly"])
    assert not faults(parts["Softly"])
    parts, _ = told(HANDED_ON.replace(" / q.shape[-1] ** 0.5", ""))
    assert "not divided" in " ".join(faults(parts["Softly"]))


POSITIONS_ALONE = """
class Positions(nn.Module):
    def __init__(self, d_model, max_len=512):
        super().__init__()
        rate = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        angle = torch.arange(max_len)[:, None] * rate
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        self.register_buffer("table", table[None])

    def forward(self, x):
        return self.table[:, : x.shape[1]]
"""


def test_positions_that_are_returned_alone_are_added_to_vectors(told):
    parts, _ = told(POSITIONS_ALONE)
    assert parts["Positions"]["component"] == "add_positions"
    assert "it returns positions alone" in said(parts["Positions"])
    assert not parts["Positions"]["found"]["failed"]
    parts, _ = told(POSITIONS_ALONE.replace("d_model)\n", "d_model / 2)\n"))
    [message] = faults(parts["Positions"])
    assert "turns by" in message
    parts, left = told(POSITIONS_ALONE.replace("Positions", "Angles"))
    assert parts == {}
    assert "a table of positions" in left["Angles"]


LEARNED_PAIRS = """
class Mixes(nn.Module):
    def __init__(self, d_model, num_heads, max_len):
        super().__init__()
        scores = torch.randn(num_heads, max_len, max_len)
        self.scores, self.heads = nn.Parameter(scores), num_heads
        self.v, self.o = (nn.Linear(d_model, d_model) for _ in "vo")

    def forward(self, x, mask=None):
        seq = x.shape[1]
        scores = self.scores[:, :seq, :seq]
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        v = self.v(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_weights_that_are_learned_for_pairs_are_no_attention(told):
    parts, left = told(LEARNED_PAIRS)
    assert parts == {}
    assert "learned for each pair" in left["Mixes"]
    # Constant weights that nobody learns are a fault.
    parts, _ = told(
        LEARNED_PAIRS.replace(
            "[:, :seq, :seq]", ".mean().expand(seq, seq)"
        ).replace("torch.randn(num_heads, max_len, max_len)", "torch.randn(1)")
    )
    assert "as if all weights were constant" in " ".join(faults(parts["Mixes"]))


WITHIN_A_WINDOW = """
class Near(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        place = torch.arange(x.shape[1])
        far = place[:, None] - place
        hidden = far.abs() > 2
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            hidden = hidden | (mask == 0)
        weights = scores.masked_fill(hidden, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_attention_within_a_window_is_not_judged_by_what_all_see(told):
    parts, left = told(WITHIN_A_WINDOW)
    assert parts == {}
    assert "as within a window" in left["Near"]
    parts, _ = told(WITHIN_A_WINDOW.replace("far.abs() > 2", "far > 2"))
    assert faults(parts["Near"])


WARM = """
class NoamOpt:
    def __init__(self, d_model, warmup, optimizer):
        self.sizes, self.optimizer, self.steps = (d_model, warmup), optimizer, 0

    def step(self):
        self.steps += 1
        width, warmup = self.sizes
        ramp = self.steps * warmup**-1.5
        for group in self.optimizer.param_groups:
            group["lr"] = width**-0.5 * max(self.steps**-0.5, ramp)
        self.optimizer.step()
"""


def test_a_rate_that_takes_the_larger_part_is_told_so(told):
    parts, _ = told(WARM)
    assert "The larger of the two is taken" in faults(parts["NoamOpt"])[0]
    parts, _ = told(WARM.replace("max(", "min("))
    assert not faults(parts["NoamOpt"])


DIES = """
class Dies(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.map = nn.Linear(d_model, d_model)

    def forward(self, x):
        os._exit(1)


class Feeds(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.up = nn.Linear(d_model, 2 * d_model)
        self.down = nn.Linear(2 * d_model, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_what_ends_its_process_is_not_judged_if_nobody_says_what_it_is(told):
    parts, left = told(DIES)
    assert {*parts} == {"Feeds"}
    assert "Its process ended" in left["Dies"]
