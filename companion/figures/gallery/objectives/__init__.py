"""One text, four ways to learn from it: BERT, GPT, T5 and BART."""

from collections.abc import Sequence
from html import escape

import torch

from companion.figures.gallery.objectives.model import bart, bert, gpt, t5
from companion.figures.gallery.objectives.parts import Example, Words
from companion.figures.gallery.objectives.view import panel
from companion.figures.gallery.objectives.words import position, summary
from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline

TEXT = "the teacher bought a flower . she loves it ."
OTHERS = ("river", "seven", "blue", "slowly")
SEEDS = (88, 9, 8, 5)
MODELS = ("BERT", "GPT", "T5", "BART")
DRAWS = 5
CAPTION = """The same text, as four models learn from it: what each reads, what
it must say, and at how many positions a loss teaches it. Choose a position by a
click or with the arrow keys: what it sees is underlined in blue, and is its row
in the grids, where rows ask. Here {share}&nbsp;% of the tokens are damaged,
T5's gaps are short, and the draws are picked, so that a short text shows every
kind. The published models take 15&nbsp;% (BERT, T5) and 30&nbsp;% (BART)."""


def objectives(
    text: str = TEXT,
    *,
    share: float = 0.3,
    seeds: Sequence[int] = SEEDS,
    others: Sequence[str] = OTHERS,
) -> Figure:
    """A text as BERT, GPT, T5 and BART read it, and what each must say.

    The damage is done by ``companion.variants``, the masks are those of
    ``companion.masks``.

    Args:
        text: Words apart by spaces, 2 to 12. BART moves what ends with a stop.
        share: How much of it is damaged.
        seeds: One a draw, 1 to 5.
        others: More words that BERT may draw at random.

    Raises:
        ValueError: ``text`` has too few words or too many, ``seeds`` likewise,
            or ``share`` is not between 0 and 1.
    """
    words = Words(text, others)
    if not 1 <= len(seeds) <= DRAWS:
        raise ValueError(f"seeds: expected 1 to {DRAWS}, got {len(seeds)}")
    tabs = {
        model: [_page(model, e) for e in examples(model, words, share, seeds)]
        for model in MODELS
    }
    html = inline(
        "objectives",
        body=_body({model: pages[0] for model, pages in tabs.items()}),
        label="One text, four objectives",
        caption=CAPTION.format(share=f"{100 * share:.0f}"),
        data={"models": MODELS, "tabs": list(tabs.values())},
        **figure_parts(__file__),
    )
    return Figure(html, f"Objectives. BERT. {tabs['BERT'][0]['says']}")


def examples(
    model: str, words: Words, share: float, seeds: Sequence[int]
) -> list[Example]:
    """The draws of one model, from a fresh generator each; GPT has none."""
    if model == "GPT":
        return [gpt(words)]
    make = {"BERT": bert, "T5": t5, "BART": bart}[model]
    return [
        make(words, torch.Generator().manual_seed(seed), share)
        for seed in seeds
    ]


def start(example: Example) -> tuple[int, int]:
    """The position that is looked at first: one with a loss, near the middle.

    Where none has one, the first.
    """
    lane = len(example.lanes) - 1
    asked = [i for i, said in enumerate(example.lanes[lane].says or []) if said]
    return lane, asked[2 * len(asked) // 5] if asked else 0


def _page(model: str, example: Example) -> dict:
    """All that the page shows of one draw."""
    chosen = start(example)
    return {
        "html": panel(example, chosen),
        "start": chosen,
        "says": summary(model, example),
        "here": [
            [position(example, number, i) for i in range(len(lane.reads))]
            for number, lane in enumerate(example.lanes)
        ],
        "grids": [
            {
                "asks": grid.asks,
                "seen": grid.seen,
                "rows": ["".join("01"[s] for s in row) for row in grid.rows],
            }
            for grid in example.grids
        ],
    }


def _body(pages: dict[str, dict]) -> str:
    """All four without scripts: the first one open, the others to unfold."""
    first, *others = pages
    return (
        f'<div class="controls"><span class="title">{first}</span></div>'
        f'<p class="says" aria-live="polite">{escape(pages[first]["says"])}</p>'
        f'<div class="panel">{pages[first]["html"]}</div>'
        '<div class="others">'
        + "".join(
            f"<details><summary>{model}</summary>"
            f"<p>{escape(pages[model]['says'])}</p>{pages[model]['html']}"
            "</details>"
            for model in others
        )
        + "</div>"
    )
