"""The whole Transformer as one drawing: in training, and token by token."""

import re

import torch

from companion.data.vocabulary import Vocabulary
from companion.figures.figure import Figure
from companion.figures.flow_drawing import body
from companion.figures.flow_steps import Step, generating, training
from companion.figures.inline import figure_parts, inline
from companion.masks import causal_mask
from companion.transformer import shift_right

LONGEST = 6  # A phone shows seven tokens side by side, one of them <bos>.
SIDES = ("encoder", "decoder")
MODES = ("Training", "Generating")
CAPTION = """Follow a sentence through both modes. The decoder is the same in
each. In training it is given the right tokens to read (teacher forcing), moved
by one place, and every position works in the same pass. When it generates, it
reads its own words, and must wait for each. After each attention and each
feed-forward comes a residual connection and a LayerNorm, not drawn. Shapes are
those of one sentence, without the batch."""


def data_flow(src: str = "我爱小猫", tgt: str = "I love little cats") -> Figure:
    """Encoder and decoder at work, step by step, in training and generating.

    No model runs: what it would write is assumed to be ``tgt``.

    Args:
        src: The source. A token is a word, or a Chinese character.
        tgt: The target, likewise.

    Raises:
        ValueError: one of them is empty or has more than six tokens.
    """
    source, target = _tokens("src", src), _tokens("tgt", tgt)
    reads, answers = _shifted(target)
    hidden = int((~causal_mask(len(reads))).sum())
    tour, passes = training(source, target, hidden), generating(source, target)
    modes = [
        [_page(step, len(source), len(reads)) for step in steps]
        for steps in (tour, passes)
    ]
    html = inline(
        "flow",
        body=body(source, reads, answers, modes[0][0]),
        label="Data flow of a Transformer, encoder and decoder",
        caption=CAPTION,
        data={"names": MODES, "modes": modes},
        **figure_parts("flow"),
    )
    return Figure(html, f"Data flow. {tour[0].says}")


def _tokens(name: str, text: str) -> list[str]:
    """Words; of Chinese, characters."""
    tokens = re.findall(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+", text)
    if not 1 <= len(tokens) <= LONGEST:
        raise ValueError(
            f"{name}: expected 1 to {LONGEST} tokens, got {len(tokens)}"
        )
    return tokens


def _shifted(target: list[str]) -> tuple[list[str], list[str]]:
    """What the decoder reads, and what it must say at each place."""
    vocabulary = Vocabulary(list(dict.fromkeys(target)))
    answers = torch.tensor([[*vocabulary.encode(target), vocabulary.eos]])
    reads = shift_right(answers, vocabulary.bos)
    names = [
        [vocabulary.tokens[i] for i in ids[0].tolist()]
        for ids in (reads, answers)
    ]
    return names[0], names[1]


def shapes(src: int, tgt: int) -> dict[str, str]:
    """What comes out of each part, for so many tokens; of attention, weights.

    A test compares them with what runs through a ``Transformer``.
    """
    states = f"({tgt}, d_model)"
    memory = f"({src}, d_model)"
    return {
        "src_embedding": memory,
        "encoder_attention": f"weights ({src}, {src})",
        "encoder_feed_forward": memory,
        "memory": memory,
        "tgt_embedding": states,
        "self_attention": f"weights ({tgt}, {tgt})",
        "cross_attention": f"weights ({tgt}, {src})",
        "feed_forward": states,
        "logits": f"({tgt}, vocab_size)",
    }


def _page(step: Step, src: int, lanes: int) -> dict:
    """All that the page shows at one step."""
    return {
        "lit": step.lit,
        "reads": step.reads,
        "tgt": [_read(step, i) for i in range(lanes)],
        "out": [_written(step, i, lanes) for i in range(lanes)],
        "shapes": shapes(src, step.reads),
        "passes": [
            _passes(*pair) for pair in zip(SIDES, step.passes, strict=True)
        ],
        "says": step.says,
    }


def _read(step: Step, lane: int) -> str:
    """How the token that the decoder reads there looks."""
    if lane < step.reads:
        return "on"
    # What has just been written is the next thing to read.
    return "next" if step.writes == (lane - 1,) else "off"


def _written(step: Step, lane: int, lanes: int) -> str:
    """How the next token at that place looks: it counts, is known, or not."""
    if lane in step.writes:
        return "on"
    known = lane < step.reads - 1 or step.reads == lanes
    return "old" if known else "off"


def _passes(side: str, number: int) -> str:
    return f"{side} {number}{' ' * bool(number)}{'●' * number}"
