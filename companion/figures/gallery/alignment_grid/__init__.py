"""Which source word each target word looks at, and what it gets from it."""

from collections.abc import Sequence
from html import escape

from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.play import Parts, playable, rows
from companion.figures.kit.tables import largest, rows_of, tinted, word

CAPTION = """Pick a target word. Its row says how much it takes of each source
state. Below, each state is multiplied by its weight, and the products add up to
the context c: what this step reads of the source."""
MANY = 9  # More source words than that make the columns narrow.


def alignment_grid(
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights,
    states,
) -> Figure:
    """The weights as a grid, and under it how one row makes its context.

    A reader who picks a target word sees every source state scaled by its
    weight and added up: c_i = sum over j of α_ij h_j (Bahdanau et al. 2015,
    equation 5).

    Args:
        weights: (target, source), each row summing to 1; a tensor or lists.
        states: (source, number), the first few numbers of each source state.

    Raises:
        ValueError: the shapes do not fit the tokens, or a row of ``weights``
            does not sum to 1.
    """
    source, target = list(source_tokens), list(target_tokens)
    size = len(target), len(source)
    weights = rows_of("weights", weights, height=size[0], width=size[1])
    states = rows_of("states", states, height=size[1])
    _check_sums(target, weights)
    # The word that looks most sharply at one place makes the clearest start.
    start = max(range(len(target)), key=lambda i: max(weights[i]))

    def frame(i: int) -> Parts:
        return {
            "scaled": _products(target[i], weights[i], states),
            "says": escape(_sentence(source, target[i], weights[i], states)),
        }

    picked = rows(".grid tr:not(.title) th", len(target), start)
    html = inline(
        "alignment",
        body=_body(source, target, weights, states, frame(start), start),
        label="Alignment of target words with source words",
        caption=CAPTION,
        data={"start": start, "parts": playable(frame, [picked])["parts"]},
        **figure_parts(__file__, "controls", "play"),
    )
    sentence = _sentence(source, target[start], weights[start], states)
    return Figure(html, f"Alignment grid. {sentence}")


def context(weights: list[float], states: list[list[float]]) -> list[float]:
    """The weighted sum of the states."""
    return [
        sum(w * h for w, h in zip(weights, column, strict=True))
        for column in zip(*states, strict=True)
    ]


def _check_sums(target: list[str], weights: list[list[float]]) -> None:
    for token, row in zip(target, weights, strict=True):
        if abs(sum(row) - 1) > 0.01:
            raise ValueError(
                f"weights: expected rows that sum to 1, got {sum(row):.3f} "
                f"in the row of {token!r}"
            )


def _body(source, target, weights, states, parts: Parts, start: int) -> str:
    """One table, so that a state stands under the weight it is scaled by."""
    heads = "".join(f"<th scope=col>{word(token)}</th>" for token in source)
    width = len(source) + 2
    dense = " dense" if len(source) > MANY else ""
    return (
        f'<div class="scroll"><table class="cells{dense}" style='
        f'"--columns: {len(source)}"><thead><tr><td></td>{heads}<td></td></tr>'
        f'</thead><tbody class="grid">{_title("Weights α", width)}'
        f"{_weight_rows(target, weights, start)}</tbody>"
        f'<tbody class="states">{_title("States h", width)}'
        f"{_rows(zip(*states, strict=True), largest(states))}</tbody>"
        f'<tbody class="scaled" data-part="scaled">{parts["scaled"]}</tbody>'
        '</table></div><p class="says" aria-live="polite" data-part="says">'
        f"{parts['says']}</p>"
    )


def _title(title: str, width: int) -> str:
    """The first of a group of rows."""
    return (
        '<tr class="title">'
        f"<th scope=rowgroup colspan={width}><span>{title}</span></th></tr>"
    )


def _weight_rows(target, weights, start: int) -> str:
    return "".join(
        f"<tr{' data-chosen' if i == start else ''}>"
        f"<th scope=row>{word(token)}</th>{tinted(row)}</tr>"
        for i, (token, row) in enumerate(zip(target, weights, strict=True))
    )


def _rows(rows, top: float) -> str:
    """Rows of numbers that can have either sign, with their own number."""
    return "".join(
        f"<tr><th scope=row>{number}</th>{tinted(row, top)}</tr>"
        for number, row in enumerate(rows, 1)
    )


def _products(token: str, weights, states) -> str:
    """The weights of a word, each state times its own, and the sum of these."""
    scaled = [
        [w * h for h in state] for w, state in zip(weights, states, strict=True)
    ]
    sums, top = context(weights, states), largest(states)
    title = (
        f"States × the weights of “<span class=chosen>{word(token)}</span>”, "
        "added up"
    )
    return (
        _title(title, len(weights) + 2)
        + f'<tr class="alphas"><th scope=row>α</th>{tinted(weights)}'
        "<th scope=col>c</th></tr>"
        + _rows(zip(*scaled, sums, strict=True), top)
    )


def _sentence(source, token: str, weights, states) -> str:
    """What the picture shows of a word."""
    j = max(range(len(source)), key=lambda j: weights[j])
    numbers = ", ".join(fixed(number) for number in context(weights, states))
    return (
        f"“{token}” looks most at “{source[j]}” ({fixed(weights[j])}). Its "
        f"context c: {numbers}."
    )
