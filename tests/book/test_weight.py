"""How heavy the pages are, whether they wait for scripts, whether they move.

Tables on a phone have their columns' widths before their rows arrive.

The rows of a table are left in ``_build/weight``; ``make test`` prints them.
"""

import gzip
import sys
from functools import cache

import pytest
from support.contents import CHAPTERS, ROOT, every_page_and_search
from support.harness import DESKTOP, PHONE

from companion.interview.model.bank import course

sys.path.append(str(ROOT / "book" / "_ext"))

from tables import FIT, column_widths, drawn

pytestmark = pytest.mark.browser

FIRST, FURTHER = 1_500_000, 150_000
# The one page that holds all the answers, in both languages: so much for each.
BANK, WHOLE_BANK = "book/interview", 1_630 * len(course())
MOST_SHIFT = 0.01


@pytest.fixture(scope="session")
def weigh(built_book, homes):
    """How many bytes files have on the way, as small as gzip makes them."""

    @cache
    def size(url):
        path = url.partition("?")[0].partition("#")[0]
        name = path.removeprefix(homes["server"]).lstrip("/")
        content = (built_book / name).read_bytes()
        return min(len(content), len(gzip.compress(content, 9)))

    return lambda urls: sum(
        size(url) for url in urls if url.startswith(homes["server"])
    )


@pytest.fixture(scope="session")
def known(pages, homes):
    """What a reader of the first chapter has already."""
    visit = pages.open(f"{homes['server']}/{CHAPTERS[0]}.html", settle=True)
    visit.context.close()
    return visit.needed


@every_page_and_search
def test_a_first_visit_is_light_and_a_further_page_lighter(
    read, weigh, known, document
):
    needed = read(document).needed
    first, further = weigh(needed), weigh(needed - known)
    folder = ROOT / "_build" / "weight"
    folder.mkdir(parents=True, exist_ok=True)
    row = f"{document:20} {first / 1000:8.0f} {further / 1000:8.0f}\n"
    (folder / document.replace("/", "-")).write_text(row, encoding="utf-8")
    assert first <= FIRST
    assert further <= (WHOLE_BANK if document == BANK else FURTHER)


@pytest.mark.parametrize("words", ["attention", "padding mask", "注意力"])
def test_a_query_is_as_light_as_a_further_page(
    pages, homes, read, weigh, words
):
    visit = pages.open(f"{homes['server']}/search.html?q={words}", settle=True)
    visit.context.close()
    assert weigh(visit.needed - read("search").needed) <= FURTHER


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_moves_once_it_is_shown(read, document, size):
    assert read(document, size=size).measured <= MOST_SHIFT


def test_from_disk_nothing_moves_either(read, document):
    assert read(document, where="disk", size=PHONE).measured <= MOST_SHIFT


def test_the_text_is_there_before_any_script(read, document):
    page = read(document, scripts=False).page
    article = page.locator(".bd-article")
    assert article.locator("h1").is_visible()
    assert len(article.inner_text()) > 500
    # A formula is drawn, and its source is nowhere.
    assert page.locator(".math:not(:has(svg))").count() == 0
    for formula in page.locator(".math svg").all()[:3]:
        box = formula.bounding_box()
        assert box is None or box["height"] > 3  # None: it is folded away.


# Where the columns of each table begin, with all rows and with the first one.
COLUMNS = """() => {
  const tables = [...document.querySelectorAll(".bd-article table")]
    .filter(x => x.querySelector("colgroup") && x.offsetParent);
  const begin = () => tables.map(table =>
    [...table.querySelectorAll("th")].map(x => x.getBoundingClientRect().x));
  const all = begin();
  for (const table of tables)
    for (const row of [...table.tBodies[0].rows].slice(1)) row.remove();
  return [all, begin()];
}"""


@pytest.mark.parametrize(
    "document", ["book/notation", "book/labs/10_training"], indirect=True
)
def test_the_columns_do_not_wait_for_their_rows(read, document):
    page = read(document, alone=True, size=PHONE).page
    whole, begun = page.evaluate(COLUMNS)
    assert len(whole) >= 3
    assert begun == whole


def test_each_word_fits_and_what_is_left_goes_to_the_longer_text():
    # Two signs between columns: "a" takes 3 and "twelve" 8, so 33 are left.
    widths = column_widths([["a", "twelve twelve twelve"], ["a", "b"]])
    assert widths == [3, 41]
    assert sum(widths) == FIT
    widths = column_widths([["ab cd", "ab cd ef gh"], ["", ""]])
    assert widths == pytest.approx([4 + 36 * 3 / 12, 4 + 36 * 9 / 12])


def test_what_cannot_fit_keeps_the_widths_that_it_finds():
    assert column_widths([["a"] * 5]) == []
    assert column_widths([["a" * 22, "b" * 22]]) == []


def test_chinese_breaks_after_four_signs_and_a_formula_nowhere():
    first, second = column_widths([["位置编码 是", "ab"]])
    assert first - second == pytest.approx(8 - 2 + (44 - 14))
    assert drawn(r"\ln \frac{3}{2} = 0.405") == "xxxx32===0.405"
