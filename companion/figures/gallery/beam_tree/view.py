"""The tree of ``beam``: a row a step, a box a continuation."""

from html import escape

from companion.figures.gallery.beam_tree.model import MOST, Ids, Record
from companion.figures.kit.digits import Number, fixed

LANE, BOX_WIDTH, BOX_HEIGHT, ROW = 72, 66, 50, 82
WIDTH = LANE * MOST
ABOVE = -18  # The first box is that much lower than the others.
ROOM = 56  # So wide may a word be; a longer one is squeezed.
LETTER = 7.6

Place = tuple[Number, Number]


def drawing(one: Record) -> str:
    """Draw the tree, a group a step."""
    places = {(): (WIDTH / 2, ABOVE)}
    groups = [_start(one)]
    for number, step in enumerate(one.steps, 1):
        parents = list(places)
        # Children of one parent stand side by side: no line crosses another.
        row = sorted(step.shown, key=lambda ids: _rank(ids, parents, one))
        margin = (WIDTH - LANE * len(row)) / 2
        below = {
            ids: (margin + LANE * (i + 0.5), ROW * number + ABOVE)
            for i, ids in enumerate(row)
        }
        boxes = "".join(
            _edge(one, ids, places[ids[:-1]], at, ids in step.kept)
            for ids, at in below.items()
        ) + "".join(
            _box(one, ids, at, ids in step.kept) for ids, at in below.items()
        )
        # Its own number, so that a step may uncover it.
        groups.append(
            f'<g data-row="{number}" style="--row: {number}">{boxes}</g>'
        )
        places = below
    height = ROW * len(one.steps) + BOX_HEIGHT + ABOVE + 3
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="The tree '
        'of the search; the sentences stand in the table.">'
        f"{''.join(groups)}</svg>"
    )


def _rank(ids: Ids, parents: list[Ids], one: Record) -> tuple[int, float]:
    return parents.index(ids[:-1]), -one.totals[ids]


def _won(one: Record, ids: Ids) -> str:
    return " won" if one.winner[: len(ids)] == ids else ""


def _start(one: Record) -> str:
    x = WIDTH / 2
    return (
        f'<g class="node kept won" transform="translate({x:.1f},{ABOVE})">'
        f'<rect x="-33" y="20" width="{BOX_WIDTH}" height="30" rx="6"/>'
        f'<text y="40" class="word">{escape(one.tokens[one.bos])}</text></g>'
    )


def _edge(one: Record, ids: Ids, above: Place, at: Place, kept: bool) -> str:
    """A line from the box above; it leaves and arrives upright."""
    start, end = above[1] + BOX_HEIGHT, at[1]
    middle = (start + end) / 2
    kind = "kept" + _won(one, ids) if kept else "cut"
    return (
        f'<path class="edge {kind}" d="M{above[0]:.1f} {start:.1f}'
        f"C{above[0]:.1f} {middle:.1f} {at[0]:.1f} {middle:.1f} "
        f'{at[0]:.1f} {end:.1f}"/>'
    )


def _box(one: Record, ids: Ids, at: Place, kept: bool) -> str:
    kind = "kept" + _won(one, ids) if kept else "cut"
    ended = kept and one.ends(ids)
    name = one.tokens[ids[-1]]
    wide = sum(2 if letter >= "\u2e80" else 1 for letter in name) * LETTER
    fit = f' textLength="{ROOM}" lengthAdjust="spacingAndGlyphs"'
    inner = (
        f'<rect class="inner" x="-30" y="3" width="{BOX_WIDTH - 6}" '
        f'height="{BOX_HEIGHT - 6}" rx="4"/>'
    )
    return (
        f'<g class="node {kind}" transform="translate({at[0]:.1f},'
        f'{at[1]:.1f})"><rect x="-33" width="{BOX_WIDTH}" '
        f'height="{BOX_HEIGHT}" rx="6"/>{inner * ended}'
        f'<text y="17" class="word"{fit * (wide > ROOM)}>{escape(name)}'
        f'</text><text y="31">{fixed(one.own(ids))}</text>'
        f'<text y="44">Σ {fixed(one.totals[ids])}</text></g>'
    )
