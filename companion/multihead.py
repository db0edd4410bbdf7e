"""Multi-head attention: several attentions side by side, at the price of one.

Words for axes, the same in the book, the code and the tests:
    query     positions that ask
    key       positions that are asked, and that answer
    head      attentions side by side, each with weights of its own
    kv_head   heads that keys and values have; here as many as heads
    d_model   width of what comes in and of what goes out
    head_dim  width of a query or a key within one head
A leading ``*batch`` is any number of axes that stay as they are.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.attention import attention_weights
from companion.checks import (
    check_device,
    check_dropout,
    check_mask_fits,
    check_sizes,
    check_tensor,
    check_vectors,
    checking,
)

__all__ = [
    "CAUSAL",
    "Causal",
    "KVCache",
    "MultiHeadAttention",
    "fused_attention",
    "mask_tensor",
    "merge_heads",
    "split_heads",
]


class Causal:
    """Stand for a causal mask that is not built.

    Each position sees itself and those before. Where this stands for a mask,
    PyTorch's kernels are told ``is_causal``, and no (query, key) tensor exists.
    The last query is the last key's position.

    Example:
        >>> mask_tensor(CAUSAL, torch.zeros(1, 2, 3), torch.zeros(1, 3, 3))
        tensor([[ True,  True, False],
                [ True,  True,  True]])
    """

    def tensor(
        self, query: int, key: int, device: torch.device | None = None
    ) -> Bool[Tensor, "query key"]:
        """Build the mask after all, for what needs to see it."""
        ones = torch.ones(query, key, dtype=torch.bool, device=device)
        return ones.tril(key - query)


CAUSAL = Causal()
Mask = Bool[Tensor, "..."] | Causal | None


class KVCache:
    """Keep the keys and values of the positions so far, with room for more.

    What is new is written behind what is there, so nothing old is copied: the
    room doubles when it is full. One cache belongs to one attention of one
    sequence; ``MultiHeadAttention.forward`` fills it.

    Example:
        >>> cache, new = KVCache(), torch.zeros(2, 3, 1, 4)
        >>> k, v = cache.append(new, new)
        >>> k, v = cache.append(new, new)
        >>> k.shape
        torch.Size([2, 3, 2, 4])
    """

    FIRST_ROOM = 64

    def __init__(self):
        self.length = 0
        self._room, self._spare, self._stored = (), (), ()

    @property
    def stored(self) -> tuple[Tensor, ...]:
        """The keys and the values, each (batch, kv_head, key, head_dim)."""
        return self._stored

    def append(
        self,
        k: Float[Tensor, "batch kv_head new head_dim"],
        v: Float[Tensor, "batch kv_head new v_head_dim"],
    ) -> tuple[Tensor, ...]:
        """Store what is new, and return all keys and values so far."""
        start, self.length = self.length, self.length + k.shape[2]
        if not start:
            self._room = k.contiguous(), v.contiguous()
        elif self.length > self._room[0].shape[2]:
            self._grow()
        self._show()
        if start:
            for stored, new in zip(self._stored, (k, v), strict=True):
                stored[:, :, start:] = new
        return self._stored

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Let row i go on from what row ``rows[i]`` has."""
        # Two rooms by turns: fresh memory costs more than what is copied.
        if [x.shape for x in self._spare] != [x.shape for x in self._room]:
            self._spare = tuple(torch.empty_like(x) for x in self._room)
        for old, new in zip(self._room, self._spare, strict=True):
            old, new = old[:, :, : self.length], new[:, :, : self.length]
            torch.index_select(old, 0, rows, out=new)
        self._room, self._spare = self._spare, self._room
        self._show()

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Forget all rows but these."""
        self._room = tuple(x.index_select(0, rows) for x in self._room)
        self._show()

    def _show(self) -> None:
        self._stored = tuple(x[:, :, : self.length] for x in self._room)

    def _grow(self) -> None:
        double = 2 * self._room[0].shape[2]
        length = max(self.FIRST_ROOM, double, self.length)
        before = self._room
        self._room = tuple(
            x.new_empty(*x.shape[:2], length, x.shape[3]) for x in before
        )
        for old, new in zip(before, self._room, strict=True):
            new[:, :, : old.shape[2]] = old


def split_heads(
    x: Float[Tensor, "*batch seq d_model"], num_heads: int
) -> Float[Tensor, "*batch head seq head_dim"]:
    """Cut each vector into equal pieces, one a head, heads before positions.

    Head i gets the features i·head_dim … (i + 1)·head_dim - 1 of *every*
    position. Section 3.2.2 of Vaswani et al. (2017).

    Args:
        x: A vector for each position.
        num_heads: A divisor of ``d_model``.

    Returns:
        The pieces of each head.

    Raises:
        TypeError: ``x`` is not a tensor; ``num_heads`` is not an int.
        ValueError: ``x`` has fewer than two axes; ``num_heads`` is below 1 or
            does not divide the width.

    Example:
        >>> split_heads(torch.zeros(2, 5, 12), num_heads=3).shape
        torch.Size([2, 3, 5, 4])
    """
    if checking():
        check_tensor("x", x, "(..., seq, d_model)", 2)
        check_sizes(num_heads=num_heads)
        _equal_share(x.shape[-1], num_heads)
    return _split(x, num_heads)


def merge_heads(
    x: Float[Tensor, "*batch head seq head_dim"],
) -> Float[Tensor, "*batch seq d_model"]:
    """Put the pieces of each position side by side: undo ``split_heads``.

    Args:
        x: The pieces of each head.

    Returns:
        A vector for each position.

    Raises:
        TypeError: ``x`` is not a tensor.
        ValueError: ``x`` has fewer than three axes.

    Example:
        >>> merge_heads(torch.zeros(2, 3, 5, 4)).shape
        torch.Size([2, 5, 12])
    """
    if checking():
        check_tensor("x", x, "(..., head, seq, head_dim)", 3)
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Run ``num_heads`` attentions at once, and add them up by a linear map.

    Section 3.2.2 of Vaswani et al. (2017): their W_i^Q, one a head, are the
    blocks of our ``q_proj``, and their W^O is ``out_proj``.

    Args:
        d_model: Width of what comes in and goes out.
        num_heads: Attentions side by side.
        kdim, vdim: Widths of what keys and values are made from, for
            cross-attention; ``d_model`` unless given.
        head_dim, v_head_dim: d_k and d_v within a head; d_model / num_heads
            unless given.
        bias: Whether the linear maps have one.
        dropout: Probability with which a weight is dropped in training.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1; ``num_heads`` does not divide ``d_model``
            and there is no ``head_dim``; ``dropout`` is no probability below 1.

    Example:
        >>> attention = MultiHeadAttention(d_model=12, num_heads=3)
        >>> attention(torch.zeros(2, 5, 12), CAUSAL).shape
        torch.Size([2, 5, 12])
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
        mask: Mask = None,
        *,
        key: Float[Tensor, "batch key kdim"] | None = None,
        value: Float[Tensor, "batch key vdim"] | None = None,
        cache: KVCache | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Gather from the key positions, for each query position.

        Args:
            x: What asks; without ``key`` its positions ask each other.
            mask: True = may attend; broadcasts to (batch, head, query, key).
                ``CAUSAL`` hides the future without a tensor. A query that may
                attend to nothing gathers zeros, and gets ``out_proj``'s bias.
            key: What is asked, in cross-attention.
            value: What answers; ``key`` unless given.
            cache: Keys and values of earlier calls. Without ``key`` those of
                ``x`` come behind them, and ``x`` asks all; those of a ``key``
                are made once, and used at each call.

        Returns:
            What each position of ``x`` has gathered.

        Raises:
            TypeError: a tensor has another dtype than the parameters; ``mask``
                is not boolean.
            ValueError: a shape does not fit, or a tensor is on another device
                than the parameters.
        """
        if checking():
            self._check(x, mask, key, cache)
            self._check_value(x if key is None else key, value)
        own = key is None
        start = cache.length if own and cache is not None else 0
        q = self.queries(x, start)
        if not own and cache is not None and cache.length:
            k, v = cache.stored
        else:
            key = x if own else key
            k = self.keys(key, start)
            v = self.values(key if value is None else value)
            if cache is not None:
                k, v = cache.append(k, v)
        return self.out_proj(merge_heads(self._attend(q, k, v, mask)))

    def weights(
        self,
        x: Float[Tensor, "batch query d_model"],
        mask: Mask = None,
        *,
        key: Float[Tensor, "batch key kdim"] | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """Compute who looks at whom: what ``forward`` averages with.

        Computed when asked and never stored; before dropout.

        Args:
            x: What asks.
            mask: As in ``forward``.
            key: As in ``forward``.

        Returns:
            A row of weights a query, head by head; zeros for a query that may
            attend to nothing.

        Raises:
            TypeError, ValueError: as ``forward``.
        """
        if checking():
            self._check(x, mask, key)
        q, k = self.queries(x), self.keys(x if key is None else key)
        return self._weights(q, k, mask)

    # These do not check: ``forward`` has. A subclass to which positions matter
    # needs to know where x starts.

    def queries(
        self, x: Float[Tensor, "batch query d_model"], start: int = 0
    ) -> Float[Tensor, "batch head query head_dim"]:
        """Compute what each position asks with; the first is ``start``."""
        return _split(self.q_proj(x), self.num_heads)

    def keys(
        self, x: Float[Tensor, "batch key kdim"], start: int = 0
    ) -> Float[Tensor, "batch kv_head key head_dim"]:
        """Compute what each position is asked by; the first is ``start``."""
        return _split(self.k_proj(x), self.num_heads)

    def values(
        self, x: Float[Tensor, "batch key vdim"]
    ) -> Float[Tensor, "batch kv_head key v_head_dim"]:
        """Compute what each position answers."""
        return _split(self.v_proj(x), self.num_heads)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask) -> Tensor:
        p = self.dropout if self.training else 0.0
        return fused_attention(q, k, v, mask, dropout_p=p)

    def _weights(self, q: Tensor, k: Tensor, mask: Mask) -> Tensor:
        return attention_weights(q, k, mask_tensor(mask, q, k))

    def _check(
        self,
        x: Tensor,
        mask: Mask = None,
        key: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> None:
        width, kdim = self.q_proj.in_features, self.k_proj.in_features
        self._check_input("x", x, batch=None, query=None, d_model=width)
        earlier = cache.length if key is None and cache is not None else 0
        key = x if key is None else key
        self._check_input("key", key, batch=len(x), key=None, kdim=kdim)
        if mask is not None and not isinstance(mask, Causal):
            keys = earlier + key.shape[1]
            shape = (len(x), self.num_heads, x.shape[1], keys)
            check_mask_fits(mask, shape)
            check_device("mask", mask, self.q_proj.weight)

    def _check_value(self, key: Tensor, value: Tensor | None) -> None:
        name = "value (here: key)" if value is None else "value"
        value = key if value is None else value
        axes = {"batch": len(key), "key": key.shape[1]}
        self._check_input(name, value, **axes, vdim=self.v_proj.in_features)

    def _check_input(self, name: str, x: Tensor, **axes: int | None) -> None:
        check_device(name, x, self.q_proj.weight)
        # Autocast mixes dtypes on purpose, and converts where it must.
        like, dtype = self.q_proj.weight, getattr(x, "dtype", None)
        if dtype != like.dtype and torch.is_autocast_enabled(like.device.type):
            like = x
        check_vectors(name, x, like, **axes)


def fused_attention(
    q: Float[Tensor, "batch head query head_dim"],
    k: Float[Tensor, "batch head key head_dim"],
    v: Float[Tensor, "batch head key v_head_dim"],
    mask: Mask = None,
    *,
    dropout_p: float = 0.0,
) -> Float[Tensor, "batch head query v_head_dim"]:
    """Attend with PyTorch's fused kernel, which stores no weights.

    Args:
        q: Heads of queries.
        k: Heads of keys.
        v: Heads of values.
        mask: As in ``MultiHeadAttention``.
        dropout_p: Probability with which a weight is dropped.

    Returns:
        A vector for each head and query; zeros for a fully masked row.

    Example:
        >>> q = torch.zeros(1, 2, 3, 4)
        >>> fused_attention(q, q, q, CAUSAL).shape
        torch.Size([1, 2, 3, 4])
    """
    if isinstance(mask, Causal):
        if q.shape[-2] == k.shape[-2]:
            return _kernel(q, k, v, dropout_p=dropout_p, is_causal=True)
        mask = mask_tensor(mask, q, k)
    alone = q.shape[-2] == 1 and q.is_cpu and q.element_size() >= 4
    if alone and not dropout_p and not torch.compiler.is_compiling():
        return _attend_alone(q, k, v, mask)
    if mask is None:
        return _kernel(q, k, v, dropout_p=dropout_p)
    mask = mask[(None,) * (4 - mask.ndim)]  # PyTorch wants all four axes.
    seen = mask.any(-1, keepdim=True)
    # A GPU would have to be waited for, and compiled code knows no values.
    known = mask.is_cpu and not torch.compiler.is_compiling()
    if known and seen.all():
        return _kernel(q, k, v, dropout_p=dropout_p, attn_mask=mask)
    # A fully masked row sees everybody, and is emptied afterwards: in this way
    # no NaN arises, in any backend and in any gradient.
    attended = _kernel(q, k, v, dropout_p=dropout_p, attn_mask=mask | ~seen)
    return attended.masked_fill(~seen, 0.0)


def _attend_alone(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None
) -> Tensor:
    """One query a row: no square to avoid, and two products take half."""
    shape = *q.shape[:-1], v.shape[-1]
    q, k, v = (x.flatten(0, 1) for x in (q * q.shape[-1] ** -0.5, k, v))
    scores = torch.bmm(q, k.mT)
    if mask is None:
        return torch.bmm(scores.softmax(-1), v).view(shape)
    hidden = ~mask[(None,) * (4 - mask.ndim)]
    scores = scores.view(*shape[:-1], -1)
    # Finite, so that a fully masked row makes no NaN.
    scores = scores.masked_fill_(hidden, torch.finfo(q.dtype).min)
    weights = scores.softmax(-1).masked_fill(hidden, 0.0)
    return torch.bmm(weights.flatten(0, 1), v).view(shape)


def mask_tensor(mask: Mask, q: Tensor, k: Tensor) -> Tensor | None:
    """Return the mask as a tensor, or None where nothing is hidden.

    Args:
        mask: A mask, ``CAUSAL``, or None.
        q: The queries.
        k: The keys.

    Returns:
        True = may attend.

    Example:
        >>> q, k = torch.zeros(1, 2, 3), torch.zeros(1, 3, 3)
        >>> mask_tensor(None, q, k) is None
        True
    """
    if not isinstance(mask, Causal):
        return mask
    query, key = q.shape[-2], k.shape[-2]
    return None if query == 1 else mask.tensor(query, key, q.device)


def _kernel(q: Tensor, k: Tensor, v: Tensor, **settings) -> Tensor:
    """PyTorch's fused attention, on a CPU with numbers of 32 bits."""
    if not (q.is_cpu and torch.is_autocast_enabled("cpu")):
        return F.scaled_dot_product_attention(q, k, v, **settings)
    # Its backward pass multiplies small blocks, and on a CPU a small product in
    # bfloat16 costs more to set up than to do: ten times the time of float32.
    with torch.autocast("cpu", enabled=False):
        wide = (x.float() for x in (q, k, v))
        return F.scaled_dot_product_attention(*wide, **settings).to(q.dtype)


def _split(x: Tensor, num_heads: int) -> Tensor:
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def _projection(width_in: int, width_out: int, bias: bool) -> nn.Linear:
    """Make a linear map that starts with Xavier weights and a bias of 0.

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
