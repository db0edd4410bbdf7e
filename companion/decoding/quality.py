"""BLEU: how many of the words and phrases stand in the reference."""

import math
from collections import Counter
from collections.abc import Sequence

LONGEST = 4


def bleu(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> float:
    """Corpus BLEU-4 of tokens, from 0 to 100, one reference a sentence.

    The geometric mean of four precisions, times a penalty if all hypotheses
    together are shorter than all references. Counts are added up over the
    corpus first: this is no mean of sentence scores. A length of n-gram that
    matches nowhere makes it 0. Sections 2.1 to 2.3 of Papineni et al. (2002).

    Raises:
        TypeError: a sentence is a string, of which the tokens are not known.
        ValueError: there is no sentence, or not one reference for each.
    """
    _check(hypotheses, references)
    matched, said = [0] * LONGEST, [0] * LONGEST
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for i in range(LONGEST):
            ours, theirs = ngrams(hypothesis, i + 1), ngrams(reference, i + 1)
            # "the the the" is right once if the reference says "the" once.
            matched[i] += (ours & theirs).total()
            said[i] += ours.total()
    if not all(matched):
        return 0.0
    pairs = zip(matched, said, strict=True)
    mean_log = sum(math.log(m / n) for m, n in pairs) / LONGEST
    return 100 * _brevity(hypotheses, references) * math.exp(mean_log)


def ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Count how often each run of ``n`` tokens occurs.

    Args:
        tokens: A sentence.
        n: How long a run is.

    Returns:
        The counts.

    Example:
        >>> ngrams("the cat the cat".split(), 2)[("the", "cat")]
        2
    """
    starts = range(len(tokens) - n + 1)
    return Counter(tuple(tokens[i : i + n]) for i in starts)


def _brevity(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> float:
    """What stops a system from saying only the words it is sure of."""
    ours, theirs = (sum(map(len, s)) for s in (hypotheses, references))
    return min(1.0, math.exp(1 - theirs / ours))


def _check(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]
) -> None:
    pairs = {"hypotheses": hypotheses, "references": references}
    for name, sentences in pairs.items():
        for i, tokens in enumerate(sentences):
            if isinstance(sentences, str) or isinstance(tokens, str):
                raise TypeError(
                    f"{name}: expected sequences of tokens, got the string "
                    f"{tokens!r} at {i}"
                )
    if not len(hypotheses) or len(hypotheses) != len(references):
        raise ValueError(
            "references: expected one for each hypothesis, and at least one, "
            f"got {len(references)} for {len(hypotheses)}"
        )
