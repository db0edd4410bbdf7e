"""What a decoder reads: the right words in training, its own when it writes."""

from collections.abc import Sequence
from html import escape

from companion.figures.kit.diagram import drawing, label
from companion.figures.kit.digits import lowered
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

WIDE, HIGH, TOP, READS, GIVEN = 56, 34, 62, 142, 172


def teacher_forcing(
    target: Sequence[str], said: Sequence[str], written: Sequence[str]
) -> Figure:
    """Draw side by side what a decoder reads in training, and in writing.

    Args:
        target: The right words, at most four.
        said: What the decoder says at each step of training.
        written: What it says when it reads its own words.

    Raises:
        ValueError: the three are not equally long, or not 1 to 4 words.

    Example:
        >>> teacher_forcing(["I", "see"], ["I", "saw"], ["a", "cat"]).text
        'Teacher forcing. In training it reads ⟨start⟩ I and says I saw; when \
it writes, it reads ⟨start⟩ a and says a cat.'
    """
    n = len(target)
    if not 1 <= n <= 4:
        raise ValueError(f"target: expected 1 to 4 words, got {n}")
    for name, words in {"said": said, "written": written}.items():
        if len(words) != n:
            raise ValueError(f"{name}: expected {n} words, got {len(words)}")
    right, own = (["⟨start⟩", *words[:-1]] for words in (target, written))
    says = (
        f"In training it reads {' '.join(right)} and says {' '.join(said)}; "
        f"when it writes, it reads {' '.join(own)} and says "
        f"{' '.join(written)}."
    )
    panels = [
        _panel("in training", right, said, target, own=False),
        _panel("when it writes", own, written, target, own=True),
    ]
    html = inline(
        "forcing",
        body='<div class="side">'
        + "".join(f'<div class="half">{panel}</div>' for panel in panels)
        + f'</div><p class="unseen">{escape(says)}</p>',
        label="What the decoder reads in training, and when it writes",
        caption="Above each state stands what the decoder says, with a ✓ if it "
        "is right; below, what it reads.",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Teacher forcing. {says}")


def _panel(
    title: str,
    reads: Sequence[str],
    says: Sequence[str],
    target: Sequence[str],
    *,
    own: bool,
) -> str:
    parts = [label(170, 16, title, "title")]
    for i, (read, word) in enumerate(zip(reads, says, strict=True)):
        x = 46 + 83 * i
        good = word == target[i]
        mark = "✓" if good else "✗"
        parts += [
            f'<rect class="state" x="{x - WIDE / 2:g}" y="{TOP}" '
            f'width="{WIDE}" height="{HIGH}" rx="5"/>',
            label(x, TOP + 22, lowered("s", i + 1)),
            label(x, TOP - 14, f"{word} {mark}", "said" if good else "wrong"),
            f'<path class="wire" d="M{x} {READS - 18}V{TOP + HIGH + 5}"/>',
            f'<path class="tip" d="M{x} {TOP + HIGH + 2}l-4 7h8z"/>',
            label(x, READS, read, "reads"),
        ]
        if i:
            parts.append(_beside(x))
        if own and i:  # What was said last comes in from above.
            back = x - 41.5
            parts.append(
                f'<path class="back" d="M{back - 14:g} {TOP - 10}H{back:g}'
                f'V{READS - 5}H{x - 30:g}"/>'
            )
    if not own:
        parts.append(label(170, GIVEN, "the right words, given", "note"))
    else:
        parts.append(label(170, GIVEN, "what it has just said", "note"))
    return drawing(GIVEN + 10, f"{title}: reads {' '.join(reads)}", *parts)


def _beside(x: int) -> str:
    """An arrow from the state before."""
    start, end = x - 83 + WIDE / 2, x - WIDE / 2
    y = TOP + HIGH / 2
    return (
        f'<path class="wire" d="M{start:g} {y:g}H{end - 3:g}"/>'
        f'<path class="tip" d="M{end:g} {y:g}l-7 -4v8z"/>'
    )
