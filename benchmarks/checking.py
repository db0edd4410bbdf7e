"""What ``python -m companion check`` costs, with all processes it starts."""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

FILES = {
    "attention": """
from companion.attention import scaled_dot_product_attention


def attention(q, k, v, mask=None):
    return scaled_dot_product_attention(q, k, v, mask)
""",
    "a language model": """
from companion.transformer import LanguageModel, LanguageModelConfig


class Writer(LanguageModel):
    def __init__(self):
        super().__init__(
            LanguageModelConfig(
                vocab_size=12, d_model=24, num_heads=3, d_ff=48, num_layers=2
            )
        )
""",
    "a translator": """
from companion.transformer import Transformer, TransformerConfig


class Translator(Transformer):
    def __init__(self):
        super().__init__(TransformerConfig.tiny(12, 12))
""",
}

COUNTED = """
import ctypes, os, resource, subprocess, sys

# On Linux the orphans of a command become children of this process, so that
# their time is counted when they end.
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
command = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
status = command.wait()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(spent.ru_utime + spent.ru_stime)
sys.exit(status)
"""


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each file: CPU seconds, and those beside torch's import."""
    files = dict(list(FILES.items())[:1]) if small else FILES
    turns = 1 if small else 5
    taken = {name: [] for name in ("import torch", *files)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine.py"
        for _ in range(turns):
            taken["import torch"].append(_seconds("-c", "import torch"))
            for name, code in files.items():
                path.write_text(code, encoding="utf-8")
                taken[name].append(
                    _seconds("-m", "companion", "check", str(path))
                )
    middle = {name: median(some) for name, some in taken.items()}
    return [
        {
            "checked": name,
            "seconds": seconds,
            "beside torch": seconds - middle["import torch"],
        }
        for name, seconds in middle.items()
    ]


def _seconds(*command: str) -> float:
    said = subprocess.run(
        [sys.executable, "-c", COUNTED, sys.executable, *command],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(said.stdout)
