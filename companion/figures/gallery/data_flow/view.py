"""The drawing of ``flow``: boxes, and lanes of tokens that run through them."""

from html import escape

from companion.figures.gallery.data_flow.steps import Sizes, Step
from companion.figures.kit.play import Parts
from companion.figures.kit.tables import word
from companion.masks import causal_mask

BOXES = {
    "src_embedding": ("Embedding + position", "row × √{d_model}"),
    "encoder_attention": ("Self-attention", "every token asks all of them"),
    "encoder_feed_forward": ("Feed-forward", "each token alone"),
    "memory": ("Memory", "what the encoder found"),
    "tgt_embedding": ("Embedding + position", "row × √{d_model}"),
    "self_attention": ("Masked self-attention", "asks itself and the past"),
    "cross_attention": ("Cross-attention", "q from here; k, v from the memory"),
    "feed_forward": ("Feed-forward", "each token alone"),
    "logits": ("Scores of the next token", "times the embedding, transposed"),
}
ENCODER_LAYER = "encoder_attention", "encoder_feed_forward"
DECODER_LAYER = "self_attention", "cross_attention", "feed_forward"
SUBLAYERS = {*ENCODER_LAYER, *DECODER_LAYER}


def body(
    source: list[str],
    reads: list[str],
    parts: Parts,
    sizes: Sizes,
    numbers: str = "",
) -> str:
    """Draw everything the figure shows without scripts.

    Args:
        source: The source tokens.
        reads: What the decoder reads.
        parts: What the first step shows.
        sizes: What the model's sizes are called.
        numbers: The table of a trained model, if there is one.
    """
    shapes = iter(parts["shape"])

    def box(part: str, extra: str = "") -> str:
        name, does = BOXES[part]
        does = does.format_map(sizes._asdict())
        around = f'<span class="around">{sizes.around}</span>'
        return (
            f'<div class="{parts[f"{part}@class"]}" data-part="{part}"><div>'
            f'<b>{name}</b><span class="does">{does}</span></div>{extra}'
            f'<span class="shape" data-part="shape">{next(shapes)}</span>'
            f"{around * (part in SUBLAYERS)}</div>"
        )

    def lane(part: str, label: str, cells: str) -> str:
        return (
            f'<div class="{parts[f"{part}@class"]}" data-part="{part}" '
            f'role="group" aria-label="{label}">{cells}</div>'
        )

    def layers(first: str, *rest: str, extra: str = "") -> str:
        return (
            f'<div class="layers"><span class="times">{sizes.layers}</span>'
            f"{box(first, extra)}{''.join(map(box, rest))}</div>"
        )

    encoder = (
        _title("Encoder", "reads the source, once"),
        lane("src", "source", lanes(source, ["on"] * len(source))),
        box("src_embedding"),
        layers(*ENCODER_LAYER),
        box("memory"),
    )
    decoder = (
        _title("Decoder", "writes the target"),
        lane("tgt", "what the decoder reads", parts["tgt"]),
        box("tgt_embedding"),
        layers(*DECODER_LAYER, extra=_mask(len(reads))),
        box("logits"),
        lane("out", "the next token, place by place", parts["out"]),
    )
    return (
        '<div class="flow">'
        f'<div class="side encoder" style="--n: {len(source)}">'
        f"{''.join(encoder)}</div>"
        f'<div class="side decoder" style="{parts["decoder@style"]}" '
        f'data-part="decoder">{"".join(decoder)}</div>'
        '</div><div class="beside"><div class="panel">'
        '<div class="controls"></div>'
        f'<p class="passes" data-part="passes">{parts["passes"]}</p>'
        f'<p class="says" aria-live="polite" data-part="says">{parts["says"]}'
        f"</p></div>{numbers}</div>"
    )


def frame(step: Step, shapes: dict[str, str], tokens: tuple) -> Parts:
    """Collect what changes from step to step.

    Args:
        step: The step.
        shapes: What comes out of each part.
        tokens: What the decoder reads, and what it must say at each place.
    """
    reads, answers = tokens
    places = range(len(reads))
    kinds = dict.fromkeys(("src", *BOXES, "tgt", "out"), "part lanes")
    kinds |= dict.fromkeys(BOXES, "part box")
    sides = zip(("encoder", "decoder"), step.passes, strict=True)
    passes = "".join(
        f"<span>{side} {number}{' ' * bool(number)}{'●' * number}</span>"
        for side, number in sides
    )
    return {
        f"{part}@class": f"{kind}{' lit' * (part in step.lit)}"
        for part, kind in kinds.items()
    } | {
        "shape": [shapes[part] for part in BOXES],
        "tgt": lanes(reads, [_read(step, i) for i in places]),
        "out": lanes(answers, [_written(step, i, len(reads)) for i in places]),
        "decoder@style": f"--n: {len(reads)}; --reads: {step.reads}",
        "passes": f"Passes: {passes}",
        "says": escape(step.says),
    }


def lanes(tokens: list[str], states: list[str]) -> str:
    """Draw tokens side by side, each at the head of its lane."""
    return "".join(
        f'<span class="token {state}">{word(token)}</span>'
        for token, state in zip(tokens, states, strict=True)
    )


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


def _title(name: str, does: str) -> str:
    return f'<p class="title"><b>{name}</b> {does}</p>'


def _mask(length: int) -> str:
    """The causal mask as squares: filled is seen, empty is hidden."""
    cells = "".join(
        f'<i class="{"sees" if sees else "hides"}"></i>'
        for row in causal_mask(length).tolist()
        for sees in row
    )
    return (
        f'<span class="mask" role="img" aria-label="Causal mask: row i sees '
        f'the columns up to i">{cells}</span>'
    )
