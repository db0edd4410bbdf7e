"""The moments at which a program waits for a device, and where they are."""

import os
import sys
from collections import Counter
from pathlib import Path

import companion

PACKAGE = f"{Path(companion.__file__).parent}{os.sep}"
waits = Counter()
"""(Kind, place in the package or None) -> how often."""


def wait(kind):
    """Note that the program waits for the device, and where in the package."""
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    code = frame and frame.f_code.co_filename.removeprefix(PACKAGE)
    waits[kind, frame and f"{code}:{frame.f_lineno}"] += 1
