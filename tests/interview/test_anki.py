"""The Anki deck: a valid collection, both languages, ids that stay."""

import json
import re
import sqlite3
import zipfile
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest
from interview.small_bank import changed, every_kind, question

from companion import CHAPTERS
from companion.commands import main
from companion.interview import anki
from companion.interview.anki import MODEL_ID, back, front, write
from companion.interview.model.bank import course

pytestmark = pytest.mark.once

VOID = {"br", "hr"}


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The deck of the whole bank."""
    path = tmp_path_factory.mktemp("deck") / "out.apkg"
    write(course(), path)
    return path


def collection(path, folder):
    """A connection to the SQLite file inside."""
    with zipfile.ZipFile(path) as package:
        assert package.testzip() is None
        assert package.namelist() == ["collection.anki2", "media"]
        assert json.loads(package.read("media")) == {}
        package.extract("collection.anki2", folder)
    return closing(sqlite3.connect(folder / "collection.anki2"))


def notes(path, folder):
    """Id -> guid, front and back of every note."""
    with collection(path, folder) as connection:
        rows = connection.execute("SELECT guid, flds FROM notes").fetchall()
    found = {}
    for guid, fields in rows:
        name, asked, answered = fields.split("\x1f")
        found[name] = guid, asked, answered
    return found


def test_every_question_is_a_note_in_the_deck_of_its_chapter(deck, tmp_path):
    with collection(deck, tmp_path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == (
            "ok",
        )
        ((decks, models),) = connection.execute("SELECT decks, models FROM col")
        rows = connection.execute(
            "SELECT notes.sfld, notes.mid, cards.did, cards.due, cards.ord "
            "FROM cards JOIN notes ON cards.nid = notes.id ORDER BY cards.id"
        ).fetchall()
    names = {int(key): deck["name"] for key, deck in json.loads(decks).items()}
    assert set(json.loads(models)) == {str(MODEL_ID)}
    wanted = [
        (
            each.id,
            MODEL_ID,
            f"Transformer interview::{1 + CHAPTERS.index(each.chapter):02} "
            f"{each.chapter}",
            0,
        )
        for each in course()
    ]
    assert [(n, m, names[d], o) for n, m, d, _, o in rows] == wanted
    assert [due for *_, due, _ in rows][:3] == [1, 2, 3]


def test_ids_of_decks_and_model_never_change(deck, tmp_path):
    """Another id would make of an update a second deck."""
    with collection(deck, tmp_path) as connection:
        ((decks,),) = connection.execute("SELECT decks FROM col")
    names = {deck["name"]: key for key, deck in json.loads(decks).items()}
    assert names["Transformer interview::03 attention"] == "1128931597"
    assert MODEL_ID == 1763752931


def test_a_changed_answer_changes_the_note_and_keeps_its_guid(
    tmp_path, monkeypatch
):
    """One source: the words of the bank's file are those of the deck."""
    path, folder = tmp_path / "out.apkg", tmp_path / "bank"
    folder.mkdir()
    assert main(["anki", str(path)]) == 0
    old = notes(path, tmp_path)
    one = changed(folder, monkeypatch, "It is 4711 squirrels")
    assert main(["anki", str(path)]) == 0
    new = notes(path, tmp_path)
    assert {name: guid for name, (guid, *_) in old.items()} == {
        name: guid for name, (guid, *_) in new.items()
    }
    assert [name for name in old if old[name] != new[name]] == [one.id]
    assert "<p>It is 4711 squirrels" in new[one.id][2]
    assert "squirrels" not in old[one.id][2]


def test_a_guid_belongs_to_one_question_only(deck, tmp_path):
    guids = [guid for guid, *_ in notes(deck, tmp_path).values()]
    assert len(set(guids)) == len(guids) == len(course())


def test_the_front_asks_in_both_languages_and_gives_nothing_away():
    words, choice, number, code = map(front, every_kind())
    for each in (words, choice, number, code):
        assert "in English." in each
        assert "的中文。" in each
        assert "junior · concept · 3 min / 初级 · 概念 · 3 分钟" in each
        assert not re.search("Short|Long|Why|slip|hint|mistake|Point", each)
    assert choice.count("<li>") == 3
    assert "1,024.5" not in number
    assert "def my_softmax(scores, dim):" in code
    assert "torch.softmax" not in code


@pytest.mark.parametrize("which", every_kind(), ids=lambda each: each.kind)
def test_the_back_has_both_answers_and_what_is_asked_next(which):
    answered = back(which)
    for each in ("Short", "Long", "Next"):
        assert f"{each} {which.kind} in English." in answered
        assert f"{each} {which.kind}的中文。" in answered
    own = {
        "open": ["Point 4 in", "The slip in", "The reason"],
        "choice": ["<strong>Right.</strong> Why B in", "Why A in", "Why C in"],
        "numeric": ['"value">−1,024.5<', "The mistake in", "<dt>7</dt>"],
        "code": ["return torch.softmax(scores, dim)", "The slip in"],
    }
    for each in own[which.kind]:
        assert each in answered
    assert "attention: A section" in answered
    assert "test_x" in answered


class _Tags(HTMLParser):
    """Fails where a tag is closed that is not open."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_html_of_every_note_is_well_formed_and_formulas_are_html(
    deck, tmp_path
):
    raw = 0
    for _, asked, answered in notes(deck, tmp_path).values():
        tags = _Tags()
        tags.feed(asked + answered)
        assert tags.open == []
        raw += "<sub>" in asked + answered
        assert "src=" not in asked + answered
    assert raw > 50


def test_formulas_are_lowered_and_code_is_escaped():
    from dataclasses import replace

    from companion.interview.model.toml import Text

    one = replace(
        question("formula"),
        prompt=Text("Is $h_t < 1$ & `<b>`?", "$h_t < 1$ 吗？"),
    )
    assert "<i>h</i><sub><i>t</i></sub>\N{NO-BREAK SPACE}&lt;" in front(one)
    assert "<code>&lt;b&gt;</code>" in front(one)


# The file


def test_what_lay_there_is_replaced_only_when_the_deck_is_whole(
    tmp_path, monkeypatch
):
    path = tmp_path / "out.apkg"
    path.write_text("an older deck")

    def full(questions):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(anki, "_collection", full)
        with pytest.raises(OSError, match="no space"):
            write(every_kind(), path)
    assert path.read_text() == "an older deck"
    assert list(tmp_path.iterdir()) == [path]
    write(every_kind(), path)
    assert zipfile.is_zipfile(path)
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_in_the_folder_for_passing_files(tmp_path, monkeypatch):
    """genanki's own writer leaves the whole collection there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "passing"))
    (tmp_path / "passing").mkdir()
    write(every_kind(), tmp_path / "out.apkg")
    assert list((tmp_path / "passing").iterdir()) == []


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("out.zip", r"out: expected a file \*\.apkg, got .*out\.zip"),
        ("nowhere/out.apkg", "out: there is no folder .*nowhere"),
        ("taken.apkg", "taken.apkg"),
    ],
)
def test_a_path_that_cannot_be_written_is_told(tmp_path, capsys, name, said):
    (tmp_path / "taken.apkg").mkdir()
    assert main(["anki", str(tmp_path / name)]) == 2
    assert re.search(f"error: .*{said}", capsys.readouterr().err)
    assert {Path(each).name for each in tmp_path.iterdir()} == {"taken.apkg"}


def test_the_command_says_how_many_notes_lie_where(tmp_path, capsys):
    path = tmp_path / "out.apkg"
    assert main(["anki", str(path)]) == 0
    said = capsys.readouterr().out
    assert said == f"{len(course())} notes in {path}\n"
