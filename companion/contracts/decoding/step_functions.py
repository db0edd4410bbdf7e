"""What contracts hand over as ``step_fn``, and the ids that come back."""

from collections.abc import Callable
from operator import index

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, seeded
from companion.contracts.engine.guard import STRAY, Guarded, kind

__all__ = ["Prefix", "StubModel", "ending", "read_ids", "wander"]

Prefix = tuple[int, ...]
"""Ids that were said, without bos."""

BOS, EOS, VOCAB = 1, 2, 11


class StubModel:
    """A ``step_fn`` that keeps what it was asked.

    ``scores`` has the logits of what follows a prefix. A row that it cannot
    take raises ``Broken``, so that the mistake is named where it is made.
    """

    def __init__(
        self, scores: Callable[[Prefix], Tensor], max_len: int, bos: int = BOS
    ):
        self.scores, self.max_len, self.bos = scores, max_len, bos
        self.asked: list[list[Prefix]] = []

    def __call__(self, tokens: object) -> Tensor:
        """The logits of the next id after each row: (rows, vocab)."""
        self.require_rows(tokens)
        rows = [tuple(row) for row in tokens.tolist()]
        self.asked.append(rows)
        self.require_end(tokens.shape[1] - 1)
        for row in rows:
            if row[0] != self.bos:
                known = self.asked[:-1] and len(row) == 1
                hint = "Is it the last id alone? " if known else ""
                raise Broken(
                    f"It asked `step_fn` about {list(row)}: a row begins with "
                    f"bos, {self.bos} here, and holds all that was said "
                    f"since. {hint}".rstrip()
                )
        return torch.stack([self.scores(row[1:]) for row in rows])

    def require_rows(self, tokens: object) -> None:
        """Raise Broken unless it is a tensor of ids (rows, length)."""
        wants = "it takes a tensor of ids (rows, length)"
        if not isinstance(tokens, Tensor):
            name = type(tokens).__name__
            hint = "`torch.tensor([ids])` makes one row of a list."
            raise Broken(f"It gave `step_fn` a {name}: {wants}. {hint}")
        if tokens.ndim != 2 or 0 in tokens.shape:
            raise Broken(
                f"It gave `step_fn` ids of shape {tuple(tokens.shape)}: "
                f"{wants}, for one sentence (1, length)."
            )
        if tokens.is_floating_point() or tokens.dtype == torch.bool:
            raise Broken(f"It gave `step_fn` {kind(tokens)}: {wants}.")

    def require_end(self, said: int) -> None:
        """Raise Broken if the search goes on long after it should end."""
        if said > self.max_len + 3:
            raise Broken(
                f"After {said} ids it still asks for more, with max_len "
                f"{self.max_len}: what ends the loop?"
            )
        if len(self.asked) > 50 * (self.max_len + 3):
            raise Broken(
                f"It has asked `step_fn` {len(self.asked)} times, with max_len "
                f"{self.max_len}: what ends the loop?"
            )


def wander(seed: int) -> Callable[[Prefix], Tensor]:
    """Logits that depend on the whole prefix, for a sentence without end.

    They do not sum to anything, and all of them are negative. Padding, bos and
    eos are never likely.
    """

    def scores(prefix: Prefix) -> Tensor:
        mixed = seed
        for token in prefix:
            mixed = (31 * mixed + token + 1) % 1_000_003
        generator = seeded(mixed)
        logits = 2 * torch.randn(VOCAB, generator=generator) - 20
        logits -= 20 * torch.rand((), generator=generator)
        logits[:3] = -60
        return logits

    return scores


def ending(
    words: Prefix, eos: int, seed: int = 0
) -> Callable[[Prefix], Tensor]:
    """Says ``words`` and eos if it is asked greedily, and then goes on."""
    otherwise = wander(seed)

    def scores(prefix: Prefix) -> Tensor:
        logits = otherwise(prefix)
        here = len(prefix)
        if here <= len(words) and prefix == words[:here]:
            logits[[*words, eos][here]] = -10
        return logits

    return scores


def read_ids(fn: Guarded, result: object, args: tuple) -> list[int]:
    """The ids of one sentence, in a list, a tuple or a tensor."""
    ids = result.tolist() if isinstance(result, Tensor) else result
    if isinstance(ids, list | tuple) and len(ids) == 1:
        (only,) = ids
        nested = isinstance(only, list | tuple)
        nested |= isinstance(only, Tensor) and only.ndim == 1
        ids = only if nested else ids
    try:
        if isinstance(ids, Tensor):
            ids = ids.tolist()
        if isinstance(ids, list | tuple):
            return [whole(x) for x in ids]
    except (TypeError, ValueError, RuntimeError):
        pass
    name = type(result).__name__
    what = "None" if result is None else f"a {name}"
    hint = STRAY[name] if name in ("NoneType", "generator") else ""
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. {hint}".rstrip()
    )


def whole(x: object) -> int:
    """An id, which a tensor of one number may hold."""
    if isinstance(x, bool):
        raise TypeError("a bool is no id")
    return index(x)
