"""How good a trained model is: exact match, BLEU, validation loss."""

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import NamedTuple

import numpy as np
import sacrebleu
import torch

from companion import decoding
from companion.data.batches import collate, cut
from companion.data.corpora import shakespeare
from companion.training import Objective, Trained, corpus, make_task

__all__ = [
    "Score",
    "bleu",
    "bleu_interval",
    "bleu_of",
    "counted_loss",
    "counted_losses",
    "exact_match",
    "validation_loss",
]

TOKENS = 8192
"""Source ids that are translated side by side."""
RESAMPLED = 1000
"""How often an interval draws sentences anew."""


class Score(NamedTuple):
    """A number, and what exactly it was measured over."""

    value: float
    over: str
    interval: tuple[float, float] | None = None
    """Where 95 of 100 test parts of such sentences would put the number."""


def exact_match(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Count the per cent of test sentences that come out as their reference."""
    test = corpus(trained.config).test
    got, expected = _translations(trained, test, beam, alpha)
    right = sum(a == b for a, b in zip(got, expected, strict=True))
    return Score(100 * right / len(got), f"{len(got)} unseen sentences")


def bleu(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Compute the corpus BLEU of the test part, by sacreBLEU.

    Multi30k comes in tokens, which are compared as they are, as the published
    numbers are. Other text is cut by sacreBLEU's own rules.
    """
    test = corpus(trained.config).test
    return bleu_of(trained, test, beam=beam, alpha=alpha)


def bleu_of(
    trained: Trained,
    pairs: Sequence[tuple[str, str]],
    *,
    beam: int,
    alpha: float,
) -> Score:
    """Compute the corpus BLEU of some pairs (source, reference)."""
    got, expected = _translations(trained, pairs, beam, alpha)
    in_tokens = trained.config.data == "multi30k"
    metric = sacrebleu.BLEU(
        tokenize="none" if in_tokens else "13a", force=in_tokens
    )
    found = metric.corpus_score(got, [expected])
    return Score(
        found.score,
        f"{len(got)} sentences, {metric.get_signature()}",
        bleu_interval(metric, got, expected),
    )


def bleu_interval(
    metric: sacrebleu.BLEU, got: list[str], expected: list[str]
) -> tuple[float, float]:
    """Compute 95 per cent of the BLEU of resampled sentences (Koehn 2004).

    Sentences are drawn with replacement, as many as there are, 1000 times, with
    the same random numbers each time.
    """
    # A sentence's own score is not looked at, only what its n-grams count.
    counter = sacrebleu.BLEU(
        tokenize=metric.tokenizer.signature(),
        effective_order=True,
        force=True,
    )
    rows = []
    for one, reference in zip(got, expected, strict=True):
        found = counter.sentence_score(one, [reference])
        lengths = found.sys_len, found.ref_len
        rows.append([*found.counts, *found.totals, *lengths])
    counts, rng = np.array(rows), np.random.default_rng(0)
    scores = []
    for _ in range(RESAMPLED):
        total = counts[rng.integers(len(counts), size=len(counts))].sum(0)
        *grams, length, wanted = total.tolist()
        half = len(grams) // 2
        scores.append(
            sacrebleu.BLEU.compute_bleu(
                grams[:half], grams[half:], length, wanted
            ).score
        )
    low, high = np.percentile(scores, [2.5, 97.5]).tolist()
    return low, high


def validation_loss(trained: Trained, **_: object) -> Score:
    """Compute nats a token over the whole validation part."""
    device = _device(trained)
    objective = Objective(trained.model).eval()
    codecs = trained.src_codec, trained.tgt_codec
    total = tokens = 0
    with torch.no_grad():
        for batch in make_task(trained.config, codecs).validation:
            loss, count = objective(*(part.to(device) for part in batch))
            total, tokens = total + float(loss), tokens + int(count)
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
    trained: Trained,
    pairs: Sequence[tuple[str, str]],
    beam: int,
    alpha: float,
) -> tuple[list[str], list[str]]:
    """Translate the sources of some pairs; also return their references."""
    codec, longest = trained.src_codec, trained.config.max_len
    rows = [[codec.bos, *codec.encode(s), codec.eos] for s, _ in pairs]
    got: list[str] = [""] * len(rows)
    lengths = [len(row) for row in rows]
    for indices in cut(lengths, max(TOKENS, *lengths)):
        src = collate([rows[i] for i in indices]).to(_device(trained))
        translated = decoding.translate(
            trained.model, src, max_len=longest, beam=beam, alpha=alpha
        )
        for index, ids in zip(indices, translated, strict=True):
            got[index] = trained.tgt_codec.decode(ids)
    return got, [expected for _, expected in pairs]


def _device(trained: Trained) -> torch.device:
    return next(trained.model.parameters()).device
