"""A chapter that has a lab: what its lesson has, and what it leaves out.

How long the lesson is and what fills its page, `make lessons` measures.
"""

import ast
import json
import re
import sys
from pathlib import Path

import pytest
from lint_numbers import texts
from support.contents import CHAPTERS, ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import lessons

pytestmark = pytest.mark.once

NAMES = [Path(page).name for page in CHAPTERS if "labs/" in page]
HAN = re.compile(r"[\u4e00-\u9fff]+")
FOLDED = {"hide-input", "hide-cell", "remove-cell"}
NO_DRAWING = re.compile("companion-(source|check|quiz|live)")
# 我爱小猫 (wǒ ài xiǎo māo: I, love, little, cat)
GLOSS_BEHIND = re.compile(r"\W{0,3}\(([^()]*[A-Za-z][^()]*)\)")
# attention (注意力), KV cache (KV 缓存)
GLOSS_BEFORE = re.compile(r"[A-Za-z]\W{0,3}\([^()a-z]*$")


@pytest.fixture(params=NAMES)
def chapter(request):
    return request.param


@pytest.fixture
def lesson(chapter):
    return cells(f"{chapter}.ipynb")


@pytest.fixture
def lab(chapter):
    return cells(f"labs/{chapter}.ipynb")


def cells(name):
    text = (ROOT / "book" / name).read_text(encoding="utf-8")
    found = json.loads(text)["cells"]
    return [c | {"source": "".join(c["source"])} for c in found]


def code(page):
    return [cell for cell in page if cell["cell_type"] == "code"]


def tags(cell):
    return {*cell["metadata"].get("tags", ())}


def prose(page):
    """The Markdown of a page, by the headings of its second level."""
    told = (c["source"] for c in page if c["cell_type"] == "markdown")
    parts = re.split(r"^## +(.+?) *$", "\n\n".join(told), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def shown(cell):
    """The HTML of what a cell put out."""
    data = (output.get("data", {}) for output in cell["outputs"])
    return "".join("".join(each.get("text/html", "")) for each in data)


def asked(page):
    """What each call of ``interview.show`` was given."""
    for cell in code(page):
        if "interview.show(" in cell["source"]:
            for node in ast.walk(ast.parse(cell["source"])):
                if isinstance(node, ast.Call) and "interview.show" in (
                    ast.unparse(node.func)
                ):
                    yield [ast.literal_eval(each) for each in node.args]


def test_there_are_three_things_to_remember(lesson):
    remember = prose(lesson)["What to remember"]
    (box,) = re.findall(r":::\{admonition\}.*?\n:::", remember, re.DOTALL)
    assert ":class: takeaway" in box
    assert len(re.findall(r"^- \*\*", box, re.MULTILINE)) == 3
    assert len(re.findall(r"^- ", box, re.MULTILINE)) == 3


def test_there_are_one_or_two_exercises_and_five_questions(chapter, lesson):
    assert sum("exercise" in tags(cell) for cell in lesson) in (1, 2)
    ((word, questions),) = asked(lesson)
    assert word == chapter[3:]
    assert len(set(questions)) == len(questions) == 5


def test_the_lab_has_all_questions(chapter, lab):
    assert list(asked(lab)) == [[chapter[3:]]]


def test_a_line_leads_to_the_lab_and_one_to_all_questions(chapter, lesson):
    told = prose(lesson)
    link = f"](labs/{chapter}.ipynb"
    assert link in told["Interview"]
    assert link in "".join(t for head, t in told.items() if head != "Interview")


def test_the_lab_leads_back(chapter, lab):
    assert f"](../{chapter}.ipynb" in prose(lab)[""]


def test_a_drawing_comes_before_any_code(lesson):
    for cell in code(lesson):
        html = shown(cell)
        if ("<figure" in html or "<svg" in html) and not NO_DRAWING.search(
            html
        ):
            break
        folded = lessons.checks(cell["source"]) and not cell["outputs"]
        assert folded or FOLDED & tags(cell), cell["source"]
    else:
        pytest.fail("nothing is drawn")
    assert FOLDED & tags(cell), "the drawing's own code stands above it"


def test_no_figure_of_a_lesson_needs_a_kernel(lesson):
    for cell in code(lesson):
        assert "companion-live" not in shown(cell)
        assert not re.search(r"\blive\b", cell["source"])


def test_neither_page_quarrels_with_notes_one_cannot_see(lesson, lab):
    for part in [*prose(lesson).values(), *prose(lab).values()]:
        assert not re.search(r"\b[Tt]he notes\b", part)


def unglossed(pages):
    """Chinese whose first occurrence does not say what it means.

    A gloss stands in brackets behind the Chinese, or the Chinese in brackets
    behind the English; in a heading or in a cell of a table both stand side by
    side, and a column of a table may gloss itself. With a gloss for each of its
    characters, as in 我爱 (wǒ ài: I, love), they are known by themselves, and
    with them all that is made of them.
    """
    known = set()
    for page in pages:
        for cell in page:
            if cell["cell_type"] != "markdown":
                continue
            for text in texts(cell["source"], cell["id"]):
                for found in HAN.finditer(text.text):
                    if made_of(known, found[0]):
                        continue
                    gloss = GLOSS_BEHIND.match(text.text, found.end())
                    if not gloss and not stands_beside(text, found.start()):
                        yield f"{cell['id']}: {found[0]}"
                    known.add(found[0])
                    each = gloss[1].partition(":")[2] if gloss else ""
                    if each and each.count(",") == len(found[0]) - 1:
                        known.update(found[0])


def made_of(known, run):
    return not run or any(
        made_of(known, run[len(word) :])
        for word in known
        if run.startswith(word)
    )


def stands_beside(text, at):
    if text.heading or text.column:
        beside = [text.text, *text.column]
        return "中文" in beside or bool(re.search("[A-Za-z]", "".join(beside)))
    return bool(GLOSS_BEFORE.search(text.text[:at]))


def test_chinese_is_glossed_where_it_stands_first(lesson, lab):
    assert list(unglossed([lesson, lab])) == []


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("Read 小猫 (*xiǎo māo*, little cat). Then 小猫 again.", ""),
        ("Read 小猫 (*xiǎo māo*: little, cat). Then 猫 and 猫小.", ""),
        ("Read 小猫 (*xiǎo māo*, little cat). Then 猫.", "猫"),
        ("**Attention** (注意力) and its weights (权重).", ""),
        ("## Attention 注意力\n\nIt is 注意力.", ""),
        ("Read 小猫. It means a little cat.", "小猫"),
        ("Read 小猫 (小狗).", "小猫 小狗"),
        ("Here (and 小猫) stands.", "小猫"),
        ("| term | 中文 |\n|-|-|\n| query | 查询 |", ""),
        ("| 我 | 爱 |\n|-|-|\n| I | love |", ""),
        ("| 我 I | 爱 |\n|-|-|\n| 2 | 3 |", "爱"),
    ],
)
def test_what_is_a_gloss(said, missing):
    cell = {"cell_type": "markdown", "id": "x", "source": said}
    expected = [f"x: {each}" for each in missing.split()]
    assert list(unglossed([[cell]])) == expected
