"""On a phone, a table's columns have their widths before its rows are there.

A browser that lays a table out by what its cells hold moves the columns while
rows still arrive. It is told here how wide each column will be, as it would
find out itself: the longest word first, the rest by what is left to wrap.
``book.css`` lets these widths count on narrow screens.
"""

import re
from unicodedata import east_asian_width

from docutils import nodes
from sphinx.application import Sphinx

# So many characters stand beside each other on a phone, and so many columns
# can be read there. What does not fit keeps its widths, and scrolls.
FIT, MOST_COLUMNS = 44, 4
# The room between two columns, in characters, and a cell that is long enough.
GAP, LONG = 2, 90
# A run of Chinese signs and their punctuation.
WIDE = r"[\u3000-\u9fff\uff00-\uffef]+"


def is_wide(sign: str) -> bool:
    """Tell whether a sign takes the room of two letters, as Chinese ones do."""
    return east_asian_width(sign) in "WF"


def length(text: str) -> int:
    """Return how many letters wide a text is."""
    return sum(1 + is_wide(sign) for sign in text)


def said(cell: nodes.Node) -> str:
    """Return what a cell shows; a formula is one word about as long as it."""
    return "".join(
        drawn(leaf.astext())
        if isinstance(leaf.parent, nodes.math)
        else leaf.astext()
        for leaf in cell.findall(nodes.Text)
    )


def drawn(formula: str) -> str:
    r"""Return letters that are about as wide as a formula in LaTeX.

    >>> drawn(r"\ln \frac{3}{2} = 0.405")
    'xxxx32===0.405'
    """
    names = re.sub(r"\\[a-zA-Z]+", "xx", formula)
    return re.sub(r"[{}\s_^]", "", names).replace("=", "===")


def longest_word(text: str) -> int:
    """Return the length of what should not be broken.

    A Chinese word has no end that can be seen: four of its signs count.
    """
    wide = (min(8, length(x)) for x in re.findall(WIDE, text))
    return max(*map(length, re.sub(WIDE, " ", text).split()), *wide, 1, 1)


def column_widths(rows: list[list[str]]) -> list[float]:
    """Return the characters that each column gets, or nothing if none fit."""
    columns = list(zip(*rows, strict=True))
    words = [GAP + max(map(longest_word, column)) for column in columns]
    wishes = [
        max(word, min(LONG, GAP + max(map(length, column))))
        for word, column in zip(words, columns, strict=True)
    ]
    spare = FIT - sum(words)
    if len(columns) > MOST_COLUMNS or spare < 0:
        return []
    open_ = [wish - word for wish, word in zip(wishes, words, strict=True)]
    return [
        word + spare * (more / sum(open_) if sum(open_) else 1 / len(words))
        for word, more in zip(words, open_, strict=True)
    ]


def give_widths(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Write widths beside the columns of each table that fits a phone."""
    for table in doctree.findall(nodes.table):
        rows = [
            [said(cell) for cell in row.findall(nodes.entry)]
            for row in table.findall(nodes.row)
        ]
        if len({len(row) for row in rows}) != 1:
            continue  # A cell over several columns.
        widths = column_widths(rows)
        if not widths:
            continue
        for column, width in zip(
            table.findall(nodes.colspec), widths, strict=True
        ):
            column["colwidth"] = width
        table["classes"] = ["colwidths-given"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("doctree-resolved", give_widths)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
