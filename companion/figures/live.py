"""Figures for people with a kernel: they run the package itself.

A stored notebook keeps only the sentence that says so. What is used of
ipywidgets is the same in versions 7.7 and 8.
"""

from collections.abc import Callable
from html import escape

import ipywidgets as widgets
import matplotlib.pyplot as plt
import torch
from torch import Tensor

from companion.attention import (
    attention_weights,
    scaled_dot_product_attention,
)
from companion.data.phrasebook import batch
from companion.figures.digits import lowered
from companion.figures.grids import largest
from companion.figures.inline import inline
from companion.figures.picture import plot, style
from companion.figures.tables import table, tinted
from companion.figures.unrolled import GAINS, small_rnn
from companion.rnn import gradient_to_inputs

VIEW = "application/vnd.jupyter.widget-view+json"
LONGEST = 60


class Live:
    """Widgets that a kernel answers, and a sentence for where none does.

    Attributes:
        controls: What the reader changes, by name.
        page: Where the answer appears.
    """

    def __init__(self, answer: Callable[..., str], purpose: str, **controls):
        self.controls = controls
        self.page = widgets.HTML()
        self._answer = answer
        self._fallback = f"This figure needs a kernel: {purpose}"
        row = widgets.Box(
            list(controls.values()), layout=widgets.Layout(flex_flow="row wrap")
        )
        self._box = widgets.VBox([row, self.page])
        for control in controls.values():
            control.observe(self._refresh, names="value")
        self._refresh()

    def _refresh(self, change=None):
        values = {name: c.value for name, c in self.controls.items()}
        try:
            self.page.value = self._answer(**values)
        except (ValueError, TypeError) as problem:
            self.page.value = _note(str(problem), role="alert")

    def _repr_mimebundle_(self, include=None, exclude=None):
        view = {"version_major": 2, "version_minor": 0}
        return {
            VIEW: view | {"model_id": self._box.model_id},
            "text/html": _note(self._fallback, role="note"),
            "text/plain": self._fallback,
        }


def try_gradients() -> Live:
    """Sliders for the gain and the length of an RNN; autograd answers."""

    def answer(gain: float, length: int) -> str:
        x, h0, W, U, b = small_rnn(length)
        norms = gradient_to_inputs(x, h0, W, gain * U, b).tolist()
        return _gradient_plot(norms, gain)

    return Live(
        answer,
        "run its cell to move the gain and the length of an RNN and see how "
        "much of its last state each input still moves.",
        gain=widgets.FloatSlider(
            value=0.8, description="gain", continuous_update=False, **GAINS
        ),
        length=widgets.IntSlider(
            value=20,
            min=2,
            max=LONGEST,
            description="length",
            continuous_update=False,
        ),
    )


def type_a_sentence(model, src_vocab, tgt_vocab, start="我爱小猫") -> Live:
    """A field for a Chinese sentence; the trained model translates it.

    Args:
        model: A ``Seq2Seq`` whose context comes from attention.
        src_vocab: The ``Vocabulary`` of the source, one character a token.
        tgt_vocab: The ``Vocabulary`` of the target.
        start: The sentence that stands in the field at first.
    """

    def answer(sentence: str) -> str:
        characters = list("".join(sentence.split()))
        if not characters:
            return _note("Type a Chinese sentence.", role="note")
        return _translation(model, src_vocab, tgt_vocab, characters)

    return Live(
        answer,
        "run its cell to type a Chinese sentence and watch the trained model "
        "translate and align it.",
        sentence=widgets.Text(
            value=start, description="中文", continuous_update=False
        ),
    )


def try_attention(q="1 0\n0 1\n1 1", k="1 0\n0 1", v="1 2 3\n4 5 6") -> Live:
    """Fields for queries, keys and values; the package attends.

    Each field holds a matrix: a row a line, numbers apart by spaces.
    """

    def answer(q: str, k: str, v: str, scaled: bool) -> str:
        scale = None if scaled else 1.0
        q, k, v = _matrix("q", q), _matrix("k", k), _matrix("v", v)
        weights = attention_weights(q, k, scale=scale).tolist()
        output = scaled_dot_product_attention(q, k, v, scale=scale).tolist()
        return _attention_tables(weights, output)

    fields = {
        name: widgets.Textarea(value=value, description=name, rows=4)
        for name, value in {"q": q, "k": k, "v": v}.items()
    }
    return Live(
        answer,
        "run its cell to type your own q, k and v and see the weights and the "
        "output the package computes.",
        **fields,
        scaled=widgets.Checkbox(value=True, description="divide by √dₖ"),
    )


def _note(text: str, *, role: str) -> str:
    body = f'<p role="{role}">{escape(text)}</p>'
    red = ".companion-live [role=alert] { color: var(--bad); }"
    return inline("live", body=body, label="Live figure", style=red)


def _gradient_plot(norms: list[float], gain: float) -> str:
    last = lowered("h", len(norms))
    with style():
        figure, ax = plt.subplots()
        ax.plot(range(1, len(norms) + 1), norms, marker="o", markersize=4)
        ax.set(yscale="log", xlabel="t", ylabel=f"‖∂{last}/∂xₜ‖")
    return plot(
        figure,
        caption=f"Gain {gain:.2f}: {norms[0]:.3g} at the first input, "
        f"{norms[-1]:.3g} at the last.",
        alt=f"How strongly each of {len(norms)} inputs reaches {last}.",
    ).html


@torch.no_grad()
def _translation(model, src_vocab, tgt_vocab, characters: list[str]) -> str:
    src = batch([characters], src_vocab)
    src = src.to(next(model.parameters()).device)
    ids = model.translate(src, max_len=3 * len(characters) + 5)
    words = tgt_vocab.decode(ids[0].tolist())
    # Each word is written from those before it, and the end from all of them.
    tgt_in = torch.tensor([[tgt_vocab.bos, *tgt_vocab.encode(words)]])
    weights = model.align(src, tgt_in.to(src.device))[0].tolist()
    names = [src_vocab.tokens[i] for i in src[0].tolist()]
    rows = [tinted(row) for row in weights]
    grid = table("grid", "Weights α", names, [*words, "<eos>"], rows)
    sentence = f'<p class="says" role="status">{escape(" ".join(words))}</p>'
    return inline("live", body=sentence + grid, label="Translation")


def _matrix(name: str, text: str) -> Tensor:
    """A matrix as somebody typed it."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [
        [_number(f"{name}, row {i}", part) for part in _parts(line)]
        for i, line in enumerate(lines, 1)
    ]
    if len({len(row) for row in rows}) != 1:
        lengths = ", ".join(str(len(row)) for row in rows) or "no rows"
        raise ValueError(f"{name}: expected rows of one length, got {lengths}")
    return torch.tensor(rows)


def _parts(line: str) -> list[str]:
    return line.replace(",", " ").split()


def _number(place: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{place}: {text!r} is not a number") from None
    if abs(value) > 1000 or value != value:
        raise ValueError(f"{place}: {text!r} is not between -1000 and 1000")
    return value


def _attention_tables(weights, output) -> str:
    queries = [lowered("q", i) for i in range(1, len(weights) + 1)]
    keys = [lowered("k", i) for i in range(1, len(weights[0]) + 1)]
    parts = [str(i) for i in range(1, len(output[0]) + 1)]
    shares = [tinted(row) for row in weights]
    sums = [tinted(row, largest(output)) for row in output]
    tables = table("weights", "Weights", keys, queries, shares) + table(
        "output", "Output", parts, queries, sums
    )
    return inline("live", body=tables, label="Attention")
