"""What is a fault in general, and right in what bears a published name.

Or in a translator whose code never speaks of padding.
"""

import inspect
import re
from typing import Any, NamedTuple

from torch import nn

from companion.contracts.discovery.heads import made_for_a_width
from companion.contracts.discovery.verdict import ATTENDING
from companion.contracts.engine.component import title
from companion.contracts.engine.levels import FAULT
from companion.contracts.engine.modules.around import inmost
from companion.contracts.engine.report import Report
from companion.contracts.transformer.translation_model import (
    source_padding,
    unequal_sources,
)

__all__ = ["SINK", "another_kind", "by_convention"]


class Convention(NamedTuple):
    """What a model does on purpose.

    Attributes:
        named: What is found in the name of its class.
        told: How the message begins that the contracts have for it.
        why: When it is right.
    """

    named: re.Pattern
    told: re.Pattern
    why: str

    def excuse(self, report: Report) -> Report:
        """Make risks of the faults of which the contracts tell so."""
        known = filter(lambda f: self.told.match(f.message), report.failures)
        causes = {f.cause for f in known}
        return report.milder(
            lambda f: f.level == FAULT and f.cause in causes, self.why
        )


TWICE = re.compile("The positions stand there twice")
"""What is said of rows whose weights do not sum to 1."""

CONVENTIONS = (
    # Shazeer et al. (2020); CaiT mixes with a bias behind the softmax as well.
    Convention(
        re.compile(r"(?i)talking_?heads?"),
        TWICE,
        "It is right where heads are mixed behind the softmax too, so that "
        "no row of weights sums to 1.",
    ),
    # Raffel et al. (2020): the published code draws queries with a deviation
    # of (d_model · d_kv)^-0.5, and scales no scores.
    Convention(
        re.compile(r"(?<![A-Z])M?T5(?![0-9])|(?i:^m?t5_)"),
        re.compile("The scores are not divided by anything"),
        "It is right with the weights of a trained T5, or where queries are "
        "drawn smaller by that root, as a T5 draws them.",
    ),
    # Zamir et al. (2022), Restormer: its layer norm without a bias.
    Convention(
        re.compile(r"(?i)bias_?free|(without|no)_?bias"),
        re.compile("It divides by the standard deviation, from which the mean"),
        "It is right as the layer norm without a bias of Restormer, which "
        "leaves the mean in.",
    ),
    # Lee et al. (2019): the published code of the Set Transformer.
    Convention(
        re.compile(r"(?i)^[im]?sab$|^mab$|set_?transformer"),
        re.compile("The scores of each head are divided by .* of d_model"),
        "It is right as in the published Set Transformer, which divides by the "
        "root of the whole width.",
    ),
    # As in networks of points, each of which goes through the same one.
    Convention(
        re.compile(r"(?i)mlp"),
        re.compile("Only sentence 0 .* in training mode .*BatchNorm"),
        "It is right where points or pixels go through it, as many as the "
        "norm wants. Padding counts in its mean.",
    ),
    Convention(
        re.compile(r"(?i)norm"),
        re.compile(r"The gain is 1 \+ `gain`"),
        "It is right with weights that are stored less 1, as Gemma's are. With "
        "its own all vectors are twice as long at first.",
    ),
)


def by_convention(made: Any, report: Report) -> Report:
    """Make risks of faults that a model of this name has on purpose.

    What is put down to the same cause goes with it, and nothing else.

    Args:
        made: What was judged, a module or a function.
        report: What was found.
    """
    parts = made.modules() if isinstance(made, nn.Module) else ()
    names = {type(part).__name__ for part in parts}
    names |= {getattr(made, "__name__", "")}
    for one in CONVENTIONS:
        if any(map(one.named.search, names)):
            report = one.excuse(report)
    if report.component == "translation_model" and never_pads(made):
        report = report.milder(
            lambda f: f.level == FAULT and f.contract in OF_SOURCES, NEVER_PADS
        )
    if report.component in ATTENDING and has_a_sink(made):
        report = report.milder(
            lambda f: f.level == FAULT and bool(TWICE.match(f.message)), SINK
        )
    if report.component == "attention":
        report = made_for_a_width(made, made, report)
    if report.component == "attention" and compares_directions(made):
        report = report.milder(
            lambda f: f.level == FAULT and f.contract in OF_PRODUCTS,
            OF_DIRECTIONS,
        )
    return report


OF_PRODUCTS = (
    "It agrees with PyTorch",
    "The scores are divided by √d_k, whatever d_k is",
    "Adding the same vector to every key changes nothing",
    "Scores of ±10⁴ give finite weights",
)
"""What holds of scores that are products, and not of cosines."""

OF_DIRECTIONS = (
    "It is right where directions are to be compared, as with QK-norm or in "
    "Swin v2: its code divides queries and keys by their lengths."
)
BY_LENGTHS = re.compile(r"normalize\(|cosine_similarity\(|\.norm\(")


def compares_directions(made: Any) -> bool:
    """Tell whether code divides vectors by their lengths."""
    own = type(made).forward if isinstance(made, nn.Module) else made
    try:
        return bool(BY_LENGTHS.search(inspect.getsource(own)))
    except (OSError, TypeError):
        return False


SINK = (
    "It is right with a sink that takes a share of each row, with 1 added to "
    "the sum of a softmax, or without a softmax, as in linear attention."
)
WITH_A_SINK = re.compile(
    r"(?i)softmax_?(1|one)\b|softmax_?plus|quiet_?(att|soft)|\b\w*sinks?\b"
)


def has_a_sink(made: Any) -> bool:
    """Tell whether weights may go to what stands beside the keys.

    PyTorch's layer has such, and a class may say so.
    """
    parts = [*made.modules()] if isinstance(made, nn.Module) else []
    own = [x for x in parts if isinstance(x, nn.MultiheadAttention)]
    if any(x.add_zero_attn or x.bias_k is not None for x in own):
        return True
    kinds = {type(inmost(part)) for part in parts}
    theirs = [x for x in kinds if not x.__module__.startswith("torch.")]
    try:
        return any(WITH_A_SINK.search(inspect.getsource(x)) for x in theirs)
    except (OSError, TypeError):
        return False


OF_SOURCES = title(source_padding), title(unequal_sources)
NEVER_PADS = (
    "It is right where no source is ever padded, as one at a time, or all of "
    "one length: nothing in its code speaks of padding."
)
OF_PADDING = re.compile(
    r"(?i)pad|(src|source|mem(ory)?|enc(oder)?|input)_?mask|len(gth)?s\b"
)


def never_pads(made: Any) -> bool:
    """Tell whether a module's code says nothing of padding, nor of lengths.

    What cannot be read may say so.
    """
    if not isinstance(made, nn.Module):
        return False
    kinds = {type(inmost(part)) for part in made.modules()}
    own = [kind for kind in kinds if not kind.__module__.startswith("torch.")]
    try:
        text = "".join(inspect.getsource(kind) for kind in own)
    except (OSError, TypeError):
        return False
    return not OF_PADDING.search(text)


ANOTHER_KIND = re.compile(
    r"(?i)(window|local|sliding|neighbou?r(hood)?|sparse|strided?|dilat(ed|ion)"
    r"|axial|random|class|fast|linear|linformer|performer|nystrom|lsh"
    r"|recurrent|prefix|cosine|cos_?sim)"
    r"\w*att(entio)?n"
)
"""Attention that sees some positions only, or weighs them otherwise."""


def another_kind(module: nn.Module) -> str:
    """Return the class in it whose name says that it attends otherwise.

    Or whose code does: attention that keeps the largest scores alone.
    """
    kinds = [type(inmost(part)) for part in module.modules()]
    named = (kind.__name__ for kind in kinds)
    chooses = (kind.__name__ for kind in kinds if keeps_the_largest(kind))
    return next(filter(ANOTHER_KIND.search, named), "") or next(chooses, "")


ATTENDS = re.compile(r"(?i)att(entio)?n|head")
TOP_K = re.compile(r"\btopk\(|\btop_k\(|\.kthvalue\(")


def keeps_the_largest(kind: type) -> bool:
    """Tell whether a class is called attention, and chooses keys by a rank."""
    own = ATTENDS.search(kind.__name__) and hasattr(kind, "forward")
    if not own or kind.__module__.startswith("torch."):
        return False
    try:
        return bool(TOP_K.search(inspect.getsource(kind)))
    except (OSError, TypeError):
        return False
