"""Contracts of greedy decoding for several rows that end at different steps.

Each row begins with an id of its own, by which the model knows it, so that
rows that have ended may be left out of the next question, or stay in it.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.decoding.step_functions import (
    EOS,
    Prefix,
    StubModel,
    ending,
    read_ids,
    wander,
)
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded

__all__ = ["GREEDY_DECODE_BATCH"]

PAD, LONGEST = 0, 7
Rows = list[list[int]]

SPOKEN: dict[int, Prefix] = {
    1: (5, 3, 8, 3),
    9: (4,),
    10: (),
    6: (7, 7, 5),
}
"""First id -> the words until eos."""


class StubModelOfRows(StubModel):
    """A ``step_fn`` for rows that begin with different ids."""

    def __init__(self, scores: dict[int, Callable], max_len: int):
        super().__init__(lambda prefix: prefix, max_len)
        self.by_start = scores

    def __call__(self, tokens: object) -> Tensor:
        """The logits of the next id after each row: (rows, vocab)."""
        self.require_rows(tokens)
        rows = [tuple(row) for row in tokens.tolist()]
        self.asked.append(rows)
        self.require_end(tokens.shape[1] - 1)
        for row in rows:
            if row[0] not in self.by_start:
                raise Broken(
                    f"It asked `step_fn` about {list(row)}: a row begins with "
                    "its own id of `start`, and holds all that was said since."
                )
        return torch.stack([self.by_start[row[0]](row[1:]) for row in rows])

    @property
    def start(self) -> Tensor:
        """The first id of each row: (rows, 1)."""
        return torch.tensor([*self.by_start]).unsqueeze(-1)


def rows_model(eos: int = EOS, max_len: int = LONGEST) -> StubModelOfRows:
    """Four rows, of which each ends at another step."""
    found = {
        first: ending(words, eos, seed=first) for first, words in SPOKEN.items()
    }
    return StubModelOfRows(found, max_len)


def read_rows(fn: Guarded, result: object, args: tuple) -> Rows:
    """The ids of each row, without the padding behind them."""
    _, start, _, pad, _ = args
    if not isinstance(result, Tensor | list | tuple):
        name = type(result).__name__
        what = "None" if result is None else f"a {name}"
        raise Broken(
            f"It returned {what}: expected {fn.component.returns}. "
            f"{STRAY.get(name, '')}".rstrip()
        )
    if len(result) != len(start):
        raise Broken(
            f"It returned {len(result)} rows: expected {len(start)}, one for "
            "each of `start`."
        )
    rows = [read_ids(fn, row, args) for row in result]
    for row in rows:
        while row[-1:] == [pad]:
            row.pop()
    return rows


GREEDY_DECODE_BATCH = Component(
    name="greedy_decode_batch",
    signature="greedy_decode_batch(step_fn, start, eos, pad, max_len)",
    returns="the ids of each row, without `start`, up to eos",
    shape_contract="It returns the ids of each row",
    read=read_rows,
    gradient=False,
    cases=lambda: {"for four rows": asked(rows_model())},
)

GOES_ON = (
    "A row that has ended stays ended: keep a mask of the finished rows, and "
    "write pad into them."
)

FIRST_TO_END = (
    "The loop ends with the first row that ends: go on until all rows have."
)


def asked(
    model: StubModelOfRows, eos: int = EOS, pad: int = PAD
) -> tuple[StubModelOfRows, Tensor, int, int, int]:
    """The arguments of a call."""
    return model, model.start, eos, pad, model.max_len


def require_rows(fn: Guarded, eos: int, pad: int) -> None:
    """Raise Broken unless each row is what it is alone."""
    model = rows_model(eos)
    got = fn(*asked(model, eos, pad))
    expected = [[*words, eos] for words in SPOKEN.values()]
    for place, (found, row) in enumerate(zip(got, expected, strict=True)):
        if found != row:
            raise Broken(
                f"Row {place} says {found}: alone it says {row}. "
                f"{why(got, expected, place, eos)}".rstrip()
            )


def why(got: Rows, expected: Rows, place: int, eos: int) -> str:
    """How a row came to be wrong, or nothing."""
    found, row = got[place], expected[place]
    if found[:1] == [[*SPOKEN][place]] and row[0] != found[0]:
        return "Leave out `start`: nobody said it."
    if found[: len(row)] == row:
        return GOES_ON
    if found == row[:-1]:
        return "eos is missing: it says that the sentence is over."
    if found == row[: len(found)] and eos not in found:
        return FIRST_TO_END
    if found in expected[:place] + expected[place + 1 :]:
        return "That is what another row says: which row is `argmax` taken of?"
    return ""


@GREEDY_DECODE_BATCH.before_reference
def as_alone(fn: Guarded) -> None:
    """Each row says what it says alone."""
    require_rows(fn, EOS, PAD)


@GREEDY_DECODE_BATCH.contract
def other_ids(fn: Guarded) -> None:
    """eos and pad may be other ids."""
    require_rows(fn, 0, 2)


@GREEDY_DECODE_BATCH.contract
def stops(fn: Guarded) -> None:
    """It stops when the last row has ended."""
    model = rows_model()
    fn(*asked(model))
    most = max(len(row) for rows in model.asked for row in rows)
    longest = max(len(words) for words in SPOKEN.values())
    if most > longest + 1:
        raise Broken(
            f"All rows had ended after {longest + 1} ids, and it asked for "
            f"the id after {most - 1} more: rows end at different steps, so "
            "look at what has ended so far, and not at the newest ids alone."
        )


@GREEDY_DECODE_BATCH.contract
def cut(fn: Guarded) -> None:
    """Without eos every row stops after `max_len` ids."""
    for max_len in (5, 1):
        model = StubModelOfRows({1: wander(3), 9: wander(5)}, max_len)
        for place, row in enumerate(fn(*asked(model))):
            if len(row) != max_len:
                raise Broken(
                    f"With max_len {max_len}, and no eos in sight, row {place} "
                    f"has {len(row)} ids."
                )


# Known mistakes


def search(
    step_fn,
    start,
    eos,
    pad,
    max_len,
    over=lambda ends, finished: finished.all(),
    fill=True,
):
    """Decode until it is ``over``; finished rows are filled with pad."""
    tokens, finished = start, torch.zeros(len(start), dtype=torch.bool)
    while tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished & fill, pad)
        ends = chosen == eos
        finished = finished | ends
        tokens = torch.cat([tokens, chosen[:, None]], 1)
        if over(ends, finished):
            break
    return tokens[:, 1:]


@GREEDY_DECODE_BATCH.mistake(
    symptom="short translations end well, and then go on with nonsense",
)
def until_all_end_at_once(*args):
    """It stops when all rows end at the same step, which they never do."""
    return search(*args, over=lambda ends, finished: ends.all(), fill=False)


@GREEDY_DECODE_BATCH.mistake(
    symptom="the longer translations of a batch break off in mid-sentence",
)
def until_one_ends(*args):
    """It stops when any row ends."""
    return search(*args, over=lambda ends, finished: ends.any())


@GREEDY_DECODE_BATCH.mistake(
    symptom="the output is right, and takes as long for three words as for "
    "the longest sentence there is",
)
def never_early(*args):
    """Finished rows get pad, and the loop asks on until the very end."""
    return search(*args, over=lambda ends, finished: False)


@GREEDY_DECODE_BATCH.mistake(
    symptom="every sentence of a batch gets the translation of the first",
)
def what_the_first_row_says(step_fn, start, eos, pad, max_len):
    """Written for one sentence: the best id of row 0 is appended to all."""
    tokens = start
    while tokens.shape[1] <= max_len:
        best = step_fn(tokens)[0].argmax()
        tokens = torch.cat([tokens, best.expand(len(start), 1)], 1)
        if best == eos:
            break
    return tokens[:, 1:]


@GREEDY_DECODE_BATCH.mistake(
    symptom="with the ids of another tokeniser no sentence ever ends",
)
def ends_with_its_own_eos(step_fn, start, eos, pad, max_len):
    """The ids of one vocabulary are written into the loop."""
    return search(step_fn, start, 2, 0, max_len)


@GREEDY_DECODE_BATCH.mistake(
    symptom="the longest allowed sentence lacks its last word",
)
def one_id_too_few(step_fn, start, eos, pad, max_len):
    """`start` is counted as one of the ids."""
    return search(step_fn, start, eos, pad, max_len - 1)
