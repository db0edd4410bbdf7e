"""The figure of chapter 12, as Python makes it."""

import json
import re

import pytest
import torch
from test_figures import Tags

from companion.figures import clinic
from companion.masks import causal_mask

CASES = (
    {
        "name": "the upside-down mask",
        "symptom": "The loss is 0.02 & it writes `nonsense` <here>.",
        "guesses": ["It overfits.", "It sees its future.", "It is too small."],
        "right": 1,
        "test": "Change token 3: which rows move?",
        "sick": "rows 0–2",
        "healthy": "none",
        "cure": "Turn it round: `~mask`.",
        "curves": {
            "training": [3.0 / (1 + step) for step in range(37)],
            "validation": [3.0 / (1 + step) + 0.5 for step in range(37)],
        },
    },
    {
        "name": "one sentence for all",
        "symptom": "It says the same thing again and again.",
        "guesses": ["A.", "B.", "C."],
        "right": 0,
        "test": "Alone, and in company.",
        "sick": "0.73",
        "healthy": "0.00",
        "cure": "Index by place.",
        "lines": {"it should say": "我 爱 猫", "it says": "the the the"},
    },
    {
        "name": "short rows",
        "symptom": "Rows do not sum to 1.",
        "guesses": ["D.", "E.", "F."],
        "right": 2,
        "test": "Sum the rows.",
        "sick": "0.33",
        "healthy": "1.00",
        "cure": "Mask first.",
        "matrix": torch.softmax(torch.arange(20.0).view(4, 5), -1),
    },
    {
        "name": "no picture",
        "symptom": "Nothing to see.",
        "guesses": ["G.", "H.", "I."],
        "right": 1,
        "test": "Twice.",
        "sick": "1",
        "healthy": "0",
        "cure": "Call `model.eval()`.",
    },
)


def shown(figure):
    """The page without its style and its script."""
    return figure.html.split("</style>")[1].split("<script")[0]


def changed(**new):
    """One case, and what is different about it; None leaves it out."""
    case = CASES[3] | new
    return [{key: value for key, value in case.items() if value is not None}]


def test_the_figure_is_whole_and_asks_nothing_of_another_place():
    html = clinic(CASES).html
    assert Tags(html).open == []
    assert not re.search(r"https?://|@import|//cdn|\bsrc=|\bfetch\(", html)
    assert len(html) < 60_000


def test_the_same_input_gives_the_same_bytes():
    assert clinic(CASES).html == clinic(CASES).html


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


def test_the_script_gets_the_right_answers_and_nothing_else():
    found = re.search(r"const data = (.*);\n", clinic(CASES).html)
    assert json.loads(found[1]) == {"right": [1, 0, 2, 1]}


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
