"""What the browser keeps of one's answers: nothing is lost in silence."""

import json
from functools import partial

import pytest
from interview.browser import WHOLE, card, of

from companion.interview.model import bank

pytestmark = pytest.mark.browser

KEPT = "companion-progress"
ENTRY = {
    "seen": 3,
    "right": 2,
    "got": 1,
    "of": 1,
    "when": "2026-11-21T10:00:00.000Z",
}
FORBIDDEN = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); };"""


def file_of(entries, version=1):
    told = {"companion": "progress", "version": version, "questions": entries}
    return json.dumps(told)


@pytest.fixture
def open_rnn(visit):
    """Opens a chapter's quiz, as one reader or as several."""
    return partial(visit, "rnn")


def stored(page):
    """All that is kept, by its name."""
    return page.evaluate("({ ...localStorage })")


def answer(page, question, value):
    item = page.locator(f"#{question.id}")
    if not item.get_by_role("textbox").is_visible():
        item.locator("summary").first.click()
    item.get_by_role("textbox").fill(str(value))
    item.get_by_role("textbox").press("Enter")


def seal(page, question):
    return page.locator(f"#{question.id} .seal").inner_text()


def done(page):
    return page.locator(".keeper > summary span").first.inner_text()


QUESTION = of("rnn", "numeric")[0]
RIGHT, WRONG = QUESTION.task.value, 987654321


def test_an_answer_is_remembered_and_a_page_counts_once(open_rnn):
    page = open_rnn()
    total = len(WHOLE["rnn"])
    assert done(page) == f"Progress: 0 of {total}"
    answer(page, QUESTION, WRONG)
    answer(page, QUESTION, RIGHT)
    assert done(page) == f"Progress: 1 of {total}"
    page.reload()
    page.locator(".keeper").wait_for()
    assert seal(page, QUESTION) == "✓"
    answer(page, QUESTION, RIGHT)
    kept = json.loads(stored(page)[KEPT])
    assert (kept["companion"], kept["version"]) == ("progress", 1)
    entry = kept["questions"][QUESTION.id]
    del entry["when"]
    # The first page's first try was wrong.
    assert entry == {"seen": 2, "right": 1, "got": 1, "of": 1}


def test_from_disk_an_answer_is_remembered(chromium, folder):
    context = chromium.new_context()
    page = context.new_page()
    address = f"{(folder / 'rnn').as_uri()}.html"
    # A page whose storage the browser has cut off is loaded again: conftest.
    for _ in range(5):
        page.goto(address)
        page.locator(".keeper").wait_for()
        answer(page, QUESTION, RIGHT)
        page.goto(address)
        page.locator(".keeper").wait_for()
        if seal(page, QUESTION):
            break
    assert seal(page, QUESTION) == "✓"
    assert done(page) == f"Progress: 1 of {len(WHOLE['rnn'])}"
    context.close()


def test_every_question_of_the_course_is_remembered(open_rnn):
    questions = bank.course()
    assert {"seq2seq", "rnn"} <= {question.chapter for question in questions}
    kept = file_of({question.id: ENTRY for question in questions})
    page = open_rnn(kept=kept)
    answer(page, QUESTION, RIGHT)
    assert [name for name in stored(page) if KEPT in name] == [KEPT]
    known = json.loads(stored(page)[KEPT])["questions"]
    assert sorted(known) == sorted(question.id for question in questions)


def test_points_are_remembered(open_rnn):
    page = open_rnn()
    question = of("rnn", "open")[0]
    item = card(page, question)
    item.locator("details.points > summary").click()
    item.get_by_role("checkbox").first.check()
    page.reload()
    page.locator(".keeper").wait_for()
    total = len(question.task.points)
    assert seal(page, question) == f"1/{total}"
    entry = json.loads(stored(page)[KEPT])["questions"][question.id]
    assert (entry["seen"], entry["got"], entry["of"]) == (1, 1, total)


def test_two_open_pages_do_not_undo_each_other(open_rnn):
    first = open_rnn()
    second = open_rnn(context=first.context)
    other = of("rnn", "numeric")[1]
    answer(first, QUESTION, RIGHT)
    answer(second, other, other.task.value)
    # The browser brings what one page wrote to the other in a moment.
    first.wait_for_function(
        "([key, id]) => id in JSON.parse(localStorage[key]).questions",
        arg=[KEPT, other.id],
    )
    kept = json.loads(stored(first)[KEPT])["questions"]
    assert set(kept) == {QUESTION.id, other.id}


def test_progress_moves_from_one_browser_to_another(open_rnn, tmp_path):
    page = open_rnn()
    answer(page, QUESTION, RIGHT)
    page.locator(".keeper > summary").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "companion-progress.json"
    file = tmp_path / "progress.json"
    download.value.save_as(file)
    other = open_rnn()
    other.locator(".keeper > summary").click()
    for _ in range(2):
        other.get_by_label("Import").set_input_files(file)
        said = other.locator(".keeper .verdict")
        said.get_by_text("1 questions imported.").wait_for()
        assert stored(other)[KEPT] == stored(page)[KEPT]
    assert seal(other, QUESTION) == "✓"


def test_of_two_entries_the_younger_stays(open_rnn, tmp_path):
    older = {**ENTRY, "when": "2020-01-01T00:00:00.000Z", "seen": 9}
    page = open_rnn(kept=file_of({QUESTION.id: ENTRY}))
    page.locator(".keeper > summary").click()
    file = tmp_path / "progress.json"
    file.write_text(file_of({QUESTION.id: older, "gone-question": ENTRY}))
    page.get_by_label("Import").set_input_files(file)
    page.locator(".keeper .good").wait_for()
    kept = json.loads(stored(page)[KEPT])["questions"]
    assert kept == {QUESTION.id: ENTRY, "gone-question": ENTRY}


BAD = {
    "no JSON": "{",
    "nothing": "",
    "a list": "[]",
    "null": "null",
    "another file": '{"cells": []}',
    "no questions": '{"companion": "progress", "version": 1}',
    "text": file_of("rnn"),
    "a number": file_of({QUESTION.id: 3}),
    "null inside": file_of({QUESTION.id: None}),
    "more right than seen": file_of({QUESTION.id: {**ENTRY, "right": 4}}),
    "more than there is": file_of({QUESTION.id: {**ENTRY, "got": 2}}),
    "a fraction": file_of({QUESTION.id: {**ENTRY, "seen": 3.5}}),
    "no date": file_of({QUESTION.id: {**ENTRY, "when": "soon"}}),
    "a strange name": file_of({"__proto__": ENTRY}),
    "version 0": file_of({}, version=0),
}


def test_a_wrong_file_is_refused_and_nothing_is_lost(open_rnn, tmp_path):
    page = open_rnn(kept=file_of({QUESTION.id: ENTRY}))
    page.locator(".keeper > summary").click()
    file, said = tmp_path / "x.json", page.locator(".keeper .verdict")
    for name, text in BAD.items():
        file.write_text(text)
        page.get_by_label("Import").set_input_files(file)
        said.get_by_text("This is no file of progress").wait_for()
        said.evaluate("said => said.replaceChildren()")
        assert stored(page) == {KEPT: file_of({QUESTION.id: ENTRY})}, name
    file.write_text(file_of({}, version=2))
    page.get_by_label("Import").set_input_files(file)
    said.get_by_text("from a newer version").wait_for()
    assert stored(page) == {KEPT: file_of({QUESTION.id: ENTRY})}


def test_a_reset_asks_first(open_rnn):
    page = open_rnn(kept=file_of({QUESTION.id: ENTRY}))
    page.locator(".keeper > summary").click()
    page.get_by_role("button", name="Reset").click()
    keep = page.get_by_role("button", name="Keep it")
    assert keep.evaluate("it => it === document.activeElement")
    assert "Forget 1 questions?" in page.locator(".keeper").inner_text()
    keep.click()
    assert seal(page, QUESTION) == "✓"
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Forget").click()
    assert seal(page, QUESTION) == ""
    assert json.loads(stored(page)[KEPT])["questions"] == {}


def test_what_cannot_be_read_is_kept_aside_and_said(open_rnn):
    page = open_rnn(kept="{ half a fi")
    said = page.locator(".keeper .verdict")
    assert said.is_visible()
    kept = stored(page)
    ((name, text),) = kept.items()
    assert name.startswith(f"{KEPT}-unreadable-20")
    assert text == "{ half a fi"
    assert name in said.inner_text()
    answer(page, QUESTION, RIGHT)
    kept = stored(page)
    assert kept[name] == "{ half a fi"
    assert QUESTION.id in json.loads(kept[KEPT])["questions"]


def test_what_can_neither_be_read_nor_moved_is_left_alone(open_rnn):
    page = open_rnn(kept="{ half a fi", before=FULL)
    said = page.locator(".keeper .verdict").inner_text()
    assert "could not be read. It is left as it is" in said
    answer(page, QUESTION, RIGHT)
    assert seal(page, QUESTION) == "✓"
    assert stored(page) == {KEPT: "{ half a fi"}


def test_the_progress_of_a_newer_course_is_left_alone(open_rnn):
    newer = file_of({QUESTION.id: {"all": "new"}}, version=2)
    page = open_rnn(kept=newer)
    assert "a newer version" in page.locator(".keeper .verdict").inner_text()
    answer(page, QUESTION, RIGHT)
    assert seal(page, QUESTION) == "✓"
    assert stored(page) == {KEPT: newer}


@pytest.mark.parametrize("before", [FORBIDDEN, FULL], ids=["private", "full"])
def test_where_nothing_can_be_kept_all_else_works(open_rnn, before):
    page = open_rnn(before=before)
    answer(page, QUESTION, RIGHT)
    assert seal(page, QUESTION) == "✓"
    assert done(page).startswith("Progress: 1 of ")
    page.locator(".keeper > summary").click()
    assert page.locator(".keeper .verdict").inner_text() == ""
    with page.expect_download():
        page.get_by_role("button", name="Export").click()
