"""Two ways to cut vectors for heads: by columns, and by rows of memory."""

from collections.abc import Sequence

import torch
from torch import Tensor

from companion.figures.kit.diagram import equation
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import word
from companion.multihead import split_heads

_FORMS = (
    ("view, then transpose", "Right: cut the columns"),
    ("view alone", "Wrong: cut the memory"),
)


def head_cut(
    words: Sequence[str], *, d_model: int = 4, num_heads: int = 2
) -> Figure:
    """Show which numbers each head gets, cut rightly and by ``view`` alone.

    Args:
        words: The sentence.
        d_model: How many numbers a word has.
        num_heads: A divisor of ``d_model``, at most 4.

    Raises:
        ValueError: ``num_heads`` is not such a number.

    Example:
        >>> head_cut("我爱", d_model=2).text
        'Two cuts. Right: head 1 gets 我1, 爱1; head 2 gets 我2, 爱2. Wrong: \
head 1 gets 我1, 我2; head 2 gets 爱1, 爱2.'
    """
    if num_heads > 4:
        raise ValueError(f"num_heads: expected at most 4, got {num_heads}")
    places = torch.arange(len(words) * d_model).view(len(words), d_model)
    cuts = (
        split_heads(places.double(), num_heads).long(),
        places.view(num_heads, len(words), -1),
    )
    # What stands at each place of memory.
    names = [(each, i + 1) for each in words for i in range(d_model)]
    blocks, says = [], []
    for (how, title), cut in zip(_FORMS, cuts, strict=True):
        owner = torch.empty(places.numel(), dtype=torch.long)
        for head, pieces in enumerate(cut):
            owner[pieces.flatten()] = head
        tables = [_table("X", places, names, owner, words)]
        tables += [
            _table(f"head {i + 1}", pieces, names, owner, None)
            for i, pieces in enumerate(cut)
        ]
        signs = ["→", *[""] * (num_heads - 1)]
        blocks.append(
            f'<p class="how">{title} <code>{how}</code></p>'
            f"{equation(tables, signs)}"
        )
        gets = "; ".join(
            f"head {i + 1} gets "
            + ", ".join("{}{}".format(*names[at]) for at in pieces.flatten())
            for i, pieces in enumerate(cut)
        )
        says.append(f"{title.split(':')[0]}: {gets}.")
    html = inline(
        "cut",
        body="".join(blocks),
        label="Which numbers each head gets, after two ways to cut",
        caption="Each cell names the word it comes from, and which of its "
        f"{d_model} numbers it is. A colour is a head.",
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, f"Two cuts. {' '.join(says)}")


def _table(
    name: str,
    places: Tensor,
    names: Sequence[tuple[str, int]],
    owner: Tensor,
    words: Sequence[str] | None,
) -> str:
    """Write which number of which word each cell is, in its head's colour."""
    body = ""
    for i, row in enumerate(places.tolist()):
        cells = "".join(
            f'<td class="hue{owner[at]}" style="--heat: 32%">'
            f"{word(names[at][0])}<sub>{names[at][1]}</sub></td>"
            for at in row
        )
        title = f"<th scope=row>{word(words[i])}</th>" if words else ""
        body += f"<tr>{title}{cells}</tr>"
    shape = " × ".join(map(str, places.shape))
    return (
        f'<table class="cells"><caption>{name} <span class="shape">{shape}'
        f"</span></caption><tbody>{body}</tbody></table>"
    )
