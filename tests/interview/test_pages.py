"""What is made of the bank: cards, the bank page, and the notebook's part."""

import gzip
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from interview.proving import shown

from companion import CHAPTERS, interview
from companion.contracts import check
from companion.interview.model import bank, notes
from companion.interview.model.markup import to_html, to_line
from companion.interview.model.mock import pick
from companion.interview.web import overview
from companion.interview.web.card import card, work
from companion.interview.web.page import quiz, show

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
BOOK = {
    word: overview.Chapter(
        f"{number:02} · {word}", f"{word}.html", {"Interview": f"{word}.html#i"}
    )
    for number, word in enumerate(CHAPTERS, 1)
}
WORST_CASE = 1_460
"""Bytes of the bank page for each question, compressed: all that is told of it
in both languages, so that the page grows with the bank and not otherwise."""


def of(kind):
    return [question for question in bank.course() if question.kind == kind]


# One source


def test_a_changed_answer_is_changed_everywhere(tmp_path, monkeypatch):
    folder = shutil.copytree(bank.BANK, tmp_path / "bank")
    changed, file = "Because of the zebra.", folder / "attention.toml"
    text = file.read_text(encoding="utf-8")
    question = bank.read(folder)["attention"][0]
    assert text.count(question.answer.en) == 1
    file.write_text(text.replace(question.answer.en, changed), encoding="utf-8")
    bank.read.cache_clear()
    monkeypatch.setattr(bank, "BANK", folder)

    page = quiz(bank.read(folder)["attention"], "Questions").html
    listed = overview.overview(bank.read(folder), BOOK)
    in_notebook = interview.show("attention")._repr_mimebundle_()["text/html"]
    asked = interview.mock(chapters=["attention"], minutes=10_000).html
    for told in (page, listed, in_notebook, asked):
        assert changed in told
        assert to_html(question.answer.en) not in told
    bank.read.cache_clear()


# The card


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_card_tells_all_there_is_in_both_languages(chapter):
    for question in interview.load(chapter):
        told = work(question)
        texts = [question.short, question.answer, *question.follow]
        texts += getattr(question.task, "points", ())
        if hasattr(question.task, "wrong"):
            texts += [question.task.wrong, question.task.why]
        for text in filter(None, texts):
            for each in (text.en, text.zh):
                assert to_html(each)[len("<p>") : -len("</p>")] in told
        assert question.proof in told
        assert question.section.replace("'", "&#x27;") in told
        assert f'id="{question.id}"' in card(1, question)


# The bank page


@pytest.fixture(scope="module")
def whole():
    return {word: interview.load(word) for word in CHAPTERS}


def test_the_bank_page_holds_every_answer_and_links_its_section(whole):
    html = overview.overview(whole, BOOK)
    for question in bank.course():
        prompt = to_html(question.prompt.zh)[len("<p>") : -len("</p>")]
        assert prompt in html
        assert work(question, f"{question.chapter}.html") in html
    assert html == overview.overview(whole, BOOK)
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)


def test_the_bank_page_is_as_heavy_as_its_answers_and_no_more(whole):
    html = overview.overview(whole, BOOK) + overview.answered_table()
    questions = sum(map(len, whole.values()))
    assert len(gzip.compress(html.encode(), 9)) / questions < WORST_CASE


def test_a_section_is_linked_where_the_chapter_has_its_heading():
    question = SimpleNamespace(**vars(interview.load("rnn")[0]))
    question.section = "What’s read"
    chapter = overview.Chapter("RNN", "1.html", {"What's read": "1.html#read"})
    for section, link in (("What’s read", "1.html#read"), ("Gone", "1.html")):
        question.section = section
        listed = overview.overview(
            {"rnn": [bank.Question(**vars(question))]}, {"rnn": chapter}
        )
        assert f'<a href="{link}">{section}</a>' in listed


def test_only_the_bank_page_says_which_questions_the_course_alone_asks(whole):
    mark = '<span class="course">'
    own = [question for question in bank.course() if question.course]
    html = overview.overview(whole, BOOK)
    assert html.count(mark) == len(own) > 5
    assert mark not in "".join(show(word).html for word in CHAPTERS)
    for question in own:
        assert mark in card(1, question, marked=True)


def test_a_question_that_is_gone_leads_to_one_that_is_there():
    known = {question.id for question in bank.course()}
    assert bank.retired()
    for old, new in bank.retired().items():
        assert old not in known
        assert new in known


BOOK_OF_TWO = {
    "conf.py": f"""
import sys
sys.path.append({str(ROOT / "book" / "_ext")!r})
extensions = ["question_bank"]
master_doc = "book/interview"
""",
    "book/interview.rst": """
Interview
=========

.. interview:: mock
.. interview:: bank
.. interview:: notes

.. toctree::

   03_attention
""",
    "book/03_attention.rst": """
03 · Attention
==============

Why √dₖ
-------
""",
}


def built(tmp_path):
    """A small book of the bank page and a chapter, as Sphinx builds it."""
    return subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", ".", "built"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_the_book_has_the_bank_and_leads_to_its_sections(tmp_path):
    (tmp_path / "book").mkdir()
    for name, text in BOOK_OF_TWO.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert built(tmp_path).stderr == ""
    page = (tmp_path / "built/book/interview.html").read_text("utf-8")
    # What a note answered leads to the notes.
    assert '<a href="notes.html">note 1</a>, ' in page
    page = re.sub(r'<a href="notes\.html">(.*?)</a>', r"\1", page)
    assert 'id="rnn-' not in page
    assert page.count("<figure") == 3
    for question in interview.load("attention"):
        here = "#why-dk" if question.section == "Why √dₖ" else ""
        assert work(question, f"03_attention.html{here}") in page

    wrong = BOOK_OF_TWO["book/interview.rst"].replace("notes", "nots")
    (tmp_path / "book/interview.rst").write_text(wrong, encoding="utf-8")
    complaint = "interview: expected one of bank, mock, notes, got 'nots'"
    assert complaint in built(tmp_path).stderr


# What the notes answered


def test_a_master_has_what_the_notes_answered_below_it():
    for note in notes.read():
        (question,) = (q for q in bank.course() if q.id == note.master)
        told = work(question)
        for where in (f"{note.where.en}: ", f"{note.where.zh}："):
            assert to_line(where) in told
        for text in (note.said, note.missing, note.number):
            if text:
                assert to_html(text.en) in told
                assert to_html(text.zh) in told
        assert note.proof in told
    asked = {note.master for note in notes.read()}
    other = next(q for q in bank.course() if q.id not in asked)
    assert "笔记是怎么答的" not in work(other)


def test_the_table_of_the_notes_leads_to_every_master():
    table = overview.answered_table()
    assert table.count("<tr>") == 1 + len(notes.read())
    for note in notes.read():
        assert f'href="#{note.master}"' in table


NOTE = """[[note]]
id = "note-x"
where = { en = "note 0, question 1", zh = "笔记 0，问题 1" }
asked = { en = "Why?", zh = "为什么？" }
master = "rnn-x"
verdict = "correct"
said = { en = "So.", zh = "如此。" }
number = { en = "3", zh = "3 个" }
proof = "01_rnn#cell"
"""


def test_a_correct_answer_of_the_notes_lacks_nothing(tmp_path):
    path = tmp_path / "notes.toml"
    path.write_text(NOTE, encoding="utf-8")
    (note,) = notes.read(path)
    assert note.missing is None


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"note-x"', '"x"', r"notes.toml:2, note 1 'x', key 'id': .*note-"),
        (
            '"correct"',
            '"right"',
            r"notes.toml:6, note 1 'note-x', key 'verdict': expected one of "
            r"correct, .*, got 'right'",
        ),
        (
            '"correct"',
            '"wrong"',
            r"notes.toml:1, note 1 'note-x', key 'missing': expected a table",
        ),
        ('"如此。"', '""', r"notes.toml:7, .*key 'said.zh'"),
        (NOTE, NOTE * 2, r"notes.toml:11, .* a name of its own, got 'note-x'"),
    ],
)
def test_a_fault_in_the_notes_answers_is_named(tmp_path, old, new, complaint):
    path = tmp_path / "notes.toml"
    assert old in NOTE
    path.write_text(NOTE.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=complaint):
        notes.read(path)


# The notebook


def test_a_mock_interview_asks_what_python_picks():
    wanted = {"level": "mid", "minutes": 20, "chapters": ("masks", "rnn")}
    picked = pick(bank.course(), **wanted, seed=11)
    shown = interview.mock(**wanted, seed=11)
    assert re.findall(r'<li class="question" id="([\w-]+)"', shown.html) == [
        question.id for question in picked
    ]
    assert shown.html == interview.mock(**wanted, seed=11).html
    assert shown.text.startswith(f"1. [{picked[0].level}, {picked[0].kind}] ")
    assert '"language":"zh"' in interview.mock(language="zh").html


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"language": "fr"},
            "language: expected one of both, en, zh, got 'fr'",
        ),
        ({"level": "boss"}, "level: expected one of junior, .*, got 'boss'"),
        ({"chapters": ["gru"]}, "chapters: expected one of .*, got 'gru'"),
    ],
)
def test_a_wrong_wish_is_answered_with_the_known_ones(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        interview.mock(**wrong)


@pytest.mark.parametrize("question", of("code"), ids=lambda q: q.id)
def test_practise_gives_a_cell_that_runs_and_waits_for_its_solution(question):
    cell = interview.practise(question.id)
    name = shown(question.id).__name__
    assert cell.count(question.task.stub) == 1
    assert cell.endswith(f'\ncheck("{question.task.component}", {name})')
    assert max(map(len, cell.splitlines())) <= 80
    compile(cell, "cell", "exec")


def test_a_practised_stub_is_judged_by_check():
    question = next(q for q in of("code") if q.asks != "debug")
    cell, scope = interview.practise(question.id), {}
    before, _, call = cell.rpartition("\n")
    exec(before, scope)
    assert scope["check"] is check
    assert "Nothing is written here yet" in str(eval(call, scope))


def test_practise_opens_a_cell_where_there_is_ipython(monkeypatch):
    opened = []
    shell = SimpleNamespace(set_next_input=opened.append)
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    question = of("code")[0]
    assert interview.practise(question.id) is None
    ipython.get_ipython = lambda: None
    assert opened == [interview.practise(question.id)]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (of("open")[0].id, "one that is answered in code, .* is of kind open"),
        ("attention-nothing", "expected one of attention-.*, got 'attention-"),
        ("nothing", "expected one of rnn-.*, got 'nothing'"),
    ],
)
def test_what_cannot_be_practised_is_refused(name, complaint):
    with pytest.raises(ValueError, match=f"^question: .*{complaint}"):
        interview.practise(name)
