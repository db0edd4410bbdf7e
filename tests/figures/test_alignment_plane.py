"""The first figure of chapter 02: one alignment in a plane."""

import re

import pytest
import torch
from figures.registry import (
    NEEDLES,
    SOURCE,
    STATES,
    TARGET,
    figure_of,
    parts_at,
)

from companion.figures import alignment_plane
from companion.figures.kit.digits import fixed
from companion.seq2seq import dot_alignment

ORDER = [2, 3, 0, 1]
TRUE = torch.tensor([[2.0, 0], [0, 2], [-2, 0], [0, -2]])


def a_plane(**changed):
    given = {
        "words": list("我爱小猫"),
        "states": TRUE,
        "target": ["little"],
        "queries": torch.tensor([[-0.75, -0.25]]),
        "glosses": ["I", "love", "little", "cat"],
        "order": [2, 3, 0, 1],
    }
    return alignment_plane(**(given | changed))


def test_the_example_of_the_lesson_is_what_one_finds_on_paper():
    # Scores -1.5, -0.5, 1.5 and 0.5; exp 0.22, 0.61, 4.48 and 1.65: 6.96.
    said = a_plane().text
    for word, share in zip("我爱小猫", (0.03, 0.09, 0.64, 0.24), strict=True):
        assert f"{share:.2f} of {word}" in said
    assert said.endswith("its context is (−1.22, −0.30).")


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("asks", range(3))
def test_what_is_drawn_is_what_the_package_computes(asks, turn):
    shown = parts_at(figure_of("alignment_plane"), asks, turn)
    order = ORDER if turn else [*range(4)]
    states = STATES[order]
    (weights,) = dot_alignment(NEEDLES[asks][None], states[None])
    lines = shown["lines"][0]
    written = re.findall(r'class="weight"[^>]*>([^<]+)<', lines)
    assert written == [fixed(w) for w in weights.tolist()]
    thick = [float(w) for w in re.findall(r'stroke-width="([\d.]+)"', lines)]
    torch.testing.assert_close(
        torch.tensor(thick), 1 + 13 * weights, atol=0.051, rtol=0
    )
    x, y = (weights @ states).tolist()
    plane = shown["plane"][0]
    assert f"({fixed(x)}, {fixed(y)})" in plane
    assert (
        f"“{TARGET[asks]}”".replace("<", "&lt;").replace(">", "&gt;")
        in (shown["says"][0])
    )
    assert SOURCE[order[0]] in lines


def test_the_second_order_moves_the_weights_and_leaves_the_context():
    figure = figure_of("alignment_plane")
    for asks in range(3):
        first, second = (parts_at(figure, asks, turn) for turn in (0, 1))
        point = re.compile(r"context \(.*?\)")
        assert point.findall(first["plane"][0]) == point.findall(
            second["plane"][0]
        )
        assert first["lines"] != second["lines"]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": [0, 1, 2]}, r"order: expected 4 indices.*\[0, 1, 2\]"),
        ({"states": TRUE[:3]}, r"states: .*\(4, 2\), got \(3, 2\)"),
        ({"queries": TRUE[:2]}, r"queries: .*\(1, 2\), got \(2, 2\)"),
    ],
)
def test_parts_that_do_not_fit_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        a_plane(**change)
