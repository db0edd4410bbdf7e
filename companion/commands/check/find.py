"""Find what a file holds, and judge it, in the process that has imported it.

What is named or marked as a component is judged as that. All else is built,
and judged by what it does, if there are contracts for it.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from torch import nn

from companion.commands.check.file import File, Part, parts_in
from companion.commands.check.imports import made, silent
from companion.contracts import COMPONENTS, check
from companion.contracts.discovery.kinds import (
    NOTHING,
    Judged,
    Unjudged,
    judge,
    widths,
)
from companion.contracts.discovery.make import NotBuilt, make
from companion.contracts.discovery.models import different_parts
from companion.contracts.engine.page import html
from companion.contracts.engine.report import Report
from companion.sanitize import sanitize

__all__ = ["Finder", "report_of", "told"]

ALIASES = {
    r"(scaled_?)?dot_?product_?attention|sdpa|attn": "attention",
    r"((make|create|get|generate|build)_)?(square_)?(causal|subsequent|"
    r"look_?ahead|future|autoregressive|no_?peak|no_?peek)_(attn_)?mask": (
        "causal_mask"
    ),
    r"((make|create|get|build)_)?(attn_)?(pad|padding)_(attn_)?mask": (
        "padding_mask"
    ),
    r"(get_|create_|make_)?(sinusoid(al)?|sinusoidal_positional|positional)_?"
    r"(encodings?|embeddings?|table|encoding_table|pe)?": "sinusoidal",
    r"shift_(tokens_)?right": "shift_right",
    r"apply_rot(ary|ate).*|rotary(_embedding|_emb)?": "rope",
    r"layernorm": "layer_norm",
    r"rmsnorm": "rms_norm",
    r"(my|masked|naive|own|manual)_softmax": "masked_softmax",
}
"""What functions are called elsewhere -> what they then are."""


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
    ):
        self.file, self.module = file, module
        self.components, self.name, self.pages = components, name, pages
        self.options: dict[str, Any] = {"mask": mask} if mask else {}
        if unknown := set(components) - set(COMPONENTS):
            raise ValueError(
                f"components: expected some of {', '.join(sorted(COMPONENTS))}"
                f", got {min(unknown)!r}"
            )
        self.built: list[tuple[str, nn.Module]] = []
        self.left: dict[type, tuple[Candidate, str]] = {}
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
                one = Candidate(name, statement.lineno)
                if isinstance(value, nn.Module):
                    late.append(one)
                elif isinstance(value, type) and issubclass(value, nn.Module):
                    taken.add(name)
                    yield one
                elif inspect.isfunction(value) and (kind := alias(name)):
                    taken.add(name)
                    yield replace(one, component=kind)
        yield from late

    def judged(self, one: Candidate) -> dict:
        """Judge a candidate, and tell what was found as JSON.

        Raises:
            ValueError: What is named or marked cannot be built.
        """
        if one.part and one.component:
            fn = made(self.file, one.part, self.module)
            report = self.check(one.component, fn)
            how = "asked" if one.asked else "name or mark"
            return {
                "parts": [self.part(one, Judged(one.component, report), how)]
            }
        try:
            return self.judged_by_what_it_does(one)
        except (Unjudged, NotBuilt) as reason:
            if str(reason) == NOTHING:
                return {}
            kind = self.space.get(one.name)
            if isinstance(reason, NotBuilt) and isinstance(kind, type):
                self.left[kind] = one, str(reason)
                return {}
            return {"unjudged": [self.unjudged(one, str(reason))]}

    def judged_by_what_it_does(self, one: Candidate) -> dict:
        """Build it if it is a class, and find out what it is."""
        value = (
            made(self.file, one.part, self.module)
            if one.part
            else self.space[one.name]
        )
        if isinstance(value, type):
            if not issubclass(value, nn.Module):
                raise Unjudged("it is no torch.nn.Module: mark what it is")
            with silent():
                value, said = make(value, self.space)
            self.built.append((one.name, value))
            judged = judge(value, self.check, self.space)
            if self.components and judged.component not in self.components:
                return {}
            return {"parts": [self.part(one, judged, "what it does", said)]}
        if isinstance(value, nn.Module):
            return self.judged_model(one, value)
        component = one.component or alias(one.name)
        if not component:
            raise Unjudged(
                "what it is does not show: name a component behind it, as in "
                f"`check {self.file.path}:{one.name} attention`"
            )
        if self.components and component not in self.components:
            return {}
        judged = self.in_its_convention(component, value)
        if judged.report.untried:
            raise Unjudged(
                f"its name is that of {component}, and it could not be called "
                f"as one. {judged.report.failures[0].message}"
            )
        return {"parts": [self.part(one, judged, "a usual name")]}

    def judged_model(self, one: Candidate, model: nn.Module) -> dict:
        """Judge a module that was built, and what it is made of."""
        self.built.append((one.name, model))
        parts, unjudged, hints = [], [], widths(model)
        for name, part, _ in different_parts(model):
            kind, title = type(part), f"{one.name}.{name}".rstrip(".")
            if name and self.is_own(kind) and not one.asked:
                continue
            said = f"{title} ({kind.__name__})" if name else title
            this = replace(one, name=said)
            try:
                judged = judge(part, self.check, self.space, hints)
                if not self.components or judged.component in self.components:
                    parts.append(self.part(this, judged, "what it does"))
            except Unjudged as reason:
                if str(reason) != NOTHING and not self.components:
                    unjudged.append(self.unjudged(this, str(reason)))
        return {"parts": parts, "unjudged": unjudged}

    def is_own(self, kind: type) -> bool:
        """Tell whether a class stands in this file, and is judged by itself."""
        return kind.__module__ == self.module.__name__ and kind not in self.left

    def rest(self) -> dict:
        """Judge, in what was built, the classes that could not be built."""
        parts, unjudged = [], []
        for kind, (one, reason) in self.left.items():
            for name, model in self.built:
                inside = (x for x in model.modules() if type(x) is kind)
                part = next(inside, None)
                if part is None:
                    continue
                try:
                    judged = judge(part, self.check, self.space, widths(model))
                except Unjudged as other:
                    reason = str(other)
                    continue
                said = f"as it stands in {name}"
                if not self.components or judged.component in self.components:
                    parts.append(self.part(one, judged, "what it does", said))
                break
            else:
                if not self.components and reason != NOTHING:
                    unjudged.append(self.unjudged(one, reason))
        return {"parts": [*parts, *self.inside()], "unjudged": unjudged}

    def inside(self) -> list[dict]:
        """Judge, in models that were built, what other files cannot build."""
        parts, seen = [], set()
        for title, model in self.built:
            for name, part, _ in different_parts(model):
                kind = type(part)
                if kind.__module__ == self.module.__name__ or kind in seen:
                    continue
                seen.add(kind)
                try:
                    make(kind, self.space)
                    continue  # There it is judged by itself.
                except NotBuilt:
                    pass
                try:
                    judged = judge(part, self.check, self.space, widths(model))
                except Unjudged:
                    continue
                if self.components and judged.component not in self.components:
                    continue
                name = f"{title}.{name} ({kind.__name__})"
                one = Candidate(name, self.line_of(title) or 1)
                parts.append(self.part(one, judged, "what it does"))
        return parts

    def check(self, component: str, fn: object) -> Report:
        """Try the contracts, with what the user says of masks."""
        fn = fn.eval() if isinstance(fn, nn.Module) else fn
        try:
            return check(component, fn, **self.options)
        except ValueError:  # It has no mask to say something of.
            return check(component, fn)

    def in_its_convention(self, component: str, fn: object) -> Judged:
        """Judge a function by the convention that it follows, if by one."""
        report = self.check(component, fn)
        if self.options or not report.faults or "mask" not in component:
            return Judged(component, report)
        try:
            hidden = check(component, fn, mask="hidden")  # pyrefly: ignore
        except (TypeError, ValueError):
            return Judged(component, report)
        if hidden.faults:
            return Judged(component, report)
        said = "read as a mask where True hides: so everything fits"
        return Judged(component, hidden, (said,))

    def part(
        self, one: Candidate, judged: Judged, how: str, built: str = ""
    ) -> dict:
        """Tell a report, and how it came about, as JSON."""
        found = told(judged.report)
        said = [f"built as {built}"] if built[-1:] == ")" else [built]
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
            "page": html(judged.report) if self.pages else "",
        }

    def unjudged(self, one: Candidate, reason: str) -> dict:
        """Tell why there is no report."""
        return {
            "name": one.name,
            "line": one.line,
            "reason": sanitize(reason),
        }


def alias(name: str) -> str:
    """Return the component that a function of this name usually is, or ''."""
    name = name.strip("_").lower()
    for pattern, component in ALIASES.items():
        if re.fullmatch(pattern, name):
            return component
    return name if name in COMPONENTS else ""
