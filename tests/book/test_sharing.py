"""What a shared link shows, and what an address shows that leads nowhere."""

import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from urllib.parse import urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree
from support.contents import CHAPTERS, ROOT, TOC

import companion

sys.path.append(str(ROOT / "book" / "_ext"))

import not_found
import open_graph


def head(path):
    """The tags of a page that a preview is made of, and the page up to those.

    What follows its title is left out: to read all of it takes a second.
    """
    text, end, _ = path.read_text(encoding="utf-8").partition("</h1>")
    soup = BeautifulSoup(text + end, "html.parser")
    found = {
        each.get("property") or each["name"]: each["content"]
        for each in soup.head.find_all("meta")
        if each.get("property") or each.get("name") == "description"
    }
    return found, soup


# A link that is shared


@pytest.mark.browser
def test_a_page_says_in_its_head_what_it_is_about(built_book, document):
    found, soup = head(built_book / f"{document}.html")
    assert found["description"] == found["og:description"]
    assert 40 < len(found["description"]) <= open_graph.LONGEST
    assert found["description"][-1] in ".?!…"
    title = soup.h1.find(string=True, recursive=False)
    assert found["og:title"] == title
    assert found["og:type"] == "article"
    # No page has a picture, and only a known address can be named.
    assert found.keys() == {
        *("og:type", "og:title", "og:site_name", "og:description"),
        "description",
    }
    if document in CHAPTERS and "labs" not in document:
        assert found["description"].startswith("After this ")


@pytest.mark.browser
def test_the_books_own_address_says_what_the_landing_page_says(built_book):
    root, _ = head(built_book / "index.html")
    landing, _ = head(built_book / f"{TOC['root']}.html")
    assert root == landing


def described(text):
    return open_graph.description(publish_doctree(text))


def test_a_description_ends_where_a_sentence_does():
    assert described("One two. Three four?") == "One two. Three four?"
    first, second = 20 * "word " + "end.", 30 * "more " + "end."
    assert described(f"{first} {second}") == first
    assert described(f"{first}\n{second[:50]}:") == f"{first} {second[:50]}."
    assert described(".. note:: Aside.\n\n- Point.\n\nText.") == "Text."
    assert described("") == ""


def test_a_sentence_that_is_too_long_is_cut_between_words():
    cut = described(60 * "word, ")
    assert len(cut) <= open_graph.LONGEST
    assert cut.endswith("word …")


def test_what_a_chapter_promises_comes_before_its_first_paragraph():
    tree = publish_doctree("Text.\n\n- bake bread;\n- and\n  eat it.")
    box = nodes.admonition("", nodes.title("", "After this you can"))
    box["classes"].append("tip")
    box += tree.children.pop()
    tree += box
    said = "After this you can bake bread; and eat it."
    assert open_graph.description(tree) == said


def test_a_description_cannot_leave_its_attribute():
    tags = open_graph.tags(
        'a "b"', "<script> & \"'", "book", "https://x.org/?a&b"
    )
    soup = BeautifulSoup(tags, "html.parser")
    assert [each["content"] for each in soup.find_all("meta")] == [
        *("article", 'a "b"', "book", "<script> & \"'"),
        *("https://x.org/?a&b", "<script> & \"'"),
    ]


# An address that leads nowhere


@pytest.mark.parametrize(
    ("address", "home", "path"),
    [
        ("", "", "/"),
        ("", "owner/name", "/name/"),
        ("", "Owner/owner.github.io", "/"),
        ("https://course.org", "owner/name", "/"),
        ("https://x.org/a/b/", "", "/a/b/"),
    ],
)
def test_where_a_server_has_the_book(address, home, path):
    assert not_found.base(address, home) == path


@contextmanager
def host(folder, missing):
    """Serve a folder as GitHub Pages does, with a page for what is missing."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def send_error(self, code, *_):
            body = (folder / missing).read_bytes()
            self.send_response(code)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

    handler = partial(Handler, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()


@pytest.fixture
def site(tmp_path, built_book):
    """The book at /name/, with the page for what is not there."""
    root, names = TOC["root"], CHAPTERS
    config = SimpleNamespace(
        html_baseurl="",
        public_home="owner/name",
        html_title="A <b>course",
        html_favicon="book/assets/logo.svg",
        root_doc=root,
    )
    env = SimpleNamespace(
        config=config,
        toctree_includes={root: names},
        titles={name: nodes.title("", name) for name in [root, *names]},
    )
    home = tmp_path / "name"
    home.mkdir()
    for path in built_book.iterdir():
        if path.name != "404.html":
            (home / path.name).symlink_to(path)
    page = not_found.page(SimpleNamespace(config=config, env=env))
    (home / "404.html").write_text(page, encoding="utf-8")
    with host(tmp_path, "name/404.html") as address:
        yield address


@pytest.mark.browser
@pytest.mark.parametrize(
    "path", ["/name/nowhere.html", "/name/book/no/such/page.html", "/name/x/"]
)
def test_a_lost_reader_finds_back_from_any_depth(chromium, site, path):
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    asked = []
    page.on("response", lambda r: asked.append((r.url, r.status)))
    assert page.goto(site + path).status == 404
    assert page.title() == "Not here · A <b>course"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    targets = page.locator("main a").evaluate_all(
        "all => all.map(link => link.href)"
    )
    assert len(targets) == len(CHAPTERS) + 2
    for target in targets:
        assert page.request.get(target).status == 200, target
    icon = page.locator("link[rel=icon]").get_attribute("href")
    assert page.request.get(urljoin(page.url, icon)).status == 200
    # The page itself needs nothing but itself.
    assert {urlsplit(url).path for url, _ in asked} <= {path, icon}
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_the_lost_can_be_read_in_both_themes(
    chromium, built_book, theme
):
    page = chromium.new_page(color_scheme=theme)
    page.goto((built_book / "404.html").as_uri())
    ground, ink = page.evaluate(
        """["backgroundColor", "color"].map((name) =>
      getComputedStyle(document.body)[name])"""
    )
    light, dark = "rgb(255, 255, 255)", "rgb(20, 24, 31)"
    assert ground == (light if theme == "light" else dark)
    assert (
        ink == {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}[theme]
    )
    led_to = page.locator("main li a").evaluate_all(
        "all => all.map(link => link.getAttribute('href'))"
    )
    lessons = {f"/{file}.html" for file in CHAPTERS if "/labs/" not in file}
    assert len(lessons) == len(companion.CHAPTERS)
    assert lessons <= set(led_to)
    page.close()
