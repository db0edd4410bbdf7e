"""A paged cache: two texts, their block tables, and the pages they share."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from companion.efficiency import BlockTables
from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, played, slider

SIZE, PAGES = 4, 6
"""Slots of a page, and pages of the pool."""
LEFT, PAGE, SLOT, HIGH, EVERY = 30, 158, 44, 28, 37
"""Where the tables and pages begin, how wide a slot and how high a row is."""
CAPTION = """At the left, a table for each text: which page holds its first four
tokens, its next four, and so on. At the right, the pool. Each token stands for
its keys and values in all layers. Blue and straight: text A; orange and dashed:
text B; grey: other people's."""


class Moment(NamedTuple):
    """What lies where, and what has just happened.

    Attributes:
        tables: The pages of each text.
        pages: The tokens of each page, from the first slot on.
        others: Pages of others.
        says: What has just happened.
    """

    tables: dict[str, list[int]]
    pages: list[list[str]]
    others: list[int]
    says: str


def page_tables(prompt: Sequence[str], first: str, second: str) -> Figure:
    """Step through two texts that begin alike, in a cache of pages.

    Args:
        prompt: What both begin with, 9 to 11 tokens, no multiple of 4.
        first: How text A goes on.
        second: How text B goes on.

    Raises:
        ValueError: the prompt has another length.

    Example:
        >>> page_tables("the cat sat on the mat and it slept".split(), "well",
        ...     "long").text
        "Pages. A pool of 6 pages with 4 slots each. Pages 0 and 2 are other \
people's."
    """
    if not 9 <= len(prompt) <= 11:
        raise ValueError(f"prompt: expected 9 to 11 tokens, got {len(prompt)}")
    moments = history(prompt, first, second)

    def show(step: int) -> Parts:
        return {
            "tables": _tables(moments[step]),
            "pages": _pages(moments[step]),
            "says": escape(moments[step].says),
        }

    html = played(
        "pages",
        show,
        [slider("Step", [f"{i + 1} of {len(moments)}" for i in
                         range(len(moments))], 0)],
        _body,
        module=__file__,
        label="Two texts in a cache of pages",
        caption=CAPTION,
        sheets=["diagram"],
    )  # fmt: skip
    return Figure(html, f"Pages. {moments[0].says}")


def history(prompt: Sequence[str], first: str, second: str) -> list[Moment]:
    """List what happens to the pool, as the package's tables tell it."""
    tables = BlockTables(PAGES, SIZE)
    pages: list[list[str]] = [[] for _ in range(PAGES)]
    for other in ("x", "y", "z"):
        tables.append(other)
    tables.free("y")
    moments: list[Moment] = []

    def tell(says: str) -> None:
        known = {
            name: tables.table(name) for name in "AB" if tables.length(name)
        }
        others = [tables.table(name)[0] for name in "xz"]
        used = {i for table in known.values() for i in table}
        shown = [p[:] if i in used else [] for i, p in enumerate(pages)]
        moments.append(Moment(known, shown, others, says))

    def write(name: str, token: str) -> tuple[int, int | None]:
        page, slot, source = tables.append(name)
        if source is not None:
            pages[page] = pages[source][:slot]
        pages[page] = [*pages[page][:slot], token]
        return page, source

    tell(
        f"A pool of {PAGES} pages with {SIZE} slots each. Pages 0 and 2 are "
        "other people's."
    )
    for start in range(0, len(prompt), SIZE):
        part = prompt[start : start + SIZE]
        page = 0
        for token in part:
            page, _ = write("A", token)
        empty = SIZE - len(part)
        says = (
            f"Text A has {start + len(part)} tokens. Page {page} was free, and "
            "its number is written into A's table."
        )
        if empty:
            says += f" {empty} of its slots are empty; no other page has any."
        tell(says)
    shared = tables.table("A")
    tables.fork("A", "B")
    tell(
        f"Text B begins with the same {len(prompt)} tokens. Only the table is "
        f"copied, {len(shared)} numbers; each of these pages now has two users."
    )
    page, source = write("B", second)
    tell(
        f"B writes “{second}”. Its last page, {source}, is A's too, so it is "
        f"copied to page {page} first: copy on write. The full pages stay "
        "shared."
    )
    page, _ = write("A", first)
    tell(f"A writes “{first}” into page {page}, which is its own again.")
    tables.free("A")
    tell(
        f"A has ended. Page {page} is free; the others stay, because B uses "
        "them."
    )
    return moments


def _row(i: int, name: str) -> int:
    return 36 + i * 30 + (118 if name == "B" else 0)


def _line(page: int) -> int:
    return 22 + page * EVERY


def _tables(moment: Moment) -> str:
    html = ""
    for name, kind in (("A", "first"), ("B", "second")):
        table = moment.tables.get(name, [])
        html += f'<g class="{kind}">'
        html += label(LEFT + 22, _row(0, name) - 9, f"table of {name}", "note")
        for i, page in enumerate(table):
            y = _row(i, name)
            html += (
                f'<rect x="{LEFT}" y="{y}" width="44" height="25" rx="3"/>'
                + label(LEFT + 22, y + 17, str(page))
                + f'<path class="link" d="M{LEFT + 45} {y + 12.5:g}'
                f'L{PAGE - 16} {_line(page) + HIGH / 2:g}"/>'
            )
        html += "</g>"
    return html


def _pages(moment: Moment) -> str:
    html = ""
    for page, tokens in enumerate(moment.pages):
        users = [n for n, table in moment.tables.items() if page in table]
        kind = {"A": "first", "B": "second", "AB": "both"}.get("".join(users))
        if page in moment.others:
            kind = "other"
        y = _line(page)
        html += f'<g class="{kind or "free"}">'
        html += label(PAGE - 8, y + 18, str(page), "note")
        for slot in range(SIZE):
            text = tokens[slot] if slot < len(tokens) else ""
            taken = text or page in moment.others
            html += (
                f'<rect x="{PAGE + SLOT * slot:g}" y="{y:g}" '
                f'width="{SLOT - 1}" height="{HIGH}" rx="2" '
                f'class="{"slot" if taken else "empty"}"/>'
            )
            if text:
                html += label(PAGE + SLOT * (slot + 0.5), y + 18, text)
        html += "</g>"
    return html


def _body(parts: Parts) -> str:
    picture = drawing(
        _line(PAGES) + 2,
        "Two tables of page numbers, a line from each number to its page, and "
        "six pages of four slots with the tokens in them.",
        label(PAGE + 2 * SLOT, 14, "the pool of pages", "note"),
        f'<g data-part="tables">{parts["tables"]}</g>',
        f'<g data-part="pages">{parts["pages"]}</g>',
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p></div>"""
