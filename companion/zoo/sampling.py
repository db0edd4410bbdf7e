"""Temperature, top-k and top-p, a token too many or in the wrong order."""

import torch

from companion.decoding import sampling_filter
from companion.zoo.animal import animal

COUNT = "top-k leaves k tokens in each row"
FEWEST = "top-p leaves the fewest tokens that hold the mass p"
AGREES = "It keeps what it should, and as likely as it should be"


def ranked(logits):
    """How likely each token is, and how likely those before it are."""
    chances, order = logits.softmax(-1).sort(descending=True)
    places = order.argsort(-1)
    before = chances.cumsum(-1) - chances
    return chances.gather(-1, places), before.gather(-1, places)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="a low temperature makes the text wild, and a high one dull",
    contract=AGREES,
    says="Temperature is multiplied: divide by it",
)
def times_temperature(logits, top_k, top_p, temperature):
    """Multiplies by the temperature."""
    return sampling_filter(logits, top_k, top_p, 1 / temperature)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="the temperature changes nothing",
    contract=AGREES,
    says="Temperature is ignored",
)
def of_one_temperature(logits, top_k, top_p, temperature):
    """Takes a temperature, and does not use it."""
    return sampling_filter(logits, top_k, top_p, 1.0)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="a high temperature adds no new words, and top-p seems too strict",
    contract=AGREES,
    says="Temperature comes last: it decides which tokens hold the mass p",
)
def temperature_last(logits, top_k, top_p, temperature):
    """Filters first, and heats what is left."""
    return sampling_filter(logits, top_k, top_p, 1.0) / temperature


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="the text is duller than p says, and the same whenever p is small",
    contract=FEWEST,
    says="The token that crosses p is lost: keep it",
)
def loses_the_crossing_token(logits, top_k, top_p, temperature):
    """Keeps what stays below p; one token at least."""
    logits = sampling_filter(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    chances, before = ranked(logits)
    lost = (chances + before >= top_p) & (before > 0)
    return logits.masked_fill(lost, -torch.inf)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="now and then a word that has no place there",
    contract=FEWEST,
    says="top-p keeps one too many: it stops as soon as the mass p is there",
)
def keeps_the_next_token_too(logits, top_k, top_p, temperature):
    """Shifted by one place too many: p is crossed, and one more is kept."""
    logits = sampling_filter(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    chances, order = logits.softmax(-1).sort(descending=True)
    over = (chances.cumsum(-1) >= top_p).roll(2, -1)
    over[:, :2] = False
    lost = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(lost, -torch.inf)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="top_k=2 writes what a greedy search writes",
    contract=COUNT,
    says="top-k keeps one too few: is the k-th compared with `<=`",
)
def one_too_few(logits, top_k, top_p, temperature):
    """`<=` drops the k-th largest itself; one token at least is kept."""
    fewer = top_k and max(top_k - 1, 1)
    return sampling_filter(logits, fewer, top_p, temperature)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="top_k=1 is not greedy: the same question has two answers",
    contract=COUNT,
    says="top-k keeps one too many",
)
def one_too_many(logits, top_k, top_p, temperature):
    """The threshold is the token after the k-th."""
    more = top_k and top_k + 1
    return sampling_filter(logits, more, top_p, temperature)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="every word is one that nobody would say",
    contract=AGREES,
    says="top-k keeps the least likely tokens",
)
def the_least_likely(logits, top_k, top_p, temperature):
    """Sorted upwards: the first k are the worst."""
    if top_k is not None:
        kept = sampling_filter(-logits, top_k, None, 1.0).isfinite()
        logits = logits.masked_fill(~kept, -torch.inf)
    return sampling_filter(logits, None, top_p, temperature)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="a fine loss, and text that is noise: id 0 is always the likeliest",
    contract=FEWEST,
    says="The tokens come back in sorted order: put them where they were",
)
def left_in_order(logits, top_k, top_p, temperature):
    """Filtered in sorted order, and never put back."""
    kept = sampling_filter(logits, top_k, top_p, temperature)
    return kept.sort(descending=True).values


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="top-k makes the text wilder: what it dropped is drawn more often",
    contract=COUNT,
    says="What is dropped has the logit 0: only -∞ is never drawn",
)
def zero_is_not_never(logits, top_k, top_p, temperature):
    """Logits are multiplied by the mask: what is dropped has the logit 0."""
    kept = sampling_filter(logits, top_k, top_p, temperature)
    return kept.masked_fill(kept == -torch.inf, 0)


@animal(
    "sampling_filter",
    seen="a common slip",
    symptom="hardly any difference between the words: all text is noise",
    contract=COUNT,
    says="These are probabilities: return logits",
)
def probabilities(logits, top_k, top_p, temperature):
    """A softmax at the end, which whoever draws applies once more."""
    kept = sampling_filter(logits, top_k, top_p, temperature)
    return kept.softmax(-1)
