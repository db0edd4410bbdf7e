"""What BART reads: a text that was damaged, in five ways.

A text is a row of ids without bos and eos, which the caller adds after the
damage. What BART must say is always the whole text as it was. The five noises
are those of section 2.2 of Lewis et al. (2020); the share of 30 % is that of
the published model (section 5).

Words for axes, the same in the book, the code and the tests:
    text   tokens before the damage
    noisy  tokens after it

Where this differs from the published code, and why:
    the spans of ``infill`` lie beside each other, and every arrangement is as
    likely as any other; published, they begin at random tokens and may overlap,
    so that less is hidden than was asked for.
    ``infill`` hides by ``MASK`` only; published, an option puts random tokens
    in place of some.
    ``rotate`` may begin anywhere, bos and eos not being there yet; published,
    it leaves those two in place.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from companion.checks import (
    check_generator,
    check_ids,
    check_int,
    check_number,
    check_share,
)
from companion.variants.specials import FIRST_WORD, MASK


def mask_each(
    text: Int[Tensor, " text"],
    generator: torch.Generator,
    *,
    share: float = 0.3,
) -> Int[Tensor, " text"]:
    """Hide each token with probability ``share``.

    Token masking: it tells what to say where. Lewis et al. (2020), section 2.2.

    Args:
        text: Ids.
        generator: What draws.
        share: How likely a token is hidden.

    Returns:
        A text of the same length.

    Raises:
        TypeError: ``text`` is no tensor of integers.
        ValueError: It has not one axis, is empty, or holds padding, bos or
            eos; ``share`` is not from 0 to 1.

    Example:
        >>> text, draws = torch.tensor([7, 8, 9]), torch.Generator()
        >>> bool((mask_each(text, draws, share=1.0) == MASK).all())
        True
    """
    _check(text, generator, share)
    return text.masked_fill(_draw(text, generator) < share, MASK)


def delete(
    text: Int[Tensor, " text"],
    generator: torch.Generator,
    *,
    share: float = 0.3,
) -> Int[Tensor, " noisy"]:
    """Delete some tokens, each with probability ``share``.

    Token deletion: it does not tell where something is missing. Lewis et al.
    (2020), section 2.2.

    Args:
        text: Ids.
        generator: What draws.
        share: How likely a token goes.

    Returns:
        What is left.

    Raises:
        TypeError, ValueError: As ``mask_each``.

    Example:
        >>> text, draws = torch.tensor([7, 8, 9]), torch.Generator()
        >>> delete(text, draws, share=0.0)
        tensor([7, 8, 9])
    """
    _check(text, generator, share)
    return text[_draw(text, generator) >= share]


def infill(
    text: Int[Tensor, " text"],
    generator: torch.Generator,
    *,
    share: float = 0.3,
    mean: float = 3.0,
) -> Int[Tensor, " noisy"]:
    """Hide spans of the text, each by one ``MASK``.

    Text infilling: it does not tell how much is missing. The lengths of the
    spans are drawn from a Poisson distribution with this ``mean``, until
    ``share`` of the text is hidden, rounded, and one token at least; what the
    last span has too much is cut. A span of length 0 puts a ``MASK`` where
    nothing is missing. Lewis et al. (2020), section 2.2.

    Args:
        text: Ids.
        generator: What draws.
        share: Which part of the text is hidden.
        mean: How long a span is, on average.

    Returns:
        The text with its holes.

    Raises:
        TypeError: As ``mask_each``, or ``mean`` is no number.
        ValueError: As ``mask_each``, or ``mean`` is not above 0.

    Example:
        >>> text = torch.arange(10, 20)
        >>> noisy = infill(text, torch.Generator().manual_seed(0), share=0.3)
        >>> int((noisy != MASK).sum())
        7
    """
    _check(text, generator, share)
    check_number("mean", mean, above=0)
    hidden = max(round(share * len(text)), int(share > 0))
    lengths = _span_lengths(hidden, mean, generator)
    slots = len(text) - hidden + len(lengths)
    where = {"generator": generator, "device": generator.device}
    words, place, noisy = text.tolist(), 0, []
    # Each slot is a span or a token that stays; tokens keep their order.
    for slot in torch.randperm(slots, **where).tolist():
        is_span = slot < len(lengths)
        noisy.append(MASK if is_span else words[place])
        place += lengths[slot] if is_span else 1
    return text.new_tensor(noisy)


def permute_sentences(
    text: Int[Tensor, " text"], generator: torch.Generator, *, stop: int
) -> Int[Tensor, " text"]:
    """Put the sentences of a text in random order.

    Args:
        text: Ids.
        generator: What draws.
        stop: The id that ends a sentence. What stands after the last one is a
            sentence too.

    Returns:
        The same tokens.

    Raises:
        TypeError: As ``mask_each``, or ``stop`` is no int.
        ValueError: As ``mask_each``, or ``stop`` is no id of a word.

    Example:
        >>> text = torch.tensor([10, 9, 11, 9])
        >>> draws = torch.Generator().manual_seed(0)
        >>> permute_sentences(text, draws, stop=9).sort().values
        tensor([ 9,  9, 10, 11])
    """
    _check(text, generator)
    check_int(stop=stop)
    if stop < FIRST_WORD:
        raise ValueError(
            f"stop: expected the id of a word, {FIRST_WORD} or above, got "
            f"{stop}"
        )
    ends = (text == stop).nonzero().flatten() + 1
    sentences = text.tensor_split(ends.cpu())
    order = torch.randperm(
        len(sentences), generator=generator, device=generator.device
    )
    return torch.cat([sentences[place] for place in order.tolist()])


def rotate(
    text: Int[Tensor, " text"], generator: torch.Generator
) -> Int[Tensor, " text"]:
    """Begin a text at a random token, and append what stood before it.

    Document rotation: it trains to find the beginning. Lewis et al. (2020),
    section 2.2.

    Args:
        text: Ids.
        generator: What draws.

    Returns:
        The same tokens.

    Raises:
        TypeError, ValueError: As ``mask_each``.

    Example:
        >>> rotate(torch.tensor([7]), torch.Generator())
        tensor([7])
    """
    _check(text, generator)
    start = torch.randint(
        len(text), (), generator=generator, device=generator.device
    )
    return text.roll(-int(start))


def bart_noise(
    text: Int[Tensor, " text"],
    generator: torch.Generator,
    *,
    stop: int,
    share: float = 0.3,
    mean: float = 3.0,
) -> tuple[Int[Tensor, " noisy"], Int[Tensor, " text"]]:
    """Make what BART reads, and what it must write: the text as it was.

    ``permute_sentences``, then ``infill``: the combination that section 5 of
    Lewis et al. (2020) trains the published model with.

    Args:
        text: Ids.
        generator: What draws.
        stop: The id that ends a sentence.
        share: As in ``infill``.
        mean: As in ``infill``.

    Returns:
        The noisy text, and ``text``.

    Raises:
        TypeError, ValueError: As ``infill`` and ``permute_sentences``.

    Example:
        >>> text = torch.tensor([10, 9, 11, 9])
        >>> noisy, target = bart_noise(text, torch.Generator(), stop=9)
        >>> torch.equal(target, text)
        True
    """
    shuffled = permute_sentences(text, generator, stop=stop)
    return infill(shuffled, generator, share=share, mean=mean), text


def _span_lengths(
    hidden: int, mean: float, generator: torch.Generator
) -> list[int]:
    """Lengths that add up to ``hidden``, the last one cut to fit."""
    rate = torch.tensor(float(mean), device=generator.device)
    lengths = []
    while hidden:
        drawn = int(torch.poisson(rate, generator=generator))
        lengths.append(min(drawn, hidden))
        hidden -= lengths[-1]
    return lengths


def _draw(text: Tensor, generator: torch.Generator) -> Tensor:
    """A number from 0 to below 1 for each token."""
    luck = torch.rand(len(text), generator=generator, device=generator.device)
    return luck.to(text.device)


def _check(
    text: Tensor, generator: torch.Generator, share: float = 0.0
) -> None:
    check_generator(generator)
    check_ids("text", text, torch.iinfo(torch.int64).max, axes=1)
    special = (text < MASK).nonzero()
    if len(special):
        place = int(special[0])
        raise ValueError(
            "text: expected no padding, bos or eos, which are added after "
            f"the noise, got {int(text[place])} at {place}"
        )
    check_share(share)
