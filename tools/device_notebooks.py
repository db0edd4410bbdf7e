"""Run the notebooks where an accelerator is, and say what was seen there.

    python tools/device_notebooks.py cuda [book/03_attention.ipynb ...]

``companion.device()`` is the accelerator then, so that whatever trains on it
runs there and small cells stay on the CPU. Nothing is stored. A cell that
fails, and an output that is not the stored one, is named; as in ``make
journey``, neither plots are compared nor cells tagged ``nbval-ignore-output``.
A notebook of which nothing came to the device is
*not measured*, and so are all where there is no such device.

``pretend`` is no device at all: tests/support/accelerator.py stands in for one,
which is many times slower.
"""

import json
import os
import re
import sys
import time
from pathlib import Path

import journey
import nbformat
import notebooks
import torch
from nbclient import NotebookClient
from nbclient.exceptions import (
    CellExecutionError,
    CellTimeoutError,
    DeadKernelError,
)
from nbval.plugin import get_sanitize_patterns

ROOT = Path(__file__).parents[1]
LIMIT_S = 3600
BEGIN = (
    "from support.accelerator import Module as _there, accelerator as _made",
    "_open = _made()",
    "_open.__enter__()",
)
"""What a kernel runs first, so that it has the pretend accelerator."""
HELD = {
    "pretend": "print(_there.held)",
    "cuda": "import torch; print(torch.cuda.max_memory_allocated())",
    "xpu": "import torch; print(torch.xpu.max_memory_allocated())",
    "mps": "import torch; print(torch.mps.driver_allocated_memory())",
}
"""How to ask a kernel whether anything came to the device, in bytes."""


def found(device: str) -> bool:
    """Tell whether this machine has that device.

    Raises:
        ValueError: There is no device of that name.
    """
    if device not in HELD:
        known = ", ".join(HELD)
        raise ValueError(f"DEVICE: expected one of {known}, got {device!r}")
    if device == "pretend":
        return True
    here = torch.accelerator.current_accelerator(check_available=True)
    return here is not None and here.type == device


def run(path: Path, device: str) -> tuple[nbformat.NotebookNode, int]:
    """Run a notebook beside the device; return it, and the bytes held there.

    Raises:
        CellExecutionError, CellTimeoutError, DeadKernelError: A cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    last = nbformat.v4.new_code_cell(HELD[device], id="held")
    notebook.cells.append(last)
    begin = BEGIN if device == "pretend" else ()
    client = NotebookClient(
        notebook,
        timeout=LIMIT_S,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
        extra_arguments=[f"--IPKernelApp.exec_lines={line}" for line in begin],
    )
    client.execute(env={**os.environ, "PYTHONPATH": _with_tests()})
    notebook.cells.pop()
    return notebooks.normalise(notebook), int(last.outputs[0].text)


def changed(
    stored: nbformat.NotebookNode, fresh: nbformat.NotebookNode
) -> list[str]:
    """Name the cells whose outputs are compared, and differ."""
    return [
        before.id
        for before, after in zip(stored.cells, fresh.cells, strict=True)
        if "nbval-ignore-output" not in before.metadata.get("tags", ())
        and _told(before) != _told(after)
    ]


def report(path: Path, device: str) -> tuple[bool, str]:
    """Run a notebook; tell whether all was well, and write a line on it."""
    began = time.perf_counter()
    stored = nbformat.read(path, as_version=4)
    try:
        fresh, held = run(path, device)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        return False, f"fails:\n{error}"
    seconds = f"{time.perf_counter() - began:.0f} s"
    if differ := changed(stored, fresh):
        return False, f"other outputs than stored: {', '.join(differ)}"
    if not held:
        return True, f"runs; not measured, nothing came there ({seconds})"
    return True, f"runs, {held / 1e6:,.0f} MB came there ({seconds})"


def main(device: str, names: list[str]) -> int:
    """Run the named notebooks, or all; return how many failed."""
    every = sorted(notebooks.BOOK.rglob("[!.]*.ipynb"))
    try:
        there = found(device)
        chosen = [_named(name) for name in names] or every
    except ValueError as error:
        print(error)
        return 1
    failures = 0
    for path in chosen:
        fine, said = True, f"not measured, there is no {device} here"
        if there:
            fine, said = report(path, device)
        failures += not fine
        print(
            f"{path.relative_to(notebooks.BOOK)}, {device}: {said}", flush=True
        )
    return failures


def _named(name: str) -> Path:
    """Return the whole path of a notebook of the book, as somebody types it.

    Raises:
        ValueError: There is no such notebook in the book.
    """
    path = Path(name).resolve()
    if not path.is_file() or not path.is_relative_to(notebooks.BOOK):
        raise ValueError(f"ONLY: expected a notebook of the book, got {name!r}")
    return path


def _told(cell: nbformat.NotebookNode) -> str:
    """Write down what a cell tells, but for pictures."""
    differs = get_sanitize_patterns(journey.DIFFERS.read_text("utf-8"))

    def same(text: str) -> str:
        for pattern, put in differs:
            text = re.sub(pattern, put, text)
        return text

    told = []
    for output in cell.get("outputs", ()):
        data = {
            kind: same(shown) if isinstance(shown, str) else shown
            for kind, shown in output.get("data", {}).items()
            if not kind.startswith("image/p")
        }
        told.append({**output, "data": data, "execution_count": None})
    return json.dumps(told, sort_keys=True)


def _with_tests() -> str:
    """Return the path of a kernel, with the package and its tests."""
    more = os.environ.get("PYTHONPATH")
    return os.pathsep.join(
        [str(ROOT), str(ROOT / "tests"), *([more] if more else [])]
    )


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1], sys.argv[2:]), 1))
