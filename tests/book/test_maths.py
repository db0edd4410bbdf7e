"""The engine that draws formulas while the book is built."""

import subprocess
import sys
from pathlib import Path

EXT = Path(__file__).parents[2] / "book" / "_ext"
# What is registered first runs last: by then the engine must be closed.
LEAVES = """
import atexit

def last():
    try:
        engine.eval("1")
    except Exception:
        print("closed")

atexit.register(last)
import maths
engine = maths.engine()
assert engine.eval("6 * 7") == 42
"""


def test_python_can_end_after_a_formula_was_drawn():
    done = subprocess.run(
        [sys.executable, "-c", LEAVES],
        cwd=EXT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("closed\n", "")
