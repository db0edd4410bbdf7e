"""A beam search as a tree: what each step considers, keeps and cuts."""

from collections.abc import Callable, Sequence
from html import escape

from companion.decoding import greedy_decode
from companion.figures.gallery.beam_tree.model import Ids, Record, record
from companion.figures.gallery.beam_tree.view import drawing
from companion.figures.gallery.beam_tree.words import (
    last_words,
    opening,
    step_words,
)
from companion.figures.kit.digits import fixed
from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, buttons, played, steps
from companion.figures.kit.tables import table

BEAMS = (1, 2, 3)
START = 2
LONGEST = 8
CAPTION = """Each row is a step. Under every word stands its log-probability,
and after Σ the sum of those on the way to it. The boxes of a row are the best
continuations of the step, at most five. Solid boxes stay in the beam, dashed
ones are cut, and a doubled frame is a finished sentence, which leaves the beam
and takes its place along. Sums decide who stays; in the end the score decides,
which is the sum divided by the length penalty. Where the beams
disagree, look for the word that a narrow one cuts and a wider one keeps."""


def beam_tree(
    step_fn: Callable,
    tokens: Sequence[str],
    *,
    bos: int,
    eos: int,
    max_len: int,
    alpha: float = 0.6,
) -> Figure:
    """A beam search step by step, with a beam of 1, 2 and 3.

    The search is ``companion.decoding.beam_search`` itself, watched.

    Args:
        step_fn: What ``beam_search`` takes: rows of ids to logits.
        tokens: The names of the ids.
        bos: The id that begins each row.
        eos: The id that ends a sentence.
        max_len: The most tokens a sentence may have, up to 8.
        alpha: The exponent of the length penalty.

    Raises:
        ValueError: ``max_len`` is above 8, there are not as many names as
            logits, or as ``beam_search``.
        TypeError: as ``beam_search``.
    """
    if max_len > LONGEST:
        raise ValueError(f"max_len: expected 1 to {LONGEST}, got {max_len}")
    settings = {"bos": bos, "eos": eos, "max_len": max_len, "alpha": alpha}
    records = [
        record(step_fn, list(tokens), beam=beam, **settings) for beam in BEAMS
    ]
    return _figure(records, greedy_decode(step_fn, bos, eos, max_len))


def _figure(records: list[Record], greedy: list[int]) -> Figure:
    """The figure: a frame for each beam, and for each step of its search."""
    trees = [drawing(one) for one in records]

    def frame(beam: int, step: int) -> Parts:
        one = records[beam]
        over = step == len(one.steps) + 1
        rows = min(step, len(one.steps))
        if over:
            says = last_words(one, greedy)
        else:
            says = step_words(one, step - 1) if step else opening(one)
        return {
            "tree": trees[beam],
            "tree@class": f"picture{' over' * over}",
            "tree@style": f"--rows: {rows}",
            "kept": _table(one, rows, over),
            "says": escape(says),
        }

    counts = [len(one.steps) + 2 for one in records]
    html = played(
        "beam",
        frame,
        [
            buttons([f"Beam {width}" for width in BEAMS], BEAMS.index(START)),
            steps(counts, ("Start", "Back", "Next"), last=True),
        ],
        _body,
        module=__file__,
        label="Beam search as a tree",
        caption=CAPTION,
    )
    return Figure(
        html, f"Beam search. {last_words(records[BEAMS.index(START)], greedy)}"
    )


def _table(one: Record, rows: int, over: bool) -> str:
    """What is in the beam after so many steps, and what has finished."""
    kept = one.alive(rows)
    lines = [
        f"<td{' data-won' * won}>{_state(one, h, won)}</td>"
        f"<td>{fixed(one.totals[h])}</td><td>{_score(one, h)}</td>"
        for h, won in ((h, over and h == one.winner) for h in kept)
    ]
    names = [" ".join(one.names(h)) or one.tokens[one.bos] for h in kept]
    heads = ["state", "Σ log p", "score"]
    return table("kept", "Sentences", heads, names, lines)


def _state(one: Record, ids: Ids, won: bool) -> str:
    if won:
        return "wins"
    return "finished" if one.ends(ids) else "in the beam"


def _score(one: Record, ids: Ids) -> str:
    # What max_len has cut competes as it is.
    competes = one.ends(ids) or len(ids) == one.max_len
    return fixed(one.score(ids)) if competes else "–"


def _body(parts: Parts) -> str:
    """Everything the figure shows without scripts: the whole tree."""
    return (
        '<div class="controls"></div>'
        f'<p class="says" aria-live="polite" data-part="says">{parts["says"]}'
        f'</p><div class="both"><div class="{parts["tree@class"]}" '
        f'style="{parts["tree@style"]}" data-part="tree">{parts["tree"]}</div>'
        f'<div class="kept" data-part="kept">{parts["kept"]}</div></div>'
    )
