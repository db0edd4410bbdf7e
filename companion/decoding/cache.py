"""The decoder, a position at a time, with what it need not compute again.

A new position asks all earlier ones. Their keys and values never change: under
a causal mask, nothing that comes later can reach them. So they are stored, each
layer's in a ``KVCache`` that its attention fills. The queries are not: each
asks once, and is never asked. There is one implementation of the layers, and
training and decoding both run it.

Words for axes, the same in the book, the code and the tests:
    sentence  sources that are being translated
    beam      rows that each sentence has, side by side
    row       sentence · beam, the beams of a sentence next to each other
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.checks import check_kind, check_tokens, trusting
from companion.masks import causal_mask, combine_masks, padding_mask
from companion.masks.build import check_pairs
from companion.multihead import CAUSAL
from companion.transformer import EncoderDecoder

__all__ = ["StepDecoder", "cached_decode", "evaluating"]


@torch.no_grad()
def cached_decode(
    model: EncoderDecoder,
    src: Int[Tensor, "batch src"],
    tokens: Int[Tensor, "batch tgt"],
) -> Float[Tensor, "batch tgt vocab"]:
    """Compute the logits of ``model(src, tokens)``, a position at a time.

    The encoder runs once. A step computes one position, and no position is
    computed twice. Dropout is off, whatever the mode of the model.

    Args:
        model: Any model that reads one sequence and writes another.
        src: Ids of the source.
        tokens: What the decoder reads.

    Returns:
        The logits, at each position.

    Raises:
        TypeError, ValueError: As ``EncoderDecoder.forward``; ``model`` is none.

    Example:
        >>> from companion.transformer import Transformer, TransformerConfig
        >>> sizes = {"src_vocab_size": 7, "tgt_vocab_size": 11}
        >>> model = Transformer(TransformerConfig.tiny(**sizes)).eval()
        >>> src, tokens = torch.tensor([[3, 5]]), torch.tensor([[1, 4, 9]])
        >>> stepwise = cached_decode(model, src, tokens)
        >>> torch.allclose(stepwise, model(src, tokens), atol=1e-5)
        True
    """
    check_kind("model", model, EncoderDecoder)
    check_pairs(src, tokens, model.config.pad)
    model._check_all(src, tokens)
    masks = combine_masks(src, tokens, model.config.pad)
    caches, logits = model.decoder.new_caches(), []
    with evaluating(model), trusting():
        memory = model.encode(src, masks.src)
        for n in range(1, tokens.shape[1] + 1):
            mask = masks.tgt[:, :, n - 1 : n, :n]  # The newest, and its past.
            x = model.decode(tokens[:, :n], memory, mask, masks.cross, caches)
            logits.append(model.logits(x))
    return torch.cat(logits, dim=1)


class StepDecoder:
    """Write rows of tokens for many sources, one position a step.

    Dropout is to be off, and ``src`` and ``tokens`` are to be checked.

    Args:
        model: What writes.
        src: A source for each sentence.
        beam: Rows of each sentence.
        cache: Whether keys and values are stored. Without, each step computes
            all positions again, to the same effect.

    Raises:
        TypeError, ValueError: ``model`` or ``src`` is none.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        src: Int[Tensor, "sentence src"],
        beam: int = 1,
        *,
        cache: bool = True,
    ):
        check_kind("model", model, EncoderDecoder)
        check_tokens(src, "src")
        self.model, self.mask = model, padding_mask(src, model.config.pad)
        self.memory = model.encode(src, self.mask)
        self.caches = model.decoder.new_caches() if cache else None
        self.tokens = src.new_empty(len(src) * beam, 0)
        table = model.tgt_embedding.weight.detach()
        self.table_mt = table.mT.contiguous() if cache else None

    def step(self, tokens: Int[Tensor, " row"]) -> Float[Tensor, "row vocab"]:
        """Read one token more in each row; return the logits of the next."""
        self.tokens = torch.cat([self.tokens, tokens.unsqueeze(1)], dim=1)
        # No padding is ever written, so the future is all that is hidden.
        given = self.tokens, self.memory
        with trusting():
            if self.caches is None:
                causal = causal_mask(len(self.tokens[0]), device=tokens.device)
                x = self.model.decode(*given, causal, self.mask)
            else:
                x = self.model.decode(*given, CAUSAL, self.mask, self.caches)
            return self.model.logits(x[:, -1], self.table_mt)

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Let row i go on from what row ``rows[i]`` of its sentence has."""
        self.tokens = self.tokens[rows]
        for cache in self.caches or ():
            cache.reorder(rows)

    def keep(
        self, sentences: Int[Tensor, " kept"], rows: Int[Tensor, " kept_row"]
    ) -> None:
        """Forget all other sentences; ``rows`` are those of the kept ones."""
        self.tokens, self.mask = self.tokens[rows], self.mask[sentences]
        self.memory = self.memory[sentences]
        for cache in self.caches or ():
            cache.keep(sentences, rows)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Turn dropout off, and afterwards every module to the mode it was in.

    Args:
        model: The module, with all that it holds.

    Example:
        >>> model = nn.Dropout(0.5)
        >>> with evaluating(model):
        ...     model(torch.ones(3))
        tensor([1., 1., 1.])
        >>> model.training
        True
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
