"""Texts to mask, a generator that starts over, and what came of both."""

from dataclasses import dataclass

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, seeded

PAD, MASK, FIRST_WORD, VOCAB = 0, 3, 4, 100
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
        """Raises Broken if the same draws brought something else before."""
        before = self.before or result
        self.before = tuple(x.clone() for x in result)
        if all(map(torch.equal, before, result)):
            return
        if not torch.equal(self.torchs, torch.get_rng_state()):
            raise Broken(
                "It draws from torch's own random numbers, so that nobody can "
                "repeat it: give `generator=generator` to every draw."
            )
        raise Broken(
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
    """Raises Broken unless 15 % of the words are chosen, chance aside."""
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
    (0.1, 0.8, 0.1): "80 % become a random word: 80 % become MASK.",
    (0.1, 0.1, 0.8): "80 % stay as they are: 80 % become MASK.",
    (0.0, 1.0, 0.0): "No chosen token becomes MASK: 80 % do.",
    (0.0, 0.0, 1.0): "Nothing is hidden: 80 % of the chosen become MASK.",
}
"""Shares of MASK, another word, and the same -> what it means."""
