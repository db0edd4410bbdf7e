"""The page on the study notes: every entry counted, every link at home."""

import re
import sys
from collections import Counter
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from companion import CHAPTERS
from companion.interview.model.notes import read

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "book" / "_ext"))

import chinese  # noqa: E402
import notes  # noqa: E402

pytestmark = pytest.mark.once

PAGE = (ROOT / "book" / "notes.md").read_text(encoding="utf-8")
CHINESE = re.compile(r"[\u4e00-\u9fff，。；：、]+")
ENGLISH = re.compile(r"\b[a-z]+(?:[ ,;:’'-]+[a-z]+){4,}")
"""Five words without a capital letter are a piece of a sentence."""
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


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A page that is read: its catalogue has a word, a draft and a gap."""
    catalogue = Catalog(locale="zh_CN", fuzzy=False)
    catalogue.add("wrong", "错误")
    catalogue.add("A head is lost.", "丢了头。", flags=["fuzzy"])
    catalogue.add("It is not.", "")
    (tmp_path / "book").mkdir()
    with (tmp_path / "book" / "notes.po").open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr(chinese, "CATALOGUES", tmp_path)
    config = SimpleNamespace(language="zh_CN")
    return SimpleNamespace(
        app=SimpleNamespace(config=config), docname="book/notes", temp_data={}
    )


def test_what_is_said_is_noted_and_looked_up(page):
    texts = ["wrong", "A head is lost.", "It is not.", "Unknown."]
    said = [chinese.say(page, text) for text in texts]
    assert said == ["错误", *texts[1:]]
    assert list(page.temp_data["messages"]) == texts
    page.app.config.language = "en"
    assert [chinese.say(page, text) for text in texts] == texts


def test_an_entry_is_said_in_chinese():
    entry = notes.Entry(
        id="c-1",
        list="statements",
        said="Heads are free.",
        label="partly-true",
        verdict="They are not.",
        see=("attention#why-dk", "attention-why-scale"),
    )
    said = {
        "Heads are free.": "头不花钱。",
        "partly-true": "半对",
        "They are not.": "$d_k$ 要花。",
        "the question “why scale”": "面试题“为什么要缩放”",
    }
    item = notes.item(entry, said.__getitem__, "zh")
    assert item.astext() == (
        "<strong>头不花钱。</strong>半对 "
        '<span><span class="formula"><i>d</i><sub><i>k</i></sub></span> '
        "要花。</span> → 为什么除以根号；面试题“为什么要缩放”"
    )


def test_the_questions_have_their_chinese_in_the_bank():
    english = [e for e in notes.entries() if e.list == "questions"]
    asked = [e for e in notes.entries("zh") if e.list == "questions"]
    for note, entry, other in zip(read(), asked, english, strict=True):
        assert (entry.said, entry.answer) == (note.asked.zh, note.said.zh)
        assert entry.verdict in {
            text.zh for text in (note.missing, note.number) if text
        }
        assert entry[:2] == other[:2]
        assert (entry.label, entry.see) == (other.label, other.see)


def test_the_chinese_page_says_nothing_in_english(built_book):
    page = built_book / "zh" / "book" / "notes.html"
    html = page.read_text(encoding="utf-8")
    article = html.partition("<article")[2].partition("</article>")[0]
    # Who cites a page names the course by its title.
    article = article.partition('<footer class="provenance"')[0]
    for entry in notes.entries():
        assert article.count(f'id="{entry.id}"') == 1, entry.id
    prose = re.sub(
        r"<(code|pre|script|style)\b.*?</\1>", " ", article, flags=re.S
    )
    text = " ".join(unescape(re.sub(r"<[^>]*>", "", prose)).split())
    assert ENGLISH.findall(text) == []
