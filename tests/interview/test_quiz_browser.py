"""The quiz in a browser: every question is answered, right and wrong."""

import re
from html import unescape

import pytest
from interview.browser import (
    DRIVE,
    FOCUSED,
    WHOLE,
    card,
    contrast,
    go_to,
    of,
    open_all,
    submit,
)

from companion import CHAPTERS
from companion.interview.model import notes
from companion.interview.model.words import block

pytestmark = pytest.mark.browser

WILD = 987654321


# Every question of every chapter, driven from within the page.


@pytest.fixture(scope="module", params=CHAPTERS)
def driven(request, chromium, folder):
    """A chapter, and what its quiz did on a phone as all was answered."""
    chapter = request.param
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    faults = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{(folder / chapter).as_uri()}.html")
    page.locator(".settings").wait_for()
    typed = {}
    for question in of(chapter, "numeric"):
        task = question.task
        mistakes = [mistake.value for mistake in task.mistakes]
        known = [WILD, *mistakes, task.value, task.value + task.tolerance]
        typed[question.id] = list(map(str, known))
    did = page.evaluate(DRIVE, typed)
    page.close()
    assert faults == []
    return chapter, did


def plain(html):
    return unescape(re.sub("<.*?>", "", html))


def test_every_number_is_judged_as_python_judges_it(driven):
    chapter, did = driven
    for question in of(chapter, "numeric"):
        task, (wild, *tries) = question.task, did["tries"][question.id]
        assert plain(block(task.hint)) in wild["verdict"]
        for mistake, shown in zip(task.mistakes, tries, strict=False):
            assert plain(block(mistake.why)) in shown["verdict"]
            assert (shown["seal"], shown["open"]) == ("✗", False)
        for shown in tries[len(task.mistakes) :]:
            assert shown["verdict"].startswith("Right.")
            assert (shown["seal"], shown["open"]) == ("✓", True)


def test_a_choice_explains_every_option(driven):
    chapter, did = driven
    for question in of(chapter, "choice"):
        options = question.task.options
        empty, *tries = did["tries"][question.id]
        assert empty["verdict"].startswith("Choose one first.")
        assert empty["whys"] == [""] * len(options)
        for option, shown in zip(options, tries, strict=True):
            said = "Right." if option.right else "Not that one."
            assert shown["verdict"].startswith(said)
            assert shown["seal"] == ("✓" if option.right else "✗")
            for other, why in zip(options, shown["whys"], strict=True):
                assert why.startswith("Right." if other.right else "Wrong.")
                assert why.endswith(" polite")


def test_an_option_has_the_letter_that_explains_it_beside_its_text(visit):
    page = visit("attention")
    card = page.locator(".question[data-kind=choice]").first
    card.locator("summary").first.click()
    choice = card.locator(".options li").nth(1).locator("label")
    letter = choice.evaluate(
        "each => getComputedStyle(each, '::before').content"
    )
    assert letter == 'counter(option, upper-alpha) "."'
    circle, text = (
        choice.locator(f"> {name}").bounding_box() for name in ("input", "span")
    )
    # One line: the circle, the letter, the text.
    assert 10 < text["x"] - circle["x"] - circle["width"] < 60
    assert abs(text["y"] - circle["y"]) < 12


def test_an_open_answer_is_marked_point_by_point(driven):
    chapter, did = driven
    for question in of(chapter, "open"):
        total = len(question.task.points)
        tries = did["tries"][question.id]
        seals = [f"{number}/{total}" for number in range(total + 1)]
        assert [each["seal"] for each in tries] == seals
        assert tries[-1]["score"].startswith(f"{total} of {total} points")


def test_code_is_marked_by_who_wrote_it(driven):
    chapter, did = driven
    for question in of(chapter, "code"):
        seals = [each["seal"] for each in did["tries"][question.id]]
        assert seals == ["✓", "½", "✗"]


def test_on_a_phone_all_fits_has_a_name_and_keeps_its_keys(driven):
    _, did = driven
    assert did["nameless"] == did["untitled"] == did["robbed"] == 0
    assert did["width"] <= 390


# By hand, as a reader does it


def test_a_number_may_be_written_as_people_write_it(visit):
    (question,) = (q for q in WHOLE["rnn"] if q.id == "rnn-lstm-parameters")
    item = card(visit("rnn"), question)
    for typed in ("", "abc", "39,42", "1e999"):
        assert "Type a number, such as 0.25 or 1024." in submit(item, typed)
        field = item.get_by_role("textbox")
        assert field.get_attribute("aria-invalid") == "true"
    for typed in ("394,240", "３９４２４０", " +394240 "):
        assert "Right." in submit(item, typed)
        assert "Not yet." in submit(item, 7)


def test_points_stay_back_until_they_are_wanted(visit):
    item = card(visit("rnn"), of("rnn", "open")[0])
    item.get_by_role("textbox").fill("What I would say.")
    assert not item.locator("details.short").is_visible()
    assert not item.get_by_role("checkbox").first.is_visible()
    item.locator("details.points > summary").click()
    item.get_by_role("checkbox").first.check()
    assert item.locator("output").inner_text().startswith("1 of ")
    item.locator("details.short").wait_for()


def test_what_was_typed_is_there_again_and_goes_with_a_reset(visit):
    first, second = of("rnn", "open")[:2]
    page = visit("rnn")
    typed = 'Two lines,\nand "quotes" <b>.'
    card(page, first).get_by_role("textbox").fill(typed)
    other = card(page, second).get_by_role("textbox")
    other.fill("Gone at once.")
    other.fill("")
    page.reload()
    assert card(page, first).get_by_role("textbox").input_value() == typed
    assert card(page, second).get_by_role("textbox").input_value() == ""
    page.locator(".keeper > summary").click()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Forget").click()
    page.reload()
    assert card(page, first).get_by_role("textbox").input_value() == ""


def test_an_open_question_is_printed_whole_with_what_was_typed(visit):
    page = visit("rnn")
    item = card(page, of("rnn", "open")[0])
    item.get_by_role("textbox").fill("What I would say.")
    folded = page.locator(".question").nth(1)
    seen = "all => all.map(each => each.checkVisibility())"
    steps = ".step > div, .step.end > p"
    assert not any(item.locator(steps).evaluate_all(seen))
    page.emulate_media(media="print")
    assert all(item.locator(steps).evaluate_all(seen))
    assert not any(folded.locator(steps).evaluate_all(seen))
    assert not item.locator("textarea").is_visible()
    label = item.locator(".draft")
    after = label.evaluate("e => getComputedStyle(e, '::after').content")
    assert after == '"What I would say."'
    assert label.is_visible()
    item.locator("textarea").evaluate("e => e.value = ''")
    item.locator("textarea").dispatch_event("input")
    assert not label.is_visible()


STEPS = {
    "open": ["points", "short", "answer", "slip", "follow"],
    "choice": ["whys", "short", "answer", "follow"],
    "numeric": ["short", "answer", "mistakes", "follow"],
    "code": ["solution", "short", "answer", "slip", "follow"],
}


def test_a_card_opens_step_by_step_and_ends_with_its_proof(visit):
    page = visit("attention")
    noted = {note.master for note in notes.read()}
    for kind, names in STEPS.items():
        question = next(q for q in of("attention", kind) if q.id not in noted)
        item = card(page, question)
        steps = item.locator(".step:visible")
        for number, name in enumerate(names, 1):
            item.locator(f"details.step.{name}").wait_for()
            assert steps.count() == number
            assert name in steps.last.get_attribute("class")
            steps.last.locator("summary").click()
        end = item.locator(".end")
        end.wait_for()
        assert question.proof in end.inner_text()
        assert question.section in end.inner_text()


def test_a_card_shows_the_notes_answer_and_links_its_section(visit):
    page = visit("attention")
    note = next(n for n in notes.read() if n.master.startswith("attention-"))
    item = page.locator(f"#{note.master}")
    open_all(item)
    noted = item.locator("details.notes").inner_text()
    assert note.where.en in noted
    assert note.proof in noted
    question = WHOLE["attention"][0]
    item = page.locator(f"#{question.id}")
    open_all(item)
    link = item.locator(".section a")
    assert link.get_attribute("href") == "#there"
    assert link.inner_text() == question.section


def test_a_question_can_be_called_by_its_address(visit):
    page, question = visit("attention"), WHOLE["attention"][4]
    page.evaluate(f"location.hash = '{question.id}'")
    item = page.locator(f"#{question.id}")
    item.locator(".work").wait_for()
    assert item.locator("summary").first.evaluate(FOCUSED)


def test_a_code_question_shows_what_to_run_and_folds_the_solution(visit):
    question = of("rnn", "code")[0]
    item, task = card(visit("rnn"), question), question.task
    run = item.locator(".run code").inner_text()
    assert run.startswith(f'check("{task.component}", my_')
    practise = item.locator(".practise code").inner_text()
    assert practise == f'interview.practise("{question.id}")'
    solution = item.locator("details.solution pre")
    assert not solution.is_visible()
    item.locator("details.solution > summary").click()
    assert solution.inner_text().strip() == task.solution
    item.get_by_role("radio", name="With help").check()
    assert item.locator(".seal").get_attribute("aria-label") == "half 一半"


def test_a_language_is_chosen_once_and_a_level_picked_out(visit):
    page = visit("attention")
    page.get_by_role("radio", name="senior").check()
    shown = page.locator(".question:visible").all()
    levels = [question.get_attribute("data-level") for question in shown]
    seniors = [q.level for q in WHOLE["attention"] if q.level == "senior"]
    assert levels == seniors
    page.get_by_role("radio", name="All").check()
    english = page.locator(".prompt span[lang=en]").first
    chinese = page.locator(".prompt span[lang=zh-CN]").first
    assert english.is_visible()
    assert chinese.is_visible()
    page.get_by_role("radio", name="中文", exact=True).check()
    assert not english.is_visible()
    assert chinese.is_visible()
    page.reload()
    page.locator(".settings").wait_for()
    assert not english.is_visible()
    page.get_by_role("radio", name="English", exact=True).check()
    assert english.is_visible()
    assert page.locator("[lang=zh-CN]:visible").count() == 0


def test_a_quiz_works_by_keyboard_alone(visit):
    page = visit("rnn")
    item = page.locator(f"#{of('rnn', 'choice')[0].id}")
    go_to(page, item.locator("summary").first)
    page.keyboard.press("Enter")
    go_to(page, item.get_by_role("radio").first)
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert item.get_by_role("radio").nth(1).is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    verdict = item.locator(".verdict").inner_text()
    assert verdict.startswith(("Right.", "Not that one."))
    page.keyboard.press("Tab")
    assert item.locator("details.short > summary").evaluate(FOCUSED)


def test_without_scripts_everything_can_be_read(visit):
    page = visit("rnn", script=False)
    assert page.locator(".question").count() == len(WHOLE["rnn"])
    for kind, steps in STEPS.items():
        question = of("rnn", kind)[0]
        item = card(page, question)
        for name in steps:
            inside = item.locator(f"details.{name} > div")
            assert not inside.is_visible()
            item.locator(f"details.{name} > summary").click()
            assert inside.is_visible()
        assert question.proof in item.locator(".end").inner_text()


def test_all_words_can_be_told_from_the_paper(visit):
    page = visit("attention")
    open_all(page)
    for button in page.locator(".work button").all():
        button.click()
    for theme in ("light", "dark"):
        assert contrast(page, theme) >= 4.5, theme
