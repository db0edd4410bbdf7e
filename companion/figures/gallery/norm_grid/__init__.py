"""LayerNorm, RMSNorm and BatchNorm as a table: which numbers move?"""

import re
from collections.abc import Sequence
from html import escape, unescape

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, slider
from companion.figures.kit.tables import word

NORMS = ("LayerNorm", "BatchNorm", "RMSNorm")
ADDED = (-4, -2, 0, 2, 4)
SHOWN = 0.005
"""What moves less does not change the two decimals that are shown."""
CAPTION = """A row is a word, a column is a feature, and a thick line separates
two sentences of one batch. Choose a number, change it, and see which numbers
of the result move: those are framed. Gain and bias are 1 and 0, and BatchNorm
is in training mode, with the padding among its rows."""


def norm_grid(
    x: Float[Tensor, "word feature"],
    words: Sequence[str],
    *,
    sentences: Sequence[int],
    start: tuple[int, int] = (0, 0),
) -> Figure:
    """Show which numbers move when one of them is changed.

    A reader chooses the norm, a word, one of its features and what is added.

    Args:
        x: A row for each word of the batch.
        words: The words, of all sentences.
        sentences: How many words each sentence has.
        start: The word and the feature that are changed at first.

    Raises:
        ValueError: the words are not as many as the rows, or the sentences
            have not as many words together.
    """
    if len(words) != len(x):
        raise ValueError(f"words: expected {len(x)}, got {len(words)}")
    if sum(sentences) != len(x):
        raise ValueError(
            f"sentences: expected {len(x)} words together, got {sum(sentences)}"
        )
    x = x.double()
    owner = [i for i, many in enumerate(sentences) for _ in range(many)]
    features = range(x.shape[1])

    def show(norm: int, feature: int, at: int, added: int) -> Parts:
        changed = x.clone()
        changed[at, feature] += ADDED[added]
        got, usual = (normalised(NORMS[norm], each) for each in (changed, x))
        moved = (got - usual).abs() > SHOWN
        return {
            "in": [fixed(v, 0) for v in changed.flatten().tolist()],
            "in@class": [
                "changed" if (i, j) == (at, feature) else ""
                for i in range(len(x))
                for j in features
            ],
            "out": [fixed(v) for v in got.flatten().tolist()],
            "out@class": [
                "moved" if each else "still"
                for each in moved.flatten().tolist()
            ],
            "says": sentence(
                NORMS[norm], words, owner, moved, (at, feature), ADDED[added]
            ),
        }

    controls = [
        choice("Normalise by", NORMS, 0),
        choice("Change feature", [str(j + 1) for j in features], start[1]),
        choice("of the word", words, start[0]),
        slider("Add", [fixed(v, 0) for v in ADDED], ADDED.index(4)),
    ]
    html = played(
        "normgrid",
        show,
        controls,
        lambda parts: _body(parts, words, sentences, x.shape[1]),
        module=__file__,
        label="Which numbers of a batch move when one is changed",
        caption=CAPTION,
    )
    (at, feature), norm = start, NORMS.index("LayerNorm")
    said = show(norm, feature, at, ADDED.index(4))["says"]
    return Figure(html, f"Norms. {_plain(said)}")


def normalised(norm: str, x: Float[Tensor, "word feature"]) -> Tensor:
    """Normalise all words of a batch, with gain 1 and bias 0.

    Args:
        norm: One of ``NORMS``.
        x: A row for each word.

    Returns:
        The normalised rows.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])
        >>> [round(v, 3) for v in normalised("BatchNorm", x)[:, 0].tolist()]
        [-1.0, 1.0]
    """
    if norm == "BatchNorm":
        return F.batch_norm(x, None, None, training=True)
    if norm == "RMSNorm":
        return F.rms_norm(x, x.shape[-1:], eps=1e-5)
    return F.layer_norm(x, x.shape[-1:])


def sentence(
    norm: str,
    words: Sequence[str],
    owner: Sequence[int],
    moved: Tensor,
    at: tuple[int, int],
    added: int,
) -> str:
    """Say which numbers have moved."""
    row, feature = at
    name, many = word(words[row]), int(moved.sum())
    if not added:
        return "Nothing is added, and nothing moves."
    head = (
        f"Feature {feature + 1} of {name} {'+' if added > 0 else '−'} "
        f"{abs(added)}: {norm} moves {many} of {moved.numel()} numbers"
    )
    others = [i for i in range(len(words)) if i != row and moved[i].any()]
    if not others:
        return f"{head}, all of them of {name} itself."
    before = [i for i in others if owner[i] == owner[row] and i < row]
    apart = [i for i in others if owner[i] != owner[row]]
    told = []
    if before:
        told.append(f"{_named(before, words)}, for which {name} is the future")
    if apart:
        told.append(f"{_named(apart, words)} of another sentence")
    if not told:
        told.append(_named(others, words))
    return f"{head}. Among them are those of {', and '.join(told)}."


def _named(rows: Sequence[int], words: Sequence[str]) -> str:
    return " and ".join(word(words[i]) for i in rows)


def _plain(html: str) -> str:
    return unescape(re.sub("<.*?>", "", html))


def _body(
    parts: Parts, words: Sequence[str], sentences: Sequence[int], width: int
) -> str:
    ends, total = set(), 0
    for many in sentences[:-1]:
        total += many
        ends.add(total - 1)

    def table(part: str, title: str) -> str:
        cells = iter(zip(parts[part], parts[f"{part}@class"], strict=True))
        heads = "".join(f"<th scope=col>{j + 1}</th>" for j in range(width))
        rows = ""
        for i, each in enumerate(words):
            tds = "".join(
                f'<td data-part="{part}" class="{kind}">{text}</td>'
                for text, kind in (next(cells) for _ in range(width))
            )
            end = " class=end" if i in ends else ""
            rows += f"<tr{end}><th scope=row>{word(each)}</th>{tds}</tr>"
        return (
            f'<table class="cells"><caption>{escape(title)}</caption><thead>'
            f"<tr><td></td>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )

    return f"""<div class="controls"></div>
<div class="tables">{table("in", "What comes in")}{table("out", "Normalised")}
</div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
