"""Sinusoidal positions, by Vaswani et al. (2017), section 3.5.

P[t, 2i] = sin(t / 10000^(2i/d)),  P[t, 2i+1] = cos(t / 10000^(2i/d))
"""

import math

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, furthest, number, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.forms.adopt import NORMALISED
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, RISK, risk
from companion.contracts.engine.universal import (
    level_of_known,
    recognised_mistake,
)

__all__ = ["SINUSOIDAL", "wrong_rates"]


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    return {
        "for 11 positions of width 8": (11, 8),
        "for 3 positions of width 14": (3, 14),
        "for 53 positions of width 2": (53, 2),
        # Angles of at most 100, so that rounding cannot hide a wrong sign.
        "for 2 positions of width 4": (2, 4),
    }


def table(
    length: int,
    d_model: int,
    *,
    exponent=lambda j, d: (j - j % 2) / d,
    base: float = 10000.0,
    start: int = 0,
    turn=lambda angle: angle,
    even=torch.sin,
    odd=torch.cos,
) -> Tensor:
    """Compute the formula, changed; column j belongs to pair j // 2."""
    j = torch.arange(d_model, dtype=torch.float64)
    positions = torch.arange(start, start + length, dtype=torch.float64)
    angle = turn(positions[:, None] / base ** exponent(j, d_model))
    return torch.where(j % 2 == 0, even(angle), odd(angle)).float()


def oracle(length: int, d_model: int) -> Tensor:
    """Compute the formula, in double precision."""
    return table(length, d_model)


SINUSOIDAL = Component(
    name="sinusoidal",
    signature="sinusoidal(length, d_model)",
    returns="one row for each position (length, d_model)",
    axes=("position", "dimension"),
    shape=lambda length, d_model: (length, d_model),
    dtype=torch.float32,
    oracle=oracle,
    reference="the formula",
    agrees="It agrees with the formula",
    cases=cases,
    shape_hints={
        "Position and dimension are swapped.": (
            lambda length, d_model: (d_model, length)
        ),
        "Are these the sines only? Between two of them belongs a cosine.": (
            lambda length, d_model: (length, d_model // 2)
        ),
    },
)


@SINUSOIDAL.contract
def first_row(fn: Guarded) -> None:
    """Position 0 is 0, 1, 0, 1, …"""
    got = fn(3, 10)
    expected = torch.tensor([0.0, 1.0]).repeat(5)
    index = furthest(got[0], expected)
    if index is not None:
        raise Broken(
            f"Dimension {index[0]} of position 0 is {number(got[0][index])}: "
            "the sine of 0 is 0, and its cosine 1.",
            got[:1],
            expected.unsqueeze(0),
        )


@SINUSOIDAL.contract
def circle(fn: Guarded) -> None:
    """Every pair of dimensions lies on a circle of radius 1."""
    if taken_as_normalised(fn):
        raise Broken(AS_A_WHOLE, level=NOTE, why=ORDER)
    got = fn(11, 8)
    radius = got.unflatten(-1, (-1, 2)).square().sum(-1)
    why = "Dimensions 2i and 2i+1 are sine and cosine of one angle."
    require_pairs(radius, torch.ones_like(radius), why)


@SINUSOIDAL.contract
def rotation(fn: Guarded) -> None:
    """Three positions further is the same rotation everywhere."""
    sine, cosine = fn(13, 8).unflatten(-1, (-1, 2)).unbind(-1)
    # sin(a − b) and cos(a − b), from the pairs of both positions.
    turn_sine = sine[3:] * cosine[:-3] - cosine[3:] * sine[:-3]
    turn_cosine = cosine[3:] * cosine[:-3] + sine[3:] * sine[:-3]
    why = "Between position {} and {} the pair turns otherwise than before."
    for turn in (turn_sine, turn_cosine):
        require_pairs(turn, turn[:1].expand_as(turn), why)


def taken_as_normalised(fn: Guarded) -> bool:
    """Tell whether its table is read without what normalises it as a whole."""
    return bool(fn.form and NORMALISED in fn.form.said)


AS_A_WHOLE = (
    "This is the formula's table, normalised as a whole: its mean is taken off "
    "and it is scaled. Everything else was judged without that."
)


def require_pairs(got: Tensor, expected: Tensor, why: str) -> None:
    """Raise Broken at the first (position, pair) that differs."""
    index = furthest(got, expected)
    if index is not None:
        position, pair = index
        why = why.format(position, position + 3)
        raise Broken(
            f"{why} At position {position}, pair {pair} yours is "
            f"{number(got[index])}, expected {number(expected[index])}.",
            got,
            expected,
            ("position", "pair"),
        )


@SINUSOIDAL.contract
def speeds(fn: Guarded) -> None:
    """The first pair turns by 1 a step, each next one more slowly."""
    for width, factor in ((8, 10.0), (4, 100.0)):
        step = fn(2, width)[1].unflatten(-1, (-1, 2))
        got = torch.atan2(step[:, 0], step[:, 1])
        expected = factor ** -torch.arange(width / 2)
        off = ((got - expected).abs() > 0.01 * expected).nonzero()
        if len(off):
            pair = int(off[0])
            raise Broken(
                f"For d_model = {width} pair {pair} turns by "
                f"{number(got[pair])} a step, expected {number(expected[pair])}"
                f": each pair is {factor:g} times as slow as the one before.",
                got,
                expected,
                ("pair",),
            )


@SINUSOIDAL.contract
def whatever_the_length(fn: Guarded) -> None:
    """A row does not depend on how many there are."""
    if taken_as_normalised(fn):
        raise Broken(BY_THE_LENGTH, level=RISK, why=ONE_LENGTH)
    whole = fn(97, 10)
    for length in (1, 2, 11):
        why = f"The rows change when there are only {length} of them."
        same(fn, fn(length, 10), whole[:length], why)


BY_THE_LENGTH = (
    "What the table is normalised by depends on its length, so that all rows "
    "change with the number of positions."
)
ONE_LENGTH = (
    "It is right where a table is made once, of one length, as for windows of "
    "a time series."
)


@SINUSOIDAL.contract
@risk("The widths of published models are even, so nobody asks for an odd one.")
def odd(fn: Guarded) -> None:
    """It takes an odd width, whose last dimension is a sine."""
    known = recognised_mistake(fn)
    hint = known[0] if known else ""
    # Another order of the columns is told elsewhere.
    noted = level_of_known(fn, hint)[0] == NOTE
    right = fn.component.hints[hint] if noted else oracle
    for width in (1, 3, 7):
        why = (
            f"Of {width} dimensions the last is a sine without its cosine: "
            "there is one cosine less."
        )
        same(fn, fn(5, width), right(5, width), why)


# Known mistakes, in the order in which they are recognised

ORDER = (
    "A model learns with either table; only what was trained with the one does "
    "not fit the other."
)


def changed(**style):
    """Make the formula with something else in it."""
    return lambda length, d_model: table(length, d_model, **style)


to_one = changed(exponent=lambda j, d: (j // 2) / max(d // 2 - 1, 1))


@SINUSOIDAL.mistake(
    hint="All sines come first and all cosines after. Some libraries do so, "
    "but the formula alternates: dimension 2i is a sine, 2i+1 the cosine of "
    "the same angle.",
    symptom="trains as well; with the weights of another library it does not",
    level=NOTE,
    why=ORDER,
)
def sines_then_cosines(length, d_model):
    """Two halves instead of pairs: the columns are in another order."""
    right = oracle(length, d_model)
    return torch.cat([right[:, 0::2], right[:, 1::2]], -1)


@SINUSOIDAL.mistake(
    hint="All sines come first and all cosines after, and the exponent ends "
    "at 1, i/(d/2 − 1): this is the table of Tensor2Tensor. The formula "
    "alternates sine and cosine, and has 2i/d.",
    level=NOTE,
    why=ORDER,
)
def as_in_tensor2tensor(length, d_model):
    """Two halves, of which each ends with the slowest speed, 1/10000."""
    table = to_one(length, d_model)
    return torch.cat([table[:, 0::2], table[:, 1::2]], -1)


SINUSOIDAL.mistake(
    "swapped", hint="Sine and cosine are swapped: dimension 2i is the sine."
)(changed(even=torch.cos, odd=torch.sin))


@SINUSOIDAL.mistake(
    hint="All cosines come first and all sines after. Some libraries do so, "
    "but the formula alternates: dimension 2i is a sine, 2i+1 the cosine of "
    "the same angle.",
    level=NOTE,
    why=ORDER,
)
def cosines_then_sines(length, d_model):
    """Two halves, and the cosines are the first of them."""
    right = oracle(length, d_model)
    return torch.cat([right[:, 1::2], right[:, 0::2]], -1)


SINUSOIDAL.mistake(
    "sines-only",
    hint="There are no cosines: dimension 2i+1 is the cosine of the angle.",
)(changed(odd=torch.sin))
SINUSOIDAL.mistake(
    "cosines-only",
    hint="There are no sines: dimension 2i is the sine of the angle.",
)(changed(even=torch.cos))


@SINUSOIDAL.mistake(
    hint="The dimension is taken for i: i counts pairs, and dimension 2i has "
    "the exponent 2i/d, not 2·2i/d.",
    symptom="half of the dimensions hardly move over a whole text",
)
def dimension_for_i(length, d_model):
    """i is read as the number of the dimension, as the notes say it is."""
    return table(length, d_model, exponent=lambda j, d: 2 * (j - j % 2) / d)


SINUSOIDAL.mistake(
    "dimension-for-pair",
    hint="The dimension is taken for i: i counts pairs, so that both "
    "dimensions of a pair have one angle, with exponent 2i/d.",
)(changed(exponent=lambda j, d: 2 * j / d))


@SINUSOIDAL.mistake(
    hint="Every dimension has a frequency of its own: 2i and 2i+1 share one "
    "angle.",
    symptom="trains; how alike two places are depends on more than distance",
)
def no_shared_angle(length, d_model):
    """Sine and cosine side by side belong to different angles."""
    return table(length, d_model, exponent=lambda j, d: j / d)


SINUSOIDAL.mistake(
    "half-the-exponent",
    hint="The exponent is i/d: it is 2i/d, where i counts pairs.",
)(changed(exponent=lambda j, d: (j // 2) / d))
SINUSOIDAL.mistake(
    "exponent-ends-at-one",
    hint="The exponent ends at 1, i/(d/2 − 1), as in Tensor2Tensor: the "
    "formula has 2i/d.",
    level=NOTE,
    why=ORDER,
)(to_one)


@SINUSOIDAL.mistake(
    hint="Positions are counted from 1: the first is 0.",
    symptom="right by itself; beside a cache that counts from 0 it is one off",
)
def counted_from_one(length, d_model):
    """The first position is 1."""
    return table(length, d_model, start=1)


SINUSOIDAL.mistake("small-base", hint="The base is 1000: it is 10000.")(
    changed(base=1000.0)
)
SINUSOIDAL.mistake("base-e", hint="The base is e: it is 10000.")(
    changed(base=math.e)
)


@SINUSOIDAL.mistake(
    hint="The position is multiplied by 10000^(2i/d): divide by it.",
    symptom="neighbours look unrelated, and far positions as if at random",
)
def sign_of_the_exponent(length, d_model):
    """A minus is lost: the slowest pair becomes the fastest of all."""
    return table(length, d_model, base=1e-4)


SINUSOIDAL.mistake(
    "no-shared-angle-and-multiplied",
    hint="The position is multiplied by 10000^(j/d), of dimension j: divide "
    "by 10000^(2i/d), which 2i and 2i+1 share.",
)(changed(base=1e-4, exponent=lambda j, d: j / d))
SINUSOIDAL.mistake(
    "degrees", hint="The angle is taken for degrees: `torch.sin` takes radians."
)(changed(turn=torch.deg2rad))
SINUSOIDAL.mistake(
    "backwards",
    hint="The frequencies run backwards: the first pair is the fastest.",
)(changed(exponent=lambda j, d: (d - 2 - (j - j % 2)) / d))
SINUSOIDAL.mistake(
    "one-speed", hint="There is no 10000^(2i/d): all pairs turn alike."
)(changed(exponent=lambda j, d: 0 * j))


def angles(length, exponents):
    """Return the angle of each position with each exponent, in float32."""
    positions = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    return positions / 10000.0**exponents


@SINUSOIDAL.mistake(
    symptom="far positions look alike: the slow dimensions are too fast"
)
def swapped_halves_too_fast(length, d_model):
    """Cosines first, sines after, and i/d for an exponent."""
    angle = angles(length, torch.arange(d_model // 2) / d_model)
    return torch.cat([angle.cos(), angle.sin()], -1)


@SINUSOIDAL.mistake(symptom="an error on the day somebody tries an odd width")
def even_widths_only(length, d_model):
    """As many cosines as sines, where an odd width has one less."""
    table = torch.zeros(length, d_model)
    angle = angles(length, torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


@SINUSOIDAL.mistake(
    hint="The exponent is rounded down: `log(10000) / d // 2` divides by d and "
    "rounds what is left. Write `/ (d // 2)`, or leave `//` out.",
    symptom="all but a few dimensions stand still over a whole text",
)
def rounded_down(length, d_model):
    """`//` is meant for the width alone, and rounds all before it."""
    step = -(-math.log(10000.0) / d_model // 2)
    return table(
        length, d_model, base=math.exp(step), exponent=lambda j, d: j - j % 2
    )


@SINUSOIDAL.mistake(
    hint="1 is taken from the exponent: `log(10000) / d - 1` divides by d "
    "first. Leave the 1 out.",
    symptom="all but a few dimensions stand still over a whole text",
)
def one_less(length, d_model):
    """`- 1` is meant for the width, or a length, and each pair is e² slower."""
    step = math.log(10000.0) / d_model + 1
    return table(
        length, d_model, base=math.exp(step), exponent=lambda j, d: j - j % 2
    )


@SINUSOIDAL.mistake(
    hint="Base and exponent have changed places: 10000^(−2i/d), not "
    "(2i/d)^(1/10000).",
    symptom="it trains, and only the distance of neighbours is seen",
)
def base_for_exponent(length, d_model):
    """`steps ** 1e-4` for `1e-4 ** steps`: all pairs turn nearly alike."""
    j = torch.arange(d_model)
    angle = torch.outer(torch.arange(length), ((j - j % 2) / d_model) ** 1e-4)
    return torch.where(j % 2 == 0, angle.sin(), angle.cos())


@SINUSOIDAL.mistake(
    hint="The parenthesis of `exp` closes too early: exp(2i) is multiplied by "
    "−ln(10000)/d, and exp(2i · −ln(10000)/d) is wanted.",
    symptom="trains with noise for positions; from 92 features on, NaN",
)
def early_parenthesis(length, d_model):
    """Each pair turns e² times as fast as the one before it, backwards."""
    slowest = math.log(math.log(10000.0) / d_model)
    return table(
        length,
        d_model,
        base=math.e,
        exponent=lambda j, d: -(j - j % 2) - slowest,
        even=lambda angle: -angle.sin(),
    )


ROUNDED = 0.05
"""How far rounding in float32 moves the sine of an angle of some thousands."""
CLOSE = 1e-3
"""How far that of an angle of some units, which another base moves further."""

WRONG = {
    "sign-of-the-exponent": ROUNDED,
    "no-shared-angle-and-multiplied": ROUNDED,
    "dimension-for-i": CLOSE,
    "rounded-down": CLOSE,
    "base-for-exponent": CLOSE,
    "early-parenthesis": ROUNDED,
}
"""Mistakes in the rates that no convention explains, and how near one is."""


def wrong_rates(found: Tensor) -> str:
    """Return the hint of what is wrong with the rates of sinusoids, or nothing.

    Any other table is right: a learned one, or one in another order.

    Args:
        found: The first rows of a table. The fastest angles are large, so that
            rounding shows in them.
    """
    size = found.shape
    # Row 0 may belong to padding.
    left = slice(0 if found[0].any() else 1, None)
    found = found[left]
    if torch.allclose(found, oracle(*size)[left], atol=ROUNDED):
        return ""
    for mistake in SINUSOIDAL.mistakes:
        atol = WRONG.get(mistake.id)
        if atol is not None and any(
            torch.allclose(found, table[left], atol=atol)
            for table in layouts(mistake.fn(*size).float())
        ):
            return mistake.hint
    return ""


def layouts(table: Tensor) -> list[Tensor]:
    """Put the columns into halves too, as some libraries have them."""
    sines, cosines = table[:, 0::2], table[:, 1::2]
    halves = [torch.cat(x, -1) for x in ([sines, cosines], [cosines, sines])]
    return [table, *halves]
