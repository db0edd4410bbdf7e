"""The unigram model: every split of a word has a probability.

Kudo (2018). Each piece is drawn on its own, so a split is as likely as the
product of its pieces. Learning begins with many pieces, and drops those that
the text misses least; nothing is joined.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from companion.checks import check_sizes
from companion.tokens.plain import check_learning

__all__ = [
    "expected_counts",
    "learn_unigram",
    "log_likelihood",
    "unigram_encode",
]


def unigram_encode(word: str, log_p: Mapping[str, float]) -> list[str]:
    """Find the most likely split of a word (Viterbi).

    Of splits that are as likely, the one whose last piece is longest.

    Args:
        word: One word.
        log_p: Piece -> the logarithm of its probability.

    Raises:
        ValueError: No pieces make the word.

    Example:
        >>> chances = {"c": 0.1, "ats": 0.25, "cat": 0.2, "s": 0.1}
        >>> unigram_encode("cats", {p: math.log(x) for p, x in chances.items()})
        ['c', 'ats']
    """
    return _best(word, log_p)


def _best(
    word: str, log_p: Mapping[str, float], without: str = ""
) -> list[str]:
    """Find the most likely split, in which one piece may be forbidden."""
    best, begins = [0.0], [0]
    for end in range(1, len(word) + 1):
        best.append(-math.inf)
        begins.append(0)
        for begin in range(end):
            piece = word[begin:end]
            if piece == without:
                continue
            score = best[begin] + log_p.get(piece, -math.inf)
            if score > best[end]:
                best[end], begins[end] = score, begin
    if best[-1] == -math.inf:
        raise ValueError(f"word: expected one that pieces make, got {word!r}")
    pieces: list[str] = []
    end = len(word)
    while end:
        pieces.append(word[begins[end] : end])
        end = begins[end]
    return pieces[::-1]


def log_likelihood(
    frequencies: Mapping[str, int], log_p: Mapping[str, float]
) -> float:
    """Compute the log-probability of all words, summed over all splits.

    Raises:
        ValueError: No pieces make one of the words.

    Example:
        >>> half = math.log(0.5)
        >>> log_likelihood({"a": 2}, {"a": half}) == 2 * half
        True
    """
    return sum(
        count * _forward(word, log_p)[-1] for word, count in frequencies.items()
    )


def expected_counts(
    frequencies: Mapping[str, int], log_p: Mapping[str, float]
) -> dict[str, float]:
    """Count how often each piece is used, each split by its probability.

    Divided by their sum, these are probabilities under which the words are at
    least as likely: a step of the EM algorithm.

    Raises:
        ValueError: No pieces make one of the words.

    Example:
        >>> chances = {"a": 0.5, "b": 0.25, "ab": 0.25}
        >>> log_p = {piece: math.log(p) for piece, p in chances.items()}
        >>> counts = expected_counts({"ab": 3}, log_p)
        >>> {piece: round(count, 3) for piece, count in counts.items()}
        {'a': 1.0, 'b': 1.0, 'ab': 2.0}
    """
    counts: defaultdict[str, float] = defaultdict(float)
    for word, count in frequencies.items():
        before, after = _forward(word, log_p), _backward(word, log_p)
        for begin in range(len(word)):
            for end in range(begin + 1, len(word) + 1):
                piece = word[begin:end]
                if piece in log_p:
                    share = before[begin] + log_p[piece] + after[end]
                    counts[piece] += count * math.exp(share - before[-1])
    return {piece: counts[piece] for piece in log_p if counts[piece] > 0}


def learn_unigram(
    frequencies: Mapping[str, int],
    size: int,
    *,
    longest: int = 8,
    rounds: int = 2,
    keep: float = 0.75,
) -> dict[str, float]:
    """Learn pieces and their probabilities, from many pieces down to ``size``.

    It begins with every part of a word that occurs twice, estimates the
    probabilities by EM, drops the pieces without which the words would lose
    least likelihood, and begins again. Single characters are never dropped.

    Args:
        frequencies: Word -> how often it occurs.
        size: How many pieces are to be left, single characters included.
        longest: Characters of a piece at most.
        rounds: Steps of EM before pieces are dropped.
        keep: The share of the pieces that a round leaves.

    Returns:
        Piece -> the logarithm of its probability.

    Raises:
        ValueError: ``size`` is below the number of characters, or a word or
            frequency does not fit.

    Example:
        >>> often = {"cat": 6, "cats": 4, "hat": 3, "hats": 2}
        >>> unigram_encode("cats", learn_unigram(often, 7))
        ['cat', 's']
    """
    check_learning(frequencies, 0)
    check_sizes(size=size, longest=longest, rounds=rounds)
    counts: Counter[str] = Counter()
    for word, count in frequencies.items():
        for begin in range(len(word)):
            for end in range(begin + 1, min(begin + longest, len(word)) + 1):
                counts[word[begin:end]] += count
    characters = {piece for piece in counts if len(piece) == 1}
    if size < len(characters):
        raise ValueError(
            f"size: expected at least {len(characters)}, for the characters, "
            f"got {size}"
        )
    found = {p: float(n) for p, n in counts.items() if n > 1 or p in characters}
    while True:
        log_p = _normalised(found, characters)
        for _ in range(rounds):
            found = expected_counts(frequencies, log_p)
            log_p = _normalised(found, characters)
        if len(log_p) <= size:
            return log_p
        losses = _losses(frequencies, log_p)
        left = max(size, int(len(log_p) * keep))
        kept = sorted(losses, key=lambda p: (-losses[p], p))
        kept = kept[: left - len(characters)]
        found = {p: math.exp(log_p[p]) for p in [*characters, *kept]}


def _forward(word: str, log_p: Mapping[str, float]) -> list[float]:
    """Sum up all splits of each beginning of the word, as a logarithm."""
    found = [0.0]
    for end in range(1, len(word) + 1):
        found.append(
            _log_sum(
                found[begin] + log_p[word[begin:end]]
                for begin in range(end)
                if word[begin:end] in log_p
            )
        )
    if found[-1] == -math.inf:
        raise ValueError(f"word: expected one that pieces make, got {word!r}")
    return found


def _backward(word: str, log_p: Mapping[str, float]) -> list[float]:
    """Sum up all splits of each end of the word, as a logarithm."""
    found = [0.0]
    for begin in range(len(word) - 1, -1, -1):
        found.append(
            _log_sum(
                found[len(word) - end] + log_p[word[begin:end]]
                for end in range(begin + 1, len(word) + 1)
                if word[begin:end] in log_p
            )
        )
    return found[::-1]


def _log_sum(logs: Iterable[float]) -> float:
    """Add up numbers that are given as logarithms; nothing is 0."""
    terms = [log for log in logs if log > -math.inf]
    if not terms:
        return -math.inf
    largest = max(terms)
    return largest + math.log(sum(math.exp(log - largest) for log in terms))


def _normalised(
    counts: Mapping[str, float], characters: set[str]
) -> dict[str, float]:
    """Make log-probabilities of counts; a character never has none at all."""
    least = 1e-6 * sum(counts.values())
    full = dict(counts)
    for character in sorted(characters):
        full[character] = max(full.get(character, 0.0), least)
    full = {piece: count for piece, count in full.items() if count > 0}
    total = math.log(sum(full.values()))
    return {piece: math.log(count) - total for piece, count in full.items()}


def _losses(
    frequencies: Mapping[str, int], log_p: dict[str, float]
) -> dict[str, float]:
    """Compute what the best splits lose without each longer piece."""
    used: Counter[str] = Counter()
    for word, count in frequencies.items():
        for piece in unigram_encode(word, log_p):
            used[piece] += count
    losses = {}
    for piece in log_p:
        if len(piece) == 1:
            continue
        instead = sum(log_p[p] for p in _best(piece, log_p, without=piece))
        losses[piece] = used[piece] * (log_p[piece] - instead)
    return losses
