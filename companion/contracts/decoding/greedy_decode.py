"""Contracts of greedy decoding: the most likely id, and again."""

import torch

from companion.contracts.decoding.step_functions import (
    BOS,
    EOS,
    Prefix,
    StubModel,
    ending,
    read_ids,
    wander,
)
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.decoding import greedy_decode

__all__ = ["GREEDY_DECODE"]

WORDS = (5, 3, 8, 3)

GREEDY_DECODE = Component(
    name="greedy_decode",
    signature="greedy_decode(step_fn, bos, eos, max_len)",
    returns="a list of ids, without bos, up to eos",
    shape_contract="It returns ids",
    read=read_ids,
    cases=lambda: {
        "for a sentence of four words": (
            StubModel(ending(WORDS, EOS), 7),
            BOS,
            EOS,
            7,
        )
    },
)


def best(model: StubModel, eos: int, max_len: int) -> list[int]:
    """What a greedy search finds."""
    ids: list[int] = []
    while len(ids) < max_len and eos not in ids:
        ids.append(int(model.scores(tuple(ids)).argmax()))
    return ids


def spoken(fn: Guarded, model: StubModel, eos: int = EOS) -> list[int]:
    """What ``fn`` finds, without the bos that another contract speaks of."""
    ids = fn(model, model.bos, eos, model.max_len)
    return ids[1:] if ids[:1] == [model.bos] else ids


@GREEDY_DECODE.before_reference
def questions(fn: Guarded) -> None:
    """It asks about all that was said so far."""
    model = StubModel(wander(3), 5)
    fn(model, BOS, EOS, 5)
    ids = best(model, EOS, 5)
    asked = [row for rows in model.asked for row in rows]
    if not asked:
        raise Broken("It never asked `step_fn` what comes next.")
    for step, row in enumerate(asked[:5]):
        if row != (BOS, *ids[:step]):
            raise Broken(misled(model, asked, step, ids))


def misled(
    model: StubModel, asked: list[Prefix], step: int, ids: list[int]
) -> str:
    """What is wrong with a question, all those before it being right."""
    row, expected = list(asked[step]), [BOS, *ids[:step]]
    says = f"Question {step + 1} was {row}: expected {expected}. "
    if step and row == expected[:-1]:
        return (
            says + "It asks the same again: append the id that was chosen to "
            "the row."
        )
    if row[:-1] != expected[:-1]:
        return says + "A row is bos and all ids chosen so far, in order."
    logits = model.scores(tuple(ids[: step - 1]))
    if row[-1] == logits.argmin():
        return (
            says + f"{row[-1]} is the least likely id: `argmax` has the most."
        )
    return (
        says + f"Of all ids {ids[step - 1]} is the most likely, not {row[-1]}: "
        "is one drawn?"
    )


@GREEDY_DECODE.before_reference
def start(fn: Guarded) -> None:
    """bos is not part of the result."""
    model = StubModel(wander(3), 5)
    ids = fn(model, BOS, EOS, 5)
    if ids[:1] == [BOS]:
        raise Broken(
            f"It returned {ids}, which begins with bos: nobody said it. Leave "
            "it out."
        )


@GREEDY_DECODE.contract
def likeliest(fn: Guarded) -> None:
    """At each step it takes the most likely id."""
    for seed in (5, 7, 11):
        model = StubModel(wander(seed), 5)
        got, expected = spoken(fn, model), best(model, EOS, 5)
        pairs = zip(got, expected, strict=False)
        for place, (found, id_) in enumerate(pairs):
            if found != id_:
                raise Broken(
                    f"It returned {got}: at place {place} the most likely id "
                    f"was {id_}, not {found}."
                )


@GREEDY_DECODE.contract
def end(fn: Guarded) -> None:
    """It ends with eos, which belongs to the result."""
    for words, bos, eos in ((WORDS, BOS, EOS), ((), BOS, EOS), (WORDS, 4, 0)):
        model = StubModel(ending(words, eos), 7, bos)
        got, expected = spoken(fn, model, eos), [*words, eos]
        if got != expected:
            says = f"With eos {eos} it returned {got}: expected {expected}. "
            # That the usual eos does end a sentence was seen before.
            other = "Does it look for another id than `eos`?"
            hint = ended(got, expected) if eos == EOS else other
            raise Broken(says + hint)


def ended(got: list[int], expected: list[int]) -> str:
    """How a result came to an end where it should not."""
    if got == expected[:-1]:
        return "eos is missing: it says that the sentence is over."
    if got[: len(expected)] == expected:
        return "It goes on after eos."
    if got == [*expected[:-1], *got[len(expected) - 1 :]]:
        return "It leaves eos out and goes on."
    return ""


@GREEDY_DECODE.contract
def cut(fn: Guarded) -> None:
    """Without eos it stops after `max_len` ids."""
    for max_len in (5, 1):
        model = StubModel(wander(13), max_len)
        got = spoken(fn, model)
        if len(got) != max_len:
            hints = {
                max_len - 1: "bos is none of them.",
                max_len + 1: "Is the first one not counted?",
            }
            raise Broken(
                f"With max_len {max_len}, and no eos in sight, it returned "
                f"{len(got)} ids: expected {max_len}. "
                f"{hints.get(len(got), '')}".rstrip()
            )


@GREEDY_DECODE.contract
def last_place(fn: Guarded) -> None:
    """eos may be the last of `max_len` ids."""
    model = StubModel(ending(WORDS, EOS), len(WORDS) + 1)
    got, expected = spoken(fn, model), [*WORDS, EOS]
    if got != expected:
        says = f"With max_len {len(expected)} it returned {got}: expected "
        raise Broken(f"{says}{expected}. {ended(got, expected)}".rstrip())


# Known mistakes


def ask(step_fn, ids):
    """The logits after one row."""
    return step_fn(torch.tensor([ids]))[0]


@GREEDY_DECODE.mistake(
    symptom="BLEU is a few points low: every sentence begins with <s>",
)
def bos_included(step_fn, bos, eos, max_len):
    """Returns the row it asked with, bos and all."""
    return [bos, *greedy_decode(step_fn, bos, eos, max_len)]


@GREEDY_DECODE.mistake(
    symptom="a good sentence, and then it is said again, and again",
)
def ignores_eos(step_fn, bos, eos, max_len):
    """A loop of `max_len` steps that nothing ends."""
    ids = [bos]
    for _ in range(max_len):
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@GREEDY_DECODE.mistake(
    symptom="nobody can tell a finished sentence from one that was cut",
)
def eos_left_out(step_fn, bos, eos, max_len):
    """Leaves the loop before eos is appended."""
    ids = greedy_decode(step_fn, bos, eos, max_len)
    return ids[:-1] if ids[-1] == eos else ids


@GREEDY_DECODE.mistake(symptom="with another tokeniser no sentence ends")
def eos_is_two(step_fn, bos, eos, max_len):
    """The id of eos is a number in the code."""
    return greedy_decode(step_fn, bos, 2, max_len)


@GREEDY_DECODE.mistake(symptom="the longest sentences lack their last word")
def bos_is_counted(step_fn, bos, eos, max_len):
    """The row with bos may be `max_len` long: what is said is one shorter."""
    ids = [bos]
    while len(ids) < max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmax()))
    return ids[1:]


@GREEDY_DECODE.mistake(
    symptom="an index error, once in a while, behind the last position",
)
def one_more_than_asked_for(step_fn, bos, eos, max_len):
    """The limit is looked at after the id was chosen."""
    return greedy_decode(step_fn, bos, eos, max_len + 1)


@GREEDY_DECODE.mistake(symptom="the same word, over and over")
def asks_the_same(step_fn, bos, eos, max_len):
    """Always reads what follows bos: the first position, and no other."""
    return [int(ask(step_fn, [bos]).argmax()) for _ in range(max_len)]


@GREEDY_DECODE.mistake(
    symptom="the first word is right, and the rest is about something else",
)
def put_in_front(step_fn, bos, eos, max_len):
    """The newest id is put before the others."""
    ids = []
    while len(ids) < max_len and eos not in ids:
        ids = [int(ask(step_fn, [bos, *ids]).argmax()), *ids]
    return ids


@GREEDY_DECODE.mistake(
    symptom="what it says has nothing to do with what it learned",
)
def takes_scores_for_losses(step_fn, bos, eos, max_len):
    """`argmin`: the scores are taken for something to be made small."""
    ids = [bos]
    while len(ids) <= max_len and ids[-1] != eos:
        ids.append(int(ask(step_fn, ids).argmin()))
    return ids[1:]
