"""What True means in masks, where nobody has said it.

No shape tells, and no number either: attention that hides what is True is
right, or it is upside down. So this is asked for, and never guessed. It counts
as said if the code says it: by the name of an argument, by a layer of PyTorch's
that gets the masks, by masks that are added, or by a whole model that is right
and makes the masks itself.
"""

import contextlib
import inspect
import re
from collections.abc import Callable
from dataclasses import replace

from torch import nn

from companion.contracts.engine.levels import RISK
from companion.contracts.engine.report import Failure, Report, severity

__all__ = [
    "ADDED",
    "ASK",
    "EITHER",
    "HIDES",
    "NAMES",
    "Lazy",
    "are_ones",
    "better",
    "is_open",
    "said_by",
    "settled",
    "without_the_word",
]

Lazy = Callable[[], Report]
"""Makes a report when it is wanted."""

HIDES = "its masks were read so that True hides"
ADDED = "its masks were read as added to the scores, 0 and −∞"
EITHER = (
    "It has faults whatever True means in its masks; they are told as if True "
    "hid, where fewer contracts fail."
)
ASK = (
    "If True hides in your masks, no contract finds a fault. Only you know: "
    "say `--mask hidden` or `--mask shown`, and in Python `mask=\"hidden\"` or "
    "`mask=\"shown\"`."
)  # fmt: skip
WHY = "It is upside down if True shows in your masks, and right if it hides."
CAUSE = "what True means"
OWN_ASK = "If True hides in your masks, "
AS_SAID = re.compile("True hides in its masks, as `mask` says(; |[.])")

NAMES = re.compile(r"(?i)(\w*_)?key_pad(ding)?_mask|encoder_padding_mask")
"""Arguments of which it is known that True hides in them."""


def better(one: Report, other: Report) -> bool:
    """Tell whether a report has less that waits, or fewer faults."""
    return (len(one.untried), len(one.faults)) < (
        len(other.untried),
        len(other.faults),
    )


def settled(
    shown: Report,
    hidden: Lazy,
    added: Lazy | None = None,
    said: Callable[[], str] = str,
) -> tuple[Report, str]:
    """Return the report that holds, and how the masks were read.

    It is the one where True shows, unless the code says something else. Where
    only the other reading fits, what fails is a risk, and the question is put.

    Args:
        shown: The report where True shows, up to its first fault at least.
        hidden: Makes the report where True hides, such a one too.
        added: Makes that where masks are added to the scores.
        said: By what the code says that True hides; empty, if by nothing.
    """
    if not shown.faults:
        return shown, ""
    turned = hidden()
    reason = said() or said_by_call(turned)
    if turned.passed and reason:
        return without_the_word(turned), f"{HIDES}, {reason}"
    other = added() if added else shown
    if other.passed:
        return other, ADDED
    # Before, only the first fault counts.
    shown, other = shown.whole(), other.whole() if added else None
    if turned.passed:
        return open_question(shown, turned), ""
    turned, other = turned.whole(), other or shown
    if reason and better(turned, shown) and not better(other, turned):
        return without_the_word(turned), f"{HIDES}, {reason}"
    best, words = (other, ADDED) if better(other, shown) else (shown, "")
    if better(turned, best):
        assumed = (EITHER, *without_the_word(turned).assumed)
        best, words = replace(turned, assumed=assumed), ""
    return best, words


def without_the_word(report: Report) -> Report:
    """Leave out that somebody has said what True means."""
    told = (AS_SAID.sub("", text) for text in report.assumed)
    left = (text for text in told if text != "Called as yours: ")
    return replace(report, assumed=tuple(left))


def open_question(shown: Report, hidden: Report) -> Report:
    """Tell what fails where True shows, and that nothing does if it hides."""
    other = {f.contract: f for f in hidden.failures}
    failures: list[Failure] = []
    for failure in sorted(shown.failures, key=severity):
        one = other.get(failure.contract)
        if one is None:
            one = replace(failure, level=RISK, why=WHY, cause=CAUSE)
        failures.append(one)
    held = list(shown.held)
    for name in shown.untried:
        if name in other:
            failures.append(other[name])
        else:
            held.append(name)
    told = (t for t in shown.assumed if not t.startswith(OWN_ASK))
    return Report(shown.component, held, failures, [], (ASK, *told))


def is_open(report: Report) -> bool:
    """Tell whether the question is put in a report."""
    return ASK in report.assumed


def said_by_call(report: Report) -> str:
    """Tell what the name says of the mask that was given, or nothing."""
    found = GIVEN_AS.search(" ".join(report.assumed))
    known = found and NAMES.fullmatch(found[1])
    return f"as `{found[1]}` says" if found and known else ""


def are_ones(module: nn.Module) -> bool:
    """Tell whether masks are 0 and 1, or False and True, by the code.

    It subtracts them from 1, or makes them Booleans. Such a mask is not added
    to the scores.
    """
    for part in module.modules():
        with contextlib.suppress(OSError, TypeError):
            if OF_ONES.search(inspect.getsource(type(part).forward)):
                return True
    return False


OF_ONES = re.compile(
    r"\b1(\.0*)?\s*-\s*\(?\s*(\w+\.)?\w*mask"
    r"|mask\w*\.(bool\(\)|to\(torch\.bool\))|mask\w*\s*!=\s*0"
)


GIVEN_AS = re.compile(r"its mask (?:was given )?as `(\w+)`")


def said_by(fn: object) -> str:
    """Tell by what the code says that True hides in its masks, or nothing.

    Args:
        fn: A module, or a function.
    """
    call = fn.forward if isinstance(fn, nn.Module) else fn
    try:
        names = list(inspect.signature(call).parameters)  # pyrefly: ignore
    except (TypeError, ValueError):
        return ""
    masks = [name for name in names if NAMES.fullmatch(name)]
    if masks and all(n in masks for n in names if "mask" in n.lower()):
        return f"as `{masks[0]}` says"
    layers = nn.MultiheadAttention | nn.TransformerEncoderLayer
    layers = layers | nn.TransformerDecoderLayer
    parts = fn.modules() if isinstance(fn, nn.Module) else ()
    own = next((type(x) for x in parts if isinstance(x, layers)), None)
    return f"as in PyTorch's `{own.__name__}` inside" if own else ""
