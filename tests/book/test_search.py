"""The search of the book, in both languages, from disk and from a server."""

import re
import sys
from collections import Counter

import pytest
from support.contents import ROOT
from support.harness import PHONE

sys.path.append(str(ROOT / "book" / "_ext"))
from search import EnglishAndChinese, article, sentences, weigh

everywhere = pytest.mark.parametrize("where", ["disk", "server"])
browser = pytest.mark.browser
DONE = """/found|No page has/.test(
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
        "kv缓存": "11_decoding",
        "缩放": "03_attention",
        "学习率": "10_training",
        "标签平滑": "10_training",
        "learning rate": "10_training",
        "beam search": "11_decoding",
        "layer norm": "07_blocks",
        "1x1 label smoothing": "10_training",
        "what is attention": "03_attention",
        "什么是注意力？": "03_attention",
        "how does beam search": "11_decoding",
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
    """What it reads is in files that come when a query needs them."""
    visit = read("search", alone=True)
    assert not [url for url in visit.requests if "/search/" in url]
    search(visit.page, "attention")
    assert len([url for url in visit.requests if "/words-" in url]) == 1
    assert not [url for url in visit.requests if "/book/" in url]


@browser
@everywhere
def test_a_result_further_down_gets_its_sentence_when_it_is_seen(read, where):
    page = read("search", where=where, alone=True).page
    search(page, "mask")
    quoted = page.locator("ul.search li:has(mark)")
    before = quoted.count()
    for result in page.locator("ul.search li").all()[before : before + 20]:
        result.scroll_into_view_if_needed()
    quoted.nth(before + 5).wait_for()
    for quote in quoted.all():
        address = quote.locator("a").get_attribute("href")
        assert ":~:text=" in address


@browser
def test_words_in_a_row_count_more_than_words_apart(read):
    page = read("search", alone=True).page
    for words in ["teacher forcing", "causal mask", "注意力"]:
        search(page, words)
        marks = page.locator("ul.search li").nth(1).locator("mark")
        assert words in marks.first.inner_text().lower()


@browser
def test_what_nobody_wrote_stands_for_the_longer_words(read):
    page = read("search", alone=True).page
    assert "08_transformer" in search(page, "transf")[0]


@browser
def test_a_word_that_every_object_of_a_script_has_is_a_word(read):
    page = read("search", alone=True).page
    assert search(page, "__proto__") == []
    assert search(page, "constructor") != []


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
    told = page.locator(".search-summary")
    assert told.all_inner_texts() == ["No page has all of these words."]
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
    assert list(sentences(article(PAGE))) == [
        ("", "Two words."),
        ("", "三个字。"),
        ("", "Then more words, … of them."),
        ("below", "scale … 缩放"),
        ("below", "What is drawn here."),
    ]


def test_a_page_without_an_article_has_no_sentences():
    assert list(sentences(article("<html><p>Not an article.</p></html>"))) == []


def test_a_word_counts_more_the_more_a_page_says_it_for_its_length():
    pages = [
        Counter({"mask": 2, "code": 0}),
        Counter({"mask": 1, "attent": 1}),
        Counter({"mask": 2, "attent": 6}),
    ]
    mask = weigh(pages)["mask"]
    assert mask[0] > mask[2] > 0
    assert mask[0] > mask[1] > 0
    assert weigh(pages)["code"] == {0: 0}
    assert weigh([Counter()]) == {}


def test_a_piece_of_code_or_of_a_figure_is_found_word_by_word():
    text = article(PAGE).get_text(" ")
    words = set(EnglishAndChinese({}).words(text))
    assert {"some", "code", "drawn", "label", "三个", "个", "缩放"} <= words
    # No formula, no number, no word that English cannot do without.
    assert not {"k", "0", "of", "titletwo"} & words
