"""Encoder and decoder, and what the decoder is told of the source.

Words for axes, the same in the book, the code and the tests:
    batch      sentences worked on together
    src        positions of the source
    tgt        positions of the target
    seq        positions that are looked at
    vocab      tokens of the target language
    d          width of what asks and of what is looked at
    hidden     width of a recurrent network's memory
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.checks import check_ids, check_vectors, check_words_first

# Part of this chapter, in a module of its own.
from companion.costs import macs, path_length, serial_steps  # noqa: F401
from companion.data.vocabulary import Vocabulary
from companion.rnn import LSTM, Memory

CONTEXTS = ("once", "each", "additive", "dot")
Source = Int[Tensor, "batch src"]
Target = Int[Tensor, "batch tgt"]
Weights = Float[Tensor, "batch seq"]
Mask = Bool[Tensor, "batch seq"]
Alpha = Float[Tensor, "batch src"]
State = tuple[Memory, Memory]


def share_out(scores: Weights, mask: Mask | None) -> Weights:
    """Compute the softmax of scores over the positions that may be looked at.

    Args:
        scores: One score a position.
        mask: Where one may look: True = may.

    Returns:
        Weights that sum to 1.

    Example:
        >>> share_out(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    if mask is not None:
        _check_mask(mask, scores)
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1)


def dot_alignment(
    query: Float[Tensor, "batch d"],
    keys: Float[Tensor, "batch seq d"],
    mask: Mask | None = None,
) -> Weights:
    """How much to look at each key: the softmax of q · k.

    "Dot" in Luong et al. (2015). True in ``mask`` = may be looked at.

    Raises:
        TypeError: ``mask`` is not boolean, or number types differ.
        ValueError: a shape does not fit, or ``mask`` leaves somebody nothing.
    """
    check_vectors("keys", keys, keys, batch=None, seq=None, d=None)
    check_vectors("query", query, keys, batch=len(keys), d=keys.shape[-1])
    return share_out((keys @ query.unsqueeze(-1)).squeeze(-1), mask)


class AdditiveAlignment(nn.Module):
    """Score each key by v · tanh(W q + U k), and share the attention out.

    Bahdanau et al. (2015), appendix A.1.2: the query is the decoder's state
    before this step, the keys are the encoder's states.

    Args:
        d_query: Width of a query.
        d_key: Width of a key.
        d_hidden: Width of the layer between.

    Example:
        >>> align = AdditiveAlignment(d_query=3, d_key=5, d_hidden=7)
        >>> weights = align(torch.zeros(1, 3), torch.zeros(1, 4, 5))
        >>> weights.shape, round(weights.sum().item(), 4)
        (torch.Size([1, 4]), 1.0)
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.W = nn.Linear(d_query, d_hidden, bias=False)
        self.U = nn.Linear(d_key, d_hidden, bias=False)
        self.v = nn.Linear(d_hidden, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "batch d_query"],
        keys: Float[Tensor, "batch seq d_key"],
        mask: Mask | None = None,
    ) -> Weights:
        """True in ``mask`` = may be looked at; raises what dot does."""
        W, U = self.W.weight, self.U.weight
        check_vectors("keys", keys, U, batch=None, seq=None, d_key=U.shape[1])
        check_vectors("query", query, W, batch=len(keys), d_query=W.shape[1])
        both = torch.tanh(self.W(query).unsqueeze(1) + self.U(keys))
        return share_out(self.v(both).squeeze(-1), mask)


class Encoded(NamedTuple):
    """A source that was read.

    Attributes:
        states: h_1 … h_T; behind the last word of a sentence h_T is repeated.
        last: C, the LSTM's whole memory after the last word: h_T and c_T.
        mask: Where the words are.
    """

    states: Float[Tensor, "batch src hidden"]
    last: State
    mask: Bool[Tensor, "batch src"]


class Seq2Seq(nn.Module):
    """One LSTM reads the source, another writes the target.

    The decoder starts from the encoder's last memory, its output h_T and its
    cell c_T. The kinds of ``context`` differ only in what the decoder is told
    at each step, to read with the word before and to say the next word with:

    - ``"once"``: nothing more;
    - ``"each"``: h_T again;
    - ``"additive"``, ``"dot"``: C_i = Σ_j α_ij h_j, where α_i aligns its state
      s_{i-1} with h_1 … h_T; with ``"dot"`` a matrix turns s_{i-1} first
      ("general" in Luong et al., 2015).

    The forget gates start at a bias of 1, so that a memory lasts from the first
    update on (Jozefowicz et al., 2015).

    Raises:
        ValueError: ``context`` is none of the four.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        d_model: int,
        hidden: int,
        context: str = "once",
    ):
        if context not in CONTEXTS:
            raise ValueError(f"context: {context!r} is none of {CONTEXTS}")
        super().__init__()
        self.context = context
        self.src_embedding = nn.Embedding(src_vocab_size, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, d_model)
        self.encoder = LSTM(d_model, hidden)
        told = 0 if context == "once" else hidden
        self.decoder = LSTM(d_model + told, hidden)
        for lstm in (self.encoder, self.decoder):
            nn.init.ones_(lstm.b.data[hidden : 2 * hidden])
        self.generator = nn.Linear(hidden + told, tgt_vocab_size)
        if context == "additive":
            self.alignment = AdditiveAlignment(hidden, hidden, hidden)
        elif context == "dot":
            self.turn = nn.Linear(hidden, hidden, bias=False)

    def encode(self, src: Source) -> Encoded:
        """Reads the source; how far it is padded changes nothing."""
        check_ids("src", src, self.src_embedding.num_embeddings, axes=2)
        mask = check_words_first("src", src != Vocabulary.pad)
        words = self.src_embedding(src)
        h = c = words.new_zeros(len(src), self.encoder.U.shape[1])
        states = []
        for word, going_on in zip(
            words.split(1, dim=1), mask.split(1, dim=1), strict=True
        ):
            _, (new_h, new_c) = self.encoder(word, (h, c))
            # A sentence that has ended keeps its memory.
            h = torch.where(going_on, new_h, h)
            c = torch.where(going_on, new_c, c)
            states.append(h)
        return Encoded(torch.stack(states, dim=1), (h, c), mask)

    def look(self, s: Memory, source: Encoded) -> tuple[Tensor, Alpha | None]:
        """What the decoder is told now, and the α_i that it comes from."""
        if self.context == "once":
            return s[:, :0], None  # A vector of no width: nothing.
        if self.context == "each":
            return source.last[0], None
        if self.context == "additive":
            weights = self.alignment(s, source.states, source.mask)
        else:
            weights = dot_alignment(self.turn(s), source.states, source.mask)
        return (weights.unsqueeze(1) @ source.states).squeeze(1), weights

    def step(
        self, word: Float[Tensor, "batch d"], state: State, source: Encoded
    ) -> tuple[State, Float[Tensor, "batch output"], Alpha | None]:
        """Reads a word: the new state, what the generator reads, and α_i."""
        told, weights = self.look(state[0], source)
        read = torch.cat([word, told], dim=-1).unsqueeze(1)
        _, state = self.decoder(read, state)
        return state, torch.cat([state[0], told], dim=-1), weights

    def walk(self, src: Source, tgt_in: Target) -> Iterator[tuple]:
        """What the generator reads, and α_i, position by position."""
        check_ids("tgt_in", tgt_in, self.tgt_embedding.num_embeddings, axes=2)
        source = self.encode(src)
        if (got := len(tgt_in)) != (n := len(src)):
            raise ValueError(f"tgt_in: expected {n} sentences, got {got}")
        state = source.last
        for word in self.tgt_embedding(tgt_in).unbind(dim=1):
            state, output, weights = self.step(word, state, source)
            yield output, weights

    def forward(
        self, src: Source, tgt_in: Target
    ) -> Float[Tensor, "batch tgt vocab"]:
        """Logits of the word after each word of ``tgt_in``.

        Raises:
            TypeError, ValueError: ``src`` or ``tgt_in`` are not ids of equally
                many sentences with words.
        """
        outputs = [output for output, _ in self.walk(src, tgt_in)]
        return self.generator(torch.stack(outputs, dim=1))

    def align(
        self, src: Source, tgt_in: Target
    ) -> Float[Tensor, "batch tgt src"]:
        """α: row i says where the decoder looks before it writes word i.

        Raises:
            ValueError: the context is the same for every word, and as forward.
        """
        if self.context in ("once", "each"):
            raise ValueError(f"context {self.context!r} has no alignment")
        return torch.stack([alpha for _, alpha in self.walk(src, tgt_in)], 1)

    @torch.no_grad()
    def translate(self, src: Source, max_len: int) -> Target:
        """The likeliest word at each of ``max_len`` steps, and pad after eos.

        Raises:
            TypeError, ValueError: as ``forward``, or ``max_len`` is below 1.
        """
        if max_len < 1:
            raise ValueError(f"max_len: expected at least 1, got {max_len}")
        source = self.encode(src)
        state = source.last
        ids = torch.full_like(src[:, 0], Vocabulary.bos)
        done, words = torch.zeros_like(ids, dtype=torch.bool), []
        for _ in range(max_len):
            state, output, _ = self.step(self.tgt_embedding(ids), state, source)
            ids = self.generator(output).argmax(dim=-1)
            ids = ids.masked_fill(done, Vocabulary.pad)
            done = done | (ids == Vocabulary.eos)
            words.append(ids)
        return torch.stack(words, dim=1)


def fit(
    model: Seq2Seq, batches: Sequence[tuple[Source, Target]], lr: float = 0.01
) -> list[float]:
    """Train the model on each batch once.

    Each target begins with bos. The decoder reads its words and is asked for
    the next one (teacher forcing), but not for pad. The optimiser is Adam, and
    its rate ``lr`` falls to 0 over the second half.

    Args:
        model: What learns.
        batches: Pairs (source, target) of token ids.
        lr: The learning rate of the first half.

    Returns:
        The loss of each batch, in nats a word.

    Example:
        >>> model = Seq2Seq(7, 7, d_model=3, hidden=5)
        >>> batch = (torch.tensor([[3, 4]]), torch.tensor([[1, 5, 2]]))
        >>> len(fit(model, [batch] * 11))
        11
    """
    adam = torch.optim.Adam(model.parameters(), lr)
    losses = []
    for i, (src, tgt) in enumerate(batches):
        adam.param_groups[0]["lr"] = lr * min(1, 2 - 2 * i / len(batches))
        logits = model(src, tgt[:, :-1]).flatten(0, 1)
        words = tgt[:, 1:].flatten()
        loss = F.cross_entropy(logits, words, ignore_index=Vocabulary.pad)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        losses.append(loss.item())
    return losses


def _check_mask(mask: Tensor, scores: Tensor) -> None:
    """Refuse a mask that does not say for each score whether it counts.

    Raises:
        TypeError: ``mask`` is not boolean; a 0/1 number would be added to the
            scores elsewhere, and mask nothing.
        ValueError: its shape is not that of ``scores``, or, on a CPU, a row is
            all False.
    """
    kind = getattr(mask, "dtype", type(mask).__name__)
    if kind != torch.bool:
        raise TypeError(f"mask: expected torch.bool, got {kind}")
    if mask.shape != scores.shape:
        want, got = tuple(scores.shape), tuple(mask.shape)
        raise ValueError(f"mask: expected shape {want}, got {got}")
    if not mask.is_cpu:
        return  # To look would be to wait for the device.
    empty = (~mask.any(dim=-1)).nonzero()
    if len(empty):
        row = empty[0].tolist()
        raise ValueError(f"mask: row {row} leaves nothing to look at")
