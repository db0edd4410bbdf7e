"""Corpora on which BLEU scores differ, the right score, and known mistakes."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

Corpus = tuple[list[list[str]], list[list[str]]]
"""Hypotheses, and one reference for each."""


def corpus(*pairs: tuple[str, str]) -> Corpus:
    """Pairs of a hypothesis and its reference, cut into words."""
    return [one.split() for one, _ in pairs], [two.split() for _, two in pairs]


CAT = "the little cat sees the old dog"
MOUSE = "we love the small grey mouse that lives in our house"
MIXED = corpus(
    ("the little cat sees an old dog", CAT),
    ("we love a small grey mouse that lives in the house", MOUSE),
    ("you read a good book today", "they read a good book today"),
)
SHORT = corpus(
    ("the little cat sees the", CAT),
    ("we love the small grey mouse", MOUSE),
    ("a book", "they read a good book today"),
)
LONG = corpus(
    ("the little cat sees the old dog and the cat", CAT),
    ("today we love the small grey mouse that lives in our big house", MOUSE),
)
REPEATED = corpus(
    ("the the the the the the the", CAT),
    ("we love the small grey mouse the small grey mouse that", MOUSE),
)
UNEVEN = corpus(
    ("they", "they read"),
    ("we love the small grey mouse that lives in our house", MOUSE),
    ("the cat sees the little dog", CAT),
)


def ngrams(words: list[str], n: int) -> Counter:
    """How often each run of n words occurs."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def clipped(one: Counter, two: Counter) -> int:
    """Those of ``one`` that ``two`` has, no more often than there."""
    return (one & two).total()


def geometric(parts: list[float]) -> float:
    """The fourth root of the product, for four."""
    return math.prod(parts) ** (1 / len(parts))


def brevity(hypothesis: int, reference: int) -> float:
    """What is lost for being shorter than the reference."""
    return min(1.0, math.exp(1 - reference / max(hypothesis, 1e-9)))


@dataclass(frozen=True)
class Bleu:
    """A BLEU score, put together from what can go wrong in it.

    Attributes:
        match: From the n-grams of both sides, how many are matched.
        orders: The lengths of n-grams that count.
        mean: From the precisions, one number.
        brevity: From both lengths, the penalty.
        scale: What a perfect translation gets.
        recall: Whether matches are divided by the reference's n-grams.
        by_sentence: Whether it is the mean of each sentence's score.
        average: Whether precisions are averaged over sentences.
    """

    match: Callable = clipped
    orders: tuple[int, ...] = (1, 2, 3, 4)
    mean: Callable = geometric
    brevity: Callable = brevity
    scale: float = 100.0
    recall: bool = False
    by_sentence: bool = False
    average: bool = False

    def __call__(self, hypotheses: list, references: list) -> float:
        """The score."""
        if self.by_sentence:
            pairs = zip(hypotheses, references, strict=True)
            scores = [self.whole([one], [two]) for one, two in pairs]
            return sum(scores) / len(scores)
        return self.whole(hypotheses, references)

    def whole(self, hypotheses: list, references: list) -> float:
        """The score of all counts together."""
        parts = [self.part(hypotheses, references, n) for n in self.orders]
        lengths = (sum(map(len, side)) for side in (hypotheses, references))
        return self.scale * self.brevity(*lengths) * self.mean(parts)

    def part(self, hypotheses: list, references: list, n: int) -> float:
        """The precision of n-grams."""
        found = []
        for one, two in zip(hypotheses, references, strict=True):
            one, two = ngrams(one, n), ngrams(two, n)
            of = (two if self.recall else one).total()
            found.append((self.match(one, two), of))
        if self.average:
            return sum(x / max(of, 1) for x, of in found) / len(found)
        matched, of = map(sum, zip(*found, strict=True))
        return matched / max(of, 1)


RIGHT = Bleu()
MISTAKEN = {
    "It goes from 0 to 1: multiply by 100.": [Bleu(scale=1.0)],
    "It is the mean of the sentences' scores: BLEU counts the n-grams of all "
    "sentences, and divides once.": [
        Bleu(by_sentence=True),
        Bleu(by_sentence=True, scale=1.0),
    ],
    "Precisions are averaged over sentences: add up the counts of all "
    "sentences, and divide once.": [Bleu(average=True)],
    "Matches are not clipped: a word counts no more often than the reference "
    "has it.": [
        Bleu(match=lambda one, two: sum(one[x] for x in one if x in two))
    ],
    "Matches are counted as a set: what occurs twice in both is matched "
    "twice.": [Bleu(match=lambda one, two: len(one.keys() & two.keys()))],
    "The brevity penalty is missing.": [Bleu(brevity=lambda c, r: 1.0)],
    "The brevity penalty is upside down: short translations are to lose.": [
        Bleu(brevity=lambda c, r: brevity(r, c))
    ],
    "The penalty applies to long translations too: for c > r it is 1.": [
        Bleu(brevity=lambda c, r: math.exp(1 - r / max(c, 1e-9)))
    ],
    "The brevity penalty is exp(1 - r / c), not c / r.": [
        Bleu(brevity=lambda c, r: min(1.0, c / r))
    ],
    "The brevity penalty is exp(1 - r / c): here its exponent is 1 - c / r.": [
        Bleu(brevity=lambda c, r: math.exp(1 - c / r) if c < r else 1.0)
    ],
    "The mean of the precisions is geometric, not arithmetic.": [
        Bleu(mean=lambda parts: sum(parts) / len(parts))
    ],
    "The precisions are multiplied, and the fourth root is missing.": [
        Bleu(mean=math.prod)
    ],
    "These are recalls: divide by the n-grams of the hypothesis.": [
        Bleu(recall=True),
        Bleu(recall=True, brevity=lambda c, r: brevity(r, c)),
    ],
    "Only single words count: BLEU goes up to four.": [Bleu(orders=(1,))],
    "It goes up to two words: BLEU goes up to four.": [Bleu(orders=(1, 2))],
    "It goes up to three words: BLEU goes up to four.": [
        Bleu(orders=(1, 2, 3))
    ],
    "Only runs of four words count: the other three do too.": [
        Bleu(orders=(4,))
    ],
}
"""Hint -> scores that are mistaken in this way."""
