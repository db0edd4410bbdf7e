"""Find what a file holds, and judge it, in the process that has imported it.

What is named or marked as a component is judged as that. All else is built,
and judged by what it does, if there are contracts for it.
"""

import ast
import contextlib
import inspect
import itertools
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.commands.check.file import File, Part, parts_in
from companion.commands.check.imports import made, silent
from companion.contracts import COMPONENTS, check, report_for
from companion.contracts.adapters import (
    causal_from_added,
    heads_after_positions,
    mask_added,
    smoothed_by,
)
from companion.contracts.attention.attention import UNSCALED
from companion.contracts.discovery.each_length import of_each_length
from companion.contracts.discovery.filters import (
    as_sampling_filter,
    filters_logits,
)
from companion.contracts.discovery.heads import BEHIND, judged_without_a_mask
from companion.contracts.discovery.kinds.calls import (
    ADDED_ALONG_THE_FIRST,
    NO_CALL,
    NOTHING,
    SEQUENCE_FIRST,
    WHOLE,
    Judged,
    Raises,
    Unjudged,
    asks_first,
    in_time,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.ids import SEES_ALL
from companion.contracts.discovery.kinds.lone_block import judged_in_a_model
from companion.contracts.discovery.make import NotBuilt, by_default, make
from companion.contracts.discovery.mask_makers import (
    CAUSAL,
    as_combined,
    less_what_is_not_its_own,
    makes_masks,
)
from companion.contracts.discovery.models import (
    different_parts,
    judge_alone,
    judge_part,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.discovery.readings import (
    ASK,
    HIDES,
    better,
    is_open,
    said_by,
    settled,
    without_the_word,
)
from companion.contracts.discovery.rebuild import (
    ANSWERS,
    NOT_TAKEN,
    with_dropout,
    with_dropout_on_the_stream,
    with_fewer_key_heads,
    with_gradients_behind_dropout,
    with_own_defaults,
    with_what_is_unsaved,
)
from companion.contracts.discovery.rotary import ROTARY, SCALED, as_rope
from companion.contracts.discovery.warmup import (
    NO_WIDTH,
    as_schedule,
    knows_its_width,
    warms_up,
)
from companion.contracts.efficiency.flash_attention import as_published
from companion.contracts.engine.blame import raised_in
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.fitting import takes_mask
from companion.contracts.engine.forms.signature import MASKS, SAME
from companion.contracts.engine.guard import AN_INDEX
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.around import inmost
from companion.contracts.engine.page import html
from companion.contracts.engine.report import Failure, Report
from companion.contracts.engine.scale import BY_THE_ROOT
from companion.contracts.masks.combine_masks import ALWAYS
from companion.contracts.masks.padding_mask import any_pad
from companion.contracts.positions.rope import AT_ZERO, RELATIVE
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
from companion.sanitize import sanitize
from companion.words import ENGLISH

__all__ = ["Finder", "report_of", "told"]

NAMED_SO = "its name says so"
COUNTED_BY_ITSELF = "its own count of steps was put to each that was asked for"

RAISED_BY = "It raised "
FOR_ARRAYS = (
    "its name is that of {}, and it could not be called with tensors, for it "
    "is written with NumPy: `adapters.from_numpy(…)` lets it stay as it is. "
    "See check.md#adapters."
)
OTHER_ARGUMENTS = (
    "its name is that of {}, and its argument `{}` is another's: what the "
    "contracts know is called as `{}`"
)
NO_USUAL = re.compile(f"^{NO_CALL}|no call with ids was understood")
"""What is said where a call raises, perhaps because sizes do not fit."""

MANY_DIVIDE = 120
"""A width that all usual numbers of heads divide."""

LOSS = re.compile(
    r"(?i)((cross_?)?entropy_?(loss_?)?)?label_?smooth\w*"
    r"|smooth\w*(loss|entropy)\w*"
)
"""What losses are called that smooth their labels."""

FOR_KEYS = "its masks are (batch, seq), as PyTorch's `key_padding_mask`"

PAD_OF_MANY = 1
"""The id for padding in many vocabularies, behind that of unknown words."""

ONLY_ONE = "Its masks are right where padding is 1, and else they are not."

OTHER_MASKS = (
    "its name says that it makes masks, and it makes neither those of source "
    "and target nor that of the target"
)

FACTORY = re.compile(
    r"(make|build|create|get)_?(a_)?(\w+_)?(model|transformer|gpt|bert|llama)"
)
"""What functions are called that build a whole model."""

ALIASES = {
    r"(scaled_?)?dot_?product(_?att\w*)?|scaled_?dot_?att\w*|sdpa|attn": (
        "attention"
    ),
    r"((make|create|get|generate|build)_)?(attn_)?(square_)?(causal|subsequent|"
    r"look_?ahead|future|autoregressive|no_?peak|no_?peek)_(attn_)?mask": (
        "causal_mask"
    ),
    r"((make|create|get|generate|build)_)?(attn_)?(pad|padding)_(attn_)?mask": (
        "padding_mask"
    ),
    r"((make|create|get|generate|build)_)?(src|source|enc(oder)?)_mask": (
        "padding_mask"
    ),
    r"(get_|create_|make_)?(sinusoid(al)?|sinusoidal_positional|positional)_?"
    r"(encodings?|embeddings?|table|encoding_table|pe)?": "sinusoidal",
    r"shift_(tokens_)?right": "shift_right",
    r"apply_(rot(ary|ate)|rope).*|rotary(_pos)?(_embedding|_emb)?": "rope",
    r"layernorm": "layer_norm",
    r"rmsnorm": "rms_norm",
    r"(my|masked|naive|own|manual)_softmax": "masked_softmax",
}
"""What functions are called elsewhere -> what they then are."""


def only_scaled_wrongly(report: Report) -> bool:
    """Tell whether all that is wrong is by what its scores are divided.

    A model may draw smaller weights for the queries instead, as T5 does.
    """
    broken = {fault.contract for fault in report.faults}
    return broken == {BY_THE_ROOT}


def report_of(component: str, fn: object, *, strict: bool = False) -> dict:
    """Check ``fn``, and tell what the report says as JSON."""
    fn = fn.eval() if isinstance(fn, nn.Module) else fn
    return told(check(component, fn, strict=strict))


def told(report: Report) -> dict:
    """Tell what a report says as JSON: failures by cause, and what holds."""
    failed = [
        {
            "names": [f.contract for f in group],
            "message": group[0].message,
            "level": group[0].level,
            "excuse": group[0].excuse,
        }
        for group in report.grouped()
    ]
    return {
        "headline": report.headline,
        "failed": failed,
        "held": report.held,
        "untried": len(report.untried),
        "waiting": report.untried,
        "assumed": list(getattr(report, "assumed", ())),
    }


@dataclass(frozen=True)
class Candidate:
    """Something to judge.

    Attributes:
        name: What its writer called it.
        line: Where it stands.
        component: What it is to be judged as; by what it does, if empty.
        part: How it is made, if its mark or its name says what it is.
        asked: Whether the user named it.
    """

    name: str
    line: int
    component: str = ""
    part: Part | None = None
    asked: bool = False


class Finder:
    """What a file holds, once it was imported.

    Args:
        file: The file.
        module: What came of importing it.
        components: Only these are asked for; all, if empty.
        name: Only this expression is asked for; all, if empty.
        mask: What True means in masks, as ``check`` takes it.
        pages: Whether a report is also told as a page.
        lang: The language of such a page.

    Raises:
        ValueError: A mark or the user names what is not there.
    """

    def __init__(
        self,
        file: File,
        module: ModuleType,
        *,
        components: list[str],
        name: str = "",
        mask: str | None = None,
        pages: bool = False,
        lang: str = ENGLISH,
    ):
        self.file, self.module, self.lang = file, module, lang
        self.components, self.name, self.pages = components, name, pages
        self.options: dict[str, Any] = {"mask": mask} if mask else {}
        if unknown := set(components) - set(COMPONENTS):
            raise ValueError(
                f"components: expected some of {', '.join(sorted(COMPONENTS))}"
                f", got {min(unknown)!r}"
            )
        self.built: list[tuple[str, nn.Module]] = []
        self.wholes: dict[int, Judged] = {}
        self.seen: set[type] = set()
        self.left: dict[type, tuple[Candidate, Exception]] = {}
        self.asking: dict[type, tuple[Candidate, dict]] = {}
        self.space = {
            n: x for n, x in vars(module).items() if not n.startswith("__")
        }

    def candidates(self) -> list[Candidate]:
        """List what is to be judged: what is named or marked comes first.

        Raises:
            ValueError: What the user named is not there.
        """
        parts = parts_in(self.file, COMPONENTS)
        if self.name:
            return [self.asked(parts)]
        wanted = [
            Candidate(p.name, p.line, p.component, p)
            for p in parts
            if not self.components or p.component in self.components
        ]
        missing = set(self.components) - {one.component for one in wanted}
        if not self.components or missing:
            taken = {part.name for part in parts}
            wanted += self.others(taken)
        return wanted

    def asked(self, parts: list[Part]) -> Candidate:
        """Find the one that the user named."""
        name, kinds = self.name.strip(), self.components
        if len(kinds) > 1:
            raise ValueError(
                f"{name}: expected one component for it, got {len(kinds)}"
            )
        for part in parts:
            if part.name == name and kinds in ([], [part.component]):
                return Candidate(name, part.line, part.component, part)
        try:
            expression = ast.parse(name, mode="eval").body
            with silent():
                eval(name, vars(self.module))
        except BaseException as error:
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, NameError):
                why = self.nearest(name)
            raise ValueError(f"{self.file.path}: {name}: {why}") from None
        line = self.line_of(name) or 1
        for node in ast.walk(expression):
            node.lineno = node.end_lineno = line  # pyrefly: ignore
        part = Part(kinds[0] if kinds else "", name, line, expression)
        return Candidate(name, line, *kinds, part=part, asked=True)

    def nearest(self, name: str) -> str:
        """Say that there is no such name, and which is the most like it."""
        import difflib

        near = difflib.get_close_matches(name, self.space, 1)
        hint = f". Did you mean {near[0]!r}?" if near else ""
        return f"there is no such name in it{hint}"

    def line_of(self, name: str) -> int:
        """Return the line that defines a name; 0 if none does."""
        first = re.match(r"\w*", name)
        for statement in self.file.body:
            targets = getattr(statement, "targets", ())
            names = {getattr(t, "id", None) for t in targets}
            if first and first[0] in {getattr(statement, "name", None), *names}:
                return statement.lineno
        return 0

    def others(self, taken: set[str]) -> Iterator[Candidate]:
        """List what may be a component, though nothing says so."""
        late = []
        for statement in self.file.body:
            names = [getattr(statement, "name", None)]
            names += [
                getattr(t, "id", None)
                for t in getattr(statement, "targets", ())
            ]
            for name in filter(None, names):
                value = self.space.get(name)
                if name in taken or value is None:
                    continue
                if any(value is self.space.get(other) for other in taken):
                    continue  # Another name for the same.
                one = Candidate(name, statement.lineno)
                if is_torchs(value):
                    continue  # PyTorch's own is taken for right.
                if isinstance(value, nn.Module) or (
                    inspect.isfunction(value) and is_factory(value)
                ):
                    late.append(one)
                elif found := [*self.usual(one, value)]:
                    taken.add(name)
                    yield from found
        yield from late

    def usual(self, one: Candidate, value: object) -> Iterator[Candidate]:
        """List what its names or its kind say may be judged in a value."""
        if inspect.isfunction(value):
            if kind := alias(one.name) or by_words(one.name, value):
                yield replace(one, component=kind)
        elif isinstance(value, type):
            module = issubclass(value, nn.Module) and not self.is_base(value)
            if module or warms_up(value):
                yield one
                return
            for inner, fn in vars(value).items():
                static = isinstance(fn, staticmethod)
                if static and (kind := by_words(inner, fn.__func__)):
                    yield Candidate(f"{one.name}.{inner}", one.line, kind)

    def is_base(self, kind: type) -> bool:
        """Tell whether others are made of a class, and it has no `forward`."""
        return kind.forward is nn.Module.forward and any(
            isinstance(other, type)
            and issubclass(other, kind)
            and other is not kind
            for other in self.space.values()
        )

    def untried(self) -> list[str]:
        """List what could be a component, and nothing says which."""
        if self.name or self.components:
            return []
        tried = {one.name for one in self.candidates()}
        return [
            name
            for statement in self.file.body
            if (name := getattr(statement, "name", "_"))[0] != "_"
            and name not in tried
            and takes_something(self.space.get(name))
        ]

    def judged(self, one: Candidate) -> Iterator[dict]:
        """Judge a candidate, and tell what was found as JSON, bit by bit.

        Raises:
            ValueError: What is named or marked cannot be built.
        """
        if one.component and one.part:
            yield self.judged_as_said(one, one.part)
            return
        try:
            yield from self.judged_by_what_it_does(one)
        except (Unjudged, NotBuilt) as reason:
            kind = self.space.get(one.name)
            if str(reason) == NOTHING and not one.asked:
                names = any_number_of(kind)
                if names and isinstance(kind, type):
                    why = f"built without any of `*{names}`, it does nothing"
                    self.built = [b for b in self.built if b[0] != one.name]
                    self.left[kind] = one, Unjudged(why)
                return
            first = SEQUENCE_FIRST, ADDED_ALONG_THE_FIRST
            known = NO_CALL, *first, SEES_ALL, WHOLE
            later = isinstance(reason, NotBuilt) or any(
                words in str(reason) for words in known
            )
            if later and isinstance(kind, type):
                self.built = [b for b in self.built if b[0] != one.name]
                self.left[kind] = one, reason
                return
            yield {"unjudged": [self.unjudged(one, reason)]}

    def judged_as_said(self, one: Candidate, part: Part) -> dict:
        """Judge it as its name, its mark or the user says.

        Raises:
            ValueError: It cannot be built.
        """
        fn = made(self.file, part, self.module)
        if isinstance(fn, type) and issubclass(fn, nn.Module):
            return self.judged_class_as(one, fn)
        # A mark says that it is called as its component is, masks and all.
        marked = not part.by_name and not one.asked
        said = marked or bool(one.asked)
        alone = None if said else self.without_a_mask(one.component, fn)
        judged = alone or self.as_component(one.component, fn, marked=marked)
        if not marked:
            report = by_convention(fn, judged.report)
            judged = replace(judged, report=report)
        if part.by_name and (why := self.other_than(fn, judged.report)):
            return {"unjudged": [self.unjudged(one, why)]}
        if part.by_name and one.component == "flash_attention":
            judged = replace(judged, report=as_published(judged.report))
        how = "asked" if one.asked else "name or mark"
        return {"parts": [self.part(one, judged, how)]}

    def other_than(self, fn: object, report: Report) -> str:
        """Say why a function with a component's name may be something else."""
        named = report.component
        if report.faults and (other := another_argument(fn, named)):
            return OTHER_ARGUMENTS.format(
                named, other, COMPONENTS[named].signature
            )
        if not report.untried:
            return ""
        (first, *_) = report.failures
        if takes_arrays(fn):
            return FOR_ARRAYS.format(named)
        refused = AN_INDEX.search(first.message)
        if "It cannot be called as" in first.message or refused:
            return (
                f"its name is that of {named}, and it could not be called as "
                f"one. {first.message}"
            )
        return ""

    def judged_by_what_it_does(self, one: Candidate) -> Iterator[dict]:
        """Build it if it is a class, and find out what it is."""
        value = (
            made(self.file, one.part, self.module)
            if one.part
            else operator.attrgetter(one.name)(self.module)
        )
        if isinstance(value, type):
            yield self.judged_class(one, value)
            return
        said = ""
        maker = None
        if inspect.isfunction(value) and is_factory(value):
            maker = value
            with silent():
                value, said = make(value, self.space)
        if isinstance(value, nn.Module):
            yield from self.judged_model(one, value, said, maker)
        elif not said:
            yield self.judged_function(one, value)

    def judged_class(self, one: Candidate, kind: type) -> dict:
        """Build a class, and find out what it is."""
        if not issubclass(kind, nn.Module):
            return self.judged_schedule(one, kind)
        if LOSS.fullmatch(kind.__name__):
            return self.judged_loss(one, kind)
        if (turns := self.judged_rotary(one, kind)) is not None:
            return turns
        with silent():
            module, said = make(kind, self.space)
        self.built.append((one.name, module))
        try:
            judged = self.again(self.judged_in(module, module), kind)
        except Unjudged as reason:
            found = self.judged_by_default(one, kind, str(reason))
            if found is None and isinstance(reason, Raises):
                raise Raises(f"{reason.why} It was built as {said}.") from None
            if found is None:
                raise
            judged, said = found
        if self.components and judged.component not in self.components:
            return {}
        part = self.part(one, judged, "what it does", said)
        masks = is_open(judged.report) and not judged.report.faults
        if masks or only_scaled_wrongly(judged.report):
            # A model that hands masks to it, or draws its weights, may answer.
            self.asking[kind] = one, part
            return {}
        return {"parts": [part]}

    def judged_schedule(self, one: Candidate, kind: type) -> dict:
        """Judge what warms up by its name, at steps of its own count.

        Raises:
            Unjudged: It is something else, or cannot be asked.
        """
        fn = None
        if warms_up(kind):
            with silent():
                fn = in_time(lambda: as_schedule(kind))
        if fn is None and warms_up(kind) and not knows_its_width(kind):
            raise Unjudged(NO_WIDTH)
        if fn is None:
            raise Unjudged("it is no torch.nn.Module: mark what it is")
        if self.components and "schedule" not in self.components:
            return {}
        report = self.check("schedule", fn)
        judged = Judged("schedule", report, (NAMED_SO, COUNTED_BY_ITSELF))
        return {"parts": [self.part(one, judged, "a usual name")]}

    def judged_rotary(self, one: Candidate, kind: type) -> dict | None:
        """Judge what turns vectors by its name; None, if it cannot be called.

        Nothing is said of what turns by other angles on purpose.
        """
        if not ROTARY.fullmatch(kind.__name__):
            return None
        try:
            with silent():
                found = in_time(lambda: as_rope(kind, self.space))
        except (Unjudged, NotBuilt):
            return None
        if found is None:
            return None
        if self.components and "rope" not in self.components:
            return {}
        fn, said = found
        report = self.check("rope", fn)
        names = [*inspect.signature(kind.__init__).parameters, kind.__name__]
        names += vars(kind)
        other = any(map(SCALED.search, names))
        # Who counts from 1 turns by as much from one position to another.
        other |= AT_ZERO not in report.held and RELATIVE in report.held
        if report.untried or (report.faults and other):
            return None
        judged = Judged("rope", report, (NAMED_SO, said))
        return {"parts": [self.part(one, judged, "a usual name")]}

    def judged_by_default(
        self, one: Candidate, kind: type, why: str
    ) -> tuple[Judged, str] | None:
        """Judge a class as it is by default, where other sizes do not fit.

        Args:
            one: What it is called, and where.
            kind: The class.
            why: Why it could not be judged with the sizes of its names.

        Returns:
            What came of it, and how it was built.
        """
        if not (RAISED_BY in why and NO_USUAL.search(why)):
            return None
        for build in (
            lambda: by_default(kind, self.space),
            # Its number of heads may stand inside.
            lambda: make(kind, self.space, MANY_DIVIDE),
            lambda: of_each_length(kind, self.space),
        ):
            try:
                with silent():
                    found = build()
                if found is None:
                    continue
                module, said = found
                judged = self.judged_in(module, module)
            except (Unjudged, NotBuilt):
                continue
            self.built = [x for x in self.built if x[0] != one.name]
            self.built.append((one.name, inmost(module)))
            return judged, said
        return None

    def judged_class_as(self, one: Candidate, kind: type) -> dict:
        """Build a class, and judge it as the user or its mark says."""
        try:
            if one.component == "label_smoothing":
                return self.judged_loss(one, kind)
            with silent():
                fn, said = make(kind, self.space)
        except (Unjudged, NotBuilt) as reason:
            return {"unjudged": [self.unjudged(one, reason)]}
        if one.component == "rope":
            fn = self.of_each_width(kind, fn)
            said = "built anew for each width"
        judged = self.again(self.as_component(one.component, fn), kind)
        how = "asked" if one.asked else "name or mark"
        return {"parts": [self.part(one, judged, how, said)]}

    def again(self, judged: Judged, kind: Callable) -> Judged:
        """Add what shows only where a class is built with other numbers."""
        with silent():
            judged = with_dropout(judged, kind, self.space)
            judged = with_dropout_on_the_stream(judged, kind, self.space)
            judged = with_fewer_key_heads(judged, kind, self.space)
            judged = with_gradients_behind_dropout(judged, kind, self.space)
            judged = with_what_is_unsaved(judged, kind, self.space)
            return with_own_defaults(judged, kind, self.space)

    def of_each_width(self, kind: type, like: nn.Module) -> Callable:
        """Make of a class a function, as the widths of `rope` differ.

        It takes what one object of the class, ``like``, takes.
        """
        built: dict[int, nn.Module] = {}

        def rope(*args: Any, **named: Any) -> Any:
            width = next(iter((*args, *named.values()))).shape[-1]
            if width not in built:
                built[width] = make(kind, self.space, width)[0].eval()
            return built[width](*args, **named)

        rope.__signature__ = inspect.signature(  # pyrefly: ignore
            like.forward
        )
        return rope

    def judged_function(self, one: Candidate, fn: object) -> dict:
        """Judge a function by what its name says, or by what was asked."""
        component = one.component or alias(one.name)
        if not component:
            raise Unjudged(
                "what it is does not show: name a component behind it, as in "
                f"`check {self.file.path}:{one.name} attention`"
            )
        if self.components and component not in self.components:
            return {}
        judged = (
            self.called_otherwise(component, fn)
            or self.without_a_mask(component, fn)
            or self.as_component(component, fn)
        )
        uncalled = judged.report.untried and callable(fn)
        if component == "attention" and uncalled:
            turned = self.as_component(component, heads_after_positions(fn))
            if not turned.report.untried:
                judged = replace(turned, assumed=(BEHIND, *turned.assumed))
        if judged.report.untried and takes_arrays(fn):
            raise Unjudged(FOR_ARRAYS.format(component))
        if judged.report.untried:
            raise Unjudged(
                f"its name is that of {component}, and it could not be called "
                f"as one. {judged.report.failures[0].message}"
            )
        if line := scaled_by_its_caller(self.file, one.name):
            judged = with_queries_scaled(judged, line)
        return {"parts": [self.part(one, judged, "a usual name")]}

    def called_otherwise(self, component: str, fn: Any) -> Judged | None:
        """Judge what is usually called otherwise than its contracts call."""
        if component == "combine_masks":
            return self.of_masks(fn)
        if component == "padding_mask":
            return self.of_keys(fn)
        return self.of_filter(fn) if component == "sampling_filter" else None

    def of_keys(self, fn: Any) -> Judged | None:
        """Judge what makes (batch, seq) of padding; None, if it does not."""
        component = COMPONENTS["padding_mask"]
        tokens = component.example[0]
        own = component.adapt(fn) if component.adapt else fn
        try:
            with silent():
                made = in_time(lambda: own(*component.example))
        except Unjudged:
            return None
        shape = tuple(getattr(made, "shape", ()))
        if shape[-2:] == (tokens.shape[1],) * 2:
            # It may hide the future as well, as that of a decoder does.
            with contextlib.suppress(Unjudged):
                whole = self.of_masks(fn)
                return None if whole.report.faults else whole
        if shape != tuple(tokens.shape):
            return None

        def padding_mask(tokens: Tensor, pad: int) -> Tensor:
            return own(tokens, pad)[:, None, None, :]

        judged = self.as_component("padding_mask", padding_mask)
        return replace(judged, assumed=(FOR_KEYS, *judged.assumed))

    def of_masks(self, fn: Any) -> Judged:
        """Judge what makes a translator's masks.

        Raises:
            Unjudged: What it makes is not known.
        """

        def combined(pad: int | None = None) -> tuple[Any, tuple[str, ...]]:
            with silent():
                found = in_time(lambda: as_combined(fn, pad))
            if found is None:
                raise Unjudged(OTHER_MASKS)
            return found

        own, said = combined()
        if CAUSAL in said:
            return self.as_component("causal_mask", fn)
        judged = self.as_component("combine_masks", own)
        if judged.report.faults:
            own, told = combined(PAD_OF_MANY)
            other = self.as_component("combine_masks", own)
            if other.report.passed and told != said:
                report = with_risk(
                    other.report, title(any_pad), ONLY_ONE, ALWAYS
                )
                judged, said = replace(other, report=report), told
        report = less_what_is_not_its_own(judged.report, said)
        return replace(judged, report=report, assumed=(*said, *judged.assumed))

    def of_filter(self, fn: Any) -> Judged:
        """Judge what filters logits before they are drawn from."""
        filters, said = as_sampling_filter(fn)
        judged = self.as_component("sampling_filter", filters)
        return replace(judged, assumed=(*said, *judged.assumed))

    def judged_loss(self, one: Candidate, kind: type) -> dict:
        """Judge a loss that is made for its smoothing, in the form that fits.

        Raises:
            NotBuilt: The names of its arguments do not say what they are.
        """
        make_loss = loss_of(kind)
        if self.components and "label_smoothing" not in self.components:
            return {}
        tried = []
        for judged in self.in_each_form(make_loss, says_padding(kind)):
            if judged.report.passed:
                judged = with_own_padding(judged, kind)
                return {"parts": [self.part(one, judged, "a usual name")]}
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
        best = with_own_padding(best, kind)
        return {"parts": [self.part(one, best, "a usual name")]}

    def in_each_form(
        self, make_loss: Callable, padded: bool
    ) -> Iterator[Judged]:
        """Judge a loss in each form that it may be called in.

        Args:
            make_loss: Makes it of its smoothing, padding and vocabulary.
            padded: Whether it has a word for padding.
        """
        for whole, logs, mean in itertools.product((False, True), repeat=3):
            fn = smoothed_by(make_loss, logs=logs, mean=mean, flat=not whole)
            report = self.check("label_smoothing", fn, brief=True)
            if not (padded or report.passed) and counts_all(fn):
                report = self.of_real_tokens(fn)
            elif whole and not (report.passed or mean):
                report = self.of_sentences(fn, report)
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

    def of_sentences(self, fn: Callable, report: Report) -> Report:
        """Judge all else of a loss that divides by the number of sentences.

        That it does is a risk. Of any other loss ``report`` is what was found.
        """
        averaged = self.check("label_smoothing", over_real_tokens(fn))
        if EVERY_TOKEN not in averaged.held:
            return report
        return with_risk(averaged, EVERY_TOKEN, BY_SENTENCES, ON_PURPOSE)

    def of_real_tokens(self, fn: Callable) -> Report:
        """Judge a loss without a word of padding on all else.

        That it counts padding is a risk: there may be none.
        """
        report = self.check("label_smoothing", real_alone(fn))
        return with_risk(report, PADDING, COUNTED, NO_PADDING)

    def judged_model(
        self,
        one: Candidate,
        model: nn.Module,
        built: str = "",
        maker: Callable | None = None,
    ) -> Iterator[dict]:
        """Judge a module that was built, and what it is made of, one by one.

        Args:
            one: What it is called, and where.
            model: The module.
            built: By which call it was built, if it was here.
            maker: What was called, then.
        """
        self.built.append((one.name, model))
        for name, part, _ in different_parts(model):
            kind, title = type(part), f"{one.name}.{name}".rstrip(".")
            if name and self.is_own(kind) and not one.asked:
                continue
            said = f"{title} ({kind.__name__})" if name else title
            this = replace(one, name=said)
            try:
                judged = self.judged_in(part, model)
                if maker and part is model:
                    judged = self.again(judged, maker)
                self.seen.add(kind)
            except Unjudged as reason:
                if str(reason) != NOTHING and not self.components:
                    yield {"unjudged": [self.unjudged(this, reason)]}
                continue
            if not self.components or judged.component in self.components:
                how = "" if name else built
                yield {"parts": [self.part(this, judged, "what it does", how)]}

    def judged_in(self, part: nn.Module, model: nn.Module) -> Judged:
        """Judge a part of a model, or the model itself.

        Raises:
            Unjudged: It is nothing that there are contracts for.
        """
        check = partial(self.check, **self.options)
        if part is not model:
            whole = self.wholes.get(id(model))
            return judge_part(part, model, whole, check, self.space)
        judged = judge_alone(model, check, self.space, widths(model))
        self.wholes[id(model)] = judged
        return judged

    def is_own(self, kind: type) -> bool:
        """Tell whether a class stands in this file, and is told there."""
        return kind.__module__ == self.module.__name__

    def rest(self) -> Iterator[dict]:
        """Judge, in what was built, the classes that could not be built."""
        for part in self.answered():
            yield {"parts": [part]}
        for kind, (one, reason) in self.left.items():
            if any(type(model) is kind for _, model in self.built):
                continue  # It was judged, as a whole model.
            for name, model in self.built:
                inside = (x for x in model.modules() if type(x) is kind)
                part = next(inside, None)
                if part is None:
                    continue
                try:
                    judged = self.judged_in(part, model)
                except Unjudged as other:
                    reason = other
                    continue
                said = f"as it stands in {name}"
                if not self.components or judged.component in self.components:
                    found = self.part(one, judged, "what it does", said)
                    yield {"parts": [found]}
                break
            else:
                yield from self.alone(one, kind, reason)
        for part in self.inside():
            yield {"parts": [part]}

    def alone(
        self, one: Candidate, kind: type, reason: Exception
    ) -> Iterator[dict]:
        """Judge what no model holds: a causal block in one made around it."""
        try:
            if not str(reason).endswith(WHOLE):
                raise reason
            with silent():
                module, said = make(kind, self.space)
            judged = judged_in_a_model(module, self.check)
        except (Unjudged, NotBuilt):
            if not self.components and str(reason) != NOTHING:
                yield {"unjudged": [self.unjudged(one, reason)]}
            return
        if not self.components or judged.component in self.components:
            part = self.part(one, judged, "what it does", said)
            yield {"parts": [part]}

    def answered(self) -> Iterator[dict]:
        """Judge by its model what depends on it: masks, weights as drawn."""
        for kind, (one, part) in self.asking.items():
            for name, model in self.built:
                inside = (x for x in model.modules() if type(x) is kind)
                there = next(inside, None)
                if there is None or there is model:
                    continue
                try:
                    judged = self.judged_in(there, model)
                except Unjudged:
                    continue
                if not judged.report.faults and not is_open(judged.report):
                    said = f"as it stands in {name}"
                    part = self.part(one, judged, "what it does", said)
                    break
            yield part

    def inside(self) -> Iterator[dict]:
        """Judge, in models that were built, what other files cannot build."""
        for whole, model in self.built:
            for name, part, _ in different_parts(model):
                kind = type(part)
                if self.is_own(kind) or kind in self.seen:
                    continue
                self.seen.add(kind)
                if self.stands_alone(kind):
                    continue  # There it is judged by itself.
                try:
                    judged = self.judged_in(part, model)
                except Unjudged:
                    continue
                if self.components and judged.component not in self.components:
                    continue
                name = f"{whole}.{name} ({kind.__name__})"
                one = Candidate(name, self.line_of(whole) or 1)
                yield self.part(one, judged, "what it does")

    def stands_alone(self, kind: type) -> bool:
        """Tell whether a class can be built, called and judged by itself.

        So it is where it stands, with what stands beside it there. Where the
        sequence may come first, only its model tells.
        """
        home = sys.modules.get(kind.__module__)
        near = self.space if home is None else vars(home)
        try:
            with silent():
                made, _ = make(kind, near)
            with torch.random.fork_rng([]), torch.no_grad():
                width, args = understood(made.eval(), [])
                return not in_time(lambda: asks_first(made, width, args))
        except NotBuilt:
            return False
        except Unjudged as reason:
            return not str(reason).startswith(NO_CALL)

    def check(self, component: str, fn: object, **options: Any) -> Report:
        """Try the contracts, with what the user says of masks."""
        fn = fn.eval() if isinstance(fn, nn.Module) else fn
        try:
            return report_for(component, fn, **{**self.options, **options})
        except ValueError:  # It has no mask to say something of.
            return report_for(component, fn)

    def without_a_mask(self, component: str, fn: object) -> Judged | None:
        """Judge attention of three vectors alone; None, if it is none."""
        if component != "attention":
            return None
        return judged_without_a_mask(fn, self.check)

    def as_component(
        self, component: str, fn: Any, *, marked: bool = False
    ) -> Judged:
        """Judge it as a component; what True means is asked, if need be."""
        report = self.check(component, fn, brief=True)
        masks = takes_mask(COMPONENTS[component])
        if self.options or not (report.faults and masks):
            return Judged(component, report.whole())
        if marked:
            # As `check` does, unless the code says what True means.
            said = said_by(fn)
            if said:
                turned = self.check(component, fn, mask="hidden", brief=True)
                if turned.passed:
                    turned = without_the_word(turned.whole())
                    return Judged(component, turned, (f"{HIDES}, {said}",))
            return Judged(component, report.whole())
        added = None
        if "causal_from_added" in report.failures[0].message:
            added = causal_from_added(fn)
        elif component not in MASKS:
            added = mask_added(fn)
        report, said = settled(
            report,
            lambda: self.check(component, fn, mask="hidden", brief=True),
            (lambda: self.check(component, added, brief=True))
            if added
            else None,
            lambda: said_by(fn),
        )
        return Judged(component, report, tuple(filter(None, (said,))))

    def part(
        self, one: Candidate, judged: Judged, how: str, built: str = ""
    ) -> dict:
        """Tell a report, and how it came about, as JSON."""
        typed = tuple(map(as_typed, judged.report.assumed))
        report = replace(judged.report, assumed=typed, lang=self.lang)
        found = told(report)
        said = [f"built as {built}"] if "(" in built else [built]
        said += [*judged.assumed]
        found["assumed"] = [
            sanitize(text) for text in [*filter(None, said), *found["assumed"]]
        ]
        return {
            "name": one.name,
            "line": one.line,
            "component": judged.component,
            "how": how,
            "found": found,
            "page": html(report) if self.pages else "",
        }

    def unjudged(self, one: Candidate, reason: str | Exception) -> dict:
        """Tell why there is no report, and what to type if that helps."""
        said = str(reason)
        if call := getattr(reason, "call", ""):
            what = f'"{self.file.path}:{call}" {one.component}'.rstrip()
            said = (
                f"{said.rstrip('.')}. Say it in place of each …: "
                f"`python -m companion check {what}`"
            )
        return {
            "name": one.name,
            "line": one.line,
            "level": RISK if raises_always(reason) else "",
            "reason": sanitize(said),
        }


def raises_always(reason: str | Exception) -> bool:
    """Tell whether what is not judged raises in each usual call.

    What asks a mask whether it is true raises with any mask.
    """
    asked = re.search("`[^`]*mask[^`]*`: Boolean value of Tensor", str(reason))
    return isinstance(reason, Raises) or asked is not None


def as_typed(text: str) -> str:
    """Say on the command line `--mask hidden`, where Python says `mask=`."""
    if text == ASK:  # It says both.
        return text
    words = r'`(check\("\w+", …, )?mask="(\w+)"\)?`'
    return re.sub(words, r"`--mask \2`", text)


def is_torchs(value: object) -> bool:
    """Tell whether it is PyTorch's own, with nothing else inside."""
    if isinstance(value, nn.Sequential):
        return all(
            type(part).__module__.startswith("torch.")
            for part in value.modules()
        )
    return type(value).__module__.startswith("torch.")


SCALED_BEFORE = (
    "It is right if its queries are scaled before, as they may be in line {}."
)
A_SCALE = re.compile(r"scal|sqrt|\*\* ?\(?-?0?\.5")
"""How a scale is written that scores, or queries, are multiplied by."""


def scaled_by_its_caller(file: File, name: str) -> int:
    """Return the line that may scale the queries for a function; 0 if none.

    Args:
        file: The file in which both stand.
        name: The function that is called.
    """
    functions = [
        node
        for statement in file.body
        for node in ast.walk(statement)
        if isinstance(node, ast.FunctionDef) and node.name != name
    ]
    for function in functions:
        nodes = [*ast.walk(function)]
        calls = any(
            isinstance(node, ast.Call) and getattr(node.func, "id", "") == name
            for node in nodes
        )
        for node in nodes if calls else []:
            if (
                isinstance(node, ast.BinOp | ast.AugAssign)
                and isinstance(node.op, ast.Mult | ast.Div)
                and A_SCALE.search(ast.unparse(node))
            ):
                return node.lineno
    return 0


def with_queries_scaled(judged: Judged, line: int) -> Judged:
    """Make a risk of scores that are not scaled, if that is all that is wrong.

    Args:
        judged: A function, as attention.
        line: Where queries may be scaled for it.
    """
    report = judged.report.whole()
    if {fault.cause for fault in report.faults} != {UNSCALED}:
        return judged
    why = SCALED_BEFORE.format(line)
    failures = [
        replace(f, level=RISK, why=why) if f.cause == UNSCALED else f
        for f in report.failures
    ]
    return replace(judged, report=replace(report, failures=failures))


def any_number_of(kind: object) -> str:
    """Name what a module's class takes any number of, by position."""
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        return ""
    named = inspect.signature(kind.__init__).parameters.values()
    found = (one.name for one in named if one.kind is one.VAR_POSITIONAL)
    # PyTorch's own `__init__` takes `*args` and asks for none.
    own = kind.__init__ is not nn.Module.__init__
    return next(found, "") if own else ""


NO_PADDING = (
    "It is right where no target is padding, as where images are classified."
)
WORDS_OF_PADDING = re.compile(r"(?i)pad|ignore")


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


OF_LOGITS = "It takes logits"
RAW = (
    "Given logits it breaks contracts that hold for log-probabilities, and yet "
    "it takes the logarithm of their softmax itself: is that forgotten in its "
    "smoothed part?"
)
LOGS_ALONE = "It is right if it is always given log-probabilities."


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


class Called(TorchFunctionMode):
    """Notes the names of PyTorch's functions that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.add(getattr(func, "__name__", ""))
        return func(*args, **(kwargs or {}))


def with_risk(report: Report, contract: str, told: str, why: str) -> Report:
    """Make a risk of one contract, whatever came of it."""
    held = [one for one in report.held if one != contract]
    risk = Failure(contract, told, level=RISK, why=why, cause=told)
    return replace(report, held=held, failures=[*report.failures, risk])


def with_own_padding(judged: Judged, kind: type) -> Judged:
    """Add a risk if a loss raises where a target is its own default padding.

    Args:
        judged: What came of it, built for padding 0 and others.
        kind: The class of the loss.
    """
    parameters = inspect.signature(kind.__init__).parameters
    sizes = 0.1, 0, 7
    named = {n: sizes[i] for n, i in sizes_of(kind).items()}
    name = next((n for n, i in sizes_of(kind).items() if i == 1), "")
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
    report = judged.report
    failures = [*report.failures, risk]
    return replace(judged, report=replace(report, failures=failures))


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
    return lambda *sizes: kind(**{n: sizes[i] for n, i in which.items()})


def sizes_of(kind: type) -> dict[str, int]:
    """Return which arguments are the smoothing, 0, padding, 1, and classes, 2.

    Raises:
        NotBuilt: The names of its arguments do not say which is which.
    """
    which = {}
    for one in [*inspect.signature(kind.__init__).parameters.values()][1:]:
        name = one.name.lower()
        found = (
            0 if re.search("smooth|eps|alpha", name)
            else 1 if re.search("pad|ignore", name)
            else 2 if re.search("vocab|class|size|tgt|dim|^n$|^v$", name)
            else None
        )  # fmt: skip
        if found is not None and found not in which.values():
            which[one.name] = found
        elif one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD:
            raise NotBuilt(f"nothing says what its argument `{one.name}` is")
    return which


def is_factory(fn: Callable) -> bool:
    """Tell whether a function builds a model of sizes, by its names."""
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        return False
    named = FACTORY.fullmatch(fn.__name__.strip("_").lower())
    return bool(named) and any("vocab" in name for name in names)


def takes_something(value: object) -> bool:
    """Tell whether it is a function, or an object of a class is as one."""
    if isinstance(value, type):
        # Its class may have a say in what it has, and raise.
        with contextlib.suppress(Exception):
            calls = hasattr(value, "forward") or "__call__" in dir(value)
            return calls and not issubclass(value, nn.Module)
        return False
    if not inspect.isfunction(value):
        return False
    return bool(inspect.signature(value).parameters)


def another_argument(fn: object, component: str) -> str:
    """Name an argument that shows that a function is no such component.

    A type, a device, a model or whole strings where the contracts give
    something else, any number of arguments, or one of another name that moves
    a known one to a later place.
    """
    expected = COMPONENTS[component].parameters
    known = {name for one in expected for name in SAME.get(one, (one,))}
    try:
        taken = [*inspect.signature(fn).parameters.values()]  # pyrefly: ignore
    except (TypeError, ValueError):
        return ""
    names = [one.name for one in taken]
    for place, (one, usual) in enumerate(zip(taken, expected, strict=False)):
        moved = one.name not in known and usual in names[place + 1 :]
        needed = one.default is one.empty
        text = str(one.annotation).replace("typing.", "")
        strings = component == "bleu" and STRINGS.fullmatch(text)
        other = one.name in ({"dtype", "device", "model"} - {*expected})
        many = one.kind is one.VAR_POSITIONAL
        foreign = OF_OTHERS.get(component)
        other |= bool(foreign and foreign.fullmatch(one.name))
        if other or many or strings or (needed and moved):
            return one.name
    return ""


PROMPT = re.compile(
    r"(?i)\w*prompt\w*|(input_?)?ids|idx|tokens|inputs?|prefix|context|src|source"
)
"""What is called so comes first, or is what is translated."""


OF_OTHERS = {
    "padding_mask": re.compile(
        r"(?i)(\w*_)?(len(gth)?s|lens?|seq_?lens?|valid_len\w*)"
    ),
    "rope": re.compile("axis|axes"),
    "beam_search": PROMPT,
    "greedy_decode": PROMPT,
}
"""Component -> what arguments are called of others that bear its name."""


STRINGS = re.compile(r"(?i)<class 'str'>|str|(list|sequence|iterable)\[str\]")
"""How a type is written of sentences that are not split into words."""


def takes_arrays(fn: object) -> bool:
    """Tell from what a function names whether it is written with NumPy."""
    known = getattr(fn, "__globals__", {})
    own = getattr(getattr(fn, "__code__", None), "co_names", ())
    named = [known[name] for name in own if inspect.ismodule(known.get(name))]
    # Where it names neither, its file tells.
    modules = named or [x for x in known.values() if inspect.ismodule(x)]
    roots = {module.__name__.partition(".")[0] for module in modules}
    return "numpy" in roots and "torch" not in roots


def by_words(name: str, fn: Callable) -> str:
    """Return the component that its name and its arguments' names make it."""
    if makes_masks(name, fn):
        return "combine_masks"
    return "sampling_filter" if filters_logits(name, fn) else ""


def alias(name: str) -> str:
    """Return the component that a function of this name usually is, or ''."""
    name = name.strip("_").lower()
    for pattern, component in ALIASES.items():
        if re.fullmatch(pattern, name):
            return component
    return name if name in COMPONENTS else ""
