"""Beam search for many sentences at once.

Words for axes, the same in the book, the code and the tests:
    sentence  sources that are still being translated
    beam      rows that each sentence has, side by side
    row       sentence · beam, the beams of a sentence next to each other
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.data.vocabulary import Vocabulary
from companion.decoding.cache import StepDecoder
from companion.decoding.search import length_penalty

__all__ = ["Beams", "search_beams"]

BOS, EOS = Vocabulary.bos, Vocabulary.eos


def search_beams(
    decoder: StepDecoder,
    src: Int[Tensor, "sentence src"],
    *,
    pad: int,
    max_len: int,
    beam: int,
    alpha: int | float,
) -> list[list[int]]:
    """Search with ``beam_search`` for each sentence of ``src``, side by side.

    Args:
        decoder: What scores the next tokens, of ``beam`` rows a sentence.
        src: Ids of the sources.
        pad: What is never written.
        max_len: The most tokens a sentence gets.
        beam: Hypotheses of each sentence.
        alpha: As in ``length_penalty``.

    Returns:
        Ids after bos of each sentence, with eos if it was reached.
    """
    beams = Beams(src, beam, max_len, alpha)
    tokens = torch.full_like(beams.rows, BOS)
    for _ in range(max_len):
        logits = decoder.step(tokens)
        logits[:, pad] = -torch.inf
        rows, tokens = beams.extend(logits)
        going = beams.open().nonzero().squeeze(1)
        if len(going) == 0:
            break
        if 2 * len(going) <= len(beams.sentences):
            mine = beams.keep(going)
            tokens = tokens[mine]
            decoder.keep(going, rows[mine])
        else:
            decoder.reorder(rows)
    return beams.best()


class Beams:
    """What the sentences of a batch have so far: live rows and the best end."""

    def __init__(
        self,
        src: Int[Tensor, "sentence src"],
        beam: int,
        max_len: int,
        alpha: int | float,
    ):
        self.max_len, self.alpha = max_len, alpha
        self.sentences = torch.arange(len(src), device=src.device)
        self.rows = torch.arange(len(src) * beam, device=src.device)
        self.said = src.new_empty(len(self.rows), 0)
        # At first all rows of a sentence are alike, so only one may live.
        first = self.rows.view(-1, beam) % beam == 0
        self.sums = torch.zeros_like(first, dtype=torch.float32)
        self.sums.masked_fill_(~first, -torch.inf)
        self.width = torch.full_like(self.sentences, beam)
        self.scores = torch.full_like(self.sums[:, 0], -torch.inf)
        # Of all sentences, also of those that are no longer translated.
        self.found = src.new_empty(len(src), 0)
        self.lengths = torch.zeros_like(self.sentences)

    def extend(
        self, logits: Float[Tensor, "row vocab"]
    ) -> tuple[Int[Tensor, " row"], Int[Tensor, " row"]]:
        """For each new row, the row that it continues, and its new token."""
        beam = self.sums.shape[1]
        wide = torch.promote_types(logits.dtype, torch.float32)
        # No row can give more than ``beam`` of the best, and to look at those
        # takes less than to add a sum to every logit.
        best = logits.topk(min(beam, logits.shape[-1]))
        norms = logits.to(wide).logsumexp(-1, keepdim=True)
        totals = best.values - norms + self.sums.view(-1, 1)
        sums, places = totals.view(len(self.sums), -1).topk(beam)
        ranks, each = self.rows[:beam], best.values.shape[1]
        first = self.rows[: len(logits) : beam].unsqueeze(1)
        rows = (first + places // each).flatten()
        tokens = best.indices.view(len(self.sums), -1).gather(1, places)
        self.said = torch.cat([self.said[rows], tokens.view(-1, 1)], dim=1)
        sums = sums.masked_fill(ranks >= self.width.unsqueeze(1), -torch.inf)
        ends = (tokens == EOS) & (sums > -torch.inf)
        self._note(sums.masked_fill(~ends, -torch.inf))
        self.width = self.width - ends.sum(1)
        self.sums = sums.masked_fill(ends, -torch.inf)
        return rows, tokens.flatten()

    def open(self) -> Bool[Tensor, " sentence"]:
        """Which sentences could still find something better than they have.

        A sum only falls, and no penalty divides by more than the longest one:
        what cannot win even so need not be written.
        """
        most = length_penalty(self.max_len, self.alpha)
        return self.sums.amax(1) / most > self.scores

    def keep(self, kept: Int[Tensor, " kept"]) -> Int[Tensor, " kept_row"]:
        """Forgets the other sentences; the rows of the kept ones."""
        beam = self.sums.shape[1]
        mine = (kept.unsqueeze(1) * beam + self.rows[:beam]).flatten()
        self.said = self.said[mine]
        for name in ("sentences", "sums", "width", "scores"):
            setattr(self, name, getattr(self, name)[kept])
        return mine

    def best(self) -> list[list[int]]:
        """The best of each sentence; what was cut competes as it is."""
        self._note(self.sums)
        found, lengths = self.found.tolist(), self.lengths.tolist()
        return [row[:n] for row, n in zip(found, lengths, strict=True)]

    def _note(self, sums: Float[Tensor, "sentence beam"]) -> None:
        """Remembers the best of these, if it beats what the sentence had.

        Where all is computed and nothing is looked at: an accelerator is not
        waited for.
        """
        length = self.said.shape[1]
        scores, ranks = (sums / length_penalty(length, self.alpha)).max(1)
        better = scores > self.scores
        self.scores = torch.where(better, scores, self.scores)
        rows = self.said.view(*sums.shape, length)
        said = rows[self.rows[: len(ranks)], ranks]
        now, missing = self.sentences, length - self.found.shape[1]
        self.found = nn.functional.pad(self.found, (0, missing))
        self.found[now] = torch.where(
            better.unsqueeze(1), said, self.found[now]
        )
        self.lengths[now] = torch.where(better, length, self.lengths[now])
