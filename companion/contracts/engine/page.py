"""A report as a page shows it: what is wrong, and the numbers beside it."""

import re
from html import escape

from companion.contracts.engine.matrices import side_by_side
from companion.figures.kit.inline import inline

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


def html(report) -> str:
    """The ``Report`` as self-contained HTML, the same in every run."""
    mark, kind = ("✓", "holds") if report.passed else ("✗", "fails")
    parts = [f'<p class="verdict {kind}">{mark} {escape(report.headline)}</p>']
    first, *others = [broken(group) for group in report.grouped()] or [""]
    parts.append(first)
    if others:
        more = f"{len(report.failures) - len(report.grouped()[0])} more fail"
        parts.append(folded(f"{more}, often for the same reason", others))
    parts.append(names_of("✓", "hold", report.held, unfolded=report.passed))
    parts.append(names_of("·", "wait", report.untried, unfolded=False))
    return inline(
        "check",
        body="\n".join(filter(None, parts)),
        label=report.headline,
        style=STYLE,
    )


def broken(failures: list) -> str:
    """Contracts that fail for one reason, and the numbers of the first."""
    failure = failures[0]
    names = "<br>".join(f"✗ {escape(f.contract)}" for f in failures)
    parts = [
        f'<p class="name">{names}</p>',
        f'<p class="message">{prose(failure.message)}</p>',
    ]
    if failure.got is not None:
        got, expected = failure.got, failure.expected
        drawn = side_by_side(got, expected, failure.axes, failure.at)
        parts.append(drawn)
    return "\n".join(parts)


def prose(message: str) -> str:
    """A message as HTML: code is code, and the first sentence stands out."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(message))
    first, stop, rest = text.partition(". ")
    return f"<strong>{first}{stop.rstrip()}</strong> {rest}".rstrip()


def names_of(mark: str, verb: str, names: list[str], *, unfolded: bool) -> str:
    """A list of contracts, folded unless it is all there is to say."""
    if not names:
        return ""
    items = (f'<li data-mark="{mark}">{escape(name)}</li>' for name in names)
    body = f"<ul>{''.join(items)}</ul>"
    return body if unfolded else folded(f"{len(names)} {verb}", [body])


def folded(summary: str, parts: list[str]) -> str:
    """What opens when its summary is pressed, without a script."""
    body = "\n".join(parts)
    return f"<details><summary>{summary}</summary>{body}</details>"
