"""``check`` on a folder, a module, a notebook and a name, as pages and JSON."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from companion.commands import main
from companion.commands.check.file import plain, read
from companion.commands.check.page import as_json, page
from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target, targets

pytestmark = pytest.mark.once

PARTS = """
import math
import torch
from torch import nn

from .sizes import EPS


class Norm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.eps = EPS

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = x.var(-1, keepdim=True, unbiased=False)
        return self.gain * (x - mean) / (variance + self.eps).sqrt() + self.bias


class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.all = nn.Linear(n_embd, 3 * n_embd)
        self.out = nn.Linear(n_embd, n_embd)

    def forward(self, x, mask=None):
        batch, seq, width = x.shape
        q, k, v = (
            y.view(batch, seq, self.n_head, -1).transpose(1, 2)
            for y in self.all(x).split(width, 2)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        y = scores.softmax(-1) @ v
        return self.out(JOIN.reshape(batch, seq, width))


class Network(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Given(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.inner, self.norm = inner, Norm(size)

    def forward(self, x, mask=None):
        return x + self.inner(self.norm(x))


class Data:
    pass
"""
MODEL = """
import torch
from torch import nn
from shop.parts import Attention, Given, Network, Norm


class Language(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = config
        self.words = nn.Embedding(c.vocab_size, c.n_embd)
        self.places = nn.Embedding(c.block_size, c.n_embd)
        self.attention = Attention(c.n_embd, c.n_head)
        self.network = Given(c.n_embd, Network(c.n_embd, 4 * c.n_embd))
        self.head = nn.Linear(c.n_embd, c.vocab_size)

    def forward(self, idx):
        length = idx.shape[1]
        x = self.words(idx) + self.places(torch.arange(length))
        mask = torch.ones(length, length).tril()
        return self.head(self.network(x + self.attention(x, mask)))
"""


@pytest.fixture
def repository(tmp_path):
    """A package with relative imports, beside what is not to be looked at."""

    def write(join="y.transpose(1, 2)"):
        files = {
            "shop/__init__.py": "",
            "shop/sizes.py": "EPS = 1e-5\n",
            "shop/parts.py": PARTS.replace("JOIN", join),
            "shop/model.py": MODEL,
            "setup.py": "raise SystemExit('a script')\n",
            ".venv/hidden.py": "1 / 0",
            "build/made.py": "1 / 0",
        }
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def found_in(path, **asked):
    section = judged(Target(path), Asked(**asked))
    assert not section.error
    return section


def test_parts_of_a_package_are_found_by_what_they_do(repository):
    section = found_in(repository() / "shop" / "parts.py")
    kinds = {part["name"]: part["component"] for part in section.parts}
    assert kinds == {
        "Norm": "layer_norm",
        "Attention": "multihead",
        "Network": "feed_forward",
    }
    faults = [
        group
        for part in section.parts
        for group in part["found"]["failed"]
        # A row that may attend to nothing is one that nobody builds.
        if "may attend to nothing" not in str(group["names"])
    ]
    assert not faults
    assumed = section.parts[1]["found"]["assumed"]
    assert assumed[0] == "built as Attention(n_embd=12, n_head=3)"
    [left] = section.unjudged
    assert left["name"] == "Given"
    reason, _, line = left["reason"].partition(". Say it in place of each …: ")
    assert reason == "nothing says what its argument `inner` is"
    assert line.endswith('parts.py:Given(size=12, inner=…)"`')


def test_a_folder_is_told_file_by_file_with_a_total(
    repository, capfd, tmp_path
):
    folder = repository("y")
    data, report = tmp_path / "report.json", tmp_path / "report.html"
    args = ["check", str(folder), "--json", str(data), "--html", str(report)]
    assert main(args) == 1
    out, err = capfd.readouterr()
    assert err == ""
    assert f"— {folder}/shop/model.py\n" in out
    assert "made.py" not in out
    assert "hidden.py" not in out
    assert "setup.py" not in out
    last = " ".join(out.splitlines()[-2:])
    assert "4 files, 5 parts judged, " in last
    assert "not imported" not in last
    found = json.loads(data.read_text())
    assert set(found) == {"format", "companion", "passed", "files"}
    assert not found["passed"]
    [file] = [f for f in found["files"] if f["path"].endswith("parts.py")]
    [bad] = [p for p in file["parts"] if p["name"] == "Attention"]
    assert bad["level"] == "fault"
    assert bad["at"].endswith("parts.py:22")
    assert "where heads are split or joined" in bad["failures"][0]["message"]
    text = report.read_text()
    assert "<title>check " in text
    assert text.count("<style>") == 1
    assert "http" not in text.replace("http://www.w3.org", "")
    assert not list(tmp_path.glob(".report*"))


def test_a_name_is_judged_alone_and_by_the_component_that_is_asked_for(
    repository, capfd, monkeypatch
):
    monkeypatch.chdir(repository())
    assert main(["check", "shop.model:Language"]) == 0
    out = capfd.readouterr().out
    assert "✓ language_model: all 17 contracts hold" in out
    assert main(["check", "shop/parts.py:Network(12, 24)", "feed_forward"]) == 0
    assert "feed_forward: all" in capfd.readouterr().out
    assert main(["check", "torch.nn.functional:softmax", "softmax"]) in (0, 1)
    assert "softmax: " in capfd.readouterr().out


def test_json_alone_is_written_where_it_is_asked_for(repository, capfd):
    path = repository() / "shop" / "model.py"
    assert main(["check", str(path), "--json", "-"]) == 0
    found = json.loads(capfd.readouterr().out)
    [file] = found["files"]
    assert file["parts"][0]["component"] == "language_model"
    assert file["parts"][0]["level"] == ""
    assert found["passed"]


CELLS = [
    "%matplotlib inline\n!pip install something",
    "import torch\nfrom near import lower",
    "print('not shown'); 1 / 0",
    "def causal_mask(length):\n    return lower(length)\n\nwhat?",
    "while True: pass",
    'check("causal_mask", causal_mask)',
    "def broken(",
    "class Feed(torch.nn.Module):\n"
    "    def __init__(self, dim):\n"
    "        super().__init__()\n"
    "        self.a = torch.nn.Linear(dim, 2 * dim)\n"
    "        self.b = torch.nn.Linear(2 * dim, dim)\n"
    "    def forward(self, x):\n"
    "        return self.b(self.a(x).relu().misspelt())\n",
]


@pytest.fixture
def notebook(tmp_path):
    cells = [{"cell_type": "markdown", "source": "# A title"}]
    cells += [
        {"cell_type": "code", "source": cell.splitlines(keepends=True)}
        for cell in CELLS
    ]
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    near = (
        "import torch\ndef lower(n):\n    return torch.ones(n, n).tril() > 0\n"
    )
    path.with_name("near.py").write_text(near)
    return path


def test_a_notebook_is_run_cell_by_cell(notebook, monkeypatch):
    monkeypatch.setattr("companion.commands.check.process.LIMIT", 3)
    section = found_in(notebook)
    [mask] = section.parts
    assert (mask["component"], mask["found"]["failed"]) == ("causal_mask", [])
    assert section.at(mask["line"]) == f"{notebook}, cell 5, line 1"
    assert set(section.remarks) == {4, 6, 8}
    assert "ZeroDivisionError" in section.remarks[4]
    assert "Cell 6 was left out. It had not come back" in section.remarks[6]
    assert "a syntax error in its line 1" in section.remarks[8]
    [feed] = section.unjudged
    assert section.at(feed["line"]) == f"{notebook}, cell 9, line 1"
    assert "misspelt" in feed["reason"]


HEAD = """
class Head(torch.nn.Module):
    def __init__(self, d_model, head_size):
        super().__init__()
        self.q, self.k, self.v = (
            torch.nn.Linear(d_model, head_size) for _ in "123"
        )

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT / math.sqrt(self.k.out_features)
        past = torch.ones(x.shape[1], x.shape[1]).tril() == 1
        return scores.masked_fill(~past, -torch.inf).softmax(-1) @ self.v(x)
"""


def test_neither_a_magic_nor_an_import_that_fails_hides_what_stands_behind(
    tmp_path,
):
    cells = ["import torch\nimport who_knows\nimport math", "!git clone x"]
    source = [
        {"cell_type": "code", "source": text} for text in [*cells, HEAD.strip()]
    ]
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps({"cells": source, "nbformat": 4}))
    section = found_in(path)
    assert section.unjudged == []
    [head] = section.parts
    assert (head["component"], head["found"]["failed"]) == (
        "causal_attention",
        [],
    )
    assert "No module named 'who_knows'" in section.remarks[1]


def test_what_only_a_notebook_understands_is_left_out():
    assert plain("x = 7\n% 3") == "x = 7\npass"
    assert plain("y = (7\n% 3)") == "y = (7\n% 3)"
    assert plain("%%time\nx = 3") == "pass\nx = 3"
    assert plain("%%bash\nrm -r x") == "pass"
    assert plain("f = %timeit -o g()\nprint(f)") == "f = None\nprint(f)"


def test_a_part_that_crashes_does_not_stop_the_others(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import os, torch\n"
        "def padding_mask(tokens, pad):\n    os._exit(3)\n"
        "def causal_mask(length):\n"
        "    return torch.ones(length, length).tril().bool()\n"
    )
    one, other = found_in(path).parts
    assert one["found"]["headline"].endswith("could not be tried")
    assert other["found"]["failed"] == []


def test_the_page_escapes_what_code_is_called(tmp_path):
    section = judged(Target(tmp_path / "<b>no.py"), Asked())
    text = page("<i>", [section])
    assert "<b>" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;no.py" in text


def test_a_report_that_cannot_be_written_leaves_the_old_one(repository, capfd):
    path = repository() / "shop" / "model.py"
    assert main(["check", str(path), "--html", str(path)]) == 2
    assert "expected the name of a file, *.html" in capfd.readouterr().err
    assert path.read_text() == MODEL
    gone = path.parent / "no" / "report.json"
    assert main(["check", str(path), "--json", str(gone)]) == 2
    read = capfd.readouterr()
    assert f"--json: there is no folder {gone.parent} for" in read.err
    assert read.out == ""  # Nothing was judged for want of a place.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("no.py", "No such file"),
        ("nowhere.at_all", "there is no such file, folder or module"),
        ("nowhere/at/all", "expected a Python file, *.py, or a notebook"),
        ("empty", "empty: there is no Python in this folder"),
        ("empty:Name", "this is a folder; a name, here 'Name', stands"),
        ("shop/parts.py:Netwrk", "no such name in it. Did you mean 'Network'?"),
        ("shop/parts.py:", "expected a name behind the colon"),
        ("shop/parts.py:Data()", "what it is does not show: name a comp"),
        ("broken.ipynb", "it cannot be read as a notebook"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    repository, capfd, monkeypatch, what, says
):
    folder = repository()
    (folder / "empty").mkdir()
    (folder / "broken.ipynb").write_text('{"cells": [')
    monkeypatch.chdir(folder)
    assert main(["check", what]) == 2
    out, err = capfd.readouterr()
    assert says in " ".join((out + err).split())
    assert "Traceback" not in out + err
    assert err.count("\n") <= 1


@pytest.mark.parametrize("what", ["C:/x.py:Name", "a.b:Name", "x.ipynb:f(2)"])
def test_a_name_stands_behind_the_colon(what):
    [target] = targets(what)
    assert target.name == what.rpartition(":")[2]


def test_the_command_itself_does_not_import_pytorch():
    code = (
        "import sys, companion.commands.check, companion.commands.check.page\n"
        "import companion.pytest_plugin\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_with_a_mark_alone_is_read_as_before(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def f(): ...\n")
    assert read(path).at(1) == f"{path}:1"


# The page of the book.

PAGE = Path(__file__).parents[2] / "book" / "check.md"
MULTIHEAD = """
import math
from torch import nn


class MultiHead(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        joined = scores.softmax(-1) @ v
        return self.o(joined.reshape(x.shape))
"""


def shown(kind, part):
    """The blocks of the page that hold this text."""
    found = re.findall(rf"```{kind}\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    return [block for block in found if part in block]


def without_numbers(lines):
    """Weights that are drawn decide where two rows differ most."""
    return [re.sub(r"At batch .*", "At", line) for line in lines]


def test_the_three_lines_of_the_page_print_what_it_shows(tmp_path):
    (tmp_path / "attention.py").write_text(MULTIHEAD)
    [code] = shown("python", "import check\n")
    assert len(code.split("\n\n")[0].splitlines()) + 1 == 3
    [quoted] = shown("text", "multihead: 6 of 19 contracts fail\n\n")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append('.')\n{code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    printed = without_numbers(done.stdout.splitlines())
    for line in without_numbers(quoted.splitlines()):
        assert line in printed or "…" in line, done.stderr


def test_the_repository_of_the_page_prints_what_it_shows(
    repository, capfd, monkeypatch
):
    monkeypatch.chdir(repository("y"))
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["check", "shop"]) == 1
    printed = without_numbers(capfd.readouterr().out.splitlines())
    [quoted] = shown("text", "shop/parts.py:9 Norm")
    for line in without_numbers(quoted.splitlines()):
        assert line in printed or "…" in line


def test_the_page_names_every_field_of_the_json(repository):
    section = found_in(repository("y") / "shop" / "parts.py")
    found = as_json([section])
    names = {*found, *found["files"][0], *found["files"][0]["parts"][0]}
    names |= set(found["files"][0]["parts"][1]["failures"][0])
    names |= set(found["files"][0]["unjudged"][0])
    page = PAGE.read_text("utf-8")
    assert [
        name for name in names - {"reason"} if f"`{name}`" not in page
    ] == []


def test_the_test_of_the_page_runs(tmp_path):
    (tmp_path / "attention.py").write_text(MULTIHEAD)
    [code] = shown("python", "import each_contract\n")
    (tmp_path / "test_mine.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--rootdir=."]  # What is installed brings the plug-in.
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "do positions" not in done.stderr
    assert re.search(r"\d failed, \d+ passed", done.stdout), done.stdout
    assert "for want of a transpose?" in " ".join(done.stdout.split())
