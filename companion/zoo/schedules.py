"""Learning rates and shifted targets that are off by a step or a power."""

import torch
import torch.nn.functional as F

from companion.training import noam
from companion.zoo.animal import animal

RISES = "Until `warmup` it rises in a straight line, from the first step"
FALLS = "After that it falls: four times as late, half as large"
WIDTH = "Four times the width halves the rate"
ANSWER = "No position holds the answer that it is asked for"
BEFORE = "Every position holds the token before it, the first one bos"

# The schedule


@animal(
    "schedule",
    seen="a common slip",
    symptom="post-LN diverges in the first hundred steps",
    contract=RISES,
    says="There is no warm-up: it falls from the first step",
)
def without_warm_up(step, d_model, warmup):
    """The descent alone: the first step is the largest of all."""
    return d_model**-0.5 * step**-0.5


@animal(
    "schedule",
    seen="a common slip",
    symptom="the loss leaps up in the first steps, and never comes back",
    contract=RISES,
    says="The larger of the two is taken",
)
def the_larger_one(step, d_model, warmup):
    """`max` for `min`: high at first, and rising without end later."""
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


@animal(
    "schedule",
    seen="a common slip",
    symptom="all is well up to the end of the warm-up, then the loss climbs",
    contract=FALLS,
    says="It never falls: after the warm-up it is step^-0.5",
)
def rises_for_ever(step, d_model, warmup):
    """The ramp alone."""
    return d_model**-0.5 * step * warmup**-1.5


@animal(
    "schedule",
    seen="a common slip",
    symptom="the loss falls, and then trembles at one height",
    contract=FALLS,
    says="It stays at the peak",
)
def stays_at_the_peak(step, d_model, warmup):
    """A warm-up, and nothing after it."""
    return noam(min(step, warmup), d_model, warmup)


@animal(
    "schedule",
    seen="a common slip: a scheduler that counts from 0, and adds 1 twice",
    symptom="nothing to see: a run that goes on has another rate than before",
    contract=RISES,
    says="It is one step late: the first step is 1",
)
def a_step_late(step, d_model, warmup):
    """Adds 1 to a step that is counted from 1 already."""
    return noam(step + 1, d_model, warmup)


@animal(
    "schedule",
    seen="note 3, lines 290-314, with 0 for the error (C-64)",
    symptom="the first batch is read, and nothing is learned from it",
    contract=RISES,
    says="It is one step early: the first step is 1",
)
def a_step_early(step, d_model, warmup):
    """The rate is computed before the step is counted: the first one is 0."""
    return noam(step - 1, d_model, warmup) if step > 1 else 0.0


@animal(
    "schedule",
    seen="a common slip",
    symptom="the small model trains, and the wide one diverges",
    contract=WIDTH,
    says="d_model is missing",
)
def of_any_width(step, d_model, warmup):
    """Takes d_model, and does not use it."""
    return min(step**-0.5, step * warmup**-1.5)


@animal(
    "schedule",
    seen="a common slip",
    symptom="the rate jumps to the peak within a few dozen steps",
    contract=RISES,
    says="The ramp is step · warmup^-1.5, not step · warmup^-0.5",
)
def a_ramp_too_steep(step, d_model, warmup):
    """The exponent of the warm-up is -0.5: the two curves meet too early."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


@animal(
    "schedule",
    seen="a common slip",
    symptom="the loss falls as it should, and then stands still too soon",
    contract=FALLS,
    says="It falls as 1 / step",
)
def falls_too_fast(step, d_model, warmup):
    """1 / step instead of 1 / √step, from the same peak."""
    peak = noam(min(step, warmup), d_model, warmup)
    return peak * min(1.0, warmup / step)


# The shift


@animal(
    "shift_right",
    seen="taken from note 1, lines 11-13, which know of no shift (C-02)",
    symptom="a loss of nearly 0 within minutes, and a model that says nothing",
    contract=ANSWER,
    says="Nothing is shifted",
)
def unshifted(tokens, bos):
    """The decoder reads the very token that it is to predict."""
    return tokens


@animal(
    "shift_right",
    seen="a common slip",
    symptom="nearly right: the first word is easier in training than it ever "
    "will be",
    contract=ANSWER,
    says="The last token wraps round to the front",
)
def rolled_round(tokens, bos):
    """`roll`, without bos: the first position reads the last token."""
    return tokens.roll(1, 1)


@animal(
    "shift_right",
    seen="a common slip",
    symptom="every word but the first is learned at once, and none is said",
    contract=ANSWER,
    says="The first token is overwritten, and the others stay",
)
def bos_written_over(tokens, bos):
    """bos takes the place of the first token, and nothing moves."""
    first = torch.full_like(tokens[:, :1], bos)
    return torch.cat([first, tokens[:, 1:]], 1)


@animal(
    "shift_right",
    seen="a common slip",
    symptom="nearly no loss in training: it copies what it has yet to say",
    contract=ANSWER,
    says="It is shifted left: each position holds the token after it",
)
def shifted_left(tokens, bos):
    """Shifted, in the other direction."""
    return F.pad(tokens[:, 1:], (0, 1), value=bos)


@animal(
    "shift_right",
    seen="a common slip",
    symptom="it learns to continue the sentence of somebody else",
    contract=ANSWER,
    says="The batch is shifted, not the positions",
)
def shifts_the_batch(tokens, bos):
    """`roll` along the first axis: each row is that of its neighbour."""
    return tokens.roll(1, 0)


@animal(
    "shift_right",
    seen="a common slip",
    symptom="fine in training; the first word after bos is a guess",
    contract=BEFORE,
    says="The first position holds 0: it should hold bos",
)
def begins_with_padding(tokens, bos):
    """Padded on the left with 0 instead of bos, which is never learned."""
    return F.pad(tokens[:, :-1], (1, 0))


@animal(
    "shift_right",
    seen="a common slip: the data set shifts, and the model does again",
    symptom="it trains, and skips every other word when it writes",
    contract=BEFORE,
    says="It is shifted twice",
)
def shifted_twice(tokens, bos):
    """Each position reads the token before the last one."""
    return F.pad(tokens, (2, 0), value=bos)[:, : tokens.shape[1]]
