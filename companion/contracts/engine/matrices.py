"""A learner's matrix beside the expected one, as tables of tinted numbers."""

from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from companion.contracts.engine.compare import TOLERANCE, furthest, gaps, place

ROWS, COLUMNS = 7, 7
"""As much of a matrix as a phone can show."""


@dataclass(frozen=True)
class Drawing:
    """What two tables side by side have in common.

    Attributes:
        axes: Words for rows and columns.
        corner: The row and the column of the first number shown.
        block: Where in the leading axes the matrix stands, in words.
        off: Which of the numbers shown are outlined.
        strongest: The size of a number that gets the strongest tint.
        digits: How many decimals each number has.
    """

    axes: tuple[str, str]
    corner: tuple[int, int]
    block: str
    off: Tensor
    strongest: float
    digits: int

    def table(self, whose: str, matrix: Tensor) -> str:
        """One matrix: indices on the margins, the wrong numbers outlined."""
        caption = f"{whose}, {self.block}" if self.block else whose
        row0, column0 = self.corner
        down, across = (escape(axis) for axis in self.axes)
        heads = "".join(
            f'<th scope="col">{column0 + j}</th>'
            for j in range(matrix.shape[1])
        )
        rows = (
            f'<tr><th scope="row">{down} {row0 + i}</th>'
            + "".join(self.cell(x, off) for x, off in zip(*row, strict=True))
            + "</tr>"
            for i, row in enumerate(
                zip(matrix.tolist(), self.off.tolist(), strict=True)
            )
        )
        width = matrix.shape[1]
        return (
            '<div class="scroll"><table class="cells">'
            f"<caption>{escape(caption)}</caption>"
            f'<thead><tr><td></td><th colspan="{width}">{across}</th></tr>'
            f"<tr><td></td>{heads}</tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )

    def cell(self, x: float, off: bool) -> str:
        kinds = ["minus"] * (x < 0) + ["off"] * off
        named = f' class="{" ".join(kinds)}"' if kinds else ""
        share = abs(x) / self.strongest if x == x else 0.0
        heat = f"--heat:{round(45 * min(share, 1.0))}%"
        return f'<td{named} style="{heat}">{self.number(x)}</td>'

    def number(self, x: float) -> str:
        if x != x:
            return "NaN"
        if abs(x) == torch.inf:
            return "∞" if x > 0 else "−∞"
        if abs(x) >= 9999.5:
            return f"{x:.0e}".replace("-", "−").replace("e+0", "e")
        # Four digits at most, as far as they are before the point.
        digits = self.digits if abs(x) < 100 else 0
        # Adding 0 makes 0 of the -0 that rounding may leave.
        return f"{round(x, digits) + 0.0:.{digits}f}".replace("-", "−")


def side_by_side(
    got: Tensor,
    expected: Tensor | None,
    axes: tuple[str, ...],
    at: tuple[int, ...] = (),
) -> str:
    """``got``, and ``expected`` if it is known, where they differ most.

    Or around the index ``at``, which a message names.
    """
    if got.ndim < 2:
        got = got.reshape(1, -1)
        expected = None if expected is None else expected.reshape(1, -1)
    wrong, worst = differences(got, expected)
    worst = at or worst
    cut, corner = window(worst or (0,) * got.ndim, got.shape)
    shown = [x[cut].double() for x in (got, expected) if x is not None]
    drawing = Drawing(
        axes=(axes[-2], axes[-1]) if len(axes) > 1 else ("", axes[-1]),
        corner=corner,
        block=place(cut[:-2], ()) if got.ndim > 2 else "",
        off=outlined(wrong, worst)[cut],
        strongest=strongest(shown[-1]),
        digits=digits(shown),
    )
    tables = zip(("yours", "expected"), shown, strict=False)
    drawn = "".join(drawing.table(name, x) for name, x in tables)
    return f'<div class="pair">{drawn}</div>'


def differences(
    got: Tensor, expected: Tensor | None
) -> tuple[Tensor, tuple[int, ...] | None]:
    """Which numbers are wrong, and where the worst is, if any are."""
    if expected is not None:
        return gaps(got, expected) > TOLERANCE, furthest(got, expected)
    wrong = ~got.isfinite()
    worst = tuple(wrong.nonzero()[0].tolist()) if wrong.any() else None
    return wrong, worst


def outlined(wrong: Tensor, worst: tuple[int, ...] | None) -> Tensor:
    """The wrong numbers; the worst of them only, if nearly all are wrong."""
    if worst is None or 2 * wrong.sum() <= wrong.numel():
        return wrong
    only = torch.zeros_like(wrong)
    only[worst] = True
    return only


def window(index: tuple[int, ...], shape: torch.Size) -> tuple[tuple, tuple]:
    """The part of a tensor to show around ``index``, and where it begins."""
    starts = [
        max(0, min(i - size // 2, n - size))
        for i, n, size in zip(
            index[-2:], shape[-2:], (ROWS, COLUMNS), strict=True
        )
    ]
    row, column = starts
    part = (slice(row, row + ROWS), slice(column, column + COLUMNS))
    return (*index[:-2], *part), (row, column)


def strongest(matrix: Tensor) -> float:
    """The size of the largest number, which gets the full tint."""
    sizes = matrix.abs()[matrix.isfinite()]
    return max(sizes.max().item(), 1e-9) if sizes.numel() else 1.0


def digits(shown: list[Tensor]) -> int:
    """No decimals for whole numbers, and enough to see a small difference."""
    if all((x == x.round()).all() for x in shown):
        return 0
    if len(shown) == 2 and gaps(*shown).max() < 0.02:
        return 4
    return 2
