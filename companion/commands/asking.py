"""What quiz, mock, review and stats share: their options, and the bank."""

from argparse import ArgumentParser, Namespace

from companion import CHAPTERS
from companion.interview.bank import load
from companion.interview.card import filled
from companion.interview.question import Question
from companion.interview.terminal import LANGUAGES, Screen


def add_language(parser: ArgumentParser) -> None:
    """In which languages to ask."""
    parser.add_argument(
        "--lang", choices=LANGUAGES, default="both", help="default: both"
    )


def screen_of(options: Namespace) -> Screen:
    """The terminal, in the languages that the options name."""
    return Screen(options.lang)


def every_question() -> list[Question]:
    """The whole bank, in the order of the course.

    Raises:
        ValueError: the bank has a fault.
    """
    # TRANSITIONAL: filled, until every question has every key.
    return [
        filled(question) for chapter in CHAPTERS for question in load(chapter)
    ]
