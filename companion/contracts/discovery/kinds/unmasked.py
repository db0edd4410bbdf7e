"""Judge a language model that sees its future unless it is given a mask."""

import ast
import inspect
import re
from dataclasses import replace

from torch import nn

from companion.contracts.discovery.kinds.calls import masks_are_told
from companion.contracts.discovery.readings import without_the_word
from companion.contracts.discovery.verdict import Check
from companion.contracts.engine.component import title
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.waiting import code_of
from companion.contracts.engine.report import Failure, Report
from companion.contracts.transformer.language_model import future

__all__ = ["given_its_mask"]

UNMASKED = Failure(
    title(future),
    "Called without a mask it breaks contracts that hold with the causal one.",
    level=RISK,
    why="It is right if it is always given the causal mask, as it was here; "
    "nothing inside makes one.",
    cause="unmasked",
)

BY_ITSELF = (
    "Without `{}` it breaks contracts that hold with the causal mask, and its "
    "own `{}` calls it without."
)

AN_ENCODER = re.compile("(?i)encoder")
"""What is called so is given a mask of padding, and predicts nothing."""

GOT_IT = re.compile("it got the causal mask")

WRITES = re.compile(r"(?i)generat|sampl|greedy|beam|complet|decode")
"""What methods are called that write a text, token by token."""


def given_its_mask(
    module: nn.Module, check: Check, report: Report
) -> Report | None:
    """Check a model with the causal mask that it may be given.

    None, if it may be given none, or if that does not mend all.

    Args:
        module: It was called without a mask.
        check: ``companion.contracts.check``.
        report: What was found then.
    """
    names = [*inspect.signature(module.forward).parameters]
    masks = [name for name in names if "mask" in name.lower()]
    encodes = AN_ENCODER.search(type(module).__name__)
    if not (report.faults and masks) or masks_are_told(check) or encodes:
        return None
    for word in ("shown", "hidden"):
        given = check("language_model", module, mask=word, brief=True)
        if given.passed and any(map(GOT_IT.search, given.assumed)):
            whole = without_the_word(given.whole())
            held = [name for name in whole.held if name != UNMASKED.contract]
            return replace(whole, held=held).with_more(unmasked(module, masks))
    return None


def unmasked(module: nn.Module, masks: list[str]) -> Failure:
    """Say what comes of no mask: a fault, if that is how it writes."""
    writer = writes_without(module, masks[0]) if len(masks) == 1 else ""
    if not writer:
        return UNMASKED
    told = BY_ITSELF.format(masks[0], writer)
    return Failure(UNMASKED.contract, told, cause="unmasked")


def writes_without(module: nn.Module, mask: str) -> str:
    """Return the method that writes a text with no mask; nothing if none."""
    place = [*inspect.signature(module.forward).parameters].index(mask)
    for name, method in vars(type(module)).items():
        code = code_of(method) if WRITES.search(name) else None
        own = [x for x in ast.walk(code) if calls_itself(x)] if code else []
        if own and all(leaves_out(call, mask, place) for call in own):
            return name
    return ""


def calls_itself(node: ast.AST) -> bool:
    """Tell whether a piece of code is `self(...)`, or `self.forward(...)`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "self",
        "self.forward",
    )


def leaves_out(call: ast.Call, mask: str, place: int) -> bool:
    """Tell whether a call gives no mask, by its name or at its place."""
    named = {word.arg: ast.unparse(word.value) for word in call.keywords}
    spread = None in named or any(isinstance(x, ast.Starred) for x in call.args)
    given = named.get(mask, "None")
    if len(call.args) > place:
        given = ast.unparse(call.args[place])
    return given == "None" and not spread
