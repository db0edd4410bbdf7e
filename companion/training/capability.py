"""What a device can do for training: narrow numbers, and compiled code.

In mixed precision matrices are multiplied in bfloat16, which reaches as far as
float32. Where a device lacks it there may be float16, whose smallest numbers
are so large that a loss is scaled up before its gradients are computed
(Micikevicius et al., 2018). Parameters and sums stay in float32.
"""

import os
import shutil
import sys
from importlib.util import find_spec

import torch

__all__ = ["can_compile", "compiler_options", "narrow_type", "scaler_for"]


def can_compile(device: torch.device) -> bool:
    """Tell whether what torch.compile needs is there.

    Args:
        device: Where the compiled code is to run.

    Returns:
        Whether there is a C++ compiler for a CPU, or Triton for a GPU; False
        for any other device.

    Example:
        >>> can_compile(torch.device("meta"))
        False
    """
    if device.type == "cpu":
        usual = "clang++" if sys.platform == "darwin" else "g++"
        return shutil.which(os.environ.get("CXX", usual)) is not None
    return device.type in ("cuda", "xpu") and find_spec("triton") is not None


def compiler_options(device: torch.device) -> dict[str, bool]:
    """Choose what torch.compile is told beside its defaults.

    Sentences are of all lengths, and one analysis of PyTorch's compiler for
    GPUs raises on some graphs whose sizes may vary, which are no part of what
    it is made for (PyTorch's issues 181563 and 197077; seen with 2.11).

    Args:
        device: Where the compiled code is to run.

    Returns:
        The ``options`` of torch.compile.

    Example:
        >>> compiler_options(torch.device("cpu"))
        {}
    """
    if device.type == "cpu":
        return {}
    from torch._inductor import list_options  # Takes a second.

    name = "triton.coalesce_tiling_analysis"
    return {name: False} if name in list_options() else {}


def narrow_type(device: torch.device) -> torch.dtype | None:
    """Choose the number type of matrix products in mixed precision.

    Args:
        device: Where they are computed.

    Returns:
        bfloat16 if the device has it, else float16, else None: float32.

    Example:
        >>> narrow_type(torch.device("cpu"))
        torch.bfloat16
    """
    if device.type == "cpu":
        return torch.bfloat16
    if not torch.amp.is_autocast_available(device.type):
        return None
    here = torch.get_device_module(device)
    # Only a device that PyTorch does not bring along has to say what it can.
    listed = getattr(here, "get_amp_supported_dtype", None)
    able = [torch.bfloat16, torch.float16] if listed is None else listed()
    # An old GPU emulates bfloat16, and is slower for it.
    if device.type == "cuda" and not here.is_bf16_supported(False):
        able = [torch.float16]
    return next((t for t in (torch.bfloat16, torch.float16) if t in able), None)


def scaler_for(
    dtype: torch.dtype | None, device: torch.device
) -> torch.amp.GradScaler | None:
    """Make what scales the loss, where ``dtype`` is float16.

    Args:
        dtype: The number type of matrix products.
        device: Where they are computed.

    Returns:
        The scaler, or None where nothing has to be scaled.

    Example:
        >>> scaler_for(torch.bfloat16, torch.device("cpu")) is None
        True
    """
    if dtype != torch.float16:
        return None
    return torch.amp.GradScaler(device.type)
