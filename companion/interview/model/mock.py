"""A mock interview: which questions it asks, and what it says at the end.

The page picks the same questions for the same seed, so all of this is written
twice, here and in JavaScript, and a test compares them. What is drawn at random
comes from mulberry32, a generator of 32 bits that is three lines in both.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from companion import CHAPTERS
from companion.interview.model.question import LEVELS, Question, require

__all__ = ["GOOD", "LARGEST_SEED", "WEAK", "Draws", "Report", "pick", "report"]

LARGEST_SEED = 2**32 - 1
GOOD, WEAK = 0.75, 0.5
"""From which mean mark on something is a strength; below which it is a gap."""


class Draws:
    """Draw random whole numbers, the same in Python and JavaScript.

    mulberry32, by Tommy Ettinger, in the public domain. With 32-bit unsigned
    numbers, each draw is::

        state = state + 0x6D2B79F5
        t = (state ^ state >>> 15) * (state | 1)
        t = t ^ (t + (t ^ t >>> 7) * (t | 61))
        draw = t ^ t >>> 14
    """

    def __init__(self, seed: int):
        self.state = seed

    def below(self, bound: int) -> int:
        """Draw a whole number from 0 up, smaller than ``bound``."""
        self.state = state = _32(self.state + 0x6D2B79F5)
        t = _32((state ^ state >> 15) * (state | 1))
        t ^= _32(t + _32((t ^ t >> 7) * (t | 61)))
        return (t ^ t >> 14) * bound >> 32

    def shuffled(self, things: Iterable[str]) -> list[str]:
        """Shuffle as Fisher and Yates do, from the last place."""
        things = list(things)
        for last in range(len(things) - 1, 0, -1):
            other = self.below(last + 1)
            things[last], things[other] = things[other], things[last]
        return things


def pick(
    questions: Sequence[Question],
    *,
    level: str = "senior",
    minutes: int = 30,
    chapters: Collection[str] = (),
    seed: int = 0,
) -> list[Question]:
    """Pick the questions of one interview, in the order they are asked.

    The chapters are its topics, in an order that is drawn. In each it climbs
    from junior to ``level``, a question a level, and begins again with the
    first topic while there are minutes left. Of the questions that still fit
    one is drawn among those whose ``asks``, then whose ``kind``, came least
    often so far. In the end each topic's questions stand together, from junior
    up.

    Args:
        questions: Chapter by chapter in the order of the course, for what is
            drawn depends on their order. Those that only this course would
            ask are passed over.
        level: The highest.
        minutes: How long it may take, by the questions' own ``minutes``.
        chapters: From these; empty means from all.
        seed: From 0 to ``LARGEST_SEED``.

    Raises:
        ValueError: An argument is not one of these, or no question fits.

    Example:
        >>> from companion.interview.model.bank import course
        >>> [q.minutes for q in pick(course(), minutes=6, seed=2)]
        [2, 3]
    """
    _check(level, chapters, seed)
    levels = LEVELS[: LEVELS.index(level) + 1]
    pool = [
        question
        for question in questions
        if question.level in levels
        and not question.course
        and (not chapters or question.chapter in chapters)
    ]
    _check_minutes(minutes, pool)
    draws = Draws(seed)
    topics = draws.shuffled(dict.fromkeys(q.chapter for q in pool))
    picked = _climbed(pool, topics, levels, minutes, draws)
    place = {topic: number for number, topic in enumerate(topics)}
    return sorted(
        picked, key=lambda q: (place[q.chapter], LEVELS.index(q.level))
    )


@dataclass(frozen=True)
class Report:
    """What an interview showed.

    Attributes:
        mark: The mean of all marks, or None if nothing was answered.
        strengths: Chapters, then kinds of question, from ``GOOD`` up.
        gaps: Chapters, then kinds of question, below ``WEAK``.
        reread: Chapters with an answer below ``GOOD``, the weakest first, and
            the sections that teach these answers.
    """

    mark: float | None
    strengths: tuple[str, ...]
    gaps: tuple[str, ...]
    reread: tuple[tuple[str, tuple[str, ...]], ...]


def report(questions: Sequence[Question], marks: Mapping[str, float]) -> Report:
    """Report on an interview.

    Args:
        questions: What was asked.
        marks: From 0 to 1, by the question's id. A question without a mark
            was not answered and counts for nothing.
    """
    answered = [q for q in questions if q.id in marks]
    means = {
        **_means(answered, marks, "chapter"),
        **_means(answered, marks, "asks"),
    }
    again: dict[str, list[str]] = {}
    for question in answered:
        if marks[question.id] < GOOD:
            sections = again.setdefault(question.chapter, [])
            if question.section not in sections:
                sections.append(question.section)
    given = [marks[q.id] for q in answered]
    return Report(
        mark=sum(given) / len(given) if given else None,
        strengths=tuple(k for k, mean in means.items() if mean >= GOOD),
        gaps=tuple(k for k, mean in means.items() if mean < WEAK),
        reread=tuple(
            (chapter, tuple(again[chapter]))
            for chapter in sorted(again, key=means.__getitem__)
        ),
    )


def _climbed(
    pool: list[Question],
    topics: Sequence[str],
    levels: Sequence[str],
    left: int,
    draws: Draws,
) -> list[Question]:
    picked, used = [], Counter()
    while True:
        before = len(picked)
        for topic in topics:
            for level in levels:
                at = [q for q in pool if (q.chapter, q.level) == (topic, level)]
                fits = [q for q in at if q.minutes <= left]
                if fits:
                    one = _drawn(fits, used, draws)
                    pool.remove(one)
                    picked.append(one)
                    used.update(_counted(one))
                    left -= one.minutes
        if len(picked) == before:
            return picked


def _drawn(fits: list[Question], used: Counter, draws: Draws) -> Question:
    def often(question):
        return tuple(used[name] for name in _counted(question))

    least = min(map(often, fits))
    rare = [question for question in fits if often(question) == least]
    return rare[draws.below(len(rare))]


def _counted(question: Question) -> tuple[tuple[str, str], ...]:
    # In pairs, for "code" is something to ask for, and a way to answer.
    return ("asks", question.asks), ("kind", question.kind)


def _means(
    answered: Sequence[Question], marks: Mapping[str, float], key: str
) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for question in answered:
        groups.setdefault(getattr(question, key), []).append(marks[question.id])
    return {name: sum(all_) / len(all_) for name, all_ in groups.items()}


def _check(level: str, chapters: Collection[str], seed: int) -> None:
    require("level", level, LEVELS)
    for chapter in chapters:
        require("chapters", chapter, CHAPTERS)
    if not 0 <= seed <= LARGEST_SEED:
        raise ValueError(
            f"seed: expected a whole number from 0 to {LARGEST_SEED}, "
            f"got {seed}"
        )


def _check_minutes(minutes: int, pool: Sequence[Question]) -> None:
    if not pool:
        raise ValueError("questions: expected one that fits, got none")
    shortest = min(question.minutes for question in pool)
    if minutes < max(shortest, 1):
        raise ValueError(
            f"minutes: expected {max(shortest, 1)} or more, for the shortest "
            f"question here, got {minutes}"
        )


def _32(number: int) -> int:
    return number & 0xFFFFFFFF
