"""Numbers as text and as tints, exactly as ``parts.js`` writes them."""

from decimal import ROUND_HALF_UP, Decimal, localcontext

HOTTEST = 50
"""Per cent of tone in the hottest cell: more, and the ink is hard to read."""

# Python's own reading of float lets an int through; a type checker at run time
# does not.
Number = float | int
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def fixed(value: Number, places: int = 2) -> str:
    """``-1.005`` -> ``−1.01``; halves go away from zero, as in JavaScript."""
    text = _write(value, f".{places}f")
    if not text.strip("-0."):
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def short(value: Number) -> str:
    """About three digits; powers of ten where a plain number would be long."""
    if value == 0:
        return "0"
    size = abs(value)
    if 0.01 <= size < 10_000:
        return fixed(value, (size < 100) + (size < 10) + (size < 1))
    mantissa, exponent = _write(value, ".1e").split("e")
    power = str(int(exponent)).translate(_RAISED)
    return mantissa.replace("-", "\N{MINUS SIGN}") + "×10" + power


def lowered(letter: str, number: int) -> str:
    """``("x", 12)`` -> ``x₁₂``."""
    return letter + str(number).translate(_LOWERED)


def heat(value: Number, largest: Number = 1) -> str:
    """HTML attributes that tint a table cell: its sign and how large it is."""
    share = min(abs(value) / largest, 1) if largest else 0
    sign = "minus" if value < 0 else "plus"
    percent = _write(HOTTEST * share, ".0f")
    return f'class="{sign}" style="--heat: {percent}%"'


def _write(value: Number, form: str) -> str:
    with localcontext(rounding=ROUND_HALF_UP):
        return format(Decimal(float(value)), form)
