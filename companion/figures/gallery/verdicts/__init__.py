"""A table of words, coloured by whether they are good news."""

from collections.abc import Collection, Mapping, Sequence
from html import escape

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import table

SIGNS = {"good": "✓", "bad": "✗", "fair": "~"}


def verdicts(
    tables: Mapping[str, Mapping[str, Sequence[str]]],
    columns: Sequence[str],
    *,
    good: Collection[str],
    bad: Collection[str],
    caption: str = "",
) -> Figure:
    """Show tables of words beside each other, in colour and with a sign.

    Args:
        tables: By name; each has a word for every column, by the row's name.
        columns: What the columns are called, alike in every table.
        good: The words that are good news.
        bad: Those that are bad news; the others are neither.
        caption: What the reader should see.

    Raises:
        ValueError: a row has more or fewer words than there are columns.

    Example:
        >>> rows = {"wash": ["yes"], "throw": ["no"]}
        >>> verdicts({"cat": rows}, ["may I"], good=["yes"], bad=["no"]).text
        'Verdicts. cat: wash yes; throw no.'
    """
    shown, told = [], []
    for name, rows in tables.items():
        for title, words in rows.items():
            if len(words) != len(columns):
                raise ValueError(
                    f"{name}, {title}: expected {len(columns)} words, "
                    f"got {len(words)}"
                )
        cells = [
            "".join(_cell(each, good, bad) for each in words)
            for words in rows.values()
        ]
        shown.append(table("verdict", escape(name), columns, list(rows), cells))
        said = (f"{title} {', '.join(w)}" for title, w in rows.items())
        told.append(f"{name}: {'; '.join(said)}")
    html = inline(
        "verdicts",
        body=f'<div class="side">{"".join(shown)}</div>',
        label="Verdicts: " + ", ".join(tables),
        caption=caption,
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    return Figure(html, "Verdicts. " + ". ".join(told) + ".")


def _cell(said: str, good: Collection[str], bad: Collection[str]) -> str:
    tone = "good" if said in good else "bad" if said in bad else "fair"
    return f'<td class="{tone}">{SIGNS[tone]} {escape(said)}</td>'
