"""What the bank says about the notes: the numbers stand in their proofs."""

import re
from collections import Counter

import lint_bank
import pytest

from companion.interview.model import notes

pytestmark = pytest.mark.once

STANZA = re.DOTALL | re.MULTILINE
NOTES = notes.read()
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
each = pytest.mark.parametrize("note", NOTES, ids=lambda note: note.id)


def numbers(text):
    """The numbers of a text, without a formula's and without signs."""
    text = re.sub(r"\$[^$]*\$|(?<=\d)[,_](?=\d{3})", "", text)
    return {float(number) for number in NUMBER.findall(text)}


def shown(proof):
    """The source of a test; of a cell, with what it printed."""
    document, separator, name = proof.partition("#")
    if not separator:
        (path,) = lint_bank.tests()[proof]
        source = path.read_text(encoding="utf-8")
        return re.search(rf"^def {proof}\(.*?(?=^\S)", source + "#", STANZA)[0]
    (cell,) = (c for c in lint_bank.cells(document) if c["id"] == name)
    printed = ["".join(out.get("text", "")) for out in cell["outputs"]]
    return "\n".join(["".join(cell["source"]), *printed])


def test_all_questions_of_the_five_notes_are_answered_in_their_order():
    places = [int(note.where.en.split()[1].rstrip(",")) for note in NOTES]
    assert Counter(places) == {1: 10, 2: 7, 3: 8, 4: 22, 5: 8}
    assert places == sorted(places)
    for note in NOTES:
        assert re.findall(r"\d+", note.where.en) == re.findall(
            r"\d+", note.where.zh
        )
    assert all(note.id.startswith("note-") for note in NOTES)


@each
def test_the_number_that_decides_stands_in_its_proof(note):
    assert numbers(note.number.en) <= numbers(shown(note.proof))


@each
def test_both_languages_give_one_number(note):
    assert numbers(note.number.en) == numbers(note.number.zh) != set()
    for language, text in lint_bank.texts(note):
        assert bool(lint_bank.HAN.search(text)) == (language == "zh")
