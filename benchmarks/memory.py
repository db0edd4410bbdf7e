"""The peak memory of attention, and of a GPT, against length.

On a CPU every allocation is listed by the profiler, and added up; on a GPU the
allocator keeps count. Both are exact, and blind to what else is running.
"""

import os
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from companion.attention import scaled_dot_product_attention
from companion.variants import GPT, GPTConfig

# Else the profiler says each time that it starts and that it stops.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
HEADS, HEAD_DIM = 2, 64
MIB = 2**20


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each way and length, forward and with the backward pass."""
    rows = []
    for length in (16, 64) if small else (256, 1024, 4096):
        found = {
            name: (
                _forward(way, length, device),
                _backward(way, length, device),
            )
            for name, way in WAYS.items()
        }
        rows += _rows(found, length, most=found["explicit, all weights"])
        gpt = {
            name: _gpt(length, device, pad=pad)
            for name, pad in (("GPT, a mask", 0), ("GPT, causal", None))
        }
        rows += _rows(gpt, length, most=gpt["GPT, a mask"])
        if length >= 4096:
            check_causal(*gpt.values())
    return rows


def check_causal(masked: tuple[int, int], causal: tuple[int, int]) -> None:
    """Assert that without a mask a GPT needs at most half of the memory."""
    for with_mask, without in zip(masked, causal, strict=True):
        if 2 * without > with_mask:
            raise RuntimeError(
                f"expected at most half of {with_mask} bytes, got {without}"
            )


def _rows(
    found: dict[str, tuple[int, int]], length: int, *, most: tuple[int, int]
) -> list[dict]:
    return [
        {
            "what": name,
            "length": length,
            "forward MiB": forward / MIB,
            "with backward MiB": both / MIB,
            "less forward": most[0] / forward,
            "less with backward": most[1] / both,
        }
        for name, (forward, both) in found.items()
    ]


def _gpt(length: int, device: str, *, pad: int | None) -> tuple[int, int]:
    """The same small model; with ``pad`` it has a mask, of the triangle."""
    config = GPTConfig(
        vocab_size=17,
        d_model=HEADS * HEAD_DIM,
        num_heads=HEADS,
        d_ff=HEADS * HEAD_DIM,
        num_layers=2,
        dropout=0.0,
        max_len=length,
        pad=pad,
    )
    model = GPT(config).to(device)
    tokens = torch.ones(1, length, dtype=torch.long, device=device)

    def forward() -> None:
        with torch.no_grad():
            model(tokens)

    return peak(forward, device), peak(
        lambda: model(tokens).sum().backward(), device
    )


def peak(run: Callable[[], object], device: str) -> int:
    """The most bytes that ``run`` holds at a time, beyond those before it."""
    if device != "cpu":
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        run()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as listed:
        run()
    held = most = 0
    events = listed.profiler.kineto_results.events()
    for event in sorted(events, key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def _forward(way: Callable, length: int, device: str) -> int:
    q, k, v = _inputs(length, device, gradient=False)
    return peak(lambda: way(q, k, v), device)


def _backward(way: Callable, length: int, device: str) -> int:
    q, k, v = _inputs(length, device, gradient=True)
    return peak(lambda: way(q, k, v).sum().backward(), device)


def _inputs(length: int, device: str, *, gradient: bool) -> list[Tensor]:
    shape = 1, HEADS, length, HEAD_DIM
    return [
        torch.randn(shape, device=device, requires_grad=gradient)
        for _ in range(3)
    ]


WAYS = {
    "explicit, all weights": scaled_dot_product_attention,
    "no weights": F.scaled_dot_product_attention,
    "no weights, dropout 0.1": lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, dropout_p=0.1
    ),
}
