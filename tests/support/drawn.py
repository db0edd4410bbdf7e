"""What the property tests draw: sizes, tensors, masks, ids, sentences.

Wherever a size is asked for, a strategy that draws one will do.
"""

import torch
from hypothesis import strategies as st

SIZES = st.integers(1, 7)
FEW = st.integers(1, 3)
SEEDS = st.integers(0, 2**31 - 1)
FLOATS = st.sampled_from([torch.float32, torch.float64])
HALVES = st.sampled_from([torch.float16, torch.bfloat16, torch.float32])


def generator(seed):
    """Random numbers that begin at ``seed``."""
    return torch.Generator().manual_seed(seed)


def drawn(draw, *sizes):
    """The sizes, each drawn if it is a strategy."""
    return [draw(n) if isinstance(n, st.SearchStrategy) else n for n in sizes]


@st.composite
def normal(draw, *sizes, dtype=torch.float64):
    """Standard normal numbers."""
    numbers = {"generator": generator(draw(SEEDS)), "dtype": torch.float64}
    return torch.randn(drawn(draw, *sizes), **numbers).to(dtype)


@st.composite
def masks(draw, *sizes, somebody=True):
    """True = may attend; with ``somebody`` no row is left without a key."""
    sizes = drawn(draw, *sizes)
    mask = torch.rand(sizes, generator=generator(draw(SEEDS)))
    mask = mask < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    if somebody:
        mask[..., draw(st.integers(0, sizes[-1] - 1))] = True
    return mask


@st.composite
def ids(draw, *sizes, low, high):
    """Ids from ``low`` to below ``high``."""
    numbers = generator(draw(SEEDS))
    return torch.randint(low, high, drawn(draw, *sizes), generator=numbers)


@st.composite
def sentences(draw, batch, seq, *, low, high, pad=0):
    """Rows of ids from ``low`` up, then padding, each with a word."""
    rows = draw(ids(batch, seq, low=low, high=high))
    length = st.integers(1, rows.shape[1])
    lengths = torch.tensor([draw(length) for _ in rows])
    return rows.masked_fill(
        torch.arange(rows.shape[1]) >= lengths[:, None], pad
    )


def padded(tokens, more, pad=0):
    """The same rows with ``more`` columns of padding."""
    return torch.nn.functional.pad(tokens, (0, more), value=pad)
