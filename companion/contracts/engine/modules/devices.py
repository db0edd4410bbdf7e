"""Contracts run on the CPU, whatever device the code names that they try.

Much of what is published names one: ``.cuda()``, ``.to(device)`` with a device
that was chosen at the top, ``torch.arange(n, device=device)``. Where no GPU is,
some of it raises. Where one is, its results meet tensors of the CPU.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit import _builtins
from torch.utils._device import _device_constructors

__all__ = [
    "Moved",
    "made_on_the_cpu",
    "on_the_cpu",
]

HERE = ("cpu", "meta")
LIKE = ("empty", "full", "ones", "rand", "randint", "randn", "zeros")
NEW = ("empty", "full", "ones", "tensor", "zeros")
NONE = object()

AS_NAMED: list[tuple[Any, str, Any]] = []
"""What PyTorch has where devices are replaced; nothing, where they are not."""


def home_of(module: nn.Module | None) -> torch.device | None:
    """Return the device a module lives on, unless that is the CPU."""
    if module is None:
        return None
    tensors = itertools.chain(module.parameters(), module.buffers())
    homes = {x.device for x in tensors} - {torch.device("cpu")}
    return homes.pop() if len(homes) == 1 else None


def made_on_the_cpu() -> contextlib.AbstractContextManager:
    """Make new tensors on the CPU; where they are anyway, cost nothing."""
    if torch.get_default_device().type == "cpu":
        return contextlib.nullcontext()
    return torch.device("cpu")


class Moved:
    """A module that lives elsewhere, on the CPU for as long as ``with`` lasts.

    So are the tensors that its parts keep beside parameters and buffers.

    Attributes:
        module: The module, if there is one.
        home: The device it lives on, unless that is the CPU.
    """

    def __init__(self, module: nn.Module | None):
        self.module, self.home = module, home_of(module)
        self.kept: list[tuple[dict, str, Tensor]] = []

    def __enter__(self) -> "Moved":
        """Move the module to the CPU."""
        if self.module is not None and self.home:
            self.kept = [
                (vars(part), name, x)
                for part in self.module.modules()
                for name, x in vars(part).items()
                if isinstance(x, Tensor) and is_elsewhere(x.device)
            ]
            self._to("cpu", [x.detach().cpu() for _, _, x in self.kept])
        return self

    def __exit__(self, *_: object) -> None:
        """Move the module back."""
        if self.module is not None and self.home:
            self._to(self.home, [x for _, _, x in self.kept])

    @contextlib.contextmanager
    def back(self) -> Iterator[None]:
        """Have the module where it lives, and every device as it is named."""
        here = [of[name] for of, name, _ in self.kept]
        self.__exit__()
        try:
            with as_named():
                yield
        finally:
            if self.module is not None:
                self._to("cpu", here)

    def _to(self, device: torch.device | str, tensors: list[Tensor]) -> None:
        # What is replaced would leave it here.
        with as_named():
            self.module.to(device)
        for (of, name, _), x in zip(self.kept, tensors, strict=True):
            of[name] = x


def is_elsewhere(device: object) -> bool:
    """Tell whether a device is named that is not the CPU."""
    if isinstance(device, torch.device):
        return device.type not in HERE
    if isinstance(device, str):
        return device.split(":")[0] not in HERE
    # A number is one of several GPUs.
    return isinstance(device, int) and not isinstance(device, bool)


def making_here(make: Callable) -> Callable:
    """Let what makes a tensor make it on the CPU."""

    @functools.wraps(make)
    def making(*args: Any, device: object = None, **named: Any) -> Any:
        if device is not None:
            named["device"] = "cpu" if is_elsewhere(device) else device
        return make(*args, **named)

    # So that TorchScript takes it for what it stands for.
    if found := _builtins._find_builtin(make):
        _builtins._register_builtin(making, found)
    return making


def to_here(to: Callable) -> Callable:
    """Let what moves a tensor elsewhere leave it on the CPU."""

    @functools.wraps(to)
    def moving(x: Tensor, *args: Any, **named: Any) -> Tensor:
        args = tuple("cpu" if is_elsewhere(a) else a for a in args)
        if is_elsewhere(named.get("device")):
            named["device"] = "cpu"
        return to(x, *args, **named)

    return moving


def staying(x: Tensor, *args: Any, **named: Any) -> Tensor:
    """Stand for ``Tensor.cuda``."""
    return x.cpu()


def absent(*args: Any, **named: Any) -> bool:
    """Stand for the question whether there is a GPU."""
    return False


def nothing(*args: Any, **named: Any) -> None:
    """Stand for what chooses a device for all that follows."""


@functools.cache
def replacements() -> list[tuple[Any, str, Any]]:
    """List what is replaced: whose it is, its name, what stands for it.

    All originals are looked up before the first of them is replaced.
    """
    makers = [
        *((torch, make.__name__) for make in _device_constructors()),
        *((torch, f"{name}_like") for name in LIKE),
        *((Tensor, f"new_{name}") for name in NEW),
    ]
    asked = (torch.cuda, torch.xpu, torch.backends.mps, torch.accelerator)
    return [
        *(
            (owner, name, making_here(getattr(owner, name)))
            for owner, name in makers
            if hasattr(owner, name)
        ),
        *((Tensor, name, staying) for name in ("cuda", "xpu")),
        *((owner, "is_available", absent) for owner in asked),
        (Tensor, "to", to_here(Tensor.to)),
        (torch, "set_default_device", nothing),
    ]


def swapped(values: list[tuple[Any, str, Any]]) -> list[tuple[Any, str, Any]]:
    """Set attributes, and return what they were."""
    before = [
        (owner, name, vars(owner).get(name, NONE)) for owner, name, _ in values
    ]
    for owner, name, value in values:
        if value is NONE:
            # It was inherited.
            delattr(owner, name)
        else:
            setattr(owner, name, value)
    return before


@contextlib.contextmanager
def on_the_cpu() -> Iterator[None]:
    """Let every device that is named be the CPU."""
    if AS_NAMED:
        yield
        return
    AS_NAMED.extend(swapped(replacements()))
    try:
        yield
    finally:
        swapped(AS_NAMED)
        AS_NAMED.clear()


@contextlib.contextmanager
def as_named() -> Iterator[None]:
    """Let every device be what it is, in the midst of ``on_the_cpu``."""
    here = swapped(AS_NAMED)
    try:
        yield
    finally:
        swapped(here)
