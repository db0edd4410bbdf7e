"""Several processes that train one model, by PyTorch's own engine.

``torchrun --nproc-per-node=2 -m companion train`` starts them. Each has the
whole model and takes its share of the rows of each batch; their gradients are
those of one process that took all rows.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.distributed as dist
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from companion import device
from companion.training.steps import Objective

__all__ = ["Here", "Shared", "place", "processes", "share_out"]


class Here(NamedTuple):
    """Which process this one is.

    Attributes:
        process: Its number, from 0 up.
        processes: How many there are.
        device: Where it computes.

    Example:
        >>> here = Here(0, 1, torch.device("cpu"))
        >>> here.is_first, here.gather("mine")
        (True, ['mine'])
    """

    process: int
    processes: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this is the one that writes and prints."""
        return self.process == 0

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.processes > 1:
            dist.barrier()

    def gather(self, value: object) -> list:
        """Collect the values of all processes, in their order."""
        if self.processes == 1:
            return [value]
        values = [None] * self.processes
        dist.all_gather_object(values, value)
        return values


@contextmanager
def processes() -> Iterator[Here]:
    """Join the processes that torchrun started, or be alone.

    They can meet once only, so a program that trains several models opens this
    around all of them.

    Returns:
        A context manager that gives the ``Here`` of this process.

    Example:
        >>> with processes() as here:
        ...     print(here.process, here.processes)
        0 1
    """
    number = int(os.environ.get("WORLD_SIZE", "1"))
    if number == 1:
        yield Here(0, 1, device())
        return
    local = int(os.environ["LOCAL_RANK"])
    where = place(local, int(os.environ.get("LOCAL_WORLD_SIZE", number)))
    if where.type != "cpu":
        torch.accelerator.set_device_index(where.index)
    begin = not dist.is_initialized()
    if begin:
        dist.init_process_group(dist.get_default_backend_for_device(where))
    try:
        yield Here(dist.get_rank(), number, where)
    finally:
        if begin:
            dist.destroy_process_group()


def place(local: int, many: int) -> torch.device:
    """Choose where one of the processes of a machine computes.

    Each needs an accelerator of its own, and PyTorch a way to add up gradients
    that lie there. Where one of them is missing all compute on the CPU.

    Args:
        local: Which process of this machine it is, from 0 up.
        many: How many this machine has.

    Returns:
        Its device, with an index if it is an accelerator.

    Example:
        >>> place(0, many=1000)  # No machine has as many accelerators.
        device(type='cpu')
    """
    where = device()
    backend = dist.Backend.default_device_backend_map.get(where.type)
    enough = where.type != "cpu" and many <= torch.accelerator.device_count()
    if enough and backend and dist.is_backend_available(backend):
        return torch.device(where.type, local)
    return torch.device("cpu")


class Shared(nn.Module):
    """Share the batches of an ``Objective`` out among the processes.

    It takes whole batches, the same in each process, and gives their whole
    loss, so that it can stand wherever an ``Objective`` does.

    Args:
        objective: What each process computes of its rows.
        here: Which process this is.
    """

    def __init__(self, objective: Objective, here: Here):
        super().__init__()
        self.engine = DistributedDataParallel(objective)
        self.here = here

    def forward(
        self, *batch: Int[Tensor, "batch seq"]
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Compute the summed loss of the whole batch, and count its tokens."""
        number = self.here.processes
        rows = [part[self.here.process :: number] for part in batch]
        # A process without a row takes the first, and counts it for nothing:
        # the engine waits until all of them have computed gradients.
        weight = number if len(rows[0]) else 0
        loss, _ = self.engine(*(rows if weight else [p[:1] for p in batch]))
        # The engine takes the mean over processes, where their sum is wanted.
        scaled = loss * weight
        total = scaled.detach() / number
        dist.all_reduce(total)
        # In value the whole loss, in gradient that of this process's share.
        return scaled + (total - scaled).detach(), self.count(*batch)

    def count(self, *batch: Int[Tensor, "batch seq"]) -> Int[Tensor, ""]:
        """Count the tokens to be predicted in the whole batch."""
        return self.engine.module.count(*batch)


def share_out(objective: Objective, here: Here) -> nn.Module:
    """Share ``objective`` out, if there is another process.

    Args:
        objective: What each process computes of its rows.
        here: Which process this is.

    Returns:
        ``objective`` itself where this process is alone, or a ``Shared``.

    Example:
        >>> alone = Here(0, 1, torch.device("cpu"))
        >>> objective = Objective(nn.Identity())
        >>> share_out(objective, alone) is objective
        True
    """
    return Shared(objective, here) if here.processes > 1 else objective
