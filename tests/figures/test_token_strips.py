"""Lines of text in pieces: every byte is drawn, and counted once."""

import re
from html import unescape

import pytest
from figures.registry import CUTS, LINES, figure_of, parts_at

from companion.figures import token_strips
from companion.figures.gallery.token_strips import shown


@pytest.mark.parametrize("stage", range(3))
def test_a_box_stands_for_every_piece_and_the_number_beside_counts_them(stage):
    parts = parts_at(figure_of("token_strips"), stage)
    cut = list(CUTS.values())[stage]
    for strip, count, pieces in zip(
        parts["strip"], parts["count"], cut, strict=True
    ):
        assert int(count) == len(pieces) == strip.count('class="piece"')
        text = unescape(re.sub("<[^>]+>", "", strip))
        assert text == "".join(map(shown, pieces))


def test_one_way_to_cut_needs_no_script():
    figure = token_strips(["a"], {"letters": [[b"a", b"b"]]}, caption="Two.")
    assert "<script" not in figure.html
    assert figure.text == "Text in pieces. letters: a 2."
    assert "Two.</figcaption>" in figure.html


def test_characters_joined_are_the_line():
    parts = parts_at(figure_of("token_strips"), 0)
    for strip, line in zip(parts["strip"], LINES, strict=True):
        text = unescape(re.sub("<[^>]+>", "", strip))
        assert text.replace("␣", " ") == line


def test_bytes_that_are_no_character_are_written_in_hexadecimal():
    assert shown("猫".encode()[:2]) == "e7 8c"
    assert shown(b" cat ") == "␣cat␣"
    parts = parts_at(figure_of("token_strips"), 1)
    assert parts["count"] == ["13", "9"]
    assert parts["says"] == ["bytes: English 13, 中文 9."]


@pytest.mark.bad_input
def test_a_way_with_other_lines_is_refused():
    with pytest.raises(ValueError, match=r"as names, 2, got \[1\]"):
        token_strips(["a", "b"], {"x": [[b"a"]]})
    with pytest.raises(ValueError, match=r"got \[\]"):
        token_strips(["a"], {})
