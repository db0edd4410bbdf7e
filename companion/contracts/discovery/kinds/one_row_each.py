"""Tell whether what makes one row of a whole sentence mixes up sentences.

There are no contracts for what classifies. That a sentence has its own result,
whatever stands beside it, can be asked all the same.
"""

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from companion.contracts.discovery.kinds.calls import (
    CLOSE,
    answer,
    by_default,
    widths,
)
from companion.contracts.discovery.sizes import LONG
from companion.contracts.discovery.verdict import Suspect, Unjudged, in_time
from companion.contracts.engine.compare import draw
from companion.contracts.engine.modules.common import (
    module_kept,
    moved_from_zero,
)

__all__ = ["NO_MORE", "suspected"]

SENTENCES, SEQ = 3, 5
APART = (
    "A sentence gets other numbers in a batch than alone, and the batch stands "
    "in front of what goes in and of what comes out: do sentences see each "
    "other?"
)
PICTURES_APART = (
    "A picture gets other numbers in a batch than alone: do pictures see each "
    "other?"
)
ALIKE = (
    "All sentences get the same numbers: does the row that classifies see "
    "others of its batch, and not its own sentence?"
)
PICTURES_ALIKE = (
    "All pictures get the same numbers: does the row that classifies see "
    "others of its batch, and not its own picture?"
)
NO_MORE = "Nothing else of it is judged:"


def suspected(module: nn.Module, reason: Unjudged) -> Unjudged:
    """Add to the reason why a module is not judged that it mixes sentences.

    Args:
        module: It was built with small sizes.
        reason: Why it is not judged.
    """
    try:
        mixes = in_time(lambda: mixed(module))
    except Unjudged:
        return reason
    if not mixes:
        return reason
    # It goes on from the end of a sentence.
    axis = by_default(module).removeprefix(".")
    return Suspect(f"{mixes}{axis}{'.' * bool(axis)} {NO_MORE} {reason}")


def mixed(module: nn.Module) -> str:
    """Say that a result of one row each depends on the others, if it does."""
    with (
        module_kept(module),
        moved_from_zero([module], 0),
        torch.random.fork_rng([]),
        torch.no_grad(),
    ):
        module.eval()
        for x in (*sentences(module), *pictures(module)):
            got, again = answer(module, (x,)), answer(module, (x,))
            alone = answer(module, (x[:1],))
            if got is None or again is None or alone is None:
                continue
            if got.ndim != 2 or len(got) != SENTENCES or len(alone) != 1:
                continue
            if torch.equal(got, again):
                return told_of(got, alone, pictures=x.ndim == 4)
    return ""


def told_of(got: Tensor, alone: Tensor, *, pictures: bool) -> str:
    """Say what is wrong with rows, one for each, if anything.

    Args:
        got: Those of a batch.
        alone: That of its first alone.
        pictures: Whether it is one of pictures.
    """
    if not torch.allclose(got[:1], alone, **CLOSE):
        return PICTURES_APART if pictures else APART
    if torch.allclose(got, got[:1].expand_as(got), **CLOSE):
        return PICTURES_ALIKE if pictures else ALIKE
    return ""


def sentences(module: nn.Module) -> Iterator[Tensor]:
    """List ids, and vectors of the widths that a module may take.

    As long as anything, and as the one length that it may be built for.
    """
    first = (x.in_features for x in module.modules() if type(x) is nn.Linear)
    wide = dict.fromkeys([*widths(module), *itertools.islice(first, 1)])
    for seq in (SEQ, LONG):
        yield torch.arange(1, 1 + SENTENCES * seq).view(SENTENCES, seq) % 9 + 1
        for width in wide:
            yield draw(SENTENCES, seq, width, seed=7)


def pictures(module: nn.Module) -> Iterator[Tensor]:
    """List pictures that a module may take, which cuts them into patches.

    They are as large as its table of positions has rows, if it has one.
    """
    cuts = (x for x in module.modules() if isinstance(x, nn.Conv2d))
    cut = next(cuts, None)
    if cut is None:
        return
    looked_up = (x for x in module.modules() if isinstance(x, nn.Embedding))
    tables = [x for x in module.parameters() if x.ndim == 3]
    rows = [x.shape[-2] for x in (*tables, *(x.weight for x in looked_up))]
    # A table may have a row for the class besides, and one for a teacher's.
    sides = [math.isqrt(n - more) for n in rows for more in (0, 1, 2) if n > 2]
    sizes = [SIDE, *(side * cut.stride[0] for side in sides)]
    for size in dict.fromkeys(x for x in sizes if x <= LARGEST):
        yield draw(SENTENCES, cut.in_channels, size, size, seed=7)


SIDE, LARGEST = 32, 256
"""How high and wide a picture is, and how large at most."""
