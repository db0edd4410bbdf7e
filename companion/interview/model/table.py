"""Reading one table of a bank file key by key, with one clear complaint.

Every complaint is a ``ValueError`` that names the file, the line, the question,
the key, what was expected and what came.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_COMPLAINT = 60
"""Characters of what came: enough to find it in the file."""


@dataclass(frozen=True)
class Text:
    """One text in both languages, in the markup of ``markup.py``."""

    en: str
    zh: str


@dataclass(frozen=True)
class Source:
    """The lines of one entry, and where they stand: tomllib does not say."""

    file: str
    first: int
    lines: tuple[str, ...]

    def at(self, key: str) -> str:
        """File and line of a key; of the entry, where the key is missing."""
        top, place = re.match(r"(\w*)(?:\[(\d+)\])?", key).groups()
        for name in (re.escape(key), rf"(?:\[\[\w+\.)?{top}"):
            found = [
                number
                for number, line in enumerate(self.lines)
                if re.match(rf"\s*{name}\s*(?:[.=]|\]\])", line)
            ]
            if found:
                # A list may be written as one line, or as a table for each.
                at = min(int(place or 1), len(found)) - 1
                return f"{self.file}:{self.first + found[at]}"
        return f"{self.file}:{self.first}"


class Table:
    """A table whose keys are taken one by one until none is left."""

    def __init__(
        self,
        values: dict,
        place: str,
        path: str = "",
        source: Source | None = None,
    ):
        self.values = dict(values)
        self.place = place
        self.path = path
        self.source = source

    def fail(self, key: str, expected: str, came: object) -> None:
        """Complains about a key."""
        came = "nothing" if came is None else repr(came)
        if len(came) > LONGEST_COMPLAINT:
            came = came[:LONGEST_COMPLAINT] + "…"
        key, place = self.path + key, self.place
        if self.source:
            place = f"{self.source.at(key)}, {place}"
        raise ValueError(
            f"{place}, key '{key}': expected {expected}, got {came}"
        )

    def take(self, key: str, expected: str, fits: Callable[[object], bool]):
        """The value of a key that must be there and must fit."""
        value = self.values.pop(key, None)
        if value is None or not fits(value):
            self.fail(key, expected, value)
        return value

    def word(self, key: str, among: tuple[str, ...] = ()) -> str:
        """A line of text; one of a few words, where these are given."""
        expected = f"one of {', '.join(among)}" if among else "a line of text"
        return self.take(
            key, expected, lambda v: _is_line(v) and (not among or v in among)
        )

    def name(self, key: str, pattern: str) -> str:
        """A line of text that a regular expression describes."""
        return self.take(
            key,
            f"text like {pattern}",
            lambda v: _is_line(v) and bool(re.fullmatch(pattern, v)),
        )

    def words(self, key: str) -> tuple[str, ...]:
        """A list of lines, empty where the key is absent."""
        if key not in self.values:
            return ()
        return tuple(
            self.take(
                key,
                "a list of lines of text",
                lambda v: isinstance(v, list) and all(map(_is_line, v)),
            )
        )

    def number(self, key: str, least: float = float("-inf")) -> float:
        """A number, not smaller than ``least``."""
        expected = "a number" if least < 0 else f"a number from {least:g} up"

        def fits(value):
            known = type(value) in (int, float)
            return known and least <= value < float("inf")

        return float(self.take(key, expected, fits))

    def whole(self, key: str) -> int:
        """A whole number from 1 up."""
        return self.take(
            key, "a whole number from 1 up", lambda v: type(v) is int and v > 0
        )

    def code(self, key: str) -> str:
        """Lines of Python that compile."""
        return self.take(key, "Python that compiles", _compiles).strip()

    def both(self) -> Text:
        """This table as one text in both languages."""
        expected = "text with every ` and $ closed"
        en = self.take("en", expected, _is_text).strip()
        zh = self.take("zh", expected, _is_text).strip()
        self.finish()
        return Text(en, zh)

    def text(self, key: str) -> Text:
        """The text below a key."""
        return self.table(key).both()

    def texts(self, key: str, least: int) -> tuple[Text, ...]:
        """The texts of a list, at least so many."""
        return tuple(each.both() for each in self.tables(key, least))

    def table(self, key: str) -> "Table":
        """The table below a key."""
        values = self.take(key, "a table", lambda v: isinstance(v, dict))
        return Table(values, self.place, f"{self.path}{key}.", self.source)

    def tables(self, key: str, least: int) -> list["Table"]:
        """The tables of a list, at least so many."""

        def fits(value):
            return (
                isinstance(value, list)
                and len(value) >= least
                and all(isinstance(each, dict) for each in value)
            )

        rows = self.take(key, f"a list of {least} or more tables", fits)
        return [
            Table(row, self.place, f"{self.path}{key}[{number}].", self.source)
            for number, row in enumerate(rows, 1)
        ]

    def finish(self) -> None:
        """Complains about a key that nobody took: most often a slip."""
        for key, value in self.values.items():
            self.fail(key, "no such key", value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_text(value: object) -> bool:
    return (
        isinstance(value, str)
        and bool(value.strip())
        and not (value.count("`") % 2 or value.count("$") % 2)
    )


def _compiles(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(compile(value, "bank", "exec"))
    except (SyntaxError, ValueError):
        return False
