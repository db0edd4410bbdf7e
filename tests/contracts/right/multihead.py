"""Splitting heads and multi-head attention, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import built, right
from contracts.right.attention import attention_by_einsum, masked_by_lowest
from torch import nn

WIDTH = 12


@right("split_heads")
def split_by_view(x, num_heads):
    batch, seq, d_model = x.shape
    heads = x.view(batch, seq, num_heads, d_model // num_heads)
    return heads.transpose(1, 2)


@right("split_heads")
def split_by_chunks(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right("split_heads")
def split_by_unflatten(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, 1).contiguous()


@right("split_heads")
def split_by_loop(x, num_heads):
    width = x.shape[-1] // num_heads
    pieces = [
        x[..., head * width : (head + 1) * width] for head in range(num_heads)
    ]
    return torch.cat([piece[:, None] for piece in pieces], 1)


@right("split_heads")
def split_by_swapping_columns(x, num_heads):
    columns = x.transpose(1, 2)  # batch d_model seq
    return columns.unflatten(1, (num_heads, -1)).transpose(-2, -1)


class Heads(nn.Module):
    """Four projections, heads by view and transpose."""

    def __init__(self, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )

    def attend(self, q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is None:
            return scores.softmax(-1) @ v
        return masked_by_lowest(scores, mask) @ v

    def split(self, x):
        return split_by_view(x, self.num_heads)

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        out = self.attend(q, k, v, mask)
        return self.o(out.transpose(1, 2).flatten(2))


class Fused(nn.Module):
    """One projection for q, k and v, and PyTorch's attention."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x, attn_mask=None):
        qkv = self.qkv(x).unflatten(-1, (3, 4, 3)).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(*qkv, attn_mask)
        return self.dropout(self.out(out.transpose(1, 2).flatten(-2)))


class HeadByHead(nn.Module):
    """Every head is a module of its own, and their sum is the output."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (
            nn.Parameter(torch.randn(3, WIDTH, 4) / 2) for _ in range(4)
        )

    def forward(self, x, mask=None):
        total = torch.zeros_like(x)
        for q, k, v, o in zip(self.q, self.k, self.v, self.o, strict=True):
            allowed = mask
            if mask is not None and mask.ndim == 4:
                allowed = mask[:, 0]
            head = attention_by_einsum(x @ q, x @ k, x @ v, allowed)
            total = total + head @ o.T
        return total


class PyTorchs(nn.Module):
    """nn.MultiheadAttention: True = may not attend, one mask a head."""

    def __init__(self, need_weights):
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, 3, batch_first=True)
        self.need_weights = need_weights

    def forward(self, x, mask=None):
        if mask is None:
            return self.inner(x, x, x, need_weights=self.need_weights)[0]
        batch, seq, _ = x.shape
        mask = mask.expand(batch, 1, seq, seq)
        nobody = ~mask.any(-1)[:, 0, :, None]
        allowed = mask | nobody[:, None]
        hidden = ~allowed.repeat(1, 3, 1, 1).flatten(0, 1)
        out, _ = self.inner(
            x, x, x, attn_mask=hidden, need_weights=self.need_weights
        )
        return torch.where(nobody, self.inner.out_proj.bias, out)


class Shared(Heads):
    """All heads share one key and one value, as in multi-query attention."""

    def __init__(self):
        super().__init__(3)
        self.k, self.v = nn.Linear(WIDTH, 4), nn.Linear(WIDTH, 4)

    def split(self, x):
        return super().split(x) if x.shape[-1] == WIDTH else x[:, None]


right("multihead")(built(lambda: Heads(3)))
right("multihead")(built(lambda: Heads(1)))
right("multihead")(built(lambda: Heads(12)))
right("multihead")(built(lambda: Fused().eval()))
right("multihead")(built(HeadByHead))
right("multihead")(built(lambda: PyTorchs(True)))
right("multihead")(built(lambda: PyTorchs(False).eval()))
right("multihead")(built(Shared))


class Plain(Heads):
    """No projections at all, and scores that saturate the softmax."""

    def __init__(self, num_heads):
        super().__init__(num_heads)
        del self.q, self.k, self.v, self.o

    def forward(self, x, mask=None):
        heads = self.split(2 * x)
        return self.attend(heads, heads, heads, mask).transpose(1, 2).flatten(2)


right("multihead")(built(lambda: Plain(2)))


class NormedQueries(Heads):
    """Queries and keys are normed, so that no listener knows their factor."""

    def split(self, x):
        heads = super().split(x)
        return F.layer_norm(heads, heads.shape[-1:])


class ScaledBeforehand(Heads):
    """Half of the scale on queries, and half on keys, as in fused kernels."""

    def attend(self, q, k, v, mask):
        root = q.shape[-1] ** -0.25
        scores = torch.einsum("bhqd,bhkd->bhqk", q * root, k * root)
        if mask is None:
            return scores.softmax(-1) @ v
        return masked_by_lowest(scores, mask) @ v


class LeastSubtracted(Heads):
    """The row's largest score is subtracted, and batch and heads are one."""

    def attend(self, q, k, v, mask):
        flat = [x.flatten(0, 1) for x in (q, k, v)]
        scores = torch.bmm(flat[0] * q.shape[-1] ** -0.5, flat[1].mT)
        scores = (scores - scores.amax(-1, keepdim=True)).view(
            *q.shape[:3], k.shape[2]
        )
        if mask is None:
            return scores.softmax(-1) @ v
        return masked_by_lowest(scores, mask) @ v


for make in (NormedQueries, ScaledBeforehand, LeastSubtracted):
    right("multihead")(built(lambda make=make: make(3)))


# With the causal mask inside


class CausalHeads(Heads):
    """The mask is made anew for each length."""

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return super().forward(x, mask)


class CausalFused(nn.Module):
    """One projection, and PyTorch's attention told that it is causal."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        qkv = self.qkv(x).unflatten(-1, (3, 4, 3)).permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(*qkv, is_causal=True)
        return self.out(out.transpose(1, 2).flatten(2))


class CausalWithBuffer(nn.Module):
    """A mask of 16 positions is kept, and cut to the length."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.hidden = nn.Buffer(torch.ones(16, 16, dtype=torch.bool).triu(1))

    def forward(self, x):
        seq = x.shape[1]
        scores = self.q(x) @ self.k(x).mT * WIDTH**-0.5
        hidden = self.hidden[:seq, :seq]
        scores = scores.masked_fill(hidden, -torch.inf)
        return scores.softmax(-1) @ self.v(x)


@right("causal_attention")
def one_query_after_the_other(x):
    rows = [
        attention_by_einsum(x[:, i : i + 1], x[:, : i + 1], x[:, : i + 1])
        for i in range(x.shape[1])
    ]
    return torch.cat(rows, 1)


for make in (lambda: CausalHeads(3), CausalFused, CausalWithBuffer):
    right("causal_attention")(built(make).eval())
