"""What editors show: no directive, no role, no label, and all the words."""

import re

import nbformat
import plain_markdown
import pytest
from markdown_it import MarkdownIt
from support.contents import ROOT

pytestmark = pytest.mark.once

BOOK = ROOT / "book"
WORKS = plain_markdown.works(BOOK / "references.bib")
PATHS = sorted(BOOK.rglob("[0-9]*.ipynb"))
every_notebook = pytest.mark.parametrize(
    "name", [path.relative_to(BOOK).as_posix() for path in PATHS]
)
# An editor's parser: it knows neither directives nor roles.
EDITOR = MarkdownIt("commonmark").enable("table")
MYST = re.compile(r":::|```\{|\{[\w:-]+\}`|^\([\w-]+\)=", re.MULTILINE)


@pytest.fixture(scope="module")
def notebooks():
    """Each notebook as it is stored, and its edition."""
    return {
        name: (nbformat.read(BOOK / name, as_version=4), edition)
        for name, edition in plain_markdown.course(BOOK, lambda link: link.href)
    }


def translated(source, lead=str, linked=()):
    known = WORKS | {"anon1900": plain_markdown.Work("Anon", "1900", "")}
    return plain_markdown.plain(source, known, lead, linked)


def text_of(source):
    """All that an editor shows as text: a role's braces, not a sample's."""
    for token in EDITOR.parse(source):
        if token.type == "inline":
            yield "".join(
                "`" if c.type == "code_inline" else c.content
                for c in token.children
            )
        elif token.type == "fence":
            yield f"```{token.info}"


@every_notebook
def test_nothing_is_left_for_the_book_alone_to_show(notebooks, name):
    _, edition = notebooks[name]
    for cell in edition.cells:
        if cell.cell_type == "markdown":
            shown = "\n".join(text_of(cell.source))
            assert not MYST.search(shown), cell.source


@every_notebook
def test_code_and_outputs_are_as_they_were_and_no_word_is_lost(notebooks, name):
    stored, edition = notebooks[name]
    assert edition.metadata == stored.metadata
    for cell, copy in zip(stored.cells, edition.cells, strict=True):
        if cell.cell_type == "code":
            assert copy == cell
            continue
        assert copy.id == cell.id
        before = re.sub(r"\{cite[:\w]*\}`[^`]*`", "", cell.source)
        before = re.sub(r"^:class: .*|^:+(\{\w+\})?", "", before, flags=re.M)
        words = re.findall(r"\w+", before)
        left = iter(re.findall(r"\w+", copy.source))
        assert [word for word in words if word not in left] == []


def test_every_section_that_is_linked_has_an_anchor(notebooks):
    """Links by name of section: an editor gives sections other names."""
    links = 0
    for name, (stored, _) in notebooks.items():
        for cell in stored.cells:
            if cell.cell_type == "markdown":
                for href in plain_markdown.SECTION.findall(cell.source):
                    there, section = plain_markdown.target(name, href)
                    if there in notebooks:
                        links += 1
                        anchor = f'<a id="{section}" name="{section}"></a>'
                        _, edition = notebooks[there]
                        assert any(anchor in c.source for c in edition.cells)
    assert links


@pytest.mark.parametrize("key", WORKS)
def test_a_citation_leads_to_the_work(key):
    work = WORKS[key]
    assert work.who[0].isupper()
    assert not set(work.who) & set("{}\\")
    *_, paragraph, _ = EDITOR.parse(translated(f"So {{cite}}`{key}`."))
    links = [c.attrs["href"] for c in paragraph.children if c.attrs]
    assert links == [work.url]
    assert "".join(c.content for c in paragraph.children) == (
        f"So ({work.who}, {work.year})."
    )


WU = "[{}](https://arxiv.org/abs/1609.08144)"
POST = "[{}](https://arxiv.org/abs/1804.08771)"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{cite:p}`wu2016`", f"({WU.format('Wu et al., 2016')})"),
        ("{cite:t}`wu2016` say", f"{WU.format('Wu et al. (2016)')} say"),
        (
            "{cite}`wu2016,\npost2018`",
            f"({WU.format('Wu et al., 2016')}; {POST.format('Post, 2018')})",
        ),
        ("{cite}`anon1900`", "(Anon, 1900)"),
        (
            ":::{admonition} Three *things*\n:class: tip\n\n- one\n- two\n:::",
            "> **Three *things***\n>\n> - one\n> - two",
        ),
        (
            "a\n\n:::{margin} The notes say\nIt {cite}`anon1900`.\n:::\n\nb",
            "a\n\n> **The notes say**\n>\n> It (Anon, 1900).\n\nb",
        ),
        (":::{note} It is so.\n:::", "> **Note**\n>\n> It is so."),
        (
            "::::{tip}\nOuter\n:::{margin} Inner\nWords\n:::\n::::",
            "> **Tip**\n>\n> Outer\n> > **Inner**\n> >\n> > Words",
        ),
        (
            ":::{dropdown} More\n$$\nx\n$$\n:::",
            "<details><summary>More</summary>\n\n$$\nx\n$$\n\n</details>",
        ),
        # In a quote each line begins with a sign that a formula would show.
        (
            ":::{note}\n$$\nx\n= y\n$$\nand $a\n= b$\n:::",
            "> **Note**\n>\n> $$x = y$$\n> and $a = b$",
        ),
        ("one\n\n% a remark\n\ntwo", "one\n\n\ntwo"),
        ("Code: `{cite}` and `:::{note}`", "Code: `{cite}` and `:::{note}`"),
        ("`` {cite}`wu2016` ``", "`` {cite}`wu2016` ``"),
        ("```\n:::{note}\n:::\n```", "```\n:::{note}\n:::\n```"),
    ],
)
def test_what_a_page_shows_becomes_plain(source, expected):
    assert translated(source) == expected


def test_a_link_leads_where_it_is_told_or_becomes_its_text():
    source = "[a *b*](x.md#c), [d](https://e.f) and [g](#h)."
    asked = []
    assert translated(source, lead=asked.append) == (
        "a *b*, [d](https://e.f) and [g](#h)."
    )
    assert asked == ["x.md#c"]
    assert translated(source, lead=lambda href: "y.z") == (
        "[a *b*](y.z), [d](https://e.f) and [g](#h)."
    )


def test_a_section_that_is_linked_gets_its_name():
    assert translated("# A\n\n## Case 7: *so*\nb", linked={"case-7-so"}) == (
        '# A\n\n<a id="case-7-so" name="case-7-so"></a>\n\n## Case 7: *so*\nb'
    )


def test_a_link_is_told_by_file_section_and_cell(tmp_path):
    (tmp_path / "labs").mkdir()
    (tmp_path / "references.bib").write_text("")
    prose = nbformat.v4.new_markdown_cell
    first = [prose("[a](../2.ipynb#so-it-is) [b](../n.md#x) [c](../2.ipynb)")]
    second = [prose("# Two", id="two"), prose("no\n\n## So, it is", id="so")]
    for name, cells in (("labs/1", first), ("2", second)):
        notebook = nbformat.v4.new_notebook(cells=cells)
        nbformat.write(notebook, tmp_path / f"{name}.ipynb")
    told = []
    list(plain_markdown.course(tmp_path, told.append))
    assert told == [
        ("../2.ipynb#so-it-is", "2.ipynb", "so-it-is", "so"),
        ("../n.md#x", "n.md", "x", ""),
        ("../2.ipynb", "2.ipynb", "", ""),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (":::{figure} x.png\n:::", "the directive {figure} x.png is not known"),
        (":::\nno name\n:::", "the directive  is not known"),
        ("- a\n\n  :::{note}\n  b\n  :::", "{note} in a list, a quote"),
        ("{ref}`x`", "the role ref is not known"),
        ("{cite}`nobody1900`", "no work has the key 'nobody1900'"),
        ("    {cite}`wu2016`", "is none here: [('cite', 'wu2016')]"),
        ("[](x.ipynb)", "the link to x.ipynb has no text"),
        ("<project:#x>", "links to project:#x: write each as"),
        ("![alt](x.png)", "the picture x.png lies in no notebook"),
        ("(x)=\n# A", "a label is shown by no editor"),
        ("T\n: D", "a definition list is shown by no editor"),
        ("a[^1]\n\n[^1]: b", "a footnote is shown by no editor"),
        ("$$x$$ (one)", "a label of a formula is shown by no editor"),
    ],
)
def test_what_no_editor_shows_is_refused(source, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        translated(source)
