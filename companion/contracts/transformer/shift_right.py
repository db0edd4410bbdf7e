"""Contracts of shifting right: what a decoder reads to predict a sentence."""

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, kind
from companion.contracts.engine.universal import recognised_mistake

__all__ = ["SHIFT_RIGHT"]

BOS = 1


def sentences() -> Tensor:
    """Ids of two sentences, all different, the second one padded."""
    return torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]])


def shifted(tokens: Tensor, bos: int) -> Tensor:
    """bos, and all tokens but the last."""
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, :-1]], 1)


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


# Known mistakes


@SHIFT_RIGHT.mistake(
    hint="Nothing is shifted: each position holds the answer it is asked for.",
    symptom="a loss of nearly 0 within minutes, and a model that says nothing",
)
def unshifted(tokens, bos):
    """The decoder reads the very token that it is to predict."""
    return tokens


@SHIFT_RIGHT.mistake(
    hint="The last token wraps round to the front: write bos there after "
    "`roll`.",
    symptom="nearly right: the first word is easier in training than it ever "
    "will be",
)
def rolled_round(tokens, bos):
    """`roll`, without bos: the first position reads the last token."""
    return tokens.roll(1, 1)


@SHIFT_RIGHT.mistake(
    hint="The first token is overwritten, and the others stay: each of them "
    "holds its own answer.",
    symptom="every word but the first is learned at once, and none is said",
)
def bos_written_over(tokens, bos):
    """bos takes the place of the first token, and nothing moves."""
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, 1:]], 1)


@SHIFT_RIGHT.mistake(
    hint="It is shifted left: each position holds the token after it.",
    symptom="nearly no loss in training: it copies what it has yet to say",
)
def shifted_left(tokens, bos):
    """Shifted, in the other direction."""
    return F.pad(tokens[:, 1:], (0, 1), value=bos)


@SHIFT_RIGHT.mistake(
    hint="It is shifted left, and the first token wraps round.",
)
def rolled_left(tokens, bos):
    """`roll` in the other direction, without bos."""
    return tokens.roll(-1, 1)


@SHIFT_RIGHT.mistake(
    hint="The batch is shifted, not the positions: use `dim=1`.",
    symptom="it learns to continue the sentence of somebody else",
)
def shifts_the_batch(tokens, bos):
    """`roll` along the first axis: each row is that of its neighbour."""
    return tokens.roll(1, 0)


@SHIFT_RIGHT.mistake(
    hint="The first position holds 0: it should hold bos.",
    symptom="fine in training; the first word after bos is a guess",
)
def begins_with_padding(tokens, bos):
    """Padded on the left with 0 instead of bos, which is never learned."""
    return F.pad(tokens[:, :-1], (1, 0))


@SHIFT_RIGHT.mistake(
    hint="It is shifted twice.",
    symptom="it trains, and skips every other word when it writes",
)
def shifted_twice(tokens, bos):
    """Each position reads the token before the last one."""
    return F.pad(tokens, (2, 0), value=bos)[:, : tokens.shape[1]]
