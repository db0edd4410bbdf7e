"""Greedy decoding of several rows that returns what nobody asked for."""

from right.greedy_decode_batch import one_after_the_other

from wrong import wrong


@wrong("greedy_decode_batch", "^It returned 3 rows: expected 4, one for each")
def forgets_the_empty_row(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return [row for row in rows if row != [eos]]


@wrong("greedy_decode_batch", "^It returned a dict: expected the ids of each")
def by_number(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    return dict(enumerate(rows))


@wrong("greedy_decode_batch", "^It changes `start` in place")
def writes_over_the_start(step_fn, start, eos, pad, max_len):
    rows = one_after_the_other(step_fn, start, eos, pad, max_len)
    start[:] = pad
    return rows
