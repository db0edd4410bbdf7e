"""The bank page and the mock interview in a browser, opened from disk."""

import json
import random
import re

import pytest
from interview.browser import (
    FOCUSED,
    WHOLE,
    answer,
    begin,
    contrast,
    go_to,
    of,
)

from companion import CHAPTERS
from companion.interview.model import bank, notes
from companion.interview.model.markup import to_plain
from companion.interview.model.mock import pick, report
from companion.interview.model.question import LEVELS
from companion.interview.web import overview
from companion.interview.web.page import script

pytestmark = pytest.mark.browser

EVERY = bank.course()


def shown(page):
    """The ids of the questions that are listed."""
    return page.eval_on_selector_all(
        ".bank .question:not([hidden])", "all => all.map((each) => each.id)"
    )


def select(page, name, value):
    page.locator(".settings label", has_text=name).last.locator(
        "select"
    ).select_option(value)


# The list


def test_the_filters_leave_what_python_would_leave(visit):
    page = visit()
    assert shown(page) == [q.id for q in EVERY]
    select(page, "Chapter", "masks")
    assert shown(page) == [q.id for q in WHOLE["masks"]]
    assert page.locator(".bank section:visible").count() == 1
    select(page, "Level", "senior")
    seniors = [q.id for q in WHOLE["masks"] if q.level == "senior"]
    assert shown(page) == seniors
    told = page.locator(".settings output").inner_text()
    assert told.startswith(f"{len(seniors)} of {len(EVERY)} questions")
    select(page, "Chapter", "all")
    select(page, "Level", "all")
    select(page, "Kind", "debug")
    assert shown(page) == [q.id for q in EVERY if q.asks == "debug"]


def test_the_search_reads_prompts_topics_and_answers(visit):
    page = visit()
    question = WHOLE["rnn"][0]
    (word,) = re.findall(r"\w+$", to_plain(question.answer.zh).rstrip("。"))
    prompts = [to_plain(q.prompt.zh) for q in EVERY]
    assert not any(word in prompt for prompt in prompts)
    field = page.get_by_role("searchbox")
    field.fill(word)
    page.wait_for_function(
        "name => !document.getElementById(name).hidden", arg=question.id
    )
    assert question.id in shown(page)
    assert len(shown(page)) < 20
    field.fill("RoPE  ｆａｃｔｏｒ")
    for name in shown(page):
        card = page.locator(f"#{name}")
        assert card.is_visible()
    field.fill("mask zzxxyy")
    assert shown(page) == []
    assert page.locator(".settings output").inner_text().startswith("0 of ")


def test_a_card_is_made_to_answer_when_it_is_opened(visit):
    page = visit()
    question = next(q for q in WHOLE["masks"] if q.kind == "choice")
    item = page.locator(f"#{question.id}")
    assert item.get_by_role("radio").count() == 0
    select(page, "Chapter", "masks")
    page.get_by_role("searchbox").focus()
    go_to(page, item.locator("summary").first)
    page.keyboard.press("Enter")
    item.get_by_role("radio").first.check()
    item.get_by_role("button").click()
    told = item.locator(".verdict").inner_text()
    assert told.startswith(("Right.", "Not that one."))
    taking = item.locator("summary, input, button")
    kept = item.locator('[data-lm-suppress-shortcuts="true"]')
    assert kept.count() == taking.count()
    item.locator("details.short > summary").click()
    item.locator("details.answer > summary").click()
    item.locator("details.follow > summary").click()
    assert item.locator(".section a").get_attribute("href").startswith("masks")


def test_an_address_opens_its_question_whatever_is_filtered(visit):
    name = WHOLE["blocks"][2].id
    page = visit(hash=f"#{name}")
    item = page.locator(f"#{name}")
    item.locator(".work details").first.wait_for()
    select(page, "Chapter", "rnn")
    assert not item.is_visible()
    page.evaluate("location.hash = ''")
    page.evaluate(f"location.hash = '{name}'")
    item.locator(".work").wait_for()
    assert len(shown(page)) == len(EVERY)


def test_a_row_of_the_notes_table_opens_its_question(visit):
    page = visit()
    note = notes.read()[0]
    page.locator(f".noted a[href='#{note.master}']").first.click()
    told = page.locator(f"#{note.master} details.notes > div")
    told.wait_for()
    assert note.where.en in told.inner_text()
    assert not page.locator(f"#{note.master} details.short").is_visible()


def bare(text):
    """Letters and digits alone, for blanks and signs are set otherwise."""
    return re.sub(r"\W|_", "", text)


def test_without_scripts_every_answer_is_on_the_page(visit):
    page = visit(script=False)
    assert page.locator(".bank .question").count() == len(EVERY)
    for chapter in ("rnn", "clinic"):
        for kind in ("open", "choice", "numeric", "code"):
            question = of(chapter, kind)[0]
            item = page.locator(f"#{question.id}")
            item.locator("summary").first.click()
            steps = item.locator(".work > details")
            for step in steps.all():
                step.locator("> summary").click()
            told = bare(item.inner_text())
            for text in (question.short, question.answer):
                for each in (text.en, text.zh):
                    assert bare(to_plain(each)) in told
            assert item.locator(".section a").is_visible()
    assert "needs scripts" in page.locator(".mock-place").inner_text()


def test_an_address_with_an_old_id_opens_the_question_in_its_place(visit):
    old, new = next(iter(bank.retired().items()))
    page = visit(hash=f"#{old}")
    page.locator(f"#{new} .work details").first.wait_for()
    assert page.evaluate("location.hash") == f"#{new}"


def test_what_was_answered_under_an_old_id_counts_for_the_new_one(visit):
    old, new = next(iter(bank.retired().items()))
    entry = {"seen": 1, "right": 1, "got": 1, "of": 1}
    entry["when"] = "2026-01-02T03:04:05.000Z"
    kept = {"companion": "progress", "version": 1, "questions": {old: entry}}
    page = visit(kept=json.dumps(kept))
    assert page.locator(f"#{new} .seal").inner_text() == "✓"
    told = page.evaluate("localStorage.getItem('companion-progress')")
    assert json.loads(told)["questions"] == {old: entry, new: entry}


def test_the_language_is_one_for_the_whole_page(visit):
    page = visit()
    page.get_by_role("radio", name="中文", exact=True).first.check()
    for box in page.get_by_role("radio", name="中文", exact=True).all():
        assert box.is_checked()
    english = page.locator("body [lang=en]").and_(page.locator(":visible"))
    assert english.count() == 0


def test_the_bank_page_fits_a_phone_and_can_be_read(visit):
    page = visit(width=390)

    def fits():
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for theme in ("light", "dark"):
            assert contrast(page, theme) >= 4.5, theme

    page.locator(".bank summary").first.click()
    page.locator(".work details").first.wait_for()
    fits()
    begin(page, seed=7)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="End").click()
    fits()


# The mock interview


def test_the_page_picks_and_reports_as_python_does(chromium):
    draw = random.Random(5)
    asked, expected = [], []
    for _ in range(40):
        wanted = {
            "level": draw.choice(LEVELS),
            "minutes": draw.choice([12, 30, 45, 60, 300]),
            "chapters": draw.sample(CHAPTERS, draw.randrange(4)),
            "seed": draw.choice([0, 1, 2**32 - 1, draw.randrange(2**32)]),
        }
        picked = pick(EVERY, **wanted)
        marks = {
            question.id: draw.choice([0, 0.25, 0.5, 1])
            for question in picked
            if draw.random() < 0.8
        }
        said = report(picked, marks)
        asked.append([wanted, marks])
        expected.append(
            {
                "picked": [question.id for question in picked],
                "mark": said.mark and round(said.mark, 9),
                "strengths": list(said.strengths),
                "gaps": list(said.gaps),
                "reread": [[word, list(names)] for word, names in said.reread],
            }
        )
    page = chromium.new_page()
    page.set_content(f"<script>{script('session')}</script>")
    facts = [overview.facts(question) for question in EVERY]
    told = page.evaluate(
        """([facts, asked]) => asked.map(([wanted, marks]) => {
          const picked = pick(facts, wanted), said = report(picked, marks);
          return { picked: picked.map(({ id }) => id), ...said,
            mark: said.mark && Number(said.mark.toFixed(9)) }; })""",
        [facts, asked],
    )
    page.close()
    assert told == expected


def test_a_mock_interview_climbs_and_ends_with_a_report(visit):
    page = visit()
    page.get_by_role("checkbox", name="masks").check()
    begin(page, seed=7)
    picked = pick(EVERY, minutes=10, chapters=["masks"], seed=7)
    cards = page.locator(".session .question")
    assert cards.count() == len(picked)
    for number, question in enumerate(picked[:3]):
        item = page.locator(".session .question:visible")
        assert item.get_attribute("data-level") == question.level
        where = page.locator(".session .where").inner_text()
        assert where.startswith(f"Question {number + 1} of {len(picked)}")
        assert item.locator("summary").first.evaluate(FOCUSED)
        answer(item, right=False)
        page.locator(".session .buttons button").click()
    if page.locator(".session").count():
        page.get_by_role("button", name="End").click()
    told = page.locator(".report")
    assert "Seed 7." in told.inner_text()
    assert told.locator("h3").evaluate(FOCUSED)
    assert told.locator(".asked li").count() == len(picked)
    assert told.locator("a[href='masks.html']").count() >= 1
    first = told.locator(".asked a").first
    assert first.get_attribute("href") == f"#{picked[0].id}"
    page.get_by_role("button", name="Another one").click()
    assert page.get_by_role("button", name="Begin").is_visible()


def test_the_clock_can_be_stopped(visit):
    page = visit()
    page.clock.install(time=0)
    # A slow machine's own seconds must not count.
    page.clock.pause_at(1000)
    begin(page, seed=1)
    timer = page.get_by_role("timer")
    page.clock.run_for(65_000)
    assert timer.inner_text() == "01:05"
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(600_000)
    assert timer.inner_text() == "01:05"
    page.get_by_role("button", name="Go on").click()
    page.clock.run_for(5_000)
    assert timer.inner_text() == "01:10"


def test_the_first_answer_counts_in_an_interview(visit):
    page = visit()
    seed = next(
        seed
        for seed in range(200)
        if pick(EVERY, chapters=["rnn"], minutes=240, seed=seed)[0]
        in of("rnn", "choice")
    )
    page.get_by_role("checkbox", name="01").check()
    begin(page, seed=seed, minutes=240)
    item = page.locator(".session .question:visible")
    question = pick(EVERY, chapters=["rnn"], minutes=240, seed=seed)[0]
    rights = [option.right for option in question.task.options]
    for wanted in (False, True):
        item.get_by_role("radio").nth(rights.index(wanted)).check()
        item.get_by_role("button").click()
    assert item.locator(".seal").inner_text() == "✓"
    page.get_by_role("button", name="End").click()
    assert page.locator(".share").first.inner_text() == "0 %"


def test_too_few_minutes_are_said_so(visit):
    page = visit()
    page.locator(".mock form").evaluate("form => { form.noValidate = true; }")
    for minutes in ("0", ""):
        page.get_by_label("Minutes").fill(minutes)
        page.get_by_role("button", name="Begin").click()
        said = page.locator(".mock .verdict").inner_text()
        assert "The shortest question here takes" in said
        page.get_by_label("Minutes").fill("30")


def test_only_the_report_is_printed(visit):
    page = visit()
    page.evaluate("window.print = () => { window.printed = true; }")
    begin(page, seed=2)
    page.get_by_role("button", name="End").click()
    page.get_by_role("button", name="Print").click()
    assert page.evaluate("window.printed")
    page.emulate_media(media="print")
    assert page.locator(".report").is_visible()
    for other in (".bank", "h1", ".noted"):
        assert not page.locator(other).is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".bank").is_visible()


def test_a_notebooks_mock_interview_needs_no_kernel(visit):
    page = visit("mock")
    picked = pick(EVERY, minutes=20, seed=3)
    assert page.locator("figure").get_attribute("data-language") == "zh"
    page.get_by_role("button", name="开始").click()
    item = page.locator(".session .question:visible")
    answer_zh = item.locator(".prompt span[lang=zh-CN]").inner_text()
    assert answer_zh
    page.get_by_role("button", name="结束").click()
    assert page.locator(".asked li").count() == len(picked)
    assert "种子 3" in page.locator(".report").inner_text()
