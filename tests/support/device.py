"""The device of the tests: the pretend one, or, with DEVICE=cuda, a GPU.

What the pretend one refuses and counts is so held against the real thing. Only
one of them is there in a process: where PyTorch knows the pretend device, it
takes that for the accelerator of the machine.
"""

import os
import warnings
from contextlib import contextmanager

import torch
from support.waits import wait, waits

DEVICE = os.environ.get("DEVICE", "pretend")
WAITED = "called a synchronizing CUDA operation"

if DEVICE == "pretend":
    # Registers it, which has to be before the first gradient.
    from support.accelerator import accelerator
else:

    @contextmanager
    def accelerator():
        """Have the machine's own accelerator; yield its device."""
        waits.clear()
        yield torch.device(DEVICE, 0)


@contextmanager
def counted():
    """Count how often the program waits for the device, in what is inside.

    CUDA tells of its waits by a warning, and does not know of all.
    """
    waits.clear()
    if DEVICE == "pretend":
        yield waits
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode is a pro")
        warnings.filterwarnings("always", WAITED)
        show = warnings.showwarning

        def note(message, *place, **named):
            if WAITED in str(message):
                wait("CUDA")
            else:
                show(message, *place, **named)

        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield waits
        finally:
            torch.cuda.set_sync_debug_mode("default")
