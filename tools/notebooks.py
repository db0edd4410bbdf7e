"""Run the notebooks and store their outputs, byte-identical when run twice.

    python tools/notebooks.py [book/03_attention.ipynb ...]

A notebook that fails keeps its old file and the others still run.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
import proved
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

BOOK = Path(__file__).parents[1] / "book"
LIMIT_S = 120
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook at ``path`` after running every cell, top to bottom."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=LIMIT_S,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )
    return client.execute()


def normalise(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Drop from an executed notebook what differs between two good runs."""
    notebook.metadata = nbformat.from_dict(KERNEL)
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        for output in cell.get("outputs", []):
            _normalise_output(output)
    return notebook


def _normalise_output(output: nbformat.NotebookNode) -> None:
    # A page has no widget front end; the HTML beside the view says so.
    output.get("data", {}).pop(WIDGET, None)
    if "metadata" in output:
        output.metadata = {}


def store(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write in one step, so that a crash leaves the old file or the new."""
    draft = path.with_suffix(".draft")
    try:
        draft.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def main(names: list[str]) -> int:
    """Run the named notebooks, or all; return how many failed."""
    failures = 0
    for path in [Path(n) for n in names] or sorted(BOOK.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            store(normalise(run(path)), path)
            proved.note(path)
        except (CellExecutionError, DeadKernelError, OSError) as error:
            failures += 1
            print(f"{path.name} stays as it was:\n{error}")
        else:
            print(f"{path.name}: {time.perf_counter() - start:.0f} s")
    return failures


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
