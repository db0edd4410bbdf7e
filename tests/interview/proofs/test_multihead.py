"""What the answers of chapter 04 claim, computed."""

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    moved,
    parameters,
    repair,
)
from torch.testing import assert_close

from companion import masks, multihead, variants


def test_four_matrices_whatever_the_number_of_heads():
    heads = [
        parameters(multihead.MultiHeadAttention(512, h, bias=False))
        for h in (1, 8, 64)
    ]
    assert len(set(heads)) == 1
    matrix = 512 * 512
    wrong = 3 * matrix, 8 * heads[0], heads[0] + 3 * matrix
    answers("multihead-parameters", heads[0], *wrong)


def test_a_head_divides_by_the_root_of_its_own_width():
    layer = multihead.MultiHeadAttention(768, 12)
    head_dim = multihead.split_heads(layer.q_proj.weight.T, 12).shape[-1]
    answers("multihead-head-dim", head_dim**0.5, 768**0.5, head_dim)


# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ = 2, 5


def test_the_maps_of_two_sentences_and_eight_heads():
    with torch.device("meta"):
        layer = multihead.MultiHeadAttention(512, 8)
        x = torch.empty(2, 100, 512)
        maps, out = layer.weights(x), layer(x)
    wrong = maps[:, 0].numel(), out.numel(), maps[0].numel()
    answers("multihead-numbers-in-the-maps", maps.numel(), *wrong)


def test_an_even_average_of_two_words_out_of_eleven():
    words = torch.cartesian_prod(torch.arange(11), torch.arange(11))
    seen = words.sort().values  # An even average does not tell the order.
    right = sum(
        max((wanted == word).sum() for word in range(11))
        for pair in seen.unique(dim=0)
        for wanted in [words[(seen == pair).all(1), 0]]
    )
    wrong = 1 / 2, 1 / 11, 1
    answers("multihead-an-even-average", right / len(words), *wrong)


def test_a_repeated_mask_hides_the_padding_of_another_sentence():
    heads, width = 3, 7
    q, k, v = torch.randn(3, BATCH, heads, SEQ, width)
    tokens = torch.tensor([[7, 7, 7, 7, 7], [7, 7, 0, 0, 0]])
    mask = masks.padding_mask(tokens, 0).expand(-1, 1, SEQ, -1)
    right = F.scaled_dot_product_attention(q, k, v, mask)

    def folded(q, k, v, mask):
        out = F.scaled_dot_product_attention(
            *(t.flatten(0, 1) for t in (q, k, v)), mask
        )
        return out.unflatten(0, (-1, heads))

    each = mask[:, 0].repeat_interleave(heads, dim=0)
    assert_close(folded(q, k, v, each), right)
    dealt = mask[:, 0].repeat(heads, 1, 1)
    wrong = folded(q, k, v, dealt)
    # Head 1 of sentence 0 has the mask of sentence 1, and the reverse.
    same = (wrong - right).abs().amax((2, 3)) < 1e-5
    assert same.tolist() == [[True, False, True]] * 2
    alone = folded(q[1:], k[1:], v[1:], mask[1:, 0].repeat(heads, 1, 1))
    assert_close(alone, right[1:])


def test_a_join_without_the_transpose_leaks_and_keeps_every_shape():
    broken, repaired = repair("multihead-repair-the-join")
    x, past = torch.randn(BATCH, SEQ, 12), masks.causal_mask(SEQ)
    assert broken(x).shape == repaired(x).shape
    assert any(moved(broken, x, past)[:-1])
    assert moved(repaired, x, past) == [False] * (SEQ - 1) + [True]
    order = torch.tensor([3, 0, 4, 2, 1])
    assert not torch.allclose(
        broken(x[:, order]), broken(x)[:, order], atol=0.1
    )
    assert_close(repaired(x[:, order]), repaired(x)[:, order])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_key_heads_dealt_out_in_turns_are_right_for_one_group_and_for_all(
    groups,
):
    broken, repaired = repair("multihead-repair-shared-heads")
    q = torch.randn(BATCH, 6, SEQ, 7)
    k, v = torch.randn(2, BATCH, groups, 11, 7)
    right = variants.grouped_query_attention(q, k, v)
    assert_close(repaired(q, k, v), right)
    assert torch.allclose(broken(q, k, v), right, atol=1e-5) == (groups != 2)
