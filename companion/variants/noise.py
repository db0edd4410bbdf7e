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
    """The text with each token hidden with probability ``share``.

    Token masking: it tells what to say where.

    Raises:
        TypeError: ``text`` is no tensor of integers.
        ValueError: it has not one axis, is empty, or holds padding, bos or
            eos; ``share`` is not from 0 to 1.
    """
    _check(text, generator, share)
    return text.masked_fill(_draw(text, generator) < share, MASK)


def delete(
    text: Int[Tensor, " text"],
    generator: torch.Generator,
    *,
    share: float = 0.3,
) -> Int[Tensor, " noisy"]:
    """The text without some tokens, each gone with probability ``share``.

    Token deletion: it does not tell where something is missing.

    Raises:
        TypeError, ValueError: as ``mask_each``.
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
    """The text with spans of it hidden, each by one ``MASK``.

    Text infilling: it does not tell how much is missing. The lengths of the
    spans are drawn from a Poisson distribution with this ``mean``, until
    ``share`` of the text is hidden, rounded, and one token at least; what the
    last span has too much is cut. A span of length 0 puts a ``MASK`` where
    nothing is missing.

    Raises:
        TypeError: as ``mask_each``, or ``mean`` is no number.
        ValueError: as ``mask_each``, or ``mean`` is not above 0.
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
    """The sentences of the text in random order; each ends with a ``stop``.

    What stands after the last ``stop`` is a sentence too.

    Raises:
        TypeError: as ``mask_each``, or ``stop`` is no int.
        ValueError: as ``mask_each``, or ``stop`` is no id of a word.
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
    """The text from a random token on, then what stood before that token.

    Document rotation: it trains to find the beginning.

    Raises:
        TypeError, ValueError: as ``mask_each``.
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
    """What BART reads, and what it must say: the text as it was.

    ``permute_sentences``, then ``infill``: the combination that section 5 of
    Lewis et al. (2020) trains the published model with.

    Raises:
        TypeError, ValueError: as ``infill`` and ``permute_sentences``.
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
