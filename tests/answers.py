"""Compares the numbers that the bank gives with numbers computed."""

import pytest

from companion import CHAPTERS
from companion.interview import load


def answers(name, right, *wrong):
    """Asserts that these are the numbers which the bank gives."""
    task = next(q.task for c in CHAPTERS for q in load(c) if q.id == name)
    given = [task.value, *(mistake.value for mistake in task.mistakes)]
    near = max(task.tolerance / 2, 1e-9)
    assert given == pytest.approx([right, *wrong], abs=near, rel=0)


def parameters(module):
    """How many numbers a module learns."""
    return sum(p.numel() for p in module.parameters())
