"""When to ask again: what is due today, by FSRS.

Nothing is stored for it. A question's state follows from its answers, so that
it cannot disagree with them. FSRS is the scheduler of Anki; the package
``fsrs`` is its authors' own.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from companion.extras import extra
from companion.interview.model.mock import GOOD, WEAK
from companion.interview.model.progress import Answer
from companion.interview.model.question import Question

with extra("interview"):
    from fsrs import Card, Rating, Scheduler

__all__ = ["cards", "due", "next_due", "rating"]

# Whole days only, and the same ones each time.
SCHEDULER = Scheduler(
    learning_steps=(), relearning_steps=(), enable_fuzzing=False
)


def cards(answers: Iterable[Answer]) -> dict[str, Card]:
    """Compute the state of each question that was answered, by its id.

    Args:
        answers: What was answered; the order is that of their times.
    """
    found: dict[str, Card] = {}
    for answer in sorted(answers, key=lambda answer: answer.at):
        # The number of a card is for who stores cards. Without one, it waits
        # for the clock.
        card = found.get(answer.question) or Card(card_id=0)
        when = datetime.fromtimestamp(answer.at, UTC)
        found[answer.question], _ = SCHEDULER.review_card(
            card, rating(answer.mark), when
        )
    return found


def rating(mark: float) -> Rating:
    """Turn a mark into a rating; a right answer says nothing of ease."""
    if mark < WEAK:
        return Rating.Again
    return Rating.Good if mark >= GOOD else Rating.Hard


def due(
    questions: Sequence[Question], answers: Iterable[Answer], now: datetime
) -> list[Question]:
    """Find the questions to repeat today, the longest due first.

    Args:
        questions: Where to look; one never answered is not due. One answered
            only while a wrong clock was days ahead of ``now`` is due, because
            nobody knows when that was.
        answers: What was answered.
        now: A time of the day, which is that of the learner's own clock.
    """
    known, doubted = _dated(answers, now)
    states, today = cards(known), now.astimezone().date()
    times = dict.fromkeys(doubted, now)
    times |= {name: state.due for name, state in states.items()}
    ready = [
        question
        for question in questions
        if question.id in times
        and times[question.id].astimezone().date() <= today
    ]
    return sorted(ready, key=lambda question: times[question.id])


def next_due(
    questions: Sequence[Question], answers: Iterable[Answer], now: datetime
) -> datetime | None:
    """Find when the next question is due; None if none was answered."""
    known, _ = _dated(answers, now)
    states = cards(known)
    return min(
        (states[q.id].due for q in questions if q.id in states), default=None
    )


def _dated(
    answers: Iterable[Answer], now: datetime
) -> tuple[list[Answer], list[str]]:
    """Set apart the questions whose answer claims to be of the future."""
    known, doubted = [], []
    for answer in answers:
        if answer.at <= (now + timedelta(days=1)).timestamp():
            known.append(answer)
        else:
            doubted.append(answer.question)
    return known, doubted
