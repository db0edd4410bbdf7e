"""Contracts of weights in few bits, with a scale for each row.

Whether 0 stands for 0 or each row has a zero point, whether integers count from
0 or from a negative number, and which of the two nearest is taken at a tie, is
up to the writer. No number may be off by more than half a scale, and no scale
be larger than a zero-symmetric range needs.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from companion.contracts.engine.compare import Broken, draw
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import (
    Guarded,
    OtherNumbers,
    require_several,
)

__all__ = ["QUANTIZE"]

ROW, COLUMN = 5, 11

Triple = tuple[Tensor, Tensor, Tensor]


def weights() -> Tensor:
    """Rows of other sizes and signs: one is negative, one has an outlier."""
    x = draw(ROW, COLUMN, seed=3)
    x[1] *= 20
    x[2] = -x[2].abs() - 0.5
    x[3] *= 0.05
    x[4, 6] = -9.0
    return x


def positive() -> Tensor:
    """No number is below 0."""
    return draw(3, 7, seed=5).abs() + 0.2


def whole(fn: Guarded, name: str, x: object) -> Tensor:
    """Require whole numbers, of whatever number type."""
    if not isinstance(x, Tensor):
        raise Broken(
            f"`{name}` is a {type(x).__name__}: expected a tensor. It is to "
            f"return {fn.component.returns}."
        )
    numbers = x.detach().double()
    if x.is_floating_point() and not torch.equal(numbers, numbers.round()):
        raise OtherNumbers(
            f"`{name}` are no whole numbers: is `.round()` missing, or is the "
            "zero point given in the units of the weight?"
        )
    return numbers


def a_row(fn: Guarded, name: str, x: Tensor, shape: tuple) -> Tensor:
    """Require one number for each row, as (row,) or (row, 1)."""
    rows, columns = shape
    if tuple(x.shape) in ((rows,), (rows, 1)):
        return x.detach().double().reshape(rows, 1)
    likely = {
        1: "Is it one for the whole matrix? A row has its own.",
        columns: "Is it one for each column? Reduce over the last axis.",
    }
    raise Broken(
        f"`{name}` has shape {tuple(x.shape)}: expected ({rows},) or "
        f"({rows}, 1). {likely.get(x.numel(), '')}".rstrip()
    )


def read(fn: Guarded, result: object, args: tuple) -> Triple:
    """Integers (row, column), scales and zero points (row, 1)."""
    require_several(fn, result, 3)
    integers, scale, zero_point = result
    shape = tuple(args[0].shape)
    numbers = whole(fn, "integers", integers)
    if tuple(numbers.shape) != shape:
        raise Broken(
            f"`integers` have shape {tuple(numbers.shape)}: expected {shape}, "
            "that of the weight."
        )
    if not isinstance(scale, Tensor):
        whole(fn, "scale", scale)
    scales = a_row(fn, "scale", scale, shape)
    if zero_point is None or isinstance(zero_point, int):
        zeros = torch.full_like(scales, float(zero_point or 0))
    else:
        zeros = whole(fn, "zero_point", zero_point)
        zeros = zeros.expand(shape[0], 1) if not zeros.ndim else zeros
        zeros = a_row(fn, "zero_point", zeros, shape)
    return numbers, scales, zeros


QUANTIZE = Component(
    name="quantize",
    signature="quantize(weight, bits)",
    returns="integers, scale, zero_point: integers as many as the weight has "
    "numbers, a scale and a zero point for each row",
    shape_contract="It returns integers, and a scale and a zero point a row",
    axes=("row", "column"),
    read=read,
    gradient=False,
    cases=lambda: {
        "in 8 bits": (weights(), 8),
        "in 4 bits": (weights(), 4),
    },
)


def numbers(triple: Triple) -> Tensor:
    """What the integers stand for."""
    integers, scale, zero_point = triple
    return scale * (integers - zero_point)


def hint_for(fn: Guarded) -> str:
    """The hint of the known mistake that returns the same, or nothing."""
    cases = [*QUANTIZE.cases().values(), (positive(), 4)]
    try:
        found = [fn.raw(*args) for args in cases]
    except Broken:
        return ""

    def explains(known: Callable) -> bool:
        guarded = Guarded(QUANTIZE, known)
        try:
            return all(
                torch.allclose(x, y, 1e-5, 1e-7)
                for triple, args in zip(found, cases, strict=True)
                for x, y in zip(triple, guarded.raw(*args), strict=True)
            )
        except Broken:
            return False

    hints = QUANTIZE.hints
    return next((hint for hint in hints if explains(hints[hint])), "")


def refuse(fn: Guarded, says: str) -> None:
    """Raise Broken with the mistake that explains it, if one is known."""
    hint = hint_for(fn)
    raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@QUANTIZE.before_reference
def within_bits(fn: Guarded) -> None:
    """The integers fit into so many bits."""
    for weight in (weights(), positive()):
        for bits in (8, 4, 3):
            integers, _, _ = fn(weight, bits)
            low, high = int(integers.min()), int(integers.max())
            half = 2 ** (bits - 1)
            if not (-half <= low and high < half) and not (
                low >= 0 and high < 2 * half
            ):
                refuse(
                    fn,
                    f"In {bits} bits it returns integers from {low} to {high}: "
                    f"expected from {-half} to {half - 1}, or from 0 to "
                    f"{2 * half - 1}.",
                )


@QUANTIZE.before_reference
def half_a_scale(fn: Guarded) -> None:
    """No number is off by more than half a scale."""
    for weight in (weights(), positive()):
        for bits in (8, 4):
            triple = fn(weight, bits)
            off = (numbers(triple) - weight.double()).abs()
            steps = off / triple[1].abs().clamp(min=1e-30)
            if steps.max() > 0.501:
                row, column = divmod(int(steps.argmax()), weight.shape[1])
                refuse(
                    fn,
                    f"In {bits} bits {weight[row, column]:.4g} in row {row} "
                    f"comes back as {numbers(triple)[row, column]:.4g}, which "
                    f"is {steps.max():.3g} scales off: expected half a one at "
                    "most.",
                )


@QUANTIZE.contract
def fine_enough(fn: Guarded) -> None:
    """No scale is larger than the largest of its row needs."""
    for bits in (8, 4):
        weight = weights()
        scale = fn(weight, bits)[1][:, 0]
        needed = weight.double().abs().amax(1) / (2 ** (bits - 1) - 1)
        ratio = scale / needed
        if ratio.max() > 1.001:
            row = int(ratio.argmax())
            refuse(
                fn,
                f"In {bits} bits row {row} has the scale {scale[row]:.4g}, "
                f"where {needed[row]:.4g} would reach its largest number.",
            )


@QUANTIZE.contract
def rows_apart(fn: Guarded) -> None:
    """A row is stored as it would be alone."""
    weight = weights()
    together = fn(weight, 4)
    for row in range(ROW):
        alone = fn(weight[row : row + 1], 4)
        for one, all_of_them in zip(alone, together, strict=True):
            if not torch.allclose(one[0], all_of_them[row], 1e-5, 1e-9):
                refuse(fn, f"Row {row} alone is stored otherwise than here.")


@QUANTIZE.contract
def exact_zero(fn: Guarded) -> None:
    """0 stays 0, as padding and pruned weights need it."""
    weight = positive()
    weight[:, 2] = 0
    found = numbers(fn(weight, 4))[:, 2]
    if found.abs().max() > 1e-6:
        refuse(fn, f"0 comes back as {found.abs().max():.4g}.")


@QUANTIZE.contract
def zeros(fn: Guarded) -> None:
    """A row of zeros is no division by 0."""
    weight = weights()
    weight[1] = 0
    triple = fn(weight, 4)
    if not triple[1][1] > 0 or numbers(triple)[1].abs().max() > 0:
        refuse(
            fn,
            f"A row of zeros gets the scale {triple[1][1].item():.4g}, and a "
            "division by 0 is NaN: give it any other scale.",
        )


# Known mistakes


def by_row(weight: Tensor, bits: int, change: Callable = torch.round) -> Triple:
    """Symmetric, and right with ``torch.round``."""
    top = 2 ** (bits - 1) - 1
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / top
    integers = change(weight / scale).clamp(-top, top)
    return integers, scale, torch.zeros_like(scale)


def spanned(
    low: Tensor, high: Tensor, weight: Tensor, bits: int, sign: int = -1
) -> Triple:
    """With a zero point; integers from 0 up."""
    top = 2**bits - 1
    scale = (high - low).clamp(min=1e-12) / top
    zero_point = (sign * low / scale).round()
    integers = ((weight / scale).round() + zero_point).clamp(0, top)
    return integers, scale, zero_point


@QUANTIZE.mistake(
    hint="The decimals are cut off: `.to(torch.int8)` alone does not round.",
    symptom="every weight is a little nearer to 0, and the loss is higher",
)
def cut_off(weight, bits):
    """Converted to integers without being rounded."""
    return by_row(weight, bits, torch.trunc)


@QUANTIZE.mistake(
    hint="They are rounded down: `floor` is not `round`.",
    symptom="every weight is a little too small, which adds up in each sum",
)
def rounded_down(weight, bits):
    """All errors have one sign."""
    return by_row(weight, bits, torch.floor)


@QUANTIZE.mistake(
    hint="All rows have the scale of the largest number of all.",
    symptom="one large row, and all others are rounded to a few integers",
)
def one_scale_for_all(weight, bits):
    """The scale of the matrix, written once for each row."""
    top = 2 ** (bits - 1) - 1
    scale = (weight.abs().max() / top).expand(len(weight), 1)
    return (weight / scale).round(), scale, torch.zeros_like(scale)


@QUANTIZE.mistake(
    hint="The largest number overflows: 2^(bits - 1) is one more than fits, "
    "and becomes the most negative one.",
    symptom="the largest weights change their sign",
)
def overflows(weight, bits):
    """Divides by 2^(bits - 1), and lets it wrap."""
    half = 2 ** (bits - 1)
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / half
    integers = (weight / scale).round()
    wrapped = (integers + half) % (2 * half) - half
    return wrapped, scale, torch.zeros_like(scale)


@QUANTIZE.mistake(
    hint="The scale is that of the largest number, and not of the largest "
    "magnitude: `.abs()` is missing, and large negative ones are cut.",
    symptom="the most negative weights of each row are far too small",
)
def without_abs(weight, bits):
    """`max` where the largest magnitude is meant."""
    top = 2 ** (bits - 1) - 1
    scale = weight.amax(1, keepdim=True).clamp(min=1e-3) / top
    integers = (weight / scale).round().clamp(-top - 1, top)
    return integers, scale, torch.zeros_like(scale)


@QUANTIZE.mistake(
    hint="It always takes eight bits, whatever `bits` says.",
    symptom="asked for four bits, packing them two a byte makes noise",
)
def always_eight(weight, bits):
    """127 stands in the code."""
    return by_row(weight, 8)


@QUANTIZE.mistake(
    hint="The scale is upside down: the integer is to be *multiplied* by it to "
    "come back.",
    symptom="the integers are right, and the model says nothing but noise",
)
def upside_down(weight, bits):
    """Returns what it multiplied with."""
    integers, scale, zero_point = by_row(weight, bits)
    return integers, 1 / scale, zero_point


@QUANTIZE.mistake(
    hint="The zero point has the wrong sign: number = scale · (integer - "
    "zero_point).",
    symptom="rows around 0 are nearly right, all others are shifted",
)
def zero_point_of_the_other_sign(weight, bits):
    """Adds the zero point where the other side adds it, too."""
    low = weight.amin(1, keepdim=True).clamp(max=0)
    high = weight.amax(1, keepdim=True).clamp(min=0)
    integers, scale, zero_point = spanned(low, high, weight, bits)
    return integers, scale, -zero_point


@QUANTIZE.mistake(
    hint="Negative numbers become 0: integers from 0 up need a zero point.",
    symptom="half of the weights are gone",
)
def unsigned_without_zero_point(weight, bits):
    """As if there were no negative weights."""
    top = 2**bits - 1
    scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-12) / top
    integers = (weight / scale).round().clamp(0, top)
    return integers, scale, torch.zeros_like(scale)


@QUANTIZE.mistake(
    hint="The range does not reach 0 where all numbers have one sign, so that "
    "the zero point does not fit into the bits.",
)
def range_without_zero(weight, bits):
    """From the smallest number to the largest, wherever 0 is."""
    low, high = weight.amin(1, keepdim=True), weight.amax(1, keepdim=True)
    integers, scale, zero_point = spanned(low, high, weight, bits)
    return integers, scale, zero_point.clamp(0, 2**bits - 1)


@QUANTIZE.mistake()
def divides_by_zero(weight, bits):
    """A row of zeros has the scale 0."""
    top = 2 ** (bits - 1) - 1
    scale = weight.abs().amax(1, keepdim=True) / top
    integers = (weight / scale).round().nan_to_num()
    return integers, scale, torch.zeros_like(scale)


@QUANTIZE.mistake()
def a_scale_a_column(weight, bits):
    """The axis that is reduced is the other one."""
    integers, scale, _ = by_row(weight.T, bits)
    return integers.T, scale[:, 0], torch.zeros_like(scale[:, 0])
