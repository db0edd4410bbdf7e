"""What runs through a trained model: the numbers that ``flow`` shows."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import NamedTuple

import torch
from torch import Tensor, nn

from companion.data.phrasebook import batch
from companion.data.vocabulary import Vocabulary
from companion.figures.kit.digits import Number, fixed, heat
from companion.figures.kit.tables import table
from companion.transformer import Transformer, shift_right

SHOWN = 4  # Of a vector, its first numbers: more do not fit a phone.
SOURCE = "src_embedding", "encoder_attention", "encoder_feed_forward", "memory"
SHARES = "encoder_attention", "self_attention", "cross_attention", "logits"
NAMES = {
    "src_embedding": "Source: embedding + position",
    "encoder_attention": "Encoder: self-attention",
    "encoder_feed_forward": "Encoder: feed-forward",
    "memory": "Memory",
    "tgt_embedding": "Target: embedding + position",
    "self_attention": "Decoder: masked self-attention",
    "cross_attention": "Decoder: cross-attention",
    "feed_forward": "Decoder: feed-forward",
    "logits": "Scores of the next token",
}


Trained = tuple[Transformer, Vocabulary, Vocabulary]
"""A model, the vocabulary of its source, and that of its target."""


class Run(NamedTuple):
    """One sentence in a trained model.

    Attributes:
        odds: The probability it gives each right token, ``<eos>`` last.
        tables: Part -> what the page shows of it.
    """

    odds: list[float]
    tables: dict[str, dict]


def run(trained: Trained, source: list[str], target: list[str]) -> Run:
    """Send a sentence through a trained model, and keep what each part gives.

    Raises:
        ValueError: a token is unknown, or the model by itself writes something
            else: then it has no such numbers in generating.
    """
    model, zh, en = trained
    src = batch([source], zh)
    answer = batch([target], en)[:, 1:]
    seen = passed(model, src, shift_right(answer, en.bos))
    said = seen["logits"].argmax(-1)
    if not torch.equal(said, answer[0]):
        raise ValueError(
            f"trained: expected a model that writes {' '.join(target)!r}, got "
            f"{' '.join(en.tokens[i] for i in said)!r}: train it for longer"
        )
    odds = seen["logits"].softmax(-1)[:, answer[0]]
    names = [zh.tokens[i] for i in src[0]], [en.tokens[i] for i in answer[0]]
    reads = [en.tokens[en.bos], *names[1][:-1]]
    width = model.config.d_model
    return Run(
        odds.diagonal().tolist(),
        _tables(seen | {"logits": odds}, names[0], reads, names[1], width),
    )


@torch.no_grad()
def passed(model: Transformer, src: Tensor, reads: Tensor) -> dict[str, Tensor]:
    """What each part gives for one sentence: vectors, weights, and logits.

    Attention and feed-forward are those of the last layer; weights are the mean
    of its heads.
    """
    was_training = model.training
    model.eval()
    with _watched(model) as seen:
        logits = model(src, reads)[0]
    maps = model.maps(src, reads)
    model.train(was_training)
    return {
        "src_embedding": seen["encoder"][0],
        "encoder_attention": maps.src[-1][0].mean(0),
        "encoder_feed_forward": seen["encoder_feed_forward"][1],
        "memory": seen["encoder"][1],
        "tgt_embedding": seen["decoder"][0],
        "self_attention": maps.tgt[-1][0].mean(0),
        "cross_attention": maps.cross[-1][0].mean(0),
        "feed_forward": seen["feed_forward"][1],
        "logits": logits,
    }


@contextmanager
def _watched(model: Transformer) -> Iterator[dict]:
    """What goes into some parts and comes out of them, by name."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def keep(name: str, part: nn.Module):
        def hook(_, inputs, output):
            seen[name] = inputs[0][0], output[0]

        return part.register_forward_hook(hook)

    encoder, decoder = model.encoder, model.decoder
    hooks = [
        keep("encoder", encoder),
        keep(
            "encoder_feed_forward",
            encoder.layers[-1].get_submodule("feed_forward"),
        ),
        keep("decoder", decoder),
        keep("feed_forward", decoder.layers[-1].get_submodule("feed_forward")),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _tables(
    seen: dict[str, Tensor],
    source: list[str],
    reads: list[str],
    answers: list[str],
    width: int,
) -> dict[str, dict]:
    """What the page shows of every part, by its name."""
    first = f"the first {SHOWN} of {width} numbers of each token"
    weights = "weights of the last layer, mean of its heads"
    chances = "as probabilities: of each right token, at each place"
    told = {
        "encoder_attention": (weights, source),
        "self_attention": (weights, reads),
        "cross_attention": (weights, source),
        "logits": (chances, answers),
    }
    vectors = first, [str(i + 1) for i in range(SHOWN)]
    return {
        part: _table(part, seen[part], *told.get(part, vectors))
        | {"rows": source if part in SOURCE else reads}
        for part in NAMES
    }


def _table(part: str, values: Tensor, what: str, columns: list[str]) -> dict:
    """Title, columns, values, and which of them a generating decoder has."""
    square = part == "self_attention"
    rows = rounded(values[:, : len(columns)])
    return {
        "title": f"{NAMES[part]}, {what}",
        "columns": columns,
        "values": [
            # Nobody looks at what is to come.
            [None if square and j > i else v for j, v in enumerate(row)]
            for i, row in enumerate(rows)
        ],
        "top": 1 if part in SHARES else max(abs(v) for r in rows for v in r),
        "reads": part not in SOURCE,
        "square": square,
    }


def rounded(values: Tensor) -> list[list[float]]:
    """Two places are shown; four are enough to round from."""
    return [[round(value, 4) for value in row] for row in values.tolist()]


def panel(run: Run, part: str) -> str:
    """Draw the table of one part, as the page shows it without scripts."""
    return f'<div><div class="numbers">{html(run, part)}</div></div>'


def html(run: Run, part: str) -> str:
    """Draw the table of one part; its class says what generating leaves out."""
    shown = run.tables[part]
    rows = [
        "".join(_cell(value, shown["top"]) for value in row)
        for row in shown["values"]
    ]
    kind = "numbers" + " reads" * shown["reads"] + " square" * shown["square"]
    names = shown["columns"], shown["rows"]
    return table(kind, escape(shown["title"]), *names, rows)


def _cell(value: float | None, top: Number) -> str:
    if value is None:
        return '<td class="masked">masked</td>'
    return f"<td {heat(value, top)}>{fixed(value)}</td>"


def loss(run: Run) -> str:
    """The sentence's loss, from its odds."""
    return fixed(sum(-math.log(p) for p in run.odds) / len(run.odds), 3)
