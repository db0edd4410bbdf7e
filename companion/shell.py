"""Commands as the user can type them, where he is."""

import shlex
import sys

__all__ = ["typed"]


def typed(*words: str) -> str:
    """Write a command of this package as a line that a shell understands.

    The interpreter is named as it was when this process was started, because
    ``python`` may be another one, which has no course.

    Args:
        words: What stands behind ``python -m companion``.

    Returns:
        The line, with quotes where a shell needs them.

    Example:
        >>> typed("translate", "I love cats").partition(" -m ")[2]
        "companion translate 'I love cats'"
    """
    return shlex.join([sys.orig_argv[0], "-m", "companion", *words])
