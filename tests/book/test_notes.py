"""The page on the study notes: every entry counted, every link at home."""

import re
import sys
from collections import Counter
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest

from companion import CHAPTERS

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))

import notes  # noqa: E402

pytestmark = pytest.mark.once

PAGE = (ROOT / "book" / "notes.md").read_text(encoding="utf-8")
CHINESE = re.compile(r"[\u4e00-\u9fff，。；：、]+")
LONGEST_TERM = 9
"""Characters; a sentence of the notes has more."""


def test_every_topic_question_and_statement_has_an_entry():
    entries = notes.entries()
    counted = Counter(entry.list for entry in entries)
    labels = Counter(entry.label for entry in entries)
    assert counted == {"topics": 104, "questions": 55, "statements": 135}
    assert counted["statements"] - labels["misprint"] == 128
    numbers = [int(e.id[1:]) for e in entries if e.list == "topics"]
    assert numbers == [*range(1, 105)]
    bugs = [e.id for e in entries if e.id.startswith("t-")]
    assert bugs == [f"t-{n:02}" for n in range(1, 23)]


def test_an_address_names_one_entry():
    assert max(Counter(e.id for e in notes.entries()).values()) == 1


def test_every_entry_but_a_misprint_has_a_link():
    for entry in notes.entries():
        assert bool(entry.see) == (entry.label != "misprint"), entry.id
        if entry.list != "questions":
            assert re.fullmatch(r"[^.]+\.", entry.verdict), entry.id


def test_every_link_leads_somewhere():
    lost = []
    for entry in notes.entries():
        for target in entry.see:
            try:
                notes.place(target)
            except (KeyError, OSError):
                lost.append((entry.id, target))
    assert lost == []


def test_a_section_that_moved_is_found_where_it_went():
    there = notes.place("attention#the-4-4-example-finished")
    assert there == notes.place(
        "attention#a-row-of-weights-is-not-yet-the-output"
    )
    with pytest.raises(KeyError):
        notes.place("attention#no-such-section")
    with pytest.raises(KeyError):
        notes.place("attention-no-such-question")


def test_nothing_is_copied_from_the_notes():
    """They are Chinese; here a term is, and nothing longer."""
    for entry in notes.entries():
        for run in CHINESE.findall(
            f"{entry.said} {entry.answer} {entry.verdict}"
        ):
            assert len(run) <= LONGEST_TERM, (entry.id, run)


def test_the_page_has_a_place_for_every_entry():
    asked = re.findall(r"^```\{notes\} (\w+)$", PAGE, re.MULTILINE)
    assert Counter(asked) == Counter(
        {*map(notes.home, notes.entries()), "summary"}
    )
    chapters = [word for word in asked if word in CHAPTERS]
    assert chapters == [word for word in CHAPTERS if word in chapters]


def test_the_built_page_shows_them_and_leads_to_the_pages(built_book):
    folder = built_book / "book"
    html = (folder / "notes.html").read_text(encoding="utf-8")
    article = html.partition("<article")[2].partition("</article>")[0]
    for entry in notes.entries():
        assert article.count(f'id="{entry.id}"') == 1, entry.id
    leads = set(re.findall(r'href="([^":]*)#([^"]+)"', unescape(article)))
    assert len(leads) > 200
    there = {
        page: (folder / (page or "notes.html")).read_text(encoding="utf-8")
        for page, _ in leads
    }
    lost = [
        (page, anchor)
        for page, anchor in leads
        if f'id="{unquote(anchor)}"' not in there[page]
    ]
    assert lost == []
