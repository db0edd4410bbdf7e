"""The random numbers of a run: a beginning of their own, kept and restored."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def random_state() -> dict:
    """Where Python's and PyTorch's random numbers are, as JSON can hold it."""
    state = {
        "python": random.getstate(),
        "torch": _text(torch.get_rng_state()),
    }
    if torch.cuda.is_available():
        state["cuda"] = _text(torch.cuda.get_rng_state())
    return state


def restore(state: dict) -> None:
    """Takes the random numbers back to where ``random_state`` found them."""
    version, words, spare = state["python"]
    random.setstate((version, tuple(words), spare))
    torch.set_rng_state(_bytes(state["torch"]))
    if torch.cuda.is_available() and "cuda" in state:
        torch.cuda.set_rng_state(_bytes(state["cuda"]))


@contextmanager
def own_random_numbers(seed: int) -> Iterator[None]:
    """Random numbers that begin at ``seed``; outside, they go on as before."""
    before = random_state()
    start_at(seed)
    try:
        yield
    finally:
        restore(before)


def start_at(seed: int) -> None:
    """Begins Python's and PyTorch's random numbers at ``seed``."""
    random.seed(seed)
    torch.manual_seed(seed)


def _text(state: torch.Tensor) -> str:
    return bytes(state.tolist()).hex()


def _bytes(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray.fromhex(text), dtype=torch.uint8)
