"""Masks that hide the wrong pairs. True = may attend."""

import torch

from companion.masks import causal_mask, padding_mask
from companion.zoo.animal import animal

# The causal mask

FUTURE = "No position sees its future"


@animal(
    "causal_mask",
    seen="a common slip",
    symptom="the loss falls to nearly 0 in minutes, and what it writes is one "
    "sentence over and over",
    contract=FUTURE,
    says="The triangle is transposed",
)
def transposed_triangle(length):
    """Rows and columns changed places: every position sees its future, and
    nothing of its past."""
    return torch.ones(length, length, dtype=torch.bool).triu()


@animal(
    "causal_mask",
    seen="note 3, lines 118-119 (C-57)",
    symptom="all the weight lies on the future, and the last row, which has "
    "none, looks at everything alike",
    contract=FUTURE,
    says="It is upside down",
)
def marks_what_is_hidden(length):
    """True means hidden where it is made, and may attend where it is used."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@animal(
    "causal_mask",
    seen="a common slip",
    symptom="the loss is near 0, as each row reads the token it is to predict",
    contract=FUTURE,
    says="It is off by one",
)
def sees_the_next_one_too(length):
    """The diagonal is counted from 1: one token of the future is seen."""
    return torch.ones(length, length, dtype=torch.bool).tril(1)


@animal(
    "causal_mask",
    seen="a common slip, made where rows were drawn from right to left",
    symptom="early rows see only the end of the sentence, and the loss is too "
    "good",
    contract=FUTURE,
    says="The triangle is mirrored",
)
def mirrored_triangle(length):
    """Row 0 sees the last key, and each row one more from the right."""
    return causal_mask(length).flip(-1)


@animal(
    "causal_mask",
    seen="note 2, lines 225-227, where position 3 sees the first two (C-41)",
    symptom="row 0 sees nobody and becomes NaN, or the mean of everything",
    contract="Every position sees itself",
    says="The diagonal is missing",
)
def hides_itself(length):
    """Strictly earlier positions only, as if a word might not know itself."""
    return causal_mask(length).tril(-1)


@animal(
    "causal_mask",
    seen="a common slip",
    symptom="it writes well, and forgets who the sentence was about",
    contract="Every position sees its whole past",
    says="Position 3 does not see position 0, which is in its past",
)
def remembers_three_words(length):
    """A band instead of a triangle: a position sees three words, itself among
    them."""
    return causal_mask(length).triu(-2)


@animal(
    "causal_mask",
    seen="a common slip",
    symptom="all is well until the first text that is longer than the table",
    contract="It takes any length, 1 included",
    says="For length 101 it is not what torch.tril gives",
)
def begins_anew_after_64(length):
    """Places come from a table of 64, and start again at its end."""
    place = torch.arange(length) % 64
    return place[None] <= place[:, None]


# The padding mask

PADS = "No query sees padding"
REAL = "Every query sees every real token"


@animal(
    "padding_mask",
    seen="note 3, lines 118-119 (C-57)",
    symptom="all the weight lies on padding, and no word notices another",
    contract=PADS,
    says="It is upside down",
)
def marks_the_padding(tokens, pad):
    """True means padding where it is made, and may attend where it is used."""
    return (tokens == pad)[:, None, None, :]


@animal(
    "padding_mask",
    seen="note 2, lines 203-211, does not say if rows or columns (C-39)",
    symptom="a sentence comes out otherwise when its batch has a longer one",
    contract=PADS,
    says="It hides the rows of padding, not the columns",
)
def hides_rows_of_padding(tokens, pad):
    """It stands on the queries: padding asks nobody, and answers everybody."""
    return padding_mask(tokens, pad).mT


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="NaN in the first batch that has padding",
    contract=REAL,
    says="It hides the rows of padding too",
)
def hides_rows_and_columns(tokens, pad):
    """Padding may not ask either, so that its rows see nobody at all."""
    real = padding_mask(tokens, pad)
    return real & real.mT


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="words look at padding, and only padding never looks at padding",
    contract=PADS,
    says="It hides a pair only if both are padding",
)
def one_of_them_is_enough(tokens, pad):
    """A pair may look if either of the two is a word."""
    real = padding_mask(tokens, pad)
    return real | real.mT


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="right until a tokenizer comes whose padding is not 0",
    contract=PADS,
    says="`pad` is not used",
)
def padding_is_always_zero(tokens, pad):
    """Compares with 0 whatever the padding is."""
    return padding_mask(tokens, 0)


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="right until sentences are padded on the left, to write in batches",
    contract=PADS,
    says="padding is taken to stand behind",
)
def counts_from_the_left(tokens, pad):
    """Counts the words, and takes so many from the left."""
    lengths = (tokens != pad).sum(-1)[:, None]
    seen = torch.arange(tokens.shape[-1]) < lengths
    return seen[:, None, None]


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="right in batches of one, and worse the more lengths differ",
    contract=PADS,
    says="Every sentence gets the mask of the first",
)
def mask_of_the_first_sentence(tokens, pad):
    """The mask is made from sentence 0, and broadcasts to all the others."""
    return padding_mask(tokens[:1], pad)


@animal(
    "padding_mask",
    seen="a common slip",
    symptom="a few words are never seen: those whose ids are below padding's",
    contract=REAL,
    says="Ids below `pad` are hidden too",
)
def real_means_greater(tokens, pad):
    """Takes every id above the padding for a word, and no other."""
    return (tokens > pad)[:, None, None]
