"""The words of a stored output: found, and said in another language.

An output is HTML that a notebook has stored: figures, tables, quizzes, and the
scripts of these with their data (script_words.py). Its words are cut where a
block, a label or an attribute begins and ends, so that a sentence with a word
in it that is bold or code stays whole. Numbers are left out of a message,
``{0}``, ``{1}`` …: a sentence that a figure says in two hundred states is
translated once, and the numbers are carried over.

What a report on contracts says is not among them: the package has a table of
its own words (companion/words), which is asked first.
"""

import html as markup
import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from words.script_words import in_script

Translate = Callable[[str], str]

# What stands in a line of text. A span is a part of a drawing.
INLINE = "a|b|br|code|em|i|kbd|mark|small|strong|sub|sup|tspan"
TOKEN = re.compile(
    r"<(script|style|pre)\b.*?</\1>|<!--.*?-->|<[^>]*>|[^<]+", re.S
)
TAG = re.compile(rf"</?(?:{INLINE})\b[^>]*>")
# Around a whole message it belongs to the drawing, not to the words.
AROUND = re.compile(rf"^<({INLINE})\b[^>]*>((?:(?!<\1\b).)*)</\1>$", re.S)
SPOKEN = re.compile(
    r'(\s(?:alt|aria-label|aria-valuetext|(?:data-bs-)?title|placeholder)=")([^"]*)(")'
)
# In a script's data (companion/figures/kit/play.js): what is shown, and what is
# an attribute or a selector.
SAID = {"name", "names", "places", "texts", "ask", "of"}
UNSAID = re.compile(r"@(?!alt|aria-|title)|^(kind|front|rows)$")
DATA = re.compile(r"^(.*?)(const data = )(.*?)(;\n\(function find)", re.S)
# So is a token that stands between quotation marks.
NUMBER = re.compile(
    r"(?<![\w.{])[−-]?\d+(?:,\d{3})*(?:\.\d+)*(?:×10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?(?![\w}])"
    r"|“[^“”\s]+”"
)
ASCII = re.compile(r"[A-Za-z]{2}")
# Beside a Chinese word of a figure its sentence has a space in English only.
HAN = "\u4e00-\u9fff"
BEFORE_WORD = re.compile(
    rf'(?<=[{HAN}，。：；]) +(?=<(?:b|span) lang="zh"[^>]*>)'
)
AFTER_WORD = re.compile(
    rf'(<(b|span) lang="zh"[^>]*>[{HAN}]+</\2>) +(?=[{HAN}，。：；])'
)
CODE = re.compile(r"<code\b.*?</code>|<[^>]*>|&\w+;", re.S)
PACKAGE = Path(__file__).parents[3] / "companion" / "words" / "__init__.py"
REPORT = re.compile(r"<figure\b[^>]*\bcompanion-check\b")


def is_said(text: str) -> bool:
    """Tell if a reader of another language needs a translation of a text."""
    return bool(ASCII.search(CODE.sub(" ", text)))


def message(text: str) -> tuple[str, list[str]]:
    """Part a text from its numbers.

    Example:
        >>> message("After 4 words: 我 counts 3.375.")
        ('After {0} words: 我 counts {1}.', ['4', '3.375'])
    """
    numbers: list[str] = []

    def take(found: re.Match) -> str:
        numbers.append(found[0])
        return f"{{{len(numbers) - 1}}}"

    parts = re.split(r"(<[^>]*>)", " ".join(text.split()))
    return "".join(
        part if part.startswith("<") else NUMBER.sub(take, part)
        for part in parts
    ), numbers


def alike(text: str, translation: str) -> tuple[str, str]:
    """Part both sides of a translation from their numbers.

    Example:
        >>> alike("Case 2: NaN in 16 bits", "案例 2：16 位里的 NaN")
        ('Case {0}: NaN in {1} bits', '案例 {0}：{1} 位里的 NaN')
    """
    words, numbers = message(text)

    def place(found: re.Match) -> str:
        if found[0] not in numbers:
            return found[0]
        number = numbers.index(found[0])
        numbers[number] = ""
        return f"{{{number}}}"

    return words, NUMBER.sub(place, translation)


def said(text: str, translate: Translate) -> str:
    """Say a text in the other language, with its numbers and its margins."""
    core = text.strip()
    if not is_said(core):
        return text
    around = AROUND.match(core)
    if around and is_said(around[2]):
        return text.replace(around[2], said(around[2], translate))
    words, numbers = message(core)
    new = translate(words)
    if new == words:
        return text
    for place, number in enumerate(numbers):
        new = new.replace(f"{{{place}}}", number)
    return text.replace(core, new)


@cache
def package() -> ModuleType:
    """Load the package's own words; the rest of it would need PyTorch."""
    spec = importlib.util.spec_from_file_location("companion_words", PACKAGE)
    if spec is None or spec.loader is None:
        raise ImportError(f"{PACKAGE}: expected a module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_report(text: str, translate: Translate) -> str:
    """Say a line of a report by the package's table, or by ours."""
    core = text.strip()
    if not is_said(core):
        return text
    if "<br>" in core:
        return "<br>".join(in_report(x, translate) for x in core.split("<br>"))
    plain = re.sub(r"</?code>", "`", core)
    plain = markup.unescape(re.sub(r"</?strong>", "", plain))
    told = package().say(plain)
    if told == plain or "<" in plain or not package().understood(told):
        return said(text, translate)
    told = markup.escape(told)
    if "<code>" in core:  # In the name of a contract it is not set as code.
        told = re.sub(r"`([^`]+)`", r"<code>\1</code>", told)
    if core.startswith("<strong>"):
        first = re.match(r".*?(?:\. |[。？！]|$)", told, re.S)[0]
        told = f"<strong>{first.rstrip()}</strong>{told[len(first) :]}"
    return text.replace(core, told.rstrip())


def in_html(html: str, translate: Translate) -> str:
    """Translate the words of an output.

    Args:
        html: What a notebook has stored.
        translate: Gives for a message, without its numbers, what to write.
    """
    done: list[str] = []
    line: list[str] = []
    say = said

    def flush() -> None:
        done.append(say("".join(line), translate))
        line.clear()

    for token in TOKEN.finditer(html):
        text = token[0]
        if text.startswith("<figure"):
            flush()
            say = in_report if REPORT.match(text) else said
        elif text == "</figure>":
            flush()
            say = said
        if not text.startswith("<") or TAG.fullmatch(text):
            line.append(_attributes(text, translate, say))
            continue
        flush()
        if text.startswith("<script"):
            text = DATA.sub(
                lambda found: _script(*found.groups(), translate), text
            )
        done.append(_attributes(text, translate, say))
    flush()
    return AFTER_WORD.sub(r"\1", BEFORE_WORD.sub("", "".join(done)))


def _attributes(
    tag: str, translate: Translate, say: Callable[[str, Translate], str]
) -> str:
    if not tag.startswith("<") or tag.startswith(("<script", "<pre", "<style")):
        return tag
    return SPOKEN.sub(
        lambda found: found[1] + say(found[2], translate) + found[3], tag
    )


def _script(
    code: str, const: str, data: str, mount: str, translate: Translate
) -> str:
    """Translate a figure's script, and the data that it gets."""
    code, data = in_script(code, translate), _data(data, translate)
    return f"{code}{const}{data}{mount}"


def _data(code: str, translate: Translate) -> str:
    """Translate the strings of a script's data that are words or HTML."""

    def walk(value: object, words: bool = False) -> object:
        match value:
            case dict():
                return {
                    name: each
                    if UNSAID.search(name)
                    else walk(each, words or name in SAID)
                    for name, each in value.items()
                }
            case list():
                return [walk(each, words) for each in value]
            case str() if re.search("<[a-z]", value):
                return in_html(value, translate)
            case str() if words or " " in value:
                return said(value, translate)
        return value

    try:
        data = json.loads(code)
    except ValueError:  # Not all of it is JSON: a script of another kind.
        return code
    new = walk(data)
    if new == data:
        return code
    text = json.dumps(new, ensure_ascii=False, separators=(",", ":"))
    return text.replace("</", "<\\/")


def messages(html: str) -> Iterator[str]:
    """List the messages of an output, each once, in its order."""
    found: dict[str, None] = {}

    def note(words: str) -> str:
        found[words] = None
        return words

    in_html(html, note)
    return iter(found)
