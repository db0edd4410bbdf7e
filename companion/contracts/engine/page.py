"""A report as a page shows it: what is wrong, and the numbers beside it."""

import re
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from companion.contracts.engine.compare import TOLERANCE, furthest, gaps, place
from companion.figures.kit.inline import inline
from companion.words import ENGLISH, say

__all__ = ["html", "side_by_side"]

STYLE = """
.companion-check { --verdict: var(--bad); padding: 0.6rem 0.9rem;
  border: 1px solid var(--line); border-left: 4px solid var(--verdict);
  border-radius: 4px; background: var(--paper); }
.companion-check.companion-check:has(> .holds) { --verdict: var(--good); }
/* The doubled class outweighs a notebook's own styles. */
.companion.companion-check p { margin: 0.2rem 0; max-width: 42rem; }
.companion.companion-check .verdict { color: var(--verdict);
  font-weight: 700; }
.companion.companion-check .name { color: var(--muted);
  margin-top: 0.8rem; }
.companion.companion-check > .message { font-size: 1.05rem; }
.companion.companion-check ul { columns: 20rem; margin: 0.3rem 0;
  padding: 0; list-style: none; }
.companion.companion-check li { break-inside: avoid; margin: 0;
  padding-left: 1.4rem; text-indent: -1.4rem; }
.companion-check li::before { content: attr(data-mark); width: 1.4rem;
  color: var(--muted); display: inline-block; text-indent: 0; }
.companion.companion-check code { color: inherit; background: var(--soft);
  border: 0; padding: 0.05rem 0.25rem; font-size: 0.9em; }
.companion-check .pair { display: flex; flex-wrap: wrap; margin: 0.5rem 0;
  gap: 0.4rem 1.6rem; }
.companion.companion-check .cells { font-size: 0.85rem; }
.companion.companion-check .cells :is(th, td) { min-width: 2.1rem;
  padding: 0.2rem; }
.companion.companion-check .cells th { padding: 0 0.2rem; }
.companion.companion-check .cells .off { font-weight: 700;
  box-shadow: inset 0 0 0 2px var(--bad); }
@media (max-width: 30rem) {
  .companion-check { padding: 0.5rem; }
  .companion.companion-check .cells { font-size: 0.75rem;
    border-spacing: 1px; }
  .companion.companion-check .cells :is(th, td) { min-width: 1.8rem;
    padding: 0.2rem 0.1rem; }
}
"""

LEVEL_STYLE = """
.companion-check.companion-check:has(> .risks) { --verdict: var(--orange); }
.companion-check.companion-check:has(> .notes) { --verdict: var(--blue); }
.companion.companion-check .excuse { color: var(--muted); }
"""
"""For a report with risks or notes; any other is as it would be without."""

KINDS = {"✓": "holds", "✗": "fails", "!": "risks", "·": "notes"}
"""Sign -> the class of the verdict, which gives it its colour."""


def html(report) -> str:
    """Write the ``Report`` as self-contained HTML, the same in every run."""
    mark, lang = report.sign, report.lang
    headline = report.say(report.headline)
    parts = [f'<p class="verdict {KINDS[mark]}">{mark} {escape(headline)}</p>']
    parts += [
        f'<p class="name">{coded(report.say(said))}</p>'
        for said in report.assumed
    ]
    groups = report.grouped()
    parts += told(groups, lang)
    whole = not report.failures and not report.untried
    held, untried = (
        [*map(report.say, names)] for names in (report.held, report.untried)
    )
    hold = say(f"{len(held)} hold", lang)
    wait = say(f"{len(untried)} wait", lang)
    parts.append(names_of("✓", hold, held, unfolded=whole))
    parts.append(names_of("·", wait, untried, unfolded=False))
    plain = all(group[0].sign == "✗" for group in groups)
    return inline(
        "check",
        body="\n".join(filter(None, parts)),
        label=headline,
        style=STYLE if plain else STYLE + LEVEL_STYLE,
    )


def told(groups: list[list], lang: str = ENGLISH) -> list[str]:
    """Show the first fault, and fold the others below it; then the rest.

    Where there is no fault, nothing is folded: it is short.
    """
    faults = [group for group in groups if group[0].sign == "✗"]
    rest = groups[len(faults) :]
    if not faults:
        return [broken(group, lang) for group in rest]
    first, *others = faults
    parts = [broken(first, lang)]
    if others:
        many = sum(map(len, others))
        more = f"{many} more fail, often for the same reason"
        shown = [broken(group, lang) for group in others]
        parts.append(folded(say(more, lang), shown))
    if rest:
        many = sum(map(len, rest))
        none = f"{many} is no fault" if many == 1 else f"{many} are no faults"
        shown = [broken(group, lang) for group in rest]
        parts.append(folded(say(none, lang), shown))
    return parts


def broken(failures: list, lang: str = ENGLISH) -> str:
    """Show contracts that fail for one reason, and the first one's numbers."""
    failure = failures[0]
    names = "<br>".join(
        f"{f.sign} {coded(say(f.contract, lang))}" for f in failures
    )
    parts = [
        f'<p class="name">{names}</p>',
        f'<p class="message">{prose(say(failure.message, lang), lang)}</p>',
    ]
    if failure.excuse:
        excuse = escape(say(failure.excuse, lang))
        parts.append(f'<p class="excuse">{excuse}</p>')
    if failure.got is not None:
        got, expected = failure.got, failure.expected
        drawn = side_by_side(got, expected, failure.axes, failure.at, lang)
        parts.append(drawn)
    return "\n".join(parts)


def coded(text: str) -> str:
    """Write text as HTML: code is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def prose(message: str, lang: str = ENGLISH) -> str:
    """Write a message as HTML: code is code, the first sentence stands out."""
    text = coded(message)
    ends = re.search(r"\. " if lang == ENGLISH else r"\. |[。？！]", text)
    size = ends.end() if ends else len(text)
    first, rest = text[:size].rstrip(), text[size:]
    between = " " if lang == ENGLISH else ""  # A Chinese full stop has its own.
    return f"<strong>{first}</strong>{between}{rest}".rstrip()


def names_of(
    mark: str, summary: str, names: list[str], *, unfolded: bool
) -> str:
    """List contracts, folded unless that is all there is to say."""
    if not names:
        return ""
    items = (f'<li data-mark="{mark}">{coded(name)}</li>' for name in names)
    body = f"<ul>{''.join(items)}</ul>"
    return body if unfolded else folded(summary, [body])


def folded(summary: str, parts: list[str]) -> str:
    """Fold what opens when its summary is pressed, without a script."""
    body = "\n".join(parts)
    return f"<details><summary>{summary}</summary>{body}</details>"


# The tensors, beside each other

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
        lang: The language of the words.
    """

    axes: tuple[str, str]
    corner: tuple[int, int]
    block: str
    off: Tensor
    strongest: float
    digits: int
    lang: str = ENGLISH

    def table(self, whose: str, matrix: Tensor) -> str:
        """Draw a matrix: indices on the margins, wrong numbers outlined."""
        caption = f"{whose}, {self.block}" if self.block else whose
        caption = say(caption, self.lang)
        row0, column0 = self.corner
        down = self.axes[0]
        across = escape(say(self.axes[1], self.lang))
        heads = "".join(
            f'<th scope="col">{column0 + j}</th>'
            for j in range(matrix.shape[1])
        )
        rows = (
            '<tr><th scope="row">'
            f"{escape(say(f'{down} {row0 + i}', self.lang))}</th>"
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
        """Draw one number, tinted by its size."""
        kinds = ["minus"] * (x < 0) + ["off"] * off
        named = f' class="{" ".join(kinds)}"' if kinds else ""
        share = abs(x) / self.strongest if x == x else 0.0
        heat = f"--heat:{round(45 * min(share, 1.0))}%"
        return f'<td{named} style="{heat}">{self.number(x)}</td>'

    def number(self, x: float) -> str:
        """Write a number in at most four digits, as far as that goes."""
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
    lang: str = ENGLISH,
) -> str:
    """Draw ``got``, and ``expected`` if known, where they differ most.

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
        lang=lang,
    )
    tables = zip(("yours", "expected"), shown, strict=False)
    drawn = "".join(drawing.table(name, x) for name, x in tables)
    return f'<div class="pair">{drawn}</div>'


def differences(
    got: Tensor, expected: Tensor | None
) -> tuple[Tensor, tuple[int, ...] | None]:
    """Return which numbers are wrong, and where the worst is, if any are."""
    if expected is not None:
        return gaps(got, expected) > TOLERANCE, furthest(got, expected)
    wrong = ~got.isfinite()
    worst = tuple(wrong.nonzero()[0].tolist()) if wrong.any() else None
    return wrong, worst


def outlined(wrong: Tensor, worst: tuple[int, ...] | None) -> Tensor:
    """Return the wrong numbers; only the worst, if nearly all are wrong."""
    if worst is None or 2 * wrong.sum() <= wrong.numel():
        return wrong
    only = torch.zeros_like(wrong)
    only[worst] = True
    return only


def window(index: tuple[int, ...], shape: torch.Size) -> tuple[tuple, tuple]:
    """Cut the part of a tensor around ``index``, and say where it begins."""
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
    """Return the size of the largest number, which gets the full tint."""
    sizes = matrix.abs()[matrix.isfinite()]
    return max(sizes.max().item(), 1e-9) if sizes.numel() else 1.0


def digits(shown: list[Tensor]) -> int:
    """Choose no decimals for whole numbers, enough for small differences."""
    if all((x == x.round()).all() for x in shown):
        return 0
    if len(shown) == 2 and gaps(*shown).max() < 0.02:
        return 4
    return 2
