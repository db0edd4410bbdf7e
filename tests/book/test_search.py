"""The search of the book, in both languages, from disk and from a server."""

import pytest

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("where", ["disk", "server"])
def test_the_search_finds_words_of_both_languages(read, where):
    page = read("search", where=where, alone=True).page
    address = page.url
    for words, chapter in {
        "学习率": "09_training",
        "注意力": "03_attention",
        "位置编码": "05_positions",
        "掩码": "06_masks",
        "标签平滑": "09_training",
        "learning rate": "09_training",
        "attention": "03_attention",
    }.items():
        page.goto(f"{address}?q={words}")
        page.wait_for_selector("ul.search li")
        page.wait_for_function(
            "/found/.test(document.querySelector('.search-summary').innerText)"
        )
        links = page.locator("ul.search li > a").evaluate_all(
            "all => all.map(link => link.getAttribute('href'))"
        )
        assert any(f"{chapter}.html" in link for link in links), words


def test_the_search_does_not_find_what_is_not_there(read):
    page = read("search", alone=True).page
    page.goto(f"{page.url}?q=习学率")
    summary = page.locator(".search-summary")
    page.wait_for_function(
        "/did not match/.test(document.querySelector("
        "'#search-results').innerText)"
    )
    assert summary.count() == 1
    assert page.locator("ul.search li").count() == 0
