"""The little markup of the bank's texts, and what it looks like in a page.

    an empty line      begins a new paragraph
    `code`             is printed as code
    **words**          are stressed
    $2nd_{model}^2$    is a formula: one or two letters are slanted, as in nd,
                       a word is not, as in tanh; ``_`` lowers and ``^``
                       raises the next sign or what {…} holds

Formulas are plain text with the signs of Unicode (√ Σ ∂ · ᵀ), so that they can
be read anywhere: in a terminal, aloud, and without a script. CommonMark would
not do: it does not end **…。** before a Chinese character.
"""

import re
from html import escape

__all__ = ["to_html", "to_line", "to_plain"]

UNBROKEN = 22
"""A formula of fewer signs stands on one line."""

_PIECE = re.compile(r"`([^`]+)`|\$([^$]+)\$|\*\*([^*]+)\*\*")
_SIGN = re.compile(r"([_^])(?:\{([^{}]+)\}|(.))|([A-Za-z]+)|(.)", re.DOTALL)

# Chinese is written without spaces, so a line break in it is no space either.
_WIDE = r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
_BREAK = re.compile(rf"(?<={_WIDE})\n(?={_WIDE})|\n(?=[，。；：？！、）])")


def to_html(text: str) -> str:
    """Turn a text into paragraphs of HTML.

    Example:
        >>> to_html("$d_k$ is **64**.")
        '<p><span class="formula"><i>d</i><sub><i>k</i></sub></span> is \
<strong>64</strong>.</p>'
    """
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "".join(f"<p>{to_line(each)}</p>" for each in paragraphs)


def to_line(text: str) -> str:
    """Turn a text of one paragraph into HTML that may stand in a line."""
    parts, end = [], 0
    text = _BREAK.sub("", text)
    for match in _PIECE.finditer(text):
        code, formula, stressed = match.groups()
        parts.append(escape(text[end : match.start()]))
        if code:
            parts.append(f"<code>{escape(code)}</code>")
        elif formula:
            parts.append(f'<span class="formula">{_formula(formula)}</span>')
        else:
            parts.append(f"<strong>{escape(stressed)}</strong>")
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def to_plain(text: str) -> str:
    """Turn a text into one line without markup.

    Example:
        >>> to_plain("$d_k$ is **64**.")
        'd_k is 64.'
    """
    text = _BREAK.sub("", text.strip())
    text = _PIECE.sub(lambda m: m[1] or _bare(m[2]) or m[3], text)
    return " ".join(text.split())


def _formula(text: str) -> str:
    if len(text) < UNBROKEN:
        text = text.replace(" ", "\N{NO-BREAK SPACE}")
    return "".join(_sign(match) for match in _SIGN.finditer(text))


def _sign(match: re.Match) -> str:
    mark, group, one, word, other = match.groups()
    if mark:
        tag = "sub" if mark == "_" else "sup"
        return f"<{tag}>{_formula(group or one)}</{tag}>"
    if word and len(word) < 3:
        return f"<i>{word}</i>"
    return word or escape(other.replace("-", "\N{MINUS SIGN}"))


def _bare(formula: str | None) -> str:
    return re.sub(r"[{}]", "", formula or "")
