"""The questions of a chapter as a quiz in a page.

Everything a reader may see is in the HTML. ``quiz.js`` only moves it about: a
list becomes checkboxes, a solution stays back until there is an answer. Where
no script runs, the answers are folded and the rest is plain to read.
"""

from html import escape
from itertools import starmap
from pathlib import Path

from companion.figures.figure import Figure
from companion.figures.inline import HERE as FIGURES
from companion.figures.inline import inline, read_style
from companion.interview.bank import load
from companion.interview.markup import to_html, to_line, to_plain
from companion.interview.question import (
    Choice,
    Code,
    Numeric,
    Open,
    Option,
    Question,
)
from companion.interview.table import Text

HERE = Path(__file__).parent
STYLE = read_style(HERE / "quiz.css")
SCRIPT = "".join(
    path.read_text(encoding="utf-8")
    for path in (FIGURES / "parts.js", HERE / "quiz.js")
)
WORDS = {
    "junior": Text("junior", "初级"),
    "mid": Text("mid", "中级"),
    "senior": Text("senior", "高级"),
    "open": Text("in words", "简答"),
    "choice": Text("choice", "选择"),
    "numeric": Text("number", "计算"),
    "code": Text("code", "手写"),
    "answer": Text("Answer", "参考答案"),
    "points": Text("Key points", "得分点"),
    "hint": Text("Hint", "提示"),
    "mistakes": Text("Typical wrong numbers", "常见的错误结果"),
    "right": Text("Right.", "正确。"),
    "wrong": Text("Wrong.", "错误。"),
    "proof": Text("Proved by", "依据"),
    "run": Text("Run it", "运行检查"),
}


def show(chapter: str) -> Figure:
    """The chapter's questions, to be answered in the page.

    Raises:
        ValueError: there is no such chapter, or the bank has a fault.
    """
    questions = load(chapter)
    items = "".join(starmap(_item, enumerate(questions, 1)))
    html = inline(
        "quiz",
        body=f'<ol class="questions">{items}</ol>',
        label=f"Interview questions: {chapter}",
        style=STYLE,
        script=SCRIPT,
        data=[_key(question) for question in questions],
    )
    return Figure(html, "\n".join(starmap(_listed, enumerate(questions, 1))))


def _item(number: int, question: Question) -> str:
    proof = (
        f'<p class="proof">{_words(WORDS["proof"])} '
        f"<code>{escape(question.proof)}</code></p>"
    )
    work = WORK[question.kind](question.task, _block(question.answer) + proof)
    return (
        f'<li class="question" data-level="{question.level}" '
        f'data-kind="{question.kind}"><details><summary>'
        f'<span class="number">{number}</span>'
        f'<span class="prompt">{_words(question.prompt)}</span>'
        f'<span class="tags"><span class="{question.level}">'
        f"{_words(WORDS[question.level])}</span>"
        f"<span>{_words(WORDS[question.kind])}</span></span></summary>"
        f'<div class="work">{work}</div></details></li>\n'
    )


def _open(task: Open, answer: str) -> str:
    points = "".join(f"<li>{_words(each)}</li>" for each in task.points)
    points = f'<ul class="points">{points}</ul>'
    return _folded("points", points) + _folded("answer", answer)


def _choice(task: Choice, answer: str) -> str:
    options = "".join(f"<li>{_words(each.text)}</li>" for each in task.options)
    whys = f'<ol class="whys">{"".join(map(_why, task.options))}</ol>'
    front = f'<ol class="options">{options}</ol>'
    return front + _folded("answer", whys + answer)


def _why(option: Option) -> str:
    verdict = WORDS["right" if option.right else "wrong"]
    why = Text(
        f"**{verdict.en}** {option.why.en}", f"**{verdict.zh}**{option.why.zh}"
    )
    return (
        f'<li class="{"right" if option.right else "wrong"}">{_block(why)}</li>'
    )


def _numeric(task: Numeric, answer: str) -> str:
    value = f'<p class="value">{_number(task.value)}</p>'
    mistakes = "".join(
        f"<dt>{_number(each.value)}</dt><dd>{_block(each.why)}</dd>"
        for each in task.mistakes
    )
    mistakes = f"<p>{_words(WORDS['mistakes'])}</p><dl>{mistakes}</dl>"
    return _folded("hint", _block(task.hint)) + _folded(
        "answer", value + answer + f'<div class="mistakes">{mistakes}</div>'
    )


def _code(task: Code, answer: str) -> str:
    name = task.stub.split("(")[0].removeprefix("def ")
    call = escape(f'check("{task.component}", {name})', quote=False)
    front = (
        f"<pre><code>{escape(task.stub, quote=False)}</code></pre>"
        f'<p class="run">{_words(WORDS["run"])} <code>{call}</code></p>'
    )
    solution = f"<pre><code>{escape(task.solution, quote=False)}</code></pre>"
    return front + _folded("answer", solution + answer)


WORK = {"open": _open, "choice": _choice, "numeric": _numeric, "code": _code}


def _folded(name: str, html: str) -> str:
    return (
        f'<details class="{name}"><summary>{_words(WORDS[name])}</summary>'
        f"<div>{html}</div></details>"
    )


def _words(text: Text) -> str:
    en, zh = to_line(text.en), to_line(text.zh)
    return f'<span lang="en">{en}</span><span lang="zh-CN">{zh}</span>'


def _block(text: Text) -> str:
    en, zh = to_html(text.en), to_html(text.zh)
    return f'<div lang="en">{en}</div><div lang="zh-CN">{zh}</div>'


def _number(value: float) -> str:
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")


def _key(question: Question) -> object:
    """What the script must know to judge an answer."""
    task = question.task
    if isinstance(task, Numeric):
        mistakes = [mistake.value for mistake in task.mistakes]
        return {
            "value": task.value,
            "tolerance": task.tolerance,
            "mistakes": mistakes,
        }
    return None


def _listed(number: int, question: Question) -> str:
    prompt = question.prompt
    return (
        f"{number}. [{question.level}, {question.kind}] "
        f"{to_plain(prompt.en)}\n   {to_plain(prompt.zh)}"
    )
