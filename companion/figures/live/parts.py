"""Live figures of chapters 04 to 06: heads, positions, masks."""

import ipywidgets as widgets
import torch
from torch import Tensor

from companion.figures.kit.digits import fixed, short
from companion.figures.kit.tables import table, tinted
from companion.figures.live.typed import words
from companion.figures.live.widget import Live, answered
from companion.masks import combine_masks, to_torch_padding
from companion.multihead import MultiHeadAttention
from companion.positions import rotate, sinusoids

SENTENCE = "the cat sat on the mat"
D_MODEL = 16
MOST = 12
SHOWN = 6  # So many dimensions of a position fit on a page.
LATER = 10
PAD = "_"


def try_heads() -> Live:
    """A sentence, heads and a seed; the maps of an untrained attention."""

    def answer(sentence: str, num_heads: int, seed: int) -> str:
        tokens = words("sentence", sentence, MOST)
        return _head_tables(tokens, _untrained_maps(tokens, num_heads, seed))

    return Live(
        answer,
        "run its cell to type a sentence and see where each head of an "
        "untrained attention looks.",
        sentence=widgets.Text(
            value=SENTENCE, description="sentence", continuous_update=False
        ),
        num_heads=widgets.Dropdown(
            options=[1, 2, 4, 8], value=4, description="heads"
        ),
        seed=widgets.IntSlider(value=0, max=20, description="seed"),
    )


def _untrained_maps(tokens: list[str], num_heads: int, seed: int) -> Tensor:
    """A map a head; equal words get equal vectors, and no position."""
    distinct = list(dict.fromkeys(tokens))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        vectors = torch.randn(len(distinct), D_MODEL)
        attention = MultiHeadAttention(D_MODEL, num_heads)
        x = vectors[[distinct.index(token) for token in tokens]]
        return attention.weights(x[None])[0]


def _head_tables(tokens: list[str], maps: Tensor) -> str:
    heads, last = len(maps), len(tokens) - 1
    looks = ", ".join(
        f"“{tokens[weights[last].argmax()]}” in head {number}"
        for number, weights in enumerate(maps, 1)
    )
    sentence = (
        f"{heads} {'head' if heads == 1 else 'heads'} of width "
        f"{D_MODEL // heads}, untrained. The last word, “{tokens[last]}”, "
        f"looks most at {looks}."
    )
    tables = (
        table(
            "head", f"Head {number}", tokens, tokens,
            [tinted(row) for row in weights],
        )
        for number, weights in enumerate(maps.tolist(), 1)
    )  # fmt: skip
    return answered(sentence, *tables, label="Heads")


def try_positions() -> Live:
    """Two positions and a width; what depends on their offset alone."""

    def answer(p: int, q: int, width: int) -> str:
        return _position_tables(p, q, width)

    return Live(
        answer,
        "run its cell to move two positions and see what depends on how far "
        "they are apart, and on nothing else.",
        p=widgets.IntSlider(value=3, max=100, description="p"),
        q=widgets.IntSlider(value=10, max=100, description="q"),
        width=widgets.IntSlider(
            value=16, min=4, max=128, step=2, description="width"
        ),
    )


def _position_tables(p: int, q: int, width: int) -> str:
    both = _encodings(p, q, width)
    # A pair is (sin, cos): turning it back by the offset moves it forward.
    turned = rotate(both[:1], torch.tensor([p - q]))
    off = (turned[0] - both[1]).abs().max().item()
    near = f"to within {short(off)}" if off else "exactly"
    encodings = [tinted(r[:SHOWN]) for r in torch.cat([both, turned]).tolist()]
    columns = [str(i) for i in range(min(SHOWN, width))]
    rows = [f"p = {p}", f"q = {q}", "p, turned"]
    return answered(
        f"Each pair of the encoding of {p}, turned by the offset {q - p}, "
        f"gives the encoding of {q}, {near}. Dot product and distance of the "
        f"two encodings are the same {LATER} positions later, and so is the "
        "product of a random query and key, turned as RoPE does.",
        table("encodings", "Encodings, first dimensions", columns, rows,
              encodings),
        _measures_table(p, q, width),
        label="Positions",
    )  # fmt: skip


def _measures_table(p: int, q: int, width: int) -> str:
    places = (p, q), (p + LATER, q + LATER)
    here, later = (_measures(*place, width) for place in places)
    rows = [
        f"<td>{fixed(here[what], 4)}</td><td>{fixed(later[what], 4)}</td>"
        for what in here
    ]
    heads = [f"{one}, {other}" for one, other in places]
    return table("measures", "Of the two positions", heads, list(here), rows)


def _encodings(p: int, q: int, width: int) -> Tensor:
    return sinusoids(torch.tensor([p, q]), width, dtype=torch.float64)


def _measures(p: int, q: int, width: int) -> dict[str, float]:
    """What sinusoids and rotations make of two positions."""
    one, other = _encodings(p, q, width)
    draw = torch.Generator().manual_seed(0)
    pair = torch.randn(2, width, generator=draw, dtype=torch.float64)
    query, key = rotate(pair, torch.tensor([p, q]))
    return {
        "dot product": (one @ other).item(),
        "distance": (one - other).norm().item(),
        "RoPE: q · k": (query @ key).item(),
    }


def try_masks() -> Live:
    """Two rows of tokens; the three masks of a Transformer."""

    def answer(src: str, tgt: str) -> str:
        return _mask_tables(words("src", src, MOST), words("tgt", tgt, MOST))

    fields = {"src": "我 爱 小 猫 _ _", "tgt": "<bos> I love cats _"}
    return Live(
        answer,
        "run its cell to type two rows of tokens, _ for padding, and see the "
        "three masks they need.",
        **{
            name: widgets.Text(
                value=value, description=name, continuous_update=False
            )
            for name, value in fields.items()
        },
    )


def _mask_tables(src: list[str], tgt: list[str]) -> str:
    masks = combine_masks(_ids(src), _ids(tgt), pad=0)
    hidden = to_torch_padding(masks.src)
    real = len(src) - src.count(PAD)
    sentence = (
        f"{real} of {len(src)} source tokens may be seen, by all queries of "
        "the encoder and of the cross-attention. In the target a row may see "
        "itself and what stands before it, and no padding. True = may attend, "
        "but for the last table: nn.MultiheadAttention hides what is True."
    )
    if not real:
        sentence += " With no source token to see, attention gives zeros."
    every = ["all"]
    return answered(
        sentence,
        table("mask", "src, for the encoder", src, every, _truth(masks.src)),
        table("mask", "tgt, for the decoder", tgt, tgt, _truth(masks.tgt)),
        table("mask", "cross", src, every, _truth(masks.cross)),
        table(
            "mask", "src as key_padding_mask", src, every, _truth(hidden)
        ),
        label="Masks",
    )  # fmt: skip


def _ids(tokens: list[str]) -> Tensor:
    return torch.tensor([[int(token != PAD) for token in tokens]])


def _truth(mask: Tensor) -> list[str]:
    """Rows of cells; what is True is tinted."""
    return [
        "".join(
            f'<td class="plus" style="--heat: {40 * value}%">{value}</td>'
            for value in row
        )
        for row in mask.reshape(-1, mask.shape[-1]).tolist()
    ]
