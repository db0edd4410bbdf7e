"""The interview questions: a bank of data, and what shows it.

    bank/      the questions as data, a file a chapter
    model/     what a question is, a mock interview, a learner's progress
    web/       cards, the bank page and the quiz of a chapter
    terminal/  the same questions asked in a terminal
    anki.py    and as a deck; ``notebook.py`` opens one in a notebook's cell

Pages need nothing but Python, because the book is built without the packages
that its chapters compute with.
"""

from companion.interview.model.bank import Question, load
from companion.interview.notebook import practise
from companion.interview.web.page import mock, show

__all__ = ["Question", "load", "mock", "practise", "show"]
