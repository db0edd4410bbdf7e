"""Contracts of one step of speculative decoding.

What comes out is drawn, so its distribution is tested, by chi-squared. The
limit is one that a right function passes except once in a million times for
each distribution; the seeds are fixed, so that it is the same at every call.
"""

from functools import lru_cache
from operator import index

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, seeded
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded, OtherNumbers
from companion.contracts.variants.mask_tokens import ERRORS, Rewound

__all__ = ["SPECULATIVE_STEP"]

# The target, and a draft that agrees with it in 0.65 of all guesses.
P = torch.tensor([0.30, 0.35, 0.20, 0.05, 0.10], device="cpu")
Q = torch.tensor([0.55, 0.10, 0.15, 0.15, 0.05], device="cpu")
# A target that never says token 2, and a draft that often does.
NEVER = torch.tensor([0.45, 0.25, 0.00, 0.10, 0.20], device="cpu")
OFTEN = torch.tensor([0.20, 0.25, 0.40, 0.10, 0.05], device="cpu")
EXAMPLE = 1
"""A guess that P likes better than Q: it is kept, whatever the dice say."""

TIMES = 2000
LIMIT = {3: 30.7, 4: 33.4}
"""Freedoms -> chi-squared that chance exceeds once in a million."""


def read(fn: Guarded, result: object, args: tuple) -> int:
    """The token, whatever kind of whole number it is."""
    vocab, generator = len(args[0]), args[3]
    try:
        # A tensor of one element is a number, of whatever shape.
        one = isinstance(result, Tensor) and result.numel() == 1
        token = index(result.reshape(()) if one else result)
    except (TypeError, RuntimeError):
        name = type(result).__name__
        what = "None" if result is None else f"a {name}"
        hint = STRAY["NoneType"] if result is None else ""
        if isinstance(result, tuple):
            hint = "Return the token alone."
        raise Broken(
            f"It returned {what}: expected {fn.component.returns}. "
            f"{hint}".rstrip()
        ) from None
    if isinstance(result, bool) or not 0 <= token < vocab:
        raise OtherNumbers(
            f"It returned {result!r}: expected a token from 0 to {vocab - 1}. "
            "Is it told whether the guess was kept, and not which token comes?"
        )
    if isinstance(generator, Rewound):
        generator.require_same((torch.tensor(token),))
        generator.start_over()
    return token


SPECULATIVE_STEP = Component(
    name="speculative_step",
    signature="speculative_step(p, q, draft, generator)",
    returns="a token, a whole number",
    shape_contract="It returns a token",
    read=read,
    gradient=False,
    cases=lambda: {"for a guess that is kept": (P, Q, EXAMPLE, Rewound(3))},
)


@lru_cache(maxsize=2)
def drawn(fn: Guarded, p: Tensor, q: Tensor, seed: int) -> Tensor:
    """Count how often each guess becomes each token, once for all who ask.

    Returns:
        Counts, (guess, token).
    """
    guesses = torch.multinomial(q, TIMES, True, generator=seeded(seed))
    dice, vocab = seeded(seed + 1), len(p)
    out = [fn(p, q, guess, dice) for guess in guesses.tolist()]
    pairs = guesses * vocab + torch.tensor(out)
    return torch.bincount(pairs, minlength=vocab**2).view(vocab, vocab)


def in_words(counts: Tensor) -> str:
    """Shares, in brackets."""
    return f"({', '.join(f'{x:.2f}' for x in counts / counts.sum())})"


@SPECULATIVE_STEP.contract
def own_dice(fn: Guarded) -> None:
    """It draws with the generator it is given."""
    for guess in (0, 3):
        generator = Rewound(7 + guess)
        for _ in range(4):
            fn(P, Q, guess, generator)


@SPECULATIVE_STEP.contract
def surely_kept(fn: Guarded) -> None:
    """A guess that the target likes as well or better is kept."""
    for p, q, guess in ((P, Q, 1), (P, Q, 2), (P, P, 0), (NEVER, OFTEN, 4)):
        dice = seeded(11)
        out = [fn(p, q, guess, dice) for _ in range(60)]
        other = sum(token != guess for token in out)
        if other:
            raise Broken(
                f"Guess {guess} has p = {p[guess]:.2f} and q = {q[guess]:.2f}, "
                f"and {other} times of 60 another token came: expected it to "
                "be kept with probability min(1, p/q). Is the ratio upside "
                "down, or is q left out?"
            )


@SPECULATIVE_STEP.contract
def never(fn: Guarded) -> None:
    """What the target never says never comes out."""
    counts = drawn(fn, NEVER, OFTEN, 13).sum(0)
    if counts[2]:
        raise Broken(
            f"Token 2 has p = 0, and came {int(counts[2])} times of {TIMES}: "
            "a guess is kept with probability min(1, p/q), here 0, and what is "
            "drawn instead has p > q."
        )


@SPECULATIVE_STEP.contract
def kept_as_often(fn: Guarded) -> None:
    """A guess is kept with probability p/q, and not drawn again."""
    became, expected = drawn(fn, P, Q, 19)[0], (P[0] / Q[0]).item()
    times = int(became.sum())
    kept = int(became[0]) / times
    error = (expected * (1 - expected) / times) ** 0.5
    if abs(kept - expected) > ERRORS * error:
        likely = "Is `p` drawn from after a refusal, so that it comes again?"
        if kept < expected:
            likely = "Is the guess thrown away where it could be kept?"
        raise Broken(
            f"Token 0 was guessed {times} times with p = 0.30, q = 0.55, and "
            f"came out in {kept:.2f} of them: expected {expected:.2f}. {likely}"
        )


@SPECULATIVE_STEP.contract
def of_the_target(fn: Guarded) -> None:
    """What comes out is distributed as the target.

    Chi-squared over 2000 guesses, at a limit that a right function exceeds
    once in a million for each of the two distributions.
    """
    for p, q, seed in ((P, Q, 19), (NEVER, OFTEN, 13)):
        counts = drawn(fn, p, q, seed).sum(0)
        expected = TIMES * p
        seen = p > 0
        chi = (counts - expected)[seen].square() / expected[seen]
        if chi.sum() > LIMIT[int(seen.sum()) - 1]:
            raise Broken(
                f"Guesses were drawn from q = {in_words(q)}, and what came out "
                f"is {in_words(counts)}: expected p = {in_words(p)}. After a "
                "refusal draw from (p - q) clamped at 0, scaled to sum 1."
            )


# Known mistakes


def step(p, q, guess, generator, *, odds, instead):
    """Keep the guess with probability ``odds``, or draw from ``instead``."""
    if torch.rand((), generator=generator) < odds:
        return guess
    if not instead.sum() > 0:
        instead = p
    return int(torch.multinomial(instead, 1, generator=generator))


@SPECULATIVE_STEP.mistake(
    symptom="exactly what the draft would have written, at twice the price",
)
def always_kept(p, q, draft, generator):
    """The guess is returned, whatever the target thinks of it."""
    torch.rand((), generator=generator)
    return draft


@SPECULATIVE_STEP.mistake(
    symptom="the right text, and no pass is ever saved",
)
def never_kept(p, q, draft, generator):
    """Draws from the target, and does not look at the guess."""
    return int(torch.multinomial(p, 1, generator=generator))


@SPECULATIVE_STEP.mistake(
    symptom="the text is duller than the target's: what it likes comes twice",
)
def from_the_target_again(p, q, draft, generator):
    """After a refusal it draws from p, and not from what is missing."""
    odds = p[draft] / q[draft]
    return step(p, q, draft, generator, odds=odds, instead=p)


@SPECULATIVE_STEP.mistake(
    symptom="what the target dislikes is kept, and what it likes refused",
)
def ratio_upside_down(p, q, draft, generator):
    """q/p instead of p/q."""
    odds = q[draft] / p[draft] if p[draft] > 0 else 0.0
    missing = (p - q).clamp(min=0)
    return step(p, q, draft, generator, odds=odds, instead=missing)


@SPECULATIVE_STEP.mistake(
    symptom="far fewer guesses are kept than the two models agree on",
)
def without_the_draft(p, q, draft, generator):
    """Keeps a guess with probability p, as if it were drawn from all alike."""
    missing = (p - q).clamp(min=0)
    return step(p, q, draft, generator, odds=p[draft], instead=missing)


@SPECULATIVE_STEP.mistake(
    symptom="now and then a token that the target would never say",
)
def difference_without_its_sign(p, q, draft, generator):
    """|p - q| where (p - q)₊ is meant."""
    odds = p[draft] / q[draft]
    instead = (p - q).abs()
    return step(p, q, draft, generator, odds=odds, instead=instead)


@SPECULATIVE_STEP.mistake(
    symptom="a refused guess is often followed by itself",
)
def what_the_draft_has_too_much(p, q, draft, generator):
    """(q - p)₊: what is missing, from the other side."""
    odds = p[draft] / q[draft]
    instead = (q - p).clamp(min=0)
    return step(p, q, draft, generator, odds=odds, instead=instead)


@SPECULATIVE_STEP.mistake(
    symptom="at any temperature the same word follows a refused guess",
)
def likeliest_instead(p, q, draft, generator):
    """After a refusal it takes the likeliest of what is missing."""
    if torch.rand((), generator=generator) < p[draft] / q[draft]:
        return draft
    return int((p - q).argmax())


@SPECULATIVE_STEP.mistake(
    symptom="dull text: a guess is refused whenever the target likes it less",
)
def no_dice(p, q, draft, generator):
    """Kept if p is as large as q, else not: nothing is left to chance."""
    missing = (p - q).clamp(min=0)
    odds = float(p[draft] >= q[draft]) * 2
    return step(p, q, draft, generator, odds=odds, instead=missing)


@SPECULATIVE_STEP.mistake(
    symptom="each run of the same seed writes another text",
)
def dice_of_its_own(p, q, draft, generator):
    """Draws from torch's random numbers, and not from the generator."""
    missing = (p - q).clamp(min=0)
    return step(p, q, draft, None, odds=p[draft] / q[draft], instead=missing)
