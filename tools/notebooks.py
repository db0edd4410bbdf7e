"""Run the notebooks and store their outputs, byte-identical when run twice.

    python tools/notebooks.py [book/03_attention.ipynb ...]

``jupyter execute --inplace`` would store timings, front ends and the outputs of
a notebook that failed; here it keeps its old file, and the others still run.
What ran a notebook is noted beside it, in ``proved.toml``.
"""

import hashlib
import platform
import sys
import time
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nbformat
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
HEAD = "# What ran each notebook last; tools/notebooks.py writes it.\n"


def run(path: Path) -> nbformat.NotebookNode:
    """Run every cell of the notebook at ``path``, top to bottom."""
    client = NotebookClient(
        nbformat.read(path, as_version=4),
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
        metadata = {"tags": tags} if tags else {}
        if "solution" in (tags or ()):
            # A page folds it by its tag, and JupyterLab by this.
            metadata["jupyter"] = {"source_hidden": True}
        cell.metadata = nbformat.from_dict(metadata)
        for output in cell.get("outputs", []):
            # A page has no widget front end; the HTML beside the view says so.
            output.get("data", {}).pop(WIDGET, None)
            if "metadata" in output:
                output.metadata = {}
    return notebook


def write_atomically(text: str, path: Path) -> None:
    """Replace a file in one step: a crash leaves the old one or the new."""
    draft = path.with_suffix(".draft")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def digest(path: Path) -> str:
    """Hash what of a notebook was run: prose may change without a run."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\0".join(c.source for c in cells if c.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def note(path: Path) -> None:
    """Note beside the notebook that this environment ran it now."""
    home = path.parents[1] if path.parent.name == "labs" else path.parent
    file, name = home / "proved.toml", path.relative_to(home).with_suffix("")
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    chapters = tomllib.loads(text)
    chapters[name.as_posix()] = {
        "date": str(datetime.now(UTC).date()),
        "Python": platform.python_version(),
        "torch": version("torch").split("+")[0],
        "numpy": version("numpy"),
        # No chapter moves anything to an accelerator.
        "device": f"a CPU ({platform.machine()})",
        "code": digest(path),
    }
    tables = (
        f'\n["{name}"]\n'
        + "".join(f'{key} = "{value}"\n' for key, value in entry.items())
        for name, entry in sorted(chapters.items())
    )
    write_atomically(HEAD + "".join(tables), file)


def main(names: list[str]) -> int:
    """Run the named notebooks, or all; return how many failed."""
    failures = 0
    for path in [Path(n) for n in names] or sorted(BOOK.rglob("[!.]*.ipynb")):
        start = time.perf_counter()
        try:
            executed = normalise(run(path))
            write_atomically(nbformat.writes(executed) + "\n", path)
            note(path)
        except (CellExecutionError, DeadKernelError, OSError) as error:
            failures += 1
            print(f"{path.name} stays as it was:\n{error}")
        else:
            print(f"{path.name}: {time.perf_counter() - start:.0f} s")
    return failures


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
