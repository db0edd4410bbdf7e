"""Contracts of shifting right: what a decoder reads to predict a sentence."""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, kind
from companion.contracts.engine.universal import recognised_mistake

BOS = 1


def sentences() -> Tensor:
    """Ids of two sentences, all different, the second one padded."""
    return torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]])


def shifted(tokens: Tensor, bos: int) -> Tensor:
    """bos, and all tokens but the last."""
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, :-1]], 1)


def replaced(tokens: Tensor, bos: int) -> Tensor:
    """The first token overwritten by bos."""
    return torch.cat([shifted(tokens, bos)[:, :1], tokens[:, 1:]], 1)


def left(tokens: Tensor, bos: int) -> Tensor:
    """All tokens but the first, and bos."""
    return torch.cat([tokens[:, 1:], shifted(tokens, bos)[:, :1]], 1)


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """The ids, as int64 whatever number type was asked with."""
    fn.require_tensor(result, args)
    fn.require_shape(result, args)
    return result.long()


SHIFT_RIGHT = Component(
    name="shift_right",
    signature="shift_right(tokens, bos)",
    returns="ids (batch, tgt), as many as `tokens` has",
    axes=("sentence", "position"),
    shape=lambda tokens, bos: tokens.shape,
    read=read,
    oracle=shifted,
    reference="`torch.cat` of bos and all tokens but the last",
    agrees="Every position holds the token before it, the first one bos",
    cases=lambda: {
        "for two sentences": (sentences(), BOS),
        "for bos 9": (sentences(), 9),
        "for sentences of one token": (sentences()[:, :1], BOS),
    },
    shape_hints={
        "It is one longer: the last token is dropped, since nothing comes "
        "after it.": lambda tokens, bos: (len(tokens), tokens.shape[1] + 1),
        "It is one shorter: bos comes in front.": lambda tokens, bos: (
            len(tokens),
            tokens.shape[1] - 1,
        ),
    },
    suspects={
        "Nothing is shifted: each position holds the answer it is asked "
        "for.": lambda tokens, bos: tokens,
        "The last token wraps round to the front: write bos there after "
        "`roll`.": lambda tokens, bos: tokens.roll(1, 1),
        "The first token is overwritten, and the others stay: each of them "
        "holds its own answer.": replaced,
        "It is shifted left: each position holds the token after it.": left,
        "It is shifted left, and the first token wraps round.": (
            lambda tokens, bos: tokens.roll(-1, 1)
        ),
        "The batch is shifted, not the positions: use `dim=1`.": (
            lambda tokens, bos: tokens.roll(1, 0)
        ),
        "The first position holds 0: it should hold bos.": (
            lambda tokens, bos: shifted(tokens, 0)
        ),
        "It is shifted twice.": lambda tokens, bos: shifted(
            shifted(tokens, bos), bos
        ),
    },
)


@SHIFT_RIGHT.before_reference
def answers(fn: Guarded) -> None:
    """No position holds the answer that it is asked for."""
    tokens = sentences()
    before = fn(tokens, BOS)
    for position in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, position] = 10
        moved = (fn(other, BOS) != before).any(0)
        if moved[: position + 1].any():
            knows = moved.nonzero()[0].item()
            known = recognised_mistake(fn)
            hint = known[0] if known else ""
            what = (
                "the token that it is to predict"
                if knows == position
                else "a token of its future"
            )
            raise Broken(
                f"Position {knows} knows token {position}, {what}. "
                f"{hint}".rstrip(),
                before,
                shifted(tokens, BOS),
                cause=hint,
            )


@SHIFT_RIGHT.contract
def number_type(fn: Guarded) -> None:
    """Ids keep their number type."""
    tokens = sentences().int()
    result = fn.call(tokens, BOS)
    if result.dtype != tokens.dtype:
        raise Broken(
            f"It returned {kind(result)} for {kind(tokens)}: make bos with "
            "`torch.full_like`."
        )
