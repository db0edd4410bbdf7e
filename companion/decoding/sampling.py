"""Drawing the next token, and from what: temperature, top-k, top-p."""

import torch
from jaxtyping import Float
from torch import Tensor

from companion.checks import (
    check_generator,
    check_number,
    check_sizes,
    check_states,
)
from companion.decoding.search import StepFunction, check_search, next_logits

__all__ = ["sample", "sampling_filter"]


def sampling_filter(
    logits: Float[Tensor, "*batch vocab"],
    top_k: int | None,
    top_p: int | float | None,
    temperature: int | float | None,
) -> Float[Tensor, "*batch vocab"]:
    """The logits to draw from: divided by the temperature, -inf where dropped.

    In this order, and None leaves a step out: ``temperature`` divides; only
    the ``top_k`` best stay, and whoever ties with the last of them (Fan et
    al., 2018); of what is left, the fewest tokens whose probability is at
    least ``top_p``, the best one always (Holtzman et al., 2020, equation 2).

    Raises:
        TypeError: ``logits`` is not floating point, ``top_k`` no int, or
            another setting no number.
        ValueError: there is no token, ``top_k`` is below 1, ``top_p`` not
            above 0 and up to 1, or ``temperature`` not above 0.
    """
    _check(logits, top_k, top_p, temperature)
    if temperature is not None:
        logits = logits / temperature
    if top_k is not None:
        places = min(top_k, logits.shape[-1])
        last = logits.topk(places).values[..., -1:]
        logits = logits.masked_fill(logits < last, -torch.inf)
    if top_p is not None:
        ranked, order = logits.sort(dim=-1, descending=True, stable=True)
        share = ranked.softmax(-1)
        # A token stays if those before it do not yet have the mass.
        before = share.cumsum(-1) - share
        drop = before >= top_p
        drop[..., 0] = False
        drop = torch.zeros_like(drop).scatter(-1, order, drop)
        logits = logits.masked_fill(drop, -torch.inf)
    return logits


def sample(
    step_fn: StepFunction,
    bos: int,
    eos: int,
    max_len: int,
    *,
    generator: torch.Generator,
    top_k: int | None = None,
    top_p: int | float | None = None,
    temperature: int | float | None = 1.0,
) -> list[int]:
    """Draw one sentence token by token, after ``sampling_filter``.

    Args:
        step_fn: Scores what comes after rows of tokens.
        bos: The token that begins a sentence; it is not returned.
        eos: The token that ends one.
        max_len: The most tokens.
        generator: What draws.
        top_k: As in ``sampling_filter``.
        top_p: As in ``sampling_filter``.
        temperature: As in ``sampling_filter``.

    Returns:
        Ids, with eos if it was drawn.

    Raises:
        TypeError: As ``greedy_decode`` and ``sampling_filter``, or
            ``generator`` is no ``torch.Generator``.
        ValueError: As ``greedy_decode`` and ``sampling_filter``.

    Example:
        >>> step_fn = lambda rows: torch.zeros(len(rows), 4)
        >>> drawn = sample(
        ...     step_fn, 1, 2, 5, generator=torch.Generator().manual_seed(0)
        ... )
        >>> 1 <= len(drawn) <= 5
        True
    """
    check_search(bos=bos, eos=eos, max_len=max_len)
    check_generator(generator)
    said = []
    while len(said) < max_len and said[-1:] != [eos]:
        logits = next_logits(step_fn, [[bos, *said]])[0]
        shares = sampling_filter(logits, top_k, top_p, temperature).softmax(-1)
        shares = shares.to(generator.device)
        said.append(int(torch.multinomial(shares, 1, generator=generator)))
    return said


def _check(
    logits: Tensor,
    top_k: int | None,
    top_p: int | float | None,
    temperature: int | float | None,
) -> None:
    check_states("logits", logits)
    if not logits.shape[-1]:
        raise ValueError(
            f"logits: expected at least one token, got {tuple(logits.shape)}"
        )
    if temperature is not None:
        check_number("temperature", temperature, above=0)
    if top_k is not None:
        check_sizes(top_k=top_k)
    if top_p is not None:
        check_number("top_p", top_p, above=0)
        if top_p > 1:
            raise ValueError(f"top_p: expected a share up to 1, got {top_p}")
