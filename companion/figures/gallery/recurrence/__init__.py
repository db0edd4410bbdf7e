"""A recurrent network word by word, and what each word counts in its memory."""

from collections.abc import Sequence

from companion.figures.kit.diagram import (
    drawing,
    label,
    matrix,
    vector,
)
from companion.figures.kit.digits import Number, fixed, lowered
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps

TOP, FOOT = 34, 118


def recurrence(
    words: Sequence[str],
    glosses: Sequence[str],
    *,
    keeps: Sequence[Number] = (0.5, 0.9, 1.0, 1.5),
) -> Figure:
    """Step through h = u · h + x, and show how much of each word is in h.

    There is no tanh here: without it the memory is a sum, in which a word that
    was read k steps ago counts u to the power of k.

    Args:
        words: The sentence.
        glosses: What each word means.
        keeps: The values of u that can be chosen.

    Raises:
        ValueError: there are not as many glosses as words.

    Example:
        >>> recurrence(["我", "爱"], ["I", "love"], keeps=[0.5]).text
        'A recurrent network. After 2 words, with u = 0.5: 我 counts 0.500, 爱 \
counts 1.000.'
    """
    if len(words) != len(glosses):
        raise ValueError(
            f"glosses: expected {len(words)}, one for each word, got "
            f"{len(glosses)}"
        )

    def show(which: int, step: int) -> Parts:
        return _frame(words, keeps[which], step)

    controls = [
        choice("u, which multiplies the memory", [f"{u:g}" for u in keeps], 0),
        steps([len(words)] * len(keeps), ["Start", "Back", "Next"], last=True),
    ]
    html = played(
        "recur",
        show,
        controls,
        lambda parts: _body(parts, words, glosses),
        module=__file__,
        label="A recurrent network that reads one word after another",
        caption="A row of the table is the memory after that many words; a "
        "column follows one word through time.",
        sheets=["diagram"],
    )
    said = _says(words, keeps[0], len(words) - 1)
    return Figure(html, f"A recurrent network. {said}")


def _counts(u: Number, words: int) -> list[list[Number]]:
    """What word j counts after word t: u to the power of t - j."""
    return [
        [u ** (t - j) if j <= t else 0.0 for j in range(words)]
        for t in range(words)
    ]


def _says(words: Sequence[str], u: Number, step: int) -> str:
    counts = ", ".join(
        f"{text} counts {fixed(value, 3)}"
        for text, value in zip(words, _counts(u, len(words))[step], strict=True)
        if value
    )
    many = "1 word" if step == 0 else f"{step + 1} words"
    return f"After {many}, with u = {u:g}: {counts}."


def _frame(words: Sequence[str], u: Number, step: int) -> Parts:
    counts = _counts(u, len(words))
    table = matrix(
        counts,
        "what each word counts",
        names=[lowered("h", t + 1) for t in range(len(words))],
        columns=words,
        chosen=step,
        places=3,
    )
    return {
        "node@class": [
            "node now" if t == step else "node" if t < step else "node later"
            for t in range(len(words))
        ],
        "table": table,
        "says": _says(words, u, step),
    }


def _body(parts: Parts, words: Sequence[str], glosses: Sequence[str]) -> str:
    width = 340 / len(words)
    columns = []
    for t, (text, gloss) in enumerate(zip(words, glosses, strict=True)):
        x = width * (t + 0.5)
        h = lowered("h", t + 1)
        before = (
            vector(x - width + 24, TOP, x - 26, TOP)
            + label(x - width / 2 - 2, TOP - 10, "u", "note")
            if t
            else ""
        )
        columns.append(
            f'<g data-part="node" class="{parts["node@class"][t]}">{before}'
            f'<rect x="{x - 23:g}" y="{TOP - 19}" width="46" height="38" '
            f'rx="5"/>{label(x, TOP + 5, h)}'
            f"{vector(x, FOOT - 26, x, TOP + 22)}"
            f"{label(x, FOOT, text, 'big')}{label(x, FOOT + 20, gloss, 'note')}"
            "</g>"
        )
    picture = drawing(
        FOOT + 28,
        "Each word enters its own step; each state goes on to the next one.",
        *columns,
    )
    return f"""<div class="controls"></div>
<div class="side">{picture}<div class="step">
<div data-part="table">{parts["table"]}</div></div></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
