"""Contracts of BLEU: how much of a translation its reference has too.

Papineni et al. (2002), for one reference each and n-grams of up to four words.
Where no n-gram of a length is matched the score is 0, or is smoothed in one of
several ways: there it need only be a small number.
"""

import math

from companion.contracts.decoding.bleu_cases import (
    CAT,
    LONG,
    MISTAKEN,
    MIXED,
    MOUSE,
    REPEATED,
    RIGHT,
    SHORT,
    UNEVEN,
    Bleu,
    Corpus,
    corpus,
)
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, read_number

BLEU = Component(
    name="bleu",
    signature="bleu(hypotheses, references)",
    returns="a score from 0 to 100, a number",
    shape_contract="It returns a number",
    read=read_number,
    cases=lambda: {"for three sentences": MIXED},
)

ALL = (MIXED, SHORT, LONG, REPEATED, UNEVEN)


def mistake(fn: Guarded) -> str:
    """The known mistake whose scores these are, or nothing."""
    scores = [fn(*texts) for texts in ALL]
    known = (
        hint
        for hint, mistaken in MISTAKEN.items()
        if any(explains(bleu, scores) for bleu in mistaken)
    )
    return next(known, "")


def explains(bleu: Bleu, scores: list[float]) -> bool:
    """Whether these are its scores, wherever n-grams of all lengths match."""
    right = [RIGHT(*texts) for texts in ALL]
    each = zip(ALL, right, scores, strict=True)
    return all(close(bleu(*texts), got) for texts, sure, got in each if sure)


def close(one: float, other: float) -> bool:
    """Whether two scores are the same but for rounding."""
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-6)


def require_score(fn: Guarded, texts: Corpus, why: str = "") -> None:
    """Raises Broken unless ``texts`` have the right score."""
    got, expected = fn(*texts), RIGHT(*texts)
    if not close(got, expected):
        hint = mistake(fn) or why
        says = (
            f"For {quoted(texts)} it gives {got:.4g}: expected {expected:.4g}."
        )
        raise Broken(f"{hint} {says}" if hint else says, cause=hint)


def quoted(texts: Corpus) -> str:
    """A corpus as a reader sees it, its first pair only."""
    one, two = (" ".join(side[0]) for side in texts)
    more = f" and {len(texts[0]) - 1} more" if len(texts[0]) > 1 else ""
    return f"'{one}' against '{two}'{more}"


@BLEU.before_reference
def perfect(fn: Guarded) -> None:
    """A translation like its reference has 100."""
    require_score(fn, corpus((CAT, CAT), (MOUSE, MOUSE)))


@BLEU.before_reference
def clipping(fn: Guarded) -> None:
    """A word counts no more often than the reference has it."""
    require_score(fn, REPEATED)


@BLEU.contract
def brief(fn: Guarded) -> None:
    """Whoever leaves words out loses."""
    require_score(fn, SHORT)


@BLEU.contract
def long(fn: Guarded) -> None:
    """Whoever adds words loses precision, and nothing besides."""
    require_score(fn, LONG)


@BLEU.contract
def whole(fn: Guarded) -> None:
    """The n-grams of all sentences are counted together."""
    require_score(fn, MIXED)
    require_score(fn, UNEVEN)
    twice = tuple(side * 2 for side in MIXED)
    require_score(fn, twice, "Twice the same text should have the same score.")


@BLEU.contract
def words_in_order(fn: Guarded) -> None:
    """The order of the words counts."""
    turned = "the old dog sees the little cat"
    require_score(fn, corpus((turned, CAT), (MOUSE, MOUSE)))


@BLEU.contract
def nothing(fn: Guarded) -> None:
    """Where no four words match the score is small, and no error."""
    got = fn(*corpus(("the cat sees a little old dog", CAT)))
    if not 0 <= got < 45:
        raise Broken(
            "Two words in a row match, and never three: the score is "
            f"{got:.4g}, and should be 0, or small if it is smoothed."
        )
    got = fn(*corpus(("x x x x x", CAT)))
    if not 0 <= got < 12:
        raise Broken(
            f"No word matches, and the score is {got:.4g}: expected 0, or "
            "little more if it is smoothed."
        )
