"""Whatever the model and the sentences: rules of chapter 14."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from support.drawn import FEW, SEEDS, SIZES, ids, normal, sentences
from torch import nn

from companion.clinic import (
    Company,
    alone_and_in_company,
    first_difference,
    how_far,
    moved_by,
    same_twice,
    seen_before,
    without_gradient,
)

VOCAB = 11
GROUPS = st.lists(st.integers(0, 9))
close = torch.testing.assert_close


def embedded(tokens):
    """Each token as numbers of its own: (batch, seq, 3)."""
    return torch.stack([(tokens * k).cos() for k in (1.0, 2.0, 3.0)], -1)


@given(st.lists(st.booleans(), min_size=1, max_size=6), SEEDS)
def test_a_weight_has_no_gradient_if_the_loss_leaves_it_out(used, seed):
    assume(any(used))
    torch.manual_seed(seed)
    model = nn.ModuleList(nn.Linear(3, 2) for _ in used)
    taken = [part for part, use in zip(model, used, strict=True) if use]
    loss = sum(part(torch.ones(1, 3)).sum() for part in taken)
    dead = without_gradient(model, loss)
    wanted = {
        f"{i}.{name}": size
        for i, use in enumerate(used)
        for name, size in (("weight", 6), ("bias", 2))
        if not use
    }
    assert dead == wanted
    assert all(p.grad is None for p in model.parameters())


@given(ids(FEW, SIZES, low=0, high=VOCAB))
def test_who_sums_up_to_a_place_moves_with_all_that_came_before(tokens):
    others = (tokens + 1) % VOCAB
    causal = torch.ones(tokens.shape[1], tokens.shape[1]).bool().tril()
    sums = moved_by(lambda t: embedded(t).cumsum(1), tokens, others)
    assert torch.equal(sums, causal)
    alone = moved_by(embedded, tokens, others)
    assert torch.equal(alone, torch.eye(tokens.shape[1]).bool())


@given(sentences(st.integers(2, 4), SIZES, low=1, high=VOCAB))
def test_who_looks_at_each_token_alone_does_not_mind_company(tokens):
    assert alone_and_in_company(embedded, tokens, 0) == Company(0, 0, 0)


@given(sentences(st.integers(2, 4), SIZES, low=1, high=VOCAB))
def test_who_counts_rows_or_columns_is_noticed(tokens):
    def by_row(tokens):
        return embedded(tokens) + torch.arange(len(tokens)).view(-1, 1, 1)

    def by_length(tokens):
        return embedded(tokens) / tokens.shape[1]

    assert alone_and_in_company(by_row, tokens, 0).elsewhere >= 1
    assert alone_and_in_company(by_length, tokens, 0).padded > 0


@given(normal(SIZES, SIZES), st.booleans())
def test_only_who_draws_answers_differently(x, draws):
    def answer(x):
        return x + torch.randn_like(x) if draws else 2 * x

    assert (same_twice(answer, x) > 0) == draws


@given(st.floats(0, 9), SIZES, SEEDS)
def test_a_step_is_as_long_as_what_it_adds(length, width, seed):
    torch.manual_seed(seed)
    model = nn.Linear(width, 2).double()
    way = torch.nn.functional.normalize(
        torch.randn_like(model.weight), dim=None
    )

    def step():
        model.weight.data += length * way / way.norm()

    assert how_far(model, step) == pytest.approx(length, abs=1e-6)


@given(normal(FEW, SIZES, SIZES), st.data())
def test_two_computations_part_where_the_second_was_changed(one, data):
    assert first_difference(one, one.clone()) is None
    place = data.draw(st.integers(0, one.shape[1] - 1))
    other = one.clone()
    other[-1, place:] += one.abs().max()
    assert first_difference(one, other) == place


@given(GROUPS, st.lists(st.integers(0, 9), min_size=1))
def test_what_was_seen_before_stands_in_both_in_the_order_of_the_test(
    train, test
):
    seen = seen_before(train, test)
    assert set(seen) == set(train) & set(test)
    assert seen == [item for item in test if item in seen]
    assert seen_before(train, test, key=lambda item: 0) == (
        test if train else []
    )
