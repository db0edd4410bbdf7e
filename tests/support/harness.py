"""Pages in Chromium, each loaded once and asked many things.

``loaded`` gives a page that other tests look at too: look, scroll, change what
the reader's system decides, and leave the document as it is. ``opened`` gives a
page of the test's own, to click, type and change. Both are fixtures of
``conftest.py``; a test that uses one fails if its page logged a warning, raised
an error or asked another site for anything.
"""

from collections import OrderedDict
from contextlib import contextmanager
from functools import partial
from hashlib import md5
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
LOCAL = ("file:", "data:", "blob:", "about:", "http://127.0.0.1")
KEPT = 6
# Each move of what is shown already goes into `shifts`.
SHIFTS = """window.shifts = [];
new PerformanceObserver(list => {
  for (const entry of list.getEntries())
    if (!entry.hadRecentInput) shifts.push(entry.value);
}).observe({ type: "layout-shift", buffered: true });"""
# Focus leaves a mark from which the next Tab goes on: the body takes it.
AT_THE_TOP = """() => {
  document.body.tabIndex = -1;
  document.body.focus();
  document.body.blur();
  document.body.removeAttribute("tabindex");
  window.scrollTo(0, 0);
}"""


class Visit:
    """A loaded page, the addresses it asked for, and what it complained of.

    Args:
        browser: A running Chromium.
        url: What to load.
        before: A script that runs before those of the page.
        settle: Wait until nothing more is asked for, half a second long.
        measure: An expression; ``measured`` is its value once all is loaded.
        context: As for playwright's ``Browser.new_context``.
    """

    def __init__(
        self, browser, url, *, before="", settle=False, measure="", **context
    ):
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("console", self._listen)
        if before:
            self.page.add_init_script(before)
        self.page.goto(url)
        if settle:
            self.page.wait_for_load_state("networkidle")
        self.needed = set(self.requests)
        self.measured = self.page.evaluate(measure) if measure else None

    def _listen(self, message):
        if message.type in ("error", "warning"):
            where = message.location["url"]
            self.complaints.append(f"{message.text} ({where})")

    def faults(self):
        """What a page must not do: complain, or ask another site."""
        outside = [url for url in self.requests if not url.startswith(LOCAL)]
        return self.complaints + outside


class Pages:
    """Loads pages, and keeps the last few that several tests may share.

    Args:
        browser: A running Chromium.
        folder: Where HTML that is no file yet is written.
    """

    def __init__(self, browser, folder):
        self.browser, self.folder = browser, folder
        self.visits = OrderedDict()

    def address(self, source):
        """Return ``source``, or the address of a file if it is HTML."""
        if isinstance(source, Path):
            return source.as_uri()
        if not source.lstrip().startswith("<"):
            return source
        path = self.folder / f"{md5(source.encode()).hexdigest()}.html"
        if not path.exists():
            path.write_text(source, encoding="utf-8")
        return path.as_uri()

    def open(self, source, *, size=DESKTOP, scripts=True, **settings):
        """Load ``source`` (an address, a path or HTML) anew."""
        return Visit(
            self.browser,
            self.address(source),
            viewport=size,
            java_script_enabled=scripts,
            **settings,
        )

    def shared(
        self,
        source,
        *,
        size=DESKTOP,
        theme="light",
        motion="no-preference",
        changed=False,
        **settings,
    ):
        """Load ``source``, or take the page that is loaded already.

        ``changed`` takes one that tests click and type in, each in a part of
        its own.

        ``theme`` and ``motion`` are told to the loaded page, as a system does
        that turns dark in the evening. The page is at its top, without focus.
        """
        key = (source, changed, *size.values(), *sorted(settings.items()))
        if key not in self.visits:
            self.visits[key] = self.open(source, size=size, **settings)
        self.visits.move_to_end(key)
        while len(self.visits) > KEPT:
            self.visits.popitem(last=False)[1].context.close()
        visit = self.visits[key]
        visit.page.emulate_media(color_scheme=theme, reduced_motion=motion)
        if settings.get("scripts", True):
            visit.page.evaluate(AT_THE_TOP)
        return visit


@contextmanager
def server(folder):
    """Serve ``folder`` to this machine alone, and say nothing about it."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = partial(Quiet, directory=folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
