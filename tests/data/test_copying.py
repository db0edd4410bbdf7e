"""The copying task: what is asked for, and the same draw each time."""

import pytest
import torch

from companion.data.copying import copying_batches
from companion.data.vocabulary import Vocabulary

pytestmark = pytest.mark.once

SIZES = {"length": 7, "symbols": 5, "size": 3, "steps": 2}


@pytest.mark.parametrize("backwards", [False, True])
def test_the_target_is_bos_and_the_source_again(backwards):
    made = copying_batches(**SIZES, seed=0, backwards=backwards)
    assert len(made) == 2
    for src, tgt in made:
        assert src.shape == (3, 7)
        assert tgt[:, 0].eq(Vocabulary.bos).all()
        assert tgt[:, 1:].equal(src.flip(1) if backwards else src)


def test_every_symbol_is_drawn_and_no_special_id():
    ((src, _),) = copying_batches(
        length=7, symbols=5, size=101, steps=1, seed=0
    )
    assert src.unique().tolist() == [3, 4, 5, 6, 7]


def test_a_seed_draws_the_same_and_another_one_differs():
    one, same, other = (
        torch.stack([src for src, _ in copying_batches(**SIZES, seed=s)])
        for s in (0, 0, 1)
    )
    assert one.equal(same)
    assert not one.equal(other)


@pytest.mark.bad_input
@pytest.mark.parametrize("name", SIZES)
def test_a_task_without_anything_in_it_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}: expected at least 1, got 0"):
        copying_batches(**SIZES | {name: 0}, seed=0)
