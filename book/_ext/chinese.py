"""A search that finds Chinese words too.

Chinese has no spaces, so a run of characters is indexed by its pairs,
学习率 as 学习 and 习率, and what is searched for is cut in the same way. No
dictionary has to know the word. Particles part the runs: their pairs are no
words, and would be a third of the index.
"""

import re
from itertools import pairwise

from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

PARTICLES = "的了是在和与这那你我他她它们吗呢吧也都就把被而么"
HAN = "\\u3400-\\u9fff"
# Python's and JavaScript's expressions are one, but for what a letter is.
RUN = f"(?:(?![{PARTICLES}])[{HAN}])+"
PIECES = re.compile(rf"{RUN}|[^\W{HAN}]+")


class EnglishAndChinese(SearchEnglish):
    """English by its stems, Chinese by characters and pairs of characters."""

    # From disk a page cannot read another, so no excerpt is asked for.
    js_splitter_code = rf"""
if (location.protocol === "file:")
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
var splitQuery = (query) =>
  (query.match(/{RUN}|(?:(?![{HAN}])[\p{{L}}\p{{N}}_])+/gu) || [])
    .flatMap((piece) => /^[{HAN}]{{2}}/.test(piece)
      ? [...piece].slice(1).map((next, i) => piece[i] + next) : [piece]);
"""

    def split(self, input: str) -> list[str]:
        """List what a text is found by."""
        words = []
        for piece in PIECES.findall(input):
            if re.match(f"[{HAN}]", piece):
                words += [*piece, *map("".join, pairwise(piece))]
            else:
                words.append(piece)
        return words

    def word_filter(self, word: str) -> bool:
        """Leave out numbers: nobody searches for one by itself."""
        return super().word_filter(word) and not word.isdigit()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.add_search_language(EnglishAndChinese)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
