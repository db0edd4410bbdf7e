"""What `make lint` measures of a lesson, on a page whose sizes are known."""

import lint_lessons
import pytest
from lint_lessons import TARGETS, beyond, measure, report

GOOD = {
    "screens": 14,
    "code": 0.4,
    "drawings": 0.25,
    "first": 0.9,
    "asserts": 0,
    "short": 0.15,
}
CELL = (
    '<div class="cell">{opened}<div class="cell_input"><div class="highlight"'
    ' style="height: {height}px"><pre>{code}</pre></div></div>{closed}{output}'
    "</div>"
)
FOLD = {"opened": "<details><summary>✓</summary>", "closed": "</details>"}
PAGE = """<!DOCTYPE html><html><style>* {{ margin: 0; padding: 0;
overflow: hidden }} p, summary, li, h2 {{ height: 20px }}</style><article>
<p class="reading-time">Two minutes. Or three.</p>{}<h2>Exercises</h2>
<p>One. Two. Three.</p><figure style="height: 5000px"></figure></article>"""


def cell(height, code, output="", **fold):
    closed = {"opened": "", "closed": ""}
    return CELL.format(
        height=height, code=code, output=output, **(closed | fold)
    )


def figure(height, classes=""):
    return f'<figure class="{classes}" style="height: {height}px"></figure>'


@pytest.fixture
def measured(chromium, tmp_path):
    def measured(*parts):
        path = tmp_path / "page.html"
        path.write_text(PAGE.format("".join(parts)), encoding="utf-8")
        return measure(chromium, path.as_uri())

    return measured


@pytest.mark.browser
def test_the_height_is_shared_out_up_to_the_exercises(measured):
    found = measured(
        cell(880, "x = 2"), figure(450), '<p style="height:450px">'
    )
    assert found["screens"] == 2
    assert found["code"] == pytest.approx(880 / 1800)
    assert found["drawings"] == 0.25
    assert found["first"] == 1


@pytest.mark.browser
def test_what_is_folded_is_not_seen(measured):
    found = measured(
        cell(900, "assert x", **FOLD),
        "<details><summary>More</summary>",
        figure(900),
        "<p>It is short.</p></details>",
        '<p style="height: 840px">It takes seven words or more, here.</p>',
    )
    assert found["screens"] == 1
    assert found["code"] == found["drawings"] == found["asserts"] == 0
    assert found["first"] == float("inf")
    assert found["short"] == 0


@pytest.mark.browser
def test_what_an_open_fold_shows_is_seen(measured):
    fold = FOLD | {"opened": "<details open><summary>✓</summary>"}
    found = measured(cell(860, "assert x", **fold))
    assert found["code"] == pytest.approx(860 / 900)
    assert found["asserts"] == 1


@pytest.mark.browser
def test_output_counts_as_code_and_shows_something(measured):
    printed = '<div class="cell_output"><div class="highlight" style="height: '
    found = measured(cell(440, "assert x", f'{printed}440px"></div></div>'))
    assert found["code"] == pytest.approx(880 / 900)
    assert found["asserts"] == 0


@pytest.mark.browser
@pytest.mark.parametrize(
    "no_drawing",
    [
        figure(440, "companion-source"),
        f'<div class="companion companion-quiz">{figure(440)}</div>',
        f'<div class="companion companion-live">{figure(440)}</div>',
        f'<span class="math">{figure(440)}</span>',
        figure(60) * 7 + '<p style="height:20px">',
    ],
)
def test_a_listing_or_a_formula_is_no_drawing(measured, no_drawing):
    found = measured(no_drawing, figure(440))
    assert found["drawings"] == pytest.approx(440 / 900)
    assert found["first"] == pytest.approx(460 / 900)


@pytest.mark.browser
def test_sentences_are_counted_once_and_titles_are_none(measured):
    found = measured(
        '<p class="admonition-title">Three things</p>',
        "<ul><li><p>It has six words, no more.</p></li></ul>",
        "<p>It has seven words, and no fewer.</p>",
    )
    assert found["short"] == 0.5


@pytest.mark.once
def test_a_lesson_on_its_targets_meets_them():
    assert beyond(GOOD) == []


@pytest.mark.once
@pytest.mark.parametrize("name", TARGETS)
def test_a_lesson_beyond_a_target_misses_that_one(name):
    sense, target, _ = TARGETS[name]
    assert beyond(GOOD | {name: target + 0.01 * sense}) == [name]


@pytest.mark.once
@pytest.mark.parametrize(
    ("lab", "drawings", "status"), [(0, 0.2, 0), (1, 0.2, 1), (1, 0.3, 0)]
)
def test_only_a_lesson_with_a_lab_must_meet_the_targets(
    tmp_path, capsys, lab, drawings, status
):
    (tmp_path / "labs").mkdir()
    for folder in (tmp_path, tmp_path / "labs")[: 1 + lab]:
        (folder / "03_x.html").touch()
    found = GOOD | {"drawings": drawings}
    assert report([(tmp_path / "03_x.html", found)]) == status
    assert ("!20%" in capsys.readouterr().out) == status


@pytest.mark.once
@pytest.mark.parametrize(("required", "status"), [("", 0), ("1", 1)])
def test_without_chromium_it_says_so(monkeypatch, capsys, required, status):
    monkeypatch.setattr(lint_lessons, "CHROMIUM", "/nowhere/chromium")
    monkeypatch.setenv("REQUIRE_CHROMIUM", required)
    assert lint_lessons.main([]) == status
    assert "No Chromium at /nowhere/chromium" in capsys.readouterr().out


@pytest.mark.once
def test_without_a_book_it_says_what_to_run(
    chromium, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(lint_lessons, "BUILT", tmp_path)
    assert lint_lessons.main([]) == 1
    assert "make book" in capsys.readouterr().out
