"""The search of the book, in both languages, from disk and from a server."""

import re
import sys

import pytest
from support.contents import ROOT
from support.harness import PHONE

sys.path.append(str(ROOT / "book" / "_ext"))
from search import sentences

everywhere = pytest.mark.parametrize("where", ["disk", "server"])
browser = pytest.mark.browser
DONE = """/found|not match/.test(
  document.querySelector('#search-results').innerText)"""


def search(page, words):
    """Search for words, from the search page on; return the links found."""
    address = page.url.partition("?")[0]
    page.goto(f"{address}?q={words}")
    page.wait_for_function(DONE)
    return page.locator("ul.search li > a").evaluate_all(
        "all => all.map(link => link.getAttribute('href'))"
    )


@browser
@everywhere
def test_what_a_page_is_about_leads_to_that_page_first(read, where):
    page = read("search", where=where, alone=True).page
    for words, chapter in {
        "kv缓存": "10_decoding",
        "缩放": "03_attention",
        "学习率": "09_training",
        "标签平滑": "09_training",
        "learning rate": "09_training",
        "beam search": "10_decoding",
        "layer norm": "07_blocks",
        "1x1 label smoothing": "09_training",
    }.items():
        assert f"book/{chapter}.html" in search(page, words)[0], words


@browser
def test_a_title_leads_to_its_page_in_both_languages(read):
    page = read("search", where="disk", alone=True).page
    titles = page.evaluate(
        """Search._index.docnames.map(
        (name, i) => [name, Search._index.titles[i]])"""
    )
    for name, title in titles:
        bare = re.sub(r"^\d+ · ", "", title)
        for half in re.findall(r"[㐀-鿿].*|[^㐀-鿿]+", bare):
            found = search(page, half.strip())[0]
            assert found.partition("#")[0] == f"./{name}.html", half


@browser
@everywhere
def test_a_hit_shows_its_sentence_and_leads_to_it(read, where):
    page = read("search", where=where, alone=True, size=PHONE).page
    assert "03_attention" in search(page, "缩放")[0]
    hit = page.locator("ul.search li").first
    sentence = hit.locator("p.context").inner_text()
    assert hit.locator("mark").all_inner_texts() == ["缩放"]
    assert sentence.startswith("With the softmax taken along each row")
    hit.locator("a").click()
    page.wait_for_url("**/03_attention.html*")
    page.wait_for_function("scrollY > 500")
    there = page.get_by_text("this is scaled dot-product attention")
    seen = """element => { const box = element.getBoundingClientRect();
      return box.top >= 0 && box.bottom <= innerHeight; }"""
    page.wait_for_timeout(1000)  # It scrolls smoothly.
    assert there.evaluate(seen)
    # The sentence is marked, not every word on the page.
    assert page.locator(".highlighted").count() == 0


@browser
def test_the_search_asks_for_no_page(read):
    """Its sentences are one file, which comes with the first query."""
    visit = read("search", alone=True)
    assert not [url for url in visit.requests if "sentences.js" in url]
    search(visit.page, "attention")
    assert [url for url in visit.requests if "sentences.js" in url]
    assert not [url for url in visit.requests if "/book/" in url]


@browser
@everywhere
def test_a_slip_is_answered_with_the_word_that_was_meant(read, where):
    page = read("search", where=where, alone=True).page
    meant = page.get_by_text("Did you mean")
    for slip, word in {
        "transfomer": "transformer",
        "atention": "attention",
        "beam saerch": "beam search",
    }.items():
        assert search(page, slip) == []
        assert meant.inner_text() == f"Did you mean {word}?"
    meant.get_by_role("link").click()
    page.wait_for_url("**?q=beam%20search")
    page.wait_for_function(DONE)
    assert page.locator("ul.search li").count() > 0
    assert meant.count() == 0


@browser
def test_the_search_does_not_find_what_is_not_there(read):
    page = read("search", alone=True).page
    assert search(page, "习学率") == []
    assert page.locator(".search-summary").count() == 1
    assert page.get_by_text("Did you mean").count() == 0


@browser
def test_a_query_that_is_markup_is_text(read):
    page = read("search", alone=True).page
    assert search(page, "%3Cimg src=x onerror=alert(1)%3E zzz") == []
    assert page.locator("#search-results img").count() == 0


@browser
def test_the_sign_does_not_lie_on_the_query(read):
    page = read("search", alone=True).page
    field = page.locator(".bd-search-container form.bd-search")
    sign = field.locator("i").bounding_box()
    text = field.locator("input").evaluate(
        """input => input.getBoundingClientRect().left
        + parseFloat(getComputedStyle(input).paddingLeft)"""
    )
    assert sign["x"] + sign["width"] <= text


PAGE = """<article><section id="top"><h1>A title</h1><p>Two words. 三个字。
Then <em>more</em> words,
  <mjx-container><svg><path d=""></path></svg>k k</mjx-container> of them.</p>
<pre>some code here</pre>
<section id="below"><table><tr><td><p>scale</p></td><td>缩放</td></tr>
<tr><td>0.25</td><td>0.5</td></tr></table>
<figure class="companion"><p>a drawn label</p>
<figcaption>What is <b>drawn</b> here.</figcaption></figure>
</section></section></article>"""


def test_sentences_are_what_one_reads_each_with_its_section():
    assert list(sentences(PAGE)) == [
        ("", "Two words."),
        ("", "三个字。"),
        ("", "Then more words, … of them."),
        ("below", "scale … 缩放"),
        ("below", "What is drawn here."),
    ]


def test_a_page_without_an_article_has_no_sentences():
    assert list(sentences("<html><p>Not an article.</p></html>")) == []
