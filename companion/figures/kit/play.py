"""Figures whose every state Python makes; one script shows them.

A figure gives its controls, a body with a slot ``{name}`` for each part that
changes, and a function from a state of the controls to what its parts hold. An
element that holds a part carries ``data-part="name"``.
"""

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from companion.figures.kit.inline import figure_parts, inline

__all__ = [
    "Control",
    "Parts",
    "buttons",
    "choice",
    "guess",
    "playable",
    "played",
    "rows",
    "slider",
    "start_of",
    "states",
    "steps",
]

Parts = dict[str, str | list[str]]
"""Name of a part -> the HTML in it; a list fills several elements in turn.

``name@attribute`` sets an attribute of the same elements instead.
"""


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


def guess(
    name: str, texts: Sequence[str], ask: str, right: Sequence[int]
) -> Control:
    """Make a guess and a button that asks: 0 before, then the guess plus 1.

    Args:
        name: What the guesses are.
        texts: The guesses.
        ask: What stands on the button.
        right: The right one, by the control just before.
    """
    spec = {"kind": "guess", "name": name, "texts": texts, "ask": ask}
    return Control(spec | {"right": right}, 0, len(texts) + 1)


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

    A figure that does more than this has a ``view.js`` whose ``mount`` calls
    ``play``; it calls ``inline`` itself, with ``playable`` among its data.

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
    return inline(
        kind,
        body=body(frame(*start_of(controls))),
        label=label,
        caption=caption,
        data=playable(frame, controls),
        **figure_parts(
            module, "controls", "play", sheets=["controls", *sheets]
        ),
    )


def start_of(controls: Sequence[Control]) -> list[int]:
    """Tell where the controls stand at first."""
    start: list[int] = []
    for control in controls:
        start.append(control.start % control.count(*start))
    return start


def playable(
    frame: Callable[..., Parts], controls: Sequence[Control]
) -> dict[str, object]:
    """Collect what ``play.js`` needs: the controls, and every state."""
    return {
        "controls": [control.spec for control in controls],
        "parts": states(frame, controls),
    }


def states(
    frame: Callable[..., Parts], controls: Sequence[Control]
) -> dict[str, list[dict]]:
    """Collect what each part may hold, and what it holds in which state.

    Returns:
        Name of a part -> for each of its elements ``of``, the different texts,
        and ``at``, the index of one of them for every state, in lists within
        lists, a level a control; where nothing depends on the controls that
        follow, an index stands in place of a list. Where each position of
        the first control has a text of its own, ``at`` is left out.
    """
    known: dict[str, list[dict[str, int]]] = {}

    def walk(*before: int) -> dict[str, list]:
        if len(before) == len(controls):
            return {
                name: _numbered(known.setdefault(name, []), html)
                for name, html in frame(*before).items()
            }
        count = controls[len(before)].count(*before)
        below = [walk(*before, i) for i in range(count)]
        return {
            name: [
                _same(list(numbers))
                for numbers in zip_longest(*(one[name] for one in below))
            ]
            for name in below[0]
        }

    numbers = walk()
    return {
        name: [
            {"of": [*texts]}
            if at == list(range(len(texts)))
            else {"of": [*texts], "at": at}
            for texts, at in zip(elements, numbers[name], strict=True)
        ]
        for name, elements in known.items()
    }


def _numbered(known: list[dict[str, int]], html: str | list[str]) -> list[int]:
    """Number the text of every element of a part; a new one is remembered."""
    texts = [html] if isinstance(html, str) else html
    known += [{} for _ in texts[len(known) :]]
    return [
        of.setdefault(text, len(of))
        for of, text in zip(known, texts, strict=False)
    ]


def _same(numbers: list) -> list | int:
    first = numbers[0]
    alike = isinstance(first, int) and all(one == first for one in numbers)
    return first if alike else numbers
