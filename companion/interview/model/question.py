"""What a question is, and how each kind is written down in a bank file.

Every question has

    id        its name in the whole bank: the chapter's word, then letters,
              digits and hyphens
    kind      how it is answered: open, choice, numeric or code
    asks      what it wants: concept, derivation, number, code, debug, systems
    level     junior, mid or senior
    minutes   how long an answer takes, out loud or on paper
    section   the heading in its chapter below which the answer is taught
    source    the note and question it came from, or "new"
    topics    optional: what it asks about, in a few words
    proof     the test, by its name alone, ``test_name``, or the cell of a
              chapter, ``03_attention#cell-id``, that proves the answer
    prompt    what is asked
    short     the answer in thirty seconds
    answer    the answer in three minutes, or what to take home
    follow    what an interviewer asks next, one question or more

and what its kind adds (below). A text has ``en`` and ``zh``, in the markup of
``markup.py``.
"""

from dataclasses import dataclass

from companion.interview.model.table import Table, Text


@dataclass(frozen=True)
class Slip:
    """A typical ``wrong`` answer, and ``why`` it is wrong."""

    wrong: Text
    why: Text

    @classmethod
    def read(cls, table: Table) -> "Slip":
        """From two keys of a question."""
        return cls(table.text("wrong"), table.text("why"))


@dataclass(frozen=True)
class Open:
    """Answered in words and marked against ``points``.

    ``slip`` is what is often said instead.
    """

    points: tuple[Text, ...]
    slip: "Slip"

    @classmethod
    def read(cls, table: Table) -> "Open":
        """From the keys of a question."""
        return cls(table.texts("points", least=4), Slip.read(table))


@dataclass(frozen=True)
class Option:
    """One way to answer a choice: its text, and ``why`` it is right or not."""

    text: Text
    why: Text
    right: bool

    @classmethod
    def read(cls, table: Table) -> "Option":
        """From a table with ``text``, ``why`` and, if it is so, ``right``."""
        right = table.values.pop("right", False)
        if not isinstance(right, bool):
            table.fail("right", "true or false", right)
        option = cls(table.text("text"), table.text("why"), right)
        table.finish()
        return option


@dataclass(frozen=True)
class Choice:
    """Answered by picking the one right of several ``options``."""

    options: tuple[Option, ...]

    @classmethod
    def read(cls, table: Table) -> "Choice":
        """From the keys of a question."""
        options = tuple(map(Option.read, table.tables("options", least=3)))
        rights = sum(option.right for option in options)
        if rights != 1:
            table.fail("options", "one that is right", rights)
        return cls(options)


@dataclass(frozen=True)
class Mistake:
    """A typical wrong number, and ``why`` somebody arrives at it."""

    value: float
    why: Text

    @classmethod
    def read(cls, table: Table) -> "Mistake":
        """From a table with ``value`` and ``why``."""
        mistake = cls(table.number("value"), table.text("why"))
        table.finish()
        return mistake


@dataclass(frozen=True)
class Numeric:
    """Answered by a number; ``tolerance`` says how near is right."""

    value: float
    tolerance: float
    hint: Text
    mistakes: tuple[Mistake, ...]

    @classmethod
    def read(cls, table: Table) -> "Numeric":
        """From the keys of a question; no two answers may be confused."""
        value = table.number("value")
        tolerance = table.number("tolerance", least=0.0)
        mistakes = tuple(map(Mistake.read, table.tables("mistakes", least=1)))
        answers = [value, *(mistake.value for mistake in mistakes)]
        for number, answer in enumerate(answers):
            for other in answers[:number]:
                if abs(answer - other) <= 2 * tolerance:
                    apart = f"numbers more than {2 * tolerance:g} apart"
                    table.fail("mistakes", apart, f"{other:g} and {answer:g}")
        return cls(value, tolerance, table.text("hint"), mistakes)


@dataclass(frozen=True)
class Code:
    """Answered by a function that the contracts of ``component`` accept."""

    component: str
    stub: str
    solution: str
    slip: Slip

    @classmethod
    def read(cls, table: Table) -> "Code":
        """From the keys of a question."""
        component = table.word("component")
        stub, solution = table.code("stub"), table.code("solution")
        return cls(component, stub, solution, Slip.read(table))


KINDS = {"open": Open, "choice": Choice, "numeric": Numeric, "code": Code}
ASKS = ("concept", "derivation", "number", "code", "debug", "systems")
LEVELS = ("junior", "mid", "senior")
PROOF = r"test_\w+|\d\d_\w+#[\w-]+"


@dataclass(frozen=True)
class Question:
    """One question of the bank; ``task`` is what its kind adds."""

    id: str
    chapter: str
    kind: str
    asks: str
    level: str
    minutes: int
    section: str
    source: str
    topics: tuple[str, ...]
    proof: str
    prompt: Text
    short: Text
    answer: Text
    follow: tuple[Text, ...]
    task: Open | Choice | Numeric | Code

    @classmethod
    def read(cls, table: Table, chapter: str) -> "Question":
        """From a table of a chapter's file.

        Raises:
            ValueError: a key is missing, unknown or does not fit.
        """
        name = table.name("id", rf"{chapter}-[a-z0-9-]+")
        table.place += f" '{name}'"
        kind = table.word("kind", among=tuple(KINDS))
        question = cls(
            id=name,
            chapter=chapter,
            kind=kind,
            asks=table.word("asks", among=ASKS),
            level=table.word("level", among=LEVELS),
            minutes=table.whole("minutes"),
            section=table.word("section"),
            source=table.word("source"),
            topics=table.words("topics"),
            proof=table.name("proof", PROOF),
            prompt=table.text("prompt"),
            short=table.text("short"),
            answer=table.text("answer"),
            follow=table.texts("follow", least=1),
            task=KINDS[kind].read(table),
        )
        table.finish()
        return question
