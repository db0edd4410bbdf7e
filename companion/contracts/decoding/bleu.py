"""Contracts of BLEU: how much of a translation its reference has too.

Papineni et al. (2002), for one reference each and n-grams of up to four words.
Where no n-gram of a length is matched the score is 0, or is smoothed in one of
several ways: there it need only be a small number.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, read_number

__all__ = ["BLEU"]

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
BLEU = Component(
    name="bleu",
    signature="bleu(hypotheses, references)",
    returns="a score from 0 to 100, a number",
    shape_contract="It returns a number",
    read=read_number,
    cases=lambda: {"for three sentences": MIXED},
)

ALL = (MIXED, SHORT, LONG, REPEATED, UNEVEN)


def mistake(fn: Guarded) -> str:
    """The hint of the known mistake whose scores these are, or nothing."""
    scores = [fn(*texts) for texts in ALL]
    known = (h for h, bleu in BLEU.hints.items() if explains(bleu, scores))
    return next(known, "")


def explains(bleu: Callable, scores: list[float]) -> bool:
    """Whether these are its scores, wherever n-grams of all lengths match."""
    right = [RIGHT(*texts) for texts in ALL]
    each = zip(ALL, right, scores, strict=True)
    return all(close(bleu(*texts), got) for texts, sure, got in each if sure)


def close(one: float, other: float) -> bool:
    """Whether two scores are the same but for rounding."""
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)


def require_score(fn: Guarded, texts: Corpus, why: str = "") -> None:
    """Raise Broken unless ``texts`` have the right score."""
    got, expected = fn(*texts), RIGHT(*texts)
    if not close(got, expected):
        hint = mistake(fn) or why
        says = (
            f"For {quoted(texts)} it gives {got:.4g}: expected {expected:.4g}."
        )
        raise Broken(f"{hint} {says}" if hint else says, cause=hint)


def quoted(texts: Corpus) -> str:
    """A corpus as a reader sees it, its first pair only."""
    one, two = (" ".join(side[0]) for side in texts)
    more = f" and {len(texts[0]) - 1} more" if len(texts[0]) > 1 else ""
    return f"'{one}' against '{two}'{more}"


@BLEU.before_reference
def perfect(fn: Guarded) -> None:
    """A translation like its reference has 100."""
    require_score(fn, corpus((CAT, CAT), (MOUSE, MOUSE)))


@BLEU.before_reference
def clipping(fn: Guarded) -> None:
    """A word counts no more often than the reference has it."""
    require_score(fn, REPEATED)


@BLEU.contract
def brief(fn: Guarded) -> None:
    """Whoever leaves words out loses."""
    require_score(fn, SHORT)


@BLEU.contract
def long(fn: Guarded) -> None:
    """Whoever adds words loses precision, and nothing besides."""
    require_score(fn, LONG)


@BLEU.contract
def whole(fn: Guarded) -> None:
    """The n-grams of all sentences are counted together."""
    require_score(fn, MIXED)
    require_score(fn, UNEVEN)
    twice = tuple(side * 2 for side in MIXED)
    require_score(fn, twice, "Twice the same text should have the same score.")


@BLEU.contract
def words_in_order(fn: Guarded) -> None:
    """The order of the words counts."""
    turned = "the old dog sees the little cat"
    require_score(fn, corpus((turned, CAT), (MOUSE, MOUSE)))


@BLEU.contract
def nothing(fn: Guarded) -> None:
    """Where no four words match the score is small, and no error."""
    got = fn(*corpus(("the cat sees a little old dog", CAT)))
    if not 0 <= got < 45:
        raise Broken(
            "Two words in a row match, and never three: the score is "
            f"{got:.4g}, and should be 0, or small if it is smoothed."
        )
    got = fn(*corpus(("x x x x x", CAT)))
    if not 0 <= got < 12:
        raise Broken(
            f"No word matches, and the score is {got:.4g}: expected 0, or "
            "little more if it is smoothed."
        )


# Known mistakes


@BLEU.mistake(hint="It goes from 0 to 1: multiply by 100.")
def from_zero_to_one(*texts):
    """The factor of 100 is missing."""
    return Bleu(scale=1.0)(*texts)


@BLEU.mistake(
    hint="It is the mean of the sentences' scores: BLEU counts the n-grams of "
    "all sentences, and divides once.",
    symptom="far too low, and 0 for most sentences: no paper's number fits",
)
def mean_of_sentences(*texts):
    """A score for each sentence, and the mean of those."""
    return Bleu(by_sentence=True)(*texts)


@BLEU.mistake(
    hint="It is the mean of the sentences' scores, from 0 to 1: BLEU counts "
    "the n-grams of all sentences, divides once, and multiplies by 100.",
)
def mean_of_small_scores(*texts):
    """A score from 0 to 1 for each sentence, and the mean of those."""
    return Bleu(by_sentence=True, scale=1.0)(*texts)


@BLEU.mistake(
    hint="Precisions are averaged over sentences: add up the counts of all "
    "sentences, and divide once.",
)
def mean_of_precisions(*texts):
    """Shares for each sentence, and the mean of those."""
    return Bleu(average=True)(*texts)


@BLEU.mistake(
    hint="Matches are not clipped: a word counts no more often than the "
    "reference has it.",
    symptom="a model that says the, the, the is the best of all",
)
def unclipped(*texts):
    """A word of the reference is matched as often as it occurs."""
    return Bleu(match=lambda one, two: sum(one[x] for x in one if x in two))(
        *texts
    )


@BLEU.mistake(
    hint="Matches are counted as a set: what occurs twice in both is matched "
    "twice.",
    symptom="a little lower than everybody else's, most of all in long texts",
)
def counted_as_a_set(*texts):
    """What occurs twice in both is matched once."""
    return Bleu(match=lambda one, two: len(one.keys() & two.keys()))(*texts)


@BLEU.mistake(
    hint="The brevity penalty is missing.",
    symptom="shorter and shorter outputs get better and better scores",
)
def brevity_unpunished(*texts):
    """Precision alone: whoever writes only what is sure wins."""
    return Bleu(brevity=lambda c, r: 1.0)(*texts)


@BLEU.mistake(
    hint="The brevity penalty is upside down: short translations are to lose.",
    symptom="short outputs win, and every full sentence is punished",
)
def length_is_punished(*texts):
    """The two lengths of the penalty changed places."""
    return Bleu(brevity=lambda c, r: brevity(r, c))(*texts)


@BLEU.mistake(
    hint="The penalty applies to long translations too: for c > r it is 1.",
    symptom="writing too much costs hardly anything",
)
def length_is_rewarded(*texts):
    """The penalty without its limit of 1."""
    return Bleu(brevity=lambda c, r: math.exp(1 - r / max(c, 1e-9)))(*texts)


@BLEU.mistake(
    hint="The brevity penalty is exp(1 - r / c), not c / r.",
    symptom="short outputs score too well, by a few points",
)
def punished_by_the_ratio(*texts):
    """The penalty is the ratio of the lengths, without `exp`."""
    return Bleu(brevity=lambda c, r: min(1.0, c / r))(*texts)


@BLEU.mistake(
    hint="The brevity penalty is exp(1 - r / c): here its exponent is 1 - c / "
    "r.",
)
def exponent_turned_round(*texts):
    """Short translations gain."""
    return Bleu(brevity=lambda c, r: math.exp(1 - c / r) if c < r else 1.0)(
        *texts
    )


@BLEU.mistake(
    hint="The mean of the precisions is geometric, not arithmetic.",
    symptom="well above everybody else's, most of all for bad translations",
)
def arithmetic_mean(*texts):
    """The precisions are averaged: no four words in a row need match."""
    return Bleu(mean=lambda parts: sum(parts) / len(parts))(*texts)


@BLEU.mistake(
    hint="The precisions are multiplied, and the fourth root is missing.",
)
def fourth_root_missing(*texts):
    """The product of the precisions, as it is."""
    return Bleu(mean=math.prod)(*texts)


@BLEU.mistake(
    hint="These are recalls: divide by the n-grams of the hypothesis.",
    symptom="whoever writes more gets more: there is no precision in it",
)
def recall_for_precision(*texts):
    """Hypotheses and references changed places."""
    return Bleu(recall=True, brevity=lambda c, r: brevity(r, c))(*texts)


@BLEU.mistake(
    hint="The matches are divided by the n-grams of the reference: divide by "
    "those of the hypothesis.",
)
def divided_by_the_reference(*texts):
    """Recalls, with a penalty that is right."""
    return Bleu(recall=True)(*texts)


@BLEU.mistake(
    hint="Only single words count: BLEU goes up to four.",
    symptom="words in any order are a good translation",
)
def single_words_only(*texts):
    """The precision of words, for which order is nothing."""
    return Bleu(orders=(1,))(*texts)


@BLEU.mistake(hint="It goes up to two words: BLEU goes up to four.")
def up_to_two_words(*texts):
    """The precisions of words and pairs."""
    return Bleu(orders=(1, 2))(*texts)


@BLEU.mistake(hint="It goes up to three words: BLEU goes up to four.")
def up_to_three_words(*texts):
    """Runs of four words are missing."""
    return Bleu(orders=(1, 2, 3))(*texts)


@BLEU.mistake(hint="Only runs of four words count: the other three do too.")
def four_words_only(*texts):
    """The precision of runs of four words."""
    return Bleu(orders=(4,))(*texts)
