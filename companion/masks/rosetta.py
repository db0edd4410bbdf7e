"""What other libraries mean by a mask.

``to_…`` turns a mask of this course into one of theirs, ``from_…`` one of
theirs into one of this course. ``F.scaled_dot_product_attention`` needs
neither: there, too, a mask is boolean and True = may attend.
"""

import torch
from jaxtyping import Bool, Float, Int, Integer, Num
from torch import Tensor

from companion.checks import check_int, check_sizes, describe, is_whole
from companion.masks.build import Masks

__all__ = [
    "from_additive",
    "from_lengths",
    "from_ones",
    "from_torch_padding",
    "to_additive",
    "to_keras",
    "to_lengths",
    "to_ones",
    "to_torch_attention",
    "to_torch_padding",
    "to_torch_transformer",
]

# Older libraries hide a key by adding -10 000 to its score, newer ones by more.
HIDDEN = -10_000


def to_torch_padding(
    mask: Bool[Tensor, "batch 1 1 key"],
) -> Bool[Tensor, "batch key"]:
    """Translate to ``key_padding_mask`` of ``nn.MultiheadAttention``.

    Args:
        mask: True = may attend.

    Returns:
        True = hidden.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``mask`` is not (batch, 1, 1, key).

    Example:
        >>> to_torch_padding(torch.tensor([[[[True, True, False]]]]))
        tensor([[False, False,  True]])
    """
    _check_mask(mask, keys_only=True)
    return ~mask[:, 0, 0]


def from_torch_padding(
    hidden: Bool[Tensor, "batch key"],
) -> Bool[Tensor, "batch 1 1 key"]:
    """Translate from a ``key_padding_mask`` of ``nn.MultiheadAttention``.

    Args:
        hidden: True = hidden.

    Returns:
        True = may attend.

    Raises:
        TypeError: ``hidden`` is not boolean.
        ValueError: ``hidden`` is not (batch, key).

    Example:
        >>> from_torch_padding(torch.tensor([[False, True]]))
        tensor([[[[ True, False]]]])
    """
    _check_rows(hidden=hidden)
    if hidden.dtype != torch.bool:
        raise TypeError(
            "hidden: expected a boolean tensor, True = hidden, got "
            f"{hidden.dtype}; for 1 = a real token there is from_ones"
        )
    return ~hidden[:, None, None, :]


def to_torch_attention(
    mask: Bool[Tensor, "batch heads query key"], num_heads: int
) -> Bool[Tensor, "batch_heads query key"]:
    """Translate to ``attn_mask`` of ``nn.MultiheadAttention``.

    The heads of one sequence stand next to each other, and a mask that is the
    same for all heads is repeated for each. With ``need_weights=True``, its
    default, PyTorch makes NaN of a query that may attend to nothing.

    Args:
        mask: True = may attend.
        num_heads: How many heads the module has.

    Returns:
        True = hidden; one mask for each sequence and head.

    Raises:
        TypeError: ``mask`` is not boolean; ``num_heads`` is no int.
        ValueError: ``mask`` is not (batch, 1 or num_heads, query, key), or
            ``num_heads`` below 1.

    Example:
        >>> causal = torch.ones(1, 1, 2, 2, dtype=torch.bool).tril()
        >>> to_torch_attention(causal, num_heads=1)
        tensor([[[False,  True],
                 [False, False]]])
    """
    check_sizes(num_heads=num_heads)
    _check_mask(mask)
    if mask.shape[1] not in (1, num_heads):
        raise ValueError(
            f"mask: expected 1 or {num_heads} heads on axis 1, "
            f"got {tuple(mask.shape)}"
        )
    return ~mask.expand(-1, num_heads, -1, -1).flatten(0, 1)


def to_torch_transformer(masks: Masks, num_heads: int) -> dict[str, Tensor]:
    """Translate all three masks to keyword arguments of ``nn.Transformer``.

    Args:
        masks: What ``combine_masks`` returns.
        num_heads: How many heads the model has.

    Returns:
        The arguments.

    Raises:
        TypeError, ValueError: As ``to_torch_attention``.

    Example:
        >>> from companion.masks import combine_masks
        >>> tokens = torch.tensor([[5, 7]])
        >>> sorted(to_torch_transformer(combine_masks(tokens, tokens, 0), 2))
        ['memory_key_padding_mask', 'src_key_padding_mask', 'tgt_mask']
    """
    if not isinstance(masks, Masks):
        raise TypeError(
            "masks: expected Masks(src, tgt, cross), as combine_masks makes "
            f"them, got {describe(masks)}"
        )
    src, tgt, cross = masks
    return {
        "src_key_padding_mask": to_torch_padding(src),
        "tgt_mask": to_torch_attention(tgt, num_heads),
        "memory_key_padding_mask": to_torch_padding(cross),
    }


def to_additive(
    mask: Bool[Tensor, "batch heads query key"],
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "batch heads query key"]:
    """Translate to what is added to the scores: 0, or the lowest number.

    Hugging Face makes such a mask where attention is "eager"; where it is
    "sdpa", as by default, it makes a boolean one that means what ours does.
    A query that may attend to nothing sees all keys alike there.

    Args:
        mask: True = may attend.
        dtype: The model's type.

    Returns:
        0 for seen, the lowest number of the type for hidden.

    Raises:
        TypeError: ``mask`` is not boolean; ``dtype`` is not floating point.
        ValueError: ``mask`` has not four axes.

    Example:
        >>> mask = torch.tensor([[[[True, False]]]])
        >>> to_additive(mask, torch.float16)
        tensor([[[[     0., -65504.]]]], dtype=torch.float16)
    """
    _check_mask(mask)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise TypeError(f"dtype: expected a floating-point dtype, got {dtype}")
    nothing = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return nothing.masked_fill(~mask, torch.finfo(dtype).min)


def from_additive(
    bias: Float[Tensor, "batch heads query key"],
) -> Bool[Tensor, "batch heads query key"]:
    """Translate from what is added to the scores.

    Args:
        bias: 0 for seen, -10,000 or less for hidden.

    Returns:
        True = may attend.

    Raises:
        TypeError: ``bias`` is not floating point.
        ValueError: ``bias`` has not four axes; an entry neither is 0 nor hides
            (-10,000 or less), so that ``bias`` is more than a mask, or none.

    Example:
        >>> from_additive(torch.tensor([[[[0.0, float("-inf")]]]]))
        tensor([[[[ True, False]]]])
    """
    if not isinstance(bias, Tensor) or not bias.is_floating_point():
        raise TypeError(f"bias: expected a float tensor, got {describe(bias)}")
    _check_axes("bias", bias)
    odd = (bias != 0) & ~(bias <= HIDDEN)
    if odd.any():
        raise ValueError(
            "bias: expected 0 for a key that is seen and at most "
            f"{HIDDEN} for a hidden one, got {bias[odd][0].item():g}; "
            "if it holds ones for real tokens, write `mask.bool()`"
        )
    return bias == 0


def to_ones(
    mask: Bool[Tensor, "batch 1 1 key"],
) -> Int[Tensor, "batch key"]:
    """Translate to an ``attention_mask`` as a Hugging Face tokenizer makes it.

    Args:
        mask: True = may attend.

    Returns:
        1 = real, 0 = padding.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``mask`` is not (batch, 1, 1, key).

    Example:
        >>> to_ones(torch.tensor([[[[True, True, False]]]]))
        tensor([[1, 1, 0]])
    """
    _check_mask(mask, keys_only=True)
    return mask[:, 0, 0].long()


def from_ones(
    ones: Num[Tensor, "batch key"],
) -> Bool[Tensor, "batch 1 1 key"]:
    """Translate from an ``attention_mask`` of a tokenizer.

    Args:
        ones: 1 = real, 0 = padding.

    Returns:
        True = may attend.

    Raises:
        TypeError: ``ones`` is boolean, and so does not tell what True means.
        ValueError: ``ones`` is not (batch, key), or holds another number.

    Example:
        >>> from_ones(torch.tensor([[1, 1, 0]]))
        tensor([[[[ True,  True, False]]]])
    """
    _check_rows(ones=ones)
    if ones.dtype == torch.bool:
        raise TypeError(
            "ones: expected numbers, 1 = a real token, got torch.bool; where "
            "True means hidden, as in nn.MultiheadAttention, use "
            "from_torch_padding, and where it means real, `[:, None, None]`"
        )
    odd = (ones != 0) & (ones != 1)
    if odd.any():
        raise ValueError(f"ones: expected 0 and 1, got {ones[odd][0].item()}")
    return (ones == 1)[:, None, None, :]


def to_keras(
    mask: Bool[Tensor, "batch 1 query key"],
) -> Bool[Tensor, "batch query key"]:
    """Translate to ``attention_mask`` of ``keras.layers.MultiHeadAttention``.

    Args:
        mask: True = may attend.

    Returns:
        The same without the axis of heads: True = seen.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``mask`` is not (batch, 1, query, key).

    Example:
        >>> to_keras(torch.ones(2, 1, 3, 5, dtype=torch.bool)).shape
        torch.Size([2, 3, 5])
    """
    _check_mask(mask)
    if mask.shape[1] != 1:
        raise ValueError(
            "mask: expected one mask for all heads, (batch, 1, query, key), "
            f"got {tuple(mask.shape)}"
        )
    return mask[:, 0]


def from_lengths(
    lengths: Integer[Tensor, " batch"], max_len: int
) -> Bool[Tensor, "batch 1 1 max_len"]:
    """Translate from lengths: the first keys of each sequence are real.

    Args:
        lengths: How many keys of each sequence are real.
        max_len: How many keys there are.

    Returns:
        True = may attend.

    Raises:
        TypeError: ``lengths`` is not a tensor of integers; ``max_len`` no int.
        ValueError: ``lengths`` is not (batch,), or not from 0 to ``max_len``.

    Example:
        >>> from_lengths(torch.tensor([1, 2]), max_len=2)
        tensor([[[[ True, False]]],
        <BLANKLINE>
        <BLANKLINE>
                [[[ True,  True]]]])
    """
    if not isinstance(lengths, Tensor) or not is_whole(lengths):
        raise TypeError(
            f"lengths: expected a tensor of integers, got {describe(lengths)}"
        )
    check_int(max_len=max_len)
    if lengths.ndim != 1 or not lengths.numel():
        got = tuple(lengths.shape)
        raise ValueError(f"lengths: expected (batch,), got {got}")
    odd = (lengths < 0) | (lengths > max_len)
    if odd.any():
        raise ValueError(
            f"lengths: expected 0 to {max_len}, got {lengths[odd][0].item()}"
        )
    places = torch.arange(max_len, device=lengths.device)
    return (places < lengths[:, None])[:, None, None, :]


def to_lengths(mask: Bool[Tensor, "batch 1 1 key"]) -> Int[Tensor, " batch"]:
    """Count the keys of each sequence that are real, where those come first.

    Args:
        mask: True = may attend.

    Returns:
        One length a sequence.

    Raises:
        TypeError: ``mask`` is not boolean.
        ValueError: ``mask`` is not (batch, 1, 1, key); a hidden key comes
            before a real one, which no length can tell.

    Example:
        >>> to_lengths(torch.tensor([[[[True, True, False]]]]))
        tensor([2])
    """
    _check_mask(mask, keys_only=True)
    keys = mask[:, 0, 0]
    late = keys[:, 1:] & ~keys[:, :-1]
    if late.any():
        row, place = late.nonzero()[0].tolist()
        raise ValueError(
            "mask: expected the real tokens first, then padding, got a hidden "
            f"key at {place} and a real one after it in sequence {row}"
        )
    return keys.sum(-1)


def _check_rows(**tensors: Tensor) -> None:
    """Raises TypeError or ValueError unless each is a tensor (batch, key)."""
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a tensor, got {describe(x)}")
        if x.ndim != 2 or not x.numel():
            raise ValueError(
                f"{name}: expected (batch, key), got {tuple(x.shape)}"
            )


def _check_axes(name: str, x: Tensor) -> None:
    """Raises ValueError unless ``x`` has the four axes of a mask."""
    if x.ndim != 4 or not x.numel():
        advice = {
            2: "; a causal mask becomes that by `[None, None]`, one of keys, "
            "(batch, key), by `[:, None, None]`",
            3: "; one mask for all heads becomes that by `[:, None]`",
        }
        raise ValueError(
            f"{name}: expected (batch, head, query, key), got "
            f"{tuple(x.shape)}{advice.get(x.ndim, '')}"
        )


def _check_mask(mask: Tensor, *, keys_only: bool = False) -> None:
    """Raises TypeError or ValueError unless this is a mask of this course.

    With ``keys_only`` all heads and queries share it: (batch, 1, 1, key).
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            "mask: expected a boolean tensor, True = may attend, got "
            f"{describe(mask)}{_advice(mask)}"
        )
    _check_axes("mask", mask)
    if keys_only and mask.shape[1:3] != (1, 1):
        raise ValueError(
            "mask: expected (batch, 1, 1, key), as padding_mask makes it, got "
            f"{tuple(mask.shape)}; where queries or heads differ, no list of "
            "keys can tell"
        )


def _advice(mask: object) -> str:
    if not isinstance(mask, Tensor):
        return ""
    if is_whole(mask):
        return "; from_ones reads 1 = real, 0 = padding"
    return (
        "; from_additive reads a mask that is added to the scores, and "
        "`mask.bool()` one of zeros and ones"
    )
