"""What happens to a text before anything is learned or encoded.

Special tokens are cut out first, then the rest is cut into words, and a word is
spelled in bytes. All of it can be undone: the parts, joined, are the text.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "LONGEST",
    "WORD",
    "as_symbols",
    "as_text",
    "special_pattern",
    "split_special",
    "word_counts",
    "words",
]

LONGEST = 64
"""Characters of a word at most, so that a text without spaces, or a page of
zeros, is no single word. The encoder's memory is bounded by it."""

# A word takes the space before it along; of several spaces only the last one.
# Digits go in threes, from the left. A combining mark that Python calls no
# letter stays with the letter that it stands on.
MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903"
WORD = re.compile(
    rf" ?[^\W\d_](?:[^\W\d_]|[{MARKS}]){{0,{LONGEST - 2}}}"
    r"| ?\d{1,3}"
    rf"| ?(?:[^\w\s]|_){{1,{LONGEST - 1}}}"
    rf"|\s{{1,{LONGEST - 1}}}(?!\S)"
    r"|\s"
)


def words(text: str) -> Iterator[str]:
    """Cut a text into words, spaces and all; a piece never crosses a border.

    Example:
        >>> list(words("I love 1234 cats!  我爱小猫"))
        ['I', ' love', ' 123', '4', ' cats', '!', ' ', ' 我爱小猫']
    """
    return (found[0] for found in WORD.finditer(text))


def as_symbols(text: str) -> str:
    """Spell a text in bytes, each written as the character of its number.

    So a learner that takes characters for symbols begins with 256 of them.

    Raises:
        ValueError: The text has half a surrogate pair, which is no character,
            so UTF-8 has no bytes for it.

    Example:
        >>> [hex(ord(symbol)) for symbol in as_symbols("猫")]
        ['0xe7', '0x8c', '0xab']
    """
    try:
        return text.encode("utf-8").decode("latin-1")
    except UnicodeEncodeError as error:
        lone = text[error.start]
        raise ValueError(
            f"text: expected characters, got half a pair, U+{ord(lone):04X}"
        ) from None


def as_text(symbols: str) -> str:
    """Read bytes that ``as_symbols`` wrote; what is no UTF-8 becomes U+FFFD.

    Example:
        >>> as_text(as_symbols("猫")), as_text(as_symbols("猫")[:2])
        ('猫', '\ufffd')
    """
    return symbols.encode("latin-1").decode("utf-8", errors="replace")


def word_counts(texts: Iterable[str]) -> dict[str, int]:
    """Count the words of some texts, each spelled in bytes.

    Example:
        >>> word_counts(["I love cats", "we love cats"])[" love"]
        2
    """
    counts = Counter(word for text in texts for word in words(text))
    return {as_symbols(word): count for word, count in counts.items()}


def split_special(text: str, special: Sequence[str]) -> list[str]:
    """Cut the special tokens out of a text, each in one part of its own.

    Where one begins with another the longer one is meant.

    Args:
        text: Any text.
        special: The special tokens as they are written.

    Returns:
        The parts in order, none of them empty; joined they are the text.

    Raises:
        ValueError: A special token is the empty text.

    Example:
        >>> split_special("<|end|>I love<|end|>", ["<|end|>"])
        ['<|end|>', 'I love', '<|end|>']
    """
    if "" in special:
        raise ValueError(
            f"special: expected tokens that are not empty, got {special!r}"
        )
    if not special:
        return [text] if text else []
    return [part for part in special_pattern(special).split(text) if part]


def special_pattern(special: Sequence[str]) -> re.Pattern[str]:
    """Make a pattern that finds special tokens, the longer one first."""
    longest_first = sorted(special, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")
