"""WordPiece: not the most frequent pair is joined, but the least independent.

BERT's vocabulary was made so; Schuster and Nakajima (2012) describe it, and its
program was never published. They join the pair that makes the training text
most likely under a model that draws each piece on its own. For one pair that
gain is about count(ab) · log of P(ab) / (P(a) P(b)). What is usually taught,
and done here, ranks pairs by the ratio within the logarithm alone.

A piece that does not begin a word is written with ``##`` before it.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import pairwise

from companion.tokens.plain import Merge, check_learning, joined

__all__ = ["INSIDE", "learn_wordpiece", "wordpiece_encode"]

INSIDE = "##"


def learn_wordpiece(
    frequencies: Mapping[str, int], merges: int
) -> tuple[list[str], list[Merge]]:
    """Learn pieces by the score count(ab) / (count(a) · count(b)).

    Ties go to the pair that is first in alphabetical order.

    Args:
        frequencies: Word -> how often it occurs.
        merges: How many pairs to join at most.

    Returns:
        The pieces, symbols first, and the merges in order. Only the pieces are
        needed to encode.

    Raises:
        ValueError: ``merges`` or a frequency is below 0, or a word is empty.

    Example:
        >>> words = {"cat": 6, "cats": 4, "hat": 3, "hats": 2, "little": 3}
        >>> learn_wordpiece(words, 2)[1]
        [('##l', '##e'), ('l', '##i')]
    """
    check_learning(frequencies, merges)
    splits = {
        word: [word[0], *(INSIDE + symbol for symbol in word[1:])]
        for word in frequencies
    }
    pieces = sorted({piece for split in splits.values() for piece in split})
    learned: list[Merge] = []
    while len(learned) < merges:
        singles: Counter[str] = Counter()
        pairs: Counter[Merge] = Counter()
        for word, split in splits.items():
            for piece in split:
                singles[piece] += frequencies[word]
            for pair in pairwise(split):
                pairs[pair] += frequencies[word]
        scores = {
            (a, b): Fraction(count, singles[a] * singles[b])
            for (a, b), count in pairs.items()
            if count
        }
        if not scores:
            break
        best = min(scores, key=lambda pair: (-scores[pair], pair))
        name = best[0] + best[1].removeprefix(INSIDE)
        splits = {word: joined(p, best, name) for word, p in splits.items()}
        learned.append(best)
        if name not in pieces:
            pieces.append(name)
    return pieces, learned


def wordpiece_encode(
    word: str, pieces: Collection[str], unknown: str = "[UNK]"
) -> list[str]:
    """Split a word by always taking the longest piece that fits.

    Args:
        word: One word.
        pieces: The vocabulary; inside of a word a piece begins with ``##``.
        unknown: What stands for a word that cannot be split.

    Returns:
        The pieces, or only ``unknown``.

    Example:
        >>> wordpiece_encode("cats", {"c", "ca", "##t", "##ts", "##s"})
        ['ca', '##ts']
        >>> wordpiece_encode("cow", {"c", "##w"})
        ['[UNK]']
    """
    found: list[str] = []
    begin = 0
    while begin < len(word):
        prefix = INSIDE if begin else ""
        for end in range(len(word), begin, -1):
            piece = prefix + word[begin:end]
            if piece in pieces:
                found.append(piece)
                begin = end
                break
        else:
            return [unknown]
    return found
