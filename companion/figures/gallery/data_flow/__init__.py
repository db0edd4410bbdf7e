"""The whole Transformer as one drawing: in training, and token by token."""

import re

import torch

from companion.data.vocabulary import Vocabulary
from companion.figures.gallery.data_flow.model import (
    Run,
    Trained,
    loss,
    panel,
    run,
)
from companion.figures.gallery.data_flow.steps import (
    BOS,
    EOS,
    SYMBOLS,
    Sizes,
    Step,
    generating,
    training,
)
from companion.figures.gallery.data_flow.view import body
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.masks import causal_mask
from companion.transformer import Transformer, shift_right

LONGEST = 6  # A phone shows seven tokens side by side, one of them <bos>.
SIDES = ("encoder", "decoder")
MODES = ("Training", "Generating")
LABEL = "Data flow of a Transformer, encoder and decoder"
CAPTION = """Follow a sentence through both modes. The decoder is the same in
each. In training it is given the right tokens to read (teacher forcing), moved
by one place, and every position works in the same pass. When it generates, it
reads its own words, and must wait for each. After each attention and each
feed-forward comes a residual connection and a LayerNorm, not drawn. Shapes are
those of one sentence, without the batch."""
MEASURED = """ The numbers are those of a trained model, and nothing is assumed:
what it generates, it chose itself. Its loss on this sentence is {loss}. The
rows of a generating decoder are the first rows of a training one, number for
number: nobody sees the future."""


def data_flow(
    src: str = "我爱小猫",
    tgt: str = "I love little cats",
    trained: Trained | None = None,
) -> Figure:
    """Encoder and decoder at work, step by step, in training and generating.

    Without ``trained`` no model runs: what it would write is assumed to be
    ``tgt``. With it, every part has its numbers.

    Args:
        src: The source. A token is a word, or a Chinese character.
        tgt: The target, likewise.
        trained: A model that translates one into the other, and its source's
            and target's vocabularies.

    Raises:
        ValueError: a sentence is empty or has more than six tokens, those that
            the model's source begins and ends with included; or the model
            writes something else.
    """
    source, target = _tokens("src", src), _tokens("tgt", tgt)
    seen, sizes = None, SYMBOLS
    if trained is not None:
        source = _few("src", [BOS, *source, EOS])
        seen, sizes = run(trained, source[1:-1], target), _sizes(trained[0])
    modes = _modes(source, target, seen, sizes)
    first = modes[0][0]
    drawing = body(source, *_shifted(target), first, sizes)
    caption = CAPTION
    data = {"names": MODES, "modes": modes}
    if seen is not None:
        drawing += panel(seen, first["looks"])
        caption += MEASURED.format(loss=loss(seen))
        data["tables"] = seen.tables
    parts = {"body": drawing, "label": LABEL, "caption": caption, "data": data}
    html = inline("flow", **parts, **figure_parts(__file__))
    return Figure(html, f"Data flow. {first['says']}")


def _modes(
    source: list[str], target: list[str], seen: Run | None, sizes: Sizes
) -> list[list[dict]]:
    """The steps of both modes, as the page needs them."""
    lanes = len(target) + 1
    hidden = int((~causal_mask(lanes)).sum())
    tour = training(source, target, hidden, sizes)
    passes = generating(source, target, seen.odds if seen else None, sizes)
    return [
        [_page(step, len(source), lanes, sizes) for step in steps]
        for steps in (tour, passes)
    ]


def _tokens(name: str, text: str) -> list[str]:
    """Words; of Chinese, characters."""
    tokens = re.findall(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+", text)
    return _few(name, tokens)


def _few(name: str, tokens: list[str]) -> list[str]:
    """The same, if they fit a phone."""
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


def _sizes(model: Transformer) -> Sizes:
    """The numbers of a model in place of symbols."""
    config = model.config
    layers = f"{config.num_layers} layer{'s' * (config.num_layers > 1)}"
    return Sizes(str(config.d_model), str(config.tgt_vocab_size), layers)


def shapes(src: int, tgt: int, sizes: Sizes = SYMBOLS) -> dict[str, str]:
    """What comes out of each part, for so many tokens; of attention, weights.

    A test compares them with what runs through a ``Transformer``.
    """
    states = f"({tgt}, {sizes.d_model})"
    memory = f"({src}, {sizes.d_model})"
    return {
        "src_embedding": memory,
        "encoder_attention": f"weights ({src}, {src})",
        "encoder_feed_forward": memory,
        "memory": memory,
        "tgt_embedding": states,
        "self_attention": f"weights ({tgt}, {tgt})",
        "cross_attention": f"weights ({tgt}, {src})",
        "feed_forward": states,
        "logits": f"({tgt}, {sizes.vocab})",
    }


def _page(step: Step, src: int, lanes: int, sizes: Sizes) -> dict:
    """All that the page shows at one step."""
    return {
        "lit": step.lit,
        "reads": step.reads,
        "tgt": [_read(step, i) for i in range(lanes)],
        "out": [_written(step, i, lanes) for i in range(lanes)],
        "shapes": shapes(src, step.reads, sizes),
        "passes": [
            _passes(*pair) for pair in zip(SIDES, step.passes, strict=True)
        ],
        "says": step.says,
        "looks": _looks(step),
    }


def _looks(step: Step) -> str:
    """The part whose numbers a step is about: the last one at work."""
    known = shapes(1, 1)
    return [part for part in step.lit if part in known][-1]


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
