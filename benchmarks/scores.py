"""How good a trained model is: exact match, BLEU, validation loss."""

from collections import Counter
from math import log
from typing import NamedTuple

import sacrebleu
import torch

from companion import decoding
from companion.data.batches import collate, cut
from companion.data.corpora import shakespeare
from companion.training import Objective, Trained, corpus, make_task

__all__ = [
    "Score",
    "bleu",
    "counted_loss",
    "counted_losses",
    "exact_match",
    "validation_loss",
]

TOKENS = 8192
"""Source ids that are translated side by side."""


class Score(NamedTuple):
    """A number, and what exactly it was measured over."""

    value: float
    over: str


def exact_match(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Count the per cent of test sentences that come out as their reference."""
    got, expected = _translations(trained, beam, alpha)
    right = sum(a == b for a, b in zip(got, expected, strict=True))
    return Score(100 * right / len(got), f"{len(got)} unseen sentences")


def bleu(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Compute the corpus BLEU of the test part, by sacreBLEU.

    Multi30k comes in tokens, which are compared as they are, as the published
    numbers are. Other text is cut by sacreBLEU's own rules.
    """
    got, expected = _translations(trained, beam, alpha)
    in_tokens = trained.config.data == "multi30k"
    metric = sacrebleu.BLEU(
        tokenize="none" if in_tokens else "13a", force=in_tokens
    )
    found = metric.corpus_score(got, [expected])
    return Score(found.score, f"{len(got)} sentences, {metric.get_signature()}")


def validation_loss(trained: Trained, **_: object) -> Score:
    """Compute nats a token over the whole validation part."""
    device = _device(trained)
    objective = Objective(trained.model).eval()
    codecs = trained.src_codec, trained.tgt_codec
    total = tokens = 0
    with torch.no_grad():
        for batch in make_task(trained.config, codecs).validation:
            loss, count = objective(*(part.to(device) for part in batch))
            total, tokens = total + float(loss), tokens + count
    return Score(total / tokens, f"{tokens} tokens")


def counted_losses() -> str:
    """Measure what counting how often characters follow each other reaches."""
    text = shakespeare()
    losses = (counted_loss(*text, context=n) for n in range(4))
    listed = ", ".join(f"{loss:.2f}" for loss in losses)
    return f"counts of runs of 1, 2, 3, 4 characters: {listed}"


def counted_loss(train: str, valid: str, *, context: int) -> float:
    """Compute nats a character of ``valid`` behind the first ``context``.

    A character's probability is how often it came in ``train`` after the same
    ``context`` characters, each count plus one.
    """
    known = len(set(train))
    whole, contexts = _grams(train, context + 1), _grams(train[:-1], context)
    asked = _grams(valid, context + 1)
    total = sum(
        times * log((contexts[gram[:-1]] + known) / (whole[gram] + 1))
        for gram, times in asked.items()
    )
    return total / asked.total()


def _grams(text: str, size: int) -> Counter:
    return Counter(text[i : i + size] for i in range(len(text) - size + 1))


def _translations(
    trained: Trained, beam: int, alpha: float
) -> tuple[list[str], list[str]]:
    """Translate all test sentences; also return their references."""
    test = corpus(trained.config).test
    codec, longest = trained.src_codec, trained.config.max_len
    rows = [[codec.bos, *codec.encode(s), codec.eos] for s, _ in test]
    got: list[str] = [""] * len(rows)
    lengths = [len(row) for row in rows]
    for indices in cut(lengths, max(TOKENS, *lengths)):
        src = collate([rows[i] for i in indices]).to(_device(trained))
        translated = decoding.translate(
            trained.model, src, max_len=longest, beam=beam, alpha=alpha
        )
        for index, ids in zip(indices, translated, strict=True):
            got[index] = trained.tgt_codec.decode(ids)
    return got, [expected for _, expected in test]


def _device(trained: Trained) -> torch.device:
    return next(trained.model.parameters()).device
