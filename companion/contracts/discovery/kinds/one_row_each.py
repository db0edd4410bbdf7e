"""Tell whether what makes one row of a whole sentence mixes up sentences.

There are no contracts for what classifies. That a sentence has its own result,
whatever stands beside it, can be asked all the same.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from companion.contracts.discovery.kinds.calls import (
    CLOSE,
    answer,
    by_default,
    widths,
)
from companion.contracts.discovery.verdict import Suspect, Unjudged, in_time
from companion.contracts.engine.compare import draw
from companion.contracts.engine.modules.common import module_kept

__all__ = ["suspected"]

SENTENCES, SEQ = 3, 5
APART = (
    "A sentence gets other numbers in a batch than alone, and the batch stands "
    "in front of what goes in and of what comes out: do sentences see each "
    "other?"
)
NO_MORE = "Nothing else of it is judged:"


def suspected(module: nn.Module, reason: Unjudged) -> Unjudged:
    """Add to the reason why a module is not judged that it mixes sentences.

    Args:
        module: It was built with small sizes.
        reason: Why it is not judged.
    """
    try:
        mixes = in_time(lambda: mixes_sentences(module))
    except Unjudged:
        return reason
    if not mixes:
        return reason
    # It goes on from the end of a sentence.
    axis = by_default(module).removeprefix(".")
    return Suspect(f"{APART}{axis}{'.' * bool(axis)} {NO_MORE} {reason}")


def mixes_sentences(module: nn.Module) -> bool:
    """Tell whether a result of one row each depends on the other sentences."""
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        for x in sentences(module):
            got, again = answer(module, (x,)), answer(module, (x,))
            alone = answer(module, (x[:1],))
            if got is None or again is None or alone is None:
                continue
            if got.ndim != 2 or len(got) != SENTENCES or len(alone) != 1:
                continue
            if torch.equal(got, again):
                return not torch.allclose(got[:1], alone, **CLOSE)
    return False


def sentences(module: nn.Module) -> Iterator[Tensor]:
    """List ids, and vectors of the widths that a module may take."""
    yield torch.arange(1, 1 + SENTENCES * SEQ).view(SENTENCES, SEQ) % 9 + 1
    for width in widths(module):
        yield draw(SENTENCES, SEQ, width, seed=7)
