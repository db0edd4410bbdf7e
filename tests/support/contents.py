"""What the book consists of."""

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
FILES = [c["file"] for part in TOC["parts"] for c in part["chapters"]]
CHAPTERS = [file for file in FILES if Path(file).name[0].isdigit()]
# Chapters first: a number then means one page in both lists, and pytest groups
# tests by that number.
PAGES = [*CHAPTERS, *(file for file in FILES if file not in CHAPTERS)]
PAGES += [TOC["root"]]
every_chapter = pytest.mark.parametrize("document", CHAPTERS, indirect=True)
every_page_and_search = pytest.mark.parametrize(
    "document", [*PAGES, "search"], indirect=True
)
