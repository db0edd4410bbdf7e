"""A bank of a few questions, for tests that change it or count on it."""

import shutil

from companion.interview.model import bank
from companion.interview.model.bank import read
from companion.interview.model.question import (
    ASKS,
    LEVELS,
    Choice,
    Code,
    Mistake,
    Numeric,
    Open,
    Option,
    Question,
)
from companion.interview.model.toml import Text

KINDS = ("open", "choice", "numeric", "code")


def text(words):
    """Two languages that can be told apart."""
    return Text(f"{words} in English.", f"{words}的中文。")


SLIP = text("The slip"), text("The reason")
TASKS = {
    "open": Open(tuple(text(f"Point {n}") for n in (1, 2, 3, 4)), *SLIP),
    "choice": Choice(
        tuple(
            Option(text(f"Option {each}"), text(f"Why {each}"), each == "B")
            for each in "ABC"
        )
    ),
    "numeric": Numeric(
        -1024.5, 0.01, text("The hint"), (Mistake(7.0, text("The mistake")),)
    ),
    "code": Code(
        "softmax",
        "def my_softmax(scores, dim):\n    raise NotImplementedError",
        "def my_softmax(scores, dim):\n    return torch.softmax(scores, dim)",
        *SLIP,
    ),
}


def question(
    name,
    chapter="attention",
    kind="open",
    asks="concept",
    level="junior",
    minutes=3,
    section="A section",
):
    """One question, whole in every key."""
    return Question(
        id=f"{chapter}-{name}",
        chapter=chapter,
        kind=kind,
        asks=asks,
        level=level,
        minutes=minutes,
        section=section,
        source="new",
        topics=(),
        proof="test_x",
        prompt=text(f"What is {name}?"),
        short=text(f"Short {name}"),
        answer=text(f"Long {name}"),
        follow=(text(f"Next {name}"),),
        task=TASKS[kind],
    )


def every_kind(chapter="attention"):
    """A question of each kind, in their order."""
    return [question(kind, chapter, kind) for kind in KINDS]


def large():
    """Two questions for each chapter, level and thing to ask; 72 in all."""
    return [
        question(
            f"{level}-{asks}-{number}",
            chapter,
            KINDS[(ASKS.index(asks) + number) % len(KINDS)],
            asks,
            level,
            minutes=2 + ASKS.index(asks),
        )
        for chapter in ("attention", "masks")
        for level in LEVELS
        for asks in ASKS
        for number in (0, 1)
    ]


def changed(folder, monkeypatch, words):
    """The bank is in another folder, and one answer there begins otherwise.

    Returns the question whose answer it is: the first of a chapter whose first
    words stand only once in the file.
    """
    (chapter, questions), *_ = read(bank.BANK).items()
    for path in bank.BANK.glob("*.toml"):
        shutil.copy(path, folder)
    path = folder / f"{chapter}.toml"
    written = path.read_text(encoding="utf-8")
    before, chosen = next(
        (question.answer.en[:40], question)
        for question in questions
        if written.count(question.answer.en[:40]) == 1
    )
    path.write_text(written.replace(before, words), encoding="utf-8")
    monkeypatch.setattr(bank, "BANK", folder)
    return chosen
