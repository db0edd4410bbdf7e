"""The Chinese edition: the way to it and back, and how its pages look."""

import re
import sys
from html import unescape
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from support.contents import CHAPTERS, PAGES, ROOT
from support.harness import DESKTOP, PHONE

sys.path.append(str(ROOT / "book" / "_ext"))
import chinese as edition

BOTH = [page for page in PAGES if not edition.in_english_alone(page)]
LESSON = CHAPTERS[4]
browser = pytest.mark.browser
SWITCH = ".btn-language"


def language(html):
    """The languages a page names, and where it says that they are."""
    head, _, _ = html.partition("</head>")
    links = BeautifulSoup(head, "html.parser").select("link[hreflang]")
    return {link["hreflang"]: link["href"] for link in links}


@pytest.mark.once
@pytest.mark.parametrize("page", [*BOTH, "search"])
def test_each_page_names_itself_and_its_other_edition(built_book, page):
    english, chinese = (
        built_book / f"{folder}{page}.html" for folder in ("", "zh/")
    )
    for path in (english, chinese):
        found = language(path.read_text(encoding="utf-8"))
        there = {
            code: (path.parent / address).resolve()
            for code, address in found.items()
        }
        assert there == {"en": english, "zh-CN": chinese}


@pytest.mark.once
@pytest.mark.parametrize("page", BOTH)
def test_sections_have_one_name_in_both_editions(built_book, page):
    names = [
        re.findall(
            r'<section[^>]*\sid="([^"]+)"',
            (built_book / f"{folder}{page}.html").read_text(encoding="utf-8"),
        )
        for folder in ("", "zh/")
    ]
    assert names[0] == names[1]


@browser
@pytest.mark.parametrize("page", [BOTH[0], "book/check"])
def test_the_switch_leads_to_the_section_that_is_read_and_back(read, page):
    visit = read(page, where="disk", alone=True).page
    section = visit.locator(".bd-article section section[id]").nth(2)
    name = section.get_attribute("id")
    section.locator("> :is(h2, h3)").evaluate(
        "one => one.scrollIntoView({ behavior: 'instant' })"
    )
    for chinese in (True, False):
        # A locator's click scrolls the page: the switch sticks to its head.
        box = visit.locator(SWITCH).bounding_box()
        with visit.expect_navigation():
            visit.mouse.click(box["x"] + 5, box["y"] + 5)
        assert visit.url.endswith(f"/{page}.html#{name}")
        assert ("/zh/" in visit.url) == chinese
        visit.wait_for_function(
            "name => headingRead().parentElement.id === name", arg=name
        )


@browser
def test_the_switch_at_the_head_of_a_page_leads_to_its_head(read):
    visit = read(LESSON, alone=True).page
    visit.locator(SWITCH).click()
    visit.wait_for_url(f"**/zh/{LESSON}.html")


@browser
def test_without_scripts_the_switch_leads_to_the_page(read):
    visit = read(LESSON, scripts=False, alone=True).page
    visit.locator(SWITCH).click()
    visit.wait_for_url(f"**/zh/{LESSON}.html")


@browser
def test_a_page_of_the_reference_leads_to_the_chinese_first_page(read):
    visit = read("book/api", alone=True).page
    visit.locator(SWITCH).click()
    visit.wait_for_url("**/zh/book/index.html")


@browser
@pytest.mark.parametrize("page", [f"zh/{page}" for page in [*BOTH, "search"]])
def test_a_chinese_page_fits_the_screen(read, page):
    visit = read(page, size=PHONE, theme="dark", changed=True)
    width = "document.documentElement.scrollWidth"
    assert visit.page.evaluate(width) <= PHONE["width"]
    visit.page.set_viewport_size(DESKTOP)
    visit.page.emulate_media(color_scheme="light")
    assert visit.page.evaluate(width) <= DESKTOP["width"]
    assert visit.faults() == []


@browser
def test_the_search_of_the_edition_finds_its_own_pages(read):
    visit = read("zh/search", alone=True).page
    visit.goto(f"{visit.url.partition('?')[0]}?q=束搜索")
    first = visit.locator("ul.search li > a").first
    first.wait_for()
    assert "11_decoding.html" in first.get_attribute("href")
    assert "解码" in first.inner_text()
    first.click()
    visit.wait_for_url("**/zh/book/**")


def test_a_page_that_is_not_translated_says_so(monkeypatch):
    monkeypatch.setattr(edition, "translated", lambda page: page == "book/old")
    app = SimpleNamespace(
        config=SimpleNamespace(language="zh_CN", root_doc="book/index")
    )
    for page, says in (("book/old", False), ("book/new", True)):
        context = {"body": "<p>Text.</p>"}
        edition.switch(app, page, "page.html", context, doctree=object())
        assert (edition.UNTRANSLATED in context["body"]) == says
        assert context["body"].endswith("<p>Text.</p>")


@pytest.mark.once
@pytest.mark.parametrize("page", BOTH)
def test_no_heading_and_no_folded_line_is_left_in_english(built_book, page):
    path = built_book / "zh" / f"{page}.html"
    article = BeautifulSoup(path.read_text("utf-8"), "html.parser").article
    for apart in article.select("code, pre, script, mjx-container, [lang=en]"):
        apart.decompose()
    lines = [
        line.get_text()
        for line in article.select("h1, h2, h3, h4, summary, .section")
    ]
    # A question may ask about an English sentence.
    assert [
        line
        for line in lines
        if re.search("[a-z]{3,} [a-z]{2,} [a-z]", line)
        and not re.search("[\u3400-\u9fff]", line)
    ] == []


@pytest.mark.once
@pytest.mark.parametrize("folder", ["", "zh/"])
@pytest.mark.parametrize("page", [*CHAPTERS, "book/interview"])
def test_a_question_leads_to_the_section_that_answers_it(
    built_book, folder, page
):
    path = built_book / f"{folder}{page}.html"
    text = path.read_text("utf-8")
    headings = unescape("".join(re.findall(r"<h\d>.*?</h\d>", text)))
    headings = headings.replace("’", "'")
    places = re.findall(r'<span class="section">(.*?)</span>', text)
    assert len(places) >= 5
    for place in places:
        if "<a " not in place:  # The script leads there: see cards.js.
            assert f">{unescape(place)}<a" in headings, place
            continue
        there, name = re.match('<a href="([^"#]+)#([^"]+)">', place).groups()
        other = (path.parent / there).read_text("utf-8")
        assert f'id="{name}"' in other


@pytest.mark.once
def test_a_sum_or_a_tuple_stays_on_one_line_and_code_as_it_is():
    page = "<p>从 2 · 3 = 6 到 (batch, seq)，见 <code>(a, b)</code></p>"
    assert edition.together(page) == (
        "<p>从 2\xa0·\xa03\xa0=\xa06 到 (batch,\xa0seq)，"
        "见 <code>(a, b)</code></p>"
    )


@pytest.mark.once
@pytest.mark.parametrize("folder", ["", "zh/"])
def test_a_claim_of_the_first_page_ends_on_its_own_line(built_book, folder):
    path = built_book / f"{folder}book/index.html"
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    claims = [each.get_text() for each in page.select(".hero-text li strong")]
    assert len(claims) == 3
    assert all(claim.endswith((".", "。")) for claim in claims)


@browser
def test_no_line_begins_with_the_comma_behind_a_formula(read):
    page = read("zh/book/07_blocks", alone=True).page
    broken = """(space) => {
      const article = document.querySelector(".bd-article"), found = [];
      const kept = [...article.querySelectorAll(".unbroken")];
      for (const each of kept) each.style.whiteSpace = space;
      for (let width = 300; width < 700; width += 20) {
        article.style.width = `${width}px`;
        found.push(...kept.filter((each) => each.getClientRects().length > 1));
      }
      return found.length;
    }"""
    assert page.evaluate(broken, "") == 0
    assert page.evaluate(broken, "normal") > 3


@browser
@pytest.mark.parametrize(("folder", "wide"), [("", False), ("zh/", True)])
def test_a_quotation_mark_is_as_wide_as_a_character_in_chinese_only(
    read, folder, wide
):
    page = read(f"{folder}book/07_blocks", alone=True).page
    character, mark = page.evaluate(
        """() => {
      const line = document.createElement("p");
      line.innerHTML = "<span>字</span><span>“</span><span>字</span>";
      document.querySelector(".bd-article section").prepend(line);
      return [...line.children].map((each) => each.offsetWidth);
    }"""
    )[:2]
    assert (mark == character) == wide


@browser
def test_the_filters_of_the_chinese_bank_say_each_level_in_chinese(read):
    page = read("zh/book/interview").page
    levels = page.locator("select:has([value=all]):has([value=senior]) option")
    assert levels.all_text_contents() == ["全部", "初级", "中级", "高级"]


@browser
def test_only_chinese_characters_that_are_stressed_have_dots(read):
    page = read("zh/book/02_seq2seq").page
    stressed = page.locator(".bd-article :is(p, li, td) > em").all()
    dotted = {
        bool(re.search("[\u4e00-\u9fff]", each.text_content())): each.evaluate(
            "each => getComputedStyle(each).textEmphasisStyle"
        )
        for each in stressed
    }
    assert dotted == {True: "dot", False: "none"}


@browser
@pytest.mark.parametrize(("folder", "shown"), [("", True), ("zh/", False)])
def test_a_chinese_word_has_its_meaning_below_it_for_english_readers(
    read, folder, shown
):
    page = read(f"{folder}{CHAPTERS[0]}").page
    glosses = page.locator("text[lang=zh] + text.note")
    assert glosses.count() >= 4
    assert {each.is_visible() for each in glosses.all()} == {shown}
