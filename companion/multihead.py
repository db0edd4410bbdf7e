"""Multi-head attention: several attentions side by side, at the price of one.

Words for axes, the same in the book, the code and the tests:
    query     positions that ask
    key       positions that are asked, and that answer
    head      attentions side by side, each with weights of its own
    d_model   width of what comes in and of what goes out
    head_dim  width of a query or a key within one head
A leading ``*batch`` is any number of axes that stay as they are.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from companion.attention import attention_weights
from companion.data.checks import (
    check_device,
    check_dropout,
    check_mask_fits,
    check_sizes,
    check_vectors,
)


def split_heads(
    x: Float[Tensor, "*batch seq d_model"], num_heads: int
) -> Float[Tensor, "*batch head seq head_dim"]:
    """Each vector cut into equal pieces, one a head, heads before positions.

    Head i gets the features i·head_dim … (i + 1)·head_dim - 1 of *every*
    position. Section 3.2.2 of Vaswani et al. (2017).

    Raises:
        TypeError: ``x`` is not a tensor; ``num_heads`` is not an int.
        ValueError: ``x`` has fewer than two axes; ``num_heads`` is below 1 or
            does not divide the width.
    """
    _require_axes("x", x, "(..., seq, d_model)", 2)
    check_sizes(num_heads=num_heads)
    head_dim = _equal_share(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, head_dim)).transpose(-3, -2)


def merge_heads(
    x: Float[Tensor, "*batch head seq head_dim"],
) -> Float[Tensor, "*batch seq d_model"]:
    """The pieces of each position side by side again: undoes ``split_heads``.

    Raises:
        TypeError: ``x`` is not a tensor.
        ValueError: ``x`` has fewer than three axes.
    """
    _require_axes("x", x, "(..., head, seq, head_dim)", 3)
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """``num_heads`` attentions at once, and a linear map that adds them up.

    Section 3.2.2 of Vaswani et al. (2017): their W_i^Q, one a head, are the
    blocks of our ``q_proj``, and their W^O is ``out_proj``. ``kdim`` and
    ``vdim`` are the widths of what keys and values are made from, for
    cross-attention; ``head_dim`` and ``v_head_dim`` are d_k and d_v within a
    head. Left out, they are d_model and d_model / num_heads.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1; ``num_heads`` does not divide ``d_model``
            and there is no ``head_dim``; ``dropout`` is no probability below 1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        head_dim: int | None = None,
        v_head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_sizes(d_model=d_model, num_heads=num_heads)
        kdim, vdim = (d_model if w is None else w for w in (kdim, vdim))
        check_sizes(kdim=kdim, vdim=vdim)
        if head_dim is None:
            head_dim = _equal_share(d_model, num_heads)
        v_head_dim = head_dim if v_head_dim is None else v_head_dim
        check_sizes(head_dim=head_dim, v_head_dim=v_head_dim)
        self.num_heads, self.dropout = num_heads, check_dropout(dropout)
        self.q_proj = _projection(d_model, num_heads * head_dim, bias)
        self.k_proj = _projection(kdim, num_heads * head_dim, bias)
        self.v_proj = _projection(vdim, num_heads * v_head_dim, bias)
        self.out_proj = _projection(num_heads * v_head_dim, d_model, bias)

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        key: Float[Tensor, "batch key kdim"] | None = None,
        value: Float[Tensor, "batch key vdim"] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """What each query position gathers from the key positions.

        Without ``key`` the positions of ``x`` ask each other; ``value`` is
        ``key`` unless given. ``mask`` says who may be looked at, True = may
        attend, and broadcasts to (batch, head, query, key). A query that may
        look at nobody gathers zeros, and gets the bias of ``out_proj``.
        Dropout acts on the weights, in training only.

        Raises:
            TypeError: a tensor has another dtype than the parameters; ``mask``
                is not boolean.
            ValueError: a shape does not fit, or a tensor is on another device
                than the parameters.
        """
        key = x if key is None else key
        q, k = self._queries_and_keys(x, mask, key)
        v = self._values(key, value)
        p = self.dropout if self.training else 0.0
        if mask is None:
            gathered = _attend(q, k, v, dropout_p=p)
            return self.out_proj(merge_heads(gathered))
        mask = mask[(None,) * (4 - mask.ndim)]  # PyTorch wants all four axes.
        # A row that may see nobody sees everybody, and is emptied afterwards:
        # in this way no NaN arises, in any backend and in any gradient.
        blind = ~mask.any(-1, keepdim=True)
        gathered = _attend(q, k, v, attn_mask=mask | blind, dropout_p=p)
        if _may_be_any(blind):
            gathered = gathered.masked_fill(blind, 0.0)
        return self.out_proj(merge_heads(gathered))

    def weights(
        self,
        x: Float[Tensor, "batch query d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        key: Float[Tensor, "batch key kdim"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """Who looks at whom, head by head: what ``forward`` averages with.

        Computed when asked and never stored; before dropout. A query that may
        look at nobody has a row of zeros.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        q, k = self._queries_and_keys(x, mask, x if key is None else key)
        return attention_weights(q, k, mask)

    # These three do not check: ``forward`` has, and a cache must be fast. A
    # subclass to which positions matter needs to know where x starts.

    def queries(
        self, x: Float[Tensor, "batch query d_model"], start: int = 0
    ) -> Float[Tensor, "batch head query head_dim"]:
        """What each position of ``x`` asks with; the first is ``start``."""
        return split_heads(self.q_proj(x), self.num_heads)

    def keys(
        self, x: Float[Tensor, "batch key kdim"], start: int = 0
    ) -> Float[Tensor, "batch head key head_dim"]:
        """What each position of ``x`` is asked by; the first is ``start``."""
        return split_heads(self.k_proj(x), self.num_heads)

    def values(
        self, x: Float[Tensor, "batch key vdim"]
    ) -> Float[Tensor, "batch head key v_head_dim"]:
        """What each position of ``x`` answers."""
        return split_heads(self.v_proj(x), self.num_heads)

    def _queries_and_keys(
        self, x: Tensor, mask: Tensor | None, key: Tensor
    ) -> tuple[Tensor, Tensor]:
        width, kdim = self.q_proj.in_features, self.k_proj.in_features
        self._check("x", x, batch=None, query=None, d_model=width)
        self._check("key", key, batch=len(x), key=None, kdim=kdim)
        if mask is not None:
            shape = (len(x), self.num_heads, x.shape[1], key.shape[1])
            check_mask_fits(mask, shape)
            check_device("mask", mask, self.q_proj.weight)
        return self.queries(x), self.keys(key)

    def _values(self, key: Tensor, value: Tensor | None) -> Tensor:
        name = "value" if value is not None else "value (here: key)"
        value = key if value is None else value
        axes = {"batch": len(key), "key": key.shape[1]}
        self._check(name, value, **axes, vdim=self.v_proj.in_features)
        return self.values(value)

    def _check(self, name: str, x: Tensor, **axes: int | None) -> None:
        check_device(name, x, self.q_proj.weight)
        # Autocast mixes dtypes on purpose, and converts where it must.
        like, kind = self.q_proj.weight, getattr(x, "dtype", None)
        if kind != like.dtype and torch.is_autocast_enabled(like.device.type):
            like = x
        check_vectors(name, x, like, **axes)


def _attend(q: Tensor, k: Tensor, v: Tensor, **how) -> Tensor:
    """PyTorch's fused attention, on a CPU with numbers of 32 bits."""
    if not (q.is_cpu and torch.is_autocast_enabled("cpu")):
        return F.scaled_dot_product_attention(q, k, v, **how)
    # Its backward pass multiplies small blocks, and on a CPU a small product in
    # bfloat16 costs more to set up than to do: ten times the time of float32.
    with torch.autocast("cpu", enabled=False):
        wide = (x.float() for x in (q, k, v))
        return F.scaled_dot_product_attention(*wide, **how).to(q.dtype)


def _may_be_any(blind: Tensor) -> bool:
    """Whether a row is blind; True where that is not known for nothing."""
    # A GPU would have to be waited for, and compiled code knows no values.
    known = blind.is_cpu and not torch.compiler.is_compiling()
    return not known or bool(blind.any())


def _projection(width_in: int, width_out: int, bias: bool) -> nn.Linear:
    """A linear map that starts with Xavier weights and a bias of 0.

    Square, it keeps a variance of 1, which the derivation of the √d_k assumes
    of queries and keys. PyTorch's default for a linear map leaves a third.
    """
    linear = nn.Linear(width_in, width_out, bias=bias)
    nn.init.xavier_uniform_(linear.weight)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear


def _equal_share(d_model: int, num_heads: int) -> int:
    if d_model % num_heads:
        raise ValueError(
            f"num_heads: expected a divisor of d_model = {d_model}, "
            f"got {num_heads}"
        )
    return d_model // num_heads


def _require_axes(name: str, x: Tensor, axes: str, least: int) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
    if x.ndim < least:
        raise ValueError(f"{name}: expected {axes}, got {tuple(x.shape)}")
