"""The whole Transformer as one drawing: in training, and token by token."""

import re

import torch

from companion.data.vocabulary import Vocabulary
from companion.figures.gallery.data_flow.model import (
    NAMES,
    Trained,
    html,
    loss,
    panel,
    run,
)
from companion.figures.gallery.data_flow.steps import (
    AROUND,
    BOS,
    EOS,
    SYMBOLS,
    Sizes,
    Step,
    generating,
    training,
)
from companion.figures.gallery.data_flow.view import body, frame
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.play import Parts, buttons, playable, steps
from companion.masks import causal_mask
from companion.transformer import Transformer, shift_right

LONGEST = 6  # A phone shows seven tokens side by side, one of them <bos>.
MODES = ("Training", "Generating")
LABEL = "Data flow of a Transformer, encoder and decoder"
CAPTION = """Follow a sentence through both modes. In training the decoder is
given the right tokens to read (teacher forcing), moved by one place, and every
position works in the same pass. When it generates, it reads its own words, and
must wait for each. Shapes are those of one sentence, without the batch."""
MEASURED = """ The numbers are those of a trained model, and what it generates
it chose itself. Its loss on this sentence is {loss}."""


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
    lanes = len(target) + 1
    hidden = int((~causal_mask(lanes)).sum())
    modes = [
        training(source, target, hidden, sizes),
        generating(source, target, seen.odds if seen else None, sizes),
    ]
    tokens = _shifted(target)

    def show(mode: int, at: int) -> Parts:
        step = modes[mode][at]
        return frame(step, shapes(len(source), step.reads, sizes), tokens)

    controls = [
        buttons(MODES, 0),
        steps([len(mode) for mode in modes], ("Back", "Next")),
    ]
    numbers = ""
    caption = CAPTION
    data = playable(show, controls)
    if seen is not None:
        looks = [[_looks(step) for step in mode] for mode in modes]
        numbers = panel(seen, looks[0][0])
        caption += MEASURED.format(loss=loss(seen))
        data |= {
            "looks": looks,
            "reads": [[step.reads for step in mode] for mode in modes],
            "tables": {part: html(seen, part) for part in NAMES},
            "names": NAMES,
        }
    page = inline(
        "flow",
        body=body(source, tokens[0], show(0, 0), sizes, numbers),
        label=LABEL,
        caption=caption,
        data=data,
        **figure_parts(__file__, "controls", "play", sheets=["controls"]),
    )
    return Figure(page, f"Data flow. {modes[0][0].says}")


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
    around = AROUND[config.norm_first]
    return Sizes(
        str(config.d_model), str(config.tgt_vocab_size), layers, around
    )


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


def _looks(step: Step) -> str:
    """The part whose numbers a step is about: the last one at work."""
    return [part for part in step.lit if part in NAMES][-1]
