"""Beam searches that lose the best hypothesis, or return another one."""

import torch

from companion.decoding import greedy_decode, length_penalty
from companion.zoo.animal import animal

MORE = "Two beams find what a greedy search misses"
STAYS = "What is finished stays, and is extended no more"
WHOLE = "With beams enough it finds the most likely sentence of all"
PENALTY = "With alpha it divides by the length penalty"


def log_softmax(logits):
    """What is to be added up."""
    return logits.log_softmax(-1)


def continued(step_fn, live, logs=log_softmax):
    """All hypotheses of one word more, as (score, ids), the best first."""
    scores = logs(step_fn(torch.tensor([ids for _, ids in live])))
    found = [
        (score + x, [*ids, i])
        for (score, ids), row in zip(live, scores.tolist(), strict=True)
        for i, x in enumerate(row)
    ]
    return sorted(found, reverse=True)


def search(step_fn, bos, eos, beam, max_len, logs=log_softmax):
    """What is finished, and what is cut, with their scores."""
    live, done = [(0.0, [bos])], []
    for _ in range(max_len):
        found = continued(step_fn, live, logs)[:beam]
        done += [f for f in found if f[1][-1] == eos]
        live = [f for f in found if f[1][-1] != eos]
        if not live or len(done) >= beam:
            return done
    return done + live


def best(found, alpha, worth=length_penalty):
    """The ids of the best of ``found``, without bos."""
    return max(found, key=lambda f: f[0] / worth(len(f[1]) - 1, alpha))[1][1:]


@animal(
    "beam_search",
    seen="a common slip",
    symptom="ten beams are ten times as slow, and say what one says",
    contract=MORE,
    says="This is a greedy search: one hypothesis is kept",
)
def greedy_in_disguise(step_fn, bos, eos, beam, max_len, alpha):
    """Takes the best continuation of each step, whatever `beam` is."""
    return greedy_decode(step_fn, bos, eos, max_len)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="long sentences win, the longer the better",
    contract=STAYS,
    says="It sums probabilities",
)
def adds_probabilities(step_fn, bos, eos, beam, max_len, alpha):
    """Probabilities are added instead of their logarithms."""
    found = search(step_fn, bos, eos, beam, max_len, lambda x: x.softmax(-1))
    return best(found, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="the likeliest sentence loses to one whose logits happen to be "
    "high",
    contract=WHOLE,
    says="It sums logits: `log_softmax` makes sentences comparable",
)
def adds_logits(step_fn, bos, eos, beam, max_len, alpha):
    """Raw logits are added, which mean something within one row only."""
    found = search(step_fn, bos, eos, beam, max_len, lambda logits: logits)
    return best(found, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="more beams, worse sentences",
    contract=MORE,
    says="It returns the last of its hypotheses: return the best",
)
def returns_the_last(step_fn, bos, eos, beam, max_len, alpha):
    """Sorted upwards, and the first one is taken."""
    found = search(step_fn, bos, eos, beam, max_len)
    found = [(-score, ids) for score, ids in found]
    return best(found, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="no sentence is ever short",
    contract=STAYS,
    says="It forgets finished hypotheses: keep them until the end",
)
def forgets_the_finished(step_fn, bos, eos, beam, max_len, alpha):
    """What ends leaves the beam, and goes nowhere."""
    live = [(0.0, [bos])]
    for _ in range(max_len):
        found = continued(step_fn, live)[:beam]
        live = [f for f in found if f[1][-1] != eos]
        if not live:
            return found[0][1][1:]
    return best(live, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="more beams, shorter sentences, of which many are empty",
    contract=WHOLE,
    says="It returns the first finished hypothesis: another may become better",
)
def returns_the_first_finished(step_fn, bos, eos, beam, max_len, alpha):
    """Whatever ends first is the answer."""
    live = [(0.0, [bos])]
    for _ in range(max_len):
        live = continued(step_fn, live)[:beam]
        for _, ids in live:
            if ids[-1] == eos:
                return ids[1:]
    return best(live, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="sentences with an end in the middle",
    contract="With one beam it is a greedy search",
    says="It extends finished hypotheses: after eos nothing follows",
)
def extends_the_finished(step_fn, bos, eos, beam, max_len, alpha):
    """eos is a word like any other."""
    live = [(0.0, [bos])]
    for _ in range(max_len):
        live = continued(step_fn, live)[:beam]
    return best(live, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="sentences that begin well and end in another one",
    contract=MORE,
    says="Words are appended to the wrong row",
)
def appends_to_the_first(step_fn, bos, eos, beam, max_len, alpha):
    """Which row a candidate continues is forgotten: all continue the best."""
    live, done = [(0.0, [bos])], []
    for _ in range(max_len):
        first = live[0][1]
        found = continued(step_fn, live)[:beam]
        found = [(score, [*first, ids[-1]]) for score, ids in found]
        done += [f for f in found if f[1][-1] == eos]
        live = [f for f in found if f[1][-1] != eos]
        if not live:
            break
    return best(done + live, alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="alpha can be tuned for days: nothing changes",
    contract=PENALTY,
    says="`alpha` changes nothing: divide the sum of log p by the penalty",
)
def unpenalised(step_fn, bos, eos, beam, max_len, alpha):
    """Sums are compared as they are: whatever is short wins."""
    return best(search(step_fn, bos, eos, beam, max_len), 0.0)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="the larger alpha is, the shorter the sentences",
    contract=PENALTY,
    says="It multiplies by the length penalty: log p is negative",
)
def times_the_penalty(step_fn, bos, eos, beam, max_len, alpha):
    """Multiplies negative sums by a penalty that grows."""
    return best(search(step_fn, bos, eos, beam, max_len), -alpha)


@animal(
    "beam_search",
    seen="a common slip",
    symptom="with alpha 0 it is not the likeliest sentence that wins",
    contract=PENALTY,
    says="It takes the mean over ids, whatever `alpha` is",
)
def always_the_mean(step_fn, bos, eos, beam, max_len, alpha):
    """Divides by the number of ids, without being asked to."""
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha, lambda n, alpha: n)
