"""``check`` on what it once judged wrongly, or passed over, in repositories.

The code is written anew, in the style of what was found there.
"""

import json

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
def written(tmp_path):
    def write(text, name="mine.py"):
        path = tmp_path / name
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
    assert "main" not in out.replace(str(path.parent), "")
    assert "Sizes" not in out
    assert "_inner" not in out
    # Who asks for one thing wants to hear of no other.
    assert "Not tried" not in printed(path, "softmax")[1]
    assert "Not tried" not in printed(f"{path}:softmax")[1]


def test_in_a_folder_they_are_listed_by_file_and_in_the_reports(
    written, printed, tmp_path
):
    written(LOOSE)
    many = [f"def f{i}(x):\n    return x\n" for i in range(12)]
    written("\n".join(many), "more.py")
    data, page = tmp_path / "all.json", tmp_path / "all.html"
    _, out = printed(tmp_path, "--json", data, "--html", page)
    assert f"{tmp_path}/mine.py: mixes, OldLooks, broken_softmax; " in out
    assert f"{tmp_path}/more.py: f0, f1, f2, f3, f4, f5, f6, f7 and 4 m" in out
    files = json.loads(data.read_text())["files"]
    assert len(files[1]["untried"]) == 12
    assert "Not tried, for want of a name or mark: mixes," in page.read_text()
