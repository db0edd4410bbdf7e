"""Rotary positions, RoPE, by Su et al. (2021).

Which dimensions make a pair differs from library to library, and so does the
sense of rotation. All of them turn by the same angles, and this is what is
asked here. Sizes: 2 sentences, 3 heads, 5 positions, and width 8.
"""

import contextlib

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    after,
    draw,
    furthest,
    number,
    same,
)
from companion.contracts.engine.component import Component, title
from companion.contracts.engine.families import (
    block_by_block,
    leading_axes,
    titled,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, RISK, note
from companion.positions import rotate, sinusoidal

__all__ = ["AT_ZERO", "RELATIVE", "ROPE"]

SEQ, WIDTH = 5, 8


def arguments(seed: int, *lead: int) -> tuple[Tensor, Tensor]:
    """Draw x, and positions in no order."""
    x = draw(*(lead or (2, 3)), SEQ, WIDTH, seed=seed)
    return x, torch.tensor([3, 0, 11, 1, 7])


ROPE = Component(
    name="rope",
    signature="rope(x, positions)",
    returns="the rotated vectors, in the shape of `x` (..., seq, head_dim)",
    axes=("row", "dimension"),
    shape=lambda x, positions: x.shape,
    cases=lambda: {
        "for 5 positions": arguments(2),
        # Where both are 5, positions may run along the heads unnoticed.
        "for 5 positions and 5 heads": arguments(3, 2, SEQ),
    },
)


def matrix(fn: Guarded, position: int, width: int = WIDTH) -> Tensor:
    """Find what a position does to vectors, found from unit vectors."""
    unit = torch.eye(width).view(1, width, 1, width)
    return fn(unit, torch.tensor([position]))[0, :, 0].detach()


@ROPE.before_reference
def by_position(fn: Guarded) -> None:
    """A row turns by its position, not by its place."""
    for x, positions in fn.component.cases().values():
        alone = [
            fn(x[..., i : i + 1, :], positions[i : i + 1]) for i in range(SEQ)
        ]
        why = (
            "A row alone, with its own position, is turned otherwise: do the "
            "angles come from `positions`, and run along the axis before the "
            "last?"
        )
        same(fn, fn(x, positions), torch.cat(alone, -2), why)


@ROPE.before_reference
def linear(fn: Guarded) -> None:
    """It turns, and adds nothing."""
    (x, positions), (y, _) = arguments(11), arguments(13)
    why = "f(x + y) is not f(x) + f(y): is something added to `x`?"
    same(fn, fn(x + y, positions), fn(x, positions) + fn(y, positions), why)


REORDERED = (
    "Position 0 turns nothing, and puts the dimensions into another order: "
    "pairs of neighbours, perhaps, that are written as two halves."
)
SAME_ORDER = (
    "Queries and keys get the same order, so that their scores are those of "
    "RoPE; what it turns is to be compared with nothing else."
)


def reorders(at_zero: Tensor) -> bool:
    """Tell whether position 0 puts dimensions into another order, and no more.

    Args:
        at_zero: What it does to each of them, (dimension, becomes).
    """
    there = at_zero.argmax(-1)
    order = F.one_hot(there, len(there)).to(at_zero.dtype)
    once = len(there.unique()) == len(there)
    other = not torch.equal(there, torch.arange(len(there)))
    return once and other and furthest(at_zero, order) is None


@ROPE.before_reference
@after(by_position, linear)
def nothing_at_zero(fn: Guarded) -> None:
    """Position 0 turns nothing."""
    x, positions = arguments(5)
    why = "The angle of position 0 is 0: cos 0 = 1 and sin 0 = 0."
    got = fn(x, 0 * positions)
    if reorders(matrix(fn, 0)):
        raise Broken(REORDERED, got, x, level=NOTE, why=SAME_ORDER)
    # A quarter of a turn, in every plane.
    aside = torch.stack([(got * x).sum(-1), (got * got - x * x).sum(-1)])
    if furthest(aside, torch.zeros_like(aside)) is None:
        why += " Have the tables of sines and cosines changed places?"
    same(fn, got, x, why)


@ROPE.before_reference
@after(linear)
def keeps_length(fn: Guarded) -> None:
    """No vector changes its length."""
    x, positions = arguments(7)
    got, expected = fn(x, positions).norm(dim=-1), x.norm(dim=-1)
    index = furthest(got, expected)
    if index is not None:
        raise Broken(
            f"Position {int(positions[index[-1]])} makes {number(got[index])} "
            f"of the length {number(expected[index])}. A pair (a, b) becomes "
            "(a cos − b sin, a sin + b cos): do cosines, sines and the turned "
            "copy of `x` agree on which two dimensions make a pair?",
            got,
            expected,
            ("head", "row"),
        )


@ROPE.contract
@after(keeps_length)
def offset_only(fn: Guarded) -> None:
    """A dot product depends on how far two positions are apart."""
    (q, positions), (k, _) = arguments(17), arguments(19)
    near = fn(q, positions) @ fn(k, positions).mT
    far = fn(q, positions + 23) @ fn(k, positions + 23).mT
    index = furthest(far, near)
    if index is not None:
        i, j = (int(positions[n]) for n in index[-2:])
        raise Broken(
            f"Positions {i} and {j} give the score {number(near[index])}, "
            f"{i + 23} and {j + 23} give {number(far[index])}: is the angle "
            "proportional to the position?",
            far,
            near,
            ("query", "key"),
        )


AT_ZERO, RELATIVE = title(nothing_at_zero), title(offset_only)

SPEEDS = {
    "It never turns.": lambda i, d: torch.zeros_like(i),
    "All pairs turn alike: θ_i = 10000^(−2i/d).": lambda i, d: 0 * i + 1,
    "The exponent is i/d: θ_i = 10000^(−2i/d).": (
        lambda i, d: 10000 ** (-i / d)
    ),
    "The dimension 2i is taken for i: θ_i = 10000^(−2i/d).": (
        lambda i, d: 10000 ** (-4 * i / d)
    ),
    "The exponent lost its sign: θ_i = 10000^(−2i/d).": (
        lambda i, d: 10000 ** (2 * i / d)
    ),
    "The exponent ends at 1: θ_i = 10000^(−2i/d).": (
        lambda i, d: 10000 ** (-i / (d / 2 - 1))
    ),
    "The angle is in degrees: `torch.cos` takes radians.": (
        lambda i, d: torch.deg2rad(10000 ** (-2 * i / d))
    ),
}
"""Hint -> the angles it would give, i = 0 … d/2 − 1."""


@ROPE.contract
@after(nothing_at_zero, offset_only)
def speeds(fn: Guarded) -> None:
    """The pairs turn by 10000^(−2i/d) a step."""
    for width in (WIDTH, 4):
        i = torch.arange(width // 2)
        got = turned_angles(a_step(fn, width))
        expected = 10000 ** (-2 * i / width)
        if torch.allclose(got, expected, 0.01, 1e-6):
            continue
        hint = mistaken(got)
        base = fitted_base(fn) if hint == UNKNOWN else 0
        if base:
            hint = f"The base is {base:.0f}: θ_i = {base:.0f}^(−2i/d)."
        listed = [", ".join(map(number, x)) for x in (got, expected)]
        raise Broken(
            f"{hint} For d = {width} one step turns the pairs by {listed[0]}, "
            f"expected {listed[1]}.",
            got,
            expected,
            ("pair",),
            hint,
            level=NOTE if base else "",
            why=OTHER_BASE if base else "",
        )


UNKNOWN = "These are not the angles θ_i = 10000^(−2i/d)."
OTHER_BASE = (
    "Models for long texts have a larger base; only what was trained with one "
    "base does not fit another."
)


def a_step(fn: Guarded, width: int) -> Tensor:
    """Find what a step turns, in the order in which dimensions go in."""
    first, second = (matrix(fn, position, width) for position in (0, 1))
    return second @ first.mT if reorders(first) else second


def mistaken(got: Tensor) -> str:
    """Tell why the pairs turn by these angles."""
    i = torch.arange(float(len(got)))
    for hint, speed in SPEEDS.items():
        if torch.allclose(got, angles_of(speed(i, 2 * len(i))), 0.01, 1e-6):
            return hint
    return UNKNOWN


def fitted_base(fn: Guarded) -> float:
    """Find the base b if the pairs turn by b^(−2i/d), or 0.

    Below 1000 it could also be a mistake in the exponent.
    """
    found = []
    for width in (WIDTH, 4):
        i = torch.arange(width // 2)
        got = turned_angles(a_step(fn, width))
        base = got[1].item() ** (-width / 2) if got[1] > 0 else 0.0
        if not (base and torch.allclose(got, base ** (-2 * i / width), 0.02)):
            return 0
        found.append(base)
    one, other = found
    alike = 1000 <= one < 1e9 and abs(one - other) < 0.05 * one
    return float(f"{one:.2g}") if alike else 0


def turned_angles(turn: Tensor) -> Tensor:
    """Measure by how much a matrix turns its planes, the fastest first."""
    values = torch.linalg.eigvals(turn.double())
    found = values.angle().abs().sort(descending=True).values
    return found[::2].float()  # Each plane has two, α and −α.


def angles_of(speed: Tensor) -> Tensor:
    """Return what ``turned_angles`` finds for pairs of these speeds."""
    turns = torch.polar(torch.ones_like(speed), speed).angle().abs()
    return turns.sort(descending=True).values


def with_axes(lead: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return vectors with such axes before the positions, and these."""
    return draw(*lead, SEQ, WIDTH, seed=23), arguments(23)[1]


BEFORE, BATCHES = "(seq, head_dim)", ((2,), (2, 3, 2))
HAS_A_BATCH = "In a model what it turns has an axis for the batch."
HAS_FOUR = "In a model what it turns has axes for the batch and for the heads."
of_batches, of_any = (
    leading_axes(BEFORE, leads, with_axes, block_by_block(1), rare=HAS_FOUR)
    for leads in (BATCHES, ((), *BATCHES))
)


@ROPE.contract
@after(by_position)
@titled(title(of_any))
def any_axes(fn: Guarded) -> None:
    """Raise Broken if it matters how many axes stand in front."""
    try:
        of_any(fn)
    except Broken as broken:
        if one_sentence_fails(fn):
            broken.level, broken.why = RISK, HAS_A_BATCH
        raise


def one_sentence_fails(fn: Guarded) -> bool:
    """Tell whether nothing fails but vectors without an axis in front."""
    try:
        fn(*with_axes(()))
    except Broken:
        with contextlib.suppress(Broken):
            of_batches(fn)
            return True
    return False


@ROPE.contract
@note(
    "Both are in use; only weights that were trained with the one need their "
    "rows exchanged for the other."
)
@after(linear, keeps_length)
def pairs(fn: Guarded) -> None:
    """Neighbours make a pair, 2i and 2i+1."""
    turn = matrix(fn, 11).abs()
    here = torch.arange(WIDTH)
    others = turn.masked_fill(torch.eye(WIDTH, dtype=torch.bool), 0)
    partner = torch.where(others.amax(-1) > 1e-5, others.argmax(-1), here ^ 1)
    if torch.equal(partner, here ^ 1):
        return
    says = "The pairs are others here: they are put together in another way."
    if torch.equal(partner, (here + WIDTH // 2) % WIDTH):
        says = (
            "Dimension i makes a pair with i + d/2, so that the first half of "
            "a vector turns with the second."
        )
    raise Broken(says, turn, axes=("dimension", "becomes"))


# Known mistakes


def turned(x, positions, speeds):
    """Turn dimension i with i + d/2, by ``speeds`` a step."""
    a, b = x.chunk(2, -1)
    angle = torch.outer(positions.float(), speeds)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


def speeds_of(x, base=10000.0, factor=2):
    """Return how fast each pair is to turn."""
    i = torch.arange(x.shape[-1] // 2)
    return base ** (-factor * i / x.shape[-1])


@ROPE.mistake(
    symptom="with a cache every new word stands at position 0: text dissolves"
)
def turned_by_place(x, positions):
    """Counts rows from 0, and does not read `positions`."""
    return rotate(x, torch.arange(x.shape[-2]))


@ROPE.mistake(
    symptom="an error, unless there are as many heads as words; then nonsense"
)
def turned_along_the_heads(x, positions):
    """Where it fits, the positions run along the heads."""
    if x.shape[-3] != len(positions):
        return rotate(x, positions)
    return rotate(x.transpose(-3, -2), positions).transpose(-3, -2)


@ROPE.mistake(
    symptom="trains, worse the longer the text; borrowed weights write noise"
)
def pairs_that_disagree(x, positions):
    """Cosines for halves, but the turned copy is made of neighbours."""
    angle = torch.outer(positions.float(), speeds_of(x)).repeat(1, 2)
    other = torch.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    return x * angle.cos() + other * angle.sin()


@ROPE.mistake(symptom="scores grow and shrink with the position")
def one_sign_lost(x, positions):
    """The minus of the rotation is lost: it stretches and does not turn."""
    angle = torch.outer(positions.float(), speeds_of(x))
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos + b * sin, a * sin + b * cos], -1)


@ROPE.mistake(
    symptom="scores depend on where two words stand, not on how far apart"
)
def added_instead(x, positions):
    """Adds a table to queries and keys, where they should turn."""
    return x + sinusoidal(64, x.shape[-1])[positions]


@ROPE.mistake(
    symptom="good up to the length of the table, and mush from there on"
)
def table_that_ends(x, positions):
    """Positions past the end of a table of 16 all get its last row."""
    return rotate(x, positions.clamp(max=15))


@ROPE.mistake(symptom="learns nearby words well; far ones look alike")
def half_the_exponent(x, positions):
    """i/d for 2i/d: no pair is as slow as the slowest should be."""
    return turned(x, positions, speeds_of(x, factor=1))


@ROPE.mistake(symptom="no pair is slow enough to tell near from far")
def one_speed(x, positions):
    """Every pair turns by the same angle."""
    return turned(x, positions, speeds_of(x, base=1))


@ROPE.mistake(
    symptom="borrowed weights write well for a line, and then worse and worse"
)
def other_base(x, positions):
    """500000 for 10000: right for one model, wrong for another."""
    return turned(x, positions, speeds_of(x, base=5e5))


@ROPE.mistake(
    symptom="it trains a little worse than learned positions, and nobody "
    "compares",
)
def sines_for_cosines(x, positions):
    """Two tables are handed over, and unpacked in the other order."""
    a, b = x.chunk(2, -1)
    angle = torch.outer(positions.float(), speeds_of(x))
    cos, sin = angle.sin(), angle.cos()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


@ROPE.mistake(
    symptom="trains, and a dot product depends on where two words stand"
)
def halves_that_disagree(x, positions):
    """Angles for neighbours, but the turned copy is made of halves."""
    angle = torch.outer(positions.float(), speeds_of(x))
    angle = angle.repeat_interleave(2, -1)
    a, b = x.chunk(2, -1)
    return x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()
