"""One question as a card, for a chapter's page, the bank page and a notebook.

Everything a reader may see is in the HTML, folded. The scripts only show it
step by step: think, answer, compare, and then what an interviewer asks next.
"""

from collections.abc import Iterable
from html import escape

from companion.interview.model import notes
from companion.interview.model.markup import to_line
from companion.interview.model.notes import Note
from companion.interview.model.question import (
    Choice,
    Code,
    Numeric,
    Open,
    Option,
    Question,
)
from companion.interview.model.toml import Text
from companion.interview.model.words import (
    VERDICTS,
    WORDS,
    block,
    folded,
    line,
    written,
)

__all__ = ["card", "facts", "front", "key", "parts", "work"]


def card(
    number: int, question: Question, *, link: str = "", marked: bool = False
) -> str:
    """Make the whole card: a line of a list that opens.

    Args:
        number: Its place in the list.
        question: What it asks.
        link: The address of the section that teaches the answer, if known.
        marked: Whether it says that only this course would ask it, if so.
    """
    return (
        f"{_item(question)}<details><summary>{_number_of(number)}"
        f'<span class="prompt">{line(question.prompt)}</span>'
        f"{_tags(question, marked=marked)}</summary>"
        f'<div class="work">{work(question, link)}</div></details></li>\n'
    )


def work(question: Question, link: str = "") -> str:
    """Make what a card holds: what there is to answer with, and the steps."""
    task, before = question.task, front(question)
    if isinstance(task, Numeric):
        before = folded("hint", block(task.hint), kind="help")
    if isinstance(task, Code):
        before += _call("run", f'check("{task.component}", {task.name})')
        before += _call("practise", f'interview.practise("{question.id}")')
    *steps, follow = (folded(name, html) for name, html in parts(question))
    place = escape(question.section)
    place = f'<a href="{escape(link)}">{place}</a>' if link else place
    section = f'<span class="section">{place}</span>'
    end = (
        f'<div class="end step">{_proof(question.proof)}'
        f"<p>{line(WORDS['section'])} {section}</p>"
        f'<p><a href="#{question.id}">{line(WORDS["self"])}</a></p></div>'
    )
    return "".join([before, *steps, _notes(question), follow, end])


def front(question: Question) -> str:
    """Make what is asked beside the prompt: options, or a function's stub."""
    task = question.task
    if isinstance(task, Choice):
        return _list(
            (line(each.text) for each in task.options), "ol", "options"
        )
    return _listing(task.stub) if isinstance(task, Code) else ""


def parts(question: Question) -> list[tuple[str, str]]:
    """Make the answers in the order they are opened: name and HTML.

    Each kind of question adds its own; what is asked next comes last.
    """
    task = question.task
    short, answer = block(question.short), ("answer", block(question.answer))
    follow = "follow", _list(map(line, question.follow))
    match task:
        case Open():
            points = _list(map(line, task.points), css="points")
            begin, end = [("points", points), ("short", short)], [_slip(task)]
        case Choice():
            whys = f'<ol class="whys">{"".join(map(_why, task.options))}</ol>'
            begin, end = [("whys", whys), ("short", short)], []
        case Numeric():
            value = f'<p class="value">{written(task.value)}</p>'
            mistakes = "".join(
                f"<dt>{written(each.value)}</dt><dd>{block(each.why)}</dd>"
                for each in task.mistakes
            )
            begin = [("short", value + short)]
            end = [("mistakes", f"<dl>{mistakes}</dl>")]
        case Code():
            solution = _listing(task.solution)
            begin = [("solution", solution), ("short", short)]
            end = [_slip(task)]
    return [*begin, answer, *end, follow]


def key(question: Question) -> dict | None:
    """Make what the script must know to judge an answer."""
    task = question.task
    if not isinstance(task, Numeric):
        return None
    return {
        "value": task.value,
        "tolerance": task.tolerance,
        "mistakes": [mistake.value for mistake in task.mistakes],
    }


def facts(question: Question) -> dict:
    """Make what the script must know to pick questions and report on them."""
    names = "id chapter level kind asks minutes section topics course"
    return {name: getattr(question, name) for name in names.split()}


def _item(question: Question) -> str:
    return (
        f'<li class="question" id="{question.id}" '
        f'data-chapter="{question.chapter}" data-level="{question.level}" '
        f'data-kind="{question.kind}" data-asks="{question.asks}">'
    )


def _number_of(number: int) -> str:
    return f'<span class="number">{number}</span>'


def _tags(question: Question, *, marked: bool = False) -> str:
    minutes = Text(f"{question.minutes} min", f"{question.minutes} 分钟")
    own = f'<span class="course">{line(WORDS["course"])}</span>'
    return (
        f'<span class="tags"><span class="{question.level}">'
        f"{line(WORDS[question.level])}</span>"
        f"<span>{line(WORDS[question.asks])}</span>"
        f"<span>{line(minutes)}</span>"
        f"{own if marked and question.course else ''}</span>"
    )


def _list(items: Iterable[str], tag: str = "ul", css: str = "") -> str:
    css = f' class="{css}"' if css else ""
    inside = "".join(f"<li>{each}</li>" for each in items)
    return f"<{tag}{css}>{inside}</{tag}>"


def _why(option: Option) -> str:
    name = "right" if option.right else "wrong"
    verdict, why = WORDS[name], option.why
    reason = Text(f"**{verdict.en}** {why.en}", f"**{verdict.zh}**{why.zh}")
    return f'<li class="{name}">{block(reason)}</li>'


def _listing(source: str) -> str:
    return f"<pre><code>{escape(source, quote=False)}</code></pre>"


def _call(name: str, call: str) -> str:
    call = escape(call, quote=False)
    return f'<p class="{name}">{line(WORDS[name])} <code>{call}</code></p>'


def _slip(task: Open | Code) -> tuple[str, str]:
    why = _titled("why", task.why)
    return "slip", f"<blockquote>{block(task.wrong)}</blockquote>{why}"


def _titled(name: str, text: Text) -> str:
    return f'<p class="title">{line(WORDS[name])}</p>{block(text)}'


def _notes(question: Question) -> str:
    noted = [
        _noted(note) for note in notes.read() if note.master == question.id
    ]
    return folded("notes", "".join(noted)) if noted else ""


def _noted(note: Note) -> str:
    missing = _titled("missing", note.missing) if note.missing else ""
    kind, verdict = note.verdict.replace(" ", "-"), VERDICTS[note.verdict]
    title = (
        f'<span lang="en">{to_line(note.where.en)}: </span>'
        f'<span lang="en" class="{kind}">{verdict.en}</span>'
        f'<span lang="zh-CN">{to_line(note.where.zh)}：</span>'
        f'<span lang="zh-CN" class="{kind}">{verdict.zh}</span>'
    )
    return (
        f'<div class="note"><p class="title">{title}</p>'
        f"<blockquote>{block(note.said)}</blockquote>{missing}"
        f"{_titled('decides', note.number)}{_proof(note.proof)}</div>"
    )


def _proof(proof: str) -> str:
    return (
        f'<p class="proof">{line(WORDS["proof"])} '
        f"<code>{escape(proof)}</code></p>"
    )
