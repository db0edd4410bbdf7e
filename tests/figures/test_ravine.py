"""The first figure of chapter 10: three ways down a ravine."""

import pytest
import torch
from figures.registry import figure_of, parts_at

from companion.figures.gallery.ravine import (
    NAMES,
    RATE,
    START,
    STEEP,
    UPDATES,
    height,
    walk,
)

OPTIMIZERS = {
    "gradient descent": lambda w, c: torch.optim.SGD(w, lr=1.75 / c),
    "momentum": lambda w, c: torch.optim.SGD(w, lr=1.25 / c, momentum=0.7),
    "Adam": lambda w, c: torch.optim.Adam(
        w, lr=RATE, betas=(0.9, 0.98), eps=1e-9
    ),
}


@pytest.mark.parametrize("steep", STEEP)
@pytest.mark.parametrize("name", NAMES)
def test_the_ways_are_those_of_pytorchs_optimizers(name, steep):
    weight = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = OPTIMIZERS[name]([weight], steep)
    scale = torch.tensor([1.0, steep], dtype=torch.float64)
    for place, gradient in walk(NAMES.index(name), steep)[1:]:
        optimizer.zero_grad()
        ((scale * weight**2).sum() / 2).backward()
        torch.testing.assert_close(weight.grad.tolist(), list(gradient))
        optimizer.step()
        torch.testing.assert_close(weight.tolist(), list(place))


def test_adams_way_is_the_same_however_steep_the_ravine():
    ways = [[at for at, _ in walk(2, steep)] for steep in STEEP]
    for way in ways[1:]:
        torch.testing.assert_close(way, ways[0])
    assert ways[0][1] == pytest.approx((START[0] - RATE, START[1] - RATE))


def test_the_others_are_slower_along_the_valley_the_steeper_it_is_across():
    for name in (0, 1):
        along = [walk(name, steep)[-1][0][0] for steep in STEEP]
        assert along == sorted(along)


@pytest.mark.parametrize("steep", range(len(STEEP)))
@pytest.mark.parametrize("name", range(len(NAMES)))
def test_a_dot_is_drawn_for_each_update_and_the_height_is_said(name, steep):
    for step in (0, 1, UPDATES):
        parts = parts_at(figure_of("ravine"), name, steep, step)
        assert parts["dots@d"][0].count("h0") == step + 1
        at, _ = walk(name, STEEP[steep])[step]
        assert f"height is {height(at, STEEP[steep]):.2f}" in parts["says"][0]
