"""Whatever the texts: rules of what chapters read, and of every chapter."""

import ast
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import companion
from companion.data.codecs import Characters, Subwords, Words, load
from companion.data.groups import groups, plain, split
from companion.data.vocabulary import Vocabulary

TESTS = Path(__file__).parents[1]
# sentencepiece writes a space as U+2581, which no text may hold.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\u2581")
TEXTS = st.lists(st.text(LETTERS, max_size=20), min_size=1, max_size=5)
PAIRS = st.lists(
    st.tuples(st.text("ab c", max_size=4), st.text("de f", max_size=4)),
    max_size=12,
)


@pytest.fixture(scope="module")
def subwords():
    return Subwords.train(["我爱小猫", "I love little cats"], 280)


@given(st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=9))
def test_every_token_has_one_id_and_every_id_one_token(tokens):
    vocabulary = Vocabulary([t for t in tokens if t not in Vocabulary.specials])
    known = vocabulary.tokens[3:]
    assert vocabulary.decode(vocabulary.encode(known)) == list(known)
    assert vocabulary.encode(known) == [*range(3, len(vocabulary))]


@given(TEXTS)
def test_a_codec_gives_back_the_texts_it_was_made_of(texts):
    for kind in (Characters, Words):
        tokens = {token for text in texts for token in kind.split(text)}
        if not tokens or tokens & {"", *Vocabulary.specials}:
            continue  # No text, two spaces side by side, or "<pad>".
        codec = kind.train(texts)
        for text in texts:
            ids = codec.encode(text)
            assert codec.decode([1, *ids, 2, 0, 0]) == text


@given(st.text(LETTERS, max_size=30))
def test_sub_words_give_back_any_text(subwords, text):
    ids = subwords.encode(text)
    assert subwords.decode(ids) == text
    assert all(3 <= i < len(subwords) for i in ids)


@given(
    st.lists(st.text(LETTERS, min_size=1, max_size=9), min_size=1, max_size=4)
)
def test_a_codec_comes_back_from_its_file(texts):
    codec = Characters.train(texts)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codec"
        codec.save(path)
        again = load(path)
    assert again.vocabulary.tokens == codec.vocabulary.tokens


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3)))
def test_places_with_a_key_in_common_are_in_one_group(keys):
    found = groups(keys)
    assert sorted(place for group in found for place in group) == [
        *range(len(keys))
    ]
    owner = {place: n for n, group in enumerate(found) for place in group}
    for i, first in enumerate(keys):
        for j, second in enumerate(keys):
            assert not set(first) & set(second) or owner[i] == owner[j]


@given(PAIRS, st.integers(0, 50))
def test_no_sentence_stands_on_two_sides_of_a_split(pairs, percent):
    parts = split(pairs, percent=percent)
    assert sorted(p for part in parts for p in part) == sorted(pairs)
    for side in (0, 1):
        seen = [{plain(pair[side]) for pair in part} for part in parts]
        assert not seen[0] & seen[1]
        assert not seen[0] & seen[2]
        assert not seen[1] & seen[2]


def public(word):
    """The names that a chapter's module offers."""
    module = import_module(f"companion.{word}")
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__
        and not name.startswith("_")
    ]


@pytest.mark.parametrize("word", companion.CHAPTERS)
def test_every_public_function_of_a_chapter_has_a_property(word):
    used = {
        node.id
        for path in TESTS.glob("*/test_properties.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name)
    } | {
        node.attr
        for path in TESTS.glob(f"{word}/test_properties.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == word
    }
    assert set(public(word)) <= used
