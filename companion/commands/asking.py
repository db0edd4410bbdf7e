"""What quiz, mock, review and stats share: in which languages to ask."""

from argparse import ArgumentParser, Namespace

from companion.interview.model.words import LANGUAGES
from companion.interview.terminal.screen import Screen

__all__ = ["add_language", "screen_of"]


def add_language(parser: ArgumentParser) -> None:
    """Add in which languages to ask."""
    parser.add_argument(
        "--lang", choices=LANGUAGES, default="both", help="default: both"
    )


def screen_of(options: Namespace) -> Screen:
    """Make the terminal, in the languages that the options name."""
    return Screen(options.lang)
