"""Training steps: the same sizes, the same batches, each library's own way."""

import shutil
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.machine import Times, interleaved, product
from benchmarks.peers import PEERS, SIZES, TOY, Size, batches, ours
from companion.training import Objective, adam, update

ROUNDS = {"toy": 1, "small": 25, "medium": 15, "base": 11}
BASELINE = "nn.Transformer"
REROUTED = "companion, fp32 matmuls rerouted (not plain fp32)"
BOTH = "companion, rerouted, and attention in plain products"


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each size and library; ratios are to ``nn.Transformer``."""
    rows = []
    for size in (TOY,) if small else SIZES:
        rounds = ROUNDS[size.name]
        runs = contestants(size, device)
        rows += _rows(size, interleaved(runs, rounds=rounds, device=device))
    return rows


def race_compiled(*, small: bool, device: str) -> list[dict]:
    """The same with ``torch.compile``, beside two that are not compiled.

    There are none where a compiler is missing. The toy is traced as the others
    are, and its graph runs as it is.
    """
    rows = []
    if device == "cpu" and not small and not shutil.which("c++"):
        return rows
    backend = "aot_eager" if small else "inductor"
    for size in (TOY,) if small else SIZES:
        rounds = ROUNDS[size.name] // 2 + 1
        runs = compiled_contestants(size, device, backend)
        for run in runs.values():
            run(1)  # Compiling is not timed; the first round is one more.
        rows += _rows(size, interleaved(runs, rounds=rounds, device=device))
        torch.compiler.reset()
    return rows


def limit(*, small: bool, device: str) -> list[dict]:
    """The share of the machine's own matrix products that a step reaches."""
    side = 64 if small else 1024 if device == "cpu" else 8192
    rows = []
    for size in (TOY,) if small else SIZES:
        # The product beside each step: a machine that is slow for a while is
        # slow for both.
        runs = {
            "fp32": _own(size, device, None),
            "fp32 product": product(device, torch.float32, side),
            "bf16": _own(size, device, torch.bfloat16),
            "bf16 product": product(device, torch.bfloat16, side),
        }
        rounds = 1 if small else 7
        times = interleaved(runs, rounds=rounds, device=device)
        work = flops(size, device)
        for kind in ("fp32", "bf16"):
            rate = 2 * side**3 / times[f"{kind} product"].median
            rows.append(_share(size, kind, work, times[kind].median, rate))
    return rows


def _share(
    size: Size, kind: str, work: float, seconds: float, rate: float
) -> dict:
    return {
        "size": size.name,
        "numbers": kind,
        "GFLOP a step": work / 1e9,
        "GFLOP/s": work / seconds / 1e9,
        "GFLOP/s of a matmul": rate / 1e9,
        "share": work / seconds / rate,
    }


def contestants(size: Size, device: str) -> dict[str, Callable[[int], None]]:
    """One step of each, by name; the number says which batch it gets."""
    runs = {"companion": _own(size, device, None)}
    runs |= {name: _peer(kind, size, device) for name, kind in PEERS.items()}
    runs["companion, bf16"] = _own(size, device, torch.bfloat16)
    if device == "cpu":
        runs[REROUTED] = _rerouted(_own(size, device, None))
        runs[BOTH] = _plainly(_rerouted(_own(size, device, None)))
    return runs


def compiled_contestants(
    size: Size, device: str, backend: str
) -> dict[str, Callable[[int], None]]:
    """One compiled step of each, and two plain ones to compare with."""
    how = {"backend": backend}
    runs = {
        "companion": _own(size, device, None),
        BASELINE: _peer(PEERS[BASELINE], size, device),
        "companion, compiled": _own(size, device, None, **how),
    }
    for name, kind in PEERS.items():
        runs[f"{name}, compiled"] = _peer(kind, size, device, **how)
    if device != "cpu":
        half = _own(size, device, torch.bfloat16, **how)
        runs["companion, bf16, compiled"] = half
    return runs


def flops(size: Size, device: str) -> float:
    """What a step multiplies and adds, counted while it runs."""
    step = _own(size, device, None)
    with FlopCounterMode(display=False) as counter:
        step(0)
    return counter.get_total_flops()


def rerouting_error() -> dict[str, float]:
    """How far a product is from the exact one, plain and rerouted."""
    a, b = torch.randn(512, 512), torch.randn(512, 512)
    exact = a.double() @ b.double()
    found = {}

    def measure(name: str) -> None:
        found[name] = ((a @ b - exact).norm() / exact.norm()).item()

    measure("plain")
    _rerouted(lambda _: measure("rerouted"))(0)
    return found


def _own(
    size: Size,
    device: str,
    autocast: torch.dtype | None,
    *,
    backend: str | None = None,
) -> Callable[[int], None]:
    torch.manual_seed(0)
    model = ours(size).to(device).train()
    objective = Objective(model)
    if backend:
        objective.compile(backend=backend)
    optimizer = adam(model.parameters(), lr=1e-4)
    data = batches(size, 4, device=device)
    settings = {"step": 1, "rate": 1e-4, "autocast": autocast}

    def run(number: int) -> None:
        batch = data[number % len(data)]
        update(objective, optimizer, [batch], **settings)

    return run


def _peer(
    kind: type[nn.Module],
    size: Size,
    device: str,
    *,
    backend: str | None = None,
) -> Callable[[int], None]:
    torch.manual_seed(0)
    model = kind(size).to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    data = batches(size, 4, device=device)
    compute = model.loss
    if backend:
        compute = torch.compile(compute, backend=backend)

    def run(number: int) -> Tensor:
        loss = compute(*data[number % len(data)])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return run


def _rerouted(run: Callable[[int], None]) -> Callable[[int], None]:
    """``run``, with fp32 products that may use another library, or bf16."""
    switch = torch.backends.mkldnn.matmul

    def rerouted(number: int) -> None:
        before = switch.fp32_precision
        switch.fp32_precision = "bf16"
        try:
            run(number)
        finally:
            switch.fp32_precision = before

    return rerouted


def _plainly(run: Callable[[int], None]) -> Callable[[int], None]:
    """``run``, with attention in plain products, of all heads at once.

    The fused one multiplies small blocks, each of which can cost another
    library more to set up than to do.
    """

    def plainly(number: int) -> None:
        with sdpa_kernel(SDPBackend.MATH):
            run(number)

    return plainly


def _rows(size: Size, times: dict[str, Times]) -> list[dict]:
    tokens = sum(int((tgt[:, 1:] != 0).sum()) for _, tgt in batches(size, 4))
    return [
        {
            "size": size.name,
            "what": name,
            "ms a step": 1e3 * taken.median,
            "least": 1e3 * min(taken.rounds),
            "most": 1e3 * max(taken.rounds),
            "target tokens/s": tokens / 4 / taken.median,
            "times nn.Transformer": times[BASELINE].over(taken),
        }
        for name, taken in times.items()
    ]
