"""The second figure of chapter 07: which numbers a norm lets move."""

import pytest
import torch
from figures.registry import GRID, SOURCE, figure_of, parts_at
from torch import nn

from companion.blocks import LayerNorm
from companion.figures import norm_grid
from companion.figures.gallery.norm_grid import ADDED, NORMS, normalised

LAYER, BATCH, RMS = range(3)


@pytest.mark.parametrize("added", range(len(ADDED)))
def test_the_numbers_are_those_of_modules_that_models_use(added):
    changed = GRID.clone()
    changed[1, 2] += ADDED[added]
    modules = LayerNorm(3), nn.BatchNorm1d(3), nn.RMSNorm(3, eps=1e-5)
    for norm, module in enumerate(modules):
        parts = parts_at(figure_of("norm_grid"), norm, 2, 1, added)
        drawn = [float(text.replace("−", "-")) for text in parts["out"]]
        torch.testing.assert_close(
            torch.tensor(drawn),
            module(changed).detach().flatten(),
            atol=0.00501,
            rtol=0,
        )
        given = [float(text.replace("−", "-")) for text in parts["in"]]
        assert given == changed.flatten().tolist()


@pytest.mark.parametrize("norm", [LAYER, RMS])
@pytest.mark.parametrize("word", range(5))
def test_a_norm_of_a_word_moves_that_word_alone(norm, word):
    for feature in range(3):
        parts = parts_at(figure_of("norm_grid"), norm, feature, word, 4)
        moved = [i // 3 for i, kind in enumerate(parts["out@class"])
                 if kind == "moved"]  # fmt: skip
        assert set(moved) <= {word}


@pytest.mark.parametrize("feature", range(3))
def test_batch_norm_moves_a_column_and_no_other(feature):
    parts = parts_at(figure_of("norm_grid"), BATCH, feature, 1, 4)
    moved = {i % 3 for i, kind in enumerate(parts["out@class"])
             if kind == "moved"}  # fmt: skip
    assert moved == {feature}


def test_a_word_that_hears_of_its_future_is_named():
    said = parts_at(figure_of("norm_grid"), BATCH, 1, 2, 4)["says"][0]
    assert "for which" in said
    assert "is the future" in said
    assert "of another sentence" in said
    said = parts_at(figure_of("norm_grid"), LAYER, 1, 2, 4)["says"][0]
    assert "itself" in said
    assert "future" not in said


def test_nothing_added_moves_nothing():
    for norm in range(len(NORMS)):
        parts = parts_at(figure_of("norm_grid"), norm, 0, 0, 2)
        assert "moved" not in parts["out@class"]
        assert parts["says"] == ["Nothing is added, and nothing moves."]


def test_a_framed_number_is_one_that_differs_from_the_unchanged_table():
    usual = normalised("BatchNorm", GRID.double()).flatten()
    parts = parts_at(figure_of("norm_grid"), BATCH, 0, 4, 0)
    for before, text, kind in zip(
        usual.tolist(), parts["out"], parts["out@class"], strict=True
    ):
        gap = abs(before - float(text.replace("−", "-")))
        assert gap < 0.0101 if kind == "still" else gap > 0


@pytest.mark.bad_input
def test_words_and_sentences_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="words: expected 5, got 1"):
        norm_grid(GRID, ["a"], sentences=(5,))
    with pytest.raises(ValueError, match="expected 5 words together, got 3"):
        norm_grid(GRID, SOURCE, sentences=(3,))
