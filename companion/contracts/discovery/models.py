"""Judge a whole model, and the parts that it is made of."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.adapters import sequence_first
from companion.contracts.discovery.heads import (
    judged_on_heads,
    with_its_scale,
)
from companion.contracts.discovery.kinds.calls import (
    ADDED_ALONG_THE_FIRST,
    LOOKS,
    NO_CALL,
    NOTHING,
    SEQUENCE_FIRST,
    WHOLE,
    answer,
    hides,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.ids import SEES_ALL
from companion.contracts.discovery.kinds.judge import Thrice, judge
from companion.contracts.discovery.kinds.recognition import THREE
from companion.contracts.discovery.kinds.vectors import (
    Resized,
    judged_as_causal,
    require_no_other_kind,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.discovery.unheard import with_what_is_unheard
from companion.contracts.discovery.verdict import Judged, Unjudged, in_time
from companion.contracts.engine.compare import draw, is_float
from companion.contracts.engine.forms.other_ways import ASK_FIRST, ASK_SHIFTED
from companion.contracts.engine.modules.common import (
    held_apart,
    is_lazy,
    module_kept,
)
from companion.contracts.engine.page import html
from companion.contracts.engine.report import Failure, Report
from companion.contracts.transformer.encoder import NORMED_STREAM
from companion.sanitize import sanitize
from companion.words import ENGLISH, say, wrapped

__all__ = [
    "ModelReport",
    "Part",
    "Skipped",
    "judge_alone",
    "judge_model",
    "judge_part",
    "only_normed_first",
]

CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)


@dataclass(frozen=True)
class Part:
    """A part of a model that was judged.

    Attributes:
        name: Its name in the model; empty for the model itself.
        kind: Its class.
        judged: What it was taken for, and the report.
        more: How many others of the same class and size there are.
    """

    name: str
    kind: type
    judged: Judged
    more: int = 0

    @property
    def title(self) -> str:
        """Name it and its class."""
        name = f"{self.name} ({self.kind.__name__})" if self.name else ""
        also = f", and {self.more} more like it" if self.more else ""
        return (name or self.kind.__name__) + also


@dataclass(frozen=True)
class Skipped:
    """A part of a model that there are no contracts for.

    Attributes:
        name: Its name in the model; empty for the model itself.
        kind: Its class.
        reason: Why it could not be judged.
    """

    name: str
    kind: type
    reason: str

    @property
    def title(self) -> str:
        """Name it and its class."""
        name = self.kind.__name__
        return f"{self.name} ({name})" if self.name else name


@dataclass(frozen=True, repr=False)
class ModelReport:
    """What ``check_model`` found in a model.

    Attributes:
        name: Its class.
        parts: What was judged: the model first, if it could be.
        unjudged: What was not, and why.
        lang: In which language it is shown; its attributes are English.
    """

    name: str
    parts: list[Part] = field(default_factory=list)
    unjudged: list[Skipped] = field(default_factory=list)
    lang: str = ENGLISH

    @property
    def kind(self) -> str:
        """The component that the whole was judged as; empty if it was not."""
        whole = [p.judged.component for p in self.parts if not p.name]
        return whole[0] if whole else ""

    @property
    def reports(self) -> list[Report]:
        """The reports on all parts, in order."""
        return [part.judged.report for part in self.parts]

    @property
    def failures(self) -> list[Failure]:
        """All contracts that do not hold."""
        return [f for report in self.reports for f in report.failures]

    @property
    def faults(self) -> list[Failure]:
        """Those that make it wrong."""
        return [f for report in self.reports for f in report.faults]

    @property
    def passed(self) -> bool:
        """Whether something was judged, and nothing of it has a fault."""
        return bool(self.parts) and all(r.passed for r in self.reports)

    @property
    def headline(self) -> str:
        """The result in one line."""
        what = self.kind.replace("_", " ") or "not judged as a whole"
        bad = sum(not report.passed for report in self.reports)
        found = f"{bad} of {len(self.parts)} with faults" if bad else "no fault"
        many = len(self.parts)
        parts = f"{many} part judged" if many == 1 else f"{many} parts judged"
        if not self.parts:
            return f"{self.name}: nothing in it could be judged"
        return f"{self.name}: {what}; {parts}, {found}"

    def __str__(self) -> str:
        lines = [self.say(self.headline), ""]
        for part in self.parts:
            lines.append(self.say(part.title))
            said = self.say(f"({'; '.join(part.judged.assumed)})")
            lines += wrapped(said, self.lang, 78, indent="  ", more="    ")
            report = str(self.shown(part)).splitlines()
            lines += [f"  {line}".rstrip() for line in report] + [""]
        if self.unjudged:
            lines.append(self.say("Not judged:"))
        for one in self.unjudged:
            said = f"· {one.title}: {self.say(one.reason)}"
            lines += wrapped(said, self.lang, 78, indent="  ", more="    ")
        return "\n".join(lines).rstrip()

    def say(self, text: str) -> str:
        """Say one of its texts in its language."""
        return say(text, self.lang)

    def shown(self, part: Part) -> Report:
        """Return the report on a part, in the language of this one."""
        return replace(part.judged.report, lang=self.lang)

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None):
        headline, left = map(self.say, (self.headline, "Not judged:"))
        pages = [f"<p><strong>{escape(headline)}</strong></p>"]
        for part in self.parts:
            pages.append(f"<p>{escape(self.say(part.title))}</p>")
            pages.append(html(self.shown(part)))
        items = (
            f"<li>{escape(one.title)}: {escape(self.say(one.reason))}</li>"
            for one in self.unjudged
        )
        if self.unjudged:
            pages.append(f"<p>{left}</p><ul>{''.join(items)}</ul>")
        return {"text/html": "\n".join(pages), "text/plain": str(self)}


def judge_model(
    model: nn.Module,
    check: Callable[[str, object], Report],
) -> ModelReport:
    """Judge a model, and each different part that somebody wrote for it.

    Args:
        model: It may be of any size; small is quicker.
        check: ``companion.contracts.check``.

    Returns:
        What was judged, and what was not.
    """
    report = ModelReport(type(model).__name__)
    hints = widths(model)
    for name, part, more in different_parts(model):
        kind = type(part)
        try:
            if name:
                whole = report.parts[0].judged if report.kind else None
                judged = judge_part(part, model, whole, check, None)
            else:
                judged = judge_alone(part, check, None, hints)
        except Unjudged as reason:
            if str(reason) != NOTHING:
                said = sanitize(str(reason))
                report.unjudged.append(Skipped(name, kind, said))
            continue
        report.parts.append(Part(name, kind, judged, more))
    return report


GIVES_BACK = (
    "it gives back what goes in, and has weights all the same. If something is "
    "to be called first, such as `encode`, mark a function that calls both"
)


def judge_alone(
    module: nn.Module,
    check: Callable[..., Report],
    near: dict | None,
    hints: list[int],
    said: Callable[[], str] = str,
) -> Judged:
    """Judge a module by what it does, and as `kinds.judge` does.

    What cannot be judged because dropout stays on in layers of a plain list
    has a fault: nothing trains these.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        judged = judge(module, check, near, hints, said)
        judged = with_its_scale(module, judged, check)
        return with_what_is_unheard(judged, module, hints)
    except Unjudged as reason:
        if str(reason) == NOTHING and any(True for _ in module.parameters()):
            raise Unjudged(GIVES_BACK) from None
        uncalled = str(reason).startswith(NO_CALL)
        # Three vectors, and no attention: then their axes may be others.
        # Of positions that are taken for heads each gets itself back.
        no_vectors = uncalled or str(reason) == NOTHING
        otherwise = no_vectors or THREE in str(reason)
        judged = judged_on_heads(module, check) if otherwise else None
        if judged and (no_vectors or judged.report.passed):
            require_no_other_kind(module, judged)
            report = by_convention(module, judged.report)
            return replace(judged, report=report)
        weights = any(p.ndim > 1 for p in module.parameters())
        if str(reason) == THREE and weights:
            block = Thrice.named_as(module)(module)
            with contextlib.suppress(Unjudged):
                return judge(block, check, near, hints, said)
        if uncalled and in_time(lambda: looks_over_one_sentence(module, hints)):
            raise Unjudged(f"{reason} {ONE_SENTENCE}") from None
        judged = never_trained(module, check, hints, str(reason))
        if judged is None:
            require_no_plain_list(module, reason)
            raise
        return judged


def require_no_plain_list(module: nn.Module, reason: Unjudged) -> None:
    """Raise that a plain list holds weights, beside why it is not judged.

    Args:
        module: What is not judged.
        reason: Why.
    """
    apart = (one for one in held_apart(module) if len(one.held) > 1)
    told = next((one.told for one in apart), "")
    if told and type(reason) is Unjudged:
        end = "" if str(reason).endswith(".") else "."
        raise Unjudged(f"{reason}{end} Whatever it is, {told}") from None


ONE_SENTENCE = (
    "It takes one sentence, (seq, d_model), and no batch: if it is meant so, "
    "judge `adapters.one_sentence(…)` of it"
)


def looks_over_one_sentence(module: nn.Module, hints: list[int]) -> bool:
    """Tell whether a module takes (seq, width), and positions see each other.

    Else its first axis may be a batch as well.
    """
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        for width in dict.fromkeys([*widths(module), *hints, WIDTH]):
            x = draw(5, width, seed=3)
            y = torch.cat([2 * x[:1], x[1:]])
            for args in ((x,), (x, None), (x, x, x), (x, x, x, None)):
                other = tuple(y if a is x else a for a in args)
                got, moved = answer(module, args), answer(module, other)
                if got is None or moved is None or got.shape != x.shape:
                    continue
                return not torch.equal(got[-1], moved[-1])
    return False


def never_trained(
    module: nn.Module,
    check: Callable[..., Report],
    hints: list[int],
    reason: str,
) -> Judged | None:
    """Judge a module whose layers stand in a plain list, if this is the reason.

    One layer alone may be lent by another module, and is trained there.
    """
    looks = re.match(rf"{LOOKS} (\w+), by this: (.*?)\. But it", reason)
    apart = (one for one in held_apart(module) if len(one.held) > 1)
    # In front of the name stands `module.` where the width was another one.
    if not looks or not any(f"{x.name}`" in reason for x in apart):
        return None
    component, said = looks.groups()
    with module_kept(module), torch.random.fork_rng([]), torch.no_grad():
        module.eval()
        width, _ = in_time(
            lambda: understood(module, hints, hidden=hides(check))
        )
        fn = module if width == WIDTH else Resized(module, width)
        report = check(component, fn.eval())
    return Judged(component, report, (said,))


def judge_part(
    part: nn.Module,
    model: nn.Module,
    whole: Judged | None,
    check: Callable[..., Report],
    near: dict | None,
) -> Judged:
    """Judge a part, by what its model shows of it if need be.

    Args:
        part: The part.
        model: What it is a part of.
        whole: What the model was taken for, if it was judged.
        check: ``companion.contracts.check``.
        near: What else stands in its file.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    hints = widths(model)

    right = whole is not None and is_right(whole.report)

    def by_model() -> str:
        return HANDED if right and gets_a_mask(part, model) else ""

    try:
        judged = judge_alone(part, check, near, hints, by_model)
        return as_in_its_stack(judged) if right else judged
    except Unjudged as reason:
        said = str(reason)
        if said.startswith((SEQUENCE_FIRST, ADDED_ALONG_THE_FIRST)) and right:
            first = sequence_first(part)
            judged = judge(first, check, near, hints, by_model)
            shows = "the sequence comes first in it, for the whole is right"
            return replace(judged, assumed=(*judged.assumed, shows))
        if WHOLE in said and whole:
            raise judged_already(said) from None
        if (
            SEES_ALL in said
            and whole
            and (whole.component == "translation_model")
        ):
            raise Unjudged(
                "it makes vectors of ids, and every row sees all tokens, as in "
                "the encoder of a translator. It was judged with the whole"
            ) from None
        if not said.startswith(NO_CALL):
            raise
        there = InPlace.of(part, model)
        if there is None:
            raise
        return judged_in_place(there, whole, check, near, by_model)


def only_normed_first(report: Report) -> bool:
    """Tell whether all that is wrong is that a norm's vectors are added to."""
    return bool(report.faults) and all(
        fault.message == NORMED_STREAM for fault in report.faults
    )


def as_in_its_stack(judged: Judged) -> Judged:
    """Make a risk of a layer that adds to a norm's vectors, if that is all.

    Its model is right then, and so is post-norm with a norm in front.

    Args:
        judged: What came of the layer alone.
    """
    if not only_normed_first(judged.report):
        return judged
    report = judged.report.milder(judged.report.faults.__contains__, IN_A_STACK)
    return replace(judged, report=report)


IN_A_STACK = (
    "It is right in a stack that ends with a norm: each sum is normed once "
    "there, as in post-norm, and so is what comes in."
)


def is_right(report: Report) -> bool:
    """Tell whether no fault was found, and no question is open."""
    questions = ASK_FIRST, ASK_SHIFTED
    asked = any(said.startswith(questions) for said in report.assumed)
    return report.passed and not asked


def judged_in_place(
    there: "InPlace",
    whole: Judged | None,
    check: Callable[..., Report],
    near: dict | None,
    by_model: Callable[[], str],
) -> Judged:
    """Judge a part that gets what its model gives it.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    require_no_choice(there)
    hints = widths(there.model[0])
    causal = whole is not None and whole.component == "language_model"
    try:
        judged = judged_there(
            lambda: judge(there, check, near, hints, by_model),
            lambda: judged_as_causal(there, check, hints),
            causal=causal,
        )
    except Unjudged as reason:
        if WHOLE in str(reason) and whole:
            raise judged_already(str(reason)) from None
        raise
    words = there.words()
    return replace(judged, assumed=(*judged.assumed, words))


def judged_already(said: str) -> Unjudged:
    """Say that the whole, which could be judged, was."""
    return Unjudged(said.replace(WHOLE, "It was judged with the whole"))


def judged_there(
    usual: Callable[[], Judged],
    as_causal: Callable[[], Judged],
    *,
    causal: bool,
) -> Judged:
    """Judge a part in its place; what attends there has its mask already.

    Args:
        usual: Judges it as what it is recognised as.
        as_causal: Judges it as attention with a causal mask.
        causal: Whether its model is a language model.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        judged = usual()
    except Unjudged as reason:
        if not causal or f"{LOOKS} multihead" not in str(reason):
            raise
        return as_causal()
    if judged.component == "encoder":
        raise Unjudged(
            f"{LOOKS} encoder, and gets its mask from its model, so that "
            "nothing else can be tried"
        )
    return as_causal() if causal and judged.component == "multihead" else judged


HANDED = "as in those that its model, which is right, hands to it"


def gets_a_mask(part: nn.Module, model: nn.Module) -> bool:
    """Tell whether a model gives a part a mask of True and False."""
    heard: list[Tensor] = []

    def hear(args: tuple, named: dict) -> None:
        given = (*args, *named.values())
        heard.extend(x for x in given if is_mask(x))

    ids = torch.tensor([[1, 2, 3, 0, 0], [5, 4, 3, 2, 1]])
    with hearing(part, hear), torch.no_grad():
        for args in ((ids,), (ids, ids)):
            with contextlib.suppress(Exception):
                model(*args)
    return bool(heard)


@contextlib.contextmanager
def hearing(
    part: nn.Module, hear: Callable[[tuple, dict], None]
) -> Iterator[None]:
    """Tell ``hear`` what a part gets, also if its `forward` is called itself.

    A hook of PyTorch's would not hear the latter.
    """
    own = vars(part).get("forward")
    forward = part.forward

    def heard(*args: Any, **named: Any) -> Any:
        hear(args, named)
        return forward(*args, **named)

    part.forward = heard
    try:
        yield
    finally:
        del part.forward
        if own is not None:
            part.forward = own


def is_mask(x: object) -> bool:
    """Tell whether there is True in it and False, or 1 and 0."""
    if not isinstance(x, Tensor) or x.is_floating_point() or x.is_complex():
        return False
    return {*x.unique().tolist()} == {0, 1}


class Enough(Exception):
    """A model need not go on: its part was called."""


class InPlace(nn.Module):
    """A part that gets, beside vectors, what its model gives it.

    Such as tables of its positions, or the mask.

    Args:
        part: The part.
        model: The model, which makes vectors of ids.
    """

    def __init__(self, part: nn.Module, model: nn.Module):
        super().__init__()
        self.part = part
        self.others: dict[tuple, tuple[tuple, dict]] = {}
        self.model = (model,)  # So that its weights are not among the part's.

    @classmethod
    def of(cls, part: nn.Module, model: nn.Module) -> "InPlace | None":
        """Put a part in its place, if its model calls it with vectors."""
        there = cls(part, model)
        try:
            there.given(2, 5)
            there.given(1, 3)
        except Unjudged:
            return None
        return there

    def forward(self, x: Tensor) -> Tensor:
        """Call the part as its model does for as many sentences and ids."""
        args, named = self.given(*x.shape[:2])
        words = {name: x if y is IT else y for name, y in named.items()}
        return self.part(*(x if y is IT else y for y in args), **words)

    def given(self, batch: int, seq: int) -> tuple[tuple, dict]:
        """Return what the part gets for ``batch`` sentences of ``seq`` ids."""
        if (batch, seq) not in self.others:
            self.others[batch, seq] = self.heard(batch, seq)
        return self.others[batch, seq]

    def heard(self, batch: int, seq: int) -> tuple[tuple, dict]:
        """Call the model, and hear what it gives the part."""
        heard: list[tuple[tuple, dict]] = []

        def hear(args: tuple, named: dict) -> None:
            heard.append((args, named))
            raise Enough

        ids = torch.ones(batch, seq, dtype=torch.long)
        with hearing(self.part, hear), torch.no_grad():
            for args in ((ids,), (ids, ids)):
                with contextlib.suppress(Exception):
                    self.model[0](*args)
                if heard:
                    break
        if not heard:
            raise Unjudged("its model does not call it")
        args, named = heard[0]
        x = next(iter((*args, *named.values())), None)
        fits = isinstance(x, Tensor) and x.shape[:-1] == (batch, seq)
        if not fits or not x.is_floating_point():
            raise Unjudged("its model gives it no vectors first")
        others = (y for y in (*args, *named.values()) if y is not x)
        if any(is_float(y) and y.shape == x.shape for y in others):
            raise Unjudged("its model gives it others, as of a memory")
        return (
            tuple(IT if y is x else y for y in args),
            {name: IT if y is x else y for name, y in named.items()},
        )

    def words(self) -> str:
        """Tell what it gets."""
        args, named = self.given(2, 5)
        names = [*inspect.signature(self.part.forward).parameters]
        given = {**dict(zip(names, args, strict=False)), **named}
        more = [f"`{name}`" for name, y in given.items() if y is not IT]
        return f"it got {', '.join(more)} as its model gives it"


CHOSEN = re.compile(
    r"(?i)(\w*_)?(anchors?|landmarks?|selected|kept?|indices|index)(_\w*)?"
)
"""What the positions are called that a model lets be looked at."""

BY_CHOICE = (
    "its model chooses, by `{}`, which positions it looks at, and the "
    "contracts know attention to all: it was tried with the whole"
)


def require_no_choice(there: InPlace) -> None:
    """Refuse attention to positions that its model chooses.

    Raises:
        Unjudged: It is told which ones.
    """
    args, named = there.given(2, 5)
    names = [*inspect.signature(there.part.forward).parameters]
    for name, y in {**dict(zip(names, args, strict=False)), **named}.items():
        if CHOSEN.fullmatch(name) and isinstance(y, Tensor) and not is_float(y):
            raise Unjudged(BY_CHOICE.format(name))


IT = object()
"""Stands for the vectors themselves."""


def different_parts(
    model: nn.Module,
) -> Iterator[tuple[str, nn.Module, int]]:
    """List the parts that are no part of PyTorch, one of each class and size.

    Yields:
        Its name, the part, and how many others there are like it.
    """
    alike: dict[tuple, list[tuple[str, nn.Module]]] = {}
    for name, part in model.named_modules():
        own = type(part).__module__.split(".")[0] != "torch"
        if name and (not own or isinstance(part, CONTAINERS)):
            continue
        own = (x for x in part.parameters() if not is_lazy(x))
        shapes = tuple(tuple(x.shape) for x in own)
        alike.setdefault((type(part), shapes), []).append((name, part))
    for found in alike.values():
        name, part = found[0]
        yield name, part, len(found) - 1
