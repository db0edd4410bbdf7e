"""Maps of trained heads: what each of them looks at, and how many it takes."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from companion.figures.kit.digits import Number, fixed, heat
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import rows_of, tinted, word

SHOWN = 8
CAPTION = """Pick a number of heads. Each square is one head: a row asks, a
column is looked at, and a stronger colour is more weight. Above each square
stands the distance the head looks at most, and the mean weight there. Point at
a cell, or move with the arrow keys, and read its weight."""

Maps = list[list[list[Number]]]
Bands = Mapping[str, tuple[Number, Number]]


def head_maps(
    maps_by_h: Mapping[int, object],
    tokens: Sequence[str],
    accuracy: Mapping[int, Bands],
    *,
    d_model: int,
) -> Figure:
    """The heads of several trained models, side by side, and how right each is.

    At most the first eight heads of a model are shown, and the figure says so.

    Args:
        maps_by_h: Number of heads -> their weights, (head, seq, seq).
        tokens: The words of the one sentence the weights belong to.
        accuracy: Number of heads -> what is asked -> the lowest and the highest
            share of right answers over the seeds.
        d_model: Shared out among the heads; to state their width.

    Raises:
        ValueError: the weights do not fit the heads or the words, or do not sum
            to 1; the accuracies do not fit the models, or are no shares.
    """
    tokens = list(tokens)
    models = {h: _maps(h, maps_by_h[h], len(tokens)) for h in sorted(maps_by_h)}
    _check_bands(models, accuracy)
    widths = {h: _width(h, d_model) for h in models}
    start = [*models, *models][1]  # The second, or the only one.
    says = _Words(tokens, widths)
    sentence = says.of_strongest(start, models[start][0])
    html = inline(
        "heads",
        body=_chooser(widths, accuracy, start)
        + f'<p class="says" aria-live="polite">{escape(sentence)}</p>'
        f'<p class="aside">{note(start)}</p>' + _squares(tokens, models[start]),
        label="Attention maps of the heads of trained models",
        caption=CAPTION,
        data={
            "start": list(models).index(start),
            "heads": list(models),
            "maps": list(models.values()),
            "captions": [
                [_caption(head, rows) for head, rows in enumerate(maps, 1)]
                for maps in models.values()
            ],
            "notes": [note(h) for h in models],
            "words": says.parts(),
        },
        **figure_parts(__file__, "controls"),
    )
    return Figure(html, f"Attention maps. {sentence}")


class _Words(NamedTuple):
    """What is said of a cell; the page makes the sentence of the parts."""

    tokens: list[str]
    widths: dict[int, int]

    def parts(self) -> dict[str, list]:
        """Each model's heads and their width, the words, and how far off."""
        n = len(self.tokens)
        return {
            "models": [
                [f"{h} {'head' if h == 1 else 'heads'}", width]
                for h, width in self.widths.items()
            ],
            "tokens": self.tokens,
            "texts": [towards(back) for back in range(1 - n, n)],
        }

    def of_strongest(self, h: int, rows: list[list[Number]]) -> str:
        """What is said of the largest weight of the last row of head 1."""
        i = len(rows) - 1
        j = rows[i].index(max(rows[i]))
        name, width = self.parts()["models"][list(self.widths).index(h)]
        return (
            f"{name} of width {width}. Head 1: “{self.tokens[i]}” at place "
            f"{i + 1} gives {fixed(rows[i][j])} of its weight to "
            f"“{self.tokens[j]}” at place {j + 1}: {towards(i - j)}."
        )


def distance(maps: list[list[Number]]) -> tuple[int, float]:
    """How far back a head looks most, and its mean weight there.

    Distances that fewer than half of the positions have do not count.
    """
    n = len(maps)
    means = {}
    for back in range(-(n // 2), n // 2 + 1):
        there = [maps[i][i - back] for i in range(n) if 0 <= i - back < n]
        means[back] = sum(there) / len(there)
    # Of equal ones, the nearest.
    best = max(means, key=lambda back: (round(means[back], 9), -abs(back)))
    return best, means[best]


def towards(back: int) -> str:
    """Write a distance in words."""
    if back == 0:
        return "itself"
    return f"{abs(back)} {'back' if back > 0 else 'ahead'}"


def note(heads: int) -> str:
    """How many of the heads are on the page."""
    return f"The first {SHOWN} of {heads} heads." if heads > SHOWN else ""


def _maps(h: int, maps, length: int) -> Maps:
    """The weights of one model's first heads, rounded and fit for a page."""
    maps = maps.tolist() if hasattr(maps, "tolist") else list(maps)
    if len(maps) != h:
        raise ValueError(
            f"maps_by_h: expected {h} maps for {h}, got {len(maps)}"
        )
    for head, rows in enumerate(maps):
        rows_of(f"maps_by_h[{h}][{head}]", rows, height=length, width=length)
        for i, row in enumerate(rows):
            if abs(sum(row) - 1) > 0.01:
                raise ValueError(
                    f"maps_by_h: expected rows that sum to 1, got "
                    f"{sum(row):.3f} with {h} heads, head {head}, row {i}"
                )
    # Two places are what the page shows; more would make it large.
    shown = maps[:SHOWN]
    return [[[round(w, 2) for w in row] for row in rows] for rows in shown]


def _check_bands(models: Mapping, accuracy: Mapping[int, Bands]) -> None:
    named = {h: list(bands) for h, bands in accuracy.items()}
    if set(named) != set(models) or len(set(map(tuple, named.values()))) != 1:
        raise ValueError(
            f"accuracy: expected the same names for each of {sorted(models)} "
            f"heads, got {named}"
        )
    for h, bands in accuracy.items():
        for name, (low, high) in bands.items():
            if not 0 <= low <= high <= 1:
                raise ValueError(
                    "accuracy: expected shares, the lower one first, got "
                    f"{(low, high)} for {name!r} with {h} heads"
                )


def _width(h: int, d_model: int) -> int:
    if d_model % h:
        raise ValueError(
            f"d_model: expected a multiple of {h} heads, got {d_model}"
        )
    return d_model // h


def _chooser(widths: dict, accuracy: Mapping[int, Bands], start: int) -> str:
    """A column a model: its heads, their width, and how right it is."""
    chosen = {h: " data-chosen" if h == start else "" for h in widths}
    heads = "".join(
        f"<th scope=col{chosen[h]}><span>{h}</span></th>" for h in widths
    )
    rows = [_line("head_dim", [f"<td>{w}</td>" for w in widths.values()])]
    for name in accuracy[start]:
        bands = [accuracy[h][name] for h in widths]
        cells = [
            f"<td {heat(low)}>{_band(low, high)}</td>" for low, high in bands
        ]
        rows.append(_line(f"{escape(name)}, %", cells))
    return (
        '<div class="scroll"><table class="cells chooser"><caption>Share of '
        "right answers, lowest to highest of the seeds</caption>"
        f"<thead><tr><th scope=row>heads</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _line(name: str, cells: list[str]) -> str:
    return f"<tr><th scope=row>{name}</th>{''.join(cells)}</tr>"


def _band(low: Number, high: Number) -> str:
    ends = [fixed(100 * low, 0), fixed(100 * high, 0)]
    # A phone may break the line after the dash.
    return "–\N{ZERO WIDTH SPACE}".join(dict.fromkeys(ends))


def _squares(tokens: list[str], maps: Maps) -> str:
    squares = (_square(tokens, head, rows) for head, rows in enumerate(maps, 1))
    longest = max(map(len, tokens))
    upright = " upright" if longest > 2 else ""
    return (
        f'<div class="squares{upright}" style="--seq: {len(tokens)}; '
        f'--names: {0.3 + 0.45 * longest:.2f}rem">{"".join(squares)}</div>'
    )


def _square(tokens: list[str], head: int, rows: list[list[Number]]) -> str:
    """One head; the script fills copies of it for another model."""
    names = "".join(f"<th scope=col>{word(token)}</th>" for token in tokens)
    lines = "".join(
        f"<tr><th scope=row>{word(token)}</th>{tinted(row)}</tr>"
        for token, row in zip(tokens, rows, strict=True)
    )
    return (
        f'<div><table class="cells map"><caption>{_caption(head, rows)}'
        f"</caption><thead><tr><td></td>{names}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div>"
    )


def _caption(head: int, rows: list[list[Number]]) -> str:
    back, mean = distance(rows)
    return f"<b>Head {head}</b> {towards(back)} {fixed(mean)}"
