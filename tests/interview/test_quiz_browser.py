"""The quiz in a browser: every question is answered, right and wrong."""

import re
from html import unescape

import pytest

from companion import CHAPTERS
from companion.interview import load, show
from companion.interview.model import notes
from companion.interview.model.words import block

pytestmark = pytest.mark.browser

DARK, LIGHT = "#14181f", "#ffffff"
TABS_TO_REACH_ANYTHING = 200


def page_of(chapter, theme="light", before=""):
    paper = DARK if theme == "dark" else LIGHT
    return (
        f'<!doctype html><html lang="en" data-theme="{theme}">'
        '<meta charset="utf-8"><title>Quiz</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<body style="background: {paper}; color-scheme: {theme}">'
        f"{before}{show(chapter).html}</body></html>"
    )


@pytest.fixture
def open_quiz(chromium, tmp_path):
    """Opens a chapter's quiz as a file; nothing may go wrong or be fetched."""
    contexts, faults, asked = [], [], set()

    def opened(chapter, *, theme="light", width=800, script=True, before=""):
        path = tmp_path / "quiz.html"
        html = page_of(chapter, theme, before)
        path.write_text(html, encoding="utf-8")
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


# Every question of every chapter, driven from within the page.

DRIVE = """async (typed) => {
  const opened = (details) => new Promise((done) => {
    details.addEventListener("toggle", done, { once: true });
    details.open = true;
  });
  const text = (item, name) => item.querySelector(name)?.textContent;
  const state = (item) => ({ verdict: text(item, ".verdict"),
    seal: text(item, ".seal"), open: item.querySelector(".short").open });
  const drive = {
    async numeric(item) {
      const tries = [];
      for (const number of typed[item.id]) {
        item.querySelector("form input").value = number;
        item.querySelector("form").requestSubmit();
        tries.push(state(item));
      }
      return tries;
    },
    async choice(item) {
      const tries = [], form = item.querySelector("form");
      form.requestSubmit();
      const whys = [...item.querySelectorAll(".why")];
      tries.push({ ...state(item), whys: whys.map((why) => why.innerHTML) });
      for (const box of form.querySelectorAll("input")) {
        box.checked = true;
        form.requestSubmit();
        tries.push({ ...state(item), whys: whys.map((why) =>
          [why.textContent, why.getAttribute("aria-live")].join(" ")) });
      }
      return tries;
    },
    async open(item) {
      await opened(item.querySelector("details.points"));
      const tries = [state(item)];
      for (const box of item.querySelectorAll("[type=checkbox]")) {
        box.click();
        tries.push({ ...state(item), score: text(item, "output") });
      }
      return tries;
    },
    async code(item) {
      const tries = [];
      for (const box of item.querySelectorAll(".how input")) {
        box.click();
        tries.push(state(item));
      }
      return tries;
    },
  };
  const tries = {};
  for (const item of document.querySelectorAll(".question")) {
    item.querySelector("details").open = true;
    tries[item.id] = await drive[item.dataset.kind](item);
  }
  for (const each of document.querySelectorAll("details, .end")) {
    each.open = true;
    each.hidden = false;
  }
  const all = (names) => [...document.querySelectorAll(names)];
  return { tries, width: document.documentElement.scrollWidth,
    nameless: all("input, textarea, select").filter(
      (field) => !field.labels[0]?.textContent.trim()).length,
    untitled: all("fieldset").filter((field) =>
      !field.querySelector("legend")?.textContent.trim()).length,
    robbed: all("summary, input, textarea, button, select").filter((each) =>
      each.dataset.lmSuppressShortcuts !== "true").length };
}"""
WILD = 987654321


@pytest.fixture(scope="module", params=CHAPTERS)
def driven(request, chromium, tmp_path_factory):
    """A chapter, and what its quiz did on a phone as all was answered."""
    chapter = request.param
    path = tmp_path_factory.mktemp("quiz") / "quiz.html"
    path.write_text(page_of(chapter), encoding="utf-8")
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    faults = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(path.as_uri())
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
    return re.sub("<.*?>", "", html)


def test_every_number_is_judged_as_python_judges_it(driven):
    chapter, did = driven
    for question in of(chapter, "numeric"):
        task, (wild, *tries) = question.task, did["tries"][question.id]
        assert unescape(plain(block(task.hint))) in wild["verdict"]
        for mistake, told in zip(task.mistakes, tries, strict=False):
            assert unescape(plain(block(mistake.why))) in told["verdict"]
            assert told["seal"] == "✗"
            assert not told["open"]
        for told in tries[len(task.mistakes) :]:
            assert told["verdict"].startswith("Right.")
            assert told["seal"] == "✓"
            assert told["open"]


def test_a_choice_explains_every_option(driven):
    chapter, did = driven
    for question in of(chapter, "choice"):
        options = question.task.options
        empty, *tries = did["tries"][question.id]
        assert empty["verdict"].startswith("Choose one first.")
        assert empty["whys"] == [""] * len(options)
        for option, told in zip(options, tries, strict=True):
            said = "Right." if option.right else "Not that one."
            assert told["verdict"].startswith(said)
            assert told["seal"] == ("✓" if option.right else "✗")
            for other, why in zip(options, told["whys"], strict=True):
                right = "Right." if other.right else "Wrong."
                assert why.startswith(right)
                assert why.endswith(" polite")


def test_an_open_answer_is_marked_point_by_point(driven):
    chapter, did = driven
    for question in of(chapter, "open"):
        total = len(question.task.points)
        tries = did["tries"][question.id]
        assert [each["seal"] for each in tries] == [
            f"{number}/{total}" for number in range(total + 1)
        ]
        assert tries[-1]["score"].startswith(f"{total} of {total} points")


def test_code_is_marked_by_who_wrote_it(driven):
    chapter, did = driven
    for question in of(chapter, "code"):
        seals = [each["seal"] for each in did["tries"][question.id]]
        assert seals == ["✓", "½", "✗"]


def test_whatever_takes_keys_has_a_name_and_keeps_its_keys(driven):
    _, did = driven
    assert did["nameless"] == did["untitled"] == did["robbed"] == 0


def test_a_phone_never_scrolls_sideways(driven):
    _, did = driven
    assert did["width"] <= 390


# By hand, as a reader does it


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


def test_points_stay_back_until_they_are_wanted(open_quiz):
    question = of("rnn", "open")[0]
    item = card(open_quiz("rnn"), question)
    item.get_by_role("textbox").fill("What I would say.")
    assert not item.locator("details.short").is_visible()
    assert not item.get_by_role("checkbox").first.is_visible()
    item.locator("details.points > summary").click()
    item.get_by_role("checkbox").first.check()
    assert item.locator("output").inner_text().startswith("1 of ")
    item.locator("details.short").wait_for()


def test_what_was_typed_is_there_again_and_goes_with_a_reset(open_quiz):
    first, second = of("rnn", "open")[:2]
    page = open_quiz("rnn")
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


def test_an_open_question_is_printed_whole_with_what_was_typed(open_quiz):
    page = open_quiz("rnn")
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


@pytest.mark.parametrize("kind", STEPS)
def test_a_card_opens_step_by_step_and_ends_with_its_proof(open_quiz, kind):
    page = open_quiz("attention")
    noted = {note.master for note in notes.read()}
    question = next(q for q in of("attention", kind) if q.id not in noted)
    item = card(page, question)
    steps = item.locator(".step:visible")
    for number, name in enumerate(STEPS[kind], 1):
        item.locator(f"details.step.{name}").wait_for()
        assert steps.count() == number
        assert name in steps.last.get_attribute("class")
        steps.last.locator("summary").click()
    end = item.locator(".end")
    end.wait_for()
    assert question.proof in end.inner_text()
    assert question.section in end.inner_text()


def test_the_notes_answer_stands_below_its_master(open_quiz):
    note = next(n for n in notes.read() if n.master.startswith("attention-"))
    (question,) = (q for q in load("attention") if q.id == note.master)
    item = card(open_quiz("attention"), question)
    open_all(item)
    told = item.locator("details.notes").inner_text()
    assert note.where in told
    assert note.proof in told


def test_a_section_of_this_page_is_linked(open_quiz):
    question = load("attention")[0]
    heading = f"<section id='there'><h2>{question.section}#</h2></section>"
    item = card(open_quiz("attention", before=heading), question)
    open_all(item)
    link = item.locator(".section a")
    assert link.get_attribute("href") == "#there"
    assert link.inner_text() == question.section


def test_a_question_can_be_called_by_its_address(open_quiz):
    page = open_quiz("attention")
    question = load("attention")[4]
    page.evaluate(f"location.hash = '{question.id}'")
    item = page.locator(f"#{question.id}")
    item.locator(".work").wait_for()
    assert item.locator("summary").first.evaluate(
        "it => it === document.activeElement"
    )


def test_a_code_question_shows_what_to_run_and_folds_the_solution(open_quiz):
    question = of("rnn", "code")[0]
    item, task = card(open_quiz("rnn"), question), question.task
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
    assert item.locator("details.short > summary").evaluate(
        "element => element === document.activeElement"
    )


def go_to(page, element):
    """Presses Tab until the element has the focus."""
    for _ in range(TABS_TO_REACH_ANYTHING):
        if element.evaluate("it => it === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail("Tab does not reach it")


def test_without_scripts_everything_can_be_read(open_quiz):
    page = open_quiz("rnn", script=False)
    assert page.locator(".question").count() == len(load("rnn"))
    for kind, steps in STEPS.items():
        question = of("rnn", kind)[0]
        item = page.locator(f"#{question.id}")
        item.locator("summary").first.click()
        for name in steps:
            inside = item.locator(f"details.{name} > div")
            assert not inside.is_visible()
            item.locator(f"details.{name} > summary").click()
            assert inside.is_visible()
        assert question.proof in item.locator(".end").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_words_can_be_told_from_the_paper(open_quiz, theme):
    page = open_quiz("attention", theme=theme)
    open_all(page)
    for button in page.locator(".work button").all():
        button.click()
    assert page.evaluate(CONTRAST) >= 4.5


def open_all(place):
    place.locator("details, .end").evaluate_all("""all => all.forEach(
      (each) => { each.open = true; each.hidden = false; })""")


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
