"""Install a wheel where nothing is, and use it as its readers would."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pins

PIP = ("-m", "pip", "--quiet")
# What would lead a new environment back to this one.
LEAKS = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "JUPYTER_PATH")
MINE = """\
import torch


def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).{half}()
"""
CORRECT, TRANSPOSED = (MINE.format(half=half) for half in ("tril", "triu"))
# What is asked of the installed package, and what its answer must hold.
TRIALS = (
    ("check right.py", 0, "contracts hold"),
    ("check wrong.py", 1, "which is in its future"),
    ("quiz --chapter masks", 0, "How is padding hidden"),
    ("train", 0, ""),
    ("translate 我爱小猫", 0, "I love little cats"),
    ("translate --model zh-en 我爱你。", 0, "I love you."),
    ("anki deck.apkg", 0, "notes in deck.apkg"),
)


def own() -> dict[str, str]:
    """Return the environment without what leads back to this one."""
    return {key: os.environ[key] for key in os.environ if key not in LEAKS}


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new, empty environment; return its python.

    The versions are those that were tested; torch is of the same build, too.
    """
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", folder], check=True
    )
    interpreter = folder / "bin" / "python"
    pip = [sys.executable, *PIP, "--python", interpreter, "install"]
    torch = ["--no-deps", "--require-hashes"]
    torch += ["--requirement", pins.FOLDER / "torch.txt"]
    if version("torch").endswith("+cpu"):
        torch += ["--retries", "1", "--index-url", pins.CPU_INDEX]
    subprocess.run([*pip, *torch], check=True, env=own())
    same = folder / "same.txt"
    same.write_text(pins.versions("book", "test", "torch"), encoding="utf-8")
    subprocess.run(
        [*pip, f"{wheel}[all]"],
        check=True,
        env=own() | {"PIP_CONSTRAINT": str(same)},
    )
    return interpreter


def try_out(interpreter: Path, desk: Path, version: str) -> list[str]:
    """Use the package in the folder ``desk``; return what went wrong."""
    (desk / "right.py").write_text(CORRECT, encoding="utf-8")
    (desk / "wrong.py").write_text(TRANSPOSED, encoding="utf-8")
    code = "import companion; print(companion.__version__)"
    trials = [(("-c", code), 0, version)] + [
        (("-m", "companion", *words.split()), code, answer)
        for words, code, answer in TRIALS
    ]
    tried = (one(interpreter, desk, *trial) for trial in trials)
    return [fault for fault in tried if fault]


def one(
    interpreter: Path,
    desk: Path,
    arguments: tuple[str, ...],
    code: int,
    answer: str,
) -> str:
    """Run one command; return what is wrong with it, empty if nothing is."""
    done = subprocess.run(
        [interpreter, *arguments],
        cwd=desk,
        # What is answered here is nobody's progress.
        env=own() | {"HOME": str(desk), "XDG_DATA_HOME": str(desk / "data")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode == code and answer in done.stdout:
        return ""
    return (
        f"{' '.join(arguments)}: expected {code} and {answer!r}, got "
        f"{done.returncode}:\n{done.stdout}{done.stderr}"
    )
