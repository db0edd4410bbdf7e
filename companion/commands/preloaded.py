"""What the first process of ``check`` and ``grade`` imports for all others.

Nothing of it is garbage. So the collector is off meanwhile, and is then told to
leave it alone, as Python's documentation advises before a process is copied:
else each copy would walk through all of PyTorch again and again.

It computes on one thread: a pool of threads is not copied with a process, and
what waits for one there waits for ever.
"""

import gc

gc.disable()

import torch  # noqa: E402

torch.set_num_threads(1)

import companion.commands.check.find  # noqa: E402
import companion.zoo  # noqa: E402, F401

gc.freeze()
gc.enable()

__all__: list[str] = []
