"""The figure of chapter 14: patients to diagnose."""

import re

import pytest
from figures.browser import LAPTOP, PHONE, computed, enter, press
from figures.registry import CASES, data_of, html_of, shown

from companion.figures import clinic
from companion.masks import causal_mask


def changed(**new):
    """One case, and what is different about it; None leaves it out."""
    case = CASES[3] | new
    return [{key: value for key, value in case.items() if value is not None}]


def test_everything_of_every_case_can_be_read_without_scripts():
    html = shown(clinic(CASES))
    for case in CASES:
        for key in ("name", "test", "sick", "healthy"):
            assert case[key] in html
        for guess in case["guesses"]:
            assert f"<li>{guess}</li>" in html
        assert f"It is: {case['guesses'][case['right']]}<" in html
    assert html.count("<section>") == len(CASES)


def test_a_text_is_escaped_and_code_is_code():
    html = shown(clinic(CASES))
    assert "0.02 &amp; it writes <code>nonsense</code> &lt;here&gt;." in html
    assert "<code>~mask</code>" in html


def test_the_script_gets_the_right_answers_and_what_is_said_of_each():
    data = data_of(clinic(CASES))
    assert data["right"] == [1, 0, 2, 1]
    assert data["verdicts"][1] == [
        "Right: A.",
        "You said: B. It is: A.",
        "You said: C. It is: A.",
    ]


def test_curves_are_told_in_words_and_drawn_one_above_the_other():
    html = shown(clinic(CASES[:1]))
    assert "training (solid) from 3.00 to 0.081; validation (dashed)" in html
    paths = re.findall(r'class="line" d="M([^"]+)"', html)
    assert len(paths) == 2
    ends = [float(path.split()[-1]) for path in paths]
    assert ends[0] > ends[1]  # Down is larger.


def test_a_matrix_stands_with_two_places_and_tints():
    html = shown(clinic(CASES[2:3]))
    numbers = re.findall(r'style="--heat: (\d+)%">([\d.]+)</td>', html)
    expected = CASES[2]["matrix"].flatten().tolist()
    assert [float(n) for _, n in numbers] == [round(x, 2) for x in expected]
    top = max(expected)
    heats = [int(heat) for heat, _ in numbers]
    assert heats == [round(50 * x / top) for x in expected]


def test_a_matrix_may_be_a_mask_or_lists():
    for matrix in (causal_mask(3), [[0, 1], [2, 3]]):
        assert "<table" in clinic(changed(matrix=matrix)).html


def test_chinese_is_marked_as_such():
    assert '<span lang="zh">我 爱 猫</span>' in clinic(CASES).html


def test_a_terminal_shows_the_first_symptom():
    text = clinic(CASES).text
    assert text.startswith("The clinic. the upside-down mask. The loss is 0.02")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([], "cases: expected 1 to 12, got 0"),
        (changed() * 13, "cases: expected 1 to 12, got 13"),
        (changed(cure=None), r"cases\[0\]: expected cure, guesses, healthy"),
        (changed(colour="x"), r"cases\[0\]: expected .* got colour, cure"),
        (changed(guesses=["A", "B"]), r"\['guesses'\]: expected 3 different"),
        (changed(guesses=["A", "B", "A"]), r"\['guesses'\]: expected 3 diff"),
        (changed(right=3), r"\['right'\]: expected 0, 1 or 2, got 3"),
        (changed(lines={"a": "b"}, matrix=[[1]]), "one picture at most"),
        (changed(lines={}), r"\['lines'\]: expected a text at least"),
        (changed(matrix=[[1] * 10]), r"\['matrix'\]: expected 9 rows and"),
        (changed(matrix=[[1, 2], [3]]), r"\['matrix'\]: .* of \[1, 2\]"),
        (changed(matrix=[]), r"\['matrix'\]: .* got 0 rows"),
        (changed(curves={"a": [1]}), r"\['curves'\]: .* got lengths \[1\]"),
        (changed(curves={}), r"\['curves'\]: .* got lengths \[\]"),
        (changed(curves={"a": [1, 2], "b": [1, 2, 3]}), r"lengths \[2, 3\]"),
        (changed(curves={k: [1, 2] for k in "abc"}), r"lengths \[2, 2, 2\]"),
    ],
)
def test_a_case_that_does_not_fit_is_refused_with_its_place(cases, message):
    with pytest.raises(ValueError, match=message):
        clinic(cases)


@pytest.mark.bad_input
def test_a_number_where_a_text_belongs_is_refused():
    with pytest.raises(TypeError, match=r"\['sick'\]: expected a text, got a"):
        clinic(changed(sick=0.73))


def opened(reader, case=0, **options):
    """The figure, with a case chosen."""
    page = reader(html_of("clinic"), **options)
    computed(page)
    page.locator(".cases input").nth(case).check()
    return page


def guesses(page):
    return page.locator("section:visible .guesses input")


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_all_cases_stand_there_and_unfold(reader, width):
    page = reader(html_of("clinic"), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    assert page.locator("section:visible").count() == len(CASES)
    text = page.locator("figure").inner_text()
    for case in CASES:
        assert case["name"] in text
        assert case["test"] not in text
    for summary in page.locator("summary").all():
        summary.click()
    text = page.locator("figure").inner_text()
    assert all(case["test"] in text for case in CASES)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_case_shows_what_python_says_of_it(reader, case):
    page = opened(reader, case)
    told = CASES[case]
    assert computed(page).case == case
    assert page.locator("section:visible").count() == 1
    section = page.locator("section:visible")
    assert section.locator(".title").inner_text() == (
        f"Patient {case}: {told['name']}"
    )
    labels = section.locator(".guesses label").all_inner_texts()
    assert labels == told["guesses"]
    assert not section.locator(".answer").is_visible()


def test_the_test_runs_only_after_a_guess(reader):
    page = opened(reader)
    run = page.locator("section:visible button")
    assert run.get_attribute("aria-disabled") == "true"
    run.press("Enter")
    assert computed(page).asked == 0
    guesses(page).nth(0).check()
    assert run.get_attribute("aria-disabled") == "false"
    run.press("Enter")
    assert computed(page).asked == 1


@pytest.mark.parametrize("guess", range(3))
def test_a_guess_is_answered_and_the_numbers_are_shown(reader, guess):
    page, told = opened(reader), CASES[0]
    guesses(page).nth(guess).check()
    page.get_by_role("button", name="Run the test").press("Enter")
    right = told["guesses"][told["right"]]
    expected = (
        f"Right: {right}"
        if guess == told["right"]
        else f"You said: {told['guesses'][guess]} It is: {right}"
    )
    now = computed(page)
    assert (now.asked, now.says) == (guess + 1, expected)
    section = page.locator("section:visible")
    assert section.locator(".verdict").inner_text() == expected
    assert section.locator(".verdict").get_attribute("aria-live") == "polite"
    assert section.locator(".answer").is_visible()
    assert section.locator(".sick dd").inner_text() == f"✕ {told['sick']}"
    assert section.locator(".healthy dd").inner_text() == f"✓ {told['healthy']}"
    marks = section.locator(".guesses label").evaluate_all(
        "all => all.map(e => getComputedStyle(e, '::after').content)"
    )
    for i, mark in enumerate(marks):
        right = i == told["right"]
        sign = '"✓"' if right else '"✕"' if i == guess else "none"
        assert mark == sign


def test_another_guess_hides_the_answer_again(reader):
    page = opened(reader)
    guesses(page).nth(0).check()
    page.get_by_role("button", name="Run the test").press("Enter")
    guesses(page).nth(2).check()
    assert computed(page).asked == 0
    section = page.locator("section:visible")
    assert not section.locator(".answer").is_visible()
    assert section.locator(".verdict").inner_text() == ""
    assert section.locator("label.right, label.wrong").count() == 0


def test_a_case_is_found_as_it_was_left(reader):
    page = opened(reader)
    guesses(page).nth(1).check()
    page.get_by_role("button", name="Run the test").press("Enter")
    page.locator(".cases input").nth(2).check()
    assert computed(page).asked == 0
    page.locator(".cases input").nth(0).check()
    now = computed(page)
    assert now.asked == 2


def test_arrow_keys_go_through_the_cases_and_the_guesses(reader):
    page = reader(html_of("clinic"))
    enter(page)
    for key, case in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1)):
        press(page, key)
        assert computed(page).case == case
    press(page, "Tab", " ")
    assert guesses(page).nth(0).is_checked()
    press(page, "ArrowDown")
    assert guesses(page).nth(1).is_checked()
    press(page, "Tab", "Enter")
    assert computed(page).says == "You said: B. It is: A."


def test_the_chosen_case_and_the_focus_can_be_seen(reader):
    page = reader(html_of("clinic"))
    enter(page)
    press(page, "ArrowRight")
    looks = page.locator(".cases label").evaluate_all(
        "all => all.map(e => [getComputedStyle(e).backgroundColor,"
        " getComputedStyle(e).outlineStyle])"
    )
    assert len({look[0] for look in looks}) == 2
    assert [look[1] for look in looks] == ["none", "solid", "none", "none"]


def test_a_number_has_its_case_as_a_name(reader):
    page = opened(reader)
    for number, case in enumerate(CASES):
        name = f"{number} {case['name']}"
        assert page.get_by_role("radio", name=name, exact=True).count() == 1
