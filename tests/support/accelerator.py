"""A pretend accelerator: a device that refuses what a GPU refuses.

Its tensors lie in host memory, inside a wrapper that says ``pretend:0``.
Operations run on the CPU, so the numbers are right, but for the last digits of
a product, which are another device's. Tensors of two devices do not meet, a
CPU's generator draws nothing there, ``numpy()`` wants ``cpu()`` first, and each
moment at which a program would wait for a GPU is counted.

PyTorch's own example of such a device (``openreg``) is C++ that each machine
would have to compile. This one is a tensor subclass on the device type that
PyTorch keeps for private use, set up by its own Python registration.
"""

import gc
import threading
from contextlib import contextmanager, nullcontext

import torch
from support.waits import wait, waits
from torch import nn
from torch._decomp.decompositions import gru_impl, lstm_impl
from torch.overrides import TorchFunctionMode
from torch.utils.backend_registration import (
    _setup_privateuseone_for_python_backend as register,
)

NAME = "pretend"
aten = torch.ops.aten
# The size of what they return, or what the program does next, is only known
# once the device has finished all it was given before.
WAITS = {
    aten._local_scalar_dense.default: "item",
    aten.equal.default: "equal",
    aten.is_nonzero.default: "bool",
    aten.nonzero.default: "nonzero",
    aten.masked_select.default: "boolean indexing",
    aten._unique2.default: "unique",
    aten.unique_consecutive.default: "unique",
    aten.unique_dim.default: "unique",
    aten.bincount.default: "bincount",
    aten.repeat_interleave.Tensor: "repeat_interleave",
}
PRODUCTS = {
    aten.mm.default,
    aten.bmm.default,
    aten.addmm.default,
    aten.baddbmm.default,
}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
COPIES = {aten._to_copy.default, aten.copy_.default}


class Module:
    """What PyTorch asks the module of a device for."""

    there = False  # Only inside of ``accelerator`` does one find it.
    held = 0
    """The bytes of all tensors that were ever made there."""
    is_initialized = staticmethod(lambda: True)
    is_available = staticmethod(lambda: Module.there)
    device_count = staticmethod(lambda: int(Module.there))
    _is_in_bad_fork = staticmethod(lambda: False)
    current_device = staticmethod(lambda: 0)
    manual_seed = manual_seed_all = staticmethod(lambda seed: None)
    get_amp_supported_dtype = staticmethod(
        lambda: [torch.bfloat16, torch.float16]
    )
    get_rng_state = staticmethod(lambda device=NAME: torch.get_rng_state())
    set_rng_state = staticmethod(
        lambda state, device=NAME: torch.set_rng_state(state)
    )


class Generator(torch.Generator):
    """A generator that knows for which device it was made."""

    def __new__(cls, device="cpu"):
        made = super().__new__(cls)
        made.made_for = torch.device(device)
        return made

    @property
    def device(self):
        """The device one asked for."""
        return self.made_for


class OnDevice(torch.Tensor):
    """A tensor of the pretend device; ``host`` is what it holds."""

    @staticmethod
    def __new__(cls, host):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            host.shape,
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=torch.device(NAME, 0),
        )

    def __init__(self, host):
        self.host = host
        Module.held += host.nbytes

    def __repr__(self):
        return f"{self.host!r} on {NAME}"

    def numpy(self, *, force=False):
        """Refuse: what lies on a device is copied by ``cpu()`` first."""
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy")

    def __array__(self, *_, **__):
        self.numpy()

    # Results become what ``run`` makes of them, and nothing is to be added.
    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return run(function, args, kwargs or {})


def each(change, x):
    """Change all that is in lists, tuples and dictionaries."""
    if isinstance(x, list | tuple):
        return type(x)([each(change, part) for part in x])
    if isinstance(x, dict):
        return {key: each(change, part) for key, part in x.items()}
    return change(x)


def run(function, args, kwargs):
    """Do on the host what ``function`` would do on the device."""
    if function is aten._fused_sdp_choice.default:
        return 0  # The plain formula, whose parts come here one by one.
    # In inference mode nobody has taken it apart into what a device can do.
    if torch.is_inference_mode_enabled():
        out = function.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
    asked = kwargs.get("device")
    asked = asked and torch.device(asked).type
    if function in COPIES:
        return copied(function, args, kwargs, asked)
    plain, named, here = undressed(function, args, kwargs)
    count_waiting(function, args)
    if asked:
        named["device"] = torch.device("cpu")
    out = rounded(function, plain, named)
    if asked != NAME and (asked or not here):
        return out
    # Also in inference mode, part of an ordinary tensor is an ordinary tensor.
    views = any(r.alias_info for r in function._schema.returns)
    normal = views and here and not here[0].is_inference()
    with torch.inference_mode(False) if normal else nullcontext():
        return dressed(function, out, here)


def rounded(function, args, kwargs):
    """Add products up in another order than a CPU: the last digits differ."""
    if function not in PRODUCTS or args[0].dtype != torch.float32:
        return function(*args, **kwargs)
    wide = each(lambda x: x.double() if torch.is_tensor(x) else x, args)
    return function(*wide, **kwargs).float()


def undressed(function, args, kwargs):
    """Take what a call is given out of the wrappers, which are listed too."""
    here, strangers = [], []

    def host(x):
        if isinstance(x, OnDevice):
            here.append(x)
            return x.host
        # As everywhere, a number without axes may come from the host.
        if isinstance(x, torch.Tensor) and x.ndim:
            strangers.append(x)
        return x

    plain, named = each(host, args), each(host, kwargs)
    if here and strangers:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but {function} "
            f"got {NAME}:0 and cpu ({tuple(strangers[0].shape)})"
        )
    return plain, named, here


def dressed(function, out, here):
    """Wrap what comes out; what came in is the same tensor, not one like it."""
    known = {id(x.host): x for x in here}

    def wrap(x):
        if not isinstance(x, torch.Tensor):
            return x
        found = known.get(id(x))
        if found is None:
            return OnDevice(x)
        if found.shape != x.shape:
            raise NotImplementedError(f"{function} gave a tensor a new size")
        return found

    return each(wrap, out)


def count_waiting(function, args):
    """Count the call if a program would wait for the device in it."""
    if function in WAITS:
        wait(WAITS[function])
    if function in INDEXED and any(
        isinstance(x, torch.Tensor) and x.dtype in (torch.bool, torch.uint8)
        for x in args[1]
    ):
        wait("boolean indexing")


def copied(function, args, kwargs, asked):
    """Copy within the device, or across, which is counted.

    But for what is handed over without waiting for its arrival.
    """
    if function is aten.copy_.default:
        into, source, *handed_over = args
        there = isinstance(into, OnDevice)
        across = there != isinstance(source, OnDevice)
        if across and not (there and any(handed_over)):
            wait("copy")
        plain = [x.host if isinstance(x, OnDevice) else x for x in args]
        function(*plain, **kwargs)
        return into
    (source,) = args
    there = isinstance(source, OnDevice)
    target = there if asked is None else asked == NAME
    if there != target:
        wait("copy")
    if asked:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    out = function(source.host if there else source, **kwargs)
    return OnDevice(out) if target else out


# What PyTorch knows no way to do for a subclass, or does by the kernels that a
# device would bring: the same in single steps.
PLAINLY = {
    torch.lstm: lstm_impl,
    torch.gru: gru_impl,
    torch.Tensor.tolist: lambda x: x.cpu().tolist(),
}


class Generators(TorchFunctionMode):
    """Refuse a generator of another device, as a GPU does.

    Operations get it without its Python object, so it is looked at here.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in PLAINLY and isinstance(args[0], OnDevice):
            function = PLAINLY[function]
        drawn = kwargs.get("generator")
        if isinstance(drawn, Generator):
            held = [x.device for x in args if isinstance(x, torch.Tensor)]
            asked = kwargs.get("device")
            of = asked or (held[0] if held else torch.get_default_device())
            wanted, found = torch.device(of).type, drawn.device.type
            if wanted != found:
                raise RuntimeError(
                    f"Expected a '{wanted}' device type for generator but "
                    f"found '{found}'"
                )
        return function(*args, **kwargs)


def kernel(function):
    """Make on the host what ``function`` is to make on the device."""

    def make(*args, **kwargs):
        kwargs["device"] = torch.device("cpu")
        return OnDevice(function(*args, **kwargs))

    return make


# Once, and before the first gradient: then PyTorch starts a thread a device.
register(NAME, backend_module=Module())
KERNELS = torch.library.Library("aten", "IMPL", "PrivateUse1")
# All else that makes numbers writes them into what ``empty`` made.
for made in (
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten.eye.default,
    aten.eye.m,
    aten.linspace.default,
    aten.tril_indices.default,
    aten.triu_indices.default,
):
    KERNELS.impl(made, kernel(made))
NARROW = torch.library.Library("aten", "IMPL", "AutocastPrivateUse1")
OTHERS = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
OTHERS.fallback(torch.library.fallthrough_kernel)
INSIDE = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)


def narrowed(function):
    """Multiply in the number type of autocast, as a device's kernels would."""

    def multiply(*args, **kwargs):
        dtype = torch.get_autocast_dtype(NAME)

        def cast(x):
            wide = torch.is_tensor(x) and x.dtype == torch.float32
            return x.to(dtype) if wide and x.device.type == NAME else x

        with torch._C._ExcludeDispatchKeyGuard(INSIDE):
            return function(*each(cast, args), **each(cast, kwargs))

    return multiply


for product in (
    aten.linear.default,
    aten.matmul.default,
    aten.scaled_dot_product_attention.default,
):
    NARROW.impl(product, narrowed(product))


APPLY = nn.Module._apply


def swapping(module, fn, recurse=True):
    """Move a module: a parameter cannot become a wrapper, but change places."""
    swap = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return APPLY(module, fn, recurse)
    except RuntimeError:
        if swap:
            raise
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swap)
    # Nothing else may refer to a parameter then: no call that raised, either,
    # which its own traceback keeps until its circle is collected.
    gc.collect()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        return APPLY(module, fn, recurse)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swap)


@contextmanager
def accelerator():
    """Have a pretend accelerator; yield its device."""
    lift = torch._C._only_lift_cpu_tensors()
    plain, start = torch.Generator, threading.Thread.run

    def watched(thread):
        torch._C._set_only_lift_cpu_tensors(True)
        with Generators():
            start(thread)

    nn.Module._apply = swapping
    # So that `torch.tensor` makes its numbers here, and then copies them.
    torch._C._set_only_lift_cpu_tensors(True)
    torch.Generator, threading.Thread.run = Generator, watched
    waits.clear()
    Module.there = True
    try:
        with Generators():
            yield torch.device(NAME, 0)
    finally:
        Module.there = False
        torch.Generator, threading.Thread.run = plain, start
        torch._C._set_only_lift_cpu_tensors(lift)
        nn.Module._apply = APPLY
