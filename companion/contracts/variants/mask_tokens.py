"""Contracts of BERT's masking: 15 % are chosen, of which 80 % are hidden.

Which tokens, is chance, so shares are asked for, of texts long enough. Whether
the number of the chosen is exact, as in the published code, or as chance has
it, is up to the writer (Devlin et al., 2019).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    after,
    number,
    place,
    seeded,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import (
    Guarded,
    OtherNumbers,
    require_several,
)
from companion.variants import FIRST_WORD, MASK, PAD, mask_tokens

__all__ = ["MASK_TOKENS"]

VOCAB = 100
SHARE = 0.15

HALF = 48
"""So many words has a text in which a word drawn from elsewhere shows."""

ERRORS = 5
"""How many standard errors a share may be off: chance exceeds them once in
two million."""


class Rewound(torch.Generator):
    """A generator that starts over for every call, so that calls compare.

    One is made for each text, and remembers what came of it.
    """

    def __new__(cls, seed: int):
        """Without the seed, which torch would take for a device."""
        return super().__new__(cls)

    def __init__(self, seed: int):
        self.seed_given, self.before = seed, None
        self.start_over()

    def __repr__(self) -> str:
        return f"with seed {self.seed_given}"

    def start_over(self) -> None:
        """Back to the first number."""
        self.manual_seed(seeded(self.seed_given).initial_seed())
        self.torchs = torch.get_rng_state()

    def require_same(self, result: tuple[Tensor, ...]) -> None:
        """Raise Broken if the same draws brought something else before."""
        before = self.before or result
        self.before = tuple(x.clone() for x in result)
        if all(map(torch.equal, before, result)):
            return
        if not torch.equal(self.torchs, torch.get_rng_state()):
            raise OtherNumbers(
                "It draws from torch's own random numbers, so that nobody can "
                "repeat it: give `generator=generator` to every draw."
            )
        raise OtherNumbers(
            "The second call differs: with a generator in the same state the "
            "choice is the same. Does it draw from Python's or NumPy's random "
            "numbers, or keep something?"
        )


def words(*shape: int, seed: int = 3) -> Tensor:
    """Ids of words only."""
    generator = seeded(seed)
    return torch.randint(FIRST_WORD, VOCAB, shape, generator=generator)


def padded(rows: int = 16, seq: int = 512) -> Tensor:
    """Sentences of many lengths: bos, words, eos, and padding.

    About half of it is padding.
    """
    tokens, place = words(rows, seq, seed=5), torch.arange(seq)
    ends = torch.linspace(20, seq - 1, rows).long().unsqueeze(1)
    tokens[:, 0] = 1
    tokens[place == ends] = 2
    return tokens.masked_fill(place > ends, PAD)


@dataclass(frozen=True)
class Masked:
    """A text before and after.

    Attributes:
        tokens: What was given.
        inputs: What the model reads.
        target: What it is to say, and padding where it need not.
    """

    tokens: Tensor
    inputs: Tensor
    target: Tensor

    @property
    def chosen(self) -> Tensor:
        """Where the model has to say something."""
        return self.target != PAD

    @property
    def changed(self) -> Tensor:
        """Where the model reads something else than was written."""
        return self.inputs != self.tokens

    @property
    def share(self) -> float:
        """How many of the words are chosen."""
        return (self.chosen.sum() / (self.tokens >= FIRST_WORD).sum()).item()

    @property
    def split(self) -> tuple[float, float, float]:
        """Of the chosen, the shares of MASK, another word, and the same."""
        kinds = (self.inputs == MASK, self.is_other, ~self.changed)
        count = max(1, int(self.chosen.sum()))
        shares = (int((kind & self.chosen).sum()) / count for kind in kinds)
        return tuple(shares)

    @property
    def is_other(self) -> Tensor:
        """Where the model reads another word."""
        return self.changed & (self.inputs != MASK)

    @property
    def others(self) -> Tensor:
        """The words that stand where others were chosen."""
        return self.inputs[self.chosen & self.is_other]


def error(share: float, count: int) -> float:
    """How far a share of ``count`` may be off by chance."""
    return ERRORS * (share * (1 - share) / count) ** 0.5


def require_share(found: Masked) -> None:
    """Raise Broken unless 15 % of the words are chosen, chance aside."""
    is_word = found.tokens >= FIRST_WORD
    got, margin = found.share, error(SHARE, int(is_word.sum()))
    if abs(got - SHARE) <= margin:
        return
    hint = ""
    if abs(got * is_word.float().mean() - SHARE) <= margin:
        hint = " It is 15 % of all positions: padding does not count."
    elif abs(got - (1 - SHARE)) <= margin:
        hint = " Is a comparison upside down?"
    raise Broken(
        f"Of {int(is_word.sum())} words {100 * got:.1f} % are chosen: expected "
        f"15 %, and chance explains {100 * margin:.1f} more or less.{hint}",
        cause=hint,
    )


def close(one: tuple, other: tuple, count: int) -> bool:
    """Whether shares are the same, chance aside."""
    return all(
        # A random word may be the same one: once in 96 times.
        abs(a - b) <= max(error(b, count), 0.5 / VOCAB)
        for a, b in zip(one, other, strict=True)
    )


def why_no_words(drawn: Tensor, more: Tensor) -> str:
    """What is wrong with random words, or nothing; ``more`` has them too."""
    if not len(drawn):
        return "No random word was drawn."
    low, high = int(drawn.min()), int(drawn.max())
    if low < FIRST_WORD or high >= VOCAB:
        return "A random word is no special id, and none that does not exist."
    if low == high:
        return "There is one random word for all: draw one for each token."
    if high < FIRST_WORD + HALF:
        return (
            "All random words are in the text, which has the lower half of "
            "them only: draw from the whole vocabulary."
        )
    if {FIRST_WORD, VOCAB - 1} - set(more.tolist()):
        return (
            "The first word or the last is never drawn: `torch.randint(4, 100, "
            "…)` leaves out 100, and nothing else."
        )
    return ""


SPLITS = {
    (1.0, 0.0, 0.0): "Every chosen token becomes MASK: 80 % do, 10 % become a "
    "random word, and 10 % stay as they are.",
    (0.8, 0.2, 0.0): "None of the chosen tokens stays as it is: 10 % do, so "
    "that a word the model reads may be the right one.",
    (0.8, 0.0, 0.2): "None of the chosen tokens becomes a random word: 10 % "
    "do.",
    (0.8, 0.02, 0.18): "Only a tenth of what is not MASK becomes a random "
    "word: 10 % of all that is chosen is half of what the 80 % left.",
    (0.8, 0.18, 0.02): "Only a tenth of what is not MASK stays as it is: 10 % "
    "of all that is chosen is half of what the 80 % left.",
    (0.4, 0.5, 0.1): "Half of all that is chosen becomes a random word, MASK "
    "too: half of what the 80 % left is meant, `& ~masked`.",
    (0.1, 0.8, 0.1): "80 % become a random word: 80 % become MASK.",
    (0.1, 0.1, 0.8): "80 % stay as they are: 80 % become MASK.",
    (0.0, 1.0, 0.0): "No chosen token becomes MASK: 80 % do.",
    (0.0, 0.0, 1.0): "Nothing is hidden: 80 % of the chosen become MASK.",
}
"""Shares of MASK, another word, and the same -> what it means."""


def read(fn: Guarded, result: object, args: tuple) -> tuple[Tensor, Tensor]:
    """Inputs and target, both as the tokens are."""
    require_several(fn, result, 2)
    for x in result:
        fn.require_tensor(x, args)
        fn.require_shape(x, args)
    generator = args[1]
    if isinstance(generator, Rewound):
        generator.require_same(tuple(result))
        generator.start_over()
    return tuple(result)


MASK_TOKENS = Component(
    name="mask_tokens",
    signature="mask_tokens(tokens, generator)",
    returns="(inputs, target) in the shape of `tokens`; the ids 4 … 99 are "
    "words, 3 is MASK, and 0 is padding",
    shape_contract="It returns inputs and target, in the shape of the tokens",
    axes=("sentence", "position"),
    shape=lambda tokens, generator: tokens.shape,
    read=read,
    cases=lambda: {
        # So many that a word is drawn somewhere, without the generator too.
        "for eight sentences": (padded(8, 256), Rewound(2)),
        "for one sentence": (words(53), Rewound(3)),
    },
    shape_hints={
        "It returns what was chosen only: keep all positions, with padding in "
        "the target where nothing is asked.": lambda tokens, generator: (None,)
    },
)


def masked(fn: Guarded, tokens: Tensor, seed: int = 7) -> Masked:
    """What ``fn`` makes of ``tokens``."""
    return Masked(tokens, *fn(tokens, Rewound(seed)))


def refuse(found: Masked, wrong: Tensor, says: str) -> None:
    """Raise Broken for the first True of ``wrong``, if there is one."""
    if wrong.any():
        at = tuple(wrong.nonzero()[0].tolist())
        where = place(at, MASK_TOKENS.axes)
        token, read, asked = (
            number(x[at]) for x in (found.tokens, found.inputs, found.target)
        )
        raise Broken(
            f"At {where} the token is {token}, the input {read} and the "
            f"target {asked}: {says}",
            cause=says,
        )


@MASK_TOKENS.before_reference
def target(fn: Guarded) -> None:
    """The target is the original id where a token was chosen, else padding."""
    found = masked(fn, padded())
    is_word = found.tokens >= FIRST_WORD
    if (found.inputs[is_word] == PAD).float().mean() > 0.5:
        raise Broken(
            "Most words of the input are padding: have inputs and target "
            "changed places? The inputs come first."
        )
    if torch.equal(found.target[is_word], found.tokens[is_word]):
        raise Broken(
            "The target is the whole text, so that the loss would count every "
            "token: padding, 0, stands where none was chosen."
        )
    if (found.target == -100).any():
        raise Broken(
            "The target holds -100, which PyTorch's cross-entropy ignores by "
            "itself: here padding, 0, stands where none was chosen."
        )
    says = "the target is what the token was before it was masked."
    refuse(found, found.chosen & (found.target != found.tokens), says)


@MASK_TOKENS.before_reference
@after(target)
def special(fn: Guarded) -> None:
    """Padding, bos, eos and MASK are never chosen."""
    tokens = padded()
    tokens[:, 5] = MASK
    found = masked(fn, tokens)
    touched = (found.chosen | found.changed) & (tokens < FIRST_WORD)
    says = f"only words are chosen, the ids from {FIRST_WORD} on."
    refuse(found, touched, says)


@MASK_TOKENS.before_reference
@after(target, special)
def unchosen(fn: Guarded) -> None:
    """What was not chosen is read as it was written."""
    found = masked(fn, padded())
    says = (
        "where the input was changed the model is asked for the word, also "
        "if it became another word."
    )
    refuse(found, found.changed & ~found.chosen, says)


@MASK_TOKENS.contract
@after(target, unchosen)
def share(fn: Guarded) -> None:
    """15 % of the words are chosen."""
    for tokens in (words(16, 512), padded()):
        require_share(masked(fn, tokens))


@MASK_TOKENS.contract
@after(share)
def split(fn: Guarded) -> None:
    """Of the chosen 80 % become MASK, 10 % a random word, 10 % stay."""
    found = masked(fn, words(16, 512))
    count = int(found.chosen.sum())
    if count and close(found.split, (0.8, 0.1, 0.1), count):
        return
    hints = (
        h for s, h in SPLITS.items() if count and close(found.split, s, count)
    )
    parts = ", ".join(f"{100 * part:.1f} %" for part in found.split)
    raise Broken(
        f"{next(hints, '')} Of {count} chosen tokens {parts} became MASK, "
        "became another word, and stayed: expected 80, 10 and 10.".lstrip()
    )


@MASK_TOKENS.contract
@after(special, split)
def random_words(fn: Guarded) -> None:
    """A random word is any word, and nothing but a word."""
    tokens = FIRST_WORD + words(128, 512) % HALF
    drawn = masked(fn, tokens).others
    # Each end is missing once in 30,000 times, and here it has two chances.
    again = masked(fn, tokens, 11).others
    says = why_no_words(drawn, torch.cat([drawn, again]))
    if says:
        ids = drawn.tolist() or [0]
        raise Broken(
            f"{says} The words are 4 … 99, and {len(drawn)} random ones were "
            f"between {min(ids)} and {max(ids)}."
        )


@MASK_TOKENS.contract
@after(share)
def sentences_apart(fn: Guarded) -> None:
    """Every sentence has holes of its own."""
    chosen = masked(fn, words(16, 512)).chosen
    if (chosen == chosen[0]).all():
        raise Broken(
            "All 16 sentences have their holes at the same places: draw a "
            "number for each token, in the shape of `tokens`."
        )


@MASK_TOKENS.contract
@after(share, sentences_apart)
def anywhere(fn: Guarded) -> None:
    """A hole may be anywhere in a sentence."""
    counts = masked(fn, words(16, 512)).chosen.unflatten(1, (8, 64)).sum((0, 2))
    if (counts == 0).any():
        part = int((counts == 0).nonzero()[0])
        raise Broken(
            f"In 16 sentences of 512 words none of the places {64 * part} … "
            f"{64 * part + 63} was chosen: are the first ones taken?"
        )


@MASK_TOKENS.contract
@after(share)
def any_axes(fn: Guarded) -> None:
    """It takes a single sentence, and any number of axes."""
    for shape in ((2048,), (2, 3, 512)):
        require_share(masked(fn, words(*shape)))


@MASK_TOKENS.contract
@after(special)
def without_words(fn: Guarded) -> None:
    """A text without words stays as it is."""
    tokens = torch.tensor([1, 2, 0, MASK]).repeat(2, 30)
    found = masked(fn, tokens)
    says = "there is nothing to choose."
    refuse(found, found.changed | found.chosen, says)


@MASK_TOKENS.contract
@after(share)
def other_generator(fn: Guarded) -> None:
    """Another generator chooses otherwise."""
    one, other = (masked(fn, words(16, 512), seed) for seed in (7, 8))
    if torch.equal(one.target, other.target):
        raise Broken(
            "Two generators with different seeds gave the same: does it make "
            "one of its own? Draw with `generator=generator`."
        )


@MASK_TOKENS.contract
@after(other_generator)
def goes_on(fn: Guarded) -> None:
    """The next call with the same generator chooses otherwise."""
    generator = seeded(7)
    one, other = (fn(words(16, 512), generator)[1] for _ in range(2))
    if torch.equal(one, other):
        raise Broken(
            "The second epoch has the same holes as the first: the generator "
            "is to be used as it is, and not from its seed on."
        )


# Known mistakes


def sound(tokens, generator):
    """The package's own masking."""
    return mask_tokens(tokens, generator, vocab_size=VOCAB)


def masking(
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


@MASK_TOKENS.mistake(
    symptom="a fine loss, and vectors of whole sentences that are worth little",
)
def masks_all_it_chooses(tokens, generator):
    """Whatever is not MASK need not be looked at: it is always right."""
    return masking(tokens, generator, hidden=1.0)


@MASK_TOKENS.mistake(
    symptom="a word that is read is never the answer, and the model knows it",
)
def eighty_and_twenty(tokens, generator):
    """The 10 % that stay become random words too."""
    return masking(tokens, generator, other=0.2)


@MASK_TOKENS.mistake(
    symptom="nothing to see but a loss that is a little too low",
)
def a_tenth_of_the_rest(tokens, generator):
    """10 % of what the 80 % left, where half of it is meant."""
    return masking(tokens, generator, other=0.02)


@MASK_TOKENS.mistake(symptom="the loss does not fall: most words are gone")
def keeps_fifteen_per_cent(tokens, generator):
    """`>` for `<`: 85 % are chosen."""
    return masking(tokens, generator, share=0.85)


@MASK_TOKENS.mistake(
    symptom="accuracy is a little too high: bos is easy to guess",
)
def masks_padding(tokens, generator):
    """Every position may be chosen, padding, bos and eos among them."""
    return masking(tokens, generator, may=lambda tokens: tokens >= PAD)


@MASK_TOKENS.mistake(symptom="now and then the right answer is MASK")
def masks_masks(tokens, generator):
    """Padding, bos and eos are spared, and a MASK of the text is not."""
    return masking(tokens, generator, may=lambda tokens: tokens >= MASK)


@MASK_TOKENS.mistake(
    symptom="the loss is low from the start: most answers can be read off",
)
def loss_everywhere(tokens, generator):
    """The target is the text, of which 85 % stands in the input."""
    return sound(tokens, generator)[0], tokens.clone()


@MASK_TOKENS.mistake(
    symptom="the loss goes to 0: it learns to copy what it reads",
)
def target_taken_too_late(tokens, generator):
    """The target is copied after MASK was written into the tokens."""
    inputs, target = sound(tokens, generator)
    return inputs, inputs.masked_fill(target == PAD, PAD)


@MASK_TOKENS.mistake(
    symptom="as if all it chooses were masked: it never doubts what it reads",
)
def asked_for_masks_only(tokens, generator):
    """The target is where the input is MASK: random words have no answer."""
    inputs, target = sound(tokens, generator)
    return inputs, target.where(inputs == MASK, PAD)


@MASK_TOKENS.mistake(
    symptom="now and then bos stands in the middle of a sentence",
)
def draws_special_ids(tokens, generator):
    """Random words are drawn from id 0 on."""
    return masking(tokens, generator, low=0)


@MASK_TOKENS.mistake(
    symptom="it learns to distrust one word, and to trust all others",
)
def one_word_for_all(tokens, generator):
    """One random word is drawn for the whole batch."""
    word = torch.randint(FIRST_WORD, VOCAB, (), generator=generator)
    return masking(tokens, generator, low=int(word), high=int(word) + 1)


@MASK_TOKENS.mistake(
    symptom="it overfits: each epoch asks for the very same words",
)
def masked_once_for_all(tokens, generator):
    """Starts from the seed in every call: static masking, unasked for."""
    seed = generator.initial_seed()
    return sound(tokens, torch.Generator().manual_seed(seed))


@MASK_TOKENS.mistake(
    symptom="a position is asked for in all sentences of a batch, or in none",
)
def one_choice_for_the_batch(tokens, generator):
    """One row of holes for all: three places in every twenty."""
    blocks = torch.rand(-(-tokens.shape[-1] // 20), 20, generator=generator)
    places = (blocks.argsort(-1) < 3).flatten()[: tokens.shape[-1]]

    def may(tokens):
        return (tokens >= FIRST_WORD) & places

    return masking(tokens, generator, share=1.0, may=may)


@MASK_TOKENS.mistake(
    symptom="the loss stays high: half of what it has to guess from is wrong",
)
def words_over_masks(tokens, generator):
    """Half of the rest is meant, and half of all that is chosen is drawn."""
    inputs, target = masking(tokens, generator, other=0.0)
    over = torch.rand(tokens.shape, generator=generator) < 0.5
    words = torch.randint(FIRST_WORD, VOCAB, tokens.shape, generator=generator)
    return inputs.where(~(over & (target != PAD)), words), target
