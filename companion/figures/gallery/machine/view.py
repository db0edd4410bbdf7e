"""The drawing of the machine: two columns, and the way between them."""

from collections.abc import Sequence

from companion.figures.kit.diagram import arrow, drawing, label
from companion.figures.kit.digits import Number

LEFT, RIGHT, WIDE = 86, 254, 138
CHANNEL = 170
EMBED, END = 28, 262
ENCODER = {
    "encoder_attention": ("self-attention", 74, 22),
    "encoder_norm_1": ("Add & Norm", 104, 18),
    "encoder_feed_forward": ("feed-forward", 133, 22),
    "encoder_norm_2": ("Add & Norm", 163, 18),
}
DECODER = {
    "self_attention": ("masked self-attention", 74, 22),
    "norm_1": ("Add & Norm", 104, 18),
    "cross_attention": ("cross-attention", 133, 22),
    "norm_2": ("Add & Norm", 163, 18),
    "feed_forward": ("feed-forward", 192, 22),
    "norm_3": ("Add & Norm", 222, 18),
}
"""Part -> what it is called, where it begins, and how high it is."""

BOXES = {
    "source_embedding": (LEFT, "embedding + position", EMBED, 22),
    **{part: (LEFT, *rest) for part, rest in ENCODER.items()},
    "memory": (LEFT, "memory: keys, values", 204, 22),
    "target_embedding": (RIGHT, "embedding + position", EMBED, 22),
    **{part: (RIGHT, *rest) for part, rest in DECODER.items()},
    "generator": (RIGHT, "generator: softmax", END, 22),
}
PARTS = (*BOXES, "source", "target", "answer", "bridge")


def picture(
    source: Sequence[str], target: Sequence[str], kinds: Sequence[str]
) -> str:
    """Draw all parts, each of its class."""
    kind = dict(zip(PARTS, kinds, strict=True))
    says = [*target[1:], "<eos>"]
    parts = [
        _frame(LEFT, 186),
        _frame(RIGHT, 245),
        *_wires(LEFT, [20, *_edges(LEFT)]),
        *_wires(RIGHT, [20, *_edges(RIGHT), 298]),
        *_residuals(LEFT, ENCODER, -1),
        *_residuals(RIGHT, DECODER, 1),
        _part("bridge", kind, _bridge()),
        *(_box(part, kind) for part in BOXES),
        _part("source", kind, _line(LEFT, 15, source)),
        _part("target", kind, _line(RIGHT, 15, target)),
        _part("answer", kind, _line(RIGHT, 311, says)),
    ]
    return drawing(
        317,
        "Left, the encoder: embedding, self-attention, feed-forward, and the "
        "memory. Right, the decoder: embedding, masked self-attention, "
        "cross-attention, feed-forward, generator. After each attention and "
        "each feed-forward stands Add & Norm. The memory leads to the "
        "cross-attention.",
        *parts,
    )


def _part(part: str, kind: dict[str, str], inner: str) -> str:
    return f'<g data-part="part" class="{kind[part]}">{inner}</g>'


def _box(part: str, kind: dict[str, str]) -> str:
    x, name, y, high = BOXES[part]
    return _part(
        part,
        kind,
        f'<rect x="{x - WIDE / 2:g}" y="{y}" width="{WIDE}" height="{high}" '
        f'rx="5"/>{label(x, y + high / 2 + 4, name)}',
    )


def _edges(x: Number) -> list[Number]:
    """Where the boxes of a column begin and end, from above."""
    return [
        edge
        for at, _, y, high in BOXES.values()
        if at == x
        for edge in (y, y + high)
    ]


def _wires(x: Number, edges: Sequence[Number]) -> list[str]:
    """An arrow from the end of each box to the beginning of the next."""
    return [
        arrow(x, start, end)
        for start, end in zip(edges[::2], edges[1::2], strict=False)
    ]


def _residuals(x: Number, layer: dict, side: int) -> list[str]:
    """Round each part of a layer, to the Add & Norm that follows it."""
    drawn = []
    boxes = list(layer.values())
    edge = x + side * WIDE / 2
    for (_, top, _), (_, y, high) in zip(boxes[::2], boxes[1::2], strict=True):
        out, to = edge + side * 8, y + high / 2
        drawn.append(
            f'<path class="wire" d="M{x} {top - 7}H{out:g}V{to:g}'
            f'H{edge + side * 4:g}"/><path class="tip" d="M{edge:g} {to:g}'
            f'l{side * 6} -4v8z"/>'
        )
    return drawn


def _frame(x: Number, end: Number) -> str:
    side = 1 if x == RIGHT else -1
    left = x - WIDE / 2 - (13 if side < 0 else 6)
    return (
        f'<rect class="frame" x="{left:g}" y="61" width="{WIDE + 19}" '
        f'height="{end - 61}" rx="8"/>'
        + label(x - 46, end + 12, "N layers", "note")
    )


def _bridge() -> str:
    """From the memory to the cross-attention."""
    _, _, y, high = BOXES["memory"]
    _, _, to, deep = BOXES["cross_attention"]
    edge = RIGHT - WIDE / 2
    return (
        f'<path class="wire" d="M{LEFT + WIDE / 2:g} {y + high / 2:g}'
        f'H{CHANNEL}V{to + deep / 2:g}H{edge - 6:g}"/><path class="tip" '
        f'd="M{edge:g} {to + deep / 2:g}l-7 -4v8z"/>'
    )


def _line(x: Number, y: Number, words: Sequence[str]) -> str:
    """Words side by side, around x."""
    widths = [
        sum(14 if "\u4e00" <= c <= "\u9fff" else 6.6 for c in word) + 6
        for word in words
    ]
    drawn, at = "", x - sum(widths) / 2
    for word, width in zip(words, widths, strict=True):
        drawn += label(round(at + width / 2, 1), y, word, "word")
        at += width
    return drawn
