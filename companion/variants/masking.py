"""What BERT reads: sentences with holes, and sentences in pairs.

Words for axes, the same in the book, the code and the tests:
    pair  examples of two sentences each
    seq   tokens of one example

Where this differs from the published code, and why:
    each word is chosen by a draw of its own, so a row may get no hole at all;
    published, a row has a fixed number of them, at least one. Here 15 % is a
    probability, which a test can check.
    the random word is a word; published, it may be [MASK] or padding.
    a pair is two sentences; published, two runs of sentences that fill 512
    tokens between them. The packing hides the idea.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from companion.checks import (
    check_generator,
    check_ids,
    check_share,
    check_sizes,
)
from companion.variants.specials import BOS, EOS, FIRST_WORD, MASK, PAD

# Of the tokens that are chosen: those that are hidden, and those that change.
HIDDEN, CHANGED = 0.8, 0.9


def mask_tokens(
    tokens: Int[Tensor, "*axes"],
    generator: torch.Generator,
    *,
    vocab_size: int,
    share: float = 0.15,
) -> tuple[Int[Tensor, "*axes"], Int[Tensor, "*axes"]]:
    """What BERT reads, and what it must say: the chosen tokens, pad elsewhere.

    Each word is chosen with probability ``share``. Of the chosen, 80 % become
    ``MASK``, 10 % any word, and 10 % stay, so that no word that is read can be
    trusted. Ids below ``FIRST_WORD`` are never chosen. Section 3.1 of Devlin et
    al. (2019); called anew each epoch, it is the dynamic masking of Liu et al.
    (2019).

    Raises:
        TypeError: ``tokens`` is no tensor of integers, ``generator`` no
            generator, or ``share`` no number.
        ValueError: it is empty, or an id is outside the vocabulary; the
            vocabulary has no word; ``share`` is not from 0 to 1.
    """
    _require_maskable(tokens, vocab_size, share)
    check_generator(generator)
    where = {"generator": generator, "device": generator.device}
    luck, fate = torch.rand(2, *tokens.shape, **where).to(tokens.device)
    words = torch.randint(FIRST_WORD, vocab_size, tokens.shape, **where)
    chosen = (tokens >= FIRST_WORD) & (luck < share)
    read = tokens.where(~chosen | (fate >= CHANGED), words.to(tokens))
    read = read.masked_fill(chosen & (fate < HIDDEN), MASK)
    return read, tokens.masked_fill(~chosen, PAD)


def sentence_pairs(
    documents: Sequence[Sequence[Sequence[int]]], generator: torch.Generator
) -> tuple[
    Int[Tensor, "pair seq"], Int[Tensor, "pair seq"], Bool[Tensor, " pair"]
]:
    """Make pairs of sentences, their segments, and whether the second is next.

    A row is [CLS] first [SEP] second [SEP], then padding. Its segment is 0 up
    to the first [SEP], 1 up to the second, and 0 where it is padded. Every
    sentence but the last of its document stands first, once. Half of the time
    the second is the one after it, else any one of another document. Section
    3.1 of Devlin et al. (2019).

    Args:
        documents: Documents of sentences of ids.
        generator: What draws.

    Returns:
        The rows, their segments, and whether the second comes next.

    Raises:
        ValueError: There are fewer than two documents; a document or a sentence
            is empty; no document has two sentences.

    Example:
        >>> documents = [[[10], [11]], [[12], [13]]]
        >>> rows, segments, is_next = sentence_pairs(
        ...     documents, torch.Generator().manual_seed(0)
        ... )
        >>> rows.shape, segments[0].tolist()
        (torch.Size([2, 5]), [0, 0, 0, 1, 1])
    """
    _require_documents(documents)
    check_generator(generator)
    rows, segments, answers = [], [], []
    for place, document in enumerate(documents):
        others = [*documents[:place], *documents[place + 1 :]]
        for first, following in pairwise(document):
            is_next = _any_of([True, False], generator)
            second = following
            if not is_next:
                second = _any_of(_any_of(others, generator), generator)
            rows.append(torch.tensor([BOS, *first, EOS, *second, EOS]))
            sides = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            segments.append(torch.tensor(sides))
            answers.append(is_next)
    tokens = pad_sequence(rows, batch_first=True, padding_value=PAD)
    return (
        tokens,
        pad_sequence(segments, batch_first=True),
        torch.tensor(answers),
    )


def _any_of(choices: Sequence, generator: torch.Generator):
    place = torch.randint(
        len(choices), (), generator=generator, device=generator.device
    )
    return choices[place]


def _require_maskable(tokens: Tensor, vocab_size: int, share: float) -> None:
    check_sizes(vocab_size=vocab_size)
    if vocab_size <= FIRST_WORD:
        raise ValueError(
            f"vocab_size: expected more than the {FIRST_WORD} special ids, "
            f"got {vocab_size}"
        )
    check_ids("tokens", tokens, vocab_size)
    check_share(share)


def _require_documents(documents: Sequence[Sequence[Sequence[int]]]) -> None:
    if len(documents) < 2:
        raise ValueError(
            "documents: expected at least two, because a sentence that does "
            f"not come next is from another one, got {len(documents)}"
        )
    for place, document in enumerate(documents):
        if not document or not all(map(len, document)):
            raise ValueError(
                "documents: expected sentences of at least one id, got an "
                f"empty document or sentence in document {place}"
            )
    if max(map(len, documents)) < 2:
        raise ValueError(
            "documents: expected one with two sentences, got only single ones"
        )
