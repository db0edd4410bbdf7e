"""What a trained model is worth: exact match, BLEU, validation loss."""

from typing import NamedTuple

import sacrebleu
import torch

from companion import decoding
from companion.data.batches import collate, cut
from companion.training import Trained
from companion.training.steps import Objective
from companion.training.tasks import corpus, make_task

TOKENS = 8192
"""Source ids that are translated side by side."""


class Score(NamedTuple):
    """A number, and what exactly it is a number of."""

    value: float
    over: str


def exact_match(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Per cent of test sentences that come out as their reference, exactly."""
    said, wanted = _answers(trained, beam, alpha)
    right = sum(a == b for a, b in zip(said, wanted, strict=True))
    return Score(100 * right / len(said), f"{len(said)} unseen sentences")


def bleu(trained: Trained, *, beam: int, alpha: float) -> Score:
    """Corpus BLEU of the test part, by sacreBLEU.

    Multi30k comes in tokens, which are compared as they are, as the published
    numbers are. Other text is cut by sacreBLEU's own rules.
    """
    said, wanted = _answers(trained, beam, alpha)
    in_tokens = trained.config.data == "multi30k"
    metric = sacrebleu.BLEU(
        tokenize="none" if in_tokens else "13a", force=in_tokens
    )
    found = metric.corpus_score(said, [wanted])
    return Score(
        found.score, f"{len(said)} sentences, {metric.get_signature()}"
    )


def validation_loss(trained: Trained, **_: object) -> Score:
    """Nats a token over the whole validation part."""
    device = _device(trained)
    objective = Objective(trained.model).eval()
    codecs = trained.src_codec, trained.tgt_codec
    total = tokens = 0
    with torch.no_grad():
        for batch in make_task(trained.config, codecs).validation:
            loss, count = objective(*(part.to(device) for part in batch))
            total, tokens = total + float(loss), tokens + count
    return Score(total / tokens, f"{tokens} tokens")


def _answers(
    trained: Trained, beam: int, alpha: float
) -> tuple[list[str], list[str]]:
    """What the model says to each test sentence, and what it should."""
    test = corpus(trained.config).test
    codec, longest = trained.src_codec, trained.config.max_len
    rows = [[codec.bos, *codec.encode(s), codec.eos] for s, _ in test]
    said: list[str] = [""] * len(rows)
    lengths = [len(row) for row in rows]
    for places in cut(lengths, max(TOKENS, *lengths)):
        src = collate([rows[i] for i in places]).to(_device(trained))
        answers = decoding.translate(
            trained.model, src, max_len=longest, beam=beam, alpha=alpha
        )
        for place, ids in zip(places, answers, strict=True):
            said[place] = trained.tgt_codec.decode(ids)
    return said, [wanted for _, wanted in test]


def _device(trained: Trained) -> torch.device:
    return next(trained.model.parameters()).device
