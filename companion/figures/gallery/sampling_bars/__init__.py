"""What temperature, top-k and top-p leave of a distribution."""

from html import escape
from math import isnan, log
from typing import NamedTuple

import torch
from torch import Tensor

from companion.decoding import sampling_filter
from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import word

BARS = 12
MOST = 2000
"""So many tokens at most: a page should not carry a whole large vocabulary."""
TEMPERATURES = [round(0.2 + 0.1 * i, 1) for i in range(19)]
SHARES = [round(0.05 * i, 2) for i in range(1, 20)]
START = 1.0, None, 0.9
CAPTION = """First the temperature divides the scores, then top-k keeps the best
k tokens, then top-p keeps the fewest of those whose probabilities reach p. A
solid bar is what is drawn from; a hatched one is a token that has been dropped,
with the probability it would have had. The upright stroke is the probability
that the model gave. Look for the difference between the filters: top-k keeps
the same number of tokens however sure the model is, top-p keeps few where it is
sure."""


class Bar(NamedTuple):
    """A token, or several in one line."""

    model: float
    """The probability that the model gave."""
    warm: float
    """The same after the temperature, before anything is dropped."""
    drawn: float
    """What it is drawn with: 0 if it was dropped."""


class Result(NamedTuple):
    """What the three settings make of a distribution."""

    bars: list[Bar]
    kept: int
    """How many tokens are left."""
    mass: float
    """What they had, after the temperature."""
    bits: tuple[float, float]
    """Entropy of what the model gave, and of what is drawn from."""


def sampling_bars(logits, tokens) -> Figure:
    """A next-token distribution, with sliders for the three filters.

    The twelve best tokens have a bar each, the others one together. The page
    computes what ``companion.decoding.sampling_filter`` does.

    Args:
        logits: A score for each token of the vocabulary; -inf is never said.
        tokens: Their names, in the same order.

    Raises:
        ValueError: there are fewer than two tokens or more than 2000, not as
            many names as scores, a score that is NaN or inf, or none finite.
    """
    scores, names = _sorted(logits, list(tokens))
    shown = names[:BARS]
    html = inline(
        "sampling",
        body=_body(scores, shown),
        label="Next-token distribution, and what the filters leave of it",
        caption=CAPTION,
        data={
            "scores": [None if s == -torch.inf else s for s in scores],
            "shown": len(shown),
            "temperatures": TEMPERATURES,
            "ks": [*range(1, min(BARS, len(names) - 1) + 1), None],
            "shares": [*SHARES, None],
            "start": START,
        },
        **figure_parts(__file__),
    )
    return Figure(html, f"Sampling. {sentence(*START, scores)}")


def result(
    temperature: float, k: int | None, p: float | None, scores: list[float]
) -> Result:
    """What the package's filter makes of sorted scores."""
    logits = torch.tensor(scores, dtype=torch.float64)
    drawn = sampling_filter(logits, k, p, temperature).softmax(-1)
    model, warm = logits.softmax(-1), (logits / temperature).softmax(-1)
    kept = drawn > 0
    columns = torch.stack([model, warm, drawn], dim=-1)
    bars = columns[:BARS].tolist()
    if len(scores) > BARS:
        bars.append(columns[BARS:].sum(0).tolist())
    return Result(
        [Bar(*bar) for bar in bars],
        int(kept.sum()),
        warm[kept].sum().item(),
        (_bits(model), _bits(drawn)),
    )


def sentence(
    temperature: float, k: int | None, p: float | None, scores: list[float]
) -> str:
    """What is left, in words, as ``sampling.js`` writes it."""
    left = result(temperature, k, p, scores)
    before, after = (fixed(bits) for bits in left.bits)
    tokens = "1 token is" if left.kept == 1 else f"{left.kept} tokens are"
    return (
        f"Temperature {fixed(temperature, 1)}, top-k {k or 'off'}, top-p "
        f"{fixed(p) if p else 'off'}: {tokens} left of {len(scores)}. After "
        f"the temperature they had {percent(left.mass)} of the probability; "
        f"now they share all of it. The entropy goes from {before} bits to "
        f"{after}."
    )


def percent(share: float) -> str:
    """``0.0712`` -> ``7.1 %``."""
    return f"{fixed(100 * share, 1)}\N{NO-BREAK SPACE}%"


def _bits(shares: Tensor) -> float:
    # No probability, no surprise: 0 · log 0 counts as 0.
    return -torch.special.xlogy(shares, shares).sum().item() / log(2)


def _sorted(logits, tokens: list[str]) -> tuple[list[float], list[str]]:
    """Scores and names, the best first, equal ones in their order."""
    scores = logits.tolist() if hasattr(logits, "tolist") else list(logits)
    if not 2 <= len(scores) <= MOST:
        raise ValueError(
            f"logits: expected 2 to {MOST} scores, got {len(scores)}"
        )
    if len(tokens) != len(scores):
        raise ValueError(
            f"tokens: expected {len(scores)} names, one a score, got "
            f"{len(tokens)}"
        )
    for score in scores:
        if isnan(score) or score == torch.inf:
            raise ValueError(f"logits: expected numbers or -inf, got {score}")
    if max(scores) == -torch.inf:
        raise ValueError("logits: expected a finite score, got only -inf")
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    # Rounded, so that the page is the same on every machine.
    return [round(float(scores[i]), 4) for i in order], [
        str(tokens[i]) for i in order
    ]


def _body(scores: list[float], names: list[str]) -> str:
    """Everything the figure shows without scripts."""
    bars = result(*START, scores).bars
    labels = [word(name) for name in names]
    if len(bars) > len(labels):
        others = len(scores) - BARS
        labels.append(f"<i>{others} other{'s' * (others > 1)}</i>")
    rows = "".join(
        f"<tr{_dropped(bar)}><th scope=row>{label}</th>{_cells(bar)}</tr>"
        for label, bar in zip(labels, bars, strict=True)
    )
    return (
        '<div class="controls"></div><p class="says" aria-live="polite">'
        f"{escape(sentence(*START, scores))}</p>"
        '<table class="cells"><thead><tr><th scope=col>token</th>'
        '<td class="track"></td>'
        "<th scope=col>model</th><th scope=col>drawn</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _dropped(bar: Bar) -> str:
    return "" if bar.drawn else ' class="dropped"'


def _cells(bar: Bar) -> str:
    size = fixed(100 * (bar.drawn or bar.warm), 1)
    tick = fixed(100 * bar.model, 1)
    drawn = percent(bar.drawn) if bar.drawn else "dropped"
    return (
        f'<td class="track"><div><b style="width: {size}%"></b>'
        f'<i style="left: {tick}%"></i></div></td>'
        f"<td>{percent(bar.model)}</td><td>{drawn}</td>"
    )
