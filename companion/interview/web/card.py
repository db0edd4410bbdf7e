"""One question as a card, for a chapter's page, the bank page and a notebook.

Everything a reader may see is in the HTML, folded. The scripts only show it
step by step: think, answer, compare, and then what an interviewer asks next.
"""

from html import escape

from companion.interview.model import notes
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


def card(number: int, question: Question) -> str:
    """The whole card: a line of a list that opens."""
    return (
        f"{_item(question)}<details><summary>{_number_of(number)}"
        f'<span class="prompt">{line(question.prompt)}</span>{_tags(question)}'
        f'</summary><div class="work">{work(question)}</div>'
        "</details></li>\n"
    )


def entry(number: int, question: Question, page: str) -> str:
    """The card's first line alone, and a link to a page that has the rest."""
    return (
        f"{_item(question)}{_number_of(number)}"
        f'<a class="prompt" href="{escape(page)}#{question.id}">'
        f"{line(question.prompt)}</a>{_tags(question)}</li>\n"
    )


def work(question: Question) -> str:
    """What a card holds: what there is to answer with, and the steps."""
    front, steps = TASKS[question.kind](question)
    answer = folded("answer", block(question.answer))
    noted = _notes(question)
    return "".join(
        [front, *steps[:-1], answer, steps[-1], noted, *_end(question)]
    )


def key(question: Question) -> dict | None:
    """What the script must know to judge an answer."""
    task = question.task
    if not isinstance(task, Numeric):
        return None
    return {
        "value": task.value,
        "tolerance": task.tolerance,
        "mistakes": [mistake.value for mistake in task.mistakes],
    }


def facts(question: Question) -> dict:
    """What the script must know to pick questions and to report on them."""
    return {
        name: getattr(question, name)
        for name in (
            "id",
            "chapter",
            "level",
            "kind",
            "asks",
            "minutes",
            "section",
            "topics",
        )
    }


def _item(question: Question) -> str:
    return (
        f'<li class="question" id="{question.id}" '
        f'data-chapter="{question.chapter}" data-level="{question.level}" '
        f'data-kind="{question.kind}" data-asks="{question.asks}">'
    )


def _number_of(number: int) -> str:
    return f'<span class="number">{number}</span>'


def _tags(question: Question) -> str:
    minutes = Text(f"{question.minutes} min", f"{question.minutes} 分钟")
    return (
        f'<span class="tags"><span class="{question.level}">'
        f"{line(WORDS[question.level])}</span>"
        f"<span>{line(WORDS[question.asks])}</span>"
        f"<span>{line(minutes)}</span></span>"
    )


# Each kind: what stands first, and its steps; the last one follows the answer.


def _open(question: Question) -> tuple[str, list[str]]:
    task: Open = question.task
    points = "".join(f"<li>{line(each)}</li>" for each in task.points)
    points = folded("points", f'<ul class="points">{points}</ul>')
    return "", [points, _short(question), _slip(task)]


def _choice(question: Question) -> tuple[str, list[str]]:
    task: Choice = question.task
    options = "".join(f"<li>{line(each.text)}</li>" for each in task.options)
    whys = f'<ol class="whys">{"".join(map(_why, task.options))}</ol>'
    front = f'<ol class="options">{options}</ol>'
    return front, [folded("whys", whys), _short(question), ""]


def _why(option: Option) -> str:
    verdict = WORDS["right" if option.right else "wrong"]
    why = Text(
        f"**{verdict.en}** {option.why.en}", f"**{verdict.zh}**{option.why.zh}"
    )
    return (
        f'<li class="{"right" if option.right else "wrong"}">{block(why)}</li>'
    )


def _numeric(question: Question) -> tuple[str, list[str]]:
    task: Numeric = question.task
    value = f'<p class="value">{written(task.value)}</p>'
    mistakes = "".join(
        f"<dt>{written(each.value)}</dt><dd>{block(each.why)}</dd>"
        for each in task.mistakes
    )
    hint = folded("hint", block(task.hint), kind="help")
    mistakes = folded("mistakes", f"<dl>{mistakes}</dl>")
    return hint, [_short(question, value), mistakes]


def _code(question: Question) -> tuple[str, list[str]]:
    task: Code = question.task
    name = task.stub.partition("def ")[2].partition("(")[0]
    front = (
        _listing(task.stub)
        + _ran("run", f'check("{task.component}", {name})')
        + _ran("practise", f'interview.practise("{question.id}")')
    )
    solution = folded("solution", _listing(task.solution))
    return front, [solution, _short(question), _slip(task)]


TASKS = {"open": _open, "choice": _choice, "numeric": _numeric, "code": _code}


def _listing(source: str) -> str:
    return f"<pre><code>{escape(source, quote=False)}</code></pre>"


def _ran(name: str, call: str) -> str:
    call = escape(call, quote=False)
    return f'<p class="{name}">{line(WORDS[name])} <code>{call}</code></p>'


def _short(question: Question, before: str = "") -> str:
    return folded("short", before + block(question.short))


def _slip(task: Open | Code) -> str:
    why = _titled("why", task.why)
    return folded("slip", f"<blockquote>{block(task.wrong)}</blockquote>{why}")


def _titled(name: str, text: Text) -> str:
    return f'<p class="title">{line(WORDS[name])}</p>{block(text)}'


def _notes(question: Question) -> str:
    told = [_noted(note) for note in notes.read() if note.master == question.id]
    return folded("notes", "".join(told)) if told else ""


def _noted(note: Note) -> str:
    missing = _titled("missing", note.missing) if note.missing else ""
    kind = note.verdict.replace(" ", "-")
    return (
        f'<div class="note"><p class="title">{escape(note.where)}: '
        f'<span class="{kind}">{line(VERDICTS[note.verdict])}</span></p>'
        f"<blockquote>{block(note.said)}</blockquote>{missing}"
        f"{_titled('decides', note.number)}{_proof(note.proof)}</div>"
    )


def _end(question: Question) -> tuple[str, str]:
    follow = "".join(f"<li>{line(each)}</li>" for each in question.follow)
    section = f'<span class="section">{escape(question.section)}</span>'
    return (
        folded("follow", f"<ul>{follow}</ul>"),
        f'<div class="end step">{_proof(question.proof)}'
        f"<p>{line(WORDS['section'])} {section}</p>"
        f'<p><a href="#{question.id}">{line(WORDS["self"])}</a></p></div>',
    )


def _proof(proof: str) -> str:
    return (
        f'<p class="proof">{line(WORDS["proof"])} '
        f"<code>{escape(proof)}</code></p>"
    )
