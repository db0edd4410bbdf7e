"""Greedy searches that say too much, too little, or something else."""

import torch

from companion.decoding import greedy_decode
from companion.zoo.animal import animal

ASKS = "It asks about all that was said so far"
ENDS = "It ends with eos, which belongs to the result"
CUT = "Without eos it stops after `max_len` ids"


def ask(step_fn, ids):
    """The logits after one row."""
    return step_fn(torch.tensor([ids]))[0]


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="BLEU is a few points low: every sentence begins with <s>",
    contract="bos is not part of the result",
    says="which begins with bos: nobody said it",
)
def bos_included(step_fn, bos, eos, max_len):
    """Returns the row it asked with, bos and all."""
    return [bos, *greedy_decode(step_fn, bos, eos, max_len)]


@animal(
    "greedy_decode",
    seen="a popular tutorial",
    symptom="a good sentence, and then it is said again, and again",
    contract=ENDS,
    says="It goes on after eos",
)
def ignores_eos(step_fn, bos, eos, max_len):
    """A loop of `max_len` steps that nothing ends."""
    ids = [bos]
    for _ in range(max_len):
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="nobody can tell a finished sentence from one that was cut",
    contract=ENDS,
    says="eos is missing: it says that the sentence is over",
)
def eos_left_out(step_fn, bos, eos, max_len):
    """Leaves the loop before eos is appended."""
    ids = greedy_decode(step_fn, bos, eos, max_len)
    return ids[:-1] if ids[-1] == eos else ids


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="with another tokeniser no sentence ends",
    contract=ENDS,
    says="another id than `eos`",
)
def eos_is_two(step_fn, bos, eos, max_len):
    """The id of eos is a number in the code."""
    return greedy_decode(step_fn, bos, 2, max_len)


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="the longest sentences lack their last word",
    contract=CUT,
    says="it returned 4 ids: expected 5. bos is none of them",
)
def bos_is_counted(step_fn, bos, eos, max_len):
    """The row with bos may be `max_len` long: what is said is one shorter."""
    ids = [bos]
    while len(ids) < max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="an index error, once in a while, behind the last position",
    contract=CUT,
    says="it returned 6 ids: expected 5",
)
def one_more_than_asked_for(step_fn, bos, eos, max_len):
    """The limit is looked at after the id was chosen."""
    return greedy_decode(step_fn, bos, eos, max_len + 1)


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="the same word, over and over",
    contract=ASKS,
    says="It asks the same again: append the id that was chosen",
)
def asks_the_same(step_fn, bos, eos, max_len):
    """Always reads what follows bos: the first position, and no other."""
    return [int(ask(step_fn, [bos]).argmax()) for _ in range(max_len)]


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="the first word is right, and the rest is about something else",
    contract=ASKS,
    says="A row is bos and all ids chosen so far, in order",
)
def put_in_front(step_fn, bos, eos, max_len):
    """The newest id is put before the others."""
    ids = []
    while len(ids) < max_len and eos not in ids:
        ids = [int(ask(step_fn, [bos, *ids]).argmax()), *ids]
    return ids


@animal(
    "greedy_decode",
    seen="a common slip",
    symptom="what it says has nothing to do with what it learned",
    contract=ASKS,
    says="is the least likely id: `argmax` has the most",
)
def takes_scores_for_losses(step_fn, bos, eos, max_len):
    """`argmin`: the scores are taken for something to be made small."""
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmin()))
    return ids[1:]
