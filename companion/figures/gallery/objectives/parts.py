"""What the figure of the objectives is made of: tokens and positions."""

from collections.abc import Sequence
from typing import NamedTuple

from companion.variants import FIRST_WORD

MOST = 12
SENTINELS = ("<X>", "<Y>", "<Z>", "<W>", "<V>", "<U>")


class Piece(NamedTuple):
    """A token, how it looks (``plain``, ``mask``, …) and what it stands for."""

    text: str
    kind: str = "plain"
    note: str = ""


class Lane(NamedTuple):
    """Positions side by side: what stands there, and what is said there."""

    name: str
    reads: list[Piece]
    says: Sequence[str | None] | None = None
    """None where there is no loss; no list at all if there is none anywhere."""


class Grid(NamedTuple):
    """Who sees whom: the positions of a lane ask, those of a lane are seen."""

    name: str
    asks: int
    seen: int
    rows: list[list[bool]]


class Example(NamedTuple):
    """What a tab shows of one draw."""

    text: list[Piece]
    lanes: list[Lane]
    grids: list[Grid]
    counts: dict[str, int]


class Words:
    """The ids of a text: equal words have equal ones, from 4 on.

    ``words`` is the size of BERT's vocabulary. T5's, ``size``, has sentinels
    at its end.

    Args:
        text: Words apart by spaces.
        others: More words for the vocabulary.

    Raises:
        ValueError: ``text`` has fewer than two words, or more than 12.
    """

    def __init__(self, text: str, others: Sequence[str]):
        self.text = text.split()
        if not 2 <= len(self.text) <= MOST:
            raise ValueError(
                f"text: expected 2 to {MOST} words, got {len(self.text)}"
            )
        self.names = list(dict.fromkeys([*self.text, *others]))
        self.words = FIRST_WORD + len(self.names)
        self.size = self.words + len(SENTINELS)

    @property
    def ids(self) -> list[int]:
        """The ids of the text."""
        return [FIRST_WORD + self.names.index(word) for word in self.text]

    def name(self, i: int) -> str:
        """The word or sentinel with this id."""
        if i >= self.words:
            return SENTINELS[self.size - 1 - i]
        return self.names[i - FIRST_WORD]
