"""How heavy the pages are, whether they wait for scripts, whether they move.

The table is printed, and left in ``_build/weight.md``.
"""

import gzip
import re
import threading
from functools import cache

import pytest
import serve
from test_book import CHAPTERS, DESKTOP, PAGES, PHONE, ROOT

pytestmark = pytest.mark.browser

FIRST, FURTHER = 1_500_000, 150_000
MOST_SHIFT = 0.02
SEARCH = "search"
SEEN = """window.shifts = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });"""


@pytest.fixture(scope="module")
def address(built_book):
    with serve.server(str(built_book)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def visit(chromium, url, width, height):
    """What a first visit asks for, how it moves, how many fonts it shows."""
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.add_init_script(SEEN)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)
    shift = sum(page.evaluate("shifts"))
    fonts = page.evaluate(
        "[...document.fonts].filter(font => font.status === 'loaded').length"
    )
    context.close()
    return {re.sub(r"[?#].*", "", url) for url in asked}, shift, fonts


@pytest.fixture(scope="module")
def visits(chromium, address):
    """For a page and a size: what a first visit asks for, and how it moves."""

    @cache
    def served(document, width, height):
        return visit(chromium, f"{address}{document}.html", width, height)[:2]

    return served


@pytest.fixture(scope="module")
def weigh(built_book, address):
    """How many bytes a file has on the way, as small as gzip makes it."""

    @cache
    def size(url):
        content = (built_book / url.removeprefix(address)).read_bytes()
        return min(len(content), len(gzip.compress(content, 9)))

    return lambda urls: sum(map(size, urls))


@pytest.fixture(scope="module")
def loads(visits, weigh):
    """Bytes of each page: to a newcomer, and to who has read one chapter."""
    known, _ = visits(CHAPTERS[0], *DESKTOP.values())
    rows = {}
    for document in [*PAGES, SEARCH]:
        asked, _ = visits(document, *DESKTOP.values())
        rows[document] = weigh(asked), weigh(asked - known)
    return rows


def test_a_first_visit_is_light_and_a_further_page_lighter(loads, visits):
    lines = ["| page | first, kB | further, kB | shift, desktop | phone |",
             "| --- | --: | --: | --: | --: |"]  # fmt: skip
    for document, (first, further) in loads.items():
        wide, narrow = (
            visits(document, *size.values())[1] for size in (DESKTOP, PHONE)
        )
        lines.append(
            f"| {document} | {first / 1000:.0f} | {further / 1000:.0f} "
            f"| {wide:.3f} | {narrow:.3f} |"
        )
    table = "\n".join(lines) + "\n"
    (ROOT / "_build" / "weight.md").write_text(table, encoding="utf-8")
    print("\n" + table)
    assert {p: n for p, (n, _) in loads.items() if n > FIRST} == {}
    assert {p: n for p, (_, n) in loads.items() if n > FURTHER} == {}


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("document", PAGES)
def test_nothing_moves_once_it_is_shown(visits, document, size):
    _, shift = visits(document, *size.values())
    assert shift <= MOST_SHIFT


@pytest.mark.parametrize("document", PAGES)
def test_from_disk_nothing_moves_either(chromium, built_book, document):
    url = (built_book / f"{document}.html").as_uri()
    _, shift, fonts = visit(chromium, url, *PHONE.values())
    assert shift <= MOST_SHIFT
    assert fonts >= 3


@pytest.mark.parametrize("document", PAGES)
def test_the_text_is_there_before_any_script(chromium, address, document):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}{document}.html")
    article = page.locator(".bd-article")
    assert article.locator("h1").is_visible()
    assert len(article.inner_text()) > 500
    # A formula is drawn, and its source is nowhere.
    assert page.locator(".math:not(:has(svg))").count() == 0
    for formula in page.locator(".math svg").all()[:3]:
        box = formula.bounding_box()
        assert box is None or box["height"] > 3  # None: it is folded away.
    context.close()
