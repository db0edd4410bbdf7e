"""What a report says, in another language.

The code says it in English. ``zh.toml`` beside this file has the Chinese for
each sentence, with ``{0}``, ``{1}`` … for what differs: numbers, names, shapes,
code, and phrases that have entries of their own. A report is translated where
it is shown. What the table does not have stays English, and nothing raises.

The book reads this file by itself, in an environment without PyTorch: it
imports nothing of the package.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple
from unicodedata import east_asian_width

__all__ = [
    "ENGLISH",
    "LANGUAGES",
    "require_language",
    "say",
    "table",
    "understood",
    "wrapped",
]

ENGLISH, CHINESE = LANGUAGES = ("en", "zh")

PLACEHOLDER = re.compile(r"\{(\d+)\}")
CODE = re.compile(
    r"`[^`]*`|\b(?:None|True|False)\b|(?<!\w)'[^']*'|\"[^\"]*\"|“[^”]*”"
)
SENTENCE = re.compile(r"(?:`[^`]*`|.)*?[.?!:](?=\s|$)\s*", re.DOTALL)
SIGNED = re.compile(r"([✗✓!·—] )(.*)", re.DOTALL)
BORDER = re.compile(r"[.?!] \S")
# What may be put in: code and brackets stay whole.
WITHIN = r"((?:`[^`]*`|\((?:[^()]|\([^()]*\))*\)|[^(`])+?)"
NUMBER = r"(\d+|\([\d, ]+\))"
COMMA = re.compile(r", (?![^()]*\))")
SEMICOLON = re.compile(r"; ")
PLACE = re.compile(r"[A-Za-z]+ (\d+|\([\d, ]+\))")
BETWEEN = re.compile(
    r"(?<=[\u3400-\u9fff，。；：？！、）”]) (?=[\u3400-\u9fff（“])"
)
DEEP = 4
"""How often a phrase may stand in a phrase: no text of anybody takes long."""
ENDS = ".?!:"
FULL = "，。；：？！、（）“”"
CLOSING = "，。；：？！、）”》…"


class Entry(NamedTuple):
    """A sentence of the table.

    Attributes:
        english: The sentence, with placeholders.
        chinese: Its translation, with the same placeholders.
        literal: What it begins with, up to the first placeholder.
        place: Whether it is a word for a place, and its number.
    """

    english: str
    chinese: str
    literal: str
    place: bool

    @property
    def open(self) -> bool:
        """Whether it ends with a placeholder."""
        return self.english.endswith("}")

    @property
    def sure(self) -> bool:
        """Whether its beginning alone tells it from others."""
        return len(self.literal.split()) > 1


def require_language(lang: str) -> None:
    """Refuse a language that reports are not written in.

    Raises:
        ValueError: It is none of the two.
    """
    if lang not in LANGUAGES:
        raise ValueError(
            f'lang: expected "en" or "zh", the language of the report, got '
            f"{lang!r}"
        )


@cache
def table(lang: str = CHINESE) -> dict[str, str]:
    """Read the table: English -> the other language."""
    path = Path(__file__).with_name(f"{lang}.toml")
    parts = tomllib.loads(path.read_text(encoding="utf-8"))
    return {k: v for part in parts.values() for k, v in part.items()}


@cache
def _entries(lang: str) -> tuple[dict[str, list[Entry]], list[Entry]]:
    """Sort the table: by first word, and what begins with a placeholder.

    Of several that fit, the one with the most words of its own comes first.
    """
    by_word: dict[str, list[Entry]] = {}
    free: list[Entry] = []
    whole = table(lang)
    places = {f"{word} {{0}}" for word in whole if word[-1:] not in ENDS}
    for english in sorted(whole, key=_weight, reverse=True):
        literal = english.partition("{")[0]
        entry = Entry(english, whole[english], literal, english in places)
        first, space, _ = literal.partition(" ")
        if not literal:
            free.append(entry)
        else:
            word = first if space or literal == english else ""
            by_word.setdefault(word, []).append(entry)
    return by_word, free


def _weight(english: str) -> int:
    return len(PLACEHOLDER.sub("", english))


@cache
def _pattern(entry: Entry) -> re.Pattern:
    """Make what finds a sentence; a last placeholder takes all that follows."""
    english = entry.english
    parts = PLACEHOLDER.split(english)
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [
        "([^`]+)" if before.endswith("`") else WITHIN for before in parts[:-1:2]
    ]
    if entry.place:
        parts[1] = NUMBER
    elif entry.open:
        # What stands close to a word may be nothing, such as a second clause.
        parts[-2] = "(.+)" if parts[-3].endswith(" ") else "(.*)"
    end = r"(?=\s|$)" if english[-1:] in ENDS else "$"
    return re.compile("".join(parts) + end, re.DOTALL)


def understood(text: str) -> bool:
    """Tell whether a text has no two English words beside code and names."""
    return not re.search(r"\b[A-Za-z]+ [A-Za-z]+\b", CODE.sub("`", text))


def say(text: str, lang: str = CHINESE) -> str:
    """Say a text of a report in a language, as far as its table goes.

    Example:
        >>> say("attention: all 20 contracts hold")
        'attention：20 项契约全部成立'
    """
    return text if lang == ENGLISH else _said(text, lang, DEEP)


@lru_cache(maxsize=4096)
def _said(text: str, lang: str, deep: int) -> str:
    """Say a whole text: as one sentence, as a list, or sentence by sentence.

    What is put into it is said likewise, up to ``deep`` times.
    """
    if not deep:
        return table(lang).get(text, text)
    if signed := SIGNED.fullmatch(text):
        return signed[1] + _said(signed[2], lang, deep)
    if text.startswith("(") and text.endswith(")"):
        inside = _said(text[1:-1], lang, deep - 1)
        if inside != text[1:-1]:
            return f"（{inside}）"
    found = _phrase(text, lang, deep)
    return _sentences(text, lang, deep) if found is None else found


def _phrase(text: str, lang: str, deep: int) -> str | None:
    """Say what the table has whole, or a list of such; None if it has not."""
    known = table(lang).get(text)
    if known is not None and "{" not in text:
        return known
    parts = COMMA.split(text)
    if all(PLACE.fullmatch(part) for part in parts):
        told = [_one(part, lang, deep) for part in parts]
        return None if None in told else "、".join(map(str, told))
    found = _one(text, lang, deep) or _list(text, lang, deep)
    # A phrase that ends a sentence has its full stop from there.
    if found is None and text.endswith(".") and not BORDER.search(text):
        phrase = _phrase(text[:-1], lang, deep)
        found = None if phrase is None else f"{phrase}。"
    return found


def _one(text: str, lang: str, deep: int) -> str | None:
    """Say what is one sentence or phrase of the table."""
    for each in (text, text[:1].lower() + text[1:]):
        if found := next(_matches(each, lang, deep, whole=True), None):
            return found[1]
    return None


def _list(text: str, lang: str, deep: int) -> str | None:
    """Say each of what stands between commas or semicolons."""
    if BORDER.search(CODE.sub("`", text)):
        return None
    for sign, joined in ((SEMICOLON, "；"), (COMMA, "，")):
        parts = sign.split(text)
        if len(parts) < 2:
            continue
        told = [_value(part, lang, deep) for part in parts]
        if None not in told and told != parts:
            return joined.join(map(str, told))
    return None


def _value(text: str, lang: str, deep: int) -> str | None:
    """Say what stands in the place of a placeholder; None if nobody knows."""
    if not re.search(r"[A-Za-z]{2}", CODE.sub("", text)):
        return text
    told = _said(text, lang, deep - 1)
    return told if understood(told) else None


def _sentences(text: str, lang: str, deep: int) -> str:
    """Say one sentence after another; those that nobody knows stay."""
    told: list[str] = []
    rest = text
    while rest:
        found = next(_matches(rest, lang, deep, whole=False), None)
        if found is None:
            first = SENTENCE.match(rest)
            size = first.end() if first else len(rest)
            alone = rest[:size].rstrip()
            known = None if alone == text else _phrase(alone, lang, deep)
            found = size, known or alone
        size, chinese = found
        told.append(chinese)
        rest = rest[size:].lstrip()
    return _joined(told)


def _joined(parts: list[str]) -> str:
    """Join sentences: no space stands beside a full-width sign."""
    text = ""
    for part in parts:
        apart = text and text[-1] not in FULL and part[:1] not in FULL
        text += " " * bool(apart) + part
    return text


def _matches(
    text: str, lang: str, deep: int, *, whole: bool
) -> Iterator[tuple[int, str]]:
    """Yield how much of a text an entry covers, and what it makes of it.

    First come entries of which every part is understood, then those that the
    beginning alone tells from others.
    """
    by_word, free = _entries(lang)
    word = text.partition(" ")[0]
    rough = []
    for entry in (*by_word.get(word, ()), *by_word.get("", ()), *free):
        if not text.startswith(entry.literal):
            continue
        pattern = _pattern(entry)
        found = pattern.fullmatch(text) if whole else pattern.match(text)
        if not found:
            continue
        values = found.groups()
        # No phrase goes on into the next sentence; what somebody else says may.
        inner = values[:-1] if entry.open and entry.sure else values
        if any(BORDER.search(CODE.sub("`", value)) for value in inner):
            continue
        told = [_value(value, lang, deep) for value in values]
        if None not in told:
            yield found.end(), _filled(entry, told)
        elif entry.sure and not whole:
            rough.append((found.end(), entry, values))
    for end, entry, values in rough:
        yield (
            end,
            _filled(entry, [_said(value, lang, deep - 1) for value in values]),
        )


def _filled(entry: Entry, values: list) -> str:
    """Put the values into a translation."""
    names = PLACEHOLDER.findall(entry.english)
    by_name = dict(zip(names, values, strict=True))
    told = PLACEHOLDER.sub(
        lambda found: by_name.get(found[1], found[0]), entry.chinese
    )
    # A sentence that ends within another brings its own full stop.
    told = re.sub(r"([。？！])[。；，]", r"\1", told)
    return BETWEEN.sub("", told)


# Lines


def wrapped(
    text: str, lang: str, width: int, *, indent: str = "", more: str = ""
) -> list[str]:
    """Fold a text to lines: Chinese has no spaces, and is twice as wide.

    Args:
        text: What to fold.
        lang: Its language.
        width: How many columns a line may have.
        indent: What the first line begins with.
        more: What the others begin with.
    """
    if lang == ENGLISH:
        return textwrap.wrap(
            text,
            width,
            initial_indent=indent,
            subsequent_indent=more,
            break_on_hyphens=False,
        )
    lines, line = [], indent
    for piece in _pieces(text):
        if _columns(line + piece.rstrip()) > width and line.strip():
            lines.append(line.rstrip())
            line, piece = more, piece.lstrip()
        line += piece
    return [*lines, line.rstrip()] if line.strip() else lines


def _pieces(text: str) -> Iterator[str]:
    """Part a text where a line may end: between words, and Chinese signs."""
    opening = r"（“《"
    yield from re.findall(
        rf"[{opening}]?(?:[\u3400-\u9fff]|[^\s\u3400-\u9fff{CLOSING}{opening}]+"
        rf"|[{CLOSING}])[{CLOSING}]*\s*|\s+",
        text,
    )


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(c) in "WF" else 1 for c in text)
