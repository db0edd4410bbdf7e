"""A word listens with one head or several: a tie to each word, by head."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from companion.figures.kit.diagram import WIDTH, drawing, label, tie
from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of

TILE, GAP = 58, 4


class Panel(NamedTuple):
    """One reading of a sentence.

    Attributes:
        title: What stands above it.
        words: The sentence.
        weights: How much the word that asks listens to each, (head, key).
        outputs: What each head brings, (head, d_v); not negative.
    """

    title: str
    words: Sequence[str]
    weights: object
    outputs: object


def head_ties(
    panels: Sequence[tuple[str, Sequence[str], object, object]],
    *,
    ask: int,
    glosses: dict[str, str],
    axes: Sequence[str],
) -> Figure:
    """Draw, panel by panel, what each head of one word listens to.

    Args:
        panels: Title, words, weights (head, key) and outputs (head, d_v) of
            each panel.
        ask: Index of the word that asks.
        glosses: Word -> what it means.
        axes: What the numbers of an output are called.

    Raises:
        ValueError: weights do not fit the words, or outputs the weights.
    """
    drawn = []
    for panel in map(Panel._make, panels):
        name = f"weights of {panel.title!r}"
        maps = rows_of(name, panel.weights, width=len(panel.words))
        outputs = rows_of(
            f"outputs of {panel.title!r}",
            panel.outputs,
            height=len(maps),
            width=len(axes),
        )
        drawn.append(panel._replace(weights=maps, outputs=outputs))
    says = " ".join(_sentence(panel, ask, axes) for panel in drawn)
    pictures = "".join(_picture(panel, ask, glosses, axes) for panel in drawn)
    html = inline(
        "ties",
        body=f'<div class="side">{pictures}</div>'
        f'<p class="unseen">{escape(says)}</p>',
        label="What each head of a word listens to",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Heads. {says}")


def _name(head: int, panel: Panel) -> str:
    return f"head {head + 1}" if len(panel.weights) > 1 else "the head"


def _sentence(panel: Panel, ask: int, axes: Sequence[str]) -> str:
    heads = []
    for head, (row, output) in enumerate(
        zip(panel.weights, panel.outputs, strict=True)
    ):
        heard = ", ".join(
            f"{fixed(w)} on {word}"
            for word, w in zip(panel.words, row, strict=True)
        )
        got = " and ".join(
            f"{fixed(value)} {axis}"
            for value, axis in zip(output, axes, strict=True)
        )
        heads.append(f"{_name(head, panel)} puts {heard}, and brings {got}")
    return f"{panel.title}, {panel.words[ask]} asks: {'; '.join(heads)}."


def _picture(
    panel: Panel, ask: int, glosses: dict[str, str], axes: Sequence[str]
) -> str:
    """The asking word above, all words below, a tie for each head and word."""
    heads = len(panel.weights)
    across = [
        WIDTH * (j + 0.5) / len(panel.words) for j in range(len(panel.words))
    ]
    hues = [f"hue{i}" for i in range(heads)] if heads > 1 else ["alone"]
    parts = [label(WIDTH / 2, 14, panel.title, "title")]
    ties: list[tuple[float, str]] = []
    for i, (row, hue) in enumerate(zip(panel.weights, hues, strict=True)):
        aside = 9 * (i - (heads - 1) / 2)
        ties += [
            (w, tie(across[ask] + aside, 62, x + aside, 112, w, hue))
            for x, w in zip(across, row, strict=True)
        ]
        parts += [
            label(x, 184 + 18 * i, fixed(w), f"weight {hue}")
            for x, w in zip(across, row, strict=True)
        ]
    # A thick tie lies above the thin ones.
    parts += [line for _, line in sorted(ties)]
    parts.append(label(across[ask], 52, panel.words[ask], "big asking"))
    for x, text in zip(across, panel.words, strict=True):
        parts += [
            label(x, 144, text, "big"),
            label(x, 164, glosses[text], "note"),
        ]
    top = 184 + 18 * heads
    wide = len(axes) * (TILE + GAP)
    for i, (output, hue) in enumerate(zip(panel.outputs, hues, strict=True)):
        left = WIDTH * (i + 0.5) / heads - wide / 2
        parts.append(
            label(left + wide / 2, top + 8, f"{_name(i, panel)} brings", "note")
        )
        for j, (value, axis) in enumerate(zip(output, axes, strict=True)):
            x = left + j * (TILE + GAP)
            parts += [
                f'<rect class="tile {hue}" x="{x:g}" y="{top + 16}" rx="4" '
                f'width="{TILE}" height="40" fill-opacity="{value / 2:.2f}"/>',
                label(x + TILE / 2, top + 32, axis, "note"),
                label(x + TILE / 2, top + 49, fixed(value), "weight"),
            ]
    return drawing(top + 62, _sentence(panel, ask, axes), *parts)
