"""The API reference: each public name has an entry, each listing a link."""

import re
from html import unescape
from importlib import import_module
from types import FunctionType

import pytest

import companion

pytestmark = pytest.mark.once

DATA = "batches codecs copying corpora grammar phrasebook subwords vocabulary"
PARTS = (
    *companion.CHAPTERS,
    *(
        "contracts",
        "contracts.adapters",
        "figures",
        "figures.live",
        "interview",
    ),
    *(f"data.{part}" for part in DATA.split()),
)
CAPTION = re.compile(r"<figcaption>(.*?<code>companion\..*?)</figcaption>")


def page_of(pages, part):
    folder = pages.joinpath("api", "companion", *part.split("."))
    return (folder / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", PARTS)
def test_each_public_name_has_an_entry(built_book, part):
    module = import_module(f"companion.{part}")
    html = page_of(built_book, part)
    names = getattr(module, "__all__", ())
    documented = {
        name
        for name in names
        if isinstance(getattr(module, name), type | FunctionType)
    }
    entries = set(re.findall(rf'id="companion\.{part}\.(\w+)"', html))
    assert documented <= entries
    assert not [name for name in entries if name.startswith("_")]


def test_a_signature_has_its_shapes(built_book):
    text = re.sub(r"<[^>]+>", "", page_of(built_book, "attention"))
    assert "Float[Tensor, '... query d_k']" in unescape(text)


def test_every_listing_links_to_what_it_lists(built_book):
    found = set()
    for path in (built_book / "book").rglob("[01]*.html"):
        html = path.read_text(encoding="utf-8")
        for caption in CAPTION.findall(html):
            assert caption.count("<a ") == caption.count("<code>"), caption
            for link in re.findall(r'href="([^"]+)"', caption):
                page, _, anchor = link.partition("#")
                target = (path.parent / page).read_text(encoding="utf-8")
                assert f'id="{anchor}"' in target, (path.stem, link)
                found.add(anchor)
    assert "companion.blocks.layer_norm" in found
    assert "companion.multihead.MultiHeadAttention.forward" in found
