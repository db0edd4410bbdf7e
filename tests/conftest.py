"""What several test files share: the browser and the built book."""

import os
from pathlib import Path

import pytest
import support.device  # noqa: F401 - before the first gradient
import torch
from hypothesis import settings
from support.harness import Pages

ROOT = Path(__file__).parents[1]
CHROMIUM = "/usr/bin/chromium"
WITHOUT_CHROMIUM = (
    "no Chromium at /usr/bin/chromium, so the pages are not tested: "
    "on Debian, 'apt install chromium fonts-noto-cjk' brings it"
)
QUIET = (
    "--no-sandbox --disable-gpu --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update"
)


# `HYPOTHESIS_PROFILE=nightly` draws a hundred times as many examples.
settings.register_profile(
    "ci", max_examples=20, derandomize=True, deadline=None, database=None
)
settings.register_profile(
    "nightly", max_examples=2000, deadline=None, database=None, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def _seed():
    """Every test draws the same random numbers, in whatever order it runs."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _time_for_shapes(request, monkeypatch):
    """A check may take longer where every shape and type is looked at.

    It is several times as slow so; the limit's own tests run without.
    """
    if request.config.getoption("jaxtyping_packages", None):
        monkeypatch.setattr("companion.contracts.engine.runner.SECONDS", 60.0)


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium; .ci/run sets REQUIRE_CHROMIUM, others may skip."""
    if not Path(CHROMIUM).exists():
        if os.environ.get("REQUIRE_CHROMIUM"):
            pytest.fail(WITHOUT_CHROMIUM)
        pytest.skip(WITHOUT_CHROMIUM)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=QUIET.split()
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(chromium, tmp_path_factory):
    """The pages that this process has loaded."""
    return Pages(chromium, tmp_path_factory.mktemp("pages"))


@pytest.fixture
def loaded(pages):
    """Load a page, or take it as another test left it: support/harness.py."""
    yield from _watched(pages.shared)


@pytest.fixture
def opened(pages):
    """Load a page that belongs to this test alone: support/harness.py."""
    yield from _watched(pages.open, close=True)


def _watched(load, *, close=False):
    visits = []

    def visit(source, **settings):
        visits.append(load(source, **settings))
        return visits[-1]

    yield visit
    faults = [fault for each in visits for fault in each.faults()]
    for each in visits:
        if close:
            each.context.close()
    assert faults == []


@pytest.fixture(scope="session")
def built_book():
    """Where the pages lie; `make test` builds them first."""
    pages = ROOT / "_build" / "html"
    if not (pages / "index.html").exists():
        pytest.fail("the book is not built: run make book")
    return pages
