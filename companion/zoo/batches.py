"""Greedy decoding that is right for one sentence, and wrong for several."""

import torch

from companion.zoo.animal import animal

ALONE = "Each row says what it says alone"


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="short translations end well, and then go on with nonsense",
    contract=ALONE,
    says="A row that has ended stays ended",
)
def until_all_end_at_once(step_fn, start, eos, pad, max_len):
    """It stops when all rows say eos at the same step, which they never do."""
    tokens = start
    while tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, chosen], 1)
        if (chosen == eos).all():
            break
    return tokens[:, 1:]


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="the longer translations of a batch break off in mid-sentence",
    contract=ALONE,
    says="The loop ends with the first row that ends",
)
def until_one_ends(step_fn, start, eos, pad, max_len):
    """It stops when any row says eos."""
    tokens = start
    while tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1, keepdim=True)
        tokens = torch.cat([tokens, chosen], 1)
        if (chosen == eos).any():
            break
    return tokens[:, 1:]


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="the output is right, and takes as long for three words as for "
    "the longest sentence there is",
    contract="It stops when the last row has ended",
    says="look at what has ended so far",
)
def never_early(step_fn, start, eos, pad, max_len):
    """Finished rows say pad, and the loop asks on until the very end."""
    tokens = start
    finished = torch.zeros(len(start), dtype=torch.bool)
    for _ in range(max_len):
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished, pad)
        finished |= chosen == eos
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens[:, 1:]


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="every sentence of a batch gets the translation of the first",
    contract=ALONE,
    says="That is what another row says",
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


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="with the ids of another tokeniser no sentence ever ends",
    contract="eos and pad may be other ids",
    says="A row that has ended stays ended",
)
def ends_with_its_own_eos(step_fn, start, eos, pad, max_len):
    """The ids of one vocabulary are written into the loop."""
    tokens = start
    finished = torch.zeros(len(start), dtype=torch.bool)
    while not finished.all() and tokens.shape[1] <= max_len:
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished, 0)
        finished = finished | (chosen == 2)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens[:, 1:]


@animal(
    "greedy_decode_batch",
    seen="a common slip",
    symptom="the longest allowed sentence lacks its last word",
    contract="Without eos every row stops after `max_len` ids",
    says="no eos in sight",
)
def one_id_too_few(step_fn, start, eos, pad, max_len):
    """`start` is counted as one of the ids."""
    tokens = start
    finished = torch.zeros(len(start), dtype=torch.bool)
    while not finished.all() and tokens.shape[1] < max_len:
        chosen = step_fn(tokens).argmax(-1).masked_fill(finished, pad)
        finished = finished | (chosen == eos)
        tokens = torch.cat([tokens, chosen[:, None]], 1)
    return tokens[:, 1:]
