"""One step of training, and many of them.

A batch is ``(src, tgt)`` for a ``Transformer`` and ``(tokens,)`` for a
language model: ids (batch, seq), each row from bos to eos, then padding. What
the decoder reads is the last of them without its last column; what it must say
is the same without its first.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.masks import combine_masks
from companion.training.capability import scaler_for
from companion.training.loss import IGNORED, check_smoothing, summed_loss
from companion.training.optimizer import adam
from companion.transformer import EncoderDecoder

__all__ = ["Batch", "Objective", "Step", "fit", "update"]

Batch = tuple[Tensor, ...]

WIDE = 96
"""From here on it pays to leave padding out before the feed-forward networks.

On a CPU a step of 2 + 2 layers, a fifth of whose batch is padding, took 0.98 to
1.03 times as long with that padding as without, at widths of 16 to 64, and 1.04
to 1.05 times at 96 and 128.
"""


class Step(NamedTuple):
    """What was measured in one update.

    Attributes:
        step: Its number, from 1 up.
        loss: Nats a token.
        rate: The learning rate.
        gradient: The norm of all gradients together, before clipping.
        tokens: What the loss was a mean over.
        left: The norm of the gradients that were there before any loss was
            computed. It is 0 unless somebody forgot to clear them.

    Example:
        >>> taken = Step(1, 2.5, 0.001, 0.7, 96)
        >>> taken.loss, taken.left
        (2.5, 0.0)
    """

    step: int
    loss: float
    rate: float
    gradient: float
    tokens: int
    left: float = 0.0


class Objective(nn.Module):
    """Compute what training makes small: the summed loss of all real tokens.

    A module, so that it can be wrapped, or compiled as one graph. Padding is
    left out before the generator, in wide models before each feed-forward
    network too, and not after it: what nobody asks for is then not computed.

    Args:
        model: A ``Transformer``, or a language model.
        smoothing: As in ``label_smoothing``.

    Raises:
        TypeError: ``smoothing`` is no number.
        ValueError: ``smoothing`` is not from 0 to below 1.

    Example:
        >>> from companion.transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.tiny(7, 7))
        >>> src, tgt = torch.tensor([[1, 4, 2]]), torch.tensor([[1, 5, 2, 0]])
        >>> loss, tokens = Objective(model)(src, tgt)
        >>> tokens  # 5 and the end; the padding is no token to predict.
        2
    """

    def __init__(self, model: nn.Module, *, smoothing: float = 0.0):
        super().__init__()
        check_smoothing(smoothing)
        self.model: Any = model
        self.smoothing = smoothing

    def forward(
        self, *batch: Tensor
    ) -> tuple[Float[Tensor, ""], int | Int[Tensor, ""]]:
        """Compute the loss of a batch, summed, and its number of real tokens.

        Raises:
            TypeError: The model refuses the types of the batch.
            ValueError: The model refuses its shapes or ids.
        """
        target = batch[-1][:, 1:].long()
        real = self._real(target)
        # A compiled graph has no shapes that depend on data, and to learn one
        # is to wait for an accelerator: there the loss leaves padding out.
        if torch.compiler.is_compiling() or not target.is_cpu:
            logits = self.model.logits(self._states(*batch)).flatten(0, 1)
            target = target.masked_fill(~real, IGNORED).flatten()
            return summed_loss(logits, target, self.smoothing), real.sum()
        logits = self.model.logits(self._states(*batch)[real])
        # ``label_smoothing`` without its division. It uses the logits up.
        total = summed_loss(logits, target[real], self.smoothing)
        return total, len(logits)

    def count(self, *batch: Tensor) -> Int[Tensor, ""]:
        """Count the tokens that the model must predict in this batch."""
        return self._real(batch[-1][:, 1:]).sum()

    def _real(self, target: Tensor) -> Tensor:
        pad = self.model.config.pad
        if pad is None:
            return torch.ones_like(target, dtype=torch.bool)
        return target != pad

    def _states(self, *batch: Tensor) -> Tensor:
        reads = batch[-1][:, :-1]
        if len(batch) == 1:
            return self.model.states(reads)
        src, pad = batch[0], self.model.config.pad
        masks = combine_masks(src, reads, pad)
        read, written = {}, {}
        if self._may_leave_out(src):
            read = _only(src != pad)
            written = _only(self._real(batch[-1][:, 1:]))
        memory = self.model.encode(src, masks.src, **read)
        return self.model.decode(
            reads, memory, masks.tgt, masks.cross, **written
        )

    def _may_leave_out(self, src: Tensor) -> bool:
        """Whether shapes may depend on data, and the model is as we know it."""
        if torch.compiler.is_compiling() or not src.is_cpu:
            return False
        known = all(
            getattr(getattr(self.model, name), "__func__", None)
            is getattr(EncoderDecoder, name)
            for name in ("encode", "decode")
        )
        return known and self.model.config.d_model >= WIDE


def _only(real: Tensor) -> dict[str, Tensor]:
    """Make the argument that has a model leave padding out, if there is any."""
    positions = real.flatten().nonzero().squeeze(1)
    return {"real": positions} if 0 < len(positions) < real.numel() else {}


def update(
    objective: Any,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    *,
    step: int,
    rate: float,
    clip: float | None = 1.0,
    scaler: torch.amp.GradScaler | None = None,
    autocast: torch.dtype | None = None,
) -> Step:
    """Take one step of the optimizer, for several batches as if they were one.

    Each loss is divided by the real tokens of *all* batches, which
    ``objective.count`` counts before any gradient is made, so that gradients
    add up to those of the one large batch.

    Args:
        objective: A module with the ``forward`` and the ``count`` of an
            ``Objective``.
        optimizer: Has the parameters.
        batches: Whose gradients are added up.
        step: The number of this step, for the result and for messages.
        rate: The learning rate.
        clip: The largest norm of the gradient, after it was unscaled; None
            clips nothing.
        scaler: Scales the loss, which float16 needs.
        autocast: The number type that matrix products may use.

    Returns:
        What was measured.

    Raises:
        FloatingPointError: The loss or its gradient is not finite; no weight
            has changed. With a ``scaler`` an infinite gradient is skipped.
        ValueError: No token of ``batches`` is real.
    """
    tokens = int(sum(objective.count(*batch) for batch in batches))
    if not tokens:
        raise ValueError("batches: expected a token that is no padding")
    optimizer.zero_grad()
    left = _left(optimizer)
    parts = [
        _backward(objective, batch, tokens, scaler, autocast)
        for batch in batches
    ]
    gradient = _clip(optimizer, clip, scaler)
    # One look at the device, which may be a GPU that has to be waited for.
    seen = [sum(parts[1:], parts[0]), gradient, left.to(gradient)]
    loss, gradient, left = torch.stack(seen).tolist()
    taken = Step(step, loss, rate, gradient, tokens, left)
    _require_finite(taken, overflows=scaler is not None)
    _move(optimizer, rate, scaler)
    return taken


def fit(
    model: nn.Module,
    batches: Iterable[Batch],
    *,
    rate: Callable[[int], float],
    smoothing: float = 0.0,
    clip: float | None = 1.0,
    dtype: torch.dtype | None = None,
    objective: nn.Module | None = None,
) -> list[Step]:
    """Train ``model``, one step a batch, with the paper's Adam.

    Args:
        model: Is trained in place, on the device where it is.
        batches: One for each step.
        rate: The learning rate of step 1, 2, …
        smoothing: As in ``label_smoothing``.
        clip: The largest norm of the gradient; None clips nothing.
        dtype: The number type of matrix products. With torch.float16 the loss
            is scaled; with torch.bfloat16 it need not be.
        objective: What to make small, if it is not what comes next: a module
            with the ``forward`` and the ``count`` of an ``Objective``.

    Returns:
        What was measured at each step.

    Raises:
        FloatingPointError: The loss or its gradient is not finite.
        TypeError: A batch is of a wrong type.
        ValueError: A batch has no real token, or does not fit the model.

    Example:
        >>> from companion.transformer import Transformer, TransformerConfig
        >>> model = Transformer(TransformerConfig.tiny(7, 7))
        >>> batch = torch.tensor([[1, 4, 2]]), torch.tensor([[1, 5, 2]])
        >>> history = fit(model, [batch] * 20, rate=lambda step: 0.01)
        >>> history[-1].loss < history[0].loss
        True
    """
    model.train()
    device = next(model.parameters()).device
    if objective is None:
        objective = Objective(model, smoothing=smoothing)
    optimizer = adam(model.parameters(), lr=rate(1))
    scaler = scaler_for(dtype, device)
    return [
        update(
            objective,
            optimizer,
            [tuple(part.to(device) for part in batch)],
            step=step,
            rate=rate(step),
            clip=clip,
            scaler=scaler,
            autocast=dtype,
        )
        for step, batch in enumerate(batches, 1)
    ]


def _backward(
    objective: nn.Module,
    batch: Batch,
    tokens: int,
    scaler: torch.amp.GradScaler | None,
    autocast: torch.dtype | None,
) -> Tensor:
    """Add the gradients of one batch, and return its share of the loss."""
    device = batch[0].device.type
    with torch.autocast(device, autocast, enabled=autocast is not None):
        total, _ = objective(*batch)
    loss = total / tokens
    (loss if scaler is None else scaler.scale(loss)).backward()
    return loss.detach()


def _left(optimizer: torch.optim.Optimizer) -> Tensor:
    """Measure the gradients that nobody cleared; without any it is 0."""
    groups = optimizer.param_groups
    old = [p.grad for group in groups for p in group["params"]]
    return nn.utils.get_total_norm([grad for grad in old if grad is not None])


def _clip(
    optimizer: torch.optim.Optimizer,
    clip: float | None,
    scaler: torch.amp.GradScaler | None,
) -> Tensor:
    """Unscale, then clip, and return the norm between the two."""
    if scaler is not None:
        scaler.unscale_(optimizer)
    groups = optimizer.param_groups
    parameters = [p for group in groups for p in group["params"]]
    return nn.utils.clip_grad_norm_(
        parameters, math.inf if clip is None else clip
    )


def _require_finite(step: Step, *, overflows: bool) -> None:
    """Stop a run that is lost; fp16 may overflow, and skips that step."""
    fine = step.loss if overflows else step.loss + step.gradient
    if not math.isfinite(fine):
        raise FloatingPointError(
            f"step {step.step}: expected a finite loss and gradient, got loss "
            f"{step.loss} and gradient norm {step.gradient} at learning rate "
            f"{step.rate:.3g}"
        )


def _move(
    optimizer: torch.optim.Optimizer,
    rate: float,
    scaler: torch.amp.GradScaler | None,
) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
