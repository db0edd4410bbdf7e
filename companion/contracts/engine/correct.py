"""Healthy implementations, different in style, for a learner's test to pass.

The course's own, PyTorch's where the contracts compare with it, and variations
of both that change nothing that a caller may rely on: other weights, numbers of
another precision within, another place in memory.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from companion.attention import (
    masked_softmax,
    scaled_dot_product_attention,
    softmax,
)
from companion.blocks import FeedForward, layer_norm
from companion.contracts import COMPONENTS
from companion.contracts.blocks.norm_gradient import by_hand
from companion.contracts.engine.compare import is_float, tensors_in
from companion.contracts.engine.component import Component, built
from companion.decoding import (
    beam_search,
    bleu,
    cached_decode,
    greedy_decode,
    sampling_filter,
)
from companion.efficiency import (
    PagedLists,
    flash_attention,
    online_softmax,
    quantize,
    speculative_step,
)
from companion.masks import causal_mask, combine_masks, padding_mask
from companion.multihead import MultiHeadAttention, split_heads
from companion.positions import (
    LearnedPositions,
    SinusoidalPositions,
    rotate,
    sinusoidal,
)
from companion.rnn import unroll
from companion.seq2seq import dot_alignment
from companion.tokens import (
    bpe_decode,
    bpe_encode,
    learn_merges,
    split_special,
)
from companion.training import label_smoothing, noam
from companion.transformer import (
    Encoder,
    LanguageModel,
    LanguageModelConfig,
    StackConfig,
    Transformer,
    TransformerConfig,
    shift_right,
)
from companion.variants import (
    grouped_query_attention,
    mask_tokens,
    rms_norm,
    span_corrupt,
    span_restore,
)

__all__ = ["FUNCTIONS", "MODULES", "Healthy", "each", "healthy", "with_names"]

WIDTH, HEADS, INNER, WORDS, MAX_LEN = 12, 3, 29, 100, 64
"""Of the modules: what the contracts ask for."""


def in_rows(weight: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Quantise row by row, with the three parts side by side."""
    stored = quantize(weight, bits)
    return stored.integers, stored.scale, stored.zero_point


FUNCTIONS = {
    "softmax": softmax,
    "masked_softmax": masked_softmax,
    "attention": scaled_dot_product_attention,
    "rnn": unroll,
    "alignment": dot_alignment,
    "split_heads": split_heads,
    "sinusoidal": sinusoidal,
    "rope": rotate,
    "layer_norm": layer_norm,
    "norm_gradient": by_hand,
    "causal_mask": causal_mask,
    "padding_mask": padding_mask,
    "combine_masks": combine_masks,
    "label_smoothing": label_smoothing,
    "schedule": noam,
    "shift_right": shift_right,
    "learn_merges": learn_merges,
    "bpe_encode": bpe_encode,
    "bpe_decode": bpe_decode,
    "split_special": split_special,
    "greedy_decode": greedy_decode,
    "beam_search": beam_search,
    "sampling_filter": sampling_filter,
    "bleu": bleu,
    "cached_decode": cached_decode,
    "mask_tokens": partial(mask_tokens, vocab_size=WORDS),
    "span_corrupt": span_corrupt,
    "span_restore": span_restore,
    "grouped_query_attention": grouped_query_attention,
    "rms_norm": rms_norm,
    "online_softmax": online_softmax,
    "flash_attention": flash_attention,
    "paged_cache": PagedLists,
    "quantize": in_rows,
    "speculative_step": speculative_step,
}
"""The course's own, by component."""

SIZES = {
    "d_model": WIDTH, "num_heads": HEADS, "d_ff": INNER, "num_layers": 2,
    "dropout": 0.1,
}  # fmt: skip


def language_model() -> nn.Module:
    """Build a small GPT."""
    return LanguageModel(LanguageModelConfig(**SIZES, vocab_size=WORDS))


def translation_model() -> nn.Module:
    """Build a small encoder–decoder."""
    sizes = {"src_vocab_size": WORDS, "tgt_vocab_size": WORDS}
    return Transformer(TransformerConfig(**SIZES, **sizes))


MODULES = {
    "multihead": {
        "three heads": lambda: MultiHeadAttention(WIDTH, HEADS, dropout=0.1),
        "one head": lambda: MultiHeadAttention(WIDTH, 1),
    },
    "add_positions": {
        "sinusoids": lambda: SinusoidalPositions(WIDTH),
        "a learned table": lambda: LearnedPositions(MAX_LEN, WIDTH),
    },
    "feed_forward": {
        "with ReLU": lambda: FeedForward(WIDTH, INNER),
        "with GELU": lambda: FeedForward(
            WIDTH, INNER, activation=nn.functional.gelu
        ),
    },
    "encoder": {
        "norms after": lambda: Encoder(StackConfig(**SIZES)),
        "norms before": lambda: Encoder(StackConfig(**SIZES, norm_first=True)),
    },
    "language_model": {"a small one": language_model},
    "translation_model": {"a small one": translation_model},
}
"""What has weights of its own: how the course builds it, in words."""

NO_REFERENCE = (
    "masked_softmax",
    "clip_gradients",
    "cached_decode",
    "flash_attention",
)
"""Their oracles say what is right, and are no implementations: NaN where nobody
is seen, the gradients in one row, all positions at once, all scores at once."""

ROUNDED = "Its last digits are its own: compare with a tolerance."
SCATTERED = "It stands otherwise in memory: is there a `.view`?"
WEIGHTS = "Its weights are its own: what is true of any weights?"


class Healthy(NamedTuple):
    """An implementation in order: its name, and what is its own about it."""

    name: str
    fn: Callable
    note: str = ""


def healthy(component: str) -> list[Healthy]:
    """Every healthy implementation of a component, ours first."""
    if component in MODULES:
        return [
            Healthy(f"ours, {name}, weights {seed}", built(make, seed), WEIGHTS)
            for name, make in MODULES[component].items()
            for seed in (1, 2)
        ]
    found = COMPONENTS[component]
    plain = []
    if component in FUNCTIONS:
        plain.append(Healthy("ours", FUNCTIONS[component]))
    if found.oracle and component not in NO_REFERENCE:
        plain.append(Healthy(found.reference, found.oracle))
    if not plain:
        return []
    fn, example = plain[0].fn, found.example
    if any(map(is_float, example)):
        name = "ours in double precision"
        plain.append(Healthy(name, in_double(fn), ROUNDED))
    if tensors_in(fn(*example)):
        name = "ours elsewhere in memory"
        plain.append(Healthy(name, scattered(fn), SCATTERED))
    return plain


def with_names(component: Component, fn: Callable) -> Callable:
    """Let ``fn`` take its arguments by the component's names too."""

    def called(*args: Any, **named: Any) -> Any:
        given = [
            named.pop(name)
            for name in component.parameters[len(args) :]
            if name in named
        ]
        return fn(*args, *given, **named)

    return called


def in_double(fn: Callable) -> Callable:
    """Let ``fn`` compute in float64 and round at the end."""

    def rounded(*args: Any) -> Any:
        kind = next((x.dtype for x in args if is_float(x)), torch.float32)
        exact = each(args, lambda x: x.double() if is_float(x) else x)
        return each(fn(*exact), lambda x: x.to(kind) if is_float(x) else x)

    return rounded


def scattered(fn: Callable) -> Callable:
    """Let ``fn`` return rows with other numbers between them in memory."""

    def apart(x: Any) -> Any:
        rows = isinstance(x, Tensor) and x.ndim
        return torch.cat([x, x], -1)[..., : x.shape[-1]] if rows else x

    return lambda *args: each(fn(*args), apart)


def each(x: Any, change: Callable) -> Any:
    """Change each part of ``x``, in lists, tuples and dictionaries too."""
    if isinstance(x, dict):
        return {key: each(value, change) for key, value in x.items()}
    if isinstance(x, list | tuple):
        parts = [each(part, change) for part in x]
        named = hasattr(x, "_fields")
        return type(x)(*parts) if named else type(x)(parts)
    return change(x)
