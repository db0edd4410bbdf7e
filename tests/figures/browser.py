"""What the tests of figures do with a page: open it, press keys, read it."""

from types import SimpleNamespace

import torch

PHONE, LAPTOP = 390, 1024
INK = {"light": "rgb(31, 36, 48)", "dark": "rgb(231, 233, 238)"}
PAGE = """<!doctype html><html lang="en" data-theme="{theme}"><head>
<meta charset="utf-8"><title>Figures</title>
<meta name="viewport" content="width=device-width, initial-scale=1"></head>
<body style="margin: 16px"><button id="before">before</button>{html}
<button id="after">after</button></body></html>"""


class Reader:
    """Opens figures from disk; nothing may go wrong, nothing may be fetched.

    A tab of the browser is kept for each kind of reader (no scripts, a phone,
    …) and shows one page after the other, which is faster than a new one.
    """

    def __init__(self, browser, folder):
        self.problems = []
        self._browser, self._folder = browser, folder
        self._tabs, self._written = {}, 0

    def __call__(self, html, *, theme="light", width=LAPTOP, tab="", **options):
        """Show a page with this HTML.

        Args:
            html: One figure or several.
            theme: ``light`` or ``dark``.
            width: Of the window, in pixels.
            tab: A tab for itself, which no other page replaces.
            options: What Playwright's ``new_context`` takes.
        """
        self._written += 1
        file = self._folder / f"page{self._written}.html"
        file.write_text(PAGE.format(theme=theme, html=html), encoding="utf-8")
        kind = tab, *sorted(options.items())
        if kind not in self._tabs:
            self._tabs[kind] = self._opened(options)
        page = self._tabs[kind]
        page.set_viewport_size({"width": width, "height": 800})
        page.mouse.move(0, 0)
        page.goto(file.as_uri())
        return page

    def _opened(self, options):
        page = self._browser.new_context(**options).new_page()
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on(
            "console",
            lambda m: self.problems.append(m.text) if m.type != "log" else None,
        )
        page.on("request", lambda request: self._note(request.url))
        return page

    def _note(self, url):
        if not url.startswith("file:"):
            self.problems.append(url)

    def close(self):
        for page in self._tabs.values():
            page.context.close()


def computed(page):
    """What the script of the first figure shows now."""
    return SimpleNamespace(
        **page.wait_for_function(
            "() => document.querySelector('figure').computed"
        ).json_value()
    )


def settled(page):
    """Wait until the script of every figure has drawn."""
    page.wait_for_function(
        "[...document.querySelectorAll('figure')].every(f => f.computed)"
    )


def focused(page, what="outerHTML"):
    return page.evaluate(f"document.activeElement.{what}")


def enter(page):
    """Go to the figure's first control, as a keyboard does."""
    computed(page)
    page.locator("#before").focus()
    press(page, "Tab")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def close(got, expected, **tolerance):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    got = torch.tensor(got, dtype=torch.float64)
    torch.testing.assert_close(got, expected, **tolerance)
