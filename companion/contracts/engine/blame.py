"""What an exception, or a function that never ends, is put down to."""

import linecache
import os
import re
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import CodeType, FrameType

from torch import Tensor

__all__ = [
    "SIZES",
    "hint",
    "lines_of",
    "now_at",
    "raised_at",
    "raised_by",
    "raised_in",
    "text_of",
    "without_grad_at",
]

GUARD = str(Path(__file__).with_name("guard.py"))
"""The learner's frames are those after the last one in this file."""
BETWEEN = {
    *map(str, Path(__file__).with_name("forms").glob("*.py")),
    str(Path(__file__).with_name("norms.py")),
    str(Path(__file__).parents[1] / "adapters.py"),
}
"""They call the learner's code in another way, and are not the learner's."""

PACKAGE = str(Path(__file__).parents[2]) + os.sep
INSTALLED = re.compile(
    r"(site|dist)-packages|^<frozen |^"
    + re.escape(sysconfig.get_path("stdlib") + os.sep)
)
"""Files of others: what was installed, and Python itself."""

SIZES = (
    "Print the shapes on both sides: is an axis missing, or are two swapped?"
)

# What PyTorch says -> what the learner probably did.
EXPLAINED = {
    r"::Half without overflow": "float16 ends at 65504, so -1e9 does not fit: "
    "use `torch.finfo(scores.dtype).min` or `-torch.inf`.",
    r"with a bool tensor is not supported": "The mask is boolean: turn it "
    "round with `~mask`.",
    r"Expected target size": "`cross_entropy` wants the classes second: give "
    "it `logits.transpose(1, 2)`.",
    r"must match the size|cannot be multiplied|Expected size for": SIZES,
    r"expected scalar type|same dtype": "Two number types meet: make new "
    "tensors with `dtype=` that of the input.",
    r"view size is not compatible": "`.reshape` copies where `.view` cannot.",
    r"Boolean value of Tensor": "To ask whether there is a mask, write "
    "`if mask is not None`.",
    r"return_types\.max": "`.max(dim)` returns values and indices: use "
    "`.amax(dim, keepdim=True)`.",
    r"to be on the same device": "Make new tensors where the input is, "
    "`device=x.device` (a function gets its inputs on the CPU), and keep "
    "constants as buffers, which move with their module.",
    r"call numpy\(\) on Tensor": "Stay in torch: NumPy cuts the gradient.",
}
COMPREHENSIONS = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


def text_of(error: BaseException) -> str:
    """Return the text of an exception: short, and the same in every run."""
    try:
        text = " ".join(str(error).split())
    except BaseException:
        return ""
    text = re.sub(r"0x[0-9a-fA-F]{4,}", "0x…", text)
    if len(text) > 240:
        return text[:240] + "…"
    return text if text.endswith((".", "!", "?")) or not text else text + "."


def hint(error: BaseException) -> str:
    """Name the likely mistake behind an exception, or nothing."""
    text = text_of(error)
    hints = (h for k, h in EXPLAINED.items() if re.search(k, text))
    return reversed_axes(error) or next(hints, "")


def reversed_axes(error: BaseException) -> str:
    """Explain an error of what ``.T`` made of three axes, or nothing."""
    if not isinstance(error, RuntimeError):
        return ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "T" not in frame.f_code.co_names:
            continue  # To read the lines takes longer.
        for name in re.findall(r"\b(\w+)\.T\b", source_of(frame.f_code)):
            x = frame.f_locals.get(name)
            if type(x) is Tensor and x.ndim > 2:
                return (
                    f"`.T` reverses all axes: `{name}.transpose(-2, -1)` swaps "
                    "the last two."
                )
    return ""


def source_of(code: CodeType) -> str:
    """Return the lines of a function, as far as they are known."""
    first = code.co_firstlineno
    last = max(line or first for *_, line in code.co_lines())
    lines = range(first, last + 1)
    return "".join(linecache.getline(code.co_filename, i) for i in lines)


def raised_at(error: BaseException) -> str:
    """Name the learner's line that an exception came from."""
    return learner_line(traceback.walk_tb(error.__traceback__))


def lines_of(error: BaseException) -> tuple[int, ...]:
    """List the lines that were run last, from the learner's code inwards.

    Of two calls of the same code the greater got further. Nothing if what was
    raised did not come from there, as where arguments are missing.
    """
    steps = [*traceback.walk_tb(error.__traceback__)]
    files = [f.f_code.co_filename for f, _ in steps]
    after = len(files) - files[::-1].index(GUARD) if GUARD in files else 0
    inside = steps[after:]
    theirs = [i for i, (f, _) in enumerate(inside) if is_theirs(f.f_code)]
    own = inside[theirs[0] :] if theirs else []
    return tuple(line for _, line in own)


def raised_by(error: BaseException, package: str) -> bool:
    """Tell whether the line that raised stands in a package."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    module = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] == package


def raised_in(error: BaseException) -> str:
    """Tell what was raised, where, and its text, if no contract called it."""
    steps = traceback.walk_tb(error.__traceback__)
    inside = [
        (f.f_code, line)
        for f, line in steps
        if is_theirs(f.f_code) and not f.f_code.co_filename.startswith(PACKAGE)
    ]
    name, said = type(error).__name__, text_of(error)
    place = f" {line_in(inside[0][0], *inside[-1])}" if inside else ""
    return f"{name}{place}: {said}" if said else f"{name}{place}."


def now_at(thread: threading.Thread) -> str:
    """Name the learner's line that a running thread is at."""
    frame = sys._current_frames().get(thread.ident)
    steps = reversed(list(traceback.walk_stack(frame))) if frame else ()
    return learner_line(steps)


WITHOUT_GRAD = re.compile(r"\b(?:no_grad|inference_mode|set_grad_enabled)\b")
DECORATED = "decorate_context"
"""What PyTorch calls in place of a function with such a decorator."""


def without_grad_at(frame: FrameType) -> str:
    """Name the learner's line that switched gradients off, if it is found.

    Args:
        frame: That of a call inside which they are off.
    """
    steps = [*traceback.walk_stack(frame)]
    files = [f.f_code.co_filename for f, _ in steps]
    inside = steps[: files.index(GUARD)] if GUARD in files else steps
    found: list[tuple[CodeType, int]] = []
    for f, line in inside:
        code = f.f_code
        if code.co_name == DECORATED:
            decorated = getattr(f.f_locals.get("func"), "__code__", None)
            code, line = decorated or code, 0
        if not is_theirs(code):
            continue
        first = code.co_firstlineno
        # A decorator stands in front of `def`, and all else before this line.
        rows = range(first, first + 5) if not line else range(line, first, -1)
        found += [
            (code, row)
            for row in rows
            if WITHOUT_GRAD.search(linecache.getline(code.co_filename, row))
        ][:1]
    # The outermost: what it calls is without gradients anyway.
    return line_in(found[-1][0], *found[-1]) if found else ""


def learner_line(steps: Iterable) -> str:
    """Name the deepest line of the learner's own code in a call stack.

    ``steps`` are (frame, line number), outermost first. Nothing if the stack
    is elsewhere. A line of another file than the first has its name with it.
    """
    steps = [(f.f_code, line) for f, line in steps]
    files = [code.co_filename for code, _ in steps]
    if GUARD not in files:
        return ""
    after = len(files) - files[::-1].index(GUARD)
    inside = [(code, line) for code, line in steps[after:] if is_theirs(code)]
    if not inside:
        return ""
    # A mistake of the zoo stands in this package itself.
    own = [s for s in inside if not s[0].co_filename.startswith(PACKAGE)]
    first = (own or inside)[0][0]
    home = first.co_filename
    return line_in(
        first, *(own or [s for s in inside if s[0].co_filename == home])[-1]
    )


def is_theirs(code: CodeType) -> bool:
    """Tell whether code was neither installed, nor stands between."""
    return not (
        INSTALLED.search(code.co_filename)
        or code.co_filename in BETWEEN
        or code.co_name in COMPREHENSIONS
    )


def line_in(first: CodeType, code: CodeType, line: int) -> str:
    """Name a line of code, and its file if that is not that of the first."""
    text = linecache.getline(code.co_filename, line).strip()[:70]
    # Of a method its class, and not the function that the class stands in.
    name = code.co_qualname.rpartition("<locals>.")[2]
    where = f"in line {line - code.co_firstlineno + 1} of `{name}`"
    if code.co_filename != first.co_filename:
        where += f" in {Path(code.co_filename).name}"
    return f"{where}, `{text}`" if text else where
