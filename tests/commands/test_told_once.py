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
        x = x + self.turn(x) + places(torch.arange(x.shape[1]))
        return x + (past / past.sum(1, True)) @ x


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
