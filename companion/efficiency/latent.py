"""Keys and values that are made of one short vector a position.

What a cache has to hold is that short vector, the latent: all heads make their
keys and values of it when they are asked. DeepSeek-AI (2024, section 2.1) call
it multi-head latent attention, MLA. Their part of a key that turns with the
position, which is stored beside the latent, is left out here.

Words for axes, the same in the book, the code and the tests:
    query   positions that ask
    key     positions that are asked, and that answer
    latent  width of what is stored of a position
"""

import math

from jaxtyping import Bool, Float
from torch import Tensor, nn

from companion.attention import scaled_dot_product_attention
from companion.checks import check_sizes, check_vectors
from companion.efficiency.shared_heads import shared_heads_attention
from companion.multihead import merge_heads, split_heads
from companion.transformer.model import start_weights

__all__ = ["LatentAttention"]


class LatentAttention(nn.Module):
    """Attention of several heads that stores one latent vector a position.

    ``plain`` makes keys and values of the latents, for each head. ``absorbed``
    never does: qᵀ(U c) = (Uᵀq)ᵀ c, so U may be applied to the one query
    instead of to all keys; and Σ w V c = V Σ w c, so V is applied to the
    result. The heads then ask the latents themselves, all of them the same,
    as in multi-query attention.

    Args:
        d_model: Width of what comes in and goes out.
        num_heads: Attentions side by side, a divisor of ``d_model``.
        latent_dim: Numbers that are stored of a position.

    Raises:
        TypeError: a size is not an int.
        ValueError: a size is below 1, or ``num_heads`` does not divide
            ``d_model``.

    Example:
        >>> attention = LatentAttention(d_model=12, num_heads=3, latent_dim=5)
        >>> x = torch.randn(2, 7, 12)
        >>> latents = attention.latents(x)
        >>> latents.shape, attention(x[:, -1:], latents).shape
        (torch.Size([2, 7, 5]), torch.Size([2, 1, 12]))
    """

    def __init__(self, d_model: int, num_heads: int, latent_dim: int):
        super().__init__()
        check_sizes(d_model=d_model, num_heads=num_heads, latent_dim=latent_dim)
        if d_model % num_heads:
            raise ValueError(
                f"num_heads: expected a divisor of d_model = {d_model}, got "
                f"{num_heads}"
            )
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.down_proj = nn.Linear(d_model, latent_dim, bias=False)
        self.k_proj = nn.Linear(latent_dim, d_model, bias=False)
        self.v_proj = nn.Linear(latent_dim, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.apply(start_weights)

    def latents(
        self, x: Float[Tensor, "batch key d_model"]
    ) -> Float[Tensor, "batch key latent"]:
        """Compute what is stored of each position."""
        return self.down_proj(x)

    def plain(
        self,
        x: Float[Tensor, "batch query d_model"],
        latents: Float[Tensor, "batch key latent"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend with the keys and values of all heads, made of the latents.

        Args:
            x: What asks.
            latents: What was stored of the positions that are asked.
            mask: True = may attend; broadcasts to (batch, head, query, key).

        Returns:
            What each position of ``x`` has gathered.
        """
        q = split_heads(self.q_proj(x), self.num_heads)
        k = split_heads(self.k_proj(latents), self.num_heads)
        v = split_heads(self.v_proj(latents), self.num_heads)
        found = scaled_dot_product_attention(q, k, v, mask)
        return self.out_proj(merge_heads(found))

    def absorbed(
        self,
        x: Float[Tensor, "batch query d_model"],
        latents: Float[Tensor, "batch key latent"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend with the latents themselves: the same result as ``plain``.

        Args:
            x: As in ``plain``.
            latents: As in ``plain``.
            mask: As in ``plain``.

        Returns:
            As ``plain``, rounding aside.
        """
        q = split_heads(self.q_proj(x), self.num_heads)
        # (head, head_dim, latent): what each head makes of a latent.
        up_k = self.k_proj.weight.unflatten(0, (self.num_heads, -1))
        up_v = self.v_proj.weight.unflatten(0, (self.num_heads, -1))
        asking = q @ up_k  # (batch, head, query, latent)
        # The scores are those of head_dim numbers, whatever width they are
        # computed in.
        asking = asking * math.sqrt(latents.shape[-1] / self.head_dim)
        shared = latents.unsqueeze(1)
        found = shared_heads_attention(asking, shared, shared, mask)
        return self.out_proj(merge_heads(found @ up_v.mT))

    def forward(
        self,
        x: Float[Tensor, "batch query d_model"],
        latents: Float[Tensor, "batch key latent"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch query d_model"]:
        """Attend in the form that takes fewer products.

        Absorbed, if fewer positions ask than are asked; else plain.

        Args:
            x: What asks.
            latents: What was stored; by default that of ``x`` itself.
            mask: As in ``plain``.

        Returns:
            What each position of ``x`` has gathered.

        Raises:
            TypeError, ValueError: ``x`` or ``latents`` does not fit.
        """
        width, narrow = self.q_proj.in_features, self.k_proj.in_features
        like = self.q_proj.weight
        check_vectors("x", x, like, batch=None, query=None, d_model=width)
        latents = self.latents(x) if latents is None else latents
        check_vectors(
            "latents", latents, like, batch=len(x), key=None, latent=narrow
        )
        few = x.shape[1] < latents.shape[1]
        return (self.absorbed if few else self.plain)(x, latents, mask)
