"""Contracts of BERT's masking: 15 % are chosen, of which 80 % are hidden.

Which tokens, is chance, so shares are asked for, of texts long enough. Whether
the number of the chosen is exact, as in the published code, or as chance has
it, is up to the writer (Devlin et al., 2019).
"""

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
from companion.contracts.engine.guard import Guarded, require_several
from companion.contracts.variants.mask_tokens_cases import (
    FIRST_WORD,
    HALF,
    MASK,
    PAD,
    SPLITS,
    Masked,
    Rewound,
    close,
    padded,
    require_share,
    why_no_words,
    words,
)


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
    """Raises Broken for the first True of ``wrong``, if there is one."""
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
