"""The bundle: the course and its bank on paper, and the pages in a zip.

What `make bundle` left is opened at the end; `make test` does not make it.
"""

import os
import re
import sys
import zipfile
from pathlib import Path

import bundle
import paper
import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader
from support.contents import ROOT

import companion
from companion.interview.model.bank import course

sys.path.append(str(ROOT / "book" / "_ext"))
import chinese

DOCUMENTS = [
    *("book/index", "book/03_attention"),
    *("book/labs/03_attention", "book/05_positions"),
]
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
    '<div class="cell tag_hide-cell"><details><summary>'
    '<p class="collapsed">Show a solution</p><p class="expanded">Hide it</p>'
    "</summary><p>return 7</p></details></div>"
    '<details class="checks"><summary>✓ 1 check</summary><p>assert</p>'
    "</details>"
    '<div class="cell tag_hide-cell"><details><summary>'
    '<p class="collapsed">✓ 3 checks</p><p class="expanded">Hide them</p>'
    "</summary><p>assert three</p></details></div>"
    '<div class="cell tag_hide-input"><details><summary><p class="collapsed">'
    "Show the source</p></summary><p>draw()</p></details></div>"
    "<figure><table><tr><td>drawn</td></tr></table><details><summary>"
    "The numbers</summary><p>0.25</p></details></figure></section>"
)
QUIZ = (
    '<section id="interview"><h2>Interview</h2><p>Answer aloud.</p>'
    '<figure class="companion companion-quiz"><style>.a {}</style>'
    '<ol><li class="question" id="%s"><details><summary>%s'
    '</summary><div class="work"><ol class="options"><li>so</li></ol>'
    '<details class="answer"><summary>Answer</summary>because</details>'
    '<div class="end"><p>proof</p><p><a href="#b">this one</a></p></div></div>'
    "</details></li></ol>"
    '<script type="module">mount()</script></figure></section>'
)
END = "</section></article></body>"
LESSON = CHAPTER + QUIZ % ("attention-why", "Why the root?") + END
LAB = (
    (HEAD % "the-lab").replace("../_static", "../../_static")
    + "<h1>03 · The lab</h1>"
    + QUIZ % ("attention-why", "Why the root? And what number?")
    + END
)
OTHER = (
    HEAD % "positions" + "<h1>05 · Positions 位置编码</h1>"
    '<section id="exercises"><h2>Exercises</h2></section>'
    '<figure class="companion"><style>.a {}</style></figure>'
    "</section></article></body>"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Four pages, with all that is moved, renamed, folded or dropped."""
    folder = tmp_path_factory.mktemp("site")
    texts = (INDEX, LESSON, LAB, OTHER)
    for name, text in zip(DOCUMENTS, texts, strict=True):
        page = folder / f"{name}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    (folder / "_static").mkdir()
    (folder / "_static" / "book.css").write_text("p { color: red }")
    (folder / ".buildinfo").write_text("of no use")
    return folder


@pytest.fixture(scope="module")
def sheet(site):
    return parsed(paper.course(site, DOCUMENTS, "7.11.13"))


@pytest.fixture(scope="module")
def bank(site):
    return parsed(paper.bank(site, DOCUMENTS, "7.11.13"))


def parsed(text):
    return BeautifulSoup(text, "html.parser")


def test_the_book_is_in_the_order_of_its_contents():
    documents = paper.order(Path(__file__).parents[2] / "_toc.yml")
    assert documents[:2] == ["book/index", "book/01_rnn"]
    at = documents.index("book/03_attention")
    assert documents[at + 1] == "book/labs/03_attention"
    assert documents[-3:] == [
        "book/notation",
        "book/mask_conventions",
        "book/references",
    ]


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


def test_of_what_proves_or_lists_a_line_is_printed(sheet):
    text = sheet.get_text()
    for line in (
        "✓ 1 check",
        "✓ 3 checks",
        "The source: in the pages",
        "The numbers",
    ):
        assert line in text
    for inside in ("assert", "draw()", "0.25"):
        assert inside not in text
    # The rest is open.
    assert all("open" in tag.attrs for tag in sheet.select("details"))
    assert "drawn" in text


def test_paper_has_no_script_and_each_style_once(sheet, bank, site):
    assert not sheet.select("script")
    assert not bank.select("script")
    for page in (sheet, bank):
        assert str(page).count(".a {}") == 1
    # Pictures and styles are found from anywhere.
    (style,) = sheet.select("link[rel=stylesheet]")
    assert style["href"] == (site / "_static" / "book.css").as_uri()
    assert sheet.img["src"] == (site / "_images" / "a.png").as_uri()


def test_hints_and_solutions_stand_in_the_appendix_only(sheet):
    appendix = sheet.select_one("article > section").extract()
    rest = sheet.get_text()
    for spoiler in ("think", "return 7"):
        assert spoiler in appendix.get_text()
        assert spoiler not in rest
    assert "open me" in rest
    assert appendix.h2.get_text() == "03 · Attention 注意力"
    assert "A solution" in appendix.get_text()
    sheet.article.append(appendix)


def test_the_words_on_chinese_paper_are_those_of_the_chinese_pages(tmp_path):
    """What the pages fold is called so in the tables of the edition."""
    words = paper.WORDS["zh"]
    page = CHAPTER.replace("Show a solution", f"{words.show}参考答案")
    page = page.replace("Hint", words.spoilers[0]).replace(
        "The numbers", words.numbers
    )
    (tmp_path / "03.html").write_text(page + END, encoding="utf-8")
    sheet = parsed(paper.course(tmp_path, ["03"], "7.11.13", "zh"))
    assert sheet.html["lang"] == "zh"
    appendix = sheet.select_one("article > section").extract()
    assert appendix.h1.get_text() == words.appendix
    assert "参考答案" in appendix.get_text()
    for spoiler in ("think", "return 7"):
        assert spoiler in appendix.get_text()
        assert spoiler not in sheet.get_text()
    assert words.source in sheet.get_text()
    assert "0.25" not in sheet.get_text()
    known = chinese.words("book/03_attention")
    assert known["Hint"] == words.spoilers[0]
    assert known["Answer"] == words.spoilers[1]
    assert known["When you have tried: what one sees"].startswith(
        words.spoilers[2]
    )
    assert words.numbers in known["The numbers as a table"]
    assert known["Show a solution"].startswith(words.show)


def test_questions_are_in_a_book_of_their_own(sheet, bank):
    for asked in ("root", "Answer aloud", "because", "proof"):
        assert asked not in sheet.get_text()
    # The place that links lead to says where they are.
    (lesson,) = sheet.select("[id='03_attention--interview']")
    assert lesson.get_text() == f"Interview{paper.WORDS['en'].asked}"
    # All of the lab, which has those of the lesson, too.
    assert [tag.get_text() for tag in bank.select("h1")] == [
        paper.BANK,
        "03 · Attention 注意力",
    ]
    (question,) = bank.select(".question")
    for part in ("what number?", "so", "because", "proof"):
        assert part in question.get_text()
    assert not bank.select("a")


def test_paper_says_which_version_it_is(sheet, bank):
    assert sheet.title.get_text() == "The course"
    assert bank.title.get_text() == paper.BANK
    for page in (sheet, bank):
        assert "Version 7.11.13" in page.h1.find_next_sibling().get_text()


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


@pytest.mark.bad_input
def test_without_a_book_one_line_says_what_builds_it(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(bundle, "PAGES", tmp_path / "html")
    monkeypatch.setattr(bundle, "FOLDER", tmp_path / "bundle")
    assert bundle.main() == 1
    said = capsys.readouterr()
    assert said.out.count("\n") == 1
    assert "make bundle builds it" in said.out
    assert not (tmp_path / "bundle").exists()


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
        "03 · The lab": 2,
        "05 · Positions 位置编码": 3,
        paper.WORDS["en"].appendix: 4,
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
def test_packed_objects_are_a_fraction_and_nothing_of_the_pdf_is_lost(
    chromium, tmp_path
):
    page, pdf = tmp_path / "paper.html", tmp_path / "paper.pdf"
    rows = "<tr><td>3</td><td>5</td></tr>" * 211
    page.write_text(
        f"<h1 id=a>One 一</h1><a href='#b'>on</a><table>{rows}</table>"
        "<h1 id=b>Two</h1>",
        encoding="utf-8",
    )
    bundle.print_pdf(chromium, page, pdf)
    bundle.mend_words(pdf)
    before = PdfReader(pdf)
    was, text = pdf.stat().st_size, [p.extract_text() for p in before.pages]
    bundle.pack_objects(pdf)
    after = PdfReader(pdf, strict=True)
    assert pdf.stat().st_size < was / 3
    assert [p.extract_text() for p in after.pages] == text
    assert chapters(after) == chapters(before)
    assert structure(after) == structure(before)
    assert len(after.pages[0]["/Annots"]) == 1


@pytest.mark.browser
def test_a_page_that_ends_before_its_middle_is_half_empty(chromium, tmp_path):
    page, pdf = tmp_path / "paper.html", tmp_path / "paper.pdf"
    next_page = ' style="break-before: page">'
    page.write_text(
        f"<h1>One</h1><p>Half empty.</p><p{next_page}"
        '<span style="display: block; height: 200mm"></span>Full.</p>'
        f"<p{next_page}The last of a chapter.</p>"
        f"<h1{next_page}Two</h1><p>Half empty.</p><p{next_page}The last.</p>",
        encoding="utf-8",
    )
    bundle.print_pdf(chromium, page, pdf)
    assert bundle.half_empty(PdfReader(pdf)) == [1, 4]


@pytest.mark.browser
def test_a_figure_and_code_go_on_over_the_end_of_a_page(chromium, tmp_path):
    page, pdf = tmp_path / "paper.html", tmp_path / "paper.pdf"
    book = bundle.ROOT / "book" / "assets" / "book.css"
    parts = '<svg viewBox="0 0 9 9"><text y="9">0</text></svg><p>Part</p>' * 7
    code = "<span></span>print(7)\n" * 99
    page.write_text(
        f'<link rel="stylesheet" href="{book.as_uri()}"><style>{paper.STYLE}'
        "</style><div class=bd-article><div><h1>One</h1>"
        f"<figure class=companion>{parts}</figure>"
        f"<div class=highlight><pre>{code}</pre></div></div>",
        encoding="utf-8",
    )
    bundle.print_pdf(chromium, page, pdf)
    assert len(PdfReader(pdf).pages) > 3
    assert bundle.half_empty(PdfReader(pdf)) == []


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


def structure(pdf):
    """What is read aloud, in order: headings, cells, links."""
    found, ahead = [], [pdf.trailer["/Root"]["/StructTreeRoot"]]
    while ahead:
        node = ahead.pop()
        found.append(node.get("/S"))
        below = node.get("/K", [])
        ahead += [
            each.get_object()
            for each in (below if isinstance(below, list) else [below])
            if hasattr(each.get_object(), "get")
        ]
    return found


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
    zipfile.ZipFile(bundled(bundle.ZIP)).extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    page = opened(folder / "index.html", settle=True, offline=True).page
    page.wait_for_url("**/book/index.html")
    documents = sorted((folder / "book").rglob("*.html"))
    assert len(documents) > len(companion.CHAPTERS)
    for document in documents:
        page.goto(document.as_uri())
        page.wait_for_function(MOUNTED)
        assert page.locator(".bd-article h1").count() == 1


def printed(suffix):
    """A PDF that `make bundle` made, without what no PDF of ours may have."""
    path = bundled(suffix)
    assert 1e6 < path.stat().st_size < 40e6
    pdf = PdfReader(path)
    starts = chapters(pdf)
    assert list(starts.values()) == sorted(starts.values())
    numbered = [int(t[:2]) for t in starts if re.match(r"\d\d · ", t)]
    assert list(dict.fromkeys(numbered)) == list(
        range(1, len(companion.CHAPTERS) + 1)
    )
    # A blank page has a number and nothing else.
    drawn = [len(page.get_contents().get_data()) for page in pdf.pages]
    assert min(drawn) > 1500
    assert len(bundle.half_empty(pdf)) <= len(pdf.pages) / 100
    assert not any(map(bundle.RADICAL.search, tables(pdf)))
    return pdf


def read(pages):
    """What stands on the pages, without spaces: print breaks its lines."""
    text = "".join(page.extract_text() for page in pages)
    return re.sub(r"\s", "", text)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("suffix", "language", "title"),
    [
        (".pdf", "en", "03 · Attention 注意力"),
        ("-zh.pdf", "zh", "03 · 注意力（Attention）"),
    ],
)
def test_the_course_on_paper_has_every_figure_and_every_solution(
    suffix, language, title
):
    pdf = printed(suffix)
    assert 100 < len(pdf.pages) < 600
    starts = chapters(pdf)
    *_, (last, appendix) = starts.items()
    assert last == paper.WORDS[language].appendix
    first = pdf.pages[starts[title]].extract_text()
    assert "注意力" in first
    assert "$" not in first
    body, end = read(pdf.pages[:appendix]), read(pdf.pages[appendix:])
    captions, solutions = [], []
    for document in paper.order(bundle.ROOT / "_toc.yml"):
        folder = bundle.PAGES / language.removeprefix("en")
        page = (folder / f"{document}.html").read_text(encoding="utf-8")
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


@pytest.mark.browser
def test_the_bank_on_paper_has_every_question_to_its_end():
    pdf = printed("-questions.pdf")
    documents = paper.order(bundle.ROOT / "_toc.yml")
    sheet = parsed(paper.bank(bundle.PAGES, documents, "7.11.13"))
    asked = sorted(tag["id"] for tag in sheet.select(".question"))
    assert asked == sorted(question.id for question in course())
    # The last line of a chapter stands on its last page.
    front, first, *others = chapters(pdf).values()
    assert (front, first) == (0, 1)
    ends = [*others, len(pdf.pages)]
    for chapter, end in zip(sheet.select(".chapter"), ends, strict=True):
        taught = chapter.select(".end .section")[-1]
        assert start_of(taught) in read([pdf.pages[end - 1]])


def start_of(tag):
    """The first of its words, without spaces and formulas."""
    return re.split(r"[$\\]", re.sub(r"\s", "", tag.get_text()))[0][:40]
