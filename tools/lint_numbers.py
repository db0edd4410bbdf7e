r"""Looks for every number of a chapter's prose in what its cells computed.

    python tools/lint_numbers.py [03_attention ...]

Prose is the Markdown of the lesson and of its lab, with the captions of figures
and what stands for them; a number of either page may stand in a cell of both.
In a chapter that has a lab each one must be

- traced: printed by a cell, or written in its code, as an argument or in an
  assertion, and equal when rounded as the prose rounds it. 0.83 is found in
  0.8312 and in an assertion that something lies between 0.82 and 0.84, 83 % in
  0.831, 1/2 in 0.5, and 1.2 million in 1,203,456;
- cited: its sentence cites a work; or
- listed: tools/numbers.toml quotes the words it stands in and gives the reason.

It is looked for in the cells of its section; if these are none, in those of the
sections beside it. In the other cells of the chapter it counts only if it has
three digits, or stands in a run of three numbers: else too much would be found.
What is traced may be said again all over the chapter, unless it is one digit.

A run of numbers, such as (2, 0, 1, 1) or 4 × 4, is looked for as a whole, and
an equation such as 2·2 + 1·1 = 5 is computed.

What this cannot see. 0 and 1 by themselves, and within a formula or code all
integers below ten, are taken as constants. Signs, number words, years, the
digits of names such as GPT-2, and what stands after words such as *chapter* are
not looked at. That a number occurs in a cell does not mean that the prose says
of it what the cell did, least of all for 2 to 9. How much that matters is
measured: *noticed* is the share of all wrong numbers that would be found out,
if one of the traced ones had another last digit. Drawings and the answers to
questions are not read.
"""

import ast
import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from evidence import SUPERSCRIPTS, Evidence, Number, evidence, numbers, rounds
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.myst_role import myst_role_plugin

ROOT = Path(__file__).parents[1]
LISTED = ROOT / "tools" / "numbers.toml"
KINDS = ("traced", "cited", "listed", "constant", "untraced")

MARKDOWN = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(dollarmath_plugin, double_inline=True)
    .use(myst_role_plugin)
    .use(colon_fence_plugin)
    .use(amsmath_plugin)
)
RAISED = str.maketrans("-0123456789", SUPERSCRIPTS)
CITED = "[cited]"
LABEL = re.compile(
    r"\b(?:appendix|cases?|chapters?|equations?|exercises?|facts?|figures?|hints?|"
    r"levels?|parts?|sections?|tables?)\s+(?:\d+(?:,\s|\sto\s|\sand\s))*$",
    re.IGNORECASE,
)
YEAR = re.compile(r"\b(?:in|since|until|of|from|by)\s+$|[(]$")
MINUTES = re.compile(r"\((?:easy|medium|hard), \d+ minutes\)")
ORDINAL = re.compile(r"(?:\w+ )?\d+(?:\.|:| ·)")
BETWEEN = re.compile(r"(?:(?:,\s|\s×\s|\s)(?:and\s)?|\sand\s)[-−]?")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\s\da-z])")
PLAIN = r"\d+(?:,\d{3})*(?:\.\d+)?"
TERM = rf"(?:{PLAIN}|\([-−]?{PLAIN}\))"
EQUATION = re.compile(
    rf"{TERM}(?:\s?[-−+·×÷]\s?{TERM})+ = [-−]?({PLAIN})"
    r"(?![\d.,]*\d|\s?[·×÷])"
)
OPERATORS = str.maketrans({"−": "-", "·": "*", "×": "*", "÷": "/", ",": ""})


@dataclass(frozen=True)
class Text:
    """A piece of prose whose numbers belong together.

    Args:
        cell: The id of its cell.
        text: What it says, with formulas and code.
        formal: Where in it formulas and code stand.
        column: In a table, the cells above and below, itself included.
        heading: Whether a section begins with it.
    """

    cell: str
    text: str
    formal: tuple[tuple[int, int], ...] = ()
    column: tuple[str, ...] = ()
    heading: bool = False


def texts(source: str, cell: str) -> Iterator[Text]:
    """Read the Markdown of a cell."""
    rows: list[list[Text]] = []
    within = ""
    for token in MARKDOWN.parse(source):
        if token.type in ("math_block", "amsmath"):
            formula = _formula(token.content)
            yield Text(cell, formula, ((0, len(formula)),))
        elif token.type == "colon_fence":
            yield Text(cell, token.info.partition("}")[2])
            yield from texts(token.content, cell)
        elif token.type == "html_block":
            yield Text(cell, re.sub("<[^>]*>", " ", token.content))
        elif token.type == "inline" and within in ("th", "td"):
            rows[-1].append(_inline(token, cell))
        elif token.type == "inline":
            yield replace(_inline(token, cell), heading=within == "heading")
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            yield from _by_column(rows)
            rows = []
        elif token.nesting == 1:
            within = token.type.removesuffix("_open")


def captions(cell: dict) -> Iterator[Text]:
    """Read what the code of a cell says below its figures, and instead."""
    try:
        tree = ast.parse("".join(cell["source"]))
    except SyntaxError:  # A magic command of a notebook.
        return
    for node in ast.walk(tree):
        said = isinstance(node, ast.keyword) and node.arg in ("caption", "alt")
        if said and isinstance(node.value, ast.Constant):
            yield Text(cell["id"], str(node.value.value))


def _by_column(rows: list[list[Text]]) -> Iterator[Text]:
    columns = [tuple(t.text for t in each) for each in zip(*rows, strict=True)]
    for row in rows:
        for text, column in zip(row, columns, strict=True):
            yield replace(text, column=column)


def _inline(token: Token, cell: str) -> Text:
    text, formal = "", []
    for child in token.children or []:
        start = len(text)
        if child.type in ("softbreak", "hardbreak"):
            text += " "
        elif child.type == "myst_role":
            name = child.meta["name"]
            text += CITED if name.startswith("cite") else child.content
        elif child.type.startswith("math"):
            text += _formula(child.content)
            formal.append((start, len(text)))
        elif child.type == "code_inline":
            text += child.content
            formal.append((start, len(text)))
        elif child.type != "html_inline":
            text += child.content
    return Text(cell, text, tuple(formal))


def _formula(latex: str) -> str:
    """Write a formula so that its numbers can be read."""
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)", r" \1/\2 ", latex)
    text = re.sub(r"\\[dt]?frac\s*\{(\d+)\}\{(\d+)\}", r" \1/\2 ", text)
    text = re.sub(r"(?<=\d)(\{,\}|\\,)(?=\d{3})", ",", text)
    text = re.sub(
        r"(?<=\d)\^(?:(\d)|\{(-?\d+)\})",
        lambda m: (m[1] or m[2]).translate(RAISED),
        text,
    )
    text = text.replace(r"\%", "%").replace(r"\times", "×")
    text = text.replace(r"\cdot", "·").replace("{", " ").replace("}", " ")
    return re.sub(r"\\[A-Za-z]+|\\.", " ", text)


@dataclass
class Found:
    """What became of the numbers of a chapter."""

    kinds: Counter = field(default_factory=Counter)
    wrong: list[bool] = field(default_factory=list)
    untraced: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def noticed(self) -> float:
        """The share of wrong last digits that would not be found."""
        return 1 - sum(self.wrong) / max(1, len(self.wrong))


class Tracer:
    """Looks for the numbers of a chapter's pages.

    Args:
        pages: The cells of each page, by its name.
        listed: Words that hold numbers which no cell computes, and why.
    """

    def __init__(
        self, pages: Mapping[str, list[dict]], listed: Mapping[str, str]
    ) -> None:
        self.found, self.listed, self.used = Found(), listed, set()
        self.traced, self.pending = set(), []
        self.whole = evidence(c for cells in pages.values() for c in cells)
        for page, cells in pages.items():
            for text, near in self._sections(cells):
                self._text(page, text, near)
        for place, number in self.pending:
            self._repeated(place, number)
        self.found.unused = [w for w in listed if w not in self.used]

    def _sections(self, cells: list[dict]) -> Iterator[tuple[Text, Evidence]]:
        sections: list[tuple[list[Text], list[dict]]] = [([], [])]
        for cell in cells:
            if cell["cell_type"] == "code":
                sections[-1][0].extend(captions(cell))
                sections[-1][1].append(cell)
                continue
            for text in texts("".join(cell["source"]), cell["id"]):
                if text.heading:
                    sections.append(([], []))
                sections[-1][0].append(text)
        for at, (section, code) in enumerate(sections):
            beside = sections[max(0, at - 1) : at + 2]
            near = evidence(code or [c for _, each in beside for c in each])
            yield from ((text, near) for text in section)

    def _text(self, page: str, text: Text, near: Evidence) -> None:
        found = [n for n in numbers(text.text) if _is_number(n, text)]
        for run in _runs(found, text.text):
            for number, kind in self._run(run, text, near):
                if kind == "untraced":
                    around = text.text[max(0, number.start - 40) :][:80]
                    place = f"{page}: {text.cell}: {number.text} in '{around}'"
                    self.pending.append((place, number))
                    continue
                self.found.kinds[kind] += 1
                if kind == "traced":
                    self.traced.add(number.text)

    def _repeated(self, place: str, number: Number) -> None:
        """Accept what the chapter says in another place, where it is traced."""
        if number.text in self.traced and not number.digit:
            self.found.kinds["traced"] += 1
            self.found.wrong += (o.text in self.traced for o in number.others())
        else:
            self.found.kinds["untraced"] += 1
            self.found.untraced.append(place)

    def _run(
        self, run: list[Number], text: Text, near: Evidence
    ) -> Iterator[tuple[Number, str]]:
        if len(run) > 1 and self._has_run(run, near):
            yield from ((number, "traced") for number in run)
            return
        whole = len(run) > 1 and _is_vector(run, text.text)
        for number in run:
            yield number, self._kind(number, text, near, whole)

    def _has_run(self, run: list[Number], near: Evidence) -> bool:
        where = self.whole if len(run) > 2 or any(n.rare for n in run) else near
        if not where.has_run(run):
            return False
        self.found.wrong += (
            where.has_run([*run[:at], other, *run[at + 1 :]])
            for at, number in enumerate(run)
            for other in number.others()
        )
        return True

    def _has(self, number: Number, near: Evidence) -> bool:
        where = self.whole if number.rare else near
        if not where.has(number):
            return False
        self.found.wrong += (
            o.constant or where.has(o) for o in number.others()
        )
        return True

    def _kind(
        self, number: Number, text: Text, near: Evidence, whole: bool
    ) -> str:
        if self._is_listed(number, text.text):
            return "listed"
        if (equal := _equation(number, text.text)) is not None:
            return "traced" if equal else "untraced"
        if text.column and self._has_column(text):
            return "traced"
        formal = any(a <= number.start < b for a, b in text.formal)
        if not whole and (number.constant or (formal and number.digit)):
            return "constant"
        if not whole and self._has(number, near):
            return "traced"
        start, end = _sentence(number, text.text)
        return "cited" if CITED in text.text[start:end] else "untraced"

    def _has_column(self, text: Text) -> bool:
        column = [list(numbers(each)) for each in text.column[1:]]
        if any(len(each) != 1 for each in column):
            return False
        return self.whole.has_run([number for (number,) in column])

    def _is_listed(self, number: Number, text: str) -> bool:
        for words in self.listed:
            for match in re.finditer(re.escape(words), text):
                if match.start() <= number.start < match.end():
                    self.used.add(words)
                    return True
        return False


def _is_number(number: Number, text: Text) -> bool:
    """Whether it counts or measures something, and is no name."""
    before = text.text[: number.start]
    if text.heading:
        minutes = MINUTES.search(text.text)
        if minutes and number.start > minutes.start():
            return False
        ordinal = ORDINAL.match(text.text)
        if ordinal and number.start < ordinal.end():
            return False
    if text.column and [*text.column[1:]] == [
        str(n) for n in range(1, len(text.column))
    ]:
        return False
    year = number.text.isdecimal() and 1900 <= number.value < 2100
    return not (LABEL.search(before) or (year and YEAR.search(before)))


def _runs(found: list[Number], text: str) -> list[list[Number]]:
    """Put together what stands side by side."""
    runs: list[list[Number]] = []
    for number in found:
        between = text[runs[-1][-1].end : number.start] if runs else ""
        if between and BETWEEN.fullmatch(between):
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def _is_vector(run: list[Number], text: str) -> bool:
    """Whether a run stands in brackets, or is separated by blanks alone."""
    inner = text[run[0].start : run[-1].end]
    # What a function is called with is no vector.
    opened = re.search(r"(?<!\w)[(\[][-−]?$", text[: run[0].start])
    closed = text[run[-1].end :].startswith((")", "]"))
    return bool(opened and closed) or not re.search(r"[^\d. −-]", inner)


def _equation(number: Number, text: str) -> bool | None:
    """Whether the equation is right that a number stands in, if in any."""
    for match in EQUATION.finditer(text):
        if match.start() <= number.start < match.end():
            left, _, _ = match[0].translate(OPERATORS).partition(" = ")
            (result,) = numbers(match[1])
            return rounds(result, abs(eval(left, {"__builtins__": {}})))
    return None


def _sentence(number: Number, text: str) -> tuple[int, int]:
    ends = [match.start() for match in SENTENCE.finditer(text)]
    start = max((e for e in ends if e <= number.start), default=0)
    return start, min((e for e in ends if e > number.start), default=len(text))


def chapter(name: str, listed: Mapping[str, str]) -> tuple[Found, bool]:
    """Trace a chapter; also say whether it has a lab."""
    book = ROOT / "book"
    lesson, lab = (book / at / f"{name}.ipynb" for at in ("", "labs"))
    pages = {
        str(path.relative_to(book)): json.loads(path.read_text("utf-8"))[
            "cells"
        ]
        for path in (lesson, lab)
        if path.exists()
    }
    return Tracer(pages, listed).found, lab.exists()


def main(names: list[str]) -> int:
    """Print what became of all numbers; 1 where a lab's chapter has faults."""
    listed = tomllib.loads(LISTED.read_text("utf-8"))
    every = sorted(path.stem for path in (ROOT / "book").glob("[0-9]*.ipynb"))
    print(
        f"{'numbers in prose':18}"
        + "".join(f"{k:>10}" for k in KINDS)
        + "   noticed"
    )
    faults = []
    for name in names or every:
        found, has_lab = chapter(name, listed.get(name, {}))
        row = "".join(f"{found.kinds[kind]:10}" for kind in KINDS)
        print(f"{name:18}{row}{found.noticed:10.0%}")
        if has_lab or names:
            faults += found.untraced
            faults += [
                f"numbers.toml: {name}: '{w}' is in no text"
                for w in found.unused
            ]
    if faults:
        print(
            *faults,
            "Print or assert it, cite it, or list it with its reason.",
            sep="\n",
        )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
