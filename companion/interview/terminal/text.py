"""The bank's texts in a terminal: stressed, lowered, raised, and wrapped.

What a text means is decided once, by ``markup.to_html``; here its HTML becomes
what a terminal can show. Indices become the small letters and digits of
Unicode where all of them exist: h_t is hₜ, while d_model stays d_model.
"""

import re
from html.parser import HTMLParser

from rich.cells import cell_len
from rich.text import Text as Styled

from companion.interview.model.markup import to_html

__all__ = ["paragraphs", "wrapped"]

LOWERED: dict[str, str] = dict(
    zip(
        "0123456789+−=()aehijklmnoprstuvxβγρφχ",
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ",
        strict=True,
    )
)
RAISED: dict[str, str] = dict(
    zip(
        "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVW",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂ",
        strict=True,
    )
)
STYLES = {"code": "cyan", "strong": "bold"}
SHIFTED = {"sub": ("_", LOWERED), "sup": ("^", RAISED)}

_OPENS, _CLOSES = "（《“‘「【〔", "，。、；：？！）》”’」】〕…—·%"
_WIDE = r"\u2e80-\u9fff\uff00-\uffef"
# A Chinese character, or a run of others, with the marks that stay beside it.
_TOKEN = re.compile(
    rf"\s+|[{_OPENS}]*([^ \n{_OPENS}{_WIDE}]+|[^\s{_OPENS}])[{_CLOSES}]*|\S"
)


def paragraphs(text: str) -> list[Styled]:
    """Turn a text of the bank into paragraphs that a terminal can show."""
    reader = _Reader()
    reader.feed(to_html(text))
    reader.close()
    return reader.paragraphs


def wrapped(text: Styled, width: int) -> list[Styled]:
    """Wrap a text in lines of at most ``width`` cells.

    Chinese is broken between any two characters, but no line begins with a
    comma or a full stop. A word that is longer than a line is cut.
    """
    ends, used, start = [], 0, 0
    for piece in _pieces(text.plain, width):
        cells = cell_len(piece)
        if used + cells > width and not piece.isspace():
            ends.append(start)
            used = 0
        used += cells
        start += len(piece)
    lines = list(text.divide(ends))
    for line in lines:
        line.rstrip()
    return lines


def _pieces(plain: str, width: int) -> list[str]:
    """Return what may not be broken, in order; none wider than ``width``."""
    pieces = []
    for match in _TOKEN.finditer(plain):
        piece = ""
        for character in match[0]:
            if cell_len(piece + character) > width:
                pieces.append(piece)
                piece = ""
            piece += character
        pieces.append(piece)
    return pieces


class _Reader(HTMLParser):
    """Builds the paragraphs, and keeps which tags are open."""

    def __init__(self):
        super().__init__()
        self.paragraphs: list[Styled] = []
        self.styles: list[str] = []
        self.shifts: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        if tag == "p":
            self.paragraphs.append(Styled())
        elif tag in SHIFTED:
            self.shifts.append([])
        elif tag in STYLES:
            self.styles.append(STYLES[tag])

    def handle_endtag(self, tag: str) -> None:
        if tag in SHIFTED:
            self.handle_data(_shifted("".join(self.shifts.pop()), tag))
        elif tag in STYLES:
            self.styles.pop()

    def handle_data(self, data: str) -> None:
        if self.shifts:
            self.shifts[-1].append(data)
        else:
            data = re.sub(r"[ \n]+", " ", data)
            self.paragraphs[-1].append(data, " ".join(self.styles))


def _shifted(text: str, tag: str) -> str:
    mark, small = SHIFTED[tag]
    plain = re.sub(r"[ \N{NO-BREAK SPACE}]", "", text)
    if all(sign in small for sign in plain):
        return "".join(small[sign] for sign in plain)
    one = plain.isalnum() or len(plain) == 1
    return f"{mark}{text}" if one else f"{mark}({text})"
