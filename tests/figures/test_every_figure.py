"""What every figure is, as Python makes it: whole, alone, always the same."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
import torch
from figures.registry import MOVING, STILL, Tags, figure_of

from companion import figures
from companion.figures.kit.inline import HERE, read_style

BOOK = Path(__file__).parents[2] / "book"
MAKERS = {name: example.make for name, example in MOVING.items()} | STILL
HEAVIEST = {"objectives": 200_000, "unrolled_rnn": 90_000}
"""Bytes of a figure, where they may be more than 80,000."""


@pytest.fixture(params=MAKERS)
def name(request):
    return request.param


def test_a_figure_shows_itself_as_html_and_as_text(name):
    bundle = figure_of(name)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/html"].startswith("<figure")
    assert bundle["text/plain"].strip()


def test_the_same_input_gives_the_same_bytes_whatever_the_seed(name):
    torch.manual_seed(2)
    assert MAKERS[name]().html == figure_of(name).html


def test_every_tag_that_opens_closes(name):
    assert Tags(figure_of(name).html).open == []


def test_nothing_is_asked_of_another_place(name):
    html = figure_of(name).html
    assert not re.search(r"https?://|@import|//cdn|\bsrc=", html)
    assert not re.search(r"\bfetch\(|\bimport\b.*\bfrom\b ['\"]", html)
    assert not re.search(r"url\((?!#)", html)


def test_a_figure_is_light(name):
    assert len(figure_of(name).html.encode()) < HEAVIEST.get(name, 80_000)


@pytest.mark.parametrize("name", [*MOVING])
def test_a_terminal_shows_the_sentence_that_the_page_shows(name):
    figure = figure_of(name)
    said = re.search(r'class="(?:says|symptom)"[^>]*>(.*?)</p>', figure.html)[1]
    plain = unescape(re.sub("<[^>]+>", "", said))
    assert plain
    assert figure.text.replace("`", "").endswith(f". {plain}")


@pytest.mark.parametrize("name", [*MOVING])
def test_every_rule_of_the_style_stays_within_its_figure(name):
    html = figure_of(name).html
    kind = re.search(r'class="companion (companion-\w+)"', html)[1]
    own = html.split("</style>")[0]
    for sheet in HERE.glob("*.css"):
        own = own.replace(read_style(sheet), "")
    rules = re.findall(r"([^{}]+)\{", own.split(">", 1)[1].replace("{ }", ""))
    selectors = [rule for rule in rules if not rule.strip().startswith("@")]
    assert selectors
    for selector in selectors:
        for part in re.split(r",(?![^(]*\))", selector):
            assert f".{kind}" in part, part


def test_every_figure_of_the_gallery_is_in_the_registry_and_in_the_book():
    assert {*figures.FIGURES} <= {*MAKERS}
    pages = [
        json.loads(page.read_text(encoding="utf-8"))
        for page in BOOK.rglob("*.ipynb")
    ]
    cells = "\n".join(
        "".join(cell["source"]) for page in pages for cell in page["cells"]
    )
    for name in figures.FIGURES:
        assert f"figures.{name}(" in cells


def test_the_package_is_imported_without_torch_and_matplotlib():
    code = (
        "import sys, companion.figures, companion.figures.kit.inline\n"
        "heavy = {'torch', 'matplotlib', 'ipywidgets', 'pygments'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", figures.__all__)
def test_a_public_name_can_be_had_and_is_listed(name):
    assert getattr(figures, name).__name__ == name
    assert name in dir(figures)


@pytest.mark.bad_input
def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no 'unrolled_lstm'"):
        figures.unrolled_lstm  # noqa: B018
