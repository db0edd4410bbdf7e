"""The pages that are no notebooks: what they show is what the package does."""

import doctest
import re
from pathlib import Path

import pytest

import companion.attention
from companion.contracts import check

pytestmark = pytest.mark.once

BOOK = Path(__file__).parents[2] / "book"
LINE = re.compile(r'<p class="(?:pass|fail|why)">(.*?)</p>', re.DOTALL)


def transposed(q, k, v, mask=None):
    flipped = None if mask is None else mask.transpose(-2, -1)
    fits = flipped is not None and flipped.shape == mask.shape
    chosen = flipped if fits else mask
    return companion.attention.scaled_dot_product_attention(q, k, v, chosen)


def test_the_landing_page_quotes_the_contract_word_for_word():
    landing = (BOOK / "index.md").read_text(encoding="utf-8")
    quoted = [" ".join(line.split()) for line in LINE.findall(landing)]
    said = " ".join(str(check("attention", transposed)).split())
    assert len(quoted) == 3
    for line in quoted:
        assert line in said


@pytest.mark.bad_input
def test_the_examples_of_the_notation_page_give_what_they_show():
    page = (BOOK / "notation.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, {}, "notation", None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert runner.summarize(verbose=False).attempted == len(test.examples) > 5
    assert runner.failures == 0
