"""One text as four objectives see it: what is read, and what must be said.

The package corrupts the text; here is only found out what it did to which word.
"""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor

from companion.figures.gallery.objectives.parts import (
    SENTINELS,
    Example,
    Grid,
    Lane,
    Piece,
    Words,
)
from companion.masks import causal_mask, combine_masks, padding_mask
from companion.variants import (
    BOS,
    EOS,
    FIRST_WORD,
    MASK,
    PAD,
    infill,
    mask_tokens,
    permute_sentences,
    random_spans,
    span_corrupt,
)

ENDS = (".", "。")
SPANS = 1.5
"""Mean length of T5's gaps here: with 3, a short text would have only one."""


def bert(words: Words, generator: torch.Generator, share: float) -> Example:
    """Masked language modelling, on one segment."""
    tokens = torch.tensor([[BOS, *words.ids, EOS]])
    inputs, target = mask_tokens(
        tokens, generator, vocab_size=words.words, share=share
    )
    answers = target[0].tolist()
    reads = [
        _masked(words, *pair)
        for pair in zip(inputs[0].tolist(), answers, strict=True)
    ]
    says = [None if i == PAD else words.name(i) for i in answers]
    text = [
        Piece(word, "plain" if said is None else "chosen")
        for word, said in zip(words.text, says[1:-1], strict=True)
    ]
    kinds = [piece.kind for piece in reads]
    mask = padding_mask(inputs, PAD).expand(1, 1, len(reads), len(reads))
    return Example(
        text,
        [Lane("The encoder reads", reads, says)],
        [Grid("Encoder", 0, 0, _rows(mask))],
        {kind: kinds.count(kind) for kind in ("mask", "random", "kept")},
    )


def _masked(words: Words, read: int, answer: int) -> Piece:
    if read in (BOS, EOS):
        return Piece("[CLS]" if read == BOS else "[SEP]", "special")
    if read == MASK:
        return Piece("MASK", "mask", "masked")
    if answer == PAD:
        return Piece(words.name(read))
    if read == answer:
        return Piece(words.name(read), "kept", "unchanged")
    return Piece(words.name(read), "random", "random")


def gpt(words: Words) -> Example:
    """The next word, everywhere: nothing is drawn."""
    lane = _decoder(words.text)
    mask = causal_mask(len(lane.reads))
    grid = Grid("Decoder", 0, 0, _rows(mask))
    return Example([Piece(word) for word in words.text], [lane], [grid], {})


def t5(words: Words, generator: torch.Generator, share: float) -> Example:
    """Span corruption: the decoder says what is gone, and nothing else."""
    length = len(words.text)
    dropped = random_spans(length, generator, share=share, mean=SPANS)
    source, target = span_corrupt(
        torch.tensor(words.ids), dropped, words.size - 1
    )
    gaps = "".join("01"[gone] for gone in dropped.tolist()).split("0")
    gaps = [len(gap) for gap in gaps if gap]
    reads = [
        Piece(words.name(i))
        if i < words.words
        else Piece(words.name(i), "sentinel", _count(gaps[words.size - 1 - i]))
        for i in source.tolist()
    ]
    text = [
        Piece(word, "gone" if gone else "plain")
        for word, gone in zip(words.text, dropped.tolist(), strict=True)
    ]
    return _pair(
        text,
        [*reads, Piece("<eos>", "special")],
        [words.name(i) for i in target.tolist()],
        {"gone": sum(gaps), "gaps": len(gaps)},
    )


def bart(words: Words, generator: torch.Generator, share: float) -> Example:
    """Sentences in another order, then infilling: the decoder says it all."""
    order = _order(words.text, generator)
    # A place has an id of its own, so that two equal words are told apart.
    shuffled = torch.tensor([FIRST_WORD + place for place in order])
    noisy = infill(shuffled, generator, share=share).tolist()
    places = [None if i == MASK else i - FIRST_WORD for i in noisy]
    text = [
        Piece(word, "plain" if place in places else "gone")
        for place, word in enumerate(words.text)
    ]
    reads = [
        Piece("MASK", "mask", note)
        if place is None
        else Piece(words.text[place])
        for place, note in zip(places, _notes(places, order), strict=True)
    ]
    ends = Piece("<bos>", "special"), Piece("<eos>", "special")
    counts = {
        "gone": sum(piece.kind == "gone" for piece in text),
        "gaps": places.count(None),
        "moved": int(order != sorted(order)),
    }
    return _pair(text, [ends[0], *reads, ends[1]], words.text, counts)


def _order(text: list[str], generator: torch.Generator) -> list[int]:
    """The places of the words, once the sentences are permuted."""
    stop = next((end for end in ENDS if end in text), None)
    stops = {place for place, word in enumerate(text) if word == stop}
    alone = {place for place in stops if place - 1 in {*stops, -1}}
    ids = [
        FIRST_WORD if place in stops else FIRST_WORD + 1 + place
        for place in range(len(text))
    ]
    moved = permute_sentences(torch.tensor(ids), generator, stop=FIRST_WORD)
    order: list[int] = []
    for i in moved.tolist():
        place = i - FIRST_WORD - 1
        if i == FIRST_WORD:  # It ends the word before it, or is a sentence.
            place = order[-1] + 1 if order else 0
            if place not in stops - {*order}:
                place = min(alone - {*order})
        order.append(place)
    return order


def _notes(places: list[int | None], order: Sequence[int]) -> list[str]:
    """How many tokens a mask stands for; nothing for what is no mask.

    Of masks side by side nobody can tell which one hides which token: the first
    says it for all.
    """
    notes, at = [], 0
    for is_mask, run in groupby(places, key=lambda place: place is None):
        run = list(run)
        if is_mask:
            after = places[len(notes) + len(run) :]
            end = order.index(after[0]) if after else len(order)
            together = f" in {len(run)}" * (len(run) > 1)
            notes += [_count(end - at) + together, *[""] * (len(run) - 1)]
        else:
            at = order.index(run[-1]) + 1
            notes += [""] * len(run)
    return notes


def _pair(
    text: list[Piece], reads: list[Piece], said: list[str], counts: dict
) -> Example:
    """An encoder reads the pieces, a decoder says the words."""
    decoder = _decoder(said)
    src, tgt = (
        torch.full((1, len(row)), FIRST_WORD) for row in (reads, decoder.reads)
    )
    masks = combine_masks(src, tgt, PAD)
    both = masks.src.expand(1, 1, len(reads), len(reads))
    cross = masks.cross.expand(1, 1, len(decoder.reads), len(reads))
    grids = [
        Grid("Encoder", 0, 0, _rows(both)),
        Grid("Decoder", 1, 1, _rows(masks.tgt)),
        Grid("Cross", 1, 0, _rows(cross)),
    ]
    lanes = [Lane("The encoder reads", reads), decoder]
    return Example(text, lanes, grids, counts)


def _decoder(said: list[str]) -> Lane:
    """What is said, and before it what is read: the same, one place later."""
    row = ["<bos>", *said, "<eos>"]
    reads = [Piece(row[0], "special"), *(_written(word) for word in said)]
    return Lane("The decoder reads", reads, row[1:])


def _written(word: str) -> Piece:
    return Piece(word, "sentinel" if word in SENTINELS else "plain")


def _rows(mask: Tensor) -> list[list[bool]]:
    return mask.reshape(mask.shape[-2:]).tolist()


def _count(tokens: int) -> str:
    return f"{tokens} token" + "s" * (tokens != 1)
