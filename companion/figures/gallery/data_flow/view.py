"""The drawing of ``flow``: boxes, and lanes of tokens that run through them."""

from html import escape

from companion.figures.gallery.data_flow.steps import Sizes
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


def body(
    source: list[str],
    reads: list[str],
    answers: list[str],
    page: dict,
    sizes: Sizes,
) -> str:
    """Everything the figure shows without scripts.

    Args:
        source: The source tokens.
        reads: What the decoder reads.
        answers: What it must say at each of these places.
        page: What ``flow`` shows at the first step.
        sizes: What the model's sizes are called.
    """
    return (
        '<div class="flow">'
        f'<div class="side encoder" style="--n: {len(source)}">'
        f"{_encoder(source, page, sizes)}</div>"
        f'<div class="side decoder" style="--n: {len(reads)}; '
        f'--reads: {page["reads"]}">'
        f"{_decoder(reads, answers, page, sizes)}</div>"
        '</div><div class="panel"><div class="controls"></div>'
        f'<p class="passes">{_counts(page)}</p>'
        f'<p class="says" aria-live="polite">{escape(page["says"])}</p></div>'
    )


def _encoder(source: list[str], page: dict, sizes: Sizes) -> str:
    return (
        _title("Encoder", "reads the source, once")
        + _lanes("src", "source", source, ["on"] * len(source))
        + _box("src_embedding", page, sizes)
        + _layers(ENCODER_LAYER, page, sizes)
        + _box("memory", page, sizes)
    )


def _decoder(
    reads: list[str], answers: list[str], page: dict, sizes: Sizes
) -> str:
    return (
        _title("Decoder", "writes the target")
        + _lanes("tgt", "what the decoder reads", reads, page["tgt"])
        + _box("tgt_embedding", page, sizes)
        + _layers(DECODER_LAYER, page, sizes, _mask(len(reads)))
        + _box("logits", page, sizes)
        + _lanes("out", "the next token, place by place", answers, page["out"])
    )


def _counts(page: dict) -> str:
    return "Passes: " + "".join(f"<span>{p}</span>" for p in page["passes"])


def _title(name: str, does: str) -> str:
    return f'<p class="title"><b>{name}</b> {does}</p>'


def _lanes(part: str, label: str, tokens: list[str], states: list[str]) -> str:
    """Tokens side by side, each at the head of its lane."""
    cells = "".join(
        f'<span class="token {state}">{word(token)}</span>'
        for token, state in zip(tokens, states, strict=True)
    )
    return (
        f'<div class="part lanes lit" data-part="{part}" role="group" '
        f'aria-label="{label}">{cells}</div>'
    )


def _box(part: str, page: dict, sizes: Sizes, extra: str = "") -> str:
    name, does = BOXES[part]
    does = does.format_map(sizes._asdict())
    return (
        f'<div class="part box lit" data-part="{part}"><div><b>{name}</b>'
        f'<span class="does">{does}</span></div>{extra}'
        f'<span class="shape">{page["shapes"][part]}</span></div>'
    )


def _layers(
    parts: tuple[str, ...], page: dict, sizes: Sizes, extra: str = ""
) -> str:
    """The parts of one layer, in a frame; the first one has something more."""
    first, *rest = parts
    return (
        f'<div class="layers"><span class="times">{sizes.layers}</span>'
        f"{_box(first, page, sizes, extra)}"
        f"{''.join(_box(part, page, sizes) for part in rest)}</div>"
    )


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
