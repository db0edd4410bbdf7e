"""The built pages in a real browser, from disk and from a server.

Screenshots of every page, both themes and phone width, are left in
``_build/screens`` for whoever wants to look.
"""

import threading
from pathlib import Path

import pytest
import serve
import yaml

from companion.interview import load

ROOT = Path(__file__).parents[1]
SCREENS = ROOT / "_build" / "screens"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
OURS = ("file:", "data:", "blob:", "about:", "http://127.0.0.1")

pytestmark = pytest.mark.browser


def documents():
    """Every page of the table of contents, in order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = toc.get("parts", [toc])
    chapters = [c["file"] for part in parts for c in part["chapters"]]
    return [toc["root"], *chapters]


PAGES = documents()
CHAPTERS = [p for p in PAGES if Path(p).name[0].isdigit()]


ARROWS = ("ArrowDown", "ArrowUp", "ArrowUp")
# Kind of figure -> where the focus starts, and what is pressed there.
KEYS = {
    "unrolled": ("input[type=range]", ARROWS),
    "alignment": ("button[tabindex='0']", ARROWS),
    "scores": ("input[type=range], button[tabindex='0']", ARROWS),
    "heads": ("button[tabindex='0']", ("ArrowRight", "ArrowLeft")),
    "clocks": ("input[type=range]", ARROWS),
    "masks": ("input[type=radio]", ARROWS),
    "depth": ("input[type=range]", ARROWS),
    "flow": ("button:has-text('Next')", ("Enter", "Enter")),
    "noam": ("input[type=range]", ARROWS),
    "doctor": ("button:has-text('Run B')", ("Enter",)),
    "beam": ("button:has-text('Back')", ("Enter", "Enter")),
    "sampling": ("input[type=range]", ARROWS),
    "objectives": ("[role=tab]", ("ArrowRight", "ArrowRight")),
    "clinic": ("input[type=radio]", ARROWS),
}


class Visit:
    """A page in Chromium, and what it asked for and complained of."""

    def __init__(self, chromium, url, *, theme="light", **settings):
        self.context = chromium.new_context(color_scheme=theme, **settings)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("console", self._listen)
        self.page.goto(url)
        self.page.wait_for_load_state("networkidle")

    def _listen(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@pytest.fixture(scope="session")
def base(built_book):
    """The address of the book, by where it is read from."""
    with serve.server(str(built_book)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "disk": built_book.as_uri(),
            "server": f"http://127.0.0.1:{server.server_port}",
        }
        server.shutdown()


@pytest.fixture
def visit(chromium, base):
    visits = []

    def open_page(document, *, where="server", viewport=DESKTOP, **settings):
        url = f"{base[where]}/{document}.html"
        visits.append(Visit(chromium, url, viewport=viewport, **settings))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()


@pytest.mark.parametrize("where", ["disk", "server"])
@pytest.mark.parametrize("document", PAGES)
def test_a_page_is_quiet_and_asks_no_other_site(visit, document, where):
    seen = visit(document, where=where)
    assert seen.complaints == []
    outside = [u for u in seen.requests if not u.startswith(OURS)]
    assert outside == []


@pytest.mark.parametrize("where", ["disk", "server"])
def test_the_root_leads_to_the_landing_page(visit, where):
    seen = visit("index", where=where)
    seen.page.wait_for_url(f"**/{PAGES[0]}.html")
    assert seen.page.locator(".bd-article h1").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("document", PAGES)
def test_a_page_fits_the_screen_in_both_themes(
    visit, document, viewport, theme
):
    seen = visit(document, viewport=viewport, theme=theme)
    width = seen.page.evaluate("document.documentElement.scrollWidth")
    assert width <= viewport["width"]
    assert seen.page.evaluate("document.documentElement.dataset.theme") == theme
    SCREENS.mkdir(parents=True, exist_ok=True)
    name = f"{Path(document).name}-{theme}-{viewport['width']}.png"
    seen.page.screenshot(path=SCREENS / name, full_page=True)


@pytest.mark.parametrize("document", CHAPTERS)
def test_the_maths_is_rendered_without_an_error(visit, document):
    page = visit(document).page
    page.wait_for_selector("mjx-container")
    raw = page.locator(".math:not(:has(mjx-container))")
    assert raw.count() == 0
    assert page.locator("mjx-merror, [data-mml-node=merror]").count() == 0
    # A sign that is repeated is drawn once, and called where it stands.
    assert page.locator("mjx-container use").count() > 5
    empty = """all => all.filter(each => each.checkVisibility()
      && !each.getBoundingClientRect().width).length"""
    assert page.locator("mjx-container use").evaluate_all(empty) == 0
    outlines = "all => all.map(each => each.getAttribute('d'))"
    paths = page.locator("mjx-container path, .signs path")
    drawn = [d for d in paths.evaluate_all(outlines) if d]
    assert len(drawn) == len(set(drawn))


def test_chinese_is_drawn_with_real_glyphs(visit):
    """Two characters without a glyph would be the same empty box."""
    drawn = """family => { const draw = text => {
      const canvas = document.createElement('canvas');
      const pen = canvas.getContext('2d');
      pen.font = '40px ' + family; pen.fillText(text, 20, 60);
      return canvas.toDataURL(); };
      return [draw('我'), draw('爱'), draw('\\u{10FFFE}')]; }"""
    page = visit(CHAPTERS[0]).page
    family = page.evaluate("getComputedStyle(document.body).fontFamily")
    pictures = page.evaluate(drawn, family)
    assert len(set(pictures)) == 3


@pytest.mark.parametrize("document", CHAPTERS)
def test_without_scripts_every_figure_is_a_picture(visit, document):
    page = visit(document, java_script_enabled=False).page
    for figure in page.locator("figure.companion").all():
        assert figure.bounding_box()["height"] > 40


@pytest.mark.parametrize("document", CHAPTERS)
def test_the_figure_of_a_chapter_is_driven_by_keyboard(visit, document):
    page = visit(document).page
    kinds = ", ".join(f"figure.companion-{kind}" for kind in KEYS)
    figure = page.locator(kinds).first
    classes = figure.get_attribute("class")
    start, keys = next(v for k, v in KEYS.items() if f"-{k}" in classes)
    shown = "figure => JSON.stringify(figure.computed)"
    seen = {figure.evaluate(shown)}
    figure.locator(start).first.focus()
    for key in keys:
        page.keyboard.press(key)
        seen.add(figure.evaluate(shown))
    assert None not in seen
    assert len(seen) >= 2


@pytest.mark.parametrize("document", CHAPTERS)
def test_a_quiz_answers_back(visit, document):
    word = Path(document).name.split("_", 1)[1]
    page = visit(document).page
    number = [q.kind for q in load(word)].index("choice")
    question = page.locator("figure.companion-quiz .question").nth(number)
    question.locator("summary").first.press("Enter")
    question.get_by_role("radio").first.press("Space")
    question.get_by_role("button").press("Enter")
    verdict = question.locator(".verdict").inner_text()
    assert "Right." in verdict or "Not that one." in verdict


def test_the_search_finds_a_chapter(visit):
    seen = visit("search", where="server")
    seen.page.goto(seen.page.url + "?q=attention")
    seen.page.wait_for_selector("ul.search li")
    assert seen.page.locator("ul.search a", has_text="Attention").count() > 0
