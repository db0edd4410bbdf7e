"""What happens in a Transformer, step by step: the words of ``flow``."""

from collections.abc import Sequence
from typing import NamedTuple

BOS, EOS = "<bos>", "<eos>"
ENCODER = (
    "src",
    "src_embedding",
    "encoder_attention",
    "encoder_feed_forward",
    "memory",
)
DECODER = (
    "tgt",
    "tgt_embedding",
    "self_attention",
    "cross_attention",
    "feed_forward",
    "logits",
    "out",
)
WHOLE, FIRST_HALF, BEFORE = (1, 1), (1, 0), (0, 0)
TOUR = (
    (
        ENCODER + DECODER,
        WHOLE,
        "Training. The answer is known, so all {m} positions of the target go "
        "through at once: one pass of the encoder and one of the decoder, "
        "whatever the length.",
    ),
    (
        ENCODER[:2],
        BEFORE,
        "{n_tokens} become {n} vectors: the row of the embedding times "
        "√{d_model}, plus the position. Shape ({n}, {d_model}).",
    ),
    (
        ENCODER[2:],
        FIRST_HALF,
        "Every source token asks all of them, then thinks alone; {layers} of "
        "this. What leaves the last layer is the memory, ({n}, {d_model}).",
    ),
    (
        DECODER[:2],
        FIRST_HALF,
        "The decoder reads the target shifted right: {bos} first, the last "
        "token left out. So position 1 reads {bos} and must predict "
        "“{first}”. Shape ({m}, {d_model}).",
    ),
    (
        DECODER[2:3],
        FIRST_HALF,
        "Masked self-attention: {m} × {m} scores, of which the causal mask "
        "hides {hidden}. Row 1 sees only itself, row {m} all {m} tokens. "
        "Nobody sees the answer it must give.",
    ),
    (
        ("memory", "cross_attention"),
        FIRST_HALF,
        "Cross-attention: {m} queries from the decoder, {n} keys and values "
        "from the memory, {m} × {n} weights. Every decoder layer reads the "
        "same memory: what the last encoder layer said.",
    ),
    (
        DECODER[4:5],
        FIRST_HALF,
        "Feed-forward: each position alone, and that is a layer. What leaves "
        "the stack, {layers}, has the shape ({m}, {d_model}), as before.",
    ),
    (
        DECODER[5:],
        WHOLE,
        "Scores for the whole vocabulary at every position: ({m}, {vocab}). "
        "One pass, {m} predictions. Each is compared with the right token, "
        "the last with {eos}; the loss is the mean over all of them.",
    ),
)
"""Parts at work, passes of encoder and decoder so far, words."""


class Sizes(NamedTuple):
    """What a model's sizes are called: symbols, or a trained one's numbers.

    Attributes:
        d_model: The width of a vector.
        vocab: The size of the target's vocabulary.
        layers: How many layers encoder and decoder have, in words.
        around: Residual and norm around each part of a layer, in words.
    """

    d_model: str
    vocab: str
    layers: str
    around: str


AROUND = {
    False: "Add &amp; Norm: input added, normalised",
    True: "Norm before, input added after",
}
"""What stands around a part of a layer, by ``norm_first``."""
SYMBOLS = Sizes("d_model", "vocab_size", "N layers", AROUND[False])


class Step(NamedTuple):
    """One moment: what is at work, how much is read, and the same in words.

    Attributes:
        lit: The parts at work, of ``ENCODER`` and ``DECODER``.
        reads: How many target tokens the decoder reads.
        writes: The positions whose prediction counts, from 0.
        passes: Runs of the encoder and of the decoder so far.
        says: What happens.
    """

    lit: tuple[str, ...]
    reads: int
    writes: tuple[int, ...]
    passes: tuple[int, int]
    says: str


def training(
    src: Sequence[str], tgt: Sequence[str], hidden: int, sizes: Sizes = SYMBOLS
) -> list[Step]:
    """A tour of one pass: all positions of the target at once.

    Args:
        src: The source tokens.
        tgt: The target tokens; ``<eos>`` stands after them.
        hidden: How many cells the causal mask hides.
        sizes: What the model's sizes are called.
    """
    m = len(tgt) + 1
    facts = {
        "n": len(src),
        "n_tokens": _tokens(len(src), "source "),
        "m": m,
        "hidden": hidden,
        "first": tgt[0],
        "bos": BOS,
        "eos": EOS,
    } | sizes._asdict()
    return [
        Step(
            lit,
            m,
            tuple(range(m)) if "out" in lit else (),
            passes,
            words.format_map(facts),
        )
        for lit, passes, words in TOUR
    ]


def generating(
    src: Sequence[str],
    tgt: Sequence[str],
    odds: Sequence[float] | None = None,
    sizes: Sizes = SYMBOLS,
) -> list[Step]:
    """Token by token: what is written is read again in the next pass.

    Args:
        src: The source tokens.
        tgt: What the model writes; ``<eos>`` stands after it.
        odds: The probability it gave each of these; without, they are assumed.
        sizes: What the model's sizes are called.
    """
    first = Step(
        (*ENCODER, "tgt"),
        1,
        (),
        FIRST_HALF,
        "Generating. The source goes through the encoder once, and its memory, "
        f"({len(src)}, {sizes.d_model}), is kept for all that follows. The "
        f"decoder has nothing to read yet but {BOS}.",
    )
    known = odds or [None] * (len(tgt) + 1)
    said = zip([*tgt, EOS], known, strict=True)
    passes = [
        Step(("memory", *DECODER), t, (t - 1,), (1, t), _pass(t, *it, sizes))
        for t, it in enumerate(said, 1)
    ]
    return [first, *passes]


def _pass(t: int, answer: str, odds: float | None, sizes: Sizes) -> str:
    """What the t-th run of the decoder does."""
    why = "the right answer is assumed" if odds is None else f"p = {odds:.3f}"
    which = "Its" if t == 1 else "Only the last position counts: its"
    start = (
        f"Pass {t}: the decoder reads {_tokens(t)}, ({t}, {sizes.d_model}). "
        f"{which} row of the scores, (1, {sizes.vocab}), chooses the next "
        "token: "
    )
    if answer == EOS:
        end = EOS if odds is None else f"{EOS} ({why})"
        return (
            f"{start}{end}, which ends the sentence. That took {t} passes of "
            "the decoder; training needs one for the same tokens."
        )
    return f"{start}“{answer}” ({why}). It is fed back: pass {t + 1} reads it."


def _tokens(number: int, kind: str = "") -> str:
    return f"{number} {kind}token{'' if number == 1 else 's'}"
