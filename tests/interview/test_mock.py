"""The mock interview: what it picks, and what it says at the end."""

from collections import Counter
from dataclasses import replace

import pytest
from interview.small_bank import large, question

from companion.interview.model.mock import LARGEST_SEED, Draws, pick, report
from companion.interview.model.question import ASKS, LEVELS

pytestmark = pytest.mark.once

SEEDS = (0, 1, 2, 3, 5, LARGEST_SEED)


def ids(questions):
    return [each.id for each in questions]


def test_the_draws_are_those_of_mulberry32_in_javascript():
    """Computed by JavaScript with Math.imul, below 1000003, seed 1."""
    draws = Draws(1)
    drawn = [draws.below(1000003) for _ in range(8)]
    assert drawn == [
        *(627075, 2735, 527448, 981053),
        *(968380, 281104, 612840, 720745),
    ]


def test_draws_fill_their_range_evenly():
    draws = Draws(7)
    counts = Counter(draws.below(5) for _ in range(5000))
    assert set(counts) == set(range(5))
    assert all(900 < count < 1100 for count in counts.values())


def test_a_shuffle_keeps_everything_and_reaches_every_order():
    orders = {tuple(Draws(seed).shuffled("abc")) for seed in range(60)}
    assert len(orders) == 6
    assert all(sorted(order) == ["a", "b", "c"] for order in orders)


def test_the_same_seed_asks_the_same_and_another_something_else():
    picked = [ids(pick(large(), seed=seed)) for seed in SEEDS]
    assert picked == [ids(pick(large(), seed=seed)) for seed in SEEDS]
    assert len({tuple(each) for each in picked}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("minutes", [2, 7, 31, 97])
def test_it_fills_the_minutes_and_no_more(seed, minutes):
    picked = pick(large(), minutes=minutes, seed=seed)
    left = minutes - sum(each.minutes for each in picked)
    rest = [each for each in large() if each.id not in ids(picked)]
    assert 0 <= left < min(each.minutes for each in rest)
    assert len(set(ids(picked))) == len(picked)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_climbs_from_junior_within_a_topic_and_keeps_topics_together(seed):
    picked = pick(large(), minutes=59, seed=seed)
    places = [(each.chapter, LEVELS.index(each.level)) for each in picked]
    topics = list(dict.fromkeys(chapter for chapter, _ in places))
    assert sorted(topics) == ["attention", "masks"]
    assert places == sorted(
        places, key=lambda place: (topics.index(place[0]), place[1])
    )
    assert {level for _, level in places} == {0, 1, 2}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_level_and_chapters_are_kept_to(seed):
    picked = pick(large(), level="mid", chapters=["masks"], seed=seed)
    assert {each.level for each in picked} == {"junior", "mid"}
    assert {each.chapter for each in picked} == {"masks"}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_question_comes_once_before_one_comes_twice(seed):
    """Of what is asked, one each takes 2 + 3 + 4 + 5 + 6 + 7 minutes."""
    picked = pick(large(), minutes=27, seed=seed)
    assert sorted(each.asks for each in picked) == sorted(ASKS)


def test_a_case_on_paper():
    """One topic, 8 minutes: the only junior, then the kind not yet asked."""
    bank = [
        question("senior-same", level="senior"),
        question("junior"),
        question("senior-other", level="senior", asks="debug"),
        question("senior-long", level="senior", asks="code", minutes=6),
        question("elsewhere", "masks"),
    ]
    picked = pick(bank, minutes=8, chapters=["attention"], seed=3)
    assert ids(picked) == ["attention-junior", "attention-senior-other"]


def test_a_report_on_paper():
    bank = [
        question("a", asks="concept", section="One"),
        question("b", asks="debug", section="Two"),
        question("c", asks="debug", section="Two"),
        question("d", "masks", asks="concept", section="Three"),
        question("e", "masks", asks="number", section="Four"),
        question("f", "blocks", asks="number", section="Five"),
    ]
    marks = dict(
        zip(map("attention-{}".format, "abc"), (1.0, 0.5, 0.0), strict=True)
    )
    marks |= {"masks-d": 0.74, "masks-e": 0.0}
    found = report(bank, marks)
    assert found.mark == (1 + 0.5 + 0 + 0.74 + 0) / 5
    # Attention 0.5, masks 0.37; concept 0.87, debugging 0.25, number 0.
    assert found.strengths == ("concept",)
    assert found.gaps == ("masks", "debug", "number")
    assert found.reread == (
        ("masks", ("Three", "Four")),
        ("attention", ("Two",)),
    )


def test_a_report_on_nothing_says_nothing():
    found = report(large(), {})
    assert found.mark is None
    assert found.strengths == found.gaps == found.reread == ()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"level": "expert"}, "level: expected one of junior, mid.*'expert'"),
        ({"chapters": ["mask"]}, "chapters: expected one of rnn.*'mask'"),
        ({"minutes": 1}, "minutes: expected 2 or more.*got 1"),
        ({"seed": -1}, "seed: expected a whole number from 0.*got -1"),
        ({"seed": 2**32}, "seed: .*4294967295, got 4294967296"),
        ({"chapters": ["rnn"]}, "questions: expected one that fits, got none"),
    ],
)
def test_what_cannot_be_picked_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        pick(large(), **wrong)


def test_what_only_the_course_would_ask_is_not_asked():
    asked = [question("one"), replace(question("two"), course=True)]
    for seed in SEEDS:
        assert ids(pick(asked, seed=seed)) == ["attention-one"]
