"""Span corruption: what T5 reads and writes while it is pre-trained.

Words for axes, the same in the book, the code and the tests:
    length  tokens of the text
    source  what the encoder reads: the text with a sentinel for each gap
    target  what the decoder writes: the gaps, each behind its sentinel
The first sentinel is the last id of the vocabulary, the next one the id before
it. No eos is inside: who makes batches adds it.

Where this differs from the published code, and why:
    a gap may be anywhere. Published, a text begins with words and ends with a
    gap, so that its first token is never asked for.
    the target ends with one sentinel more than there are gaps, as in figure 2
    of Raffel et al. (2020). Published, it does so only behind a text that ends
    with words. Here it always marks the end, and a target can be read alone.
    too many gaps are an error. Published, their sentinels run into the words.
"""

from itertools import pairwise

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from companion.checks import (
    check_generator,
    check_int,
    check_number,
    check_share,
    check_sizes,
    describe,
    is_whole,
)


def random_spans(
    length: int,
    generator: torch.Generator,
    *,
    share: float = 0.15,
    mean: float = 3.0,
) -> Bool[Tensor, " length"]:
    """Choose which tokens of a text are dropped: a few gaps of a few each.

    ``length · share`` tokens, rounded, at least one and not all; a ``mean``-th
    as many gaps, rounded, at least one, with words between them. Only where
    they are and which one is longer is drawn, each way as likely as another.
    Section 3.1.4 of Raffel et al. (2020), and their code for what it leaves
    open.

    Args:
        length: How many tokens there are.
        generator: What draws.
        share: Which part is dropped.
        mean: How long a gap is, on average.

    Returns:
        True = dropped.

    Raises:
        TypeError: ``length`` is no int, ``share`` or ``mean`` no number, or
            ``generator`` no generator.
        ValueError: ``length`` is below 2, ``share`` not between 0 and 1, or
            ``mean`` below 1.

    Example:
        >>> int(random_spans(20, torch.Generator(), share=0.15).sum())
        3
    """
    _require_shares(length, share, mean)
    check_generator(generator)
    gone = min(max(round(length * share), 1), length - 1)
    kept = length - gone
    gaps = min(max(round(gone / mean), 1), kept + 1)
    # A gap takes one of the places before, between and behind the kept words.
    before = _draw(kept + 1, gaps, generator)
    # To cut n tokens into gaps, draw where: behind token 1 … n - 1.
    cuts = [0, *(1 + cut for cut in _draw(gone - 1, gaps - 1, generator)), gone]
    dropped = torch.zeros(length, dtype=torch.bool)
    for place, (first, last) in zip(before, pairwise(cuts), strict=True):
        dropped[place + first : place + last] = True
    return dropped


def span_corrupt(
    tokens: Int[Tensor, " length"],
    dropped: Bool[Tensor, " length"],
    sentinel: int,
) -> tuple[Int[Tensor, " source"], Int[Tensor, " target"]]:
    """A text with gaps, and what was in them: ``(source, target)``.

    Dropped neighbours make one gap. Gap i leaves ``sentinel - i`` in the
    source; the target is each sentinel with its tokens behind it, and one
    sentinel more. Figure 2 of Raffel et al. (2020).

    Raises:
        TypeError: ``tokens`` is no tensor of integers, ``dropped`` no boolean
            one, or ``sentinel`` no int.
        ValueError: ``tokens`` is not one text, ``dropped`` has another shape,
            or a token is one of the sentinels that the gaps need.
    """
    _require_text("tokens", tokens)
    _require_dropped(dropped, tokens)
    check_int(sentinel=sentinel)
    begins = dropped.clone()
    begins[1:] &= ~dropped[:-1]
    names = sentinel + 1 - begins.cumsum(0)
    last = sentinel - int(begins.sum())
    _require_sentinels(tokens, last, sentinel)
    # Each token has its sentinel before it; who reads picks from the two.
    two = torch.stack([names.to(tokens.dtype), tokens], dim=1)
    source = two[torch.stack([begins, ~dropped], dim=1)]
    target = two[torch.stack([begins, dropped], dim=1)]
    return source, torch.cat([target, target.new_tensor([last])])


def span_restore(
    source: Int[Tensor, " source"],
    target: Int[Tensor, " target"],
    sentinel: int,
) -> Int[Tensor, " length"]:
    """Put together the text that ``span_corrupt`` took apart.

    Args:
        source: The text with gaps.
        target: What was in them.
        sentinel: The id of the first gap.

    Returns:
        The text.

    Raises:
        TypeError: A tensor does not hold integers, or ``sentinel`` is no int.
        ValueError: One of them is not one text, or the two do not fit
            together: the target does not begin and end with one, or not both
            have the sentinels from the first to it, in order.

    Example:
        >>> source, target = torch.tensor([7, 99]), torch.tensor([99, 8, 98])
        >>> span_restore(source, target, sentinel=99)
        tensor([7, 8])
    """
    _require_text("source", source)
    _require_text("target", target)
    check_int(sentinel=sentinel)
    last = int(target[-1])
    _require_order("target", target, last, range(sentinel, last - 1, -1))
    _require_order("source", source, last, range(sentinel, last, -1))
    if int(target[0]) != sentinel:
        raise ValueError(
            f"target: expected it to begin with {sentinel}, the first "
            f"sentinel, got {int(target[0])}"
        )
    ends = (target >= last).nonzero().flatten().tolist()
    gaps = [target[begin + 1 : end] for begin, end in pairwise(ends)]
    pieces = [
        gaps[sentinel - int(token)] if token >= last else token[None]
        for token in source
    ]
    return torch.cat(pieces)


def _draw(most: int, number: int, generator: torch.Generator) -> list[int]:
    """So many different numbers below ``most``, the smallest first."""
    where = {"generator": generator, "device": generator.device}
    return torch.randperm(most, **where)[:number].sort().values.tolist()


def _require_shares(length: int, share: float, mean: float) -> None:
    check_sizes(length=length)
    if length < 2:
        raise ValueError(
            "length: expected at least 2, one token to drop and one to keep, "
            f"got {length}"
        )
    check_share(share)
    if not 0 < share < 1:
        raise ValueError(f"share: expected between 0 and 1, got {share}")
    check_number("mean", mean, above=None)
    if mean < 1:
        raise ValueError(f"mean: expected at least 1 token a gap, got {mean}")


def _require_text(name: str, tokens: Tensor) -> None:
    if not isinstance(tokens, Tensor) or not is_whole(tokens):
        raise TypeError(
            f"{name}: expected a tensor of integers, got {describe(tokens)}"
        )
    if tokens.ndim != 1 or not len(tokens):
        raise ValueError(
            f"{name}: expected one text, one axis with a token at least, got "
            f"{tuple(tokens.shape)}"
        )


def _require_dropped(dropped: Tensor, tokens: Tensor) -> None:
    if not isinstance(dropped, Tensor) or dropped.dtype != torch.bool:
        raise TypeError(
            f"dropped: expected a boolean tensor, got {describe(dropped)}"
        )
    if dropped.shape != tokens.shape:
        raise ValueError(
            f"dropped: expected the shape of tokens, {tuple(tokens.shape)}, "
            f"got {tuple(dropped.shape)}"
        )


def _require_sentinels(tokens: Tensor, last: int, sentinel: int) -> None:
    highest = int(tokens.max())
    if highest >= last:
        raise ValueError(
            f"sentinel: {sentinel - last} gaps need the ids {last} … "
            f"{sentinel} for themselves, got a token {highest}: too many gaps "
            "for this vocabulary"
        )


def _require_order(name: str, tokens: Tensor, last: int, wanted: range) -> None:
    got = tokens[tokens >= last].tolist()
    if got != [*wanted]:
        ids = f"{wanted[0]} … {wanted[-1]}" if wanted else "none"
        raise ValueError(
            f"{name}: expected the sentinels from the first on, {ids}, each "
            f"once and in order, as target ends with {last}, got {got}"
        )
