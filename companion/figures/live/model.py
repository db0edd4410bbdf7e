"""Live figures of chapters 07 and 08: norms, and the size of a model."""

from typing import Any

import ipywidgets as widgets
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.blocks import layer_norm
from companion.figures.kit.digits import fixed, heat, lowered
from companion.figures.kit.tables import largest, table, tinted
from companion.figures.live.typed import matrix
from companion.figures.live.widget import Live, answered
from companion.transformer import Transformer, TransformerConfig

TABLE = "1 2 3 6\n10 20 30 60\n-1 0 1 0"
AVERAGES = ["mean", "std"]
RANGES = {
    "d_model": (64, 1024, 64),
    "num_heads": (1, 16, 1),
    "d_ff": (256, 4096, 256),
    "num_layers": (1, 12, 1),
    "vocab_size": (1000, 64_000, 1000),
}
"""Size -> the lowest, the highest, and the step of its slider."""
KINDS = {"norm": "norms", "feed_forward": "feed-forward", "": "attention"}
"""Part of a parameter's name -> what it belongs to; the first one that fits."""


def try_norms() -> Live:
    """A small matrix; LayerNorm along its rows, BatchNorm down its columns."""
    return Live(
        lambda x: _norm_tables(matrix("x", x)),
        "run its cell to type a small table, a row a token, and see LayerNorm "
        "and BatchNorm side by side.",
        x=widgets.Textarea(
            value=TABLE, description="x", rows=5, continuous_update=False
        ),
    )


def _norm_tables(x: Tensor) -> str:
    rows, columns = x.shape
    if rows < 2:
        raise ValueError(
            "x: expected at least two rows, because BatchNorm averages over "
            f"tokens, got {rows}"
        )
    tokens = [f"token {i}" for i in range(1, rows + 1)]
    features = [lowered("x", i) for i in range(1, columns + 1)]
    return answered(
        "LayerNorm works along a row: each token ends at mean 0 and standard "
        "deviation 1 (at zeros, if its numbers are all equal), whatever the "
        "other tokens are. BatchNorm works down a column: change one token, "
        "and the others can move.",
        table("x", "x", features, tokens, _rows(x)),
        table("layer", "LayerNorm", features + AVERAGES, tokens, _along(x)),
        table("batch", "BatchNorm", features, tokens + AVERAGES, _down(x)),
        label="LayerNorm and BatchNorm",
    )


def _along(x: Tensor) -> list[str]:
    """LayerNorm, and at the end of each row its mean and deviation."""
    width = x.shape[1]
    normal = layer_norm(x, torch.ones(width), torch.zeros(width))
    ends = map(_plain, _averages(normal).tolist())
    return [row + end for row, end in zip(_rows(normal), ends, strict=True)]


def _down(x: Tensor) -> list[str]:
    """BatchNorm, and below each column its mean and deviation."""
    normal = F.batch_norm(x, None, None, training=True)
    return _rows(normal) + [
        _plain(row) for row in _averages(normal.T).T.tolist()
    ]


def _averages(x: Tensor) -> Tensor:
    """Of each row the mean, and the deviation around it."""
    return torch.stack([x.mean(1), x.std(1, correction=0)], dim=1)


def _plain(numbers: list[float]) -> str:
    return "".join(f"<td>{fixed(number)}</td>" for number in numbers)


def _rows(x: Tensor) -> list[str]:
    values = x.tolist()
    return [tinted(row, largest(values)) for row in values]


def try_sizes() -> Live:
    """Sliders for the sizes of a model; its parameters, part by part.

    They are counted on the meta device, where tensors have shapes and no
    memory. At first it is the paper's base model.
    """
    base = TransformerConfig.base()
    start = {"vocab_size": base.src_vocab_size}
    return Live(
        _size_tables,
        "run its cell to move the sizes of a Transformer and count its "
        "parameters.",
        **{
            name: widgets.IntSlider(
                value=start.get(name) or getattr(base, name),
                min=low,
                max=high,
                step=step,
                description=name,
                continuous_update=False,
            )
            for name, (low, high, step) in RANGES.items()
        },
    )


def _size_tables(vocab_size: int, **sizes: Any) -> str:
    config = TransformerConfig(
        src_vocab_size=vocab_size,
        tgt_vocab_size=vocab_size,
        shared_vocab=True,
        **sizes,
    )
    parts = _counts(config)
    total = sum(parts.values())
    rows = [
        f"<td>{count:,}</td><td {heat(count, total)}>{count / total:.1%}</td>"
        for count in [*parts.values(), total]
    ]
    return answered(
        f"{total:,} parameters, {fixed(4 * total / 1e6, 0)} MB in float32. "
        f"Each head is {config.d_model // config.num_heads} wide; the number "
        "of heads changes no count.",
        table(
            "sizes", "Where the parameters are", ["parameters", "share"],
            [*parts, "total"], rows,
        ),
        label="Sizes",
    )  # fmt: skip


def _counts(config: TransformerConfig) -> dict[str, int]:
    """Parameters by part; the embedding is the output layer too."""
    with torch.device("meta"):
        model = Transformer(config)
    parts = {"embedding": model.tgt_embedding.weight.numel()}
    for side in ("encoder", "decoder"):
        for name, count in _by_kind(getattr(model, side)).items():
            parts[f"{side}: {name}"] = count
    return parts


def _by_kind(stack: nn.Module) -> dict[str, int]:
    counts = dict.fromkeys(reversed(KINDS.values()), 0)
    for name, parameter in stack.named_parameters():
        kind = next(kind for part, kind in KINDS.items() if part in name)
        counts[kind] += parameter.numel()
    return counts
