"""BLEU scores that are higher than the real one, or that nobody can compare."""

import math

from companion.decoding import bleu, ngrams
from companion.zoo.animal import animal

CLIPPED = "A word counts no more often than the reference has it"
BRIEF = "Whoever leaves words out loses"
LONG = "Whoever adds words loses precision, and nothing besides"


def clipped(ours, theirs):
    """Matches, each no more often than the reference has it."""
    return (ours & theirs).total()


def precisions(hypotheses, references, match=clipped, longest=4):
    """The share of n-grams that match, for each length."""
    found = []
    for n in range(1, longest + 1):
        matched = said = 0
        for one, two in zip(hypotheses, references, strict=True):
            matched += match(ngrams(one, n), ngrams(two, n))
            said += ngrams(one, n).total()
        found.append(matched / max(said, 1))
    return found


def lengths(hypotheses, references):
    """How many words both sides have."""
    return sum(map(len, hypotheses)), sum(map(len, references))


def brief(hypotheses, references):
    """The brevity penalty."""
    ours, theirs = lengths(hypotheses, references)
    return math.exp(min(0, 1 - theirs / ours))


def root(parts):
    """The geometric mean, in per cent."""
    return 100 * math.prod(parts) ** (1 / len(parts))


@animal(
    "bleu",
    seen="a common slip",
    symptom="a model that says the, the, the is the best of all",
    contract=CLIPPED,
    says="Matches are not clipped",
)
def unclipped(hypotheses, references):
    """A word of the reference is matched as often as it is said."""

    def match(ours, theirs):
        return sum(count for x, count in ours.items() if x in theirs)

    parts = precisions(hypotheses, references, match)
    return brief(hypotheses, references) * root(parts)


@animal(
    "bleu",
    seen="a common slip",
    symptom="a little lower than everybody else's, most of all in long texts",
    contract="A translation like its reference has 100",
    says="Matches are counted as a set",
)
def counted_as_a_set(hypotheses, references):
    """What occurs twice in both is matched once."""

    def match(ours, theirs):
        return len(ours.keys() & theirs.keys())

    parts = precisions(hypotheses, references, match)
    return brief(hypotheses, references) * root(parts)


@animal(
    "bleu",
    seen="a common slip",
    symptom="shorter and shorter outputs get better and better scores",
    contract=BRIEF,
    says="The brevity penalty is missing",
)
def brevity_unpunished(hypotheses, references):
    """Precision alone: whoever says only what is sure wins."""
    return root(precisions(hypotheses, references))


@animal(
    "bleu",
    seen="a common slip",
    symptom="short outputs win, and every full sentence is punished",
    contract=BRIEF,
    says="The brevity penalty is upside down: short translations are to lose",
)
def length_is_punished(hypotheses, references):
    """The two lengths of the penalty changed places."""
    penalty = brief(references, hypotheses)
    return penalty * root(precisions(hypotheses, references))


@animal(
    "bleu",
    seen="a common slip",
    symptom="saying too much costs hardly anything",
    contract=LONG,
    says="The penalty applies to long translations too: for c > r it is 1",
)
def length_is_rewarded(hypotheses, references):
    """The penalty without its limit of 1."""
    ours, theirs = lengths(hypotheses, references)
    reward = math.exp(1 - theirs / ours)
    return reward * root(precisions(hypotheses, references))


@animal(
    "bleu",
    seen="a common slip",
    symptom="short outputs score too well, by a few points",
    contract=BRIEF,
    says="The brevity penalty is exp(1 - r / c), not c / r",
)
def punished_by_the_ratio(hypotheses, references):
    """The penalty is the ratio of the lengths, without `exp`."""
    ours, theirs = lengths(hypotheses, references)
    penalty = min(1, ours / theirs)
    return penalty * root(precisions(hypotheses, references))


@animal(
    "bleu",
    seen="a common slip",
    symptom="far too low, and 0 for most sentences: no paper's number fits",
    contract=CLIPPED,
    says="It is the mean of the sentences' scores",
)
def mean_of_sentences(hypotheses, references):
    """A score for each sentence, and the mean of those."""
    pairs = zip(hypotheses, references, strict=True)
    scores = [bleu([one], [two]) for one, two in pairs]
    return sum(scores) / len(scores)


@animal(
    "bleu",
    seen="a common slip",
    symptom="well above everybody else's, most of all for bad translations",
    contract=CLIPPED,
    says="The mean of the precisions is geometric, not arithmetic",
)
def arithmetic_mean(hypotheses, references):
    """The precisions are averaged: no four words in a row need match."""
    parts = precisions(hypotheses, references)
    return 100 * brief(hypotheses, references) * sum(parts) / len(parts)


@animal(
    "bleu",
    seen="a common slip",
    symptom="words in any order are a good translation",
    contract=CLIPPED,
    says="Only single words count: BLEU goes up to four",
)
def single_words_only(hypotheses, references):
    """The precision of words, for which order is nothing."""
    parts = precisions(hypotheses, references, longest=1)
    return brief(hypotheses, references) * root(parts)


@animal(
    "bleu",
    seen="a common slip",
    symptom="whoever says more gets more: there is no precision in it",
    contract=BRIEF,
    says="These are recalls: divide by the n-grams of the hypothesis",
)
def recall_for_precision(hypotheses, references):
    """Hypotheses and references changed places."""
    return bleu(references, hypotheses)
