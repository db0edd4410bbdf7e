"""The rule for one guess: what comes out is the target's."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from companion.efficiency import acceptance, expected_tokens, speculative_step

P = torch.tensor([0.3, 0.5, 0.2])
Q = torch.tensor([0.6, 0.3, 0.1])
PASSES = 20_000


def shares(p, q, times, seed=0):
    draw = torch.Generator().manual_seed(seed)
    guesses = torch.multinomial(q, times, True, generator=draw).tolist()
    out = [speculative_step(p, q, guess, draw) for guess in guesses]
    kept = sum(a == b for a, b in zip(guesses, out, strict=True)) / times
    return torch.bincount(torch.tensor(out), minlength=len(p)) / times, kept


def test_what_comes_out_is_distributed_as_the_target():
    """Chi-squared below 13.8: 1 in 1000 right rules would fail, 2 freedoms."""
    found, kept = shares(P, Q, PASSES)
    assert (PASSES * (found - P).square() / P).sum() < 13.8
    # A guess that is not kept is drawn anew from where q < p: never the same.
    assert abs(kept - 0.7) < 0.015


def test_a_guess_that_the_target_never_makes_is_never_kept():
    p = torch.tensor([0.0, 0.5, 0.5])
    found, _ = shares(p, Q, 500)
    assert found[0] == 0


def test_a_draft_that_is_the_target_is_always_right():
    found, kept = shares(P, P, 500)
    assert kept == 1
    assert found.sum() == 1


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=2))
def test_kept_and_missing_make_up_the_target(pairs):
    p, q = torch.tensor(pairs, dtype=torch.double).unbind(1)
    p, q = p / p.sum(), q / q.sum()
    both, missing = torch.minimum(p, q), (p - q).clamp(min=0)
    rest = 1 - acceptance(p, q)
    torch.testing.assert_close(rest, missing.sum(), atol=1e-9, rtol=1e-6)
    torch.testing.assert_close(both + missing, p)


def test_acceptance_on_paper():
    assert acceptance(P, Q).item() == pytest.approx(0.7)
    assert acceptance(P, P).item() == pytest.approx(1)


def test_tokens_a_pass_on_paper():
    assert expected_tokens(0.5, 2) == 1.75
    assert expected_tokens(1.0, 4) == 5
    assert expected_tokens(0.0, 4) == 1
    assert expected_tokens(0.9, 0) == 1


@pytest.mark.bad_input
def test_what_no_draft_can_have_drawn_is_refused():
    never = torch.tensor([0.0, 0.5, 0.5])
    for guess in (0, 3, -1):
        with pytest.raises(ValueError, match=f"can draw, got {guess}"):
            speculative_step(P, never, guess, torch.Generator())
    with pytest.raises(ValueError, match=r"vocab=3.*\(2,\)"):
        speculative_step(P, P[:2], 0, torch.Generator())
    with pytest.raises(TypeError, match=r"a torch.Generator, got int"):
        speculative_step(P, Q, 0, 3)
