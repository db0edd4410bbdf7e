"""Positions as relations: what a query finds depends on how far away it is.

Words for axes, the same in the book, the code and the tests:
    head      heads of an attention layer
    seq       positions in a sequence, which asks itself
    head_dim  width of a query, key or value of one head
    offset    the distances that have a row in a table
An offset is key - query: negative where the key came before.
A leading ``...`` is any number of batch-like axes, for example ``batch``.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.checks import check_float, check_like, check_sizes, checking
from companion.positions.absolute import sinusoids
from companion.positions.bias import biased_weights, check_values, offsets

__all__ = ["Shaw", "TransformerXL", "shift"]

Heads = Float[Tensor, "... head seq head_dim"]
Weights = Float[Tensor, "... head seq seq"]
Mask = Bool[Tensor, "..."]


class Shaw(nn.Module):
    """Attend with relative keys and values: one learned row for each offset.

    Offsets beyond ``clip`` share the outermost row, so no length is too long.
    The heads share both tables. Equations 3 and 4 of Shaw et al. (2018).

    Args:
        head_dim: Width of a head.
        clip: From where on all offsets share a row.

    Attributes:
        keys, values: Tables, (2 · clip + 1) × head_dim; row ``clip`` is
            offset 0.

    Example:
        >>> q = k = v = torch.zeros(1, 2, 5, 3)
        >>> Shaw(head_dim=3, clip=2)(q, k, v).shape
        torch.Size([1, 2, 5, 3])
    """

    def __init__(self, head_dim: int, clip: int):
        super().__init__()
        check_sizes(head_dim=head_dim, clip=clip)
        self.clip = clip
        self.keys = nn.Parameter(torch.empty(2 * clip + 1, head_dim))
        self.values = nn.Parameter(torch.empty(2 * clip + 1, head_dim))
        for table in (self.keys, self.values):
            nn.init.normal_(table, std=head_dim**-0.5)

    def rows(self, length: int) -> Int[Tensor, "seq seq"]:
        """Which row of the tables each pair of positions uses."""
        places = offsets(length, device=self.keys.device)
        return places.clamp(-self.clip, self.clip) + self.clip

    def weights(self, q: Heads, k: Heads, mask: Mask | None = None) -> Weights:
        """Attention weights of ``q_i · (k_j + key row of j - i) / √head_dim``.

        Raises:
            TypeError, ValueError: q, k or the mask do not fit.
        """
        head_dim = self.keys.shape[1]
        if checking():
            _check_queries_and_keys(q, k, head_dim=head_dim)
            check_like("q", q, "the tables", self.keys)
        # Each query meets each row of the table once, not once for each key.
        met = q @ self.keys.T / math.sqrt(head_dim)  # ... head seq offset
        bias = met.gather(-1, self.rows(q.shape[-2]).expand(*q.shape[:-1], -1))
        return biased_weights(q, k, bias, mask)

    def forward(
        self, q: Heads, k: Heads, v: Heads, mask: Mask | None = None
    ) -> Heads:
        """The average of ``v_j + value row of j - i``, by ``weights``.

        Raises:
            TypeError, ValueError: an input does not fit.
        """
        weights = self.weights(q, k, mask)
        if checking():
            check_values(v, k, width=self.values.shape[1])
        rows = self.rows(q.shape[-2]).expand_as(weights)
        at_offset = weights.new_zeros(*q.shape[:-1], len(self.values))
        at_offset = at_offset.scatter_add(-1, rows, weights)
        return weights @ v + at_offset @ self.values


class TransformerXL(nn.Module):
    """Attend by content and by a sinusoid of the offset, with a bias for each.

    The score of query i and key j is ``(q_i + u) · k_j + (q_i + w) · r_(i-j)``
    over √head_dim, where r is a linear map of a sinusoid. Section 3.3 of Dai
    et al. (2019), where w is called v; here it looks ahead as well as back.

    Args:
        d_model: Width of the sinusoid.
        num_heads: How many heads.
        head_dim: Width of a head.

    Attributes:
        content_bias, position_bias: u and w, num_heads × head_dim.
        r_proj: From a sinusoid of d_model to the heads.

    Example:
        >>> q = k = v = torch.zeros(1, 2, 5, 3)
        >>> TransformerXL(d_model=6, num_heads=2, head_dim=3)(q, k, v).shape
        torch.Size([1, 2, 5, 3])
    """

    def __init__(self, d_model: int, num_heads: int, head_dim: int):
        super().__init__()
        check_sizes(d_model=d_model, num_heads=num_heads, head_dim=head_dim)
        self.r_proj = nn.Linear(d_model, num_heads * head_dim, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(num_heads, head_dim))
        self.position_bias = nn.Parameter(torch.zeros(num_heads, head_dim))

    def weights(self, q: Heads, k: Heads, mask: Mask | None = None) -> Weights:
        """Attention weights, by the scores above.

        Raises:
            TypeError, ValueError: q, k or the mask do not fit.
        """
        num_heads, head_dim = self.content_bias.shape
        if checking():
            sizes = {"num_heads": num_heads, "head_dim": head_dim}
            _check_queries_and_keys(q, k, **sizes)
            check_like("q", q, "the biases", self.content_bias)
        seq = q.shape[-2]
        # One column for each distance i - j, from seq - 1 down to 1 - seq.
        distances = torch.arange(seq - 1, -seq, -1, device=q.device)
        waves = sinusoids(distances, self.r_proj.in_features, dtype=q.dtype)
        r = self.r_proj(waves).unflatten(-1, (num_heads, head_dim))
        met = (q + self.position_bias.unsqueeze(-2)) @ r.permute(1, 2, 0)
        bias = shift(met) / math.sqrt(head_dim)
        return biased_weights(
            q + self.content_bias.unsqueeze(-2), k, bias, mask
        )

    def forward(
        self, q: Heads, k: Heads, v: Heads, mask: Mask | None = None
    ) -> Heads:
        """The average of the values, by ``weights``.

        Raises:
            TypeError, ValueError: an input does not fit.
        """
        weights = self.weights(q, k, mask)
        if checking():
            check_values(v, k)
        return weights @ v


def shift(
    by_distance: Float[Tensor, "... seq offset"],
) -> Float[Tensor, "... seq seq"]:
    """Turn one column a distance into one column a key, without a copy a pair.

    Row i holds distances i - j from seq - 1 down to 1 - seq, and key 0 is its
    column seq - 1 - i. So each row starts one column earlier than the row
    above: read the same numbers again as rows that are one shorter. Appendix B
    of Dai et al. (2019).

    Args:
        by_distance: Numbers for each query and distance.

    Returns:
        The same numbers for each query and key.

    Raises:
        ValueError: There are not ``2 · seq - 1`` columns.

    Example:
        >>> shift(torch.tensor([[1.0, 0.0, -1.0], [1.0, 0.0, -1.0]]))
        tensor([[ 0., -1.],
                [ 1.,  0.]])
    """
    check_float("by_distance", by_distance, axes="seq, offset", width=None)
    seq, columns = by_distance.shape[-2:]
    if columns != 2 * seq - 1:
        raise ValueError(
            f"by_distance: expected {2 * seq - 1} columns for {seq} rows, "
            f"got {columns}"
        )
    # The extra column lets a single row be read again, too.
    padded = nn.functional.pad(by_distance, (0, 1)).flatten(-2)
    again = padded[..., seq - 1 : seq - 1 + seq * columns]
    return again.unflatten(-1, (seq, columns))[..., :seq]


def _check_queries_and_keys(q: Tensor, k: Tensor, **sizes: int) -> None:
    """Refuse q and k that are not heads of one sequence asking itself."""
    axes = "head, seq, head_dim"
    check_float("q", q, axes=axes, width=sizes["head_dim"])
    check_float("k", k, axes=axes, width=None)
    check_like("k", k, "q", q)
    if k.shape != q.shape:
        raise ValueError(
            f"k: expected the shape of q {tuple(q.shape)}, one sequence asks "
            f"itself, got {tuple(k.shape)}"
        )
    heads = sizes.get("num_heads")
    if heads is not None and (q.ndim < 3 or q.shape[-3] != heads):
        raise ValueError(
            f"q: expected (..., head, seq, head_dim) with {heads} heads, "
            f"got {tuple(q.shape)}"
        )
