"""Live figures of chapters 01 to 03: an RNN, a translator, attention."""

from html import escape

import ipywidgets as widgets
import matplotlib.pyplot as plt
import torch

from companion.attention import (
    attention_weights,
    scaled_dot_product_attention,
)
from companion.data.phrasebook import batch
from companion.figures.gallery.unrolled_rnn import GAINS, small_rnn
from companion.figures.kit.digits import lowered
from companion.figures.kit.inline import inline
from companion.figures.kit.picture import plot, style
from companion.figures.kit.tables import largest, table, tinted
from companion.figures.live.typed import matrix
from companion.figures.live.widget import Live, note
from companion.rnn import gradient_to_inputs

LONGEST = 60


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
            return note("Type a Chinese sentence.", role="note")
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
        queries, keys = matrix("q", q), matrix("k", k)
        weights = attention_weights(queries, keys, scale=scale).tolist()
        output = scaled_dot_product_attention(
            queries, keys, matrix("v", v), scale=scale
        ).tolist()
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
