"""Contracts of cross-entropy against a target that is not quite sure.

Three ways to spread the mass ε are right. PyTorch's spreads it over all
classes, the target included. That of a well-known port spreads it over all but
the target and padding, and that of Tensor2Tensor over all but the target. The
last two measure a cross-entropy or, less the entropy of the target, a KL
divergence. A batch of nothing but padding has no mean: nothing is asked of it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    NotTried,
    draw,
    finite,
    number,
    same,
    seeded,
)
from companion.contracts.engine.component import Component, Mistake, title
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.levels import NOTE, RISK

__all__ = [
    "BY_SENTENCES",
    "COUNTED",
    "EVERY_TOKEN",
    "LABEL_SMOOTHING",
    "ON_PURPOSE",
    "PADDING",
    "over_real_tokens",
    "real_alone",
    "treats_all_classes_alike",
]


def share(target: Tensor, vocab: int, best: float, other: float) -> Tensor:
    """``best`` for the target's class, ``other`` for every other one."""
    sure = F.one_hot(target, vocab).float()
    return best * sure + other * (1 - sure)


def pytorchs(target: Tensor, vocab: int, mass: float, pad: int) -> Tensor:
    """ε / V for every class, and 1 - ε more for the target."""
    rest = mass / vocab
    return share(target, vocab, 1 - mass + rest, rest)


def ports(target: Tensor, vocab: int, mass: float, pad: int) -> Tensor:
    """ε / (V - 2) for every class but the target and padding."""
    rest = mass / max(vocab - 2, 1)
    return but(pad, share(target, vocab, 1 - mass, rest))


def tensor2tensors(target: Tensor, vocab: int, mass: float, pad: int) -> Tensor:
    """ε / (V - 1) for every class but the target, for padding too."""
    return share(target, vocab, 1 - mass, mass / (vocab - 1))


def but(pad: int, spread: Tensor) -> Tensor:
    """Nothing for padding."""
    return spread.index_fill(-1, torch.tensor(pad), 0)


def mean(losses: Tensor, real: Tensor, vocab: int) -> Tensor:
    """The mean over real tokens."""
    return losses[real].mean()


@dataclass(frozen=True)
class Loss:
    """A smoothed cross-entropy, put together from what can go wrong in it.

    Attributes:
        name: What it is called in a report.
        spread: From targets, V, ε and padding, the distribution aimed at.
        less_entropy: Whether it is a KL divergence.
        logs: From logits, the log-probabilities.
        average: From a loss for each token, and which are real, one number.
        left_out: For a mistaken spread, how many classes have no share of ε.
        says: What a report says of who computes this one; nothing by default.
    """

    name: str
    spread: Callable = pytorchs
    less_entropy: bool = False
    logs: Callable = lambda logits: logits.log_softmax(-1)
    average: Callable = mean
    left_out: int = 1
    says: str = ""

    def __call__(
        self, logits: Tensor, target: Tensor, smoothing: float, pad: int
    ) -> Tensor:
        """The loss."""
        vocab = logits.shape[-1]
        aim = self.spread(target, vocab, smoothing, pad)
        losses = -(aim * self.logs(logits)).sum(-1)
        if self.less_entropy:
            losses = losses + torch.xlogy(aim, aim).sum(-1)
        return self.average(losses, target != pad, vocab)


PYTORCH = Loss("in PyTorch's form")
ALL_BUT_TWO = replace(PYTORCH, left_out=2)
PORT = Loss(
    "in that of a well-known port",
    ports,
    says="ε goes to V - 2 classes, neither to the target nor to padding, as in "
    "a well-known port.",
)
TENSOR2TENSOR = Loss(
    "in that of Tensor2Tensor",
    tensor2tensors,
    says="ε goes to all V - 1 classes but the target, padding among them, as "
    "in Tensor2Tensor, the code of the paper's authors.",
)
DIVERGENCE = "The entropy of the target is subtracted: a KL divergence."
RIGHT = (
    PYTORCH,
    PORT,
    replace(
        PORT,
        name="in that as a KL divergence",
        less_entropy=True,
        says=f"{PORT.says} {DIVERGENCE}",
    ),
    TENSOR2TENSOR,
    replace(
        TENSOR2TENSOR,
        less_entropy=True,
        says=f"{TENSOR2TENSOR.says} {DIVERGENCE}",
    ),
)
"""The forms; a report lists the first four."""

PUBLISHED = (
    "Each form is published and in use, and only losses of one form can be "
    "compared with each other."
)
FIXED = 0.1
"""The ε that is built into losses that ask for none."""

BUILT_IN = (
    "A loss with an ε of its own is right wherever it is asked for no other."
)

WIDTH = 7


def sentences(seed: int, pad: int = 0, vocab: int = WIDTH) -> tuple:
    """Logits and targets of two sentences, of five tokens and of two."""
    generator = seeded(seed)
    words = torch.randint(1, vocab, (2, 5), generator=generator)
    target = (words + pad) % vocab
    target[1, 2:] = pad
    return 2 * draw(2, 5, vocab, seed=seed), target


LABEL_SMOOTHING = Component(
    name="label_smoothing",
    signature="label_smoothing(logits, target, smoothing, pad)",
    returns="one number, the mean over real tokens",
    axes=("loss",),
    shape=lambda *args: (),
    shape_contract="It returns one number",
    cases=lambda: {
        "with padding 0": (*sentences(3), 0.1, 0),
        "with padding 3": (*sentences(5, 3), 0.4, 3),
        "with smoothing 0.7": (*sentences(7, 6), 0.7, 6),
    },
    shape_hints={
        "That is a loss for each token: padding aside, take the mean.": (
            lambda logits, target, *rest: target.shape
        ),
        "That is a loss for each real token: take the mean.": (
            lambda logits, target, smoothing, pad: (int((target != pad).sum()),)
        ),
        "That is a loss for each token and class: sum over the classes, and "
        "take the mean over real tokens.": lambda logits, *rest: logits.shape,
        "That is a loss for each sentence: take one mean over all real "
        "tokens.": lambda logits, *rest: logits.shape[:1],
    },
)


def forms(fn: Guarded) -> list[Loss]:
    """The right forms that ``fn`` agrees with, in every case."""
    got = Answers(fn)
    return [form for form in RIGHT if got.agree(form)]


class Answers:
    """What ``fn`` computes in each case, called once for all comparisons."""

    def __init__(self, fn: Guarded):
        self.cases = [*LABEL_SMOOTHING.cases().values()]
        self.computed = cache(lambda case: fn.raw(*self.cases[case]))

    def agree(self, form: Callable) -> bool:
        """Whether they are those of ``form``, in every case."""
        return all(
            close(self.computed(case), form(*args))
            for case, args in enumerate(self.cases)
        )


def close(one: Tensor, other: Tensor) -> bool:
    """Whether two losses are the same but for rounding."""
    return torch.allclose(one, other, 1e-4, 1e-5)


def mistake(got: Answers) -> Mistake | None:
    """The known mistake whose numbers these are, or None."""
    forms = [replace(form, left_out=n) for form in RIGHT for n in (1, 2)]
    known = (
        m
        for m in LABEL_SMOOTHING.mistakes
        if m.hint
        and any(got.agree(partial(m.make, form=form)) for form in forms)
    )
    return next(known, None)


def built_in(form: Loss, logits: Tensor, target: Tensor, _, pad: int) -> Tensor:
    """What ``form`` is with the ε that nobody asked for."""
    return form(logits, target, FIXED, pad)


def refuse(fn: Guarded, says: str) -> None:
    """Raise Broken with the mistake that explains it, if one is known."""
    got = Answers(fn)
    for form in RIGHT:
        if got.agree(partial(built_in, form)):
            hint = f"ε is {FIXED} here whatever `smoothing` is, {form.name}."
            raise Broken(f"{hint} {says}", cause=hint, level=NOTE, why=BUILT_IN)
    known = mistake(got)
    if known is None:
        raise Broken(says)
    raise Broken(
        f"{known.hint} {says}",
        cause=known.hint,
        level=known.level,
        why=known.why,
    )


@LABEL_SMOOTHING.before_reference
def padding(fn: Guarded) -> None:
    """The logits at padding do not count."""
    for logits, target, *rest in LABEL_SMOOTHING.cases().values():
        pad, other = rest[-1], logits.clone()
        other[target == pad] = 3 * draw(*logits.shape, seed=11)[target == pad]
        before, after = fn(logits, target, *rest), fn(other, target, *rest)
        if not close(before, after):
            refuse(
                fn,
                f"Other logits where the target is padding, {pad} here, change "
                f"the loss from {number(before)} to {number(after)}.",
            )


@LABEL_SMOOTHING.contract
def plain(fn: Guarded) -> None:
    """Without smoothing it is the cross-entropy."""
    refused = refuses_none(fn)
    mass = ALMOST_NONE if refused else 0.0
    for pad in (0, 3):
        logits, target = sentences(13, pad)
        expected = F.cross_entropy(logits.mT, target, ignore_index=pad)
        got = fn(logits, target, mass, pad)
        if not close(got, expected):
            refuse(
                fn,
                f"With smoothing {mass:g} it is {number(got)}: PyTorch's cross-"
                f"entropy, padding ignored, is {number(expected)}.",
            )
    if refused:
        raise NotTried(REFUSED)


ALMOST_NONE = 1e-6
"""So small a smoothing moves no loss here beyond rounding."""

REFUSED = "It refuses smoothing 0; with smoothing 1e-06 it is the cross-entropy"
REFUSALS = re.compile(r"AssertionError |ValueError .*, `raise ")
"""What code raises on purpose; a ValueError of `math.log(0)` is a mistake."""


def refuses_none(fn: Guarded) -> bool:
    """Tell whether it refuses a smoothing of 0, on purpose."""
    try:
        fn.raw(*sentences(13), 0.0, 0)
    except Broken as broken:  # What else is wrong the contract says.
        cause = broken.cause if isinstance(broken, Raised) else ""
        return REFUSALS.match(cause) is not None
    return False


@LABEL_SMOOTHING.contract
def every_token_counts(fn: Guarded) -> None:
    """Every real token counts the same."""
    logits, target, *rest = LABEL_SMOOTHING.example
    long, short = (fn(logits[i][None], target[i][None], *rest) for i in (0, 1))
    got = fn(logits, target, *rest)
    expected = (5 * long + 2 * short) / 7
    if not close(got, expected):
        refuse(
            fn,
            f"A sentence of 5 tokens has loss {number(long)} and one of 2 has "
            f"{number(short)}: together (5 · {number(long)} + 2 · "
            f"{number(short)}) / 7 = {number(expected)}, yours is "
            f"{number(got)}.",
        )


@LABEL_SMOOTHING.contract
def spread_evenly(fn: Guarded) -> None:
    """The mass is spread as PyTorch does it, or as a well-known port does.

    Whatever is right and not PyTorch's is told by name.
    """
    for form in forms(fn):
        two_classes(fn)
        if form.says:
            raise Broken(form.says, level=NOTE, why=PUBLISHED)
        return
    args = LABEL_SMOOTHING.example
    numbers = ", ".join(
        f"{number(form(*args))} {form.name}" for form in RIGHT[:4]
    )
    got = number(fn(*args))
    says = f"With smoothing 0.1 yours is {got}. Expected: {numbers}."
    total = whole_mass(fn)
    if abs(total - 1) > 2e-3 and abs(whole_mass(fn, ALMOST_NONE) - 1) < 1e-3:
        says += f" The masses of its target sum to {total:.4g}, not to 1."
    refuse(fn, says)


def whole_mass(fn: Guarded, mass: float = 0.1) -> float:
    """Return what the masses sum to that a loss aims at, for one target.

    Where one logit is large, all other masses count, as often as it is large.
    """
    lost = 0.0
    for sure in range(WIDTH):
        logits = torch.zeros(1, 1, WIDTH)
        logits[..., sure] = LARGE
        lost += float(fn.raw(logits, torch.tensor([[1]]), mass, 0))
    return lost / (WIDTH - 1) / LARGE


LARGE = 1e4
"""A logit beside which the others, and any entropy, are nothing."""


def two_classes(fn: Guarded) -> None:
    """Raise Broken if PyTorch's form fails where V - 2 is 0."""
    (form, *_) = forms(fn)
    if form is RIGHT[0]:
        args = (draw(1, 3, 2, seed=17), torch.tensor([[1, 1, 0]]), 0.3, 0)
        why = "With two classes it is not what PyTorch returns."
        same(fn, fn(*args), form(*args), why)


@LABEL_SMOOTHING.contract
def level(fn: Guarded) -> None:
    """A number added to all logits of a token changes nothing."""
    logits, target, *rest = LABEL_SMOOTHING.example
    raised = logits + 10 * draw(*target.shape, 1, seed=19)
    before, after = fn(logits, target, *rest), fn(raised, target, *rest)
    if not close(before, after):
        refuse(
            fn,
            f"The loss goes from {number(before)} to {number(after)}: logits "
            "are no log-probabilities yet, `log_softmax` makes them so.",
        )


@LABEL_SMOOTHING.contract
def large(fn: Guarded) -> None:
    """Large logits do not overflow."""
    logits, target, *rest = LABEL_SMOOTHING.example
    got = fn.raw(100 * logits, target, *rest)
    why = (
        "The logits reach 500 here: `log_softmax` takes the logarithm before "
        "anything can become 0 or ∞."
    )
    finite(fn, got, why)


PADDING = title(padding)
COUNTED = (
    "Padding is counted, as if it were a token to predict: the loss treats all "
    "classes alike, and nothing says which of them is padding."
)


def treats_all_classes_alike(fn: Callable) -> bool:
    """Tell whether a loss stays the same if classes change their numbers.

    So it does where no class is padding, or where nobody thought of it.

    Args:
        fn: The loss, called as the contracts call it.
    """
    logits, target = sentences(3)
    before = fn(logits, target, 0.1, 0)
    for turn in range(1, WIDTH):
        turned = (target + turn) % WIDTH
        after = fn(logits.roll(turn, -1), turned, 0.1, turn)
        if not close(before, after):
            return False
    return True


def real_alone(fn: Callable) -> Callable:
    """Make of a loss one that is given what is no padding.

    Args:
        fn: The loss, called as the contracts call it.
    """

    def label_smoothing(
        logits: Tensor, target: Tensor, smoothing: float, pad: int
    ) -> Tensor:
        real = target != pad
        return fn(logits[real], target[real], smoothing, pad)

    return label_smoothing


EVERY_TOKEN = title(every_token_counts)
BY_SENTENCES = (
    "The sum over real tokens is divided by the number of sentences: the loss "
    "grows with their length."
)
ON_PURPOSE = (
    "ESPnet and WeNet divide so on purpose. Such a loss wants its axis of "
    "sentences: where tokens are flattened in front of it, every position "
    "passes for a sentence, padding too."
)


def over_real_tokens(fn: Callable) -> Callable:
    """Make of a loss over the number of sentences one over real tokens.

    Args:
        fn: The loss, called as the contracts call it.
    """

    def label_smoothing(
        logits: Tensor, target: Tensor, smoothing: float, pad: int
    ) -> Tensor:
        real = (target != pad).sum()
        return fn(logits, target, smoothing, pad) * len(target) / real

    return label_smoothing


# Known mistakes


@LABEL_SMOOTHING.mistake(
    hint="Padding is counted, as if it were a token to predict.",
    symptom="the loss falls fast and far: most of what it learns is to say pad",
)
def counts_padding(*args, form=PYTORCH):
    """The mean over all positions, padding among them."""
    return replace(form, average=lambda losses, real, vocab: losses.mean())(
        *args
    )


@LABEL_SMOOTHING.mistake(
    hint="It divides by all positions: divide by the number of real tokens.",
    symptom="the more padding, the better the loss, and the less is learned",
)
def over_the_padded_length(*args, form=PYTORCH):
    """Padding is zeroed, and counted when the sum is divided."""
    return replace(form, average=lambda x, real, vocab: (x * real).mean())(
        *args
    )


@LABEL_SMOOTHING.mistake(
    hint="That is a sum: divide it by the number of real tokens.",
    symptom="the loss grows with the batch, and nearly every step is clipped",
)
def summed(*args, form=PYTORCH):
    """`reduction='sum'`, and nobody divides."""
    return replace(form, average=lambda x, real, vocab: x[real].sum())(*args)


@LABEL_SMOOTHING.mistake(
    hint="That is the mean of each sentence's mean: a token of a short "
    "sentence counts more.",
    symptom="accumulated small batches end with a higher loss than one large "
    "batch",
)
def mean_of_means(*args, form=PYTORCH):
    """A mean for each sentence, and the mean of those.

    Gradient accumulation in widely used trainers did this to small batches.
    """

    def average(losses, real, vocab):
        return ((losses * real).sum(-1) / real.sum(-1)).mean()

    return replace(form, average=average)(*args)


@LABEL_SMOOTHING.mistake(
    hint="It divides by the number of sentences (`batchmean`): divide by the "
    "number of real tokens.",
)
def divided_by_the_sentences(*args, form=PYTORCH):
    """`reduction='batchmean'` divides by the first axis only."""
    return replace(form, average=lambda x, real, vocab: x[real].sum() / len(x))(
        *args
    )


@LABEL_SMOOTHING.mistake(
    hint="It divides by the number of classes too: sum over the classes, and "
    "take the mean over real tokens.",
)
def divided_by_the_classes(*args, form=PYTORCH):
    """`mean()` of a loss for each token and class."""
    return replace(form, average=lambda x, real, vocab: x[real].mean() / vocab)(
        *args
    )


@LABEL_SMOOTHING.mistake(
    hint="The sign is wrong: a loss is minus the log-probability.",
)
def log_likelihood(*args, form=PYTORCH):
    """The log-probability itself, which training makes smaller."""
    return -form(*args)


@LABEL_SMOOTHING.mistake(
    hint="The smoothing is ignored.",
    symptom="training with smoothing 0.1 is training with none, to the digit",
)
def unsmoothed(logits, target, smoothing, pad, form=PYTORCH):
    """Takes the smoothing, and does not pass it on."""
    return form(logits, target, 0.0, pad)


@LABEL_SMOOTHING.mistake(
    hint="ε and 1 - ε have changed places.",
)
def smoothing_turned_round(logits, target, smoothing, pad, form=PYTORCH):
    """The target gets ε, and the others share 1 - ε."""
    return form(logits, target, 1 - smoothing, pad)


def spread_by(form: Loss, best: Callable, other: Callable, cleared: bool):
    """The form whose masses are ``best`` for the target, ``other`` elsewhere.

    Both are functions of ε and of how many classes share it.
    """

    def spread(target, vocab, mass, pad):
        n = vocab - form.left_out
        masses = share(target, vocab, best(mass, n), other(mass, n))
        return but(pad, masses) if cleared else masses

    return replace(form, spread=spread)


@LABEL_SMOOTHING.mistake(
    hint="The target gets 1 - ε, and its share ε / V is missing: the masses do "
    "not sum to 1.",
    symptom="the loss is a little too low, and no number can be compared",
)
def short_of_one(*args, form=PYTORCH):
    """ε / V for each of the others: the masses sum to less than 1."""
    form = replace(form, left_out=0)
    return spread_by(form, lambda e, n: 1 - e, lambda e, n: e / n, False)(*args)


@LABEL_SMOOTHING.mistake(
    hint="Padding gets a share of ε: a class that is never right. A well-known "
    "port spreads it over V - 2 classes, all but the target and padding.",
    symptom="beam search finds padding in the middle of sentences",
)
def smooths_over_padding(*args, form=ALL_BUT_TWO):
    """ε / (V - 2) for all classes but the target: padding is one of them."""
    return spread_by(form, lambda e, n: 1 - e, lambda e, n: e / n, False)(*args)


@LABEL_SMOOTHING.mistake(
    hint="Padding has no share, but the masses do not sum to 1: over V - 2 "
    "classes each has ε / (V - 2).",
)
def padding_cleared(*args, form=PYTORCH):
    """The share of padding is set to 0, and nobody else gets it."""
    if form.left_out == 2:  # What is right for the port.
        n_classes = replace(form, left_out=0)
        return spread_by(
            n_classes, lambda e, n: 1 - e + e / n, lambda e, n: e / n, True
        )(*args)
    return spread_by(form, lambda e, n: 1 - e, lambda e, n: e / n, True)(*args)


@LABEL_SMOOTHING.mistake(
    hint="The target gets 1 - ε and a share of ε besides, which only PyTorch's "
    "form does, over all V classes.",
    symptom="the loss never comes as low as the entropy of its target",
)
def smooths_the_target_twice(*args, form=ALL_BUT_TWO):
    """The share of the others is added to the target too: more than 1."""
    return spread_by(
        form, lambda e, n: 1 - e + e / n, lambda e, n: e / n, True
    )(*args)


@LABEL_SMOOTHING.mistake(
    hint="The entropy of the target is subtracted from PyTorch's form: "
    "`F.cross_entropy` leaves it in.",
)
def entropy_subtracted(*args, form=PYTORCH):
    """PyTorch's spread, as a KL divergence."""
    return replace(PYTORCH, less_entropy=True)(*args)


@LABEL_SMOOTHING.mistake(
    hint="The logits are taken for log-probabilities: `log_softmax` is "
    "missing.",
    symptom="the loss falls below 0 and on to minus infinity",
)
def takes_logits_for_logarithms(*args, form=PYTORCH):
    """Asks for log-probabilities and is given logits: nothing complains."""
    return replace(form, logs=lambda logits: logits)(*args)


@LABEL_SMOOTHING.mistake(
    hint="Two softmaxes: cross-entropy takes logits, not probabilities.",
    symptom="the loss falls slowly, and stops far above 0",
)
def two_softmaxes(logits, *args, form=PYTORCH):
    """The model ends with a softmax, and the loss begins with another."""
    return form(logits.softmax(-1), *args)


@LABEL_SMOOTHING.mistake(
    hint="The logarithm is missing: these are probabilities.",
)
def without_logarithm(*args, form=PYTORCH):
    """Probabilities where log-probabilities are meant."""
    return replace(form, logs=lambda logits: logits.softmax(-1))(*args)


@LABEL_SMOOTHING.mistake(
    hint="The softmax runs over positions: the classes are on the last axis.",
    symptom="the loss falls, and the likeliest word is rarely the right one",
)
def softmax_over_positions(*args, form=PYTORCH):
    """The axis of the softmax is that of the positions."""
    return replace(form, logs=lambda logits: logits.log_softmax(1))(*args)


@LABEL_SMOOTHING.mistake(
    hint="The softmax runs over sentences: the classes are on the last axis.",
)
def softmax_over_sentences(*args, form=PYTORCH):
    """The axis of the softmax is that of the batch."""
    return replace(form, logs=lambda logits: logits.log_softmax(0))(*args)


@LABEL_SMOOTHING.mistake(
    hint="`pad` is not used: it is 0 here whatever was asked.",
    symptom="right until somebody's tokeniser has another id for padding",
    level=RISK,
    why="It bites once a tokenizer comes that has another id for padding.",
)
def knows_padding_zero_only(logits, target, smoothing, pad, form=PYTORCH):
    """Ignores the id 0, whatever padding is."""
    return form(logits, target, smoothing, 0)


@LABEL_SMOOTHING.mistake(
    symptom="good until the model is sure of itself: then the loss is infinite",
)
def logarithm_of_a_softmax(*args):
    """A softmax, and the logarithm afterwards: of 0, sooner or later."""
    return replace(PYTORCH, logs=lambda logits: logits.softmax(-1).log())(*args)


@LABEL_SMOOTHING.mistake(
    hint="Each class gets 1 / V, not ε / V: the part for all classes is not "
    "multiplied by ε.",
    symptom="with no smoothing at all it is not the cross-entropy",
)
def all_of_the_mass_twice(*args, form=PYTORCH):
    """(1 - ε) for the target and 1 / V for all: the masses sum to 2 - ε."""
    form = replace(form, left_out=0)
    return spread_by(
        form, lambda e, n: 1 - e + 1 / n, lambda e, n: 1 / n, False
    )(*args)


def in_two_parts(logits, target, smoothing, pad):
    """The loss of the target and that of all classes, for each position."""
    logs = logits.log_softmax(-1)
    sure = -logs.gather(-1, target[..., None])[..., 0]
    return (1 - smoothing) * sure, -smoothing * logs.mean(-1), target != pad


@LABEL_SMOOTHING.mistake(
    hint="At padding only the target's part is left out: the part of all "
    "classes counts there too.",
    symptom="the loss depends on how much padding a batch has",
)
def half_masked(*args, form=PYTORCH):
    """`ignore_index` reaches the one part, and the other is summed up."""
    sure, all_classes, real = in_two_parts(*args)
    return ((sure * real).sum() + all_classes.sum()) / real.sum()


@LABEL_SMOOTHING.mistake(
    hint="The two parts are divided by different numbers: the target's by the "
    "real tokens, that of all classes by all positions.",
    symptom="the more padding, the less is smoothed",
)
def two_denominators(*args, form=PYTORCH):
    """A mean over real tokens, and one over a tensor with zeros in it."""
    sure, all_classes, real = in_two_parts(*args)
    return sure[real].mean() + (all_classes * real).mean()
