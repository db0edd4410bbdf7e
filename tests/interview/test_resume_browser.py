"""A mock interview outlives a reload, a link by mistake, a closed lid."""

import json

import pytest
from interview.browser import FEW, FOCUSED, answer, begin, contrast, of
from playwright.sync_api import Error

from companion.interview.model.mock import pick

pytestmark = pytest.mark.browser

EVERY = [question for asked in FEW.values() for question in asked]
KEPT = "companion-mock"
MINUTE = 60_000
FULL = """Storage.prototype.setItem = () => {
  throw new DOMException("full", "QuotaExceededError"); };"""


def picked(seed):
    return pick(EVERY, chapters=["rnn"], minutes=240, seed=seed)


def first_of(kind):
    """A seed whose first question is of a kind."""
    return next(s for s in range(500) if picked(s)[0] in of("rnn", kind))


@pytest.fixture
def talk(visit):
    """Begins an interview whose first question is of a kind."""

    def started(kind="open", **settings):
        page = visit("few", **settings)
        page.dialogs = []

        def leave(dialog):
            page.dialogs.append(dialog.type)
            dialog.accept()

        page.on("dialog", leave)
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        page.get_by_role("checkbox", name="01").check()
        begin(page, minutes=240, seed=first_of(kind))
        return page

    return started


def current(page):
    return page.locator(".session .question:visible")


def again(page):
    """Load the page again, and wait for what it offers."""
    page.reload()
    page.locator(".mock-place > *").first.wait_for()
    return page.locator(".mock-place")


def go_on(page):
    """Load the page again, and go on with what waits."""
    button = again(page).get_by_role("button", name="Go on")
    button.click()
    page.locator(".session").wait_for()
    return current(page)


def end(page):
    page.get_by_role("button", name="End").click()
    return page.locator(".report")


def entry(page, name):
    kept = page.evaluate("localStorage.getItem('companion-progress')")
    return json.loads(kept)["questions"][name]


def test_a_reload_goes_on_with_the_same_question_and_the_same_clock(talk):
    page = talk()
    total = len(picked(first_of("open")))
    answer(current(page), right=True)
    page.locator(".session .buttons button").click()
    second = current(page).locator(".prompt").inner_text()
    page.clock.run_for(65_000)
    told = again(page).inner_text()
    assert f"question 2 of {total}; the clock stands at 01:05 / 240:00." in told
    assert f"第 2 / {total} 题" in told
    item = go_on(page)
    assert item.locator(".prompt").inner_text() == second
    assert item.locator("summary").first.evaluate(FOCUSED)
    page.clock.run_for(5_000)
    assert page.get_by_role("timer").inner_text() == "01:10"
    assert f"1 of {total} answered, 100 %" in end(page).inner_text()


def test_a_clock_that_is_set_back_loses_no_interview(talk):
    page = talk()
    page.clock.run_for(7_000)
    page.evaluate("""{ const now = Date.now;
      Date.now = () => now.call(Date) - 90e3; }""")
    page.clock.run_for(4_000)
    assert page.get_by_role("timer").inner_text() == "00:10"
    page.locator(".session .buttons button").click()
    told = again(page).inner_text()
    assert "at question 2 of" in told
    assert "the clock stands at 00:10" in told
    go_on(page)
    assert page.get_by_role("timer").inner_text() == "00:10"


def test_what_was_typed_and_ticked_is_there_after_a_reload(talk):
    page = talk("open")
    name = picked(first_of("open"))[0].id
    item = current(page)
    item.get_by_role("textbox").fill("because 因为 <b>")
    item.locator("details.points > summary").click()
    item.get_by_role("checkbox").first.check()
    item.locator("details.short > summary").click()
    score = item.locator("output").inner_text()
    before = entry(page, name)
    item = go_on(page)
    assert item.get_by_role("textbox").input_value() == "because 因为 <b>"
    assert item.get_by_role("checkbox").first.is_checked()
    assert item.locator("output").inner_text() == score
    assert item.locator("details.short > div").is_visible()
    assert item.locator("details.answer").is_visible()
    assert item.locator(".seal").inner_text().startswith("1/")
    # To put a card back is no new answer.
    assert entry(page, name) == before


@pytest.mark.parametrize("kind", ["choice", "numeric"])
def test_after_a_reload_the_first_answer_still_counts(talk, kind):
    page = talk(kind)
    question = picked(first_of(kind))[0]

    def give(item, right):
        if kind == "numeric":
            value = question.task.value if right else 123456789
            item.get_by_role("textbox").fill(str(value))
        else:
            rights = [option.right for option in question.task.options]
            item.get_by_role("radio").nth(rights.index(right)).check()
        item.get_by_role("button").click()

    give(current(page), right=False)
    verdict = current(page).locator(".verdict").inner_text()
    before = entry(page, question.id)
    item = go_on(page)
    assert item.locator(".verdict").inner_text() == verdict
    assert item.locator(".seal").inner_text() == "✗"
    assert entry(page, question.id) == before
    give(item, right=True)
    assert item.locator(".seal").inner_text() == "✓"
    end(page)
    assert page.locator(".share").first.inner_text() == "0 %"


def test_a_code_question_keeps_how_it_went(talk):
    page = talk("code")
    current(page).get_by_role("radio", name="With help").check()
    item = go_on(page)
    assert item.get_by_role("radio", name="With help").is_checked()
    end(page)
    assert page.locator(".share").first.inner_text() == "50 %"


def test_leaving_asks_while_an_interview_runs_and_not_before_or_after(talk):
    page = talk()
    assert page.dialogs == []
    page.reload()
    assert page.dialogs == ["beforeunload"]
    go_on(page)
    assert page.dialogs == ["beforeunload"]
    end(page)
    page.reload()
    assert page.dialogs == ["beforeunload"]


def test_a_closed_browser_goes_on_in_a_new_window(talk, visit):
    page = talk()
    answer(current(page), right=True)
    page.clock.run_for(2_000)
    # Killed: the page is not told that it ends.
    with page.expect_event("crash"), pytest.raises(Error):
        page.goto("chrome://crash")
    page = visit("few", context=page.context)
    page.get_by_role("button", name="Go on").click()
    assert current(page).locator(".seal").inner_text()


def test_behind_a_closed_lid_the_clock_stands(talk):
    page = talk()
    page.clock.run_for(65_000)
    page.clock.fast_forward(60 * MINUTE)
    page.clock.run_for(5_000)
    assert page.get_by_role("timer").inner_text() == "01:10"
    # In the background a browser lets a page run once a minute.
    page.clock.fast_forward(MINUTE)
    assert page.get_by_role("timer").inner_text() == "02:10"


def test_a_pause_is_still_one_after_a_reload(talk):
    page = talk()
    page.clock.run_for(5_000)
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(30_000)
    go_on(page)
    page.clock.run_for(30_000)
    assert page.get_by_role("timer").inner_text() == "00:05"
    page.get_by_role("button", name="Go on").click()
    page.clock.run_for(5_000)
    assert page.get_by_role("timer").inner_text() == "00:10"


def test_the_report_is_there_after_a_look_at_a_chapter(talk):
    page = talk()
    answer(current(page), right=True)
    said = end(page).inner_text()
    told = again(page)
    assert "report of the interview" in told.inner_text()
    told.get_by_role("button", name="Show it").click()
    assert page.locator(".report").inner_text() == said


def test_one_may_begin_anew_and_the_old_one_waits_until_then(talk):
    page = talk()
    again(page).get_by_role("button", name="Begin anew").click()
    assert page.get_by_label("Minutes").is_visible()
    again(page).get_by_role("button", name="Begin anew").click()
    begin(page, seed=3, minutes=20)
    total = len(pick(EVERY, minutes=20, seed=3))
    told = again(page).inner_text()
    assert f"question 1 of {total}; the clock stands at 00:00 / 20:00" in told


def test_of_two_windows_the_one_that_began_last_is_kept(talk, visit):
    first = talk()
    second = visit("few", context=first.context)
    second.get_by_role("button", name="Begin anew").click()
    begin(second, seed=3, minutes=20)
    first.clock.run_for(5_000)
    first.locator(".session .buttons button").click()
    first.clock.run_for(5_000)
    third = visit("few", context=first.context)
    assert "question 1 of" in third.locator(".offer").inner_text()
    assert "/ 20:00" in third.locator(".offer").inner_text()


def test_who_forgets_all_forgets_the_interview(talk):
    page = talk()
    page.locator(".keeper summary").first.click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Forget").click()
    page.clock.run_for(5_000)
    page.reload()
    assert page.get_by_role("button", name="Begin", exact=False).is_visible()
    assert page.locator(".offer").count() == 0


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "change",
    [
        *("null", "7", "{", '{"edition": 1}'),
        "{...kept, edition: 2}",
        "{...kept, asked: []}",
        '{...kept, asked: ["rnn-nothing"]}',
        "{...kept, at: 999}",
        '{...kept, seconds: "many"}',
        '{...kept, when: "soon"}',
        "{...kept, tried: null}",
        '{...kept, tried: {"rnn-x": [2, 1, 1]}}',
        "{...kept, card: {}}",
    ],
)
def test_what_is_no_interview_is_not_offered(talk, change):
    page = talk()
    page.evaluate(
        """([key, change]) => {
      const kept = JSON.parse(localStorage.getItem(key)), set = localStorage.
        setItem.bind(localStorage);
      let text = change;
      try { text = JSON.stringify(eval(`(${change})`)); } catch { /* raw */ }
      addEventListener("pagehide", () => set(key, text)); }""",
        [KEPT, change],
    )
    told = again(page)
    assert told.get_by_role("button", name="Begin").is_visible()
    assert page.locator(".offer").count() == 0


@pytest.mark.parametrize("at", [0, 1])
def test_an_interview_goes_on_without_a_question_that_is_gone(talk, at):
    page = talk()
    page.evaluate(
        """([key, at]) => {
      const kept = JSON.parse(localStorage.getItem(key));
      kept.asked.splice(0, 0, "rnn-gone");
      kept.at = at;
      const set = localStorage.setItem.bind(localStorage);
      addEventListener("pagehide", () => set(key, JSON.stringify(kept))); }""",
        [KEPT, at],
    )
    first = current(page).get_attribute("data-chapter")
    told = again(page)
    assert "at question 1 of" in told.locator(".offer").inner_text()
    told.get_by_role("button", name="Go on").click()
    assert current(told).get_attribute("data-chapter") == first


def test_where_nothing_can_be_kept_an_interview_runs_and_leaving_asks(talk):
    page = talk(before=FULL)
    answer(current(page), right=True)
    page.clock.run_for(5_000)
    page.reload()
    assert page.dialogs == ["beforeunload"]
    assert page.locator(".offer").count() == 0


@pytest.fixture
def from_disk(chromium, folder):
    """An interview begun in a page from disk that finds its storage empty.

    A busy Chromium gives a few pages in a hundred a storage of their own there:
    here each load meets it.
    """
    context = chromium.new_context()
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.add_init_script("localStorage.clear()")
    page.goto(f"{(folder / 'few').as_uri()}.html")
    page.get_by_role("checkbox", name="01").check()
    begin(page, minutes=240, seed=first_of("open"))
    yield page
    context.close()


def test_from_disk_an_interview_outlives_an_empty_storage(from_disk):
    page = from_disk
    page.get_by_role("button", name="Next question").click()
    asked = current(page).get_attribute("data-chapter")
    told = again(page)
    assert "at question 2 of" in told.locator(".offer").inner_text()
    told.get_by_role("button", name="Go on").click()
    assert current(page).get_attribute("data-chapter") == asked


def test_from_disk_a_link_by_mistake_and_back_loses_no_interview(from_disk):
    page, address = from_disk, from_disk.url
    page.goto("about:blank")
    page.go_back()
    assert page.url == address
    assert page.locator(".offer").inner_text().count("at question 1 of") == 1


def test_from_disk_who_forgets_all_forgets_the_interview(from_disk):
    page = from_disk
    page.locator(".keeper summary").first.click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Forget").click()
    told = again(page)
    assert told.get_by_role("button", name="Begin").is_visible()
    assert page.locator(".offer").count() == 0


@pytest.mark.parametrize("language", ["both", "zh"])
def test_the_offer_fits_a_phone_and_can_be_read(talk, language):
    page = talk(width=390)
    page.evaluate(f"localStorage.setItem('companion-language', '{language}')")
    again(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for theme in ("light", "dark"):
        assert contrast(page, theme) >= 4.5, theme
    if language == "zh":
        assert "You left" not in page.locator(".offer").inner_text()
