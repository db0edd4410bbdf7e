"""Many sentences at once, from source ids to target ids."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import (
    check_ids,
    check_kind,
    check_number,
    check_sizes,
    check_switches,
    check_words_first,
    trusting,
)
from companion.data.vocabulary import Vocabulary
from companion.decoding.beams import search_beams
from companion.decoding.cache import StepDecoder, evaluating
from companion.decoding.search import StepFunction
from companion.masks import combine_masks, padding_mask
from companion.transformer import EncoderDecoder

__all__ = ["check_source", "next_token", "translate"]

BOS, EOS = Vocabulary.bos, Vocabulary.eos


def translate(
    model: EncoderDecoder,
    src: Int[Tensor, "batch src"],
    *,
    max_len: int,
    beam: int = 1,
    alpha: int | float = 0.6,
    cache: bool = True,
) -> list[list[int]]:
    """Translate each source.

    With a beam of 1 this is ``greedy_decode``, else ``beam_search``, of all
    sentences side by side. Padding is never written. Dropout is off, whatever
    the mode of the model.

    Args:
        model: What reads one sequence and writes another.
        src: Ids, padded at the end.
        max_len: The most tokens a sentence gets.
        beam: Hypotheses of each sentence.
        alpha: How much length is forgiven, as in ``length_penalty``.
        cache: Whether keys and values are stored. Without, every step computes
            all positions again, to the same effect.

    Returns:
        Ids after bos of each sentence, with eos if it was reached.

    Raises:
        TypeError: ``model`` is no ``EncoderDecoder``, ``src`` no tensor of
            integers, ``max_len`` or ``beam`` no int, ``alpha`` no number,
            ``cache`` no bool.
        ValueError: ``src`` has a sentence without tokens, padding before
            them, or an unknown id; ``max_len`` or ``beam`` is below 1;
            ``alpha`` is negative.

    Example:
        >>> from companion.models import load
        >>> trained = load("zh-en")
        >>> src = torch.tensor([trained.src_codec.encode("我想喝一杯咖啡。")])
        >>> (ids,) = translate(trained.model, src, max_len=20)
        >>> trained.tgt_codec.decode(ids)
        'I want a cup of coffee.'
    """
    check_source(model, src)
    check_sizes(max_len=max_len, beam=beam)
    check_number("alpha", alpha, above=None)
    check_switches(cache=cache)
    # Tensors that no gradient will ever need: less to do for each of them.
    with evaluating(model), trusting(), torch.inference_mode():
        decoder = StepDecoder(model, src, beam, cache=cache)
        settings = {"pad": model.config.pad, "max_len": max_len}
        if beam == 1:
            return _search_greedily(decoder, src, **settings)
        return search_beams(decoder, src, beam=beam, alpha=alpha, **settings)


def next_token(
    model: EncoderDecoder, src: Int[Tensor, "1 src"]
) -> StepFunction:
    """Make a ``step_fn`` that reads one source, and scores what comes next.

    The encoder runs once, the decoder over all of each row. Padding is never
    written.

    Args:
        model: What reads one sequence and writes another.
        src: Ids of one source.

    Returns:
        From rows of tokens to the scores of the next one.

    Raises:
        TypeError: ``model`` is no ``EncoderDecoder``; else as ``translate``.
        ValueError: As ``translate``; ``src`` has not one sentence.

    Example:
        >>> from companion.transformer import Transformer, TransformerConfig
        >>> sizes = {"src_vocab_size": 7, "tgt_vocab_size": 11}
        >>> model = Transformer(TransformerConfig.tiny(**sizes))
        >>> step_fn = next_token(model, torch.tensor([[3, 5]]))
        >>> step_fn(torch.tensor([[1], [1]])).shape
        torch.Size([2, 11])
    """
    check_source(model, src)
    if len(src) != 1:
        raise ValueError(f"src: expected one sentence, got {len(src)}")
    pad = model.config.pad
    real = padding_mask(src, pad)
    with evaluating(model), torch.no_grad():
        memory = model.encode(src, real)

    @torch.no_grad()
    def step(
        tokens: Int[Tensor, "rows length"],
    ) -> Float[Tensor, "rows vocab"]:
        tokens = tokens.to(src.device, non_blocking=True)
        rows = len(tokens)
        many = memory.expand(rows, -1, -1)
        masks = combine_masks(src.expand(rows, -1), tokens, pad)
        with evaluating(model):
            x = model.decode(tokens, many, masks.tgt, masks.cross)
            logits = model.logits(x[:, -1])
        logits[:, pad] = -torch.inf
        return logits

    return step


def check_source(model: EncoderDecoder, src: Tensor) -> None:
    """Refuse what no model can translate.

    Raises:
        TypeError, ValueError: as ``translate``.
    """
    check_kind("model", model, EncoderDecoder)
    # Without a table of its own, a source is read with the target's.
    table = getattr(model, "src_embedding", model.tgt_embedding).weight
    check_ids("src", src, len(table), axes=2)
    check_words_first("src", src != model.config.pad)


def _search_greedily(
    decoder: StepDecoder, src: Tensor, *, pad: int, max_len: int
) -> list[list[int]]:
    written = [[] for _ in src]
    rows = list(range(len(src)))  # The sentence that each row writes.
    tokens = torch.full_like(src[:, 0], BOS)
    for _ in range(max_len):
        logits = decoder.step(tokens)
        logits[:, pad] = -torch.inf
        tokens = _largest(logits)
        for sentence, token in zip(rows, tokens.tolist(), strict=True):
            if written[sentence][-1:] != [EOS]:
                written[sentence].append(token)
        going = [i for i, row in enumerate(rows) if written[row][-1] != EOS]
        if not going:
            break
        # Who has finished is computed along until they are half of all:
        # to throw out one row costs as much as a step.
        if 2 * len(going) <= len(rows):
            rows = [rows[i] for i in going]
            kept = torch.tensor(going, device=src.device)
            decoder.keep(kept, kept)
            tokens = tokens[kept]
    return written


def _largest(logits: Float[Tensor, "row vocab"]) -> Int[Tensor, " row"]:
    # On a CPU, PyTorch 2.13 compares one logit after the other, NumPy many at
    # once: a tenth of the time, for the same token.
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        return torch.from_numpy(logits.numpy().argmax(-1))
    return logits.argmax(-1)
