"""Recurrence and alignment, as sequences were read before the Transformer."""

import torch

from companion.rnn import unroll
from companion.zoo.animal import animal

RNN_AGREES = "It agrees with PyTorch"


def steps(x, h0, step):
    """All states of ``step(x_t, h)``, one after another."""
    states, h = [], h0
    for x_t in x.unbind(1):
        h = step(x_t, h)
        states.append(h)
    return torch.stack(states, 1)


def scores_of(query, keys):
    """The dot product of each sentence's query with each of its keys."""
    return (keys @ query.unsqueeze(-1)).squeeze(-1)


# Recurrence


@animal(
    "rnn",
    seen="a common slip",
    symptom="it learns what stands at a step, and nothing of what came before",
    contract=RNN_AGREES,
    says="h is not passed on: every step starts from h0",
)
def forgets_between_steps(x, h0, W, U, b):
    """The new state gets a new name, and the next step reads the old one."""
    return torch.tanh(x @ W.T + (h0 @ U.T + b).unsqueeze(1))


@animal(
    "rnn",
    seen="a common slip",
    symptom="a decoder ignores what it was told, and writes the average",
    contract=RNN_AGREES,
    says="h0 is not used: the first step starts from zeros",
)
def starts_from_zero(x, h0, W, U, b):
    """h0 is taken, and a state of zeros is made anyway."""
    return unroll(x, torch.zeros_like(h0), W, U, b)


@animal(
    "rnn",
    seen="a common slip",
    symptom="the answer depends on which sentences share a batch",
    contract=RNN_AGREES,
    says="The state of one sequence runs on into the next",
)
def runs_on(x, h0, W, U, b):
    """The state is not reset: a sentence goes on from the one before it."""
    rows, h = [], h0[:1]
    for row in x.split(1):
        rows.append(unroll(row, h, W, U, b))
        h = rows[-1][:, -1]
    return torch.cat(rows)


@animal(
    "rnn",
    seen="a common slip",
    symptom="all encoder states are alike, and attention has nothing to choose",
    contract=RNN_AGREES,
    says="Every step shows the last state",
)
def overwritten(x, h0, W, U, b):
    """The list holds one tensor many times, and each step writes into it."""
    states, h = [], h0.clone()
    for x_t in x.unbind(1):
        h.copy_(torch.tanh(x_t @ W.T + h @ U.T + b))
        states.append(h)
    return torch.stack(states, 1)


@animal(
    "rnn",
    seen="a common slip",
    symptom="the answer comes one step late, and the last word is never read",
    contract=RNN_AGREES,
    says="The states are one step late",
)
def one_step_late(x, h0, W, U, b):
    """Stores the state before the step and not after it."""
    states = unroll(x, h0, W, U, b)
    return torch.cat([h0.unsqueeze(1), states[:, :-1]], 1)


@animal(
    "rnn",
    seen="a common slip",
    symptom="learns, until another library reads its weights",
    contract=RNN_AGREES,
    says="U is transposed",
)
def transposed_memory(x, h0, W, U, b):
    """`h @ U` for `h @ U.T`: U is square, so nothing complains."""
    return steps(x, h0, lambda x_t, h: torch.tanh(x_t @ W.T + h @ U + b))


@animal(
    "rnn",
    seen="a common slip",
    symptom="learns, until another library reads its weights",
    contract=RNN_AGREES,
    says="W is transposed",
)
def reshaped_for_a_transpose(x, h0, W, U, b):
    """`reshape` turns (hidden, d_in) into (d_in, hidden), not the numbers."""
    W = W.reshape(W.shape[1], W.shape[0])
    return steps(x, h0, lambda x_t, h: torch.tanh(x_t @ W + h @ U.T + b))


@animal(
    "rnn",
    seen="a common slip: the cut between two texts, made at every step",
    symptom="the loss falls, but nothing further back than a step is learnt",
    contract="The gradient of the last state reaches the first input",
    says="It does not reach input 3",
)
def cut_in_time(x, h0, W, U, b):
    """`detach` at each step: right forward, and no gradient through time."""
    return steps(
        x, h0, lambda x_t, h: (x_t @ W.T + h.detach() @ U.T + b).tanh()
    )


@animal(
    "rnn",
    seen="a common slip",
    symptom="NaN as soon as one input is large",
    contract="Inputs of ±10⁴ give finite states",
    says="`exp` of a large number is ∞",
)
def tanh_by_hand(x, h0, W, U, b):
    """The tanh as the textbook prints it: ∞/∞ for a large number."""

    def tanh(z):
        return (z.exp() - (-z).exp()) / (z.exp() + (-z).exp())

    return steps(x, h0, lambda x_t, h: tanh(x_t @ W.T + h @ U.T + b))


# Alignment


@animal(
    "alignment",
    seen="a common slip",
    symptom="in a batch of one every position gets weight 1",
    contract="It agrees with PyTorch",
    says="The softmax runs over the batch",
)
def over_the_batch(query, keys):
    """`dim=0`: sentences share one weight for each position."""
    return torch.softmax(scores_of(query, keys), dim=0)


@animal(
    "alignment",
    seen="a common slip",
    symptom="right in a batch of one, and every sentence asks the same in two",
    contract="It agrees with PyTorch",
    says="Every sentence is asked with the query of sentence 0",
)
def first_query_for_all(query, keys):
    """An index too many: all sentences are asked with the first query."""
    return torch.softmax(keys @ query[0], dim=-1)


@animal(
    "alignment",
    seen="a common slip",
    symptom="training goes well for a while, then the loss is NaN for ever",
    contract="Scores of ±10⁴ give finite weights",
    says="`exp` makes ∞ of a large score",
)
def naive_softmax(query, keys):
    """A softmax by hand, which overflows where scores are large."""
    parts = scores_of(query, keys).exp()
    return parts / parts.sum(-1, keepdim=True)


@animal(
    "alignment",
    seen="a common slip",
    symptom="no position ever gets more than a little more than the others",
    contract="It agrees with PyTorch",
    says="The lengths are divided out",
)
def cosine(query, keys):
    """A cosine, which ends at 1, for the dot product."""
    return torch.cosine_similarity(query[:, None], keys, dim=-1).softmax(-1)
