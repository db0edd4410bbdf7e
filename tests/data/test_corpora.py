"""The corpora: what is read, how it is split, and what is refused."""

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from support.standin import chinese_english, replace, stand_in

from companion.data import corpora
from companion.data.corpora import (
    attribution,
    multi30k,
    romeo_and_juliet,
    script_of,
    shakespeare,
    tatoeba,
)
from companion.data.groups import groups, plain, split

TATOEBA = "tatoeba-cmn-eng/cmn.txt"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand-ins, so that this runs without the corpora."""
    return stand_in(tmp_path, monkeypatch)


@pytest.fixture
def corpora_folder():
    """The real corpora, which are on no machine by themselves."""
    if not os.environ.get("COMPANION_DATA"):
        pytest.skip("COMPANION_DATA names no folder with the real corpora")
    return Path(os.environ["COMPANION_DATA"])


def sides(pairs):
    """Every sentence in some pairs, with its side."""
    return {(side, text) for pair in pairs for side, text in enumerate(pair)}


def leaks(train, test):
    """How many test pairs have a sentence that training has."""
    seen = sides(train)
    return sum(not seen.isdisjoint(sides([pair])) for pair in test)


def test_lines_that_share_a_side_hang_together_in_a_chain():
    keys = [("a", 1), ("b", 2), ("a", 3), ("c", 3), ("d", 4)]
    assert groups(keys) == [[0, 2, 3], [1], [4]]


def test_a_long_chain_is_one_group_from_whichever_end():
    keys = [(f"s{n // 2}", f"t{(n + 1) // 2}") for n in range(101)]
    mixed = list(range(101))
    Random(0).shuffle(mixed)
    assert [sorted(g) for g in groups([keys[n] for n in mixed])] == [
        list(range(101))
    ]


def test_capitals_and_punctuation_make_no_other_sentence():
    assert plain("It's late!") == plain("its late") == "itslate"
    assert plain("你好！") == plain("你好。") == "你好"


def test_what_is_only_punctuation_remains_itself():
    assert (plain("?"), plain("!")) == ("?", "!")


def test_the_split_shares_no_sentence_and_loses_none(folder):
    parts = tatoeba()
    lines = [line.split("\t") for line in chinese_english().splitlines()]
    dealt = [pair for part in parts for pair in part]
    assert sorted(dealt) == sorted((zh, en) for en, zh, _ in lines)
    for i, part in enumerate(parts):
        assert len(part) > 0
        for other in parts[i + 1 :]:
            assert leaks(part, other) == 0


def test_the_split_is_the_same_whatever_order_the_lines_come_in():
    pairs = [(f"src {n}", f"tgt {n // 2}") for n in range(997)]
    mixed = Random(0).sample(pairs, len(pairs))
    for part, other in zip(
        split(pairs, percent=11), split(mixed, percent=11), strict=True
    ):
        assert sorted(part) == sorted(other)


def test_each_held_out_part_has_about_its_per_cent_of_the_groups():
    pairs = [(f"src {n}", f"tgt {n}") for n in range(10007)]
    train, valid, test = split(pairs, percent=11)
    assert len(train) + len(valid) + len(test) == 10007
    assert 1000 < len(valid) < 1200
    assert 1000 < len(test) < 1200


def test_no_chain_of_equal_sentences_is_torn():
    """In fives: each line shares a side with the next, one time or the other.

    What differs in punctuation and capitals only is equal too.
    """
    pairs = [
        (
            f"Src {n} {m // 2}{'!.'[m % 2]}",
            f"tGT {n} {(m + 1) // 2}{'?,'[m % 2]}",
        )
        for n in range(499)
        for m in range(5)
    ]
    train, valid, test = (
        [(plain(src), plain(tgt)) for src, tgt in part]
        for part in split(pairs, percent=11)
    )
    assert len(valid) > 100
    assert len(test) > 100
    assert leaks(train, valid) == leaks(train, test) == leaks(valid, test) == 0


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("汤姆说法语吗？", "simplified"),
        ("湯姆說法語嗎？", "traditional"),
        ("我很好。", "either"),
        ("别擔心。", "mixed"),
        ("客廳裏", "traditional"),  # 裏 is in neither character set.
        ("裏", "traditional"),
        ("Tom, OK!", "either"),
    ],
)
def test_the_character_sets_tell_the_scripts_apart(text, script):
    assert script_of(text) == script


@pytest.mark.parametrize("script", ["simplified", "traditional"])
def test_a_script_is_kept_and_nothing_changes_its_part(folder, script):
    for part, whole in zip(tatoeba(script=script), tatoeba(), strict=True):
        kept = [p for p in whole if script_of(p[0]) in (script, "either")]
        assert part == kept
    dealt = {zh for part in tatoeba(script=script) for zh, _ in part}
    assert ("谁？" in dealt) == (script == "simplified")
    assert ("誰？" in dealt) == (script == "traditional")


def test_a_direction_turns_every_pair_around(folder):
    turned = tatoeba(src="en", tgt="zh")
    assert turned.test == [(en, zh) for zh, en in tatoeba().test]
    turned = multi30k(src="en", tgt="de")
    assert turned.train == [(en, de) for de, en in multi30k().train]


def test_each_pair_has_its_own_attribution(folder):
    said = [line.split("\t") for line in chinese_english().splitlines()]
    pairs = [(zh, en) for en, zh, _ in said[10:3:-1]]
    owners = [owner for _, _, owner in said[10:3:-1]]
    assert attribution(pairs) == owners
    assert owners[0].endswith("tatoeba.org #10")


@pytest.mark.parametrize(
    ("tokenised", "first"),
    [
        (True, ("ein hund läuft im park .", "a dog runs in the park .")),
        (False, ("Ein hund läuft im park.", "A dog runs in the park.")),
    ],
)
def test_multi30k_comes_in_the_parts_it_was_published_in(
    folder, tokenised, first
):
    parts = multi30k(tokenised=tokenised)
    assert [len(part) for part in parts] == [29, 7, 5]
    assert parts.train[0] == first


def test_nine_tenths_of_shakespeare_are_to_train_on(folder):
    text = shakespeare()
    assert (len(text.train), len(text.valid)) == (3780, 420)
    assert text.train + text.valid == "To be, or not to be:\n" * 200


def test_a_play_is_in_the_package(monkeypatch):
    monkeypatch.setenv("COMPANION_DATA", "/nowhere")
    text = romeo_and_juliet()
    assert text.train.startswith("SAMPSON:\nGregory, o' my word")
    assert text.valid.endswith("Than this of Juliet and her Romeo.\n")
    assert (len(text.train), len(text.valid)) == (120118, 13347)
    assert len(set(text.train)) == 61


# The real ones.


def test_the_play_is_a_part_of_tiny_shakespeare(corpora_folder):
    assert "".join(romeo_and_juliet()) in "".join(shakespeare())


def test_tatoeba_has_the_lines_and_groups_that_are_known(corpora_folder):
    lines = corpora.read_table(corpora_folder / TATOEBA)
    assert len(lines) == 32028
    pairs = [(zh, en) for en, zh, _ in lines]
    assert len(set(pairs)) == 32028
    assert len(groups([((0, zh), (1, en)) for zh, en in pairs])) == 26425
    assert [len(part) for part in tatoeba()] == [30133, 964, 931]


def test_a_split_by_lines_leaks_a_quarter_and_ours_nothing(corpora_folder):
    parts = tatoeba()
    pairs = [pair for part in parts for pair in part]
    found = []
    for seed in range(5):
        mixed = Random(seed).sample(pairs, len(pairs))
        found.append(leaks(mixed[1000:], mixed[:1000]))
    # 27 %, give or take what 1,000 lines can tell.
    assert 240 <= min(found) <= max(found) <= 330
    assert 260 <= sum(found) / 5 <= 300
    for test in (parts.valid, parts.test):
        assert leaks(parts.train, test) == 0
    assert leaks(parts.valid, parts.test) == 0


def test_no_punctuation_hides_a_sentence_of_training(corpora_folder):
    train, valid, test = (
        [(plain(zh), plain(en)) for zh, en in part] for part in tatoeba()
    )
    assert leaks(train, valid) == leaks(train, test) == leaks(valid, test) == 0


def test_both_scripts_are_there_about_equally_often(corpora_folder):
    lines = corpora.read_table(corpora_folder / TATOEBA)
    assert Counter(script_of(zh) for _, zh, _ in lines) == {
        "simplified": 14666,
        "traditional": 14527,
        "either": 2775,
        "mixed": 60,
    }


@pytest.mark.parametrize(
    ("tokenised", "test", "lines"),
    [
        (True, "test_2016_flickr", 1000),
        (False, "test_2016_flickr", 1000),
        (False, "test_2017_flickr", 1000),
        (False, "test_2017_mscoco", 461),
    ],
)
def test_multi30k_has_the_lines_that_are_known(
    corpora_folder, tokenised, test, lines
):
    parts = multi30k(tokenised=tokenised, test=test)
    assert [len(part) for part in parts] == [29000, 1014, lines]


def test_shakespeare_has_65_characters_and_the_usual_border(corpora_folder):
    text = shakespeare()
    assert len(set(text.train)) == 65
    assert set(text.valid) <= set(text.train)
    assert (len(text.train), len(text.valid)) == (1003854, 111540)


# What is refused.


@pytest.mark.bad_input
@pytest.mark.parametrize("said", ["", "\n", " \n"])
def test_an_empty_corpus_is_named(folder, monkeypatch, said):
    for name in (TATOEBA, "tinyshakespeare/input.txt"):
        replace(folder, monkeypatch, name, said)
    for read in (tatoeba, shakespeare):
        with pytest.raises(ValueError, match=r"\.txt: .* got an empty file"):
            read()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "line", ["Hi. 嗨。 me", "Hi.\t嗨。", "Hi.\t\tme", "", "Hi.\t嗨。\tme\tyou"]
)
def test_a_line_without_its_tabs_is_named_by_file_and_number(
    folder, monkeypatch, line
):
    text = f"Hi.\t嗨。\tme\n{line}\nRun.\t跑。\tme\n"
    replace(folder, monkeypatch, TATOEBA, text)
    match = rf"cmn\.txt, line 2: .* got {line[:60]!r}"
    with pytest.raises(ValueError, match=match.replace("\\t", r"\\t")):
        tatoeba()


@pytest.mark.bad_input
def test_files_of_unequal_length_are_named_with_both_counts(
    folder, monkeypatch
):
    name = "multi30k/tok/val.lc.norm.tok.en"
    replace(folder, monkeypatch, name, "a dog\na man\n")
    match = r"val\S*\.de, \S*val\S*\.en: expected as many .* got 7 and 2"
    with pytest.raises(ValueError, match=match):
        multi30k(tokenised=True)


@pytest.mark.bad_input
def test_what_there_is_not_is_named_beside_what_there_is(folder):
    with pytest.raises(ValueError, match=r"'de' and 'en' .* got 'en' and 'fr'"):
        multi30k(src="en", tgt="fr")
    with pytest.raises(ValueError, match=r"'zh' and 'en' .* got 'zh' and 'zh'"):
        tatoeba(src="zh", tgt="zh")
    with pytest.raises(ValueError, match=r"script: .* got 'big5'"):
        tatoeba(script="big5")
    with pytest.raises(ValueError, match=r"test: .* got 'test_2018'"):
        multi30k(test="test_2018")
    with pytest.raises(ValueError, match=r"got 'test_2017_flickr'"):
        multi30k(test="test_2017_flickr", tokenised=True)
    with pytest.raises(ValueError, match=r"'喵', 'Meow.'.* is no line of"):
        attribution([("喵", "Meow.")])
