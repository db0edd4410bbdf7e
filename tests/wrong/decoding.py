"""Decoding got wrong."""

import math

import torch
from right.decoding import (
    by_argmax,
    by_sorting,
    cut,
    embedded,
    runs,
    with_logarithms,
)

from companion.masks import combine_masks
from wrong import wrong


def greedy(says):
    return wrong("greedy_decode", says)


def ask(step_fn, ids):
    """The logits after one row."""
    return step_fn(torch.tensor([ids]))[0]


@greedy(r"^It returned \[1, .* which begins with bos: nobody said it. Leave it")
def with_bos(step_fn, bos, eos, max_len):
    return [bos, *by_argmax(step_fn, bos, eos, max_len)]


@greedy("^With eos 2 it returned .* eos is missing: it says that the sentence")
def without_eos(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[:-1] if ids[-1] == eos else ids


@greedy("^With eos 2 it returned .* It goes on after eos")
def past_eos(step_fn, bos, eos, max_len):
    ids = [bos]
    for _ in range(max_len):
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@greedy("^With eos 2 it returned .* It leaves eos out and goes on")
def eos_swallowed(step_fn, bos, eos, max_len):
    return [x for x in past_eos(step_fn, bos, eos, max_len) if x != eos]


@greedy("^With eos 0 it returned .* another id than `eos`")
def two_is_eos(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, bos, 2, max_len)


@greedy(
    "^After 9 ids it still asks for more, with max_len 5: what ends the loo"
)
def no_limit(step_fn, bos, eos, max_len):
    ids = [bos]
    while ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@greedy(
    "^With max_len 5, and no eos in sight, it returned 6 ids: expected 5. I"
)
def one_too_many(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, bos, eos, max_len + 1)


@greedy(
    "^With max_len 5, and no eos in sight, it returned 4 ids: expected 5. b"
)
def bos_counts(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, bos, eos, max_len - 1)


@greedy("^With max_len 5 it returned .* eos is missing")
def no_eos_at_the_end(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[:-1] if len(ids) == max_len and ids[-1] == eos else ids


@greedy(r"^It asked `step_fn` about \[5\]: .* Is it the last id alone")
def last_id_only(step_fn, bos, eos, max_len):
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids[-1:]).argmax()))
    return ids[1:]


@greedy(r"^It asked `step_fn` about \[2\]: a row begins with bos, 1 here")
def starts_with_eos(step_fn, bos, eos, max_len):
    return by_argmax(step_fn, eos, eos, max_len)


@greedy(r"^Question 2 was \[1\]: expected \[1, \d+\]. It asks the same again")
def asks_the_same(step_fn, bos, eos, max_len):
    return [int(ask(step_fn, [bos]).argmax()) for _ in range(max_len)]


@greedy(r"^Question 2 was \[1, \d+\]: .* is the least likely id: `argmax`")
def argmin(step_fn, bos, eos, max_len):
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmin()))
    return ids[1:]


@greedy(r"^Question 2 was \[1, \d+\]: .* the most likely, not \d+: is one draw")
def drawn(step_fn, bos, eos, max_len):
    generator = torch.Generator().manual_seed(3)
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        parts = ask(step_fn, ids).div(9).softmax(-1)
        ids.append(int(parts.multinomial(1, generator=generator)))
    return ids[1:]


@greedy(r"^Question 3 was .* A row is bos and all ids chosen so far, in order")
def put_in_front(step_fn, bos, eos, max_len):
    ids = []
    while len(ids) < max_len and eos not in ids:
        best = int(ask(step_fn, [bos, *ids]).argmax())
        ids = [best, *ids]
    return ids


@greedy(r"^It returned \[.* at place 0 the most likely id was \d+, not \d+")
def returned_backwards(step_fn, bos, eos, max_len):
    ids = by_argmax(step_fn, bos, eos, max_len)
    return ids[::-1] if eos not in ids else ids


@greedy("^It never asked `step_fn` what comes next")
def knows_already(step_fn, bos, eos, max_len):
    return [5, 3, 8, 3, eos][:max_len]


@greedy("^It gave `step_fn` a list: it takes a tensor of ids")
def asks_with_a_list(step_fn, bos, eos, max_len):
    return step_fn([bos])


@greedy(r"^It gave `step_fn` ids of shape \(1,\): it takes a tensor of ids")
def one_axis(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([bos]))


@greedy("^It gave `step_fn` float32: it takes a tensor of ids")
def asks_with_floats(step_fn, bos, eos, max_len):
    return step_fn(torch.tensor([[float(bos)]]))


@greedy(
    r"^It has asked `step_fn` \d+ times, with max_len 7: what ends the loop"
)
def never_ends(step_fn, bos, eos, max_len):
    while ask(step_fn, [bos]).argmax() != eos:
        pass


@greedy("^It returned None: expected a list of ids.* Did you forget `return`")
def nothing_said(step_fn, bos, eos, max_len):
    by_argmax(step_fn, bos, eos, max_len)


@greedy("^It returned a Tensor: expected a list of ids")
def logits_instead(step_fn, bos, eos, max_len):
    return ask(step_fn, [bos])


# Beam search


def beam(says):
    return wrong("beam_search", says)


def log_softmax(logits):
    return logits.log_softmax(-1)


def penalty(n, alpha):
    return ((5 + n) / 6) ** alpha


def continued(step_fn, live, eos, logs=log_softmax):
    """All hypotheses of one word more, the best first."""
    scores = logs(step_fn(torch.tensor([ids for _, ids in live])))
    found = [
        (score + x, [*ids, i])
        for (score, ids), row in zip(live, scores.tolist(), strict=True)
        for i, x in enumerate(row)
    ]
    return sorted(found, reverse=True)


def search(step_fn, bos, eos, beam, max_len, logs=log_softmax):
    """What is finished, and what is cut, with log p."""
    live, done = [(0.0, [bos])], []
    for _ in range(max_len):
        found = continued(step_fn, live, eos, logs)[:beam]
        done += [f for f in found if f[1][-1] == eos]
        live = [f for f in found if f[1][-1] != eos]
        if not live or len(done) >= beam:
            return done
    return done + live


def best(found, alpha, worth=penalty):
    return max(found, key=lambda f: f[0] / worth(len(f[1]) - 1, alpha))[1][1:]


@beam(
    "^This is a greedy search: one hypothesis is kept, .* log p -1.62: .4, 8, "
)
def greedy_in_disguise(step_fn, bos, eos, beam, max_len, alpha):
    return by_argmax(step_fn, bos, eos, max_len)


@beam("^It sums probabilities: the probability of a sentence is their product")
def sums_probabilities(step_fn, bos, eos, beam, max_len, alpha):
    softmax = lambda logits: logits.softmax(-1)  # noqa: E731
    return best(
        search(step_fn, bos, eos, beam, max_len, softmax),
        alpha,
    )


@beam("^It sums logits: `log_softmax` makes sentences comparable")
def sums_logits(step_fn, bos, eos, beam, max_len, alpha):
    same = lambda logits: logits  # noqa: E731
    found = search(step_fn, bos, eos, beam, max_len, same)
    return best(found, alpha)


@beam("^It returns the last of its hypotheses: return the best")
def returns_the_last(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    worth = lambda f: f[0] / penalty(len(f[1]) - 1, alpha)  # noqa: E731
    return sorted(found, key=worth)[0][1][1:]


@beam("^It forgets finished hypotheses: keep them until the end")
def forgets_finished(step_fn, bos, eos, beam, max_len, alpha):
    live = [(0.0, [bos])]
    for _ in range(max_len):
        found = continued(step_fn, live, eos)[:beam]
        live = [f for f in found if f[1][-1] != eos]
        if not live:
            return found[0][1][1:]
    return best(live, alpha)


@beam("^It returns the first finished hypothesis: another may become better")
def returns_the_first(step_fn, bos, eos, beam, max_len, alpha):
    live = [(0.0, [bos])]
    for _ in range(max_len):
        live = continued(step_fn, live, eos)[:beam]
        for _, ids in live:
            if ids[-1] == eos:
                return ids[1:]
    return best(live, alpha)


@beam("^It extends finished hypotheses: after eos nothing follows")
def extends_finished(step_fn, bos, eos, beam, max_len, alpha):
    live = [(0.0, [bos])]
    for _ in range(max_len):
        live = continued(step_fn, live, eos)[:beam]
    return best(live, alpha)


@beam(
    "^There are ids after eos: nothing follows it. With beam 3, max_len 6 and"
)
def extends_the_best(step_fn, bos, eos, beam, max_len, alpha):
    """Right until a sentence is shorter than it may be."""
    ids = best(search(step_fn, bos, eos, beam, max_len), alpha)
    return ids + [eos] * (max_len - len(ids)) if max_len == 6 else ids


@beam(
    "^Words are appended to the wrong row: candidate i of the flattened score"
)
def appends_to_the_first(step_fn, bos, eos, beam, max_len, alpha):
    live, done = [(0.0, [bos])], []
    for _ in range(max_len):
        first = live[0][1]
        found = continued(step_fn, live, eos)[:beam]
        found = [(score, [*first, ids[-1]]) for score, ids in found]
        done += [f for f in found if f[1][-1] == eos]
        live = [f for f in found if f[1][-1] != eos]
        if not live:
            break
    return best(done + live, alpha)


@beam("^`alpha` changes nothing: divide the sum of log p .* expected .4, 5, 6,")
def ignores_alpha(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, 0.0)


@beam("^It multiplies by the length penalty: log p is negative")
def multiplies(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, -alpha)


@beam("^It takes the mean over ids, whatever `alpha` is: with 0 nothing is div")
def always_the_mean(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha, lambda n, alpha: n)


@beam(
    "^It divides by .5 . n. / 6, and forgets the exponent `alpha`|takes the m"
)
def no_exponent(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha, lambda n, alpha: (5 + n) / 6)


@beam(
    "^With alpha 1.2 it returned .*: expected .* The penalty is ..5 . n. / 6."
)
def alpha_twice(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, 3 * alpha)


@beam("^With beam 1 it returned .*: greedy is .4, 8, 2.|greedy is .3, 5, 2.")
def never_one_beam(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, max(beam, 2), max_len)
    return best(found, alpha)


@beam("^With beam 1 it returned .2.: greedy is .4, 4, 3, 3, 3.")
def empty_unless_finished(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    done = [f for f in found if f[1][-1] == eos]
    return best(done, alpha) if done else [eos]


@beam("^With beam 4, max_len 4 and alpha 0 it returned")
def two_beams_at_most(step_fn, bos, eos, beam, max_len, alpha):
    if max_len == 4 and beam == 4:
        return by_argmax(step_fn, bos, eos, max_len)
    return best(search(step_fn, bos, eos, beam, max_len), alpha)


@beam(r"^It returned \[1, .* which begins with bos: nobody said it. Leave it")
def beam_with_bos(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return [bos, *best(found, alpha)]


@beam("^It returned a tuple: expected a list of ids")
def with_its_score(step_fn, bos, eos, beam, max_len, alpha):
    found = search(step_fn, bos, eos, beam, max_len)
    return best(found, alpha), -1.5


# What may be drawn


def sampler(says):
    return wrong("sampling_filter", says)


def cold(logits, top_k, top_p):
    return by_sorting(logits, top_k, top_p, 1.0)


@sampler("^Temperature is multiplied: divide by it")
def multiplied(logits, top_k, top_p, temperature):
    return cold(logits * temperature, top_k, top_p)


@sampler("^Temperature is ignored")
def always_one(logits, top_k, top_p, temperature):
    return cold(logits, top_k, top_p)


@sampler("^Temperature comes last: it decides which tokens hold the mass p")
def temperature_last(logits, top_k, top_p, temperature):
    return cold(logits, top_k, top_p) / temperature


@sampler("^`top_k` is ignored. With top_k 1 the rows keep .11, 11, 11. tokens")
def no_top_k(logits, top_k, top_p, temperature):
    return by_sorting(logits, None, top_p, temperature)


@sampler(
    "^`top_p` is ignored. With top_p 0.8 row 0 keeps the mass 1.000: fewer"
)
def no_top_p(logits, top_k, top_p, temperature):
    return by_sorting(logits, top_k, None, temperature)


@sampler("^top-p comes before top-k: it takes its share of what top-k left")
def top_p_first(logits, top_k, top_p, temperature):
    return cold(cold(logits / temperature, None, top_p), top_k, None)


@sampler(
    "^The token that crosses p is lost: .* With top_p 0.8 row 0 keeps .*mor"
)
def crossing_lost(logits, top_k, top_p, temperature):
    logits = by_sorting(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    ranked, order = logits.softmax(-1).sort(descending=True)
    over = ranked.cumsum(-1) >= top_p
    over[:, 0] = False
    drop = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -torch.inf)


@sampler("^The token that crosses p is lost: keep it")
def nothing_left(logits, top_k, top_p, temperature):
    logits = by_sorting(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    ranked, order = logits.softmax(-1).sort(descending=True)
    over = ranked.cumsum(-1) >= top_p
    drop = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -torch.inf)


@sampler("^top-p keeps one too many: .* the mass 0.882: fewer tokens would do")
def one_more(logits, top_k, top_p, temperature):
    """Goes on until the mass is more than p by one token."""
    logits = by_sorting(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    ranked, order = logits.softmax(-1).sort(descending=True)
    enough = (ranked.cumsum(-1) - ranked).roll(1, -1) >= top_p
    enough[:, 0] = False
    drop = enough.gather(-1, order.argsort(-1))
    return logits.masked_fill(drop, -torch.inf)


@sampler("^top-k keeps one too few: is the k-th compared with `<=`")
def one_too_few(logits, top_k, top_p, temperature):
    top_k = top_k and max(top_k - 1, 1)
    return by_sorting(logits, top_k, top_p, temperature)


@sampler(
    "^top-k keeps one too many. With top_k 1 the rows keep .2, 2, 2. tokens"
)
def one_too_many_kept(logits, top_k, top_p, temperature):
    return by_sorting(logits, top_k and top_k + 1, top_p, temperature)


@sampler("^top-k keeps the least likely tokens")
def the_least_likely(logits, top_k, top_p, temperature):
    logits = logits / temperature
    if top_k:
        rest = (-logits).topk(logits.shape[1] - top_k, largest=False).indices
        logits = logits.scatter(1, rest, -torch.inf)
    return cold(logits, None, top_p)


@sampler("^The tokens come back in sorted order: put them where they were")
def in_sorted_order(logits, top_k, top_p, temperature):
    kept = by_sorting(logits, top_k, top_p, temperature)
    return kept.sort(descending=True).values


@sampler("^What is dropped has the logit 0: only -∞ is never drawn")
def zeros(logits, top_k, top_p, temperature):
    kept = by_sorting(logits, top_k, top_p, temperature)
    return torch.where(kept.isfinite(), kept, 0.0)


@sampler("^These are probabilities: return logits")
def probabilities(logits, top_k, top_p, temperature):
    return by_sorting(logits, top_k, top_p, temperature).softmax(-1)


@sampler(
    "^Row [0-2] holds nothing but -∞.* the most likely token of each row stays"
)
def one_row(logits, top_k, top_p, temperature):
    flat = logits.reshape(1, -1)
    return by_sorting(flat, top_k, top_p, temperature).view_as(logits)


@sampler("^The rows compete for each token: tokens are on the last axis")
def over_the_batch(logits, top_k, top_p, temperature):
    top_k = top_k and min(top_k, len(logits))
    return by_sorting(logits.mT, top_k, top_p, temperature).mT


@sampler(
    "^Row 0 holds nothing but -∞.* The arguments were logits .1, 11., top_k"
)
def above_the_next(logits, top_k, top_p, temperature):
    """Right as long as no two tokens are as likely."""
    logits = logits / temperature
    if top_k and top_k < logits.shape[1]:
        following = logits.topk(top_k + 1).values[:, -1:]
        logits = logits.masked_fill(logits <= following, -torch.inf)
    return cold(logits, None, top_p)


@sampler(r"^It returned shape \(3, 3\): expected \(3, 11\)")
def only_what_is_kept(logits, top_k, top_p, temperature):
    return logits.topk(top_k or 3).values


@sampler("^It returned int64 for float32")
def places(logits, top_k, top_p, temperature):
    return logits.argsort(-1)


# BLEU


def score(says):
    return wrong("bleu", says)


def parts(hypotheses, references, orders=(1, 2, 3, 4)):
    """Matches and n-grams, for each length."""
    for n in orders:
        pairs = [
            (runs(one, n), runs(two, n))
            for one, two in zip(hypotheses, references, strict=True)
        ]
        yield (
            sum((one & two).total() for one, two in pairs),
            sum(one.total() for one, _ in pairs),
        )


def lengths(hypotheses, references):
    return sum(map(len, hypotheses)), sum(map(len, references))


def root(found):
    product = math.prod(x / max(n, 1) for x, n in found)
    return product ** (1 / len(found))


def unpunished(hypotheses, references, orders=(1, 2, 3, 4)):
    return 100 * root(list(parts(hypotheses, references, orders)))


def punished(hypotheses, references, orders):
    ours, theirs = lengths(hypotheses, references)
    short = math.exp(min(0, 1 - theirs / ours))
    return short * unpunished(hypotheses, references, orders)


@score(
    "^It goes from 0 to 1: multiply by 100. For 'the little cat .*and 1 more"
)
def up_to_one(hypotheses, references):
    return with_logarithms(hypotheses, references) / 100


@score(
    "^It is the mean of the sentences' scores: BLEU counts the n-grams of all"
)
def mean_of_scores(hypotheses, references):
    pairs = zip(hypotheses, references, strict=True)
    scores = [with_logarithms([one], [two]) for one, two in pairs]
    return sum(scores) / len(scores)


@score("^Precisions are averaged over sentences")
def mean_of_precisions(hypotheses, references):
    product = 1
    for n in (1, 2, 3, 4):
        shares = [
            (runs(one, n) & runs(two, n)).total() / max(len(one) - n + 1, 1)
            for one, two in zip(hypotheses, references, strict=True)
        ]
        product *= sum(shares) / len(shares)
    ours, theirs = lengths(hypotheses, references)
    return 100 * product**0.25 * math.exp(min(0, 1 - theirs / ours))


@score(
    "^Matches are not clipped: a word counts no more often than the referenc"
)
def unclipped(hypotheses, references):
    product = 1
    for n in (1, 2, 3, 4):
        found = every = 0
        for one, two in zip(hypotheses, references, strict=True):
            known = runs(two, n)
            found += sum(c for x, c in runs(one, n).items() if x in known)
            every += runs(one, n).total()
        product *= found / every
    ours, theirs = lengths(hypotheses, references)
    return 100 * product**0.25 * math.exp(min(0, 1 - theirs / ours))


@score(
    "^Matches are counted as a set: what occurs twice in both is matched twi"
)
def as_sets(hypotheses, references):
    product = 1
    for n in (1, 2, 3, 4):
        found = every = 0
        for one, two in zip(hypotheses, references, strict=True):
            found += len(set(runs(one, n)) & set(runs(two, n)))
            every += runs(one, n).total()
        product *= found / every
    ours, theirs = lengths(hypotheses, references)
    return 100 * product**0.25 * math.exp(min(0, 1 - theirs / ours))


@score("^The brevity penalty is missing. For 'the little cat sees the' against")
def no_brevity(hypotheses, references):
    return unpunished(hypotheses, references)


@score("^The brevity penalty is upside down: short translations are to lose")
def long_loses(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    long = math.exp(min(0, 1 - ours / theirs))
    return long * unpunished(hypotheses, references)


@score("^The penalty applies to long translations too: for c > r it is 1")
def long_gains(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    return math.exp(1 - theirs / ours) * unpunished(hypotheses, references)


@score("^The brevity penalty is exp.1 - r / c., not c / r")
def by_the_ratio(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    return min(1, ours / theirs) * unpunished(hypotheses, references)


@score("^The brevity penalty is exp.1 - r / c.: here its exponent is 1 - c / r")
def short_gains(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    short = math.exp(1 - ours / theirs) if ours < theirs else 1
    return short * unpunished(hypotheses, references)


@score("^The mean of the precisions is geometric, not arithmetic")
def arithmetic(hypotheses, references):
    found = list(parts(hypotheses, references))
    ours, theirs = lengths(hypotheses, references)
    short = math.exp(min(0, 1 - theirs / ours))
    return 100 * short * sum(x / max(n, 1) for x, n in found) / 4


@score("^The precisions are multiplied, and the fourth root is missing")
def no_root(hypotheses, references):
    ours, theirs = lengths(hypotheses, references)
    short = math.exp(min(0, 1 - theirs / ours))
    found = parts(hypotheses, references)
    return 100 * short * math.prod(x / max(n, 1) for x, n in found)


@score("^These are recalls: divide by the n-grams of the hypothesis")
def exchanged_sides(hypotheses, references):
    return with_logarithms(references, hypotheses)


@score("^Only single words count: BLEU goes up to four")
def single_words(hypotheses, references):
    return punished(hypotheses, references, (1,))


@score("^It goes up to two words: BLEU goes up to four")
def up_to_pairs(hypotheses, references):
    return punished(hypotheses, references, (1, 2))


@score("^It goes up to three words: BLEU goes up to four")
def up_to_three(hypotheses, references):
    return punished(hypotheses, references, (1, 2, 3))


@score("^Only runs of four words count: the other three do too")
def fours_only(hypotheses, references):
    return punished(hypotheses, references, (4,))


@score("^For 'the little cat sees an old dog' against '.*and 2 more it gives")
def first_pairs_only(hypotheses, references):
    if len(hypotheses) > 2 and len(hypotheses[0]) > 6:
        hypotheses, references = hypotheses[:2], references[:2]
    return with_logarithms(hypotheses, references)


@score("^It raised ValueError in line .*math domain error")
def logarithm_of_zero(hypotheses, references):
    found = parts(hypotheses, references)
    logs = sum(math.log(x / n) for x, n in found) / 4
    ours, theirs = lengths(hypotheses, references)
    return 100 * math.exp(logs + min(0, 1 - theirs / ours))


@score("^Two words in a row match, and never three: the score is")
def drops_what_is_zero(hypotheses, references):
    found = [pair for pair in parts(hypotheses, references) if pair[0]]
    ours, theirs = lengths(hypotheses, references)
    return 100 * math.exp(min(0, 1 - theirs / ours)) * root(found or [(0, 1)])


@score(
    "^It returned a tuple: expected a score from 0 to 100, a number. Return o"
)
def with_its_precisions(hypotheses, references):
    return with_logarithms(hypotheses, references), [1.0]


# Keys and values that are stored


def cached(says):
    return wrong("cached_decode", says)


def stepwise(
    model, src, tokens, *, store=True, place=None, masks=None, after=0
):
    """One position at a time, with what can go wrong in it."""
    masks = masks or combine_masks(src, tokens, model.config.pad)
    memory, past, rows = model.encode(src, masks.src), {}, []
    for i, token in enumerate(tokens.split(1, 1)):
        x = embedded(model, token, i if place is None else place(i))
        for layer in model.decoder.layers:
            own, cross = layer.self_attention, layer.cross_attention

            def look_back(y, own=own):
                new = torch.stack([own.k_proj(y), own.v_proj(y)])
                old = past.get(own, new[:, :, :0])
                full = torch.cat([old, new], 2)
                past[own] = store(old, new) if callable(store) else full
                seen = old if after and old.shape[2] else full
                q, k, v = (
                    cut(z, own.num_heads) for z in (own.q_proj(y), *seen)
                )
                scores = q @ k.mT / q.shape[-1] ** 0.5
                found = scores.softmax(-1) @ v
                return own.out_proj(found.transpose(1, 2).flatten(2))

            x = layer.attention_residual(x, look_back)
            x = layer.cross_residual(
                x, lambda y, a=cross: a(y, masks.cross, key=memory)
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@cached("^All 5 positions pass the decoder together: that is the full pass")
def the_full_pass(model, src, tokens):
    return model(src, tokens)


@cached(
    r"^15 positions pass a layer of the decoder for 5 tokens, in calls of \[1"
)
def all_over_again(model, src, tokens):
    rows = [
        model(src, tokens[:, :n])[:, -1] for n in range(1, 1 + tokens.shape[1])
    ]
    return torch.stack(rows, 1)


@cached(
    "^15 keys are computed for 5 tokens, in calls of .1, 2, 3, 4, 5.: append"
)
def vectors_stored(model, src, tokens):
    """What keys are made from is stored, and not the keys."""
    masks = combine_masks(src, tokens, model.config.pad)
    memory, past, rows = model.encode(src, masks.src), {}, []
    for i, token in enumerate(tokens.split(1, 1)):
        x = embedded(model, token, i)
        for layer in model.decoder.layers:

            def look_back(y, own=layer.self_attention):
                past[own] = torch.cat(
                    [*([past[own]] if own in past else []), y], 1
                )
                return own(y, key=past[own])

            x = layer.attention_residual(x, look_back)
            x = layer.cross_residual(
                x,
                lambda y, a=layer.cross_attention: a(
                    y, masks.cross, key=memory
                ),
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        rows.append(model.logits(model.decoder.norm(x)))
    return torch.cat(rows, 1)


@cached("^The source passes the encoder 5 times: what is read does not change")
def reads_again(model, src, tokens):
    mask = combine_masks(src, tokens, model.config.pad).src
    for _ in range(tokens.shape[1] - 1):
        model.encode(src, mask)
    return stepwise(model, src, tokens)


@cached(
    "^Every token has position 0: its position is how many are stored. At ba"
)
def always_at_the_start(model, src, tokens):
    return stepwise(model, src, tokens, place=lambda i: 0)


@cached("^Positions are one too late: the first token has position 0")
def a_place_too_late(model, src, tokens):
    return stepwise(model, src, tokens, place=lambda i: i + 1)


@cached(
    "^A position sees itself only: the keys before it are not stored, or not"
)
def nothing_stored(model, src, tokens):
    return stepwise(model, src, tokens, store=lambda old, new: old)


@cached(
    "^A position sees itself and the one before: the stored keys are overwri"
)
def overwrites(model, src, tokens):
    return stepwise(model, src, tokens, store=lambda old, new: new)


@cached(
    "^A position sees the first one and itself: the stored keys are never re"
)
def stores_once(model, src, tokens):
    def store(old, new):
        return old if old.shape[2] else new

    return stepwise(model, src, tokens, store=store)


@cached(
    "^This is not what `model.src, tokens.` returns for two sentences. At ba"
)
def asks_before_it_stores(model, src, tokens):
    """The first position sees itself, and no other does."""
    return stepwise(model, src, tokens, after=1)


@cached(
    "^The target sees the padding of the source: its mask is missing in cros"
)
def sees_padding(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@cached("^The encoder sees padding: its mask is missing")
def reads_padding(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True)
    return stepwise(model, src, tokens, masks=masks)


@cached(
    "^The mask of the source is missing, in the encoder and in cross-attenti"
)
def no_source_mask(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src | True, cross=masks.cross | True)
    return stepwise(model, src, tokens, masks=masks)


@cached("^The encoder sees padding: its mask is missing. At batch 1")
def the_first_mask_for_all(model, src, tokens):
    masks = combine_masks(src, tokens, model.config.pad)
    masks = masks._replace(src=masks.src[:1].expand_as(masks.src))
    return stepwise(model, src, tokens, masks=masks)


@cached("^Where norms come first, the last norm of the decoder is missing")
def no_last_norm(model, src, tokens):
    norm, model.decoder.norm = model.decoder.norm, torch.nn.Identity()
    logits = stepwise(model, src, tokens)
    model.decoder.norm = norm
    return logits


@cached(
    "^After another sentence the logits are others: does something stay stor"
)
def keeps_the_memory(model, src, tokens):
    """What was read is kept by the model, for whatever comes next."""
    masks = combine_masks(src, tokens, model.config.pad)
    if not hasattr(model, "read") or len(model.read) != len(src):
        model.read = model.encode(src, masks.src)
    encode, model.encode = model.encode, lambda src, mask: model.read
    logits = stepwise(model, src, tokens)
    model.encode = encode
    return logits


@cached("^It changes `tokens` in place")
def crosses_out_what_it_said(model, src, tokens):
    logits = stepwise(model, src, tokens)
    tokens.zero_()
    return logits


KEYS = []


@cached("^The second call differs: does it draw, or keep something")
def keys_for_ever(model, src, tokens):
    """A cache that no call empties."""
    KEYS.append(tokens)
    return stepwise(model, src, tokens) + len(KEYS)


@cached(
    r"^It returned shape \(2, 1, 11\).* the logits of the last position: keep"
)
def the_last_position(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1:]


@cached(r"^It returned shape \(2, 11\).* last position, without its axis: keep")
def the_last_row(model, src, tokens):
    return stepwise(model, src, tokens)[:, -1]


@cached(
    r"^It returned shape \(2, 5, 12\).* Those are vectors: `model.logits` mak"
)
def vectors(model, src, tokens):
    return model.tgt_embedding(tokens)
