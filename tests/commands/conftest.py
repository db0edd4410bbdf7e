"""What the tests of commands share."""

from pathlib import Path

import pytest

from companion.commands.check.process import Asked, judged
from companion.commands.check.target import Target

BEGIN = """
import os

import torch
from torch import nn
"""


@pytest.fixture
def section_of(tmp_path, monkeypatch):
    """Judge a text as a file, and return all that is known of it."""
    monkeypatch.chdir(tmp_path)  # A name is not folded then.

    def judge(text):
        path = Path("mine.py")
        path.write_text(BEGIN + text, encoding="utf-8")
        section = judged(Target(path), Asked())
        assert not section.error
        return section

    return judge


@pytest.fixture
def told(section_of):
    """Judge a text as a file: its parts by name, and why others are not."""

    def judge(text):
        section = section_of(text)
        parts = {p["name"]: p for p in section.parts}
        left = {one["name"]: one["reason"] for one in section.unjudged}
        return parts, left

    return judge
