"""What a question is, and how each kind is written down in a bank file.

A text has ``en`` and ``zh``, in the markup of ``markup.py``. A new kind of
question is a dataclass in ``KINDS``: the types of its fields say what its keys
must hold.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated

from companion.interview.model import toml
from companion.interview.model.toml import Entry, Text, build, one_of

__all__ = [
    "ASKS",
    "KINDS",
    "LEVELS",
    "PROOF",
    "Choice",
    "Code",
    "Mistake",
    "Numeric",
    "Open",
    "Option",
    "Question",
    "read_question",
    "require",
]

ASKS = ("concept", "derivation", "number", "code", "debug", "systems")
LEVELS = ("junior", "mid", "senior")
PROOF = r"test_\w+|\d\d_\w+#[\w-]+"

Fault = tuple[str, str, object]


def require(name: str, value: str, known: Iterable[str]) -> str:
    """Return an argument that is one of the known words.

    Raises:
        ValueError: It is another one.
    """
    if value not in known:
        raise ValueError(
            f"{name}: expected one of {', '.join(known)}, got {value!r}"
        )
    return value


@dataclass(frozen=True)
class Open:
    """Answered in words and marked against ``points``.

    Attributes:
        points: What a good answer says, four points or more.
        wrong: What is often said instead.
        why: Why that is wrong.
    """

    points: Annotated[tuple[Text, ...], 4]
    wrong: Text
    why: Text


@dataclass(frozen=True)
class Option:
    """One way to answer a choice: its text, and ``why`` it is right or not."""

    text: Text
    why: Text
    right: toml.Flag = False


@dataclass(frozen=True)
class Choice:
    """Answered by picking the one right of three or more ``options``."""

    options: Annotated[tuple[Option, ...], 3]

    def fault(self) -> Fault | None:
        """Check that one option is right."""
        rights = sum(option.right for option in self.options)
        return None if rights == 1 else ("options", "one that is right", rights)


@dataclass(frozen=True)
class Mistake:
    """A typical wrong number, and ``why`` somebody arrives at it."""

    value: toml.Number
    why: Text


@dataclass(frozen=True)
class Numeric:
    """Answered by a number; ``tolerance`` says how near is right."""

    value: toml.Number
    tolerance: toml.Positive
    hint: Text
    mistakes: Annotated[tuple[Mistake, ...], 1]

    def fault(self) -> Fault | None:
        """Check that no two answers can be confused."""
        answers = [self.value, *(mistake.value for mistake in self.mistakes)]
        for number, answer in enumerate(answers):
            for other in answers[:number]:
                if abs(answer - other) <= 2 * self.tolerance:
                    apart = f"numbers more than {2 * self.tolerance:g} apart"
                    return "mistakes", apart, f"{other:g} and {answer:g}"
        return None


@dataclass(frozen=True)
class Code:
    """Answered by a function that the contracts of ``component`` accept.

    Attributes:
        component: A component of ``companion.contracts``.
        stub: What a candidate starts from; in a repair, a broken function.
        solution: A function that passes.
        wrong: What is often written instead.
        why: Why that is wrong.
    """

    component: toml.Line
    stub: toml.Code
    solution: toml.Code
    wrong: Text
    why: Text

    @property
    def name(self) -> str:
        """What the stub defines, a function or a class."""
        found = re.search(r"^(?:def|class) (\w+)", self.stub, re.MULTILINE)
        return found[1] if found else ""


KINDS = {"open": Open, "choice": Choice, "numeric": Numeric, "code": Code}


@dataclass(frozen=True)
class Question:
    """One question of the bank.

    Attributes:
        id: Its name in the whole bank: the chapter's word, then letters,
            digits and hyphens.
        chapter: The chapter's word, which is also the name of the file.
        kind: How it is answered: open, choice, numeric or code.
        asks: What it wants: concept, derivation, number, code, debug, systems.
        level: junior, mid or senior.
        minutes: How long an answer takes, out loud or on paper.
        section: The heading in its chapter below which the answer is taught.
        source: The note and question it came from, or "new".
        proof: The test, by its name alone, ``test_name``, or the cell of a
            chapter, ``03_attention#cell-id``, that proves the answer.
        prompt: What is asked.
        short: The answer in thirty seconds.
        answer: The answer in three minutes, or what to take home.
        follow: What an interviewer asks next, one question or more.
        task: What its kind adds.
        topics: What it asks about, in a few words.
        course: Whether only this course would ask it, because what it asks of
            is an experiment, a drawing or an exercise of the course. No mock
            interview asks it.
    """

    id: toml.Line
    chapter: str
    kind: Annotated[str, one_of(*KINDS)]
    asks: Annotated[str, one_of(*ASKS)]
    level: Annotated[str, one_of(*LEVELS)]
    minutes: toml.Count
    section: toml.Line
    source: toml.Line
    proof: Annotated[str, toml.like(PROOF)]
    prompt: Text
    short: Text
    answer: Text
    follow: Annotated[tuple[Text, ...], 1]
    task: Open | Choice | Numeric | Code
    topics: toml.Lines = ()
    course: toml.Flag = False

    def fault(self) -> Fault | None:
        """Check that the id belongs to the chapter."""
        pattern = rf"{self.chapter}-[a-z0-9-]+"
        if re.fullmatch(pattern, self.id):
            return None
        return "id", f"text like {pattern}", self.id


def read_question(entry: Entry, chapter: str) -> Question:
    """Build a question, whose keys hold its kind's fields beside its own.

    Raises:
        ValueError: A key is missing, unknown or does not fit.
    """
    names = {each.name for kind in KINDS.values() for each in fields(kind)}
    added = {k: v for k, v in entry.values.items() if k in names}
    own = {k: v for k, v in entry.values.items() if k not in names}
    kind = entry.values.get("kind")
    # Without a kind the last line fails at "kind", and needs no task.
    task = build(KINDS[kind], added, entry) if kind in tuple(KINDS) else None
    return build(Question, own, entry, chapter=chapter, task=task)
