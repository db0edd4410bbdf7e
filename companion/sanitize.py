"""What a terminal shows and never obeys: text without control characters.

A file name, a line of somebody's code or the text of an exception may hold the
codes by which a terminal clears its screen, moves its cursor, or fills the
clipboard, and the marks that let letters appear in another order.
"""

import re

__all__ = ["sanitize"]

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters but tab and line feed, and marks of direction."""

LONE = re.compile("[\ud800-\udfff]")
"""Half a character, which no terminal can be sent."""


def sanitize(text: str) -> str:
    r"""Remove what a terminal would obey instead of showing it.

    Args:
        text: Anything, such as what an exception says.

    Returns:
        The text without control characters (tab and line feed stay) and marks
        of direction; half of a character becomes a question mark.

    Example:
        >>> sanitize("a\x1b[2Jb\u202ec")
        'a[2Jbc'
    """
    return LONE.sub("?", OBEYED.sub("", text))
