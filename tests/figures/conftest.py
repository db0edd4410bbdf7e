"""One browser for all figures, and the mark of what needs it."""

import matplotlib
import pytest
from figures.browser import Reader

matplotlib.use("agg")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if "tabs" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def tabs(chromium, tmp_path_factory):
    opened = Reader(chromium, tmp_path_factory.mktemp("figures"))
    yield opened
    opened.close()


@pytest.fixture
def reader(tabs):
    """Opens a page; afterwards nothing may have gone wrong with it."""
    tabs.problems.clear()
    yield tabs
    assert tabs.problems == []
