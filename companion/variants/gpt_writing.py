"""What a GPT writes, a position at a time, with stored keys and values.

Words for axes, the same in the book, the code and the tests:
    rows    sequences that are written side by side
    length  tokens that each of them has
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import check_kind
from companion.decoding import sample
from companion.decoding.cache import evaluating
from companion.decoding.search import StepFunction
from companion.transformer import CausalModel

__all__ = ["cached_step", "generate"]


def cached_step(model: CausalModel, before: Sequence[int] = ()) -> StepFunction:
    """Make a ``step_fn`` that computes those positions only that are new.

    Keys and values are stored. A row that goes on from the one before costs
    one position; any other row is read from its beginning. Padding is never
    written, and dropout is off.

    Args:
        model: What writes.
        before: Ids that stand before each row.

    Returns:
        From rows of tokens to the scores of the next one.

    Raises:
        TypeError: ``model`` is no ``CausalModel``.

    Example:
        >>> from companion.models import load
        >>> trained = load("shakespeare")
        >>> step_fn = cached_step(trained.model)
        >>> row = torch.tensor([trained.tgt_codec.encode("ROMEO")])
        >>> trained.tgt_codec.decode([step_fn(row).argmax().item()])
        ':'
    """
    check_kind("model", model, CausalModel, article="a")
    return _Cached(model, before)


def generate(
    model: CausalModel,
    prompt: Sequence[int],
    max_len: int,
    *,
    eos: int,
    generator: torch.Generator,
    **settings: int | float | None,
) -> list[int]:
    """Draw what comes after ``prompt``: up to ``max_len`` ids, or up to eos.

    Args:
        model: What writes.
        prompt: Ids to go on from.
        max_len: The most ids that are drawn.
        eos: The token that ends a text.
        generator: What draws.
        settings: As in ``sampling_filter``.

    Returns:
        The ids that were drawn.

    Raises:
        TypeError, ValueError: As ``sample`` and ``CausalModel.states``;
            ``prompt`` is empty.

    Example:
        >>> from companion.models import load
        >>> trained = load("shakespeare")
        >>> codec = trained.tgt_codec
        >>> best = {"top_k": 1, "generator": torch.Generator()}
        >>> start = codec.encode("ROM")
        >>> ids = generate(trained.model, start, 3, eos=2, **best)
        >>> codec.decode(ids)
        'EO:'
    """
    if len(prompt) == 0:
        raise ValueError("prompt: expected at least one id, got none")
    *before, last = prompt
    step_fn = cached_step(model, before)
    return sample(step_fn, last, eos, max_len, generator=generator, **settings)


class _Cached:
    """What ``cached_step`` returns: a model, and what it has read so far."""

    def __init__(self, model: CausalModel, before: Sequence[int]):
        self.model, self.before = model, torch.tensor(before).long()
        self.read, self.caches = None, []

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "rows length"]
    ) -> Float[Tensor, "rows vocab"]:
        model, pad = self.model, self.model.config.pad
        before = self.before.expand(len(tokens), -1)
        # Compared here, so that an accelerator is not waited for.
        tokens = torch.cat([before, tokens.cpu()], dim=1)
        if not self._goes_on(tokens):
            self.caches = model.encoder.new_caches()
        self.read = None  # Who stops a step half-way has read nothing.
        there = model.embedding.weight.device
        given = tokens.to(there, non_blocking=True)
        with evaluating(model):
            logits = model.logits(model.states(given, self.caches)[:, -1])
        self.read = tokens
        if pad is not None:
            logits[:, pad] = -torch.inf
        return logits

    def _goes_on(self, tokens: Tensor) -> bool:
        """Whether these tokens begin with those that were read."""
        known = 0 if self.read is None else self.read.shape[1]
        if not 0 < known < tokens.shape[1]:
            return False
        return torch.equal(tokens[:, :known], self.read)
