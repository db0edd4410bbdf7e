"""Reading TOML into dataclasses by their types, with one clear complaint.

Every complaint is a ``ValueError`` that names the file, the line, the entry,
the key, what was expected and what came. A library that reads typed TOML knows
the key but not the line, for ``tomllib`` does not say where a key stands.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    NoReturn,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

__all__ = [
    "Code",
    "Count",
    "Entry",
    "Flag",
    "Line",
    "Lines",
    "Number",
    "Positive",
    "Rule",
    "Text",
    "build",
    "entries",
    "like",
    "one_of",
]

LONGEST_COMPLAINT = 60
"""Characters of what came: enough to find it in the file."""

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """What a value has to be, in words and as a test."""

    expected: str
    fits: Callable[[Any], bool]


def one_of(*words: str) -> Rule:
    """Make the rule that a value is one of a few words."""
    return Rule(f"one of {', '.join(words)}", lambda value: value in words)


def like(pattern: str) -> Rule:
    """Make the rule that a regular expression describes a line of text."""
    return Rule(
        f"text like {pattern}",
        lambda value: _is_line(value) and bool(re.fullmatch(pattern, value)),
    )


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_marked(value: object) -> bool:
    closed = "`$"
    return (
        isinstance(value, str)
        and bool(value.strip())
        and not any(value.count(mark) % 2 for mark in closed)
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")


def _compiles(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(compile(value, "bank", "exec"))
    except (SyntaxError, ValueError):
        return False


# The types of the fields: what a value becomes, and the rule that it follows.
Line = Annotated[str, Rule("a line of text", _is_line)]
Lines = Annotated[
    tuple[str, ...],
    Rule(
        "a list of lines of text",
        lambda value: isinstance(value, list) and all(map(_is_line, value)),
    ),
]
Marked = Annotated[str, Rule("text with every ` and $ closed", _is_marked)]
Code = Annotated[str, Rule("Python that compiles", _compiles)]
Flag = Annotated[bool, Rule("true or false", lambda v: isinstance(v, bool))]
Number = Annotated[float, Rule("a number", _is_number)]
Positive = Annotated[
    float, Rule("a number from 0 up", lambda v: _is_number(v) and v >= 0)
]
Count = Annotated[
    int, Rule("a whole number from 1 up", lambda v: type(v) is int and v > 0)
]


@dataclass(frozen=True)
class Text:
    """One text in both languages, in the markup of ``markup.py``."""

    en: Marked
    zh: Marked


@dataclass(frozen=True)
class Entry:
    """One ``[[name]]`` of a file: its values, and the lines they stand in."""

    label: str
    values: dict[str, Any]
    file: str
    first: int = 0
    lines: tuple[str, ...] = ()

    def at(self, key: str) -> str:
        """Find the file and line of a key, or else of the entry."""
        ((top, index),) = re.findall(r"^(\w*)(?:\[(\d+)\])?", key)
        for name in (re.escape(key), rf"(?:\[\[\w+\.)?{top}"):
            found = [
                number
                for number, line in enumerate(self.lines)
                if re.match(rf"\s*{name}\s*(?:[.=]|\]\])", line)
            ]
            if found:
                # A list may be written as one line, or as a table for each.
                at = min(int(index or 1), len(found)) - 1
                return f"{self.file}:{self.first + found[at]}"
        return f"{self.file}:{self.first}"

    def fail(self, key: str, expected: str, got: object) -> NoReturn:
        """Raise the complaint about a key."""
        shown = "nothing" if got is None else repr(got)
        if len(shown) > LONGEST_COMPLAINT:
            shown = shown[:LONGEST_COMPLAINT] + "…"
        where = f"{self.at(key)}, " if self.lines else ""
        raise ValueError(
            f"{where}{self.label}, key '{key}': expected {expected}, "
            f"got {shown}"
        )


def entries(path: Path, name: str) -> Iterator[Entry]:
    """Read the tables ``[[name]]`` of a file, each with its lines.

    Raises:
        ValueError: It is no TOML, has no such table, or has something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path.name}: expected valid TOML, got: {error}"
        ) from error
    file, lines = Entry(path.name, values, path.name), text.splitlines()
    tables = values.get(name)
    if not isinstance(tables, list) or not tables:
        file.fail(name, "a list of 1 or more tables", tables)
    for key in values.keys() - {name}:
        file.fail(key, "no such key", values[key])
    heads = [n for n, line in enumerate(lines) if line == f"[[{name}]]"]
    if len(heads) != len(tables):
        wanted = f"each {name} under a line [[{name}]]"
        file.fail(name, wanted, f"{len(heads)} for {len(tables)}")
    for number, (table, first, end) in enumerate(
        zip(tables, heads, [*heads[1:], None], strict=True), 1
    ):
        label = f"{name} {number}"
        if isinstance(table.get("id"), str):
            label += f" '{table['id']}'"
        block = tuple(lines[first:end])
        yield Entry(label, table, path.name, first + 1, block)


def build(
    kind: Callable[..., T],
    values: object,
    entry: Entry,
    path: str = "",
    **given: Any,
) -> T:
    """Build a dataclass from a table, by the types of its fields.

    A field without a default must be there, a key without a field must not.
    A class may have a method ``fault`` that returns what its fields get wrong
    together, as the arguments of ``Entry.fail``.

    Args:
        kind: The dataclass.
        values: The table.
        entry: Where the table stands.
        path: The keys that lead to the table, with a dot behind each.
        given: Fields that do not come from the table.

    Raises:
        ValueError: A key is missing, unknown or does not fit.

    Example:
        >>> table = {"en": "Why?", "zh": "为什么？"}
        >>> build(Text, table, Entry("prompt", table, "a.toml"))
        Text(en='Why?', zh='为什么？')
    """
    if not isinstance(values, dict):
        entry.fail(path.rstrip("."), "a table", values)
    shape: Any = kind
    hints, left = get_type_hints(shape, include_extras=True), dict(values)
    for field in fields(shape):
        name, optional = field.name, field.default is not MISSING
        if name not in given and not (optional and name not in left):
            value = left.pop(name, None)
            given[name] = _value(hints[name], value, entry, path + name)
    for name, value in left.items():
        entry.fail(path + name, "no such key", value)
    made: Any = kind(**given)
    if hasattr(made, "fault") and (fault := made.fault()):
        key, *rest = fault
        entry.fail(path + key, *rest)
    return made


def _value(kind: Any, value: Any, entry: Entry, key: str) -> Any:
    rule: Any = None
    if get_origin(kind) is Annotated:
        kind, rule = get_args(kind)
    if get_origin(kind) is UnionType:  # Text | None, and it is there.
        kind, _ = get_args(kind)
    if is_dataclass(kind):
        return build(kind, value, entry, f"{key}.")
    if isinstance(rule, int):
        return _rows(get_args(kind)[0], value, entry, key, least=rule)
    if value is None or not rule.fits(value):
        entry.fail(key, rule.expected, value)
    if kind is str:
        return value.strip()
    return tuple(value) if isinstance(value, list) else kind(value)


def _rows(
    kind: Callable[..., T], rows: Any, entry: Entry, key: str, least: int
) -> tuple[T, ...]:
    if not isinstance(rows, list) or len(rows) < least:
        entry.fail(key, f"a list of {least} or more tables", rows)
    return tuple(
        build(kind, row, entry, f"{key}[{number}].")
        for number, row in enumerate(rows, 1)
    )
