"""Greedy decoding of several rows that returns what nobody asked for."""

from contracts.odd import wrong
from contracts.right.greedy_decode_batch import one_after_the_other


@wrong("greedy_decode_batch")
def forgets_the_empty_row(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return [row for row in rows if row != [eos]]


@wrong("greedy_decode_batch")
def by_number(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return dict(enumerate(rows))


@wrong("greedy_decode_batch")
def writes_over_the_start(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    start[:] = pad
    return rows
