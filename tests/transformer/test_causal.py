"""Where nothing but the future is hidden, no mask is built."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from companion.masks import causal_mask
from companion.multihead import CAUSAL, MultiHeadAttention
from companion.transformer import LanguageModel, LanguageModelConfig
from companion.variants import GPT, GPTConfig, GroupedQueryAttention

N, VOCAB = 257, 19
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2}
SIZES |= {"vocab_size": VOCAB, "dropout": 0.0}


class Squares(TorchDispatchMode):
    """Lists what makes a tensor with a number for each pair of positions."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for x in made if isinstance(made, tuple | list) else [made]:
            if isinstance(x, torch.Tensor) and x.shape[-2:] == (N, N):
                self.found.append(str(func))
        return made


def models(pad):
    yield LanguageModel(LanguageModelConfig(**SIZES, pad=pad))
    yield GPT(GPTConfig(**SIZES, pad=pad, max_len=N))


def squares(model, tokens, *, backward=False):
    with Squares() as squares:
        loss = model(tokens).sum()
        if backward:
            loss.backward()
    return squares.found


@pytest.mark.parametrize("backward", [False, True])
def test_a_model_without_padding_makes_no_number_a_pair(backward):
    tokens = torch.randint(3, VOCAB, (2, N))
    for model in models(pad=None):
        assert not squares(model, tokens, backward=backward)
    for model in models(pad=0):  # It has a mask, so the test sees one.
        assert squares(model, tokens)


def test_what_is_causal_is_what_the_triangle_is():
    tokens = torch.randint(3, VOCAB, (2, 11))
    for causal, masked in zip(models(None), models(0), strict=True):
        masked.load_state_dict(causal.state_dict())
        torch.testing.assert_close(causal(tokens), masked(tokens))


@pytest.mark.parametrize("kv_heads", [3, 1])
def test_the_kernel_is_told_where_lengths_agree(monkeypatch, kv_heads):
    attention, given = GroupedQueryAttention(12, 3, num_kv_heads=kv_heads), []
    kernel = F.scaled_dot_product_attention

    def watched(*args, **kwargs):
        given.append(kwargs)
        return kernel(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    x = torch.randn(2, 7, 12)
    expected = attention(x, causal_mask(7))
    torch.testing.assert_close(attention(x, CAUSAL), expected)
    assert "attn_mask" in given[0]
    assert given[1]["is_causal"]
    assert "attn_mask" not in given[1]
    torch.testing.assert_close(
        attention.weights(x, CAUSAL), attention.weights(x, causal_mask(7))
    )


def test_a_row_that_may_attend_to_nothing_gathers_zeros_one_query_or_many():
    attention = MultiHeadAttention(12, 3, bias=False)
    for query in (1, 5):
        x = torch.randn(2, query, 12, requires_grad=True)
        key = torch.randn(2, 7, 12)
        mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
        mask[1] = False
        got = attention(x, mask, key=key)
        assert not got[1].any()
        assert got[0].all()
        got.sum().backward()
        assert x.grad.isfinite().all()
        assert not x.grad[1].any()
