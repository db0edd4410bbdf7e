"""The quiz in a browser: every question is answered, right and wrong."""

import pytest

from companion import CHAPTERS
from companion.interview import load, show

pytestmark = pytest.mark.browser

DARK, LIGHT = "#14181f", "#ffffff"
TABS_TO_REACH_ANYTHING = 200


def page_of(chapter, theme="light"):
    paper = DARK if theme == "dark" else LIGHT
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}">'
        '<meta charset="utf-8"><title>Quiz</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<body style="background: {paper}; color-scheme: {theme}">'
        f"{show(chapter).html}</body></html>"
    )


@pytest.fixture
def open_quiz(chromium, tmp_path):
    """Opens a chapter's quiz as a file; nothing may go wrong or be fetched."""
    contexts, faults, asked = [], [], set()

    def opened(chapter, *, theme="light", width=800, script=True):
        path = tmp_path / "quiz.html"
        path.write_text(page_of(chapter, theme), encoding="utf-8")
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: asked.add(request.url))
        page.goto(path.as_uri())
        if script:
            page.locator(".settings").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
    assert {url.rpartition("/")[2] for url in asked} == {"quiz.html"}


def card(page, question):
    """The opened question of a page."""
    number = load(question.chapter).index(question)
    item = page.locator(".question").nth(number)
    item.locator("summary").first.click()
    return item


def of(chapter, kind):
    return [q for q in load(chapter) if q.kind == kind]


def verdict(item):
    return item.locator(".verdict").inner_text()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_number_is_judged_as_python_judges_it(open_quiz, chapter):
    page = open_quiz(chapter)
    for question in of(chapter, "numeric"):
        item, task = card(page, question), question.task
        field = item.get_by_role("textbox")
        for number, mistake in enumerate(task.mistakes):
            field.fill(str(mistake.value))
            field.press("Enter")
            reason = item.locator("dd").nth(number).text_content()
            assert reason in item.locator(".verdict").text_content()
            assert item.locator(".seal").inner_text() == "✗"
        field.fill("987654321")
        field.press("Enter")
        hint = item.locator("details.hint > div").text_content()
        assert hint in item.locator(".verdict").text_content()
        for answer in (task.value, task.value + task.tolerance):
            field.fill(str(answer))
            field.press("Enter")
            assert "Right." in verdict(item)
            assert item.locator(".seal").inner_text() == "✓"
            assert item.locator("details.answer .value").is_visible()


@pytest.mark.parametrize("typed", ["", "abc", "0,27", "1e999"])
def test_what_is_no_number_is_asked_for_again(open_quiz, typed):
    page = open_quiz("rnn")
    item = card(page, of("rnn", "numeric")[0])
    item.get_by_role("textbox").fill(typed)
    item.get_by_role("button").click()
    assert "Type a number, such as 0.25 or 1024." in verdict(item)
    assert item.get_by_role("textbox").get_attribute("aria-invalid") == "true"


@pytest.mark.parametrize("typed", ["394,240", "３９４２４０", " +394240 "])
def test_a_number_may_be_written_as_people_write_it(open_quiz, typed):
    (question,) = (q for q in load("rnn") if q.id == "rnn-lstm-parameters")
    item = card(open_quiz("rnn"), question)
    item.get_by_role("textbox").fill(typed)
    item.get_by_role("button").click()
    assert "Right." in verdict(item)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_choice_explains_every_option(open_quiz, chapter):
    page = open_quiz(chapter)
    for question in of(chapter, "choice"):
        item, options = card(page, question), question.task.options
        boxes, whys = item.get_by_role("radio"), item.locator(".why")
        item.get_by_role("button").click()
        assert "Choose one first." in verdict(item)
        assert whys.all_text_contents() == [""] * len(options)
        for number, option in enumerate(options):
            boxes.nth(number).check()
            item.get_by_role("button").click()
            expected = "Right." if option.right else "Not that one."
            assert expected in verdict(item)
        for why, option in zip(whys.all(), options, strict=True):
            right = "Right." if option.right else "Wrong."
            assert why.inner_text().startswith(right)
            assert why.get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_open_answer_is_marked_before_the_model_answer_is_read(
    open_quiz, chapter
):
    page = open_quiz(chapter)
    for question in of(chapter, "open"):
        item, total = card(page, question), len(question.task.points)
        item.get_by_role("textbox").fill("What I would say.")
        assert not item.locator("details.answer").is_visible()
        item.locator("details.points > summary").click()
        boxes = item.get_by_role("checkbox")
        assert boxes.count() == total
        for box in boxes.all()[:-1]:
            box.check()
        score = item.locator("output").inner_text()
        assert score.startswith(f"{total - 1} of {total} points")
        assert item.locator(".seal").inner_text() == f"{total - 1}/{total}"
        item.locator("details.answer > summary").click()
        assert question.proof in item.locator("details.answer").inner_text()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_code_question_shows_what_to_run_and_folds_the_solution(
    open_quiz, chapter
):
    page = open_quiz(chapter)
    for question in of(chapter, "code"):
        item, task = card(page, question), question.task
        run = item.locator(".run code").inner_text()
        assert run.startswith(f'check("{task.component}", my_')
        solution = item.locator("details.answer pre")
        assert not solution.is_visible()
        item.locator("details.answer > summary").click()
        assert solution.inner_text().strip() == task.solution


def test_a_language_is_chosen_once(open_quiz):
    page = open_quiz("attention")
    english = page.locator(".prompt span[lang=en]").first
    chinese = page.locator(".prompt span[lang=zh-CN]").first
    assert english.is_visible()
    assert chinese.is_visible()
    page.get_by_role("radio", name="中文", exact=True).check()
    assert not english.is_visible()
    assert chinese.is_visible()
    page.reload()
    page.locator(".settings").wait_for()
    assert not page.locator(".prompt span[lang=en]").first.is_visible()
    page.get_by_role("radio", name="English", exact=True).check()
    assert english.is_visible()
    assert (
        not page.locator("[lang=zh-CN]").and_(page.locator(":visible")).count()
    )


def test_a_level_is_picked_out(open_quiz):
    page = open_quiz("attention")
    page.get_by_role("radio", name="senior").check()
    shown = [q for q in page.locator(".question").all() if q.is_visible()]
    levels = [question.get_attribute("data-level") for question in shown]
    expected = [q.level for q in load("attention") if q.level == "senior"]
    assert levels == expected


def test_a_quiz_works_by_keyboard_alone(open_quiz):
    page = open_quiz("rnn")
    question = of("rnn", "choice")[0]
    item = page.locator(".question").nth(load("rnn").index(question))
    go_to(page, item.locator("summary").first)
    page.keyboard.press("Enter")
    go_to(page, item.get_by_role("radio").first)
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    assert item.get_by_role("radio").nth(1).is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert verdict(item).startswith(("Right.", "Not that one."))
    page.keyboard.press("Tab")
    assert item.locator("details.answer > summary").evaluate(
        "element => element === document.activeElement"
    )


def go_to(page, element):
    """Presses Tab until the element has the focus."""
    for _ in range(TABS_TO_REACH_ANYTHING):
        if element.evaluate("it => it === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail("Tab does not reach it")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_whatever_takes_keys_has_a_name_and_keeps_its_keys(open_quiz, chapter):
    page = open_quiz(chapter)
    open_all(page)
    nameless = page.evaluate("""() =>
      [...document.querySelectorAll("input, textarea")]
        .filter((field) => !field.labels[0]?.textContent.trim())
        .length""")
    assert nameless == 0
    for item in page.locator("fieldset").all():
        assert item.locator("legend").first.text_content().strip()
    taking = "summary, input, textarea, button"
    kept = page.locator(taking).and_(
        page.locator('[data-lm-suppress-shortcuts="true"]')
    )
    assert kept.count() == page.locator(taking).count()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_without_scripts_everything_can_be_read(open_quiz, chapter):
    page = open_quiz(chapter, script=False)
    questions = page.locator(".question")
    assert questions.count() == len(load(chapter))
    for question, item in zip(load(chapter), questions.all(), strict=True):
        for language in ("en", "zh-CN"):
            prompt = item.locator(f".prompt > [lang={language}]")
            assert prompt.is_visible()
        answer = item.locator("details.answer > div > div").first
        assert not answer.is_visible()
        item.locator("summary").first.click()
        item.locator("details.answer > summary").click()
        assert answer.is_visible()
        if question.kind == "choice":
            whys = item.locator(".whys li")
            assert whys.count() == len(question.task.options)
            assert whys.first.is_visible()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_phone_never_scrolls_sideways(open_quiz, chapter):
    page = open_quiz(chapter, width=390)
    open_all(page)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_words_can_be_told_from_the_paper(open_quiz, theme):
    page = open_quiz("attention", theme=theme)
    open_all(page)
    for button in page.get_by_role("button").all():
        button.click()
    assert page.evaluate(CONTRAST) >= 4.5


def open_all(page):
    page.evaluate("""() => document.querySelectorAll("details")
      .forEach((each) => { each.open = true; each.hidden = false; })""")


# The lowest contrast of any text with what it stands on (WCAG 2, 1.4.3).
CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return channels(colour)[3] === 0 && element.parentElement
      ? ground(element.parentElement) : colour;
  };
  const texts = [...document.querySelectorAll(".companion *")].filter(
    (each) => each.checkVisibility() && !/style|script/i.test(each.tagName)
      && [...each.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...texts.map((each) => {
    const [low, high] = [light(getComputedStyle(each).color),
      light(ground(each))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""
