"""What a report says of a mistake, and what it keeps to itself."""

import math
import sys

import pytest
import torch
from contracts.known import gate_message
from contracts.right.attention import attention_by_matmul, masked_by_lowest
from contracts.right.rnn import rnn_by_loop
from torch import nn

from companion.contracts import check


def attend(q, k, v, mask, scale, weigh):
    scores = q @ k.transpose(-2, -1) * scale
    return (scores.softmax(-1) if mask is None else weigh(scores, mask)) @ v


def text_of(component, fn):
    return " ".join(str(check(component, fn)).split())


def messages_of(component, fn):
    """What is told, once for each cause."""
    report = check(component, fn)
    return [group[0].message for group in report.grouped()]


# The name of a stub


def repaired(x, h0, W, U, b):
    raise NotImplementedError


class Recurrence:
    """A callable that has no name of its own."""

    def __call__(self, *args):
        raise NotImplementedError


def test_a_stub_keeps_the_name_that_its_writer_gave_it():
    assert gate_message("rnn", repaired) == (
        "Nothing is written here yet. Write `def repaired(x, h0, W, U, b)`, "
        "which returns all hidden states (batch, seq, hidden)."
    )


class CallsAList(nn.Module):
    """A ModuleList has no forward of its own."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(12, 12)])

    def forward(self, x):
        return self.layers(x)


def test_what_pytorch_has_not_written_is_no_stub():
    said = gate_message("feed_forward", CallsAList())
    assert "`return self.layers(x)`: Module [ModuleList] is missing" in said
    stub = gate_message("feed_forward", nn.Module())
    assert stub.startswith("Nothing is written here yet")


@pytest.mark.parametrize(
    "fn", [lambda *args: repaired(*args), Recurrence(), Recurrence().__call__]
)
def test_what_has_no_plain_name_is_called_like_its_component(fn):
    assert "Write `def rnn(x, h0, W, U, b)`" in gate_message("rnn", fn)


def test_a_wrong_number_of_parameters_is_told_with_the_name_of_the_function():
    def my_attention(q, k, v):
        return v

    message = gate_message("attention", my_attention)
    assert "It cannot be called as `my_attention(q, k, v, mask)`" in message
    assert "The contracts call `my_attention(q, k, v, mask=None)`" in message
    assert "check.md#adapters" in message


# NaN in a row that hides everything


def by_bias(scores, mask):
    return scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)


@pytest.mark.parametrize(
    "wipe", [lambda w, m: w.nan_to_num(0), lambda w, m: w.masked_fill(~m, 0)]
)
def test_adding_infinity_spoils_the_gradient_whatever_comes_after(wipe):
    def masked_softmax(scores, mask):
        return wipe(by_bias(scores, mask).softmax(-1), mask)

    (message,) = messages_of("masked_softmax", masked_softmax)
    assert message.startswith("The gradient of `scores` is NaN in row 1. ")
    assert "`masked_fill` with a finite number instead of adding -∞" in message


def test_dividing_by_a_sum_of_zero_spoils_the_gradient_too():
    def masked_softmax(scores, mask):
        parts = (scores - scores.amax(-1, keepdim=True)).exp() * mask
        return (parts / parts.sum(-1, keepdim=True)).nan_to_num(0)

    message = text_of("masked_softmax", masked_softmax)
    assert "divide by no sum that is 0" in message


def test_nan_in_the_output_is_told_once_and_nothing_is_said_to_be_mended():
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask, k.shape[-1] ** -0.5, with_infinity)

    (message,) = messages_of("attention", attention)
    assert message.startswith("Row 1, feature 0 is NaN. All its scores are -∞")


# What follows from a named mistake is told with it


def hides_what_is_allowed(scores, mask):
    return scores.masked_fill(mask, -torch.inf).softmax(-1)


def without_h0(x, h0, W, U, b):
    return rnn_by_loop(x, torch.zeros_like(h0), W, U, b)


def from_h0_each_time(x, h0, W, U, b):
    return torch.tanh(x @ W.T + (h0 @ U.T + b).unsqueeze(1))


def without_memory(x, h0, W, U, b):
    return torch.tanh(x @ W.T + b)


def without_bias(x, h0, W, U, b):
    return rnn_by_loop(x, h0, W, U, torch.zeros_like(b))


def without_the_query(query, keys):
    return torch.full(keys.shape[:2], 1 / keys.shape[1])


@pytest.mark.parametrize(
    ("component", "fn", "named"),
    [
        ("masked_softmax", hides_what_is_allowed, "The mask is upside down"),
        ("rnn", without_h0, "h0 is not used"),
        ("rnn", from_h0_each_time, "every step starts from h0"),
        ("rnn", without_memory, "The previous state is not used"),
        ("rnn", without_bias, "b is not used"),
    ],
)
def test_what_a_named_mistake_brings_about_is_told_with_it(
    component, fn, named
):
    report = check(component, fn)
    assert len(report.failures) > 2
    (message,) = messages_of(component, fn)
    assert named in message


@pytest.mark.parametrize(
    ("component", "fn", "misleading"),
    [
        ("masked_softmax", hides_what_is_allowed, "`exp` makes ∞"),
        ("rnn", without_h0, "is U transposed"),
        ("rnn", without_h0, "detach"),
        ("rnn", from_h0_each_time, "detach"),
        ("rnn", without_memory, "detach"),
        ("alignment", without_the_query, "detach"),
    ],
)
def test_a_report_does_not_point_at_what_is_in_order(component, fn, misleading):
    assert misleading not in text_of(component, fn)


def with_infinity(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def unscaled(q, k, v, mask=None):
    return attend(q, k, v, mask, 1, with_infinity)


def sigmoid_without_a_mask(q, k, v, mask=None):
    if mask is None:
        return (q @ k.mT / math.sqrt(k.shape[-1])).sigmoid() @ v
    return attend(q, k, v, mask, k.shape[-1] ** -0.5, with_infinity)


@pytest.mark.parametrize(
    ("attention", "named"),
    [
        (unscaled, "The scores are not scaled"),
        (sigmoid_without_a_mask, "This is a sigmoid"),
    ],
)
def test_a_second_mistake_is_told_beside_the_named_one(attention, named):
    messages = messages_of("attention", attention)
    assert named in messages[0]
    assert any("All its scores are -∞" in message for message in messages)


def test_two_mistakes_without_a_name_do_not_blame_the_gradient():
    def suspicious(x, h0, W, U, b):
        return torch.tanh(x @ W.T + (h0 @ U + b).unsqueeze(1))

    text = text_of("rnn", suspicious)
    assert "is each state made of this step's input" in text
    assert "detach" not in text


def test_an_argument_without_effect_is_not_said_to_be_cut_off():
    def rnn(x, h0, W, U, b):
        return rnn_by_loop(x, torch.zeros_like(h0), W, U.T, b)

    text = text_of("rnn", rnn)
    assert "State 0 stays as it was when `h0` changes." in text
    assert "does not depend on `h0`" in text
    assert "detach" not in text
    assert "is U transposed" not in text


# A mask and a scale, both wrong


def divided_by_d_k(weigh):
    def attention(q, k, v, mask=None):
        return attend(q, k, v, mask, 1 / k.shape[-1], weigh)

    return attention


@pytest.mark.parametrize(
    ("weigh", "says"),
    [
        (lambda s, m: s.softmax(-1), "The mask seems to be ignored"),
        (lambda s, m: masked_by_lowest(s, ~m), "Is the mask upside down?"),
        (lambda s, m: (s * m).softmax(-1), "Does the mask reach the scores"),
        (lambda s, m: s.softmax(-1) * m, "The softmax still counts the hidden"),
    ],
)
def test_a_wrong_mask_is_told_beside_a_wrong_scale(weigh, says):
    messages = messages_of("attention", divided_by_d_k(weigh))
    assert says in messages[0]
    assert "divided by d_k" not in messages[0]
    assert sum(says in message for message in messages) == 1
    assert any("The scores are divided by d_k" in m for m in messages)


# What PyTorch says in its own words


def test_a_mask_asked_for_its_truth_is_told_once_how_to_ask():
    def attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        if mask:
            scores = scores.masked_fill(~mask, -1e4)
        return scores.softmax(-1) @ v

    text = text_of("attention", attention)
    assert text.count("write `if mask is not None`") == 1


@pytest.mark.parametrize(
    "shifted",
    [
        lambda s, dim: s - s.max(dim, keepdim=True),
        lambda s, dim: torch.sub(s, torch.max(s, dim, keepdim=True)),
        lambda s, dim: s / s.max(dim, keepdim=True).exp(),
    ],
)
def test_a_maximum_with_its_indices_is_explained(shifted):
    message = gate_message(
        "softmax", lambda scores, dim: shifted(scores, dim).exp()
    )
    assert (
        "`.max(dim)` returns values and indices: use "
        "`.amax(dim, keepdim=True)`." in message
    )


def in_one_line(q, k, v, mask=None):
    return (q @ k.T / math.sqrt(k.shape[-1])).softmax(-1) @ v


def in_two_lines(Q, K, V, mask=None):
    turned = K.T
    return torch.matmul(Q, turned).softmax(-1) @ V


def over_several_lines(q, k, v, mask=None):
    scores = torch.matmul(q, k.T)
    return scores.softmax(-1) @ v


@pytest.mark.parametrize(
    ("fn", "name"),
    [(in_one_line, "k"), (in_two_lines, "K"), (over_several_lines, "k")],
)
def test_a_transposition_of_all_axes_is_explained(fn, name):
    assert (
        f"`.T` reverses all axes: `{name}.transpose(-2, -1)` swaps the last "
        "two." in gate_message("attention", fn)
    )


def test_a_matrix_may_be_transposed():
    def rnn(x, h0, W, U, b):
        return torch.tanh(x @ W.T + h0 @ W.T + b)

    message = gate_message("rnn", rnn)
    assert "RuntimeError" in message
    assert "reverses" not in message


def test_a_transposed_matrix_is_right_where_there_are_two_axes():
    def attention(q, k, v, mask=None):
        if k.ndim > 2:
            return attention_by_matmul(q, k, v, mask)
        scores = q @ k.T / math.sqrt(k.shape[-1])
        if mask is None:
            return scores.softmax(-1) @ v
        return masked_by_lowest(scores, mask) @ v

    assert check("attention", attention).passed


def test_a_message_names_the_deepest_line_of_ones_own_code(tmp_path):
    (tmp_path / "inner_of_mine.py").write_text(
        "import torch\n\n\ndef deep(q):\n    q = q + 1\n    return q @ q\n"
    )
    sys.path.append(str(tmp_path))
    try:
        from inner_of_mine import deep  # pyrefly: ignore
    finally:
        sys.path.remove(str(tmp_path))
    report = check("attention", lambda q, k, v, mask=None: deep(q))
    says = "in line 3 of `deep` in inner_of_mine.py, `return q @ q`"
    assert says in report.failures[0].message


def test_a_mask_by_rows_is_found_where_padding_stands_in_front():
    def by_rows(src_tokens, tgt_tokens, pad):
        source = (src_tokens != pad)[:, None, None, :]
        rows = (tgt_tokens != pad)[:, None, :, None]
        length = tgt_tokens.shape[1]
        return source, rows & torch.ones(length, length).tril().bool(), source

    report = check("combine_masks", by_rows)
    failed = [f.contract for f in report.failures]
    assert "No target token sees padding" in failed
