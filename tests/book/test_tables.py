"""On a phone a table's columns stay where they are while its rows arrive."""

import sys

import pytest
from support.contents import ROOT
from support.harness import PHONE

sys.path.append(str(ROOT / "book" / "_ext"))

from tables import FIT, column_widths, drawn

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


@pytest.mark.browser
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
