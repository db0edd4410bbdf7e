"""The drawings of chapter 01 show what the package and PyTorch compute."""

import math
import re

import pytest
import torch
from figures.registry import GATES

from companion.figures import lstm_cell, matrices, recurrence, word_walks
from companion.figures.gallery.lstm_cell import cell_states
from companion.rnn import LSTM

WORDS, GLOSSES = ["我", "爱", "猫"], ["I", "love", "cat"]


def test_the_table_of_the_recurrence_is_the_gradient_of_its_sum():
    x = torch.randn(3, requires_grad=True)
    h = 0.0
    for value in x:
        h = 1.5 * h + value
    h.backward()
    shown = recurrence(WORDS, GLOSSES, keeps=[1.5]).text
    counts = [float(found) for found in re.findall(r"counts ([\d.]+\d)", shown)]
    assert counts == pytest.approx(x.grad.tolist())
    assert counts == [2.25, 1.5, 1.0]


def test_the_drawn_cell_computes_what_an_lstm_with_these_gates_does():
    cell = LSTM(4, 1)
    columns = torch.tensor([GATES[name] for name in GATES]).T.double()
    forget, write, candidate, read = columns.unbind(1)
    # Each gate has an input of its own; candidates of ±1 are out of reach.
    x = torch.stack(
        [write.logit(), forget.logit(), 9 * candidate, read.logit()], dim=1
    )
    cell = cell.double()
    with torch.no_grad():
        cell.W.copy_(torch.eye(4))
        cell.U.zero_()
        cell.b.zero_()
    states, (_, c) = cell(x[None])
    drawn = cell_states(GATES)
    assert [h for _, h in drawn] == pytest.approx(
        states[0, :, 0].tolist(), abs=1e-6
    )
    assert drawn[-1][0] == pytest.approx(c.item(), abs=1e-6)


def test_a_forget_gate_that_holds_less_keeps_less():
    html = lstm_cell(WORDS, GLOSSES, GATES, holds=[0.95, 0.5]).html
    assert f"{0.95 * 0.95:.2f}" in html
    assert f"{0.95 * 0.5:.2f}".rstrip("0") in html
    assert f"{0.95 * math.tanh(0.95 * 0.5):.2f}" in html


def test_both_walks_end_at_the_sum_and_the_mean_is_a_third_of_it():
    walk = word_walks(
        [[2, 0], [0, 2], [1, 1]], WORDS, [[0, 1, 2], [2, 1, 0]], glosses="xy"
    )
    assert "我爱猫 and 猫爱我 end at (3, 3); the mean is (1, 1)." in walk.text


def test_a_matrix_may_have_row_names_of_its_own():
    html = matrices([([[2]], "a", ["x"]), ([[3]], "b")], rows=["y"]).html
    assert html.index(">x<") < html.index(">y<")


@pytest.mark.bad_input
def test_drawings_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match=r"glosses: expected 3.*got 1"):
        recurrence(WORDS, ["I"])
    with pytest.raises(ValueError, match="gates: expected 2 numbers for 'forg"):
        lstm_cell(WORDS[:2], GLOSSES[:2], GATES)
    with pytest.raises(ValueError, match="orders, glosses: expected two"):
        word_walks([[1, 1]], ["我"], [[0]], glosses=["I"])
    with pytest.raises(ValueError, match="words: expected at most 4, got 5"):
        word_walks([[1, 1]] * 5, "abcde", [[0], [1]], glosses="xy")
