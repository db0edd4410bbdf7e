"""Which adapter a message names, and where a learner reads of it."""

import re
from pathlib import Path

import pytest
import torch
from contracts.known import gate_message
from contracts.right import RIGHT

from companion.contracts import COMPONENTS, adapters, check
from companion.contracts.engine import blame
from companion.words import say

pytestmark = pytest.mark.once

PAGE = "check.md#adapters"


def named(message):
    """The ready adapters in a message, and whether it writes one out."""
    ready = re.findall(r"`adapters\.(\w+)`", message)
    return ready, "lambda" in message and "yours(…)`" in message


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize(
    "wrong", [lambda: None, lambda a, b, c, d, e, f, g, h: None]
)
def test_a_message_about_a_wrong_call_names_the_page_and_an_adapter(
    component, wrong
):
    message = gate_message(component, wrong)
    ready, written_out = named(message)
    assert PAGE in message
    assert written_out
    assert set(ready) <= set(adapters.__all__)


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_message_about_a_wrong_result_names_the_page_and_an_adapter(
    component,
):
    first = COMPONENTS[component].example[0]
    kind = first.dtype if isinstance(first, torch.Tensor) else torch.float32
    kind = COMPONENTS[component].dtype or kind
    for wrong in (torch.ones(7, 1, 1, 3, 2, 9, dtype=kind), {"more": 1}):
        message = gate_message(component, lambda *args, w=wrong: w)
        ready, written_out = named(message)
        assert PAGE in message
        assert ready or written_out
        assert set(ready) <= set(adapters.__all__)


def test_an_adapter_that_is_written_out_is_called_as_the_contracts_call():
    message = gate_message("rope", lambda x, one, two: x * one + x * two)
    assert (
        "an adapter between the two lets yours stay as it is, `lambda x, "
        "positions: yours(…)`, or a ready one, `adapters.rope_with_tables` or "
        "`adapters.rope_of_tables`. See check.md#adapters."
    ) in message


def test_an_adapter_is_named_only_where_it_helps():
    def time_first(x, h0, W, U, b):
        return torch.ones(5, 2, 3)

    # It would turn the matrices round too.
    assert "sequence_first" not in gate_message("rnn", time_first)
    halves = gate_message("feed_forward", lambda x: x[:1])
    assert "added_from" not in halves


def test_nothing_returned_is_a_mistake_and_gets_no_adapter():
    assert PAGE not in gate_message("attention", lambda *args: None)
    assert PAGE not in gate_message("bpe_encode", lambda *args: None)


def test_a_mask_for_each_of_three_is_read_where_it_is_added():
    right = RIGHT["combine_masks"][0]

    def added(src, tgt, pad):
        return tuple(
            torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
            for mask in right(src, tgt, pad)
        )

    message = gate_message("combine_masks", added)
    assert "`adapters.causal_from_added`" in message
    assert check("combine_masks", adapters.causal_from_added(added)).passed


def heads_behind(q, k, v, is_causal=True):
    """Attend on (batch, seq, head, head_dim), and return the weights too."""
    _, seq, _, width = q.shape
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / width**0.5
    past = torch.ones(seq, seq, dtype=torch.bool).tril()
    weights = scores.masked_fill(~past, -torch.inf).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v), weights


def test_heads_behind_positions_are_asked_for_where_the_mask_is_built_in():
    report = check("causal_attention", heads_behind)
    words = "If the heads stand behind the positions in yours"
    [asked] = [said for said in report.assumed if words in said]
    assert "如果你的代码把头放在位置之后" in say(asked)
    for right in (
        adapters.heads_after_positions(heads_behind),
        adapters.four_axes_only(adapters.heads_after_positions(heads_behind)),
    ):
        assert check("causal_attention", right).passed

    def wrong(q, k, v):
        return heads_behind(q, k, v, None)[0].flip(1)

    report = check("causal_attention", wrong)
    assert report.faults
    assert not any(words in said for said in report.assumed)


def test_no_file_that_calls_code_otherwise_is_taken_for_the_learners():
    folder = Path(blame.__file__).with_name("forms")
    files = {str(path) for path in folder.glob("*.py")}
    assert len(files) > 1
    assert files <= blame.BETWEEN
