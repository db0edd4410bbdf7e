"""Find what a file holds, and judge it, in the process that has imported it.

What is named or marked as a component is judged as that. All else is built,
and judged by what it does, if there are contracts for it.
"""

import ast
import contextlib
import inspect
import operator
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType

import torch
from torch import nn

from companion.commands.check.file import File, Part, parts_in
from companion.commands.check.functions import (
    as_function,
    called_otherwise,
    other_than,
    scaled_by_its_caller,
    turned,
    with_queries_scaled,
)
from companion.commands.check.imports import made, silent
from companion.commands.check.judging import Judge, told
from companion.commands.check.losses import LOSS, judged_loss
from companion.commands.check.names import (
    alias,
    any_number_of,
    by_words,
    is_factory,
    is_torchs,
    takes_something,
)
from companion.contracts import COMPONENTS
from companion.contracts.discovery.anew.cached_steps import with_cached_steps
from companion.contracts.discovery.anew.norm_skipped import with_norm_of_keys
from companion.contracts.discovery.anew.rebuild import (
    with_dropout,
    with_dropout_on_the_stream,
    with_fewer_key_heads,
    with_gradients_behind_dropout,
    with_own_defaults,
    with_what_is_unsaved,
)
from companion.contracts.discovery.each_length import of_each_length
from companion.contracts.discovery.kinds.calls import (
    ADDED_ALONG_THE_FIRST,
    NO_CALL,
    NOTHING,
    RAISED,
    SEQUENCE_FIRST,
    WHOLE,
    asks_first,
    understood,
    widths,
)
from companion.contracts.discovery.kinds.ids import SEES_ALL
from companion.contracts.discovery.kinds.lone_block import judged_in_a_model
from companion.contracts.discovery.kinds.one_row_each import NO_MORE, suspected
from companion.contracts.discovery.kinds.recognition import LINEAR_MAP
from companion.contracts.discovery.make import (
    NotBuilt,
    by_default,
    make,
    of_its_own_width,
    of_several_experts,
)
from companion.contracts.discovery.models import (
    different_parts,
    judge_alone,
    judge_part,
    only_normed_first,
)
from companion.contracts.discovery.published import by_convention
from companion.contracts.discovery.raising import POSITIONS
from companion.contracts.discovery.readings import ASK, is_open
from companion.contracts.discovery.rotary import (
    EACH_WIDTH,
    ROTARY,
    SCALED,
    as_rope,
    with_positions,
)
from companion.contracts.discovery.verdict import (
    STOPPED,
    Judged,
    Raises,
    Suspect,
    Unjudged,
    in_time,
)
from companion.contracts.discovery.warmup import (
    NO_WIDTH,
    as_schedule,
    is_named_so,
    knows_its_width,
    sets_a_rate,
    warms_up,
)
from companion.contracts.efficiency.flash_attention import as_published
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.around import inmost
from companion.contracts.engine.page import html
from companion.contracts.engine.report import Report
from companion.contracts.engine.scale import BY_THE_ROOT
from companion.contracts.positions.rope import AT_ZERO, RELATIVE
from companion.sanitize import sanitize
from companion.words import ENGLISH

__all__ = ["Candidate", "Finder"]

NAMED_SO = "its name says so"
ARGUMENTS_SAY_SO = "its arguments say so"

COUNTED_BY_ITSELF = "its own count of steps was put to each that was asked for"

NO_USUAL = re.compile(f"^{NO_CALL}|no call with ids was understood")
"""What is said where a call raises, perhaps because sizes do not fit."""

ADDS_NOTHING = (
    "its name says that it adds positions, and what comes out is what went in: "
    "is the sum thrown away, as by a line `x + table` without `x =`?"
)

ALL_ALIKE = (
    "Its name says that it adds positions, and it changes all of them alike: "
    "is one row taken for all, as by `table[n]` in place of `table[:n]`?"
)

ANEW = (
    with_dropout,
    with_dropout_on_the_stream,
    with_fewer_key_heads,
    with_gradients_behind_dropout,
    with_what_is_unsaved,
    with_norm_of_keys,
    with_cached_steps,
    with_own_defaults,
)
"""What is added by building a class once more, in this order."""

MANY_DIVIDE = 120
"""A width that all usual numbers of heads divide."""


def only_scaled_wrongly(report: Report) -> bool:
    """Tell whether all that is wrong is by what its scores are divided.

    A model may draw smaller weights for the queries instead, as T5 does.
    """
    broken = {fault.contract for fault in report.faults}
    return broken == {BY_THE_ROOT}


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

    First each candidate is ``judged``. What is understood alone is told at
    once and, if it is a module, kept in ``built``. What is not waits in
    ``left``, a class with why it could not be judged; and in ``asking`` waits a
    class with its report, in which only a whole model can settle what is open,
    as what True means in masks. When all are built comes the ``rest``: each
    built model answers what is asked; what is left is judged in the models
    where it stands, then in one that is made around it; and last come the parts
    of models that other files define, of which ``seen`` are those done.
    ``wholes`` tells what a built model was taken for, by its id.

    What the methods yield are messages as ``process`` notes them: ``parts``, or
    ``unjudged``. One that is empty says that it was not asked for.

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
        self.judge = Judge(mask)
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
            if self.wants(p.component)
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
        for statement in self.file.statements:
            targets = getattr(statement, "targets", ())
            names = {getattr(t, "id", None) for t in targets}
            if first and first[0] in {getattr(statement, "name", None), *names}:
                return statement.lineno
        return 0

    def others(self, taken: set[str]) -> Iterator[Candidate]:
        """List what may be a component, though nothing says so."""
        late = []
        for statement in self.file.statements:
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
            if module or warms_up(value) or sets_a_rate(value):
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
            for statement in self.file.statements
            if (name := getattr(statement, "name", "_"))[0] != "_"
            and name not in tried
            and takes_something(self.space.get(name))
        ]

    def judged(self, one: Candidate) -> Iterator[dict]:
        """Judge a candidate, and tell what was found as JSON, bit by bit."""
        try:
            if one.component and one.part:
                yield self.judged_as_said(one, one.part)
            else:
                yield from self.judged_by_what_it_does(one)
        except (Unjudged, NotBuilt) as reason:
            kind = self.space.get(one.name)
            if str(reason) == NOTHING and not one.asked:
                yield from self.of_nothing(one, kind)
                return
            alike = str(reason) == LINEAR_MAP
            if alike and POSITIONS.fullmatch(getattr(kind, "__name__", "")):
                reason = Suspect(f"{ALL_ALIKE} {NO_MORE} {reason}")
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

    def made(self, part: Part) -> object:
        """Make what is named or marked.

        Raises:
            NotBuilt: It raises something; the message names the line.
        """
        try:
            return made(self.file, part, self.module)
        except ValueError as error:
            raise NotBuilt(str(error)) from None

    def of_nothing(self, one: Candidate, kind: object) -> Iterator[dict]:
        """Tell of what does nothing if it wants parts, or is to do more."""
        names = any_number_of(kind)
        if names and isinstance(kind, type):
            why = f"built without any of `*{names}`, it does nothing"
            self.built = [b for b in self.built if b[0] != one.name]
            self.left[kind] = one, Unjudged(why)
        elif POSITIONS.fullmatch(getattr(kind, "__name__", "")):
            yield {"unjudged": [self.unjudged(one, Suspect(ADDS_NOTHING))]}

    def judged_as_said(self, one: Candidate, part: Part) -> dict:
        """Judge it as its name, its mark or the user says.

        Raises:
            NotBuilt: It cannot be built.
        """
        fn = self.made(part)
        if isinstance(fn, type) and issubclass(fn, nn.Module):
            return self.judged_class_as(one, fn)
        # A mark says that it is called as its component is, masks and all.
        marked = not part.by_name and not one.asked
        judged = None
        if part.by_name:
            judged = self.judge.without_a_mask(one.component, fn)
        elif one.asked:
            judged = called_otherwise(self.judge, one.component, fn)
        judged = judged or self.judge.as_component(
            one.component, fn, marked=marked
        )
        if not marked:
            report = by_convention(fn, judged.report)
            judged = replace(judged, report=report)
        if part.by_name and (why := other_than(fn, judged.report)):
            found = turned(self.judge, one.component, fn)
            if found is None:
                return {"unjudged": [self.unjudged(one, why)]}
            judged = found
        if part.by_name:
            judged = self.judge.of_three_axes(judged, fn)
        if part.by_name and one.component == "flash_attention":
            report = as_published(judged.report, fn)
            judged = replace(judged, report=report)
        how = "asked" if one.asked else "name or mark"
        return {"parts": [self.part(one, judged, how)]}

    def judged_by_what_it_does(self, one: Candidate) -> Iterator[dict]:
        """Build it if it is a class, and find out what it is."""
        value = (
            self.made(one.part)
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
                raise suspected(module, reason) from None
            judged, said = found
        if judged.report.faults:
            found = self.judged_with_experts(kind, judged)
            judged, said = found or (judged, said)
        if not self.wants(judged.component):
            return {}
        part = self.part(one, judged, "what it does", said)
        masks = is_open(judged.report) and not judged.report.faults
        normed = only_normed_first(judged.report)
        if masks or normed or only_scaled_wrongly(judged.report):
            # A model that hands masks to it, draws its weights, or norms what
            # leaves it, may answer.
            self.asking[kind] = one, part
            return {}
        return {"parts": [part]}

    def judged_with_experts(
        self, kind: type, one: Judged
    ) -> tuple[Judged, str] | None:
        """Judge a class of several experts, if it has one by default.

        None, if it has several, or its faults are the same.
        """
        try:
            build = of_several_experts(kind)
            if build is None:
                return None
            with silent():
                module, said = make(build, self.space)
            judged = self.judged_in(module, module)
        except (Unjudged, NotBuilt):
            return None
        fewer = len(judged.report.faults) < len(one.report.faults)
        return (judged, said) if fewer else None

    def judged_schedule(self, one: Candidate, kind: type) -> dict:
        """Judge what warms up by its name, at steps of its own count.

        Raises:
            Unjudged: It is something else, or cannot be asked.
        """
        fn = None
        if warms_up(kind):
            with silent():
                fn = in_time(lambda: as_schedule(kind))
        known = warms_up(kind) and knows_its_width(kind)
        if fn is None and not known and (warms_up(kind) or sets_a_rate(kind)):
            raise Unjudged(NO_WIDTH)
        if fn is None:
            raise Unjudged("it is no torch.nn.Module: mark what it is")
        if not self.wants("schedule"):
            return {}
        report = self.judge.check("schedule", fn)
        known = NAMED_SO if is_named_so(kind) else ARGUMENTS_SAY_SO
        judged = Judged("schedule", report, (known, COUNTED_BY_ITSELF))
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
        if not self.wants("rope"):
            return {}
        fn, said = found
        report = self.judge.check("rope", fn)
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
        if not (RAISED in why and NO_USUAL.search(why)):
            return None
        for build in (
            lambda: by_default(kind, self.space),
            # Its number of heads may stand inside.
            lambda: make(kind, self.space, MANY_DIVIDE),
            lambda: of_each_length(kind, self.space),
            lambda: of_its_own_width(kind, self.space),
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
            fn = with_positions(
                cache(lambda n: make(kind, self.space, n)[0].eval()), fn
            )
            said = EACH_WIDTH
        judged = self.again(self.judge.as_component(one.component, fn), kind)
        how = "asked" if one.asked else "name or mark"
        return {"parts": [self.part(one, judged, how, said)]}

    def again(self, judged: Judged, kind: Callable) -> Judged:
        """Add what shows only where a class is built with other numbers."""
        with silent():
            for add in ANEW:
                with contextlib.suppress(NotBuilt, Unjudged):
                    judged = add(judged, kind, self.space)
        return judged

    def judged_function(self, one: Candidate, fn: object) -> dict:
        """Judge a function by what its name says, or by what was asked."""
        component = one.component or alias(one.name)
        if not component:
            raise Unjudged(
                "what it is does not show: name a component behind it, as in "
                f"`check {self.file.path}:{one.name} attention`"
            )
        if not self.wants(component):
            return {}
        judged = as_function(self.judge, component, fn)
        if line := scaled_by_its_caller(self.file, one.name):
            judged = with_queries_scaled(judged, line)
        return {"parts": [self.part(one, judged, "a usual name")]}

    def judged_loss(self, one: Candidate, kind: type) -> dict:
        """Judge a loss that smooths its labels."""
        if not self.wants("label_smoothing"):
            return {}
        judged = judged_loss(self.judge, kind)
        return {"parts": [self.part(one, judged, "a usual name")]}

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
                    why = suspected(part, reason)
                    yield {"unjudged": [self.unjudged(this, why)]}
                continue
            if self.wants(judged.component):
                how = "" if name else built
                yield {"parts": [self.part(this, judged, "what it does", how)]}

    def judged_in(self, part: nn.Module, model: nn.Module) -> Judged:
        """Judge a part of a model, or the model itself.

        Raises:
            Unjudged: It is nothing that there are contracts for.
        """
        check = partial(self.judge.check, **self.judge.options)
        if part is not model:
            whole = self.wholes.get(id(model))
            judged = judge_part(part, model, whole, check, self.space)
        else:
            judged = judge_alone(model, check, self.space, widths(model))
            self.wholes[id(model)] = judged
        # Nobody knows that its sizes are those of use.
        for fault in judged.report.faults:
            if STOPPED.search(fault.message):
                raise Unjudged(fault.message)
        return judged

    def wants(self, component: str) -> bool:
        """Tell whether a component is asked for."""
        return not self.components or component in self.components

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
                if self.wants(judged.component):
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
            judged = judged_in_a_model(module, self.judge.check)
        except (Unjudged, NotBuilt):
            if not self.components and str(reason) != NOTHING:
                yield {"unjudged": [self.unjudged(one, reason)]}
            return
        if self.wants(judged.component):
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
                if not self.wants(judged.component):
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
    always = isinstance(reason, Raises | Suspect)
    return always or getattr(reason, "always", False) or asked is not None


def as_typed(text: str) -> str:
    """Say on the command line `--mask hidden`, where Python says `mask=`."""
    if text == ASK:  # It says both.
        return text
    words = r'`(check\("\w+", …, )?mask="(\w+)"\)?`'
    return re.sub(words, r"`--mask \2`", text)
