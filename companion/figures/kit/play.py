"""Figures whose every state Python makes; one script shows them.

A figure gives its controls, a body with a slot ``{name}`` for each part that
changes, and a function from a state of the controls to what its parts hold. An
element that holds a part carries ``data-part="name"``.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from companion.figures.kit.inline import figure_parts, inline

__all__ = ["Control", "buttons", "choice", "played", "rows", "slider", "steps"]

Parts = dict[str, str | list[str]]
"""Name of a part -> the HTML in it; a list fills several elements in turn."""


class Control(NamedTuple):
    """Something a reader moves.

    Attributes:
        spec: What ``play.js`` makes it of.
        start: Where it stands at first; -1 is the last position.
        counts: The number of its positions; a list has one for each position
            of the control before it.
    """

    spec: dict
    start: int
    counts: int | Sequence[int]

    def count(self, *before: int) -> int:
        """Tell the number of its positions, given those of the others."""
        if isinstance(self.counts, int):
            return self.counts
        return self.counts[before[-1]]


def slider(name: str, texts: Sequence[str], start: int, **more) -> Control:
    """Make a slider that goes through these texts."""
    return _control("slider", start, name=name, texts=texts, **more)


def buttons(texts: Sequence[str], start: int) -> Control:
    """Make buttons beside each other, of which one is pressed."""
    return _control("buttons", start, texts=texts)


def choice(name: str, texts: Sequence[str], start: int) -> Control:
    """Make a group of radio buttons."""
    return _control("choice", start, name=name, texts=texts)


def rows(selector: str, count: int, start: int, **more) -> Control:
    """Make buttons of the names of a table's rows."""
    spec = {"kind": "rows", "rows": selector, "start": start} | more
    return Control(spec, start, count)


def steps(
    counts: Sequence[int], texts: Sequence[str], *, last: bool = False
) -> Control:
    """Make buttons that walk; ``counts`` is by the control just before."""
    start = -1 if last else 0
    spec = {"kind": "steps", "texts": texts, "start": start, "counts": counts}
    return Control(spec, start, counts)


def _control(kind: str, start: int, texts: Sequence[str], **more) -> Control:
    spec = {"kind": kind, "texts": list(texts), "start": start} | more
    return Control(spec, start, len(texts))


def played(
    kind: str,
    frame: Callable[..., Parts],
    controls: Sequence[Control],
    body: Callable[[Parts], str],
    *,
    module: str,
    label: str,
    caption: str,
    sheets: Sequence[str] = (),
) -> str:
    """Make the HTML of a figure out of all of its states.

    Args:
        kind: One word, as for ``inline``.
        frame: From the positions of the controls to the parts.
        controls: In the order of ``frame``'s arguments.
        body: From the parts of the first state to the whole figure.
        module: ``__file__`` of the figure.
        label: What a screen reader calls the figure.
        caption: What the reader should see in it.
        sheets: Style sheets of the kit, beside that of the controls.
    """
    start: list[int] = []
    for control in controls:
        start.append(control.start % control.count(*start))
    return inline(
        kind,
        body=body(frame(*start)),
        label=label,
        caption=caption,
        data={
            "controls": [control.spec for control in controls],
            "parts": states(frame, controls),
        },
        **figure_parts(
            module, "controls", "play", sheets=("controls", *sheets)
        ),
    )


def states(
    frame: Callable[..., Parts], controls: Sequence[Control]
) -> dict[str, dict]:
    """Collect the texts of each part, and which of them a state shows.

    Returns:
        Name of a part -> ``of``, its different texts, and ``at``, for each
        state the index of one of them, in lists within lists, a level a
        control; where a part does not depend on the controls that follow, the
        index stands in place of a list.
    """
    texts: dict[str, dict[str, int]] = {}

    def walk(*before: int) -> dict:
        if len(before) == len(controls):
            parts = frame(*before)
            found = {}
            for name, html in parts.items():
                known = texts.setdefault(name, {})
                found[name] = known.setdefault(json.dumps(html), len(known))
            return found
        count = controls[len(before)].count(*before)
        below = [walk(*before, i) for i in range(count)]
        return {name: _same([one[name] for one in below]) for name in below[0]}

    numbers = walk()
    return {
        name: {"of": [json.loads(text) for text in known], "at": numbers[name]}
        for name, known in texts.items()
    }


def _same(numbers: list) -> list | int:
    first = numbers[0]
    alike = isinstance(first, int) and all(one == first for one in numbers)
    return first if alike else numbers
