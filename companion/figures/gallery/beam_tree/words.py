"""The steps of a beam search in words."""

from companion.figures.gallery.beam_tree.model import Ids, Record
from companion.figures.kit.digits import fixed


def opening(one: Record) -> str:
    """Before the first step."""
    places = "one sentence" if one.beam == 1 else f"{one.beam} sentences"
    return (
        f"A beam of {one.beam}: the search follows at most {places} at a "
        f"time. It begins with “{one.tokens[one.bos]}” alone."
    )


def step_words(one: Record, number: int) -> str:
    """What a step compared, and what became of it."""
    step = one.steps[number]
    count = len(step.shown) + step.others
    kept = [f"{quoted(one, h)} ({fixed(one.totals[h])})" for h in step.kept]
    stays = "stays" if len(kept) == 1 else "stay"
    words = (
        f"Step {number + 1}: of {count} continuations {listed(kept)} {stays}. "
    )
    cut = [h for h in step.shown if h not in step.kept]
    if cut:
        words += (
            f"The best one cut is {quoted(one, cut[0])} "
            f"({fixed(one.totals[cut[0]])}). "
        )
    ended = [h for h in step.kept if one.ends(h)]
    for h in ended:
        words += (
            f"{quoted(one, h)} is finished: {fixed(one.totals[h])} becomes a "
            f"score of {fixed(one.score(h))}. "
        )
    return words.strip()


def last_words(one: Record, greedy: list[int]) -> str:
    """Who wins, and what greedy search says."""
    said = (
        f"A beam of {one.beam} says {quoted(one, one.winner)}: a sum of "
        f"{fixed(one.totals[one.winner])} over {len(one.winner)} tokens, a "
        f"score of {fixed(one.score(one.winner))}."
    )
    if one.beam == 1:
        return said + " With a beam of 1 this is greedy search."
    if tuple(greedy) == one.winner:
        return said + " Greedy search says the same."
    return said + (
        f" Greedy search says “{' '.join(one.names(tuple(greedy)))}”."
    )


def quoted(one: Record, ids: Ids) -> str:
    """The tokens of a beginning, in quotes."""
    return f"“{' '.join(one.names(ids))}”"


def listed(parts: list[str]) -> str:
    """``["a", "b", "c"]`` -> ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
