"""What the answers of chapter 06 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import answers, moved, repair
from torch.testing import assert_close

from companion import blocks, masks


def test_a_causal_mask_over_five_tokens():
    allowed = masks.causal_mask(5).sum().item()
    strict = torch.ones(5, 5).tril(-1).sum().item()
    answers("masks-pairs-in-a-triangle", allowed, strict, 25 / 2)


def test_one_guess_among_seven_and_twelve_certainties():
    guess = math.log(7)
    answers("masks-floor-of-a-loss", guess / 13, 0, guess, math.log2(7) / 13)


def test_a_mask_token_is_read_and_a_hidden_key_is_not():
    mask_id, place = 7, 2
    tokens = torch.tensor([[2, 5, mask_id, 3, 6]])
    layer = blocks.EncoderLayer(14, 2, 11)
    table = torch.randn(8, 14, requires_grad=True)
    others = [i for i in range(5) if i != place]
    visible = torch.arange(5) != place
    for mask, is_read in ((None, True), (visible.expand(5, 5), False)):
        out = layer(table[tokens], mask)
        told = (out * torch.randn_like(out))[:, others].sum()
        (moved,) = torch.autograd.grad(told, table, retain_graph=True)
        assert bool(moved[mask_id].any()) is is_read
        # Hidden or not, the place itself has an output of its own.
        (own,) = torch.autograd.grad(out[0, place, 0], table)
        assert own[mask_id].any()


def test_a_window_of_four_over_ten_tokens():
    i, j = torch.arange(10)[:, None], torch.arange(10)
    past = masks.causal_mask(10)
    windows = [past & (i - j < width) for width in (4, 3)]
    window, narrower = (w.sum().item() for w in windows)
    assert windows[0][9].sum() == 4
    answers("masks-sliding-window", window, 10 * 4, past.sum(), narrower)
    three_layers = windows[0].float().matrix_power(3) > 0
    assert torch.equal(three_layers, past & (i - j <= 3 * 3))
    assert (past | (j < 3)).sum() == 58
    assert (past & ((i < 4) == (j < 4))).sum() == 31


# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ = 2, 5


def test_a_mask_of_ones_that_is_added_leaves_the_future_in_sight():
    q, k, v = torch.zeros(1, 7), torch.randn(4, 7), torch.eye(4)
    seen = torch.tensor([[True, True, False, False]])
    added, hidden, open_to_all = (
        F.scaled_dot_product_attention(q, k, v, mask)[0, 2:].sum().item()
        for mask in (seen.float(), seen, None)
    )
    answers("masks-a-mask-of-numbers", added, hidden, open_to_all, 1 - added)
    assert added == pytest.approx(1 / (math.e + 1))


def test_three_texts_packed_into_a_row_of_six():
    text = torch.tensor([1, 1, 1, 2, 2, 3])
    past, same = masks.causal_mask(6), text[:, None] == text
    packed = past & same
    wrong = past.sum(), same.sum(), past.numel()
    answers("masks-entries-of-a-packed-row", packed.sum(), *wrong)
    assert (past & ~same).sum() == 11
    # Packed or alone, a text gives the same, and a neighbour moves nothing.
    layers = [blocks.EncoderLayer(14, 2, 11) for _ in range(2)]
    x, middle = torch.randn(1, 6, 14), slice(3, 5)

    def read(x, mask):
        for layer in layers:
            x = layer(x, mask)
        return x

    alone = read(x[:, middle], masks.causal_mask(2))
    assert_close(read(x, packed)[:, middle], alone)
    assert not moved(lambda x: read(x, packed), x, position=0)[3]
    assert moved(lambda x: read(x, past), x, position=0)[3]


def test_lengths_counted_from_the_left_fit_padding_on_the_right_only():
    broken, repaired = repair("masks-repair-what-prompts-broke")
    right = torch.tensor([[7, 8, 0, 0, 0], [3, 4, 5, 6, 7]])
    left = right.flip(1)
    assert torch.equal(broken(right, 0), repaired(right, 0))
    assert broken(left, 0)[0].flatten().tolist() == [True] * 2 + [False] * 3
    assert repaired(left, 0)[0].flatten().tolist() == [False] * 3 + [True] * 2
    # One prompt at a time has no pads.
    assert torch.equal(broken(left[1:], 0), repaired(left[1:], 0))


def test_rows_of_padding_that_see_nobody_spread_nan_to_the_words():
    broken, repaired = repair("masks-repair-a-nan-out-of-padding")
    tgt = torch.tensor([[1, 7, 8, 0, 0], [1, 5, 6, 7, 8]])
    src, words = tgt, tgt != 0

    def layer(x, mask):
        scores = (x @ x.mT).masked_fill(~mask, -torch.inf)
        return x + scores.softmax(-1) @ x

    x = torch.randn(BATCH, SEQ, 7)
    for make, spreads in ((broken, True), (repaired, False)):
        mask = make(src, tgt, 0)[1][:, 0]
        first = layer(x, mask)
        assert first[words].isfinite().all()
        second = layer(first, mask)
        assert bool(second[0][words[0]].isnan().any()) is spreads
        assert second[1].isfinite().all()
