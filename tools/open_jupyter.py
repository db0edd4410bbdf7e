"""Lay the chapters out for a reader's own work, and open JupyterLab on them.

    make notebook

JupyterLab shows the source's boxes and citations as raw text. The extension
jupyterlab_myst does not help: its version 2.7, tried in JupyterLab 4.6, shows
boxes, and of a citation the key with a warning sign. So what is opened is the
edition that ``plain_markdown.py`` writes. It lies in ``_build/notebooks``,
where any editor finds it, and what the reader changed stays as it is.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import nbformat
import plain_markdown
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelspec import get_kernel_dict
from nbformat.sign import NotebookNotary
from notebooks import write_atomically

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "_build" / "notebooks"
# What JupyterLab keeps of the folder: that it is trusted, which tabs it had.
OWN = ".jupyter"
SETTINGS = {
    # Nobody is asked for news, and no reader whether to ask.
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "fetchNews": "false",
    }
}
MARK = "written_by_the_course"


def led(link: plain_markdown.Link) -> str | None:
    """Return where a link leads: to a cell of another notebook, or nowhere.

    JupyterLab finds a cell in a notebook that it has just opened, and a section
    only in one that it has shown.
    """
    file = link.href.partition("#")[0]
    if not file.endswith(".ipynb"):
        return None
    return f"{file}#cell-id={link.cell}" if link.cell else file


def digest(notebook: nbformat.NotebookNode) -> str:
    """Hash what a reader would miss: cells may run without being changed."""
    cells = "\0".join(f"{c.cell_type}\n{c.source}" for c in notebook.cells)
    return hashlib.sha256(cells.encode()).hexdigest()


def untouched(path: Path) -> str:
    """Return the digest of a notebook as the course wrote it, or nothing."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError):  # Whatever it is, it is not ours.
        return ""
    written = notebook.metadata.get(MARK)
    return written if written == digest(notebook) else ""


def lay_out(book: Path, folder: Path) -> list[Path]:
    """Write each notebook's edition, trusted, if the reader changed none of it.

    What the course has not changed either keeps the reader's last outputs.

    Args:
        book: Where the course's notebooks lie.
        folder: Where the reader's do.

    Returns:
        Those that the reader changed: they are as they were.

    Raises:
        ValueError: A notebook has what cannot be translated.
    """
    editions = dict(plain_markdown.course(book, led))
    for edition in editions.values():
        edition.metadata[MARK] = digest(edition)
        # As JupyterLab would write it, and then ask whether to save.
        edition.metadata["kernelspec"]["display_name"] = get_kernel_dict()[
            "display_name"
        ]
        edition.metadata["language_info"] = IPythonKernel.language_info
    (folder / OWN).mkdir(parents=True, exist_ok=True)
    changed = []
    for path in sorted(folder.rglob("*.ipynb")):
        within = path.relative_to(folder)
        if any(part.startswith(".") for part in within.parts):
            continue
        edition = editions.get(within.as_posix())
        written = untouched(path)
        if not written:
            changed.append(path)
        elif edition is None:
            path.unlink()
        if edition and written in ("", edition.metadata[MARK]):
            del editions[within.as_posix()]
    settings = folder / OWN / "settings" / "overrides.json"
    settings.parent.mkdir(exist_ok=True)
    write_atomically(json.dumps(SETTINGS), settings)
    notary = NotebookNotary(data_dir=str(folder / OWN))
    for name, edition in editions.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        write_atomically(nbformat.writes(edition) + "\n", path)
        notary.sign(edition)
    notary.store.close()
    return changed


def command(folder: Path) -> list[str]:
    """Return what starts JupyterLab on ``folder``, on a free port.

    Tabs of another project, which the reader may have open, are left out.
    """
    own = folder / OWN
    return [
        *(sys.executable, "-m", "jupyterlab", "--log-level=WARN"),
        *(["--allow-root"] if os.geteuid() == 0 else []),
        f"--ServerApp.root_dir={folder}",
        f"--NotebookNotary.data_dir={own}",
        f"--LabApp.workspaces_dir={own / 'workspaces'}",
        f"--LabApp.app_settings_dir={own / 'settings'}",
    ]


def main(folder: Path = FOLDER) -> int:
    """Lay the chapters out, say which were kept, and become JupyterLab."""
    try:
        changed = lay_out(ROOT / "book", folder)
    except ValueError as error:
        print(f"Nothing was written: {error}")
        return 1
    for path in changed:
        print(f"Yours, and left as it is: {path.relative_to(folder)}")
    print(f"Your notebooks lie in {folder}", flush=True)
    started = command(folder)
    os.execv(started[0], started)


if __name__ == "__main__":
    sys.exit(main())
