"""What the options of all choices have in common and must not have.

A candidate who knows nothing should not find the right one by its place or by
its length.
"""

from collections import Counter
from collections.abc import Iterator

from companion.interview.model.question import Question

LONGEST = 0.15, 0.45
"""The right option is the longest in a share of the choices between these."""


def balance(choices: list[Question]) -> Iterator[str]:
    """Where the right option stands, and how long it is."""
    for count in {len(question.task.options) for question in choices}:
        some = [q for q in choices if len(q.task.options) == count]
        at = Counter(
            [o.right for o in q.task.options].index(True) for q in some
        )
        fair = len(some) / count
        # Three standard deviations of a fair die, and one for small numbers.
        away = 3 * (fair * (1 - 1 / count)) ** 0.5 + 1
        for position in range(count):
            if abs(at[position] - fair) > away:
                yield (
                    f"bank: of {len(some)} choices with {count} options the "
                    f"right one is number {position + 1} in {at[position]}: "
                    f"move some, {fair:.0f} would be even"
                )
        yield from lengths_of_options(some)


def lengths_of_options(choices: list[Question]) -> Iterator[str]:
    """A habit that gives the right option away: never longest, or always."""
    least, most = (share * len(choices) for share in LONGEST)
    for language in ("en", "zh"):
        longest = sum(longest_is_right(q, language) for q in choices)
        if not least <= longest <= most:
            yield (
                f"bank: of {len(choices)} choices the right option is the "
                f"longest in {language} in {longest}: "
                f"{'shorten' if longest > most else 'lengthen'} some"
            )


def longest_is_right(question: Question, language: str) -> bool:
    """Whether the right option is longer than every other."""
    long = [len(getattr(o.text, language)) for o in question.task.options]
    right = next(o for o in question.task.options if o.right)
    mine = len(getattr(right.text, language))
    return mine == max(long) and long.count(mine) == 1
