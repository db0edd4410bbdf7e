"""Losses that smooth their labels: how they are built and called."""

import contextlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from companion.commands.check.judging import Judge, with_risk
from companion.contracts.adapters import smoothed_by
from companion.contracts.discovery.anew.rebuild import ANSWERS, NOT_TAKEN
from companion.contracts.discovery.kinds.calls import NO_CALL, Called
from companion.contracts.discovery.make import NotBuilt
from companion.contracts.discovery.readings import better
from companion.contracts.discovery.verdict import Judged, Unjudged, in_time
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.report import Failure, Report
from companion.contracts.training.label_smoothing import (
    BY_SENTENCES,
    COUNTED,
    EVERY_TOKEN,
    ON_PURPOSE,
    PADDING,
    over_real_tokens,
    real_alone,
    treats_all_classes_alike,
)

__all__ = ["LOSS", "judged_loss"]

LOSS = re.compile(
    r"(?i)((cross_?)?entropy_?(loss_?)?)?label_?smooth\w*"
    r"|smooth\w*(loss|entropy)\w*"
)
"""What losses are called that smooth their labels."""

NO_PADDING = (
    "It is right where no target is padding, as where images are classified."
)

WORDS_OF_PADDING = re.compile(r"(?i)pad|ignore")

OF_LOGITS = "It takes logits"

RAW = (
    "Given logits it breaks contracts that hold for log-probabilities, and yet "
    "it takes the logarithm of their softmax itself: is that forgotten in its "
    "smoothed part?"
)

LOGS_ALONE = "It is right if it is always given log-probabilities."


def judged_loss(judge: Judge, kind: type) -> Judged:
    """Judge a loss that is made for its smoothing, in the form that fits.

    Args:
        judge: Tries the contracts.
        kind: The class of the loss.

    Raises:
        NotBuilt: The names of its arguments do not say what they are.
        Unjudged: It cannot be called.
    """
    make_loss = loss_of(kind)
    tried = []
    for judged in in_each_form(judge, make_loss, says_padding(kind)):
        if judged.report.passed:
            return with_own_padding(judged, kind)
        tried.append(judged)
    best, *others = [
        replace(judged, report=judged.report.whole()) for judged in tried
    ]
    for judged in others:
        if better(judged.report, best.report):
            best = judged
    if best.report.untried:
        raised = best.report.failures[0].message
        raise Unjudged(
            f"{NO_CALL}, as a loss: see `adapters.smoothed_by`. {raised}"
        )
    return with_own_padding(best, kind)


def in_each_form(
    judge: Judge, make_loss: Callable, padded: bool
) -> Iterator[Judged]:
    """Judge a loss in each form that it may be called in.

    Args:
        judge: Tries the contracts.
        make_loss: Makes it of its smoothing, padding and vocabulary.
        padded: Whether it has a word for padding.
    """
    for whole, logs, mean in itertools.product((False, True), repeat=3):
        fn = smoothed_by(make_loss, logs=logs, mean=mean, flat=not whole)
        report = judge.check("label_smoothing", fn, brief=True)
        if not (padded or report.passed) and counts_all(fn):
            report = of_real_tokens(judge, fn)
        elif whole and not (report.passed or mean):
            report = of_sentences(judge, fn, report)
        said = ["a loss that is made for its smoothing"]
        if whole:
            said.append("it got sentences, (batch, seq, vocab)")
        if logs:
            said.append("it got log-probabilities")
        if mean:
            said.append("its sum was divided by the number of real tokens")
        bare = smoothed_by(make_loss, mean=mean, flat=not whole)
        if logs and report.passed and makes_its_own_logs(bare):
            report = with_risk(report, OF_LOGITS, RAW, LOGS_ALONE)
        yield Judged("label_smoothing", report, ("; ".join(said),))


def of_sentences(judge: Judge, fn: Callable, report: Report) -> Report:
    """Judge all else of a loss that divides by the number of sentences.

    That it does is a risk. Of any other loss ``report`` is what was found.
    """
    averaged = judge.check("label_smoothing", over_real_tokens(fn))
    if EVERY_TOKEN not in averaged.held:
        return report
    return with_risk(averaged, EVERY_TOKEN, BY_SENTENCES, ON_PURPOSE)


def of_real_tokens(judge: Judge, fn: Callable) -> Report:
    """Judge a loss without a word of padding on all else.

    That it counts padding is a risk: there may be none.
    """
    report = judge.check("label_smoothing", real_alone(fn))
    return with_risk(report, PADDING, COUNTED, NO_PADDING)


def says_padding(kind: type) -> bool:
    """Tell whether a loss has a word for padding, in its own names.

    Those of PyTorch's layers inside are none of its own.
    """
    names = [
        *inspect.signature(kind.__init__).parameters,
        *inspect.signature(kind.forward).parameters,  # pyrefly: ignore
        *vars(kind),
    ]
    with contextlib.suppress(Exception):
        names += vars(loss_of(kind)(0.1, 0, 7))
    return any(map(WORDS_OF_PADDING.search, names))


def counts_all(fn: Callable) -> bool:
    """Tell whether a loss treats all classes alike, padding among them."""
    try:
        return in_time(lambda: treats_all_classes_alike(fn))
    except Unjudged:
        return False


def makes_its_own_logs(fn: Callable) -> bool:
    """Tell whether a loss takes the logarithm of a softmax."""

    def heard() -> bool:
        with Called() as called:
            fn(torch.randn(2, 3, 7), torch.ones(2, 3).long(), 0.1, 0)
        return bool(called.names & {"log_softmax", "cross_entropy"})

    try:
        return in_time(heard)
    except Unjudged:
        return False


def with_own_padding(judged: Judged, kind: type) -> Judged:
    """Add a risk if a loss raises where a target is its own default padding.

    Args:
        judged: What came of it, built for padding 0 and others.
        kind: The class of the loss.
    """
    parameters = inspect.signature(kind.__init__).parameters
    sizes = dict(zip(ROLES, (0.1, 0, 7), strict=True))
    named = {n: sizes[role] for n, role in sizes_of(kind).items()}
    name = next((n for n, role in sizes_of(kind).items() if role == "pad"), "")
    pad = parameters[name].default if name else None
    if type(pad) is not int or pad >= 0:
        return judged
    try:
        raised = in_time(lambda: raised_by_padding(kind, named, name, pad))
    except Unjudged:
        return judged
    if not raised:
        return judged
    risk = Failure(
        ANSWERS,
        f"With its own default `{name}={pad}` it does not answer where a "
        f"target is {pad}. It raised {raised}",
        level=RISK,
        why=NOT_TAKEN,
        cause=ANSWERS,
    )
    return replace(judged, report=judged.report.with_more(risk))


def raised_by_padding(kind: type, named: dict, name: str, pad: int) -> str:
    """Tell what a loss raises that ignores ``pad``; nothing if it answers."""
    logits = torch.zeros(4, 7)
    target = torch.tensor([1, 2, 3, 4])
    try:
        loss = kind(**{**named, name: pad})
        loss(logits, target)
    except Exception:
        return ""  # It wants to be called otherwise.
    try:
        loss(logits, target.masked_fill(target == 4, pad))
    except Exception as error:
        return raised_in(error)
    return ""


def loss_of(kind: type) -> Callable[..., Any]:
    """Return what makes a loss of its smoothing, padding and vocabulary.

    Raises:
        NotBuilt: The names of its arguments do not say which is which.
    """
    which = sizes_of(kind)

    def make(*sizes: Any) -> Any:
        given = dict(zip(ROLES, sizes, strict=True))
        return kind(**{name: given[role] for name, role in which.items()})

    return make


ROLES = {
    "smoothing": "smo|eps|alpha",
    "pad": "pad|ignore",
    "classes": "vocab|class|size|tgt|dim|^n$|^v$",
}
"""What an argument is -> what is found in its name."""


def sizes_of(kind: type) -> dict[str, str]:
    """Return what each argument is, of those that are known.

    Raises:
        NotBuilt: The names of its arguments do not say which is which.
    """
    which = {}
    for one in [*inspect.signature(kind.__init__).parameters.values()][1:]:
        name = one.name.lower()
        roles = (
            role for role, known in ROLES.items() if re.search(known, name)
        )
        found = next(roles, "")
        if type(one.default) is int and one.default < 0 and found != "pad":
            continue  # An axis.
        if found and found not in which.values():
            which[one.name] = found
        elif one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD:
            raise NotBuilt(f"nothing says what its argument `{one.name}` is")
    if "smoothing" not in which.values():
        raise NotBuilt("nothing says which of its arguments is the smoothing")
    return which
