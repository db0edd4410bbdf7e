"""Which source word each target word looks at, and what it gets from it."""

from collections.abc import Sequence
from html import escape

from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.grids import largest, rows_of
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import tinted, word

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
    data = {"source": source, "target": target, "start": start}
    sentence = _sentence(source, target, weights, states, start)
    html = inline(
        "alignment",
        body=_table(source, target, weights, states, start)
        + f'<p class="says" aria-live="polite">{escape(sentence)}</p>',
        label="Alignment of target words with source words",
        caption=CAPTION,
        data=data | {"weights": weights, "states": states},
        **figure_parts(__file__),
    )
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


def _table(source, target, weights, states, start: int) -> str:
    """One table, so that a state stands under the weight it is scaled by."""
    heads = "".join(f"<th scope=col>{word(token)}</th>" for token in source)
    chosen = f"<span class=chosen>{word(target[start])}</span>"
    top, width = largest(states), len(source) + 2
    dense = " dense" if len(source) > MANY else ""
    parts = (
        _title("grid", "Weights α", width),
        _weight_rows(target, weights, start),
        _title("states", "States h", width),
        _rows(zip(*states, strict=True), top),
        _title(
            "scaled", f"States × the weights of “{chosen}”, added up", width
        ),
        _products(weights[start], states, top),
    )
    return (
        f'<div class="scroll"><table class="cells{dense}" style='
        f'"--columns: {len(source)}"><thead><tr><td></td>{heads}<td></td></tr>'
        f"</thead>{''.join(parts)}</table></div>"
    )


def _title(kind: str, title: str, width: int) -> str:
    """The start of a group of rows (HTML lets the one before end by itself)."""
    return (
        f'<tbody class="{kind}"><tr class="title">'
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


def _products(weights, states, top: float) -> str:
    """The weights, and each state times its own, with the sum at the end."""
    scaled = [
        [w * h for h in state] for w, state in zip(weights, states, strict=True)
    ]
    sums = context(weights, states)
    return (
        f'<tr class="alphas"><th scope=row>α</th>{tinted(weights)}'
        "<th scope=col>c</th></tr>"
        + _rows(zip(*scaled, sums, strict=True), top)
    )


def _sentence(source, target, weights, states, i: int) -> str:
    """What the picture shows; ``alignment.js`` says it in the same words."""
    j = max(range(len(source)), key=lambda j: weights[i][j])
    numbers = ", ".join(fixed(number) for number in context(weights[i], states))
    return (
        f"“{target[i]}” looks most at “{source[j]}” "
        f"({fixed(weights[i][j])}). Its context c: {numbers}."
    )
