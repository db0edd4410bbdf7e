"""What `make lint` finds of the numbers of a chapter's prose, and what not."""

import json

import lint_numbers
import pytest
from lint_numbers import ROOT, Tracer

pytestmark = pytest.mark.once


def markdown(source):
    return {"cell_type": "markdown", "id": "prose", "source": source}


def code(source, printed=""):
    output = {"output_type": "stream", "text": printed}
    return {
        "cell_type": "code",
        "id": "code",
        "source": source,
        "outputs": [output],
    }


def kinds(*cells, listed=()):
    found = Tracer({"03_x.ipynb": list(cells)}, dict.fromkeys(listed, "why"))
    return dict(found.found.kinds)


@pytest.mark.parametrize(
    ("said", "source", "printed"),
    [
        ("It is 0.83.", "x", "loss 0.8312"),
        ("It is 83 %.", "x", "share 0.8312"),
        ("It is 83 %.", "x", "share 83%"),
        ("It is 0.83.", "assert round(x, 2) == 0.83", ""),
        ("It is 0.83.", "assert 0.82 < x < 0.84", ""),
        ("After 20,000 steps.", "f(steps=20_000)", ""),
        ("At a rate of 0.003.", "f(rate=3e-3)", ""),
        ("It has 65,536 rows.", "f(2**16)", ""),
        ("It has $65{,}536$ rows.", "f(2**16)", ""),
        ("It is 1.2 million.", "x", "1,203,456"),
        ("It is 1.20 × 10⁶.", "x", "1203456"),
        ("It is $10^{-4}$ wide.", "f(1e-4)", ""),
        ("It is $f = 0.5^{1/100} = 0.993$.", "f(0.5 ** (1 / 100), 0.9931)", ""),
        ("It is at most 1/3.", "assert x <= 1 / 3", ""),
        ("Three of them, 7 each.", "x", "7"),
        ("The vector (2, 0, 1, 1).", "x = [2.0, 0, 1, 1]", ""),
        ("It is 4 × 3 large.", "x", "scores, 4 × 3: 0.1"),
        ("They are 2, 4, 8 and 16.", "for d in (2, 4, 8, 16): f(d)", ""),
        ("The vector (−0.75, -0.25).", "x = [-0.75, -0.25]", ""),
        ("So 2·3 + 1·4 = 10.", "x", ""),
        ("So (−0.75)·(−2) + (−0.5)·3 = 0.", "x", ""),
        ("At width $d_k = 512$.", "d_k = 512", ""),
        ("| a | b |\n|-|-|\n| x | 3 |\n| y | 5 |", "assert f() == [3, 5]", ""),
    ],
)
def test_a_number_is_traced_that_a_cell_has(said, source, printed):
    found = kinds(markdown(said), code(source, printed))
    assert found.keys() == {"traced"}


@pytest.mark.parametrize(
    ("said", "source", "printed"),
    [
        ("It is 0.84.", "x", "loss 0.8312"),
        ("It is 0.83.", "x", "loss 0.8"),
        ("It is 83 %.", "x", "share 0.8412"),
        ("It is 0.83.", "assert 0.5 < x < 0.9", ""),
        ("It is 0.83.", "'0.83'", ""),
        ("It is 0.83.", "figures.plot(fig, alt=f(0))", "Plot: 0.83"),
        ("It is 0.83.", "figures.source(f)", "0.83"),
        ("It is 0.83.", "with figures.style():\n    f(0.83)", ""),
        ("After 20,000 steps.", "f(steps=2_000)", ""),
        ("It is 1.2 million.", "x", "1,253,456"),
        ("Three of them, 7 each.", "x", "6.8"),
        ("The vector (2, 0, 1, 1).", "x = [2.0, 1, 0, 1]", ""),
        ("The vector (0, 1).", "x", "1 0"),
        ("The vector (−0.75, -0.25).", "x = [-0.25, -0.75]", ""),
        ("So 2·3 + 1·4 = 11.", "x", "11"),
        ("So (−0.75)·(−2) + (−0.5)·3 = 1.", "x", ""),
        ("| a | b |\n|-|-|\n| x | 3 |\n| y | 5 |", "x", "7 9"),
        ("A layer of 12 heads.", "GPT12 = f12(x_12)", "GPT-12"),
    ],
)
def test_a_number_is_untraced_that_no_cell_has(said, source, printed):
    assert "untraced" in kinds(markdown(said), code(source, printed))


@pytest.mark.parametrize(
    "said",
    [
        "Three of five.",
        "# 03 · Attention",
        "### 2. Write it (easy, 15 minutes)",
        "Chapters 05 and 06 say so.",
        "GPT-2 in float16 on a `uint8`, see [it](labs/03_x.ipynb#part-44).",
        "It was found in 2017.",
        "<details><summary>Hint 2</summary>\n\nNo.\n\n</details>",
        "| | |\n|-|-|\n| 1 | a |\n| 2 | b |",
    ],
)
def test_what_is_no_number_is_none(said):
    assert kinds(markdown(said), code("x")) == {}


@pytest.mark.parametrize(
    "said", ["It sums to 1.", "Half is $n^2 / 2$.", "`-1`"]
)
def test_a_constant_says_too_little_to_be_looked_for(said):
    assert kinds(markdown(said), code("x")).keys() == {"constant"}


@pytest.mark.parametrize("name", ["caption", "alt"])
def test_what_a_figure_says_is_read(name):
    plot = code(f'figures.plot(fig, {name}="It "\n"takes 50, not 60.")')
    assert kinds(plot, code("f(50)")) == {"traced": 1, "untraced": 1}


def test_the_sentence_with_the_work_is_cited_and_no_other():
    said = "They use 4096 {cite}`vaswani2017`. We use 8192."
    assert kinds(markdown(said), code("x")) == {"cited": 1, "untraced": 1}


def test_listed_words_cover_their_numbers_and_go_stale():
    said = "Real ones have 4096. We have 8192."
    cells = [markdown(said), code("x")]
    listed = {"ones have 4096": "common", "have 7": "gone"}
    found = Tracer({"03_x.ipynb": cells}, listed).found
    assert found.kinds == {"listed": 1, "untraced": 1}
    assert found.unused == ["have 7"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("0.83", "untraced"),
        ("0.831", "traced"),
        ("7", "untraced"),
        ("(2, 5)", "untraced"),
        ("(2, 5, 3)", "traced"),
    ],
)
def test_far_away_only_what_is_rare_counts(said, kind):
    near = [markdown(f"## A\n\nIt is {said}."), code("x")]
    far = [markdown("## B"), code("x"), markdown("## C")]
    cells = [*near, *far, code("f(0.83, 0.831, 7, (2, 5), (2, 5, 3))")]
    assert kinds(*cells).keys() == {kind}


def test_what_is_traced_may_be_said_again_unless_it_is_one_digit():
    first = [markdown("## A\n\n0.83 of 7."), code("f(0.83, 0.84, 7)")]
    again = [markdown("## B\n\n0.83 of 7."), code("x")]
    assert kinds(*first, *again) == {"traced": 3, "untraced": 1}


def test_a_lesson_and_its_lab_count_for_each_other():
    lesson = [markdown("It is 0.831."), code("x")]
    lab = [markdown("## B"), code("x", "0.8312")]
    pages = {"03_x.ipynb": lesson, "labs/03_x.ipynb": lab}
    assert Tracer(pages, {}).found.kinds == {"traced": 1}


def test_noticed_is_the_share_of_wrong_last_digits_that_come_out():
    tracer = Tracer({"x": [markdown("It is 0.83."), code("f(0.83, 0.84)")]}, {})
    assert len(tracer.found.wrong) == 9  # Each digit in place of the 3.
    assert tracer.found.noticed == 8 / 9


@pytest.mark.parametrize("wrong", ["0.65", "0.70", "0.46"])
def test_an_invented_number_in_a_chapter_comes_out(wrong):
    folder = ROOT / "book"
    pages = {
        name: json.loads((folder / name).read_text("utf-8"))["cells"]
        for name in ("03_attention.ipynb", "labs/03_attention.ipynb")
    }
    assert Tracer(pages, {}).found.untraced == []
    (cell,) = (
        cell
        for cell in pages["03_attention.ipynb"]
        if cell["id"] == "attention-idea"
    )
    text = "".join(cell["source"])
    assert "** 0.64 · (0, 4)" in text
    cell["source"] = text.replace("** 0.64 ·", f"** {wrong} ·")
    (untraced,) = Tracer(pages, {}).found.untraced
    assert untraced.startswith(
        f"03_attention.ipynb: attention-idea: {wrong} in"
    )


@pytest.mark.parametrize(
    ("lab", "listed", "status"),
    [
        (False, "", 0),
        (True, "", 1),
        (True, "'has 4096' = 'a usual width'", 0),
        (True, "'has 4096' = 'a usual width'\n'gone' = ''", 1),
    ],
)
def test_only_a_chapter_with_a_lab_has_to_trace_all(
    tmp_path, monkeypatch, capsys, lab, listed, status
):
    (tmp_path / "book" / "labs").mkdir(parents=True)
    for name in ("book/03_x.ipynb", "book/labs/03_x.ipynb")[: 1 + lab]:
        cells = [] if "labs" in name else [markdown("It has 4096."), code("x")]
        text = json.dumps({"cells": cells})
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "numbers.toml").write_text(f"[03_x]\n{listed}", "utf-8")
    monkeypatch.setattr(lint_numbers, "ROOT", tmp_path)
    monkeypatch.setattr(lint_numbers, "LISTED", tmp_path / "numbers.toml")
    assert lint_numbers.main([]) == status
    assert ("03_x.ipynb: prose: 4096" in capsys.readouterr().out) == (
        lab and not listed
    )
