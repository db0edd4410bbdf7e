"""BERT's masking, in ways that leave too little or too much to learn."""

import torch

from companion.variants import FIRST_WORD, MASK, PAD, mask_tokens
from companion.zoo.animal import animal

TARGET = "The target is the original id where a token was chosen, else padding"
NEVER = "Padding, bos, eos and MASK are never chosen"
SPLIT = "Of the chosen 80 % become MASK, 10 % a random word, 10 % stay"
SHARE = "15 % of the words are chosen"
WORDS = "A random word is any word, and nothing but a word"
VOCAB = 100


def right(tokens, generator):
    """The package's own masking."""
    return mask_tokens(tokens, generator, vocab_size=VOCAB)


def masked(
    tokens,
    generator,
    share=0.15,
    hidden=0.8,
    other=0.1,
    may=lambda tokens: tokens >= FIRST_WORD,
    low=FIRST_WORD,
    high=VOCAB,
):
    """Masking, with whatever numbers are wrong."""
    draw = {"generator": generator}
    chosen = (torch.rand(tokens.shape, **draw) < share) & may(tokens)
    fate = torch.rand(tokens.shape, **draw)
    words = torch.randint(low, high, tokens.shape, **draw)
    inputs = tokens.masked_fill(chosen & (fate < hidden), MASK)
    drawn = chosen & (fate >= hidden) & (fate < hidden + other)
    return inputs.where(~drawn, words), tokens.masked_fill(~chosen, PAD)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="a fine loss, and vectors of whole sentences that are worth little",
    contract=SPLIT,
    says="Every chosen token becomes MASK",
)
def masks_all_it_chooses(tokens, generator):
    """Whatever is not MASK need not be looked at: it is always right."""
    return masked(tokens, generator, hidden=1.0)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="a word that is read is never the answer, and the model knows it",
    contract=SPLIT,
    says="None of the chosen tokens stays as it is",
)
def eighty_and_twenty(tokens, generator):
    """The 10 % that stay become random words too."""
    return masked(tokens, generator, other=0.2)


@animal(
    "mask_tokens",
    seen="a common slip: a share of what is left, where one of all is meant",
    symptom="nothing to see but a loss that is a little too low",
    contract=SPLIT,
    says="Only a tenth of what is not MASK becomes a random word",
)
def a_tenth_of_the_rest(tokens, generator):
    """10 % of what the 80 % left, where half of it is meant."""
    return masked(tokens, generator, other=0.02)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="the loss does not fall: most words are gone",
    contract=SHARE,
    says="Is a comparison upside down",
)
def keeps_fifteen_per_cent(tokens, generator):
    """`>` for `<`: 85 % are chosen."""
    return masked(tokens, generator, share=0.85)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="accuracy is a little too high: bos is easy to guess",
    contract=NEVER,
    says="only words are chosen",
)
def masks_padding(tokens, generator):
    """Every position may be chosen, padding, bos and eos among them."""
    return masked(tokens, generator, may=lambda tokens: tokens >= PAD)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="now and then the right answer is MASK",
    contract=NEVER,
    says="only words are chosen",
)
def masks_masks(tokens, generator):
    """Padding, bos and eos are spared, and a MASK of the text is not."""
    return masked(tokens, generator, may=lambda tokens: tokens >= MASK)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="the loss is low from the start: most answers can be read off",
    contract=TARGET,
    says="The target is the whole text",
)
def loss_everywhere(tokens, generator):
    """The target is the text, of which 85 % stands in the input."""
    return right(tokens, generator)[0], tokens.clone()


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="the loss goes to 0: it learns to copy what it reads",
    contract=TARGET,
    says="the target is what the token was before it was masked",
)
def target_taken_too_late(tokens, generator):
    """The target is copied after MASK was written into the tokens."""
    inputs, target = right(tokens, generator)
    return inputs, inputs.masked_fill(target == PAD, PAD)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="as if all it chooses were masked: it never doubts what it reads",
    contract="What was not chosen is read as it was written",
    says="where the input was changed the model is asked for the word",
)
def asked_for_masks_only(tokens, generator):
    """The target is where the input is MASK: random words have no answer."""
    inputs, target = right(tokens, generator)
    return inputs, target.where(inputs == MASK, PAD)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="now and then bos stands in the middle of a sentence",
    contract=WORDS,
    says="A random word is no special id",
)
def draws_special_ids(tokens, generator):
    """Random words are drawn from id 0 on."""
    return masked(tokens, generator, low=0)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="it learns to distrust one word, and to trust all others",
    contract=WORDS,
    says="There is one random word for all: draw one for each token",
)
def one_word_for_all(tokens, generator):
    """One random word is drawn for the whole batch."""
    word = torch.randint(FIRST_WORD, VOCAB, (), generator=generator)
    return masked(tokens, generator, low=int(word), high=int(word) + 1)


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="it overfits: each epoch asks for the very same words",
    contract="The next call with the same generator chooses otherwise",
    says="The second epoch has the same holes as the first",
)
def masked_once_for_all(tokens, generator):
    """Starts from the seed in every call: static masking, unasked for."""
    seed = generator.initial_seed()
    return right(tokens, torch.Generator().manual_seed(seed))


@animal(
    "mask_tokens",
    seen="a common slip",
    symptom="a position is asked for in all sentences of a batch, or in none",
    contract="Every sentence has holes of its own",
    says="sentences have their holes at the same places",
)
def one_choice_for_the_batch(tokens, generator):
    """One row of holes for all: three places in every twenty."""
    blocks = torch.rand(-(-tokens.shape[-1] // 20), 20, generator=generator)
    places = (blocks.argsort(-1) < 3).flatten()[: tokens.shape[-1]]

    def may(tokens):
        return (tokens >= FIRST_WORD) & places

    return masked(tokens, generator, share=1.0, may=may)
