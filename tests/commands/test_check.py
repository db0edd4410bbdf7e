"""``python -m companion check``: what it finds, runs, says and refuses."""

import contextlib
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from companion.commands import check as command
from companion.commands import isolated, main
from companion.commands.check import process as check_process
from companion.commands.check.file import parts_in, read
from companion.commands.check.imports import build
from companion.commands.check.judging import report_of
from companion.commands.check.process import Asked, Section, judged
from companion.commands.check.target import Target
from companion.commands.isolated import explained
from companion.contracts import COMPONENTS, checks
from companion.words import understood

pytestmark = pytest.mark.once

GROUP = (
    "pathlib.Path(__file__).with_suffix('.group').write_text(str(os.getpgrp()))"
)
RIGHT = "def causal_mask(length):\n    return torch.ones(length, length).tril()"


@pytest.fixture
def written(tmp_path):
    """Writes a learner's file, and reads it as the command does."""

    def write(text):
        path = tmp_path / "mine.py"
        path.write_text(textwrap.dedent(text).strip() + "\n", encoding="utf-8")
        return read(path)

    return write


def found_in(file):
    return [(p.component, p.name, p.line) for p in parts_in(file, COMPONENTS)]


def made(file):
    """What the first part of a file is, once the file was imported."""
    return build(file, parts_in(file, COMPONENTS)[0])


# What is found.


def test_functions_are_found_by_name_and_anything_by_a_mark(written):
    file = written("""
    def causal_mask(length): ...

    def helper(): ...

    @checks("attention")
    def look(q, k, v, mask=None): ...

    # checks: rope
    def turn(x, positions): ...

    def pad(tokens, pad): ...  # checks: padding_mask

    mine = Heads(12)  # checks: multihead

    @contracts.checks("encoder", 12)
    class Stack: ...
    """)
    assert found_in(file) == [
        ("causal_mask", "causal_mask", 1),
        ("attention", "look", 6),
        ("rope", "turn", 9),
        ("padding_mask", "pad", 11),
        ("multihead", "mine", 13),
        ("encoder", "Stack", 16),
    ]


def test_a_mark_wins_over_the_name_and_the_second_of_a_name_over_the_first(
    written,
):
    file = written("""
    @checks("masked_softmax")
    def softmax(scores, mask): ...

    def rope(x): ...

    def rope(x, positions): ...
    """)
    assert found_in(file) == [
        ("masked_softmax", "softmax", 2),
        ("rope", "rope", 6),
    ]


def test_classes_and_numbers_with_the_name_of_a_component_are_left_alone(
    written,
):
    file = written("encoder = 3\n\nclass attention: ...")
    assert found_in(file) == []


def test_the_decorator_changes_nothing():
    def fn():
        return 3

    assert checks("attention", 5, heads=7)(fn) is fn


@pytest.mark.bad_input
def test_the_decorator_wants_a_name():
    with pytest.raises(TypeError, match=r"as in @checks\('attention'\)"):
        checks(len)


# What is run.


def test_the_file_is_imported_and_its_main_part_is_not_run(written, capsys):
    file = written("""
    from __future__ import annotations
    import math, torch
    WIDTH = 7
    print("training")
    table = torch.zeros(WIDTH)
    for i in range(3):
        table[i] = i
    def helper(x, eps=WIDTH) -> Unknown:
        return eps
    def softmax(scores, dim):
        return table.sum() + helper(scores) + len("abc")
    if __name__ == "__main__":
        table = 1 / 0
    """)
    assert made(file)(0, 0) == 3 + 7 + 3
    assert capsys.readouterr().out == ""


def test_another_file_beside_it_can_be_imported(written):
    file = written("""
    from beside import seven
    def softmax(scores, dim):
        return seven
    """)
    file.path.with_name("beside.py").write_text("seven = 7")
    assert made(file)(0, 0) == 7


def test_a_class_is_built_with_what_its_mark_says_and_put_in_eval_mode(written):
    file = written("""
    from torch import nn
    WIDE = 31

    @checks("feed_forward", 12, wide=WIDE)
    class Net(nn.Sequential):
        def __init__(self, d_model, wide):
            first, last = nn.Linear(d_model, wide), nn.Linear(wide, d_model)
            super().__init__(first, nn.Dropout(), nn.ReLU(), last)
    """)
    net = made(file)
    assert isinstance(net, nn.Module)
    assert net[0].out_features == 31
    assert report_of("feed_forward", net)["failed"] == []


def test_a_mark_needs_nothing_of_the_package(written):
    file = written('@checks("rope")\ndef turn(x, positions):\n    return 3')
    assert made(file)(0, 0) == 3


def test_a_dataclass_in_a_file_works(written):
    file = written("""
    from dataclasses import dataclass

    @dataclass
    class Two:
        a: int
        b: "int"

    def softmax(scores, dim):
        return Two(3, 5).b
    """)
    assert made(file)(0, 0) == 5


# What is said.


FOUND = {
    "headline": "rope: 2 of 13 contracts fail",
    "failed": [
        {"names": ["A long name of a contract"] * 2, "message": "word " * 30}
    ],
    "held": ["One", "Two"],
}


def shown(written, found, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    file = written("def rope(x, positions): ...")
    part = {"name": "rope", "line": 1, "found": found}
    return command.report(Section(Target(file.path), file), part)


@pytest.mark.parametrize("columns", [31, 40, 200])
def test_a_report_is_as_wide_as_the_terminal_and_80_at_most(
    written, monkeypatch, columns
):
    first, *lines = shown(written, FOUND, monkeypatch, columns)
    assert first.endswith("mine.py:1 rope")
    assert min(columns, 80) - 6 < max(map(len, lines)) <= min(columns, 80)
    assert lines[0].startswith("✗ rope: 2 of 13")
    assert sum("✗ A long name" in line for line in lines) == 2
    assert lines[-2:] == ["  ✓ 2 hold", ""]


def test_a_risk_has_its_sign_and_says_why(written, monkeypatch):
    group = {
        "names": ["It takes an odd width"],
        "message": "It raised.",
        "level": "risk",
        "excuse": "Only a risk: nobody asks.",
    }
    found = {**FOUND, "failed": [group], "headline": "no fault, 1 risk"}
    lines = shown(written, found, monkeypatch, 80)
    assert lines[1:] == [
        "! no fault, 1 risk",
        "  ! It takes an odd width",
        "    It raised.",
        "    Only a risk: nobody asks.",
        "  ✓ 2 hold",
        "",
    ]


def test_what_holds_is_named_if_nothing_fails(written, monkeypatch):
    found = {**FOUND, "failed": [], "headline": "all"}
    lines = shown(written, found, monkeypatch, 80)
    assert lines[1:] == ["✓ all", "  ✓ One", "  ✓ Two", ""]


@pytest.mark.parametrize(
    ("terminal", "name", "value", "coloured"),
    [
        (True, "TERM", "xterm", True),
        (False, "TERM", "xterm", False),
        (True, "TERM", "dumb", False),
        (True, "NO_COLOR", "1", False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    written, monkeypatch, capsys, terminal, name, value, coloured
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    lines = "\n".join(shown(written, FOUND, monkeypatch, 80))
    assert ("\033[31;1m✗ rope" in lines) == coloured
    assert ("\033[" in lines) == coloured


# All of it, in another process.


def test_each_part_has_its_report_and_the_exit_code_is_for_all(
    written, capfd, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    file = written("""
    import os, sys, torch

    @checks("padding_mask")
    def hidden(tokens, pad):
        print("\x1b[2J printed", "x" * 20_000)
        os.write(1, b"\x1b[2J and past Python")
        return (tokens == pad)[:, None, None]

    print("not shown")

    def causal_mask(length):
        return torch.ones(length, length, dtype=torch.bool).tril()
    """)
    assert main(["check", str(file.path)]) == 1
    out, err = capfd.readouterr()
    assert err == ""
    printed, out = out.split("\n… what else it prints is left out\n")
    assert re.fullmatch(r"\[2J printed x{1900,2000}", printed)
    one, other = out.split("\n\n")[:2]
    assert one.startswith(f"{file.path}:4 hidden\n✗ padding_mask: ")
    assert other.startswith(f"{file.path}:11 causal_mask\n✓ causal_mask: all 7")
    assert "It is upside down: True marks a real" in " ".join(one.split())
    assert sorted(p.name for p in file.path.parent.iterdir()) == ["mine.py"]
    # One that is asked for, and is right.
    assert main(["check", str(file.path), "causal_mask"]) == 0


def test_of_what_is_printed_no_more_is_shown_than_fits_a_screen(written, capfd):
    file = written("""
    import torch

    def causal_mask(length):
        print(*range(30), sep="\\n")
        return torch.ones(length, length, dtype=torch.bool).tril()
    """)
    assert main(["check", str(file.path)]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[:20] == [*map(str, range(20))]
    assert shown[20] == "… what else it prints is left out"
    assert shown[21].startswith(f"{file.path}:")


def test_what_a_process_prints_and_how_it_ends_is_told_in_chinese_too(
    written, capfd
):
    file = written("""
    import os

    def causal_mask(length):
        print(*range(30), sep="\\n")
        os._exit(3)
    """)
    assert main(["check", str(file.path), "--lang", "zh"]) == 1
    told = capfd.readouterr().out.partition(f"{file.path}:")
    assert told[0].endswith("\n19\n……其余打印内容已略去\n")
    assert understood(told[2])
    assert "它的进程就结束了" in told[2]


def test_a_risk_is_told_and_is_no_reason_to_fail(written, capfd):
    file = written("""
    def padding_mask(tokens, pad):
        return (tokens != 0)[:, None, None]
    """)
    assert main(["check", str(file.path)]) == 0
    out = capfd.readouterr().out
    assert "\n! padding_mask: no fault in 10 contracts, " in out
    assert "Only a risk: It bites once a tokenizer comes" in out
    assert "padding_mask" not in capfd.readouterr().out


def verdict(file, **options):
    """What is said of the only part of a file."""
    [part] = judged(Target(file.path), Asked(**options)).parts
    return part["found"]


def running(group):
    """Which processes of a group have not ended, where there is a /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            state, _, its, *_ = path.read_text().rpartition(")")[2].split()
            found += [path] if (int(its), state != "Z") == (group, True) else []
    return found


@pytest.mark.bad_input
def test_a_training_at_the_top_is_stopped_and_told_where_to_go(
    refused, monkeypatch
):
    monkeypatch.setattr(check_process, "LIMIT", 3)
    message = "/mine.py: importing it had not ended after 3 seconds of "
    assert message in refused(f"{RIGHT}\nwhile True: pass")


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Linux alone tells"
)
def test_an_import_that_only_waits_has_more_time(written, monkeypatch):
    monkeypatch.setattr(check_process, "LIMIT", 2)
    file = written(f"import time, torch\n{RIGHT}.bool()\ntime.sleep(3)")
    assert verdict(file)["failed"] == []


@pytest.mark.bad_input
def test_an_import_that_waits_for_ever_is_stopped(refused, monkeypatch):
    monkeypatch.setattr(check_process, "LIMIT", 0.5)
    message = (
        "/mine.py: importing it had not ended after 0.5 seconds of computing, "
        "or 2 by the wall clock, and was stopped. "
    )
    assert message in refused(f"{RIGHT}\nimport time\ntime.sleep(600)")


@pytest.mark.parametrize(
    ("body", "limit", "says"),
    [
        # C code that lets no other thread run: only a process can be killed.
        (
            'os.fork() or os.execlp("sleep", "sleep", "300")\n'
            '    re.match("(a+)+$", "a" * 40 + "b")',
            3,
            "not come back after 3 sec",
        ),
        ("os._exit(0)", 60, "Its process ended before there was a result"),
    ],
)
def test_what_never_comes_back_or_ends_its_process_is_told(
    written, monkeypatch, body, limit, says
):
    monkeypatch.setattr(check_process, "LIMIT", limit)
    file = written(
        "import os, pathlib, re\n"
        f"def softmax(scores, dim):\n    {GROUP}\n    {body}"
    )
    found = verdict(file)
    assert found["headline"] == "softmax: the contracts could not be tried"
    assert says in found["failed"][0]["message"]
    # Nor has it left a process behind.
    group = int(file.path.with_suffix(".group").read_text())
    assert group != os.getpgrp()
    assert not running(group)


@pytest.mark.skipif(not isolated.LIMITED, reason="Linux alone tells a child")
def test_a_command_that_is_killed_leaves_no_process_behind(written):
    file = written(f"{RIGHT}\nimport os, pathlib\n{GROUP}\nwhile True: pass")
    command = [sys.executable, "-m", "companion", "check", file.path]
    noted = file.path.with_suffix(".group")
    with subprocess.Popen(command) as process:
        while not (noted.exists() and noted.read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    group, end = int(noted.read_text()), time.monotonic() + 10
    while running(group) and time.monotonic() < end:
        time.sleep(0.05)
    assert not running(group)


@pytest.mark.skipif(not isolated.LIMITED, reason="no limit of memory here")
def test_a_function_that_takes_too_much_memory_is_told_the_limit(written):
    file = written("""
    def softmax(scores, dim):
        fits = bytearray(2**28)
        return bytearray(2**31)
    """)
    [failed] = verdict(file, memory=0.5)["failed"]
    assert "raised MemoryError in line 3 of `softmax`" in failed["message"]
    says = "It may take 0.5 GiB; `--memory 1` allows more."
    assert failed["message"].endswith(says)


def test_pytorch_is_understood_when_it_has_no_memory(monkeypatch):
    monkeypatch.setattr(isolated, "LIMITED", True)
    with pytest.raises(RuntimeError) as none:
        torch.empty(2**46, dtype=torch.uint8)
    said = explained(str(none.value), 4)
    assert said.endswith(" It may take 4 GiB; `--memory 8` allows more.")
    assert explained("It returned None.", 4) == "It returned None."
    said = explained("It raised MemoryError", 4)
    assert said.startswith("It raised MemoryError. It may take 4 GiB;")


def test_a_system_that_limits_no_memory_is_told_of_once(
    written, monkeypatch, capsys
):
    file = written(f"{RIGHT}\n{RIGHT.replace('causal', 'padding')}")
    found = {"headline": "", "failed": [], "held": []}
    part = {"name": "a", "line": 1, "component": "rope", "found": found}
    section = Section(Target(file.path), file, [part, part])
    monkeypatch.setattr(command, "judged", lambda *_, **named: section)
    for limited, times in ((False, 1), (True, 0)):
        monkeypatch.setattr(isolated, "LIMITED", limited)
        assert main(["check", str(file.path)]) == 0
        said = capsys.readouterr().err
        assert said.count("keeps no limit of memory") == times


def test_a_process_that_does_not_begin_is_not_waited_for(written, monkeypatch):
    monkeypatch.setattr(isolated, "STARTING", 0)
    file = written("def softmax(scores, dim): ...")
    section = judged(Target(file.path), Asked())
    assert section.error.endswith(": It had not begun after 0 seconds.")


# The page of the book.

YOURS = """
import torch
import torch.nn.functional as F
from torch import nn

from companion import positions
from companion.transformer import Transformer, TransformerConfig

def YourTransformer(vocab_size, pad):
    torch.manual_seed(0)
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 17, "num_layers": 2}
    vocabs = {"src_vocab_size": vocab_size, "tgt_vocab_size": vocab_size}
    return Transformer(TransformerConfig(**sizes, **vocabs, pad=pad))

def yours_hidden(q, k, v, hidden=None):
    mask = None if hidden is None else ~hidden
    return F.scaled_dot_product_attention(q, k, v, mask)

def yours_additive(q, k, v, added=None):
    return F.scaled_dot_product_attention(q, k, v, added)

def yours_additive_mask(length):
    return nn.Transformer.generate_square_subsequent_mask(length)

def yours_greedy(model, src, max_len, bos, eos):
    ids, memory = torch.full((1, 1), bos), model.encode(src)
    for _ in range(max_len):
        best = model.generator(model.decode(memory, ids)[:, -1]).argmax(-1)
        ids = torch.cat([ids, best[:, None]], 1)
        if best.item() == eos:
            break
    return ids

def yours_key_padding(tokens, pad):
    return tokens == pad

class YourRotary(nn.Module):
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        slower = theta ** (-torch.arange(0, d_k, 2) / d_k)
        angles = torch.outer(torch.arange(float(max_seq_len)), slower)
        self.register_buffer("turns", torch.polar(angles**0, angles))

    def forward(self, x, token_positions):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        turned = pairs * self.turns[token_positions]
        return torch.view_as_real(turned).flatten(-2)

def yours_seq_first(x):
    return x + positions.sinusoidal(*x.shape[::2])[:, None]
"""
PAGE = Path(__file__).parents[2] / "book" / "check.md"


def test_what_the_page_shows_passes(written):
    shown = re.findall(r"```python\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    # Those that import what does the checking: test_check_anything.py.
    tries = r"import (check|check_model|each_contract)\n"
    shown = [code for code in shown if not re.search(tries, code)]
    file = written("\n".join([YOURS, *shown]))
    parts = parts_in(file, COMPONENTS)
    assert len(parts) == 14
    for part in parts:
        found = report_of(part.component, build(file, part))
        assert found["failed"] == [], f"{part.name}: {found}"


FILE = """
def attention(q, k, v, mask=None):
    weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    return weights @ v
"""
UPSIDE_DOWN = """
def attention(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -float("inf"))
    return scores.softmax(-1) @ v
"""


@pytest.mark.parametrize(("sign", "text"), [("✗", FILE), ("!", UPSIDE_DOWN)])
def test_the_page_quotes_a_report_word_for_word(
    written, monkeypatch, sign, text
):
    quoted = re.findall(r"```text\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    [shown] = [t for t in quoted if f"my_file.py:10 attention\n{sign}" in t]
    file = written(text)
    [part] = judged(Target(file.path), Asked()).parts
    monkeypatch.setenv("COLUMNS", "80")
    section = Section(Target(file.path), file, [part])
    lines = [*command.report(section, part), *command.closing([section])]
    _, *quoted = shown.splitlines()
    assert [line for line in quoted if line in lines] == [
        line for line in quoted if "…" not in line
    ]


def test_the_page_quotes_a_report_with_a_risk(written, monkeypatch):
    texts = re.findall(r"```text\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    [shown] = [text for text in texts if "my_file.py:3 attention\n! " in text]
    file = written("""
    import torch

    def attention(q, k, v, mask=None):
        scores = q @ k.mT / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
        return scores.softmax(-1) @ v
    """)
    [part] = parts_in(file, COMPONENTS)
    monkeypatch.setenv("COLUMNS", "80")
    found = report_of("attention", build(file, part))
    _, *lines = command.report(
        Section(Target(file.path), file),
        {"name": part.name, "line": part.line, "found": found},
    )
    _, *quoted = shown.splitlines()
    assert lines == [*quoted, ""]


# Bad input: one line, exit code 2, and no traceback.


@pytest.fixture
def refused(tmp_path, capfd):
    """What is said of a file that cannot be checked."""

    def run(text, *components, name="mine.py"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert main(["check", str(path), *components]) == 2
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err.replace(str(tmp_path), "").rstrip()

    return run


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 3\nb = (", "error: /mine.py:2: a syntax error: '(' was never"),
        ("x = 3\nreturn x", "/mine.py:2: a syntax error: 'return' outside"),
        (b"x = '\xff'", "/mine.py:1: a syntax error: "),
        (b"x = 3\0", "/mine.py:1: a syntax error: source code"),
        ("def f(): ...", "/mine.py: there is nothing to check in it. Call"),
        ("@checks(3)\ndef f(): ...", "/mine.py:2: expected one of add_posi"),
        ("@checks()\ndef f(): ...", "/mine.py:1: expected the name of a comp"),
        ("# checks: rop\ndef f(): ...", "got 'rop'. Did you mean 'rope'?"),
        ("x = '\x1b[2J' (", "a syntax error: '(' was never closed: `x = '[2J"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(refused, text, says):
    assert says in refused(text)


@pytest.mark.bad_input
def test_a_component_that_is_not_there_is_named(refused):
    assert "there is no rnn in it" in refused(RIGHT, "rnn")
    assert "got 'rope2'" in refused(RIGHT, "rope2")


@pytest.mark.bad_input
@pytest.mark.parametrize("memory", ["0", "-1", "nan", "inf"])
def test_a_limit_of_memory_is_a_number_of_gibibytes(refused, memory):
    message = refused(RIGHT, "--memory", memory)
    assert message == f"error: memory: expected more than 0 GiB, got {memory}"


@pytest.mark.bad_input
def test_another_file_is_refused(refused, tmp_path, capfd):
    assert "expected a Python file" in refused("{}", name="mine.txt")
    assert "cannot be read as a notebook" in refused("{}", name="mine.ipynb")
    assert main(["check", str(tmp_path / "no.py")]) == 2
    assert "No such file" in capfd.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["check"])


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("from nearby import t", "ZeroDivisionError: division by zero$"),
        ("import nowhere as t", "No module named 'nowhere'$"),
        ("t = 1 / 0", "`t = 1 / 0` raised ZeroDivisionError: division by"),
        ("t = exit()", "raised SystemExit"),
    ],
)
def test_a_line_that_fails_is_named(written, line, says):
    file = written(f"{RIGHT}\n\n{line}\ndef rope(x, positions):\n    t")
    file.path.with_name("nearby.py").write_text("1 / 0")
    rope = parts_in(file, COMPONENTS)[1]
    with pytest.raises(ValueError, match=rf"mine.py:4: .*{says}"):
        build(file, rope)


def test_a_file_with_the_name_of_a_python_module_is_not_run(tmp_path):
    (tmp_path / "mine.py").write_text(f"import torch\n{RIGHT}.bool()\n")
    for name in ("argparse", "random", "pickle", "socket", "numpy"):
        line = f"open({name + '.ran'!r}, 'w').close()\n"
        (tmp_path / f"{name}.py").write_text(line)
    done = subprocess.run(
        [sys.executable, "-m", "companion", "check", "mine.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert not [path.name for path in tmp_path.glob("*.ran")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "contracts hold" in done.stdout


def test_what_is_imported_for_all_processes_is_no_work_for_the_collector():
    code = (
        "import gc; import companion.commands.preloaded;"
        "print(gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count())"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["True", "True"]
