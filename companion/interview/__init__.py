"""The interview questions: a bank of data, and what shows it in a page.

Needs nothing but Python, because the book is built without the packages that
its chapters compute with.
"""

from companion.interview.model.bank import Question, load
from companion.interview.notebook import practise
from companion.interview.web.page import mock, show

__all__ = ["Question", "load", "mock", "practise", "show"]
