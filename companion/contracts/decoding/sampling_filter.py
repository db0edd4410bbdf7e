"""Contracts of what may be drawn: temperature, then top-k, then top-p.

Contracts see log-probabilities, so that a number added to all logits of a row
is nobody's business.
"""

import torch
from torch import Tensor

from companion.contracts.decoding.sampling_filter_cases import (
    ROWS,
    SUSPECTS,
    VOCAB,
    barred,
    expected,
    logits,
)
from companion.contracts.engine.compare import Broken, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.universal import recognised_mistake


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """The log-probabilities of what was returned."""
    fn.require_tensor(result, args)
    fn.require_shape(result, args)
    for row, x in enumerate(result.reshape(-1, result.shape[-1])):
        none = (x == -torch.inf).all()
        if none or not (x < torch.inf).all():
            what = "nothing but -∞" if none else "NaN or ∞"
            raise Broken(
                f"Row {row} holds {what}, so that nothing can be drawn: the "
                "most likely token of each row stays. The arguments were "
                f"{fn.describe(args)}."
            )
    return result.log_softmax(-1)


SAMPLING_FILTER = Component(
    name="sampling_filter",
    signature="sampling_filter(logits, top_k, top_p, temperature)",
    returns="logits (rows, vocab), -∞ for what may not be drawn",
    axes=("row", "token"),
    shape=lambda logits, *rest: logits.shape,
    read=read,
    gradient=False,
    oracle=expected,
    reference="temperature, then top-k, then top-p",
    agrees="It keeps what it should, and as likely as it should be",
    cases=lambda: {
        "with everything off": (logits(), None, None, 1.0),
        "with temperature 0.5": (logits(), None, None, 0.5),
        "with temperature 1.7": (logits(), None, None, 1.7),
        "with top_k 1": (logits(), 1, None, 1.0),
        "with top_k 3": (logits(), 3, None, 1.0),
        "with top_p 0.8": (logits(), None, 0.8, 1.0),
        "with top_p 0.05": (logits(), None, 0.05, 1.0),
        "with top_k 4 and top_p 0.65": (logits(), 4, 0.65, 1.0),
        "with top_k 5, top_p 0.65 and temperature 1.5": (
            logits(),
            5,
            0.65,
            1.5,
        ),
        "with top_p 0.6 and temperature 3": (logits(), None, 0.6, 3.0),
        "where a token is -∞ already": (barred(), 7, 0.8, 1.0),
    },
    suspects=SUSPECTS,
)


def kept(fn: Guarded, *args) -> Tensor:
    """Which tokens may be drawn."""
    return fn.raw(*args) > -torch.inf


def refuse(fn: Guarded, says: str, args: tuple) -> None:
    """Raises Broken with the mistake that explains it, if one is known."""
    known = recognised_mistake(fn)
    hint = known[0] if known else ""
    raise Broken(
        f"{hint} {says}" if hint else says,
        fn.raw(*args),
        expected(*args),
        cause=hint,
    )


@SAMPLING_FILTER.before_reference
def counted(fn: Guarded) -> None:
    """top-k leaves k tokens in each row."""
    for k in (1, 3):
        args = (logits(), k, None, 1.0)
        found = kept(fn, *args).sum(-1).tolist()
        if found != [k] * ROWS:
            says = f"With top_k {k} the rows keep {found} tokens."
            refuse(fn, says, args)


@SAMPLING_FILTER.before_reference
def smallest(fn: Guarded) -> None:
    """top-p leaves the fewest tokens that hold the mass p."""
    for p in (0.8, 0.05):
        args = (logits(), None, p, 1.0)
        all_of_them = logits().softmax(-1)
        mass = (all_of_them * kept(fn, *args)).sum(-1)
        least = (all_of_them + ~kept(fn, *args)).amin(-1)
        for row in range(ROWS):
            says = f"With top_p {p} row {row} keeps the mass {mass[row]:.3f}"
            if mass[row] < p:
                refuse(fn, f"{says}: expected {p} or more.", args)
            if mass[row] - least[row] >= p:
                refuse(fn, f"{says}: fewer tokens would do.", args)


@SAMPLING_FILTER.contract
def rows_apart(fn: Guarded) -> None:
    """Each row is filtered by itself."""
    for k, p in ((3, None), (None, 0.8)):
        args = (logits(), k, p, 1.0)
        alone = torch.cat([fn.raw(row[None], k, p, 1.0) for row in logits()])
        says = "In a batch a row keeps other tokens than alone."
        same(fn, fn.raw(*args), alone, says)


@SAMPLING_FILTER.contract
def ties(fn: Guarded) -> None:
    """Where all tokens are as likely, k of them stay at least."""
    args = (torch.zeros(1, VOCAB), 3, None, 1.0)
    found = kept(fn, *args).sum().item()
    if found < 3:
        raise Broken(
            f"All logits are equal, and with top_k 3 it keeps {found}: does "
            "`<=` drop the k-th largest and all that equal it?"
        )
