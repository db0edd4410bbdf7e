"""The figure of chapter 12 as a reader has it, in Chromium."""

from functools import cache

import pytest
import test_figures_browser
from test_figures_browser import (
    LAPTOP,
    LOOKS,
    PHONE,
    computed,
    enter,
    focused,
    press,
)
from test_figures_clinic import CASES

from companion.figures import clinic, mask_builder

pytestmark = pytest.mark.browser
reader = test_figures_browser.reader


@cache
def html():
    return clinic(CASES).html


def opened(reader, case=0, **options):
    """The figure, with a case chosen."""
    page = reader(html(), **options)
    computed(page)
    page.locator(".cases input").nth(case).check()
    return page


def guesses(page):
    return page.locator("section:visible .guesses input")


@pytest.mark.parametrize(
    ("theme", "width"), [("light", 320), ("dark", PHONE), ("light", LAPTOP)]
)
def test_a_page_never_scrolls_sideways(reader, theme, width):
    page = opened(reader, theme=theme, width=width)
    for case in range(len(CASES)):
        page.locator(".cases input").nth(case).check()
        guesses(page).first.check()
        page.get_by_role("button", name="Run the test").press("Enter")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_figure_looks_the_same_with_another_one_below_it(reader):
    looks = []
    for page in (reader(html()), reader(html() + mask_builder().html)):
        computed(page)
        looks.append(
            page.locator("figure").first.locator("*").evaluate_all(LOOKS)
        )
    assert looks[0] == looks[1]


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_all_cases_stand_there_and_unfold(reader, width):
    page = reader(html(), width=width, java_script_enabled=False)
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
    assert computed(page).case == told["name"]
    assert page.locator("section:visible").count() == 1
    section = page.locator("section:visible")
    assert section.locator(".title").inner_text() == (
        f"Case {case}: {told['name']}"
    )
    labels = section.locator(".guesses label").all_inner_texts()
    assert labels == told["guesses"]
    assert not section.locator(".answer").is_visible()


def test_the_test_runs_only_after_a_guess(reader):
    page = opened(reader)
    run = page.locator("section:visible button")
    assert run.get_attribute("aria-disabled") == "true"
    run.press("Enter")
    assert computed(page).asked is False
    guesses(page).nth(0).check()
    assert run.get_attribute("aria-disabled") == "false"
    run.press("Enter")
    assert computed(page).asked is True


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
    assert (now.guess, now.says) == (told["guesses"][guess], expected)
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
    assert computed(page).asked is False
    section = page.locator("section:visible")
    assert not section.locator(".answer").is_visible()
    assert section.locator(".verdict").inner_text() == ""
    assert section.locator("label.right, label.wrong").count() == 0


def test_a_case_is_found_as_it_was_left(reader):
    page = opened(reader)
    guesses(page).nth(1).check()
    page.get_by_role("button", name="Run the test").press("Enter")
    page.locator(".cases input").nth(2).check()
    assert computed(page).guess is None
    page.locator(".cases input").nth(0).check()
    now = computed(page)
    assert (now.guess, now.asked) == (CASES[0]["guesses"][1], True)


def test_arrow_keys_go_through_the_cases_and_the_guesses(reader):
    page = reader(html())
    enter(page)
    for key, case in (("ArrowRight", 1), ("ArrowDown", 2), ("ArrowLeft", 1)):
        press(page, key)
        assert computed(page).case == CASES[case]["name"]
    press(page, "Tab", " ")
    assert computed(page).guess == "A."
    press(page, "ArrowDown")
    assert computed(page).guess == "B."
    press(page, "Tab", "Enter")
    assert computed(page).says == "You said: B. It is: A."


def test_the_keyboard_reaches_all_and_leaves_again(reader):
    page = reader(html())
    enter(page)
    reached = [focused(page, "type")]
    for _ in range(2):
        press(page, "Tab")
        reached.append(focused(page, "type"))
    press(page, "Tab")
    assert reached == ["radio", "radio", "button"]
    assert focused(page, "id") == "after"


def test_the_chosen_case_and_the_focus_can_be_seen(reader):
    page = reader(html())
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


def test_the_keys_are_not_handed_to_jupyter(reader):
    page = opened(reader)
    stops = page.locator("figure input")
    assert stops.count() == 4 * len(CASES)
    assert set(
        stops.evaluate_all(
            "all => all.map(e => e.getAttribute('data-lm-suppress-shortcuts'))"
        )
    ) == {"true"}


def test_the_same_figure_twice_on_a_page_works_twice(reader):
    page = reader(html() * 2)
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )
    first, second = page.locator("figure").all()
    first.locator(".cases input").nth(2).check()
    assert first.locator("section:visible .title").inner_text().startswith(
        "Case 2"
    )  # fmt: skip
    assert second.locator("section:visible .title").inner_text().startswith(
        "Case 0"
    )  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_figure_follows_the_theme(reader, theme):
    page = opened(reader, theme=theme)
    ink = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    symptom = page.locator("section:visible .symptom")
    assert symptom.evaluate("e => getComputedStyle(e).color") == ink


def test_fingers_find_room(reader):
    page = opened(reader, width=PHONE, has_touch=True, is_mobile=True)
    boxes = page.locator(
        ".cases label, section:visible :is(.guesses label, button)"
    )
    for box in boxes.evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.width, r.height])"
    ):
        assert min(box) >= 44
