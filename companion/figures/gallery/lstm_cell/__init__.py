"""One LSTM cell, word by word: gates as valves, the cell and what it shows."""

import math
from collections.abc import Mapping, Sequence

from companion.figures.gallery.lstm_cell.view import body, frame, sentence
from companion.figures.kit.digits import Number
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps

NEEDED = ("forget", "write", "candidate", "read")


def lstm_cell(
    words: Sequence[str],
    glosses: Sequence[str],
    gates: Mapping[str, Sequence[Number]],
    *,
    holds: Sequence[Number] = (0.95, 0.5),
) -> Figure:
    """Step through one cell of an LSTM whose gates are given.

    The cell is c = forget · c + write · candidate, its output h = read ·
    tanh(c); both start at 0 (Hochreiter and Schmidhuber, 1997, with the forget
    gate of Gers et al., 2000).

    Args:
        words: The sentence.
        glosses: What each word means.
        gates: ``forget``, ``write``, ``candidate`` and ``read``, each with a
            number for each word.
        holds: What can be chosen for the forget gate where it holds on, which
            is where it is more than half open in ``gates``.

    Raises:
        ValueError: a gate is missing or has not one number for each word.

    Example:
        >>> gates = {"forget": [0], "write": [1], "candidate": [1], "read": [1]}
        >>> lstm_cell(["我"], ["I"], gates).text
        'An LSTM cell. 我: the cell goes from 0.00 to 1.00, and 0.76 is shown.'
    """
    for name in NEEDED:
        count = len(gates.get(name, ()))
        if count != len(words):
            raise ValueError(
                f"gates: expected {len(words)} numbers for {name!r}, one for "
                f"each word, got {count}"
            )
    variants = [_holding(gates, hold) for hold in holds]
    found = [cell_states(each) for each in variants]

    def show(which: int, step: int) -> Parts:
        gates, states = variants[which], found[which]
        return frame(words, glosses[step], gates, states, step)

    controls = [
        choice("Forget gate while it holds", [f"{h:g}" for h in holds], 0),
        steps([len(words)] * len(holds), ["Start", "Back", "Next"]),
    ]
    html = played(
        "lstm",
        show,
        controls,
        body,
        module=__file__,
        label="An LSTM cell that reads one word after another",
        caption="A gate is open as far as it is filled. The line on top is the "
        "cell; what leaves at the right is the output.",
        sheets=["diagram"],
    )
    return Figure(html, f"An LSTM cell. {sentence(words[0], found[0], 0)}")


def _holding(
    gates: Mapping[str, Sequence[Number]], hold: Number
) -> dict[str, Sequence[Number]]:
    """The same gates, with another number where the forget gate holds on."""
    forget = [hold if value > 0.5 else value for value in gates["forget"]]
    return {**gates, "forget": forget}


def cell_states(
    gates: Mapping[str, Sequence[Number]],
) -> list[tuple[float, float]]:
    """Compute the cell and the output after each word."""
    found, c = [], 0.0
    columns = (gates[name] for name in NEEDED)
    for forget, write, candidate, read in zip(*columns, strict=True):
        c = forget * c + write * candidate
        found.append((c, read * math.tanh(c)))
    return found
