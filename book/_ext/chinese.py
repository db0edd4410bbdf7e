"""A search that finds Chinese words too.

Chinese has no spaces, so a run of characters is indexed by its pairs, 学习率 as
学习 and 习率, and what is searched for is cut in the same way. No dictionary has
to know the word.
"""

import re

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

HAN = "\u3400-\u9fff"
PIECES = re.compile(rf"[{HAN}]+|[^\W{HAN}]+")


def cut(text: str, single: bool) -> list[str]:
    """Words; of a run of characters its pairs, and its characters if asked."""
    words = []
    for piece in PIECES.findall(text):
        if re.match(f"[{HAN}]", piece) is None:
            words.append(piece)
            continue
        if single or len(piece) == 1:
            words += piece
        words += map("".join, zip(piece, piece[1:], strict=False))
    return words


class EnglishAndChinese(SearchEnglish):
    """English by its stems, Chinese by its pairs of characters."""

    # The same for what a reader types.
    js_splitter_code = r"""
var splitQuery = (query) =>
  (query.match(/[\u3400-\u9fff]+|(?:(?![\u3400-\u9fff])[\p{L}\p{N}_])+/gu) || [])
    .flatMap((piece) => /^[\u3400-\u9fff]{2}/.test(piece)
      ? [...piece].slice(1).map((next, i) => piece[i] + next) : [piece]);
"""

    def split(self, input: str) -> list[str]:
        """What a page is found by."""
        return cut(input, single=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_search_language(EnglishAndChinese)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
