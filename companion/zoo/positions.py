"""Positions made and added in wrong ways.

P[t, 2i] = sin(t / 10000^(2i/d)),  P[t, 2i+1] = cos(t / 10000^(2i/d))
"""

import torch
import torch.nn.functional as F

from companion.positions import sinusoidal
from companion.zoo.animal import animal

BASE = 10000.0
FORMULA = "It agrees with the formula"
EVERY = "Every sentence gets the same positions"
START = "A position gets the same vector, however long the sentence is"
SUM = "What is added does not depend on what stands there"

# Made


def steps(length):
    """The positions 0, 1, 2, … as a column."""
    return torch.arange(length, dtype=torch.float32).unsqueeze(1)


def alternating(even, odd):
    """A table whose dimensions 2i are sines of one angle, 2i+1 cosines."""
    return torch.stack([even.sin(), odd.cos()], -1).flatten(1)


@animal(
    "sinusoidal",
    seen="note 2, line 27; note 3, line 143 (C-31)",
    symptom="half of the dimensions hardly move over a whole text",
    contract=FORMULA,
    says="The dimension is taken for i: i counts pairs",
)
def dimension_for_i(length, d_model):
    """i is read as the number of the dimension, as the notes say it is."""
    i = torch.arange(0, d_model, 2)
    angle = steps(length) / BASE ** (2 * i / d_model)
    return alternating(angle, angle)


@animal(
    "sinusoidal",
    seen="a common slip",
    symptom="trains; how alike two places are depends on more than distance",
    contract=FORMULA,
    says="Every dimension has a frequency of its own",
)
def no_shared_angle(length, d_model):
    """Sine and cosine side by side belong to different angles."""
    angle = steps(length) / BASE ** (torch.arange(d_model) / d_model)
    return alternating(angle[:, 0::2], angle[:, 1::2])


@animal(
    "sinusoidal",
    seen="published libraries, as a convention of their own",
    symptom="trains as well; with the weights of another library it does not",
    contract=FORMULA,
    says="All sines come first and all cosines after",
)
def sines_then_cosines(length, d_model):
    """Two halves instead of pairs: the columns are in another order."""
    table = sinusoidal(length, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], -1)


@animal(
    "sinusoidal",
    seen="a common slip",
    symptom="far positions look alike: the slow dimensions are too fast",
    contract=FORMULA,
    says="Sine and cosine are swapped: dimension 2i is the sine",
)
def swapped_halves_too_fast(length, d_model):
    """Cosines first, sines after, and i/d for an exponent."""
    angle = steps(length) / BASE ** (torch.arange(d_model // 2) / d_model)
    return torch.cat([angle.cos(), angle.sin()], -1)


@animal(
    "sinusoidal",
    seen="a common slip",
    symptom="neighbours look unrelated, and far positions as if at random",
    contract=FORMULA,
    says="The position is multiplied by 10000^(2i/d)",
)
def sign_of_the_exponent(length, d_model):
    """A minus is lost: the slowest pair becomes the fastest of all."""
    angle = steps(length) * BASE ** (torch.arange(0, d_model, 2) / d_model)
    return alternating(angle, angle)


@animal(
    "sinusoidal",
    seen="a common slip",
    symptom="right by itself; beside a cache that counts from 0 it is one off",
    contract=FORMULA,
    says="Positions are counted from 1: the first is 0",
)
def counted_from_one(length, d_model):
    """The first position is 1."""
    return sinusoidal(length + 1, d_model)[1:]


@animal(
    "sinusoidal",
    seen="note 3, lines 150-168 (C-59)",
    symptom="an error on the day somebody tries an odd width",
    contract="It takes an odd width, whose last dimension is a sine",
    says="It raised RuntimeError",
)
def even_widths_only(length, d_model):
    """As many cosines as sines, where an odd width has one less."""
    table = torch.zeros(length, d_model)
    angle = steps(length) * BASE ** (-torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


# Added


@animal(
    "add_positions",
    seen="a popular tutorial's module, which wants positions first, in use "
    "with the batch first",
    symptom="word order is lost; each place in the batch has a colour instead",
    contract=EVERY,
    says="The table is indexed by the batch",
)
def indexed_by_the_batch(x):
    """All words of sentence 0 get position 0, those of sentence 1 get 1."""
    table = sinusoidal(64, x.shape[-1]).unsqueeze(1)  # For (seq, batch, d).
    return x + table[: x.size(0)]


@animal(
    "add_positions",
    seen="a common slip",
    symptom="a sentence means something else in another row of the batch",
    contract=EVERY,
    says="What is added depends on the sentence",
)
def counts_on(x):
    """Counts all tokens of the batch, and does not begin again."""
    table = sinusoidal(x.shape[0] * x.shape[1], x.shape[2])
    return x + table.view(x.shape)


@animal(
    "add_positions",
    seen="note 4, line 65, which shows why it fails (C-85)",
    symptom="the dog bites the man and the man the dog: no difference",
    contract="No two positions get the same vector",
    says="All positions get the same vector",
)
def one_vector_for_all(x):
    """One row of the table is added everywhere."""
    return x + sinusoidal(64, x.shape[-1])[5]


@animal(
    "add_positions",
    seen="a common slip",
    symptom="the first words of a sentence change when words follow them",
    contract=START,
    says="the first ones change",
)
def fraction_of_the_length(x):
    """Positions run from 0 to 1, so a step means less in a long sentence."""
    return x + torch.linspace(0, 1, x.shape[1]).unsqueeze(-1)


@animal(
    "add_positions",
    seen="a common slip, made by padding on the left",
    symptom="one more word at the end, and all words before it move",
    contract=START,
    says="the first ones change",
)
def counted_from_the_end(x):
    """The last word is position 0."""
    return x + sinusoidal(x.shape[1], x.shape[2]).flip(0)


@animal(
    "add_positions",
    seen="a common slip",
    symptom="the loss stays where guessing by the place in the text gets it",
    contract=SUM,
    says="`x` is multiplied by 0",
)
def token_replaced(x):
    """The positions stand in for the word vectors, and not beside them."""
    return sinusoidal(x.shape[1], x.shape[2]).expand_as(x).clone() + 0 * x


@animal(
    "add_positions",
    seen="a common slip",
    symptom="where the embedding scales too, positions drown in the words",
    contract=SUM,
    says="`x` is multiplied by 3.464",
)
def scaled_again(x):
    """√d_model once more, which the embedding has seen to."""
    return x * x.shape[-1] ** 0.5 + sinusoidal(x.shape[1], x.shape[2])


@animal(
    "add_positions",
    seen="a common slip",
    symptom="a second look at the same vectors finds positions added twice",
    contract="It leaves its inputs as they were",
    says="It changes `x` in place",
)
def added_in_place(x):
    """`+=`: the caller's vectors change, and the next call adds once more."""
    x += sinusoidal(x.shape[1], x.shape[2])
    return x


@animal(
    "add_positions",
    seen="a common slip",
    symptom="the same sentence is answered otherwise each time",
    contract="The same inputs give the same output",
    says="dropout is on",
)
def dropout_left_on(x):
    """`F.dropout` is on unless it is told that training is over."""
    return F.dropout(x + sinusoidal(x.shape[1], x.shape[2]), 0.5)
