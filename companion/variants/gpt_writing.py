"""What a GPT writes, a position at a time, with stored keys and values.

Words for axes, the same in the book, the code and the tests:
    rows    sequences that are written side by side
    length  tokens that each of them has
"""

from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.decoding import sample
from companion.decoding.cache import Past
from companion.decoding.modes import evaluating
from companion.decoding.search import StepFunction
from companion.masks import padding_mask
from companion.variants.gpt import GPT


def cached_step(model: GPT, before: Sequence[int] = ()) -> StepFunction:
    """A ``step_fn`` that computes those positions only that are new.

    Keys and values are stored. A row that goes on from the one before costs
    one position; any other row is read from its beginning. ``before`` stands
    before each row. Padding is never said, and dropout is off.

    Raises:
        TypeError: ``model`` is no ``GPT``.
    """
    if not isinstance(model, GPT):
        raise TypeError(f"model: expected a GPT, got {type(model).__name__}")
    return _Cached(model, before)


def generate(
    model: GPT,
    prompt: Sequence[int],
    max_len: int,
    *,
    eos: int,
    generator: torch.Generator,
    **settings: int | float | None,
) -> list[int]:
    """What is drawn after ``prompt``: up to ``max_len`` ids, or up to eos.

    ``settings`` are those of ``sampling_filter``.

    Raises:
        TypeError, ValueError: as ``sample`` and ``GPT.states``; ``prompt`` is
            empty.
    """
    if len(prompt) == 0:
        raise ValueError("prompt: expected at least one id, got none")
    *before, last = prompt
    step_fn = cached_step(model, before)
    return sample(step_fn, last, eos, max_len, generator=generator, **settings)


class _Cached:
    """What ``cached_step`` returns: a model, and what it has read so far."""

    def __init__(self, model: GPT, before: Sequence[int]):
        self.model, self.before = model, torch.tensor(before).long()
        self.read, self.pasts = None, []

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "rows length"]
    ) -> Float[Tensor, "rows vocab"]:
        model = self.model
        before = self.before.expand(len(tokens), -1)
        tokens = torch.cat([before, tokens.cpu()], dim=1)
        tokens = tokens.to(model.embedding.weight.device)
        model.require_readable(tokens)
        known = self._known(tokens)
        self.read = None  # Who stops a step half-way has read nothing.
        with evaluating(model):
            logits = model.logits(self._newest(tokens, known))
        self.read = tokens
        if model.config.pad is not None:
            logits[:, model.config.pad] = -torch.inf
        return logits

    def _known(self, tokens: Tensor) -> int:
        """How many positions are stored; none, if other tokens were read."""
        known = 0 if self.read is None else self.read.shape[1]
        goes_on = 0 < known < tokens.shape[1]
        if goes_on and torch.equal(tokens[:, :known], self.read):
            return known
        layers = self.model.encoder.layers
        self.pasts = [Past(layer.self_attention) for layer in layers]
        return 0

    def _newest(self, tokens: Tensor, known: int) -> Tensor:
        """The last position's state; each one that is new is stored."""
        model, pad = self.model, self.model.config.pad
        layers = model.encoder.layers
        real = torch.ones_like(tokens, dtype=torch.bool)[:, None, None]
        if pad is not None:
            real = padding_mask(tokens, pad)
        embedded = model.positions(model.embedding(tokens))
        for i in range(known, tokens.shape[1]):
            x = embedded[:, i : i + 1]
            for layer, past in zip(layers, self.pasts, strict=True):
                look = partial(past.look_back, mask=real[..., : i + 1])
                x = layer.attention_residual(x, look)
                x = layer.feed_forward_residual(x, layer.feed_forward)
        return model.encoder.norm(x)[:, 0]
