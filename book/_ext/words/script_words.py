"""The words of a figure's script: found, and said in another language.

A figure that computes what it says keeps its sentences in its own view.js, as
texts that ``+`` may join. Here each is found, with its expressions as ``{0}``,
``{1}`` …, and the Chinese edition's pages get scripts that say it in Chinese:
what a page weighs stays the same, and so does every stored output.

What is said is told from selectors and names by how it looks: it begins with a
word in capitals, or has a word that stands free. A single small word is said
where it stands between backticks.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

Translate = Callable[[str], str]

# Where a text cannot begin: in a comment, or in a pattern.
SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?<=[=(:,!&|?{;\[])(\s*)/(?![/* ])"
    r"(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/",
    re.S,
)
PLAIN = re.compile(r'"((?:\\.|[^"\\\n])*)"')
JOINED = re.compile(r"\s*\+\s*(?=[\"`])")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
PLACE = re.compile(r"\{(\d+)\}")
SELECTOR = re.compile(r"[.#\[<]|(?:svg|t(?:able|body|head|[dhr]))\b")
CAPITAL = re.compile(r"[A-Z][a-z]+(?!\w)")
FREE = re.compile(r"(?:^|(?<= ))[a-z]{2,}(?=[ .,?]|$)")
HAN = re.compile("[\u3400-\u9fff]")


class Text(NamedTuple):
    """A text of a script, or several that are joined.

    Attributes:
        end: Where it ends.
        words: What it says, with places for its expressions.
        values: The expressions, as they stand.
        quoted: Whether a part of it stands between backticks.
    """

    end: int
    words: str
    values: list[str]
    quoted: bool

    @property
    def message(self) -> str:
        """What there is to translate."""
        return " ".join(self.words.split())

    def is_said(self) -> bool:
        """Tell words from selectors, names of events and the like."""
        words = self.message
        if SELECTOR.match(words):
            return False
        free = FREE.search(words) and (" " in words or self.quoted)
        return bool(CAPITAL.match(words) or free)


def in_script(code: str, translate: Translate) -> str:
    """Translate what a script says.

    A script with Chinese in it speaks both languages already.

    Example:
        >>> said = {"{0} of {1}": "第 {0} 步，共 {1} 步"}
        >>> in_script("show(`${at + 1} of ${last}`, 'a of b')", said.get)
        "show(`第 ${at + 1} 步，共 ${last} 步`, 'a of b')"
    """
    return code if HAN.search(code) else "".join(_pieces(code, translate))


def _pieces(code: str, translate: Translate) -> Iterator[str]:
    at = 0
    while at < len(code):
        if skipped := SKIPPED.match(code, at):
            yield skipped[0]
            at = skipped.end()
        elif text := _text(code, at):
            yield _said(code[at : text.end], text, translate)
            at = text.end
        else:
            yield code[at]
            at += 1


def _said(code: str, text: Text, translate: Translate) -> str:
    """Write a text anew; one that stays as it is may have words inside."""
    words = translate(text.message) if text.is_said() else text.message
    if words == text.message:
        return _inside(code, text, translate)
    if not text.values:
        return json.dumps(words, ensure_ascii=False)
    values = [in_script(value, translate) for value in text.values]
    pieces = PLACE.split(re.sub(r"[\\`]|\$(?=\{)", r"\\\g<0>", words))
    pieces[1::2] = (f"${{{values[int(place)]}}}" for place in pieces[1::2])
    return f"`{''.join(pieces)}`"


def _inside(code: str, text: Text, translate: Translate) -> str:
    """Translate the texts in the expressions of a text, from left to right."""
    done = ""
    for value in text.values:
        before, found, code = code.partition(f"${{{value}}}")
        new = in_script(value, translate)
        done += before + found.replace(value, new)
    return done + code


def _text(code: str, at: int) -> Text | None:
    """Read the text that begins here, if one does."""
    words, values, quoted = "", [], False
    while True:
        if plain := PLAIN.match(code, at):
            words += _plain(plain[1])
            at = plain.end()
        elif code[at] == "`":
            quoted = True
            piece, at = _template(code, at + 1, values)
            words += piece
        else:
            return None
        joined = JOINED.match(code, at)
        if not joined:
            return Text(at, words, values, quoted)
        at = joined.end()


def _template(code: str, at: int, values: list[str]) -> tuple[str, int]:
    """Read up to the closing backtick; expressions go into ``values``."""
    words = ""
    while code[at] != "`":
        if code.startswith("${", at):
            end = _closed(code, at + 2)
            words += f"{{{len(values)}}}"
            values.append(code[at + 2 : end])
            at = end + 1
        else:
            end = at + 2 if code[at] == "\\" else at + 1
            # \u00a0 is five signs more, which mean nothing alone.
            if code.startswith("\\u", at):
                end = at + 6
            words += _plain(code[at:end])
            at = end
    return words, at + 1


def _closed(code: str, at: int) -> int:
    """Find the brace that closes an expression."""
    depth = 0
    while code[at] != "}" or depth:
        if text := _text(code, at):
            at = text.end
            continue
        depth += (code[at] == "{") - (code[at] == "}")
        at += 1
    return at


def _plain(text: str) -> str:
    """Write a text without its escapes."""
    return ESCAPE.sub(
        lambda found: (
            chr(int(found[1], 16))
            if found[1]
            else {"n": "\n", "t": "\t"}.get(found[2], found[2])
        ),
        text,
    )
