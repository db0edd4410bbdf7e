"""The built book, page by page: every test of a page comes while it is open."""

import pytest
from support.contents import PAGES
from support.harness import SHIFTS, server

MEASURED = "shifts.reduce((sum, each) => sum + each, 0)"
THEME = "theme => document.documentElement.dataset.theme === theme"


@pytest.fixture(scope="session")
def homes(built_book):
    """The address of the book, by where it is read from."""
    with server(str(built_book)) as address:
        yield {"disk": built_book.as_uri(), "server": address}


# Of the session, so that tests are grouped by page, across files.
@pytest.fixture(scope="session", params=PAGES)
def document(request):
    return request.param


@pytest.fixture
def read(loaded, opened, homes):
    """Open a page of the book; with ``alone`` it belongs to this test."""

    def page(document, *, where="server", alone=False, **settings):
        address = f"{homes[where]}/{document}.html"
        options = {"settle": True, **settings}
        if settings.get("scripts", True):
            options |= {"before": SHIFTS, "measure": MEASURED}
        visit = (opened if alone else loaded)(address, **options)
        if theme := settings.get("theme"):
            visit.page.wait_for_function(THEME, arg=theme)
        return visit

    return page
