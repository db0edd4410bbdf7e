"""What the book consists of."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))


def _files(entries):
    """Every page, each before the pages below it."""
    for entry in entries:
        if "file" in entry:
            yield entry["file"]
            yield from _files(entry.get("sections", ()))


FILES = [f for part in TOC["parts"] for f in _files(part["chapters"])]
NOTEBOOKS = [file for file in FILES if (ROOT / f"{file}.ipynb").exists()]
CHAPTERS = [file for file in FILES if Path(file).name[0].isdigit()]
"""The lessons, and the labs below them."""
# Chapters first: a number then means one page in both lists, and pytest groups
# tests by that number.
PAGES = [*CHAPTERS, *(file for file in FILES if file not in CHAPTERS)]
PAGES += [TOC["root"]]
every_chapter = pytest.mark.parametrize("document", CHAPTERS, indirect=True)
every_page_and_search = pytest.mark.parametrize(
    "document", [*PAGES, "search"], indirect=True
)
