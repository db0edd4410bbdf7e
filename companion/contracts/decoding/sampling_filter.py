"""Contracts of what may be drawn: temperature, then top-k, then top-p.

Contracts see log-probabilities, so that a number added to all logits of a row
is nobody's business.
"""

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, OtherNumbers
from companion.contracts.engine.universal import recognised_mistake

__all__ = ["SAMPLING_FILTER"]

ROWS, VOCAB = 3, 11


def logits() -> Tensor:
    """The scores of eleven tokens, in three rows, no two of them equal."""
    return 1.5 * draw(ROWS, VOCAB, seed=3)


def barred() -> Tensor:
    """The same, and two tokens that are never to be drawn."""
    x = logits()
    x[:, [0, 4]] = -torch.inf
    return x


def top_k(x: Tensor, k: int | None) -> Tensor:
    """The k largest of each row, -∞ for the others."""
    if k is None:
        return x
    places = x.argsort(-1, descending=True).argsort(-1)
    return x.masked_fill(places >= k, -torch.inf)


def top_p(x: Tensor, p: float | None) -> Tensor:
    """The fewest of each row that hold the mass p, -∞ for the others."""
    if p is None:
        return x
    ranked, order = x.softmax(-1).sort(-1, descending=True)
    before = ranked.cumsum(-1) - ranked
    dropped = torch.zeros_like(x, dtype=torch.bool)
    dropped.scatter_(-1, order, before >= p)
    return x.masked_fill(dropped, -torch.inf)


def filtered(x: Tensor, k: int | None, p: float | None, t: float) -> Tensor:
    """The logits of what may be drawn."""
    return top_p(top_k(x / t, k), p)


def expected(x: Tensor, k: int | None, p: float | None, t: float) -> Tensor:
    """The log-probabilities of what may be drawn."""
    return filtered(x, k, p, t).log_softmax(-1)


def read(fn: Guarded, result: object, args: tuple) -> Tensor:
    """The log-probabilities of what was returned."""
    fn.require_tensor(result, args)
    fn.require_shape(result, args)
    for row, x in enumerate(result.reshape(-1, result.shape[-1])):
        none = (x == -torch.inf).all()
        if none or not (x < torch.inf).all():
            what = "nothing but -∞" if none else "NaN or ∞"
            raise OtherNumbers(
                f"Row {row} holds {what}, so that nothing can be drawn: the "
                "most likely token of each row stays. The arguments were "
                f"{fn.describe(args)}."
            )
    return result.log_softmax(-1)


SAMPLING_FILTER = Component(
    name="sampling_filter",
    signature="sampling_filter(logits, top_k, top_p, temperature)",
    returns="logits (rows, vocab), -∞ for what may not be drawn",
    axes=("row", "token"),
    shape=lambda logits, *rest: logits.shape,
    read=read,
    gradient=False,
    oracle=expected,
    reference="temperature, then top-k, then top-p",
    agrees="It keeps what it should, and as likely as it should be",
    cases=lambda: {
        "with everything off": (logits(), None, None, 1.0),
        "with temperature 0.5": (logits(), None, None, 0.5),
        "with temperature 1.7": (logits(), None, None, 1.7),
        "with top_k 1": (logits(), 1, None, 1.0),
        "with top_k 3": (logits(), 3, None, 1.0),
        "with top_p 0.8": (logits(), None, 0.8, 1.0),
        "with top_p 0.05": (logits(), None, 0.05, 1.0),
        "with top_k 4 and top_p 0.65": (logits(), 4, 0.65, 1.0),
        "with top_k 5, top_p 0.65 and temperature 1.5": (
            logits(),
            5,
            0.65,
            1.5,
        ),
        "with top_p 0.6 and temperature 3": (logits(), None, 0.6, 3.0),
        "where a token is -∞ already": (barred(), 7, 0.8, 1.0),
    },
)


def kept(fn: Guarded, *args) -> Tensor:
    """Which tokens may be drawn."""
    return fn.raw(*args) > -torch.inf


def refuse(fn: Guarded, says: str, args: tuple) -> None:
    """Raise Broken with the mistake that explains it, if one is known."""
    known = recognised_mistake(fn)
    hint = known[0] if known else ""
    raise Broken(
        f"{hint} {says}" if hint else says,
        fn.raw(*args),
        expected(*args),
        cause=hint,
    )


@SAMPLING_FILTER.before_reference
def counted(fn: Guarded) -> None:
    """top-k leaves k tokens in each row."""
    for k in (1, 3):
        args = (logits(), k, None, 1.0)
        found = kept(fn, *args).sum(-1).tolist()
        if found != [k] * ROWS:
            says = f"With top_k {k} the rows keep {found} tokens."
            refuse(fn, says, args)


@SAMPLING_FILTER.before_reference
def smallest(fn: Guarded) -> None:
    """top-p leaves the fewest tokens that hold the mass p."""
    for p in (0.8, 0.05):
        args = (logits(), None, p, 1.0)
        all_of_them = logits().softmax(-1)
        mass = (all_of_them * kept(fn, *args)).sum(-1)
        least = (all_of_them + ~kept(fn, *args)).amin(-1)
        for row in range(ROWS):
            says = f"With top_p {p} row {row} keeps the mass {mass[row]:.3f}"
            if mass[row] < p:
                refuse(fn, f"{says}: expected {p} or more.", args)
            if mass[row] - least[row] >= p:
                refuse(fn, f"{says}: fewer tokens would do.", args)


@SAMPLING_FILTER.contract
def rows_apart(fn: Guarded) -> None:
    """Each row is filtered by itself."""
    for k, p in ((3, None), (None, 0.8)):
        args = (logits(), k, p, 1.0)
        alone = torch.cat([fn.raw(row[None], k, p, 1.0) for row in logits()])
        says = "In a batch a row keeps other tokens than alone."
        same(fn, fn.raw(*args), alone, says)


@SAMPLING_FILTER.contract
def ties(fn: Guarded) -> None:
    """Where all tokens are as likely, k of them stay at least."""
    args = (torch.zeros(1, VOCAB), 3, None, 1.0)
    found = kept(fn, *args).sum().item()
    if found < 3:
        raise Broken(
            f"All logits are equal, and with top_k 3 it keeps {found}: does "
            "`<=` drop the k-th largest and all that equal it?"
        )


# Known mistakes


@SAMPLING_FILTER.mistake(
    hint="Temperature is multiplied: divide by it.",
    symptom="a low temperature makes the text wild, and a high one dull",
)
def times_temperature(logits, top_k, top_p, temperature):
    """Multiplies by the temperature."""
    return filtered(logits, top_k, top_p, 1 / temperature)


@SAMPLING_FILTER.mistake(
    hint="Temperature is ignored.",
    symptom="the temperature changes nothing",
)
def of_one_temperature(logits, top_k, top_p, temperature):
    """Takes a temperature, and does not use it."""
    return filtered(logits, top_k, top_p, 1.0)


@SAMPLING_FILTER.mistake(
    hint="Temperature comes last: it decides which tokens hold the mass p, so "
    "it comes first.",
    symptom="a high temperature adds no new words, and top-p seems too strict",
)
def temperature_last(logits, top_k, top_p, temperature):
    """Filters first, and heats what is left."""
    return filtered(logits, top_k, top_p, 1.0) / temperature


@SAMPLING_FILTER.mistake(
    hint="top-p keeps one too many: it stops as soon as the mass p is there.",
    symptom="now and then a word that has no place there",
)
def keeps_the_next_token_too(logits, top_k, top_p, temperature):
    """Shifted by one place too many: p is crossed, and one more is kept."""
    logits = filtered(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    chances, order = logits.softmax(-1).sort(descending=True)
    over = (chances.cumsum(-1) >= top_p).roll(2, -1)
    over[:, :2] = False
    lost = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(lost, -torch.inf)


@SAMPLING_FILTER.mistake(
    hint="top-p comes before top-k: it takes its share of what top-k left.",
)
# Where top-p leaves fewer than k, this is the same as the next one.
def top_p_first(logits, k, p, temperature):
    """The mass p is that of all tokens, and not of the k."""
    return top_k(top_p(logits / temperature, p), k)


@SAMPLING_FILTER.mistake(hint="`top_k` is ignored.")
def without_top_k(logits, top_k, top_p, temperature):
    """Takes k, and does not use it."""
    return filtered(logits, None, top_p, temperature)


@SAMPLING_FILTER.mistake(hint="`top_p` is ignored.")
def without_top_p(logits, top_k, top_p, temperature):
    """Takes p, and does not use it."""
    return filtered(logits, top_k, None, temperature)


@SAMPLING_FILTER.mistake(
    hint="The token that crosses p is lost: keep it, or the mass stays below "
    "p.",
    symptom="the text is duller than p says, and the same whenever p is small",
)
def loses_the_crossing_token(logits, top_k, top_p, temperature):
    """Keeps what stays below p; one token at least."""
    logits = filtered(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    chances, order = logits.softmax(-1).sort(descending=True)
    over = chances.cumsum(-1) >= top_p
    over[:, 0] = False
    lost = over.gather(-1, order.argsort(-1))
    return logits.masked_fill(lost, -torch.inf)


@SAMPLING_FILTER.mistake(
    hint="top-k keeps one too few: is the k-th compared with `<=`?",
    symptom="top_k=2 writes what a greedy search writes",
)
def one_too_few(logits, top_k, top_p, temperature):
    """`<=` drops the k-th largest itself; one token at least is kept."""
    fewer = top_k and max(top_k - 1, 1)
    return filtered(logits, fewer, top_p, temperature)


@SAMPLING_FILTER.mistake(
    hint="top-k keeps one too many.",
    symptom="top_k=1 is not greedy: the same question has two answers",
)
def one_too_many(logits, top_k, top_p, temperature):
    """The threshold is the token after the k-th."""
    more = top_k and top_k + 1
    return filtered(logits, more, top_p, temperature)


@SAMPLING_FILTER.mistake(
    hint="top-k keeps the least likely tokens.",
    symptom="every word is one that nobody would say",
)
def the_least_likely(logits, top_k, top_p, temperature):
    """Sorted upwards: the first k are the worst."""
    if top_k is not None:
        kept = filtered(-logits, top_k, None, 1.0).isfinite()
        logits = logits.masked_fill(~kept, -torch.inf)
    return filtered(logits, None, top_p, temperature)


@SAMPLING_FILTER.mistake(
    hint="The tokens come back in sorted order: put them where they were.",
    symptom="a fine loss, and text that is noise: id 0 is always the likeliest",
)
def left_in_order(logits, top_k, top_p, temperature):
    """Filtered in sorted order, and never put back."""
    kept = filtered(logits, top_k, top_p, temperature)
    return kept.sort(descending=True).values


@SAMPLING_FILTER.mistake(
    hint="What is dropped has the logit 0: only -∞ is never drawn.",
    symptom="top-k makes the text wilder: what it dropped is drawn more often",
)
def zero_is_not_never(logits, top_k, top_p, temperature):
    """Logits are multiplied by the mask: what is dropped has the logit 0."""
    kept = filtered(logits, top_k, top_p, temperature)
    return kept.masked_fill(kept == -torch.inf, 0)


@SAMPLING_FILTER.mistake(
    hint="These are probabilities: return logits.",
    symptom="hardly any difference between the words: all text is noise",
)
def probabilities(logits, top_k, top_p, temperature):
    """A softmax at the end, which whoever draws applies once more."""
    kept = filtered(logits, top_k, top_p, temperature)
    return kept.softmax(-1)


@SAMPLING_FILTER.mistake(
    hint="The whole batch is filtered as one row: each row keeps k of its own.",
)
def one_row(logits, *rest):
    """The batch is flattened, and filtered as if it were one row."""
    return filtered(logits.reshape(1, -1), *rest).view_as(logits)


@SAMPLING_FILTER.mistake(
    hint="The rows compete for each token: tokens are on the last axis.",
)
def over_the_batch(logits, *rest):
    """The axes have changed places."""
    return filtered(logits.mT, *rest).mT


@SAMPLING_FILTER.mistake(
    hint="The tokens come back in another order than they had: `gather` by the "
    "order of sorting sorts once more. `scatter` puts them where they were.",
    symptom="what is drawn has nothing to do with what was likely",
)
def sorted_once_more(logits, top_k, top_p, temperature):
    """Filtered in sorted order, and put back by that order itself."""
    kept = filtered(logits, top_k, top_p, temperature)
    if top_p is None:
        return kept
    ranked, order = kept.sort(descending=True)
    return ranked.gather(-1, order)


@SAMPLING_FILTER.mistake(
    hint="Probabilities are summed up in the order of the vocabulary: sort "
    "them first, the most likely in front.",
    symptom="whatever stands early in the vocabulary is said, likely or not",
)
def summed_unsorted(logits, top_k, top_p, temperature):
    """`cumsum` of what was not sorted."""
    logits = filtered(logits, top_k, None, temperature)
    if top_p is None:
        return logits
    chances = logits.softmax(-1)
    before = chances.cumsum(-1) - chances
    return logits.masked_fill(before >= top_p, -torch.inf)
