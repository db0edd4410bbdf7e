"""Whatever is raised, returned or passed, ``check`` reports it."""

import re

import pytest
import torch
from contracts.known import gate_message
from contracts.right.attention import attention_by_matmul, softmax_by_hand
from torch import nn

from companion.contracts import check

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit]
)
def test_what_is_raised_is_reported_with_its_line(kind):
    def softmax(scores, dim):
        # Not in the first line.
        raise kind("too hot")

    assert gate_message("softmax", softmax) == (
        f"It raised {kind.__name__} in line 3 of `softmax`, `raise "
        'kind("too hot")`: too hot. The arguments were scores (2, 3, 5), '
        "dim -1."
    )


def test_endless_recursion_is_reported():
    def softmax(scores, dim):
        return softmax(scores, dim)

    assert "RecursionError in line 2 of `softmax`" in gate_message(
        "softmax", softmax
    )


def test_an_exception_that_cannot_be_printed_is_reported():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def softmax(scores, dim):
        raise Mute

    assert gate_message("softmax", softmax).startswith(
        "It raised Mute in line 2"
    )


def test_an_address_in_an_exception_is_left_out():
    def softmax(scores, dim):
        raise ValueError(object())

    assert "<object object at 0x…>" in gate_message("softmax", softmax)


def test_what_a_terminal_would_obey_is_left_out():
    clear = type("Clear\x1b[2J", (Exception,), {})

    def softmax(scores, dim):
        raise clear("\x1b]52;c;aGk=\x07 \u202e")

    message = gate_message("softmax", softmax)
    assert message.startswith("It raised Clear[2J in line 2")
    assert ": ]52;c;aGk= . The" in message


class Untouchable(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if "shape" in str(func) or "layout" in str(func):
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError("do not touch")


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (lambda s: None, "It returned None: expected .* forget `return`"),
        (lambda s: (s, s), "It returned a tuple, not a tensor.*first_of"),
        (lambda s: [s], "It returned a list.*torch.stack"),
        (lambda s: s.numpy(), "It returned a ndarray.*Stay in torch"),
        (lambda s: (x for x in s), "It returned a generator.*not `yield`"),
        (lambda s: 1.0, "It returned a float, not a tensor"),
        (lambda s: s.double(), "It returned float64 for float32"),
        (lambda s: s.long(), "It returned int64 for float32"),
        (lambda s: s > 0, "It returned bool for float32"),
        (lambda s: s + 1j, "It returned complex64 for float32"),
        (lambda s: s.to("meta"), "It returned a .* tensor on meta"),
        (lambda s: s.to_sparse(), "It returned a torch.sparse_coo tensor"),
        (lambda s: s[0], r"It returned shape \(3, 5\): expected \(2, 3, 5\)"),
        (lambda s: s.mT, r"shape \(2, 5, 3\): .* Are two axes swapped\?"),
        (lambda s: s[None], "An axis of size 1 is lost or left over"),
        (lambda s: s[:0], r"It returned shape \(0, 3, 5\)"),
        (lambda s: s * torch.nan, "Batch 0, row 0, column 0 is NaN"),
        (lambda s: s.as_subclass(Untouchable), "cannot be used: ValueError"),
    ],
)
def test_what_is_no_result_is_reported(result, says):
    assert re.search(
        says, gate_message("softmax", lambda scores, dim: result(scores))
    )


@pytest.mark.parametrize("first", [lambda s: s[0], lambda s: None])
def test_the_first_of_several_is_offered_only_where_it_fits(first):
    message = gate_message("softmax", lambda s, dim: (first(s), s))
    assert message.startswith("It returned a tuple, not a tensor: expected ")
    assert "first_of" not in message


def test_a_view_of_the_input_is_no_trap():
    report = check("softmax", lambda scores, dim: scores.view_as(scores))
    assert "The scores came back as they were." in str(report)


def test_memory_that_is_used_again_is_no_trap():
    kept = {}

    def softmax(scores, dim):
        memory = kept.setdefault((scores.shape, scores.dtype), scores * 0)
        return memory.detach().copy_(softmax_by_hand(scores, dim))

    assert check("softmax", softmax).passed


@pytest.mark.parametrize("fn", [None, "softmax", torch.ones(3)])
def test_what_is_not_a_function_is_reported(fn):
    message = gate_message("softmax", fn)
    assert message.startswith("It is not a function but a ")
    assert 'check("softmax", softmax)' in message


@pytest.mark.parametrize(
    "fn",
    [
        lambda: None,
        lambda q, k, v: v,
        lambda q, k, v, mask: v,
        lambda q, k, v, mask=None, *, scale: v,
        lambda q, k, v, mask, dropout: v,
    ],
)
def test_a_wrong_number_of_parameters_names_the_call(fn):
    message = gate_message("attention", fn)
    assert "It cannot be called as `attention(q, k, v" in message
    assert "The contracts call `attention(q, k, v, mask=None)`" in message


def test_more_parameters_are_welcome_if_they_have_a_default():
    def attention(q, k, v, mask=None, *, dropout=0.0):
        return attention_by_matmul(q, k, v, mask)

    assert check("attention", attention).passed


def test_a_module_is_as_good_as_a_function_and_its_class_is_not():
    class Softmax(nn.Module):
        def forward(self, scores, dim):
            return scores.softmax(dim)

    assert check("softmax", Softmax()).passed
    assert "Softmax" in str(check("softmax", Softmax))
