"""What a model computes and what it reads, and which of them takes longer.

A machine computes at one rate and reads memory at another. Work that needs few
operations for each byte waits for memory, whatever it computes; Williams et al.
(2009) draw that as a roof. Counted is what cannot be avoided: weights and cache
once a step. Activations are left out, so the times are lower bounds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch

from companion.checks import check_number, check_sizes, check_switches

__all__ = [
    "Machine",
    "Sizes",
    "Work",
    "decoding_work",
    "measure_machine",
    "prefill_work",
]


class Machine(NamedTuple):
    """How fast a machine computes and reads, at best.

    Attributes:
        operations: A second; a multiplication and an addition are two.
        bytes: A second, read from memory or written to it.
    """

    operations: float
    bytes: float

    @property
    def ridge(self) -> float:
        """The operations for each byte at which both take equally long."""
        return self.operations / self.bytes


class Work(NamedTuple):
    """Operations that have to be done, and bytes that have to be moved.

    Attributes:
        operations: Multiplications and additions.
        bytes: Read from memory or written to it.
    """

    operations: float
    bytes: float

    @property
    def intensity(self) -> float:
        """The operations for each byte."""
        return self.operations / self.bytes

    def computing(self, machine: Machine) -> float:
        """Return the seconds that the operations take, at best."""
        return self.operations / machine.operations

    def moving(self, machine: Machine) -> float:
        """Return the seconds that the bytes take, at best."""
        return self.bytes / machine.bytes

    def seconds(self, machine: Machine) -> float:
        """Return the longer of both: they overlap where all goes well.

        Example:
            >>> Work(100, 30).seconds(Machine(operations=50, bytes=10))
            3.0
        """
        return max(self.computing(machine), self.moving(machine))


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a language model, as far as its cost depends on them.

    Attributes:
        num_layers: Blocks of attention and feed-forward network.
        d_model: Width of a position.
        num_heads: Of queries; each is ``d_model / num_heads`` wide.
        num_kv_heads: Of keys and values.
        d_ff: Width inside of the feed-forward network.
        vocab_size: Rows of the embedding, and of the output matrix.
        gated: Whether the feed-forward network has three matrices or two.
    """

    num_layers: int
    d_model: int
    num_heads: int
    num_kv_heads: int
    d_ff: int
    vocab_size: int
    gated: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes that fit no model.

        Raises:
            TypeError: a size is no int.
            ValueError: a size is below 1; ``num_heads`` does not divide
                ``d_model``, or ``num_kv_heads`` not ``num_heads``.
        """
        sizes = dict(vars(self))
        check_switches(gated=sizes.pop("gated"))
        check_sizes(**sizes)
        for part, whole in (
            ("num_heads", "d_model"),
            ("num_kv_heads", "num_heads"),
        ):
            if sizes[whole] % sizes[part]:
                raise ValueError(
                    f"{part}: expected a divisor of {whole} {sizes[whole]}, "
                    f"got {sizes[part]}"
                )

    @classmethod
    def seven_billion(cls, num_kv_heads: int = 32) -> "Sizes":
        """Return those of LLaMA 7B (Touvron et al., 2023).

        Args:
            num_kv_heads: Fewer than its 32 for grouped heads.
        """
        return cls(
            num_layers=32,
            d_model=4096,
            num_heads=32,
            num_kv_heads=num_kv_heads,
            d_ff=11008,
            vocab_size=32000,
        )

    @property
    def layer_weights(self) -> int:
        """The numbers in the matrices of one layer."""
        kv_width = self.d_model * self.num_kv_heads // self.num_heads
        attention = 2 * self.d_model * (self.d_model + kv_width)
        return attention + (2 + self.gated) * self.d_model * self.d_ff

    @property
    def weights(self) -> int:
        """The numbers that a step multiplies with: all but the embedding.

        Of the embedding a token reads one row. Norms are left out.
        """
        return self.num_layers * self.layer_weights + self.output_weights

    @property
    def output_weights(self) -> int:
        """The numbers in the matrix that makes logits."""
        return self.d_model * self.vocab_size

    @property
    def cache_numbers(self) -> int:
        """The keys and values of one position, in all layers."""
        head = self.d_model // self.num_heads
        return 2 * self.num_layers * self.num_kv_heads * head


def decoding_work(
    model: Sizes,
    batch: int,
    context: int,
    *,
    weight_bits: int | float = 16,
    cache_bits: int | float = 16,
) -> Work:
    """Count one step of decoding: one new token for each text of a batch.

    The weights are read once for the whole batch, and each text reads its own
    cache.

    Args:
        model: The sizes.
        batch: How many texts there are.
        context: How many positions each new token attends to.
        weight_bits: Of each weight, scales included.
        cache_bits: Of each number of the cache.

    Returns:
        The operations and bytes of the step.

    Raises:
        TypeError: a size is no int, or bits are no number.
        ValueError: a size is below 1, or bits are not above 0.

    Example:
        >>> work = decoding_work(Sizes.seven_billion(), batch=1, context=1)
        >>> round(work.intensity, 2)
        1.0
    """
    check_sizes(batch=batch, context=context)
    check_number("weight_bits", weight_bits, above=0)
    check_number("cache_bits", cache_bits, above=0)
    scores = 2 * model.num_layers * model.d_model * context
    cache = model.cache_numbers * context * cache_bits / 8
    return Work(
        operations=batch * 2 * (model.weights + scores),
        bytes=model.weights * weight_bits / 8 + batch * cache,
    )


def prefill_work(
    model: Sizes,
    batch: int,
    length: int,
    *,
    weight_bits: int | float = 16,
    cache_bits: int | float = 16,
) -> Work:
    """Count the reading of a prompt: all positions at once, logits of the last.

    Args:
        model: The sizes.
        batch: How many prompts there are.
        length: How many tokens each has.
        weight_bits: Of each weight, scales included.
        cache_bits: Of each number of the cache, which is written.

    Returns:
        The operations and bytes of the whole prompt.

    Raises:
        TypeError: a size is no int, or bits are no number.
        ValueError: a size is below 1, or bits are not above 0.

    Example:
        >>> work = prefill_work(Sizes.seven_billion(), batch=1, length=512)
        >>> work.intensity > 400
        True
    """
    check_sizes(batch=batch, length=length)
    check_number("weight_bits", weight_bits, above=0)
    check_number("cache_bits", cache_bits, above=0)
    # Position i attends to i + 1 positions: n (n + 1) / 2 in all.
    pairs = length * (length + 1) // 2
    scores = 2 * model.num_layers * model.d_model * pairs
    layers = model.num_layers * model.layer_weights * length
    cache = model.cache_numbers * length * cache_bits / 8
    return Work(
        operations=batch * 2 * (layers + scores + model.output_weights),
        bytes=model.weights * weight_bits / 8 + batch * cache,
    )


def measure_machine(
    size: int = 1024,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    tries: int = 7,
) -> Machine:
    """Measure how fast matrices are multiplied here, and memory is copied.

    The best of several tries, because other work can only make them slower.

    Args:
        size: The matrices are (size, size). What is copied is 16 times as
            large, so that it should not fit into a cache.
        dtype: Of the numbers.
        device: Where to measure.
        tries: How often each is tried.

    Returns:
        The two rates. A copy reads each byte once and writes it once.

    Raises:
        TypeError: ``size`` or ``tries`` is no int.
        ValueError: one of them is below 1.

    Example:
        >>> measure_machine(64, tries=1).ridge > 0
        True
    """
    check_sizes(size=size, tries=tries)
    a, b, product = (
        torch.ones(size, size, dtype=dtype, device=device) for _ in range(3)
    )
    source = torch.ones(16 * size * size, dtype=dtype, device=device)
    target = torch.empty_like(source)
    multiplying = _best(lambda: torch.mm(a, b, out=product), device, tries)
    copying = _best(lambda: target.copy_(source), device, tries)
    return Machine(
        operations=2 * size**3 / multiplying,
        bytes=2 * source.numel() * source.element_size() / copying,
    )


def _best(
    run: Callable[[], object], device: torch.device | str, tries: int
) -> float:
    """Time one call, after one that is not counted."""
    run()
    seconds = []
    for _ in range(tries):
        _wait(device)
        start = time.perf_counter()
        run()
        _wait(device)
        seconds.append(time.perf_counter() - start)
    return max(min(seconds), 1e-9)


def _wait(device: torch.device | str) -> None:
    """Wait until an accelerator has done what it was told."""
    if torch.device(device).type != "cpu":
        torch.accelerator.synchronize()
