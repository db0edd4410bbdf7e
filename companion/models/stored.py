"""A trained model in few bytes: matrices in 8 bits, the rest as it is.

A matrix NAME becomes two tensors of ``weights.safetensors``, NAME.integers and
NAME.scale, one scale a row. Norms and biases, at most one number in a hundred,
keep their 32 bits.
"""

from pathlib import Path

import torch

from companion.data.atomic import write_atomically
from companion.efficiency.quantize import Quantized, quantize
from companion.extras import lazy
from companion.training import Trained, checkpoint
from companion.training.checkpoint import Tensors, seeded, tensors_of
from companion.training.run_folder import (
    Builder,
    read_codecs,
    read_config,
    write_run,
)

__all__ = ["BITS", "WEIGHTS", "pack", "read"]

safetensors = lazy("safetensors", "train")
safetensors_torch = lazy("safetensors.torch", "train")

WEIGHTS, BITS = "weights.safetensors", 8
INTEGERS, SCALE = ".integers", ".scale"


def pack(trained: Trained, folder: Path | str) -> Path:
    """Write a trained model into ``folder``, each matrix in 8 bits.

    Args:
        trained: What ``train`` or ``load_trained`` returned.
        folder: Where it goes; it is made if need be.

    Returns:
        The path of the weights.

    Raises:
        OSError: It could not be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_run(folder, trained.config, trained.src_codec, trained.tgt_codec)
    stored: Tensors = {}
    for name, tensor in tensors_of(trained.model).items():
        if tensor.ndim == 2:
            small = quantize(tensor, BITS)
            stored[name + INTEGERS] = small.integers
            stored[name + SCALE] = small.scale
        else:
            stored[name] = tensor
    write_atomically(folder / WEIGHTS, safetensors_torch.save(stored))
    return folder / WEIGHTS


def read(folder: Path | str, build: Builder) -> Trained:
    """Read what ``pack`` wrote; the caller's random numbers stay.

    Args:
        folder: Where it lies.
        build: Makes the model, from the configuration and the two codecs.

    Returns:
        The model in evaluation mode on the CPU, in 32 bits, with its codecs.

    Raises:
        FileNotFoundError: There is no packed model.
        ValueError: A file is damaged, or of another model.
    """
    folder = Path(folder)
    config = read_config(folder)
    if config is None:
        raise FileNotFoundError(f"{folder}: no packed model is here")
    src, tgt = read_codecs(folder, config)
    # A model begins with random weights, which are overwritten here.
    with seeded(0):
        model = build(config, src, tgt)
    weights = _weights(folder / WEIGHTS)
    checkpoint.fill(model, weights, str(folder / WEIGHTS))
    return Trained(model.eval(), src, tgt, config)


def _weights(path: Path) -> Tensors:
    try:
        stored = safetensors_torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path}: cut short, or no safetensors ({error})"
        ) from None
    found: Tensors = {}
    for name, tensor in stored.items():
        whole = name.removesuffix(INTEGERS)
        if whole != name:
            scale = stored[whole + SCALE]
            zero = torch.zeros_like(scale, dtype=torch.int8)
            found[whole] = Quantized(tensor, scale, zero, BITS).dequantize()
        elif not name.endswith(SCALE):
            found[name] = tensor
    return found
