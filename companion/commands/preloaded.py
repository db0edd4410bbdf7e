"""What the first process of ``check`` and ``grade`` imports for all others.

Nothing of it is garbage. So the collector is off meanwhile, and is then told to
leave it alone, as Python's documentation advises before a process is copied:
else each copy would walk through all of PyTorch again and again.
"""

import gc

gc.disable()

import companion.commands.check.find  # noqa: E402
import companion.zoo  # noqa: E402, F401

gc.freeze()
gc.enable()

__all__: list[str] = []
