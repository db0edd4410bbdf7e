"""Greedy and beam decoding: tokens a second against length."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.machine import Times, interleaved, once
from benchmarks.peers import (
    BOS,
    EOS,
    PAD,
    SIZES,
    TOY,
    HuggingFacePeer,
    Size,
    batches,
    ours,
)
from companion.decoding import translate
from companion.transformer import Transformer

BEAM = 4


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each size, way and length; both write to the last token."""
    if small:
        return _rows(TOY, (3, 5), (3,), rounds=1, device=device)
    few, many = SIZES[:2]
    return [
        *_rows(few, (16, 64, 256, 512), (64, 256), rounds=5, device=device),
        *_rows(many, (16, 64, 256, 512), (), rounds=5, device=device),
    ]


def _rows(
    size: Size,
    lengths: tuple[int, ...],
    uncached: tuple[int, ...],
    *,
    rounds: int,
    device: str,
) -> list[dict]:
    runs, slow = writers(size, device)
    rows = []
    for length in lengths:
        once_only = slow if length in uncached else {}
        times = _times(runs, once_only, length, rounds=rounds, device=device)
        rows += [
            _row(size, length, name, times[name], times[_like(name)])
            for name in times
        ]
    return rows


def _times(
    runs: dict[str, Callable],
    once_only: dict[str, Callable],
    length: int,
    *,
    rounds: int,
    device: str,
) -> dict[str, Times]:
    here = {name: _to(length, run) for name, run in runs.items()}
    late = {name: _to(length, run) for name, run in once_only.items()}
    # What takes long is done less often, and what takes a minute once.
    if length <= 64:
        here, late = here | late, {}
    elif rounds > 1:
        rounds = 3 if length <= 256 else 1
    times = interleaved(here, rounds=rounds, device=device)
    return times | {
        name: once(run, device=device) for name, run in late.items()
    }


def _row(size: Size, length: int, name: str, taken: Times, ours: Times) -> dict:
    return {
        "size": size.name,
        "what": name,
        "tokens": length,
        "seconds": taken.median,
        "tokens/s": size.batch * length / taken.median,
        "times ours": _ratio(taken, ours),
    }


def _ratio(taken: Times, ours: Times) -> float:
    """By rounds if there are as many of both; else one was timed once."""
    if len(taken.rounds) == len(ours.rounds):
        return taken.over(ours)
    return taken.median / ours.median


def writers(
    size: Size, device: str
) -> tuple[dict[str, Callable], dict[str, Callable]]:
    """What writes ``length`` tokens for each source; with and without cache."""
    torch.manual_seed(0)
    own, peer = ours(size).to(device), HuggingFacePeer(size).to(device)
    for table in (own.tgt_embedding.weight, peer.model.lm_head.weight):
        silence(table)
    own.eval()
    peer.eval()
    src = batches(size, 1, device=device)[0][0]

    def companion(length: int, **how) -> list[list[int]]:
        return translate(own, src, max_len=length, **how)

    cached = {
        "companion, greedy": companion,
        "Hugging Face, greedy": lambda n: _generate(peer, src, n, 1),
        "companion, beam": lambda n: companion(n, beam=BEAM),
        "Hugging Face, beam": lambda n: _generate(peer, src, n, BEAM),
    }
    slow = {
        "companion, greedy, no cache": lambda n: companion(n, cache=False),
        "companion, greedy, all again": lambda n: all_again(own, src, n),
    }
    return cached, slow


def _generate(
    peer: HuggingFacePeer, src: Tensor, length: int, beams: int
) -> Tensor:
    return peer.model.generate(
        src,
        attention_mask=(src != PAD).long(),
        max_new_tokens=length,
        num_beams=beams,
        do_sample=False,
        eos_token_id=EOS,
    )


@torch.inference_mode()
def all_again(model: Transformer, src: Tensor, length: int) -> Tensor:
    """The loop of a first course: the whole model, for each new token."""
    tokens = torch.full_like(src[:, :1], BOS)
    for _ in range(length):
        logits = model(src, tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    return tokens


def silence(table: Tensor) -> None:
    """Makes eos a row of zeros: its logit is 0, and never the largest.

    With random weights some other logit is positive, so that each sentence is
    written to the last token.
    """
    with torch.no_grad():
        table[EOS] = 0


def _to(length: int, run: Callable) -> Callable[[int], None]:
    def exactly(_: int) -> None:
        said = run(length)
        written = {len(row) for row in said}
        # Hugging Face, and the plain loop, give bos back too.
        if not written <= {length, length + 1}:
            raise RuntimeError(f"expected {length} tokens, got {written}")

    return exactly


def _like(name: str) -> str:
    return f"companion, {'beam' if 'beam' in name else 'greedy'}"
