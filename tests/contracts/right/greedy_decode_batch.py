"""Greedy decoding of several rows, right in several ways."""

import torch
from contracts.right import right


@right("greedy_decode_batch")
def one_after_the_other(step_fn, start, eos, pad, max_len):
    """Each row alone."""
    found = []
    for first in start.tolist():
        said = []
        while len(said) < max_len and eos not in said:
            (logits,) = step_fn(torch.tensor([first + said]))
            said.append(int(logits.argmax()))
        found.append(said)
    return found


@right("greedy_decode_batch")
def padded(step_fn, start, eos, pad, max_len):
    """All rows go on, and those that have ended say pad."""
    tokens = start
    finished = torch.zeros(len(start), dtype=torch.bool)
    while not finished.all() and tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished, pad)
        finished = finished | (chosen == eos)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens[:, 1:]


@right("greedy_decode_batch")
def without_the_finished(step_fn, start, eos, pad, max_len):
    """Only rows that have not ended are asked about."""
    said = [[] for _ in start]
    live = list(range(len(start)))
    while live and len(said[live[0]]) < max_len:
        rows = [[int(start[i]), *said[i]] for i in live]
        best = step_fn(torch.tensor(rows)).argmax(-1).tolist()
        for i, token in zip(live, best, strict=True):
            said[i].append(token)
        live = [i for i in live if said[i][-1] != eos]
    return said


@right("greedy_decode_batch")
def filled_beforehand(step_fn, start, eos, pad, max_len):
    """A table of padding, which is filled."""
    table = torch.full((len(start), max_len), pad)
    going = torch.ones(len(start), dtype=torch.bool)
    for step in range(max_len):
        rows = torch.cat([start, table[:, :step]], 1)
        table[going, step] = step_fn(rows[going]).argmax(-1)
        going &= table[:, step] != eos
        if not going.any():
            break
    return [row[row != pad] for row in table]
