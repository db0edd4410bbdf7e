"""Note in ``book/proved.toml`` what ran a notebook: versions, device, date.

    python tools/proved.py [book/03_attention.ipynb ...]

``tools/notebooks.py`` calls it for each notebook whose outputs it has stored.
"""

import hashlib
import platform
import sys
import tomllib
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import nbformat

HEAD = "# What ran each notebook last; tools/proved.py writes it.\n"


def digest(path: Path) -> str:
    """What of a notebook was run: its code. Prose may change without a run."""
    cells = nbformat.read(path, as_version=4).cells
    code = "\0".join(c.source for c in cells if c.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def device() -> str:
    """The kind of CPU: no chapter moves anything to an accelerator."""
    return f"a CPU ({platform.machine()})"


def note(path: Path) -> None:
    """Write down, beside the notebook, that this environment ran it now."""
    file = path.parent / "proved.toml"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    chapters = tomllib.loads(text)
    chapters[path.stem] = {
        "date": str(datetime.now(UTC).date()),
        "Python": platform.python_version(),
        "torch": version("torch").split("+")[0],
        "numpy": version("numpy"),
        "device": device(),
        "code": digest(path),
    }
    tables = (
        f"\n[{name}]\n"
        + "".join(f'{key} = "{value}"\n' for key, value in entry.items())
        for name, entry in sorted(chapters.items())
    )
    draft = file.with_suffix(".draft")
    draft.write_text(HEAD + "".join(tables), encoding="utf-8")
    draft.replace(file)


if __name__ == "__main__":
    for name in map(Path, sys.argv[1:]):
        note(name)
