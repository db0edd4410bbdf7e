"""Three places, three masks: switch a reason on or off and see who leaks."""

from html import escape
from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from companion.attention import masked_softmax
from companion.figures.gallery.mask_builder.words import sentence
from companion.figures.kit.digits import fixed, heat
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import table
from companion.masks import (
    causal_mask,
    combine_masks,
    padding_mask,
    to_lengths,
)

# What the decoder reads is shifted right, so it begins with <bos>.
SENTENCES = {
    "我爱小猫": ("我 爱 小 猫", "<bos> I love little cats"),
    "我爱猫": ("我 爱 猫 <pad>", "<bos> I love cats <pad>"),
    "猫": ("猫 <pad> <pad> <pad>", "<bos> cats <pad> <pad> <pad>"),
    "only padding": ("<pad> <pad> <pad> <pad>", "<bos> " + "<pad> " * 4),
}
PLACES = {
    "src": "Encoder self-attention",
    "tgt": "Decoder self-attention",
    "cross": "Cross-attention",
}
"""Field of ``companion.masks.Masks`` -> the place it belongs to."""
START = ("tgt", "我爱小猫", False, True)
CAPTION = """Give each place the mask it needs. <b>!</b> marks a leak: a key
that is seen and must not be. <b>?</b> marks a key that is hidden and should be
seen. The encoder and the cross-attention need the padding mask alone. The
decoder's self-attention needs the causal mask; padding stands at the end, so
the causal mask hides it from every word as well. Grey rows are padding that
asks: what they compute is left out of the loss."""
CONVENTIONS = {
    "This course": (
        "True",
        "False",
        "True = may attend, as in F.scaled_dot_product_attention and in Keras.",
    ),
    "nn.MultiheadAttention": (
        "False",
        "True",
        "True = hidden: the opposite. to_torch_attention translates.",
    ),
    "Hugging Face": (
        "0",
        "min",
        "On its path “eager”, added to the scores: 0, or min = −3.4×10³⁸, the "
        "lowest float32. On “sdpa” it is as ours. to_additive translates.",
    ),
    "Lengths": (
        "<",
        "≥",
        "Key j is seen if j < length. to_lengths translates.",
    ),
}
"""Name -> what it writes for a key that is seen, for a hidden one, and why."""


class State(NamedTuple):
    """A mask for one place and one sentence, and the mask it should be."""

    queries: list[str]
    keys: list[str]
    mask: Bool[Tensor, "1 1 query key"]
    right: Bool[Tensor, "1 1 query key"]


def mask_builder() -> Figure:
    """A mask to build: place, sentence, causal or not, padding or not.

    It says which words leak, shows the weights that the mask leaves when all
    scores are equal, and writes the same mask as other libraries mean it.
    """
    choices = list(product(PLACES, SENTENCES, (False, True), (False, True)))
    pages = {_key(*choice): _page(*choice) for choice in choices}
    first = pages[_key(*START)]
    html = inline(
        "masks",
        body='<div class="controls"></div>'
        f'<p class="says" aria-live="polite">{escape(first["says"])}</p>'
        f"<pre>{escape(first['code'])}</pre>" + _tables(build(*START)),
        label="Mask builder",
        caption=CAPTION,
        data={
            "places": PLACES,
            "sentences": {name: name for name in SENTENCES},
            "names": list(CONVENTIONS),
            "conventions": CONVENTIONS,
            "start": START,
            "pages": pages,
        },
        **figure_parts(__file__, "controls", sheets=["controls"]),
    )
    return Figure(html, f"Mask builder. {first['says']}")


def build(place: str, name: str, causal: bool, padding: bool) -> State:
    """The mask that the two switches make, and what ``combine_masks`` makes."""
    src, tgt = (text.split() for text in SENTENCES[name])
    queries = src if place == "src" else tgt
    keys = tgt if place == "tgt" else src
    rows, columns = len(queries), len(keys)
    mask = torch.ones(1, 1, rows, columns, dtype=torch.bool)
    if causal:  # Row i sees column j only if j <= i, whatever the columns are.
        mask &= causal_mask(max(rows, columns))[:rows, :columns]
    if padding:
        mask &= padding_mask(_ids(keys), pad=0)
    right = getattr(combine_masks(_ids(src), _ids(tgt), pad=0), place)
    return State(queries, keys, mask, right.expand_as(mask))


def marks(state: State) -> list[str]:
    """A letter a cell: ``1`` seen, ``0`` hidden, ``!`` a leak, ``?`` missing.

    A query that is padding computes nothing that counts: it is never wrong.
    """
    signs = {(1, 0): "!", (0, 1): "?"}
    grids = (grid[0, 0].int().tolist() for grid in (state.mask, state.right))
    rows = []
    for word, *pair in zip(state.queries, *grids, strict=True):
        cells = list(zip(*pair, strict=True))
        wrong = signs if word != "<pad>" else {}
        rows.append("".join(wrong.get(cell, str(cell[0])) for cell in cells))
    return rows


def shares(mask: Bool[Tensor, "1 1 query key"]) -> list[list[float]]:
    """The weights that the mask leaves when all scores are equal."""
    return masked_softmax(mask.double() * 0, mask)[0, 0].tolist()


def lengths(mask: Bool[Tensor, "1 1 query key"]) -> int | None:
    """The mask as a number of keys, or None where no number can say it."""
    if (mask != mask[:, :, :1]).any():
        return None
    return int(to_lengths(mask[:, :, :1]))


def _ids(words: list[str]) -> Tensor:
    return torch.tensor([[int(word != "<pad>") for word in words]])


def _key(place: str, name: str, causal: bool, padding: bool) -> str:
    return f"{place} {name} {causal:d}{padding:d}"


def _page(place: str, name: str, causal: bool, padding: bool) -> dict:
    """All that the page shows of one state."""
    state = build(place, name, causal, padding)
    signs = marks(state)
    safe = all(
        set("".join(marks(build(place, other, causal, padding)))) <= {"0", "1"}
        for other in SENTENCES
    )
    return {
        "queries": state.queries,
        "keys": state.keys,
        "mask": ["".join(map(str, row)) for row in _rows(state)],
        "marks": signs,
        "length": lengths(state.mask),
        "says": sentence(place, state.queries, state.keys, signs, safe),
        "code": _code(place, causal, padding),
    }


def _rows(state: State) -> list[list[int]]:
    return state.mask[0, 0].int().tolist()


def _code(place: str, causal: bool, padding: bool) -> str:
    """The switches in Python."""
    tokens = "tgt" if place == "tgt" else "src"
    parts = [f"padding_mask({tokens}, pad)"] * padding
    if causal:  # Across, the rows are five target words, the columns four.
        square = "causal_mask(5)[:, :4]"
        length = f"causal_mask({tokens}.shape[1])"
        parts.append(square if place == "cross" else length)
    return "mask = " + (" & ".join(parts) or "None  # all may attend")


def _tables(state: State) -> str:
    """Two panels: the mask as this course writes it, and the weights."""
    rows = zip(_rows(state), marks(state), strict=True)
    masks = [
        "".join(_cell(*cell) for cell in zip(*row, strict=True)) for row in rows
    ]
    pairs = zip(shares(state.mask), marks(state), strict=True)
    weights = [
        "".join(_share(*cell) for cell in zip(*row, strict=True))
        for row in pairs
    ]
    names, title = (state.keys, state.queries), "Weights, all scores equal"
    return (
        '<div class="panels">'
        + table("mask", "Mask: rows ask, columns answer", *names, masks)
        + table("weights", title, *names, weights)
        + "</div>"
    )


def _cell(seen: int, mark: str) -> str:
    kind, words = "seen" if seen else "masked", {"!": "leak", "?": "missing"}
    if mark not in words:
        return f'<td class="{kind}">{bool(seen)}</td>'
    sign = f'<b>{mark}<span class="unseen">{words[mark]}</span></b>'
    return f'<td class="{kind} {words[mark]}">{bool(seen)}{sign}</td>'


def _share(weight: float, mark: str) -> str:
    leak = " data-leak" if mark == "!" else ""
    return f"<td{leak} {heat(weight)}>{fixed(weight)}</td>"
