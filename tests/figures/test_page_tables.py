"""Two texts in pages: each reads what it wrote, and little is copied."""

import re
from html import unescape

import pytest
from figures.registry import PROMPT, figure_of, parts_at

from companion.efficiency import PagedLists
from companion.figures import page_tables
from companion.figures.gallery.page_tables import PAGES, SIZE, history

MOMENTS = history(PROMPT, "well", "long")
START, WHOLE, FORKED, COPIED, BOTH, ENDED = 0, 3, 4, 5, 6, 7


def read(moment, name):
    """What a text reads through its table."""
    table = moment.tables[name]
    return [token for page in table for token in moment.pages[page]]


def test_each_text_reads_its_own_through_its_table():
    assert read(MOMENTS[WHOLE], "A") == PROMPT
    assert read(MOMENTS[FORKED], "A") == read(MOMENTS[FORKED], "B") == PROMPT
    assert read(MOMENTS[BOTH], "A") == [*PROMPT, "well"]
    assert read(MOMENTS[BOTH], "B") == [*PROMPT, "long"]
    assert read(MOMENTS[ENDED], "B") == [*PROMPT, "long"]


def test_the_package_shares_as_many_pages():
    pages = PagedLists(PAGES, SIZE)
    for token in PROMPT:
        pages.append("A", token)
    pages.fork("A", "B")
    pages.append("B", "long")
    pages.append("A", "well")
    used = {i for table in MOMENTS[BOTH].tables.values() for i in table}
    assert len(used) == pages.used_blocks == 4
    assert pages.read("B") == read(MOMENTS[BOTH], "B")


def test_only_the_last_page_is_ever_copied():
    before, after = MOMENTS[FORKED].tables, MOMENTS[COPIED].tables
    assert before["A"] == before["B"] == after["A"] == [3, 4, 5]
    assert after["B"] == [3, 4, 1]


@pytest.mark.parametrize("step", range(8))
def test_what_is_drawn_is_what_lies_there(step):
    parts, moment = parts_at(figure_of("page_tables"), step), MOMENTS[step]
    drawn = re.findall(r'<text x="[^"]*" y="[^"]*">(.*?)</text>',
                       parts["pages"][0])  # fmt: skip
    assert [unescape(each) for each in drawn] == [
        token for page in moment.pages for token in page
    ]
    tables = re.findall(r'<text x="[^"]*" y="[^"]*">(\d+)</text>',
                        parts["tables"][0])  # fmt: skip
    assert [int(each) for each in tables] == [
        page for table in moment.tables.values() for page in table
    ]
    assert parts["tables"][0].count('class="link"') == len(tables)
    assert unescape(parts["says"][0]) == moment.says


@pytest.mark.bad_input
@pytest.mark.parametrize("n", [8, 12])
def test_a_prompt_of_another_length_is_refused(n):
    with pytest.raises(ValueError, match=f"9 to 11 tokens, got {n}"):
        page_tables(["a"] * n, "b", "c")
