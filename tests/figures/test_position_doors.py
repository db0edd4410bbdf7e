"""At which door each scheme enters: asked of the package."""

import re

import torch
from figures.registry import shown

from companion import positions
from companion.figures import position_doors
from companion.figures.gallery.position_doors import DOORS

N, D = 5, 6


def test_every_scheme_stands_at_its_doors():
    html = shown(position_doors())
    named = " ".join(re.findall(r'class="scheme" [^>]*>([^<]*)<', html))
    for _, schemes in DOORS.values():
        for scheme in schemes:
            assert scheme in named
    assert named.count("Shaw") == 2
    doors = re.findall(r'class="number" [^>]*>(\d)<', html)
    assert sorted(doors) == ["1", "2", "2", "3", "4"]


def test_door_1_adds_the_same_to_every_word():
    x = torch.randn(2, N, D)
    for scheme in (
        positions.SinusoidalPositions(D),
        positions.LearnedPositions(N, D),
    ):
        added = scheme(x) - x
        torch.testing.assert_close(added[0], added[1])


def test_door_2_leaves_the_values_and_the_lengths():
    q = torch.randn(N, D)
    turned = positions.rotate(q, torch.arange(N))
    torch.testing.assert_close(turned.norm(dim=-1), q.norm(dim=-1))
    assert not torch.allclose(turned[1:], q[1:])


def test_door_3_moves_weights_and_only_shaw_opens_door_4():
    q, k = torch.randn(2, 1, N, D)
    v = torch.zeros(1, N, D)
    shaw = positions.Shaw(D, clip=2)
    xl = positions.TransformerXL(D, 1, D)
    plain = (q @ k.mT / D**0.5).softmax(-1)
    for bias in (positions.alibi_bias(1, N), positions.T5Bias(1)(N)):
        weights = positions.biased_weights(q, k, bias)
        assert not torch.allclose(weights, plain)
    for scheme in (shaw, xl):
        assert not torch.allclose(scheme.weights(q, k), plain)
    assert xl(q, k, v).abs().max() == 0
    assert shaw(q, k, v).abs().max() > 0.1
