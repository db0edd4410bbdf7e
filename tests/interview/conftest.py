"""The interview's pages in a browser, from a server of this machine.

Not from disk, as ``test_from_disk_an_answer_is_remembered`` does: under load
Chromium gives some three of a hundred pages from disk an empty storage of
their own, where a script asks for it before the browser knows of the page.
Nothing that such a page keeps outlives it. Over HTTP that is not seen.
"""

import pytest
from interview.browser import WHOLE, write_site
from support.harness import server


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where the pages lie."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder)
    return folder


@pytest.fixture(scope="session")
def site(folder):
    """The address of the pages."""
    with server(folder) as address:
        yield address


@pytest.fixture
def visit(chromium, site):
    """Opens a page; nothing may go wrong, and only files beside it be asked.

    ``kept`` is what the browser has kept of the progress, ``before`` a script
    that runs first, ``context`` that of a reader who has a page open already.
    """
    contexts, faults, asked = [], [], []

    def opened(
        name="bank",
        hash="",
        width=900,
        script=True,
        kept=None,
        before="",
        context=None,
    ):
        if context is None:
            context = chromium.new_context(
                viewport={"width": width, "height": 900},
                java_script_enabled=script,
            )
            contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: faults.append(str(error)))
        if name in WHOLE:
            page.on("console", lambda message: faults.append(message.text))
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        asked.append((name, page.asked))
        address = f"{site}/{name}.html"
        if kept is not None:
            page.goto(address)
            page.evaluate(
                "text => localStorage.setItem('companion-progress', text)", kept
            )
        page.add_init_script(before)
        page.goto(address + hash)
        if script:
            page.locator(".settings").first.wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert faults == []
    for name, urls in asked:
        files = {url.removeprefix(f"{site}/") for url in urls}
        own = {url.partition("#")[0] for url in files} - {f"{name}.html"}
        assert not own
