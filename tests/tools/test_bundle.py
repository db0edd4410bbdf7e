"""The bundle: the book on paper, and its pages in a zip.

What `make bundle` left is opened at the end; `make test` does not make it.
"""

import os
import re
import zipfile
from pathlib import Path

import bundle
import paper
import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

import companion

DOCUMENTS = ["book/index", "book/03_attention", "book/05_positions"]
HEAD = (
    '<html><head><link rel="stylesheet" href="../_static/book.css?v=1"/>'
    "<script>alert(1)</script></head><body><nav>elsewhere</nav>"
    '<article class="bd-article"><section id="%s">'
)
INDEX = (
    HEAD % "the-course" + '<h1>The course<a class="headerlink" href="#x">#</a>'
    "</h1>"
    '<p><a href="03_attention.html#exercises">do</a>'
    '<a href="05_positions.html">read</a><a href="../search.html">find</a>'
    '<a href="https://example.org/a">far</a></p></section></article></body>'
)
CHAPTER = (
    HEAD % "attention" + "<h1>03 · Attention 注意力</h1>"
    '<section id="exercises"><h2>Exercises</h2><a href="#exercises">up</a>'
    '<img src="../_images/a.png"/>'
    "<details><summary>Show</summary>open me</details>"
    "<details><summary>Hint 1</summary>think</details>"
    '<div class="cell tag_solution"><details><summary>'
    '<p class="collapsed">Show a solution</p><p class="expanded">Hide it</p>'
    "</summary>return 7</details></div></section>"
    '<figure class="companion companion-quiz"><style>.a {}</style>'
    '<ol><li class="question" id="attention-why"><details><summary>Why?'
    '</summary><div class="work"><ol class="options"><li>so</li></ol>'
    '<details class="answer"><summary>Answer</summary>because</details>'
    '<div class="end">proof</div></div></details></li></ol>'
    '<script type="module">mount()</script></figure></section></article></body>'
)
OTHER = (
    HEAD % "positions" + "<h1>05 · Positions 位置编码</h1>"
    '<section id="exercises"><h2>Exercises</h2></section>'
    '<figure class="companion"><style>.a {}</style></figure>'
    "</section></article></body>"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Three pages, with all that is moved, renamed or dropped."""
    folder = tmp_path_factory.mktemp("site")
    for name, text in zip(DOCUMENTS, (INDEX, CHAPTER, OTHER), strict=True):
        page = folder / f"{name}.html"
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
    (folder / "_static").mkdir()
    (folder / "_static" / "book.css").write_text("p { color: red }")
    (folder / ".buildinfo").write_text("of no use")
    return folder


@pytest.fixture(scope="module")
def sheet(site):
    return BeautifulSoup(paper.paper(site, DOCUMENTS, "7.11.13"), "html.parser")


def test_the_book_is_in_the_order_of_its_contents():
    documents = paper.order(Path(__file__).parents[2] / "_toc.yml")
    assert documents[:2] == ["book/index", "book/01_rnn"]
    at = documents.index("book/03_attention")
    assert documents[at + 1] == "book/labs/03_attention"
    assert "book/api" not in documents
    assert "book/interview" in documents[len(companion.CHAPTERS) + 1 :]


def test_every_link_on_paper_leads_to_a_place_in_it(sheet):
    names = [tag["id"] for tag in sheet.select("[id]")]
    assert len(names) == len(set(names))
    links = {a.get_text(): a.get("href") for a in sheet.select("a")}
    assert links["do"] == "#03_attention--exercises"
    assert links["up"] == "#03_attention--exercises"
    assert links["read"] == "#05_positions"
    assert links["find"] is None
    assert links["far"] == "https://example.org/a"
    inside = {link for link in links.values() if link and link[0] == "#"}
    assert {link[1:] for link in inside - {"#index--x"}} <= set(names)


def test_paper_has_no_script_each_style_once_and_nothing_folded(sheet, site):
    assert not sheet.select("script")
    assert str(sheet).count(".a {}") == 1
    assert all("open" in tag.attrs for tag in sheet.select("details"))
    # Pictures and styles are found from anywhere.
    (style,) = sheet.select("link[rel=stylesheet]")
    assert style["href"] == (site / "_static" / "book.css").as_uri()
    assert sheet.img["src"] == (site / "_images" / "a.png").as_uri()


def test_hints_solutions_and_answers_stand_in_the_appendix_only(sheet):
    appendix = sheet.select_one("article > section").extract()
    rest = sheet.get_text()
    for spoiler in ("think", "return 7", "because", "proof"):
        assert spoiler in appendix.get_text()
        assert spoiler not in rest
    for kept in ("Why?", "so", "open me"):
        assert kept in rest
    assert "Why?" in appendix.get_text()
    assert "so" not in appendix.select_one(".companion-quiz").get_text()
    assert appendix.h2.get_text() == "03 · Attention 注意力"
    assert "A solution" in appendix.get_text()
    sheet.article.append(appendix)


def test_paper_says_which_version_it_is(sheet):
    assert sheet.title.get_text() == "The course"
    assert "Version 7.11.13" in sheet.h1.find_next_sibling().get_text()


def test_the_zip_is_the_site_and_the_same_twice(site, tmp_path):
    targets = [tmp_path / part / "course.zip" for part in ("a", "b")]
    for target in targets:
        target.parent.mkdir()
        bundle.pack(site, target)
    first, second = (target.read_bytes() for target in targets)
    assert first == second
    zipfile.ZipFile(targets[0]).extractall(tmp_path)
    here, there = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.name != ".buildinfo"
        }
        for folder in (site, tmp_path / "course")
    )
    assert there == here


@pytest.mark.browser
def test_a_printed_chapter_begins_a_page_and_is_in_the_outline(
    chromium, sheet, tmp_path
):
    for picture in sheet.select("img"):
        picture.decompose()
    page = tmp_path / "paper.html"
    page.write_text(str(sheet), encoding="utf-8")
    bundle.print_pdf(chromium, page, tmp_path / "paper.pdf")
    assert chapters(PdfReader(tmp_path / "paper.pdf")) == {
        "The course": 0,
        "03 · Attention 注意力": 1,
        "05 · Positions 位置编码": 2,
        "Appendix: hints, solutions and answers": 3,
    }


def test_a_radical_becomes_the_word_that_it_looks_like():
    table = "3 beginbfchar\n<2F12> <2F12>\n<0007> <6CE8>\n<0011> <2EEC>\n"
    words = "3 beginbfchar\n<2F12> <529B>\n<0007> <6CE8>\n<0011> <9F50>\n"
    assert bundle.plain(table) == words


@pytest.mark.browser
def test_chinese_words_are_found_in_what_was_printed(chromium, tmp_path):
    page, pdf = tmp_path / "paper.html", tmp_path / "paper.pdf"
    page.write_text("<p>注意力 小猫 对齐</p>", encoding="utf-8")
    bundle.print_pdf(chromium, page, pdf)
    bundle.mend_words(pdf)
    text = PdfReader(pdf).pages[0].extract_text()
    assert "注意力" in text
    assert "小猫" in text
    assert "对齐" in text


@pytest.mark.browser
def test_a_picture_that_is_missing_stops_the_print(chromium, tmp_path):
    page = tmp_path / "paper.html"
    page.write_text('<h1>One</h1><img src="nowhere.png">', encoding="utf-8")
    with pytest.raises(ValueError, match=r"has no .*nowhere\.png"):
        bundle.print_pdf(chromium, page, tmp_path / "paper.pdf")


def chapters(pdf):
    """The outermost entries of the outline, and the page of each."""
    return {
        entry.title: pdf.get_destination_page_number(entry)
        for entry in pdf.outline
        if not isinstance(entry, list)
    }


def tables(pdf):
    """What each font of a PDF says that its characters are."""
    for page in pdf.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            if "/ToUnicode" in font.get_object():
                yield font["/ToUnicode"].get_data().decode("latin-1")


def bundled(suffix):
    """What `make bundle` made; it asks for these tests."""
    path = bundle.FOLDER / bundle.named(companion.__version__, suffix)
    if not path.exists() and not os.environ.get("REQUIRE_BUNDLE"):
        pytest.skip("no bundle: make bundle makes it and opens it")
    return path


MOUNTED = """() => [
  ...document.querySelectorAll("figure.companion:has(script)")
].every(figure => figure.dataset.mounted)"""


@pytest.mark.browser
def test_the_zip_is_read_with_the_network_cable_out(opened, tmp_path):
    zipfile.ZipFile(bundled("zip")).extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    page = opened(folder / "index.html", settle=True, offline=True).page
    page.wait_for_url("**/book/index.html")
    documents = paper.order(bundle.ROOT / "_toc.yml")
    assert len(documents) > len(companion.CHAPTERS)
    for document in documents:
        page.goto((folder / f"{document}.html").as_uri())
        page.wait_for_function(MOUNTED)
        assert page.locator(".bd-article h1").count() == 1


@pytest.mark.browser
def test_the_pdf_holds_the_whole_book():
    path = bundled("pdf")
    assert 1e6 < path.stat().st_size < 60e6
    pdf = PdfReader(path)
    assert 100 < len(pdf.pages) < 1500
    starts = chapters(pdf)
    numbered = [title for title in starts if re.match(r"\d\d · ", title)]
    assert [int(title[:2]) for title in numbered] == list(
        range(1, len(companion.CHAPTERS) + 1)
    )
    assert list(starts.values()) == sorted(starts.values())
    assert list(starts)[-1].startswith("Appendix")
    # A blank page has a number and nothing else.
    drawn = [len(page.get_contents().get_data()) for page in pdf.pages]
    assert min(drawn) > 1500
    assert not any(map(bundle.RADICAL.search, tables(pdf)))
    first = pdf.pages[starts["03 · Attention 注意力"]].extract_text()
    assert "注意力" in first
    assert "$" not in first


def read(pages):
    """What stands on the pages, without spaces: print breaks its lines."""
    text = "".join(page.extract_text() for page in pages)
    return re.sub(r"\s", "", text)


@pytest.mark.browser
def test_the_pdf_has_every_figure_and_every_solution():
    pdf = PdfReader(bundled("pdf"))
    appendix = [*chapters(pdf).values()][-1]
    body, end = read(pdf.pages[:appendix]), read(pdf.pages[appendix:])
    captions, solutions = [], []
    for document in paper.order(bundle.ROOT / "_toc.yml"):
        page = (bundle.PAGES / f"{document}.html").read_text(encoding="utf-8")
        soup = BeautifulSoup(page, "html.parser")
        captions += soup.select("figure > figcaption")
        solutions += soup.select(".tag_solution .highlight")
    assert len(captions) > 3 * len(companion.CHAPTERS)
    assert len(solutions) > 2 * len(companion.CHAPTERS)
    for caption in captions:
        assert start_of(caption) in body
    for solution in solutions:
        assert start_of(solution) in end
        assert start_of(solution) not in body


def start_of(tag):
    """The first of its words, without spaces and formulas."""
    return re.split(r"[$\\]", re.sub(r"\s", "", tag.get_text()))[0][:40]
