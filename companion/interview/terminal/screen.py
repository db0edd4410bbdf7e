"""A terminal: what is printed there, in which language, and what is typed.

Lines are as wide as the terminal, and at most 80 cells. Colour only stresses:
what it says a word or a sign says too.
"""

import io
import shutil
import sys

from rich.cells import cell_len
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text as Styled

from companion.interview.model.question import require
from companion.interview.model.toml import Text
from companion.interview.model.words import CHAPTER, LANGUAGES
from companion.interview.terminal.text import paragraphs, wrapped
from companion.shell import typed

__all__ = ["LANGUAGES", "Screen"]

WIDEST = 80


class Screen:
    """Print the bank's texts in the languages of a learner.

    Args:
        language: en, zh or both.
    """

    def __init__(self, language: str):
        self.language = require("language", language, LANGUAGES)
        size = shutil.get_terminal_size()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A question mark is better than no quiz where 中 cannot be shown.
            sys.stdout.reconfigure(errors="replace")
        self.console = Console(
            width=min(size.columns, WIDEST), height=size.lines, highlight=False
        )

    def texts(self, text: Text) -> list[str]:
        """Choose the languages of a text that are shown."""
        return [getattr(text, each) for each in LANGUAGES[self.language]]

    def words(self, en: str, zh: str) -> str:
        """Put a few words of our own on one line, whatever is shown."""
        return " · ".join(self.texts(Text(en, zh)))

    def place(self, chapter: str, section: str) -> Styled:
        """Name a section by its heading, which is English in the book."""
        name = CHAPTER[chapter]
        return Styled(f"{self.words(name.en, name.zh)}: {section}")

    def show(self, text: Text, mark: str = "", style: str = "") -> None:
        """Print a text of the bank behind ``mark``; further lines hang."""
        for each in self.texts(text):
            for paragraph in paragraphs(each):
                self.line(paragraph, mark, style)
                mark = " " * cell_len(mark)

    def say(self, en: str, zh: str, style: str = "") -> None:
        """Print a line of our own."""
        self.line(Styled(self.words(en, zh)), style=style)

    def line(self, text: Styled, mark: str = "", style: str = "") -> None:
        """Wrap a text and print it."""
        room = max(2, self.console.width - cell_len(mark))
        for piece in wrapped(text, room):
            self.console.print(Styled(mark) + piece, style=style)
            mark = " " * cell_len(mark)

    def command(self, *words: str) -> None:
        """Print what to type, on one line however long, so that it copies."""
        self.console.print(Styled(f"  {typed(*words)}"), soft_wrap=True)

    def heading(self, text: Text) -> None:
        """Print a heading."""
        self.console.print()
        self.say(text.en, text.zh, "bold")

    def code(self, source: str) -> None:
        """Print Python, in colour where there is some."""
        coloured = Syntax(source, "python", theme="ansi_dark").highlight(source)
        coloured.rstrip()
        self.console.print()
        self.console.print(coloured, overflow="fold")
        self.console.print()

    def ask(self, en: str, zh: str) -> str:
        """Ask for a line; q, Ctrl-D and the end of a file end the quiz.

        Raises:
            EOFError: The quiz is to end.
            KeyboardInterrupt: Ctrl-C.
        """
        self.console.print()
        *above, last = wrapped(Styled(self.words(en, zh)), self._room)
        for line in above:
            self.console.print(line, style="yellow")
        self.console.print(last, style="yellow", end=" > ")
        answer = input()
        if not sys.stdin.isatty():
            # Nobody has pressed Enter here.
            self.console.print()
        if answer.strip().lower() == "q":
            raise EOFError
        return answer

    @property
    def _room(self) -> int:
        # Beside the last line of a prompt somebody types.
        return max(2, self.console.width - 8)
