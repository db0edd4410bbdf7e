"""Gaps that can be filled again: what T5 reads and writes."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from companion.variants.spans import random_spans, span_corrupt, span_restore

# Gaps, on paper


def ids(*words):
    return torch.tensor(words)


def flags(text):
    """``"..xx"``: the last two are dropped."""
    return torch.tensor([letter == "x" for letter in text])


def test_the_sentence_of_figure_2():
    text = "Thank you for inviting me to your party last week"
    said = dict(enumerate(text.split())) | {99: "<X>", 98: "<Y>", 97: "<Z>"}
    made = span_corrupt(torch.arange(10), flags("..xx....x."), 99)
    source, target = (" ".join(said[i] for i in x.tolist()) for x in made)
    assert source == "Thank you <X> me to your party <Y> week"
    assert target == "<X> for inviting <Y> last <Z>"


@pytest.mark.parametrize(
    ("dropped", "source", "target"),
    [
        ("....", [5, 6, 7, 8], [99]),
        ("xxxx", [99], [99, 5, 6, 7, 8, 98]),
        ("x...", [99, 6, 7, 8], [99, 5, 98]),
        ("...x", [5, 6, 7, 99], [99, 8, 98]),
        (".xx.", [5, 99, 8], [99, 6, 7, 98]),
        ("x.x.", [99, 6, 98, 8], [99, 5, 98, 7, 97]),
    ],
)
def test_gaps_anywhere_leave_a_sentinel_and_come_back(dropped, source, target):
    text = ids(5, 6, 7, 8)
    made = span_corrupt(text, flags(dropped), 99)
    assert [x.tolist() for x in made] == [source, target]
    assert torch.equal(span_restore(*made, 99), text)
    assert text.tolist() == [5, 6, 7, 8]


def test_one_token_is_a_text_too():
    assert span_corrupt(ids(5), flags("x"), 9)[1].tolist() == [9, 5, 8]


# Gaps, for a thousand texts


def drawn(seed):
    """A text, and gaps: each token dropped by itself, with any share."""
    generator = torch.Generator().manual_seed(seed)
    length = 1 + int(torch.randint(40, (), generator=generator))
    text = torch.randint(4, 50, (length,), generator=generator)
    share = torch.rand((), generator=generator)
    return text, torch.rand(length, generator=generator) < share


@pytest.mark.parametrize("block", range(4))
def test_restoring_undoes_corrupting_whatever_is_dropped(block):
    for seed in range(250 * block, 250 * (block + 1)):
        text, dropped = drawn(seed)
        source, target = span_corrupt(text, dropped, 99)
        again = span_restore(source, target, 99)
        assert torch.equal(again, text), seed
        assert again.dtype == source.dtype == target.dtype == text.dtype


def test_together_they_hold_each_token_once_and_each_sentinel_twice():
    for seed in range(500):
        text, dropped = drawn(seed)
        source, target = (x.tolist() for x in span_corrupt(text, dropped, 99))
        gaps = [99 - i for i in range((len(source) + len(target)) // 2)]
        gaps = [name for name in gaps if name in source]
        assert [x for x in source if x < 50] == text[~dropped].tolist()
        assert [x for x in target if x < 50] == text[dropped].tolist()
        assert [x for x in source if x >= 50] == gaps
        assert [x for x in target if x >= 50] == [*gaps, 99 - len(gaps)]


def test_neighbours_share_a_sentinel():
    source, target = span_corrupt(torch.arange(4, 104), flags("x" * 100), 200)
    assert len(source) == 1
    assert len(target) == 102


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_the_kind_of_ids_stays(kind):
    made = span_corrupt(ids(5, 6, 7).to(kind), flags(".x."), 99)
    assert {x.dtype for x in made} == {kind}


# What is dropped


def gap_lengths(dropped):
    """The lengths of the runs of True."""
    edges = [-1, *(~dropped).nonzero().flatten().tolist(), len(dropped)]
    return [b - a - 1 for a, b in pairwise(edges) if b - a > 1]


def test_15_percent_are_dropped_in_gaps_of_3_on_average():
    generator = torch.Generator().manual_seed(0)
    for _ in range(50):
        lengths = gap_lengths(random_spans(2000, generator))
        assert sum(lengths) == 300
        assert len(lengths) == 100
        assert min(lengths) == 1
        assert max(lengths) > 6


def test_of_512_tokens_the_target_is_a_fifth():
    generator = torch.Generator().manual_seed(0)
    dropped = random_spans(512, generator)
    made = span_corrupt(torch.arange(4, 516), dropped, 1000)
    # 77 dropped tokens in 26 gaps.
    assert [len(x) for x in made] == [512 - 77 + 26, 77 + 26 + 1]


def test_each_way_to_place_the_gaps_is_as_likely_as_another():
    generator = torch.Generator().manual_seed(0)
    counts = Counter(
        tuple(random_spans(6, generator, share=0.5, mean=1.5).tolist())
        for _ in range(6000)
    )
    # Three tokens in two gaps: 6 places for the two, 2 ways to cut three.
    assert len(counts) == 12
    assert all(len(gap_lengths(torch.tensor(way))) == 2 for way in counts)
    spread = (6000 / 12 * 11 / 12) ** 0.5
    assert all(abs(n - 500) < 5 * spread for n in counts.values())


def test_first_and_last_tokens_may_be_dropped_too():
    generator = torch.Generator().manual_seed(0)
    many = torch.stack([random_spans(11, generator) for _ in range(500)])
    rate = many.float().mean(0)
    # Two tokens, one gap, ten places: at an edge half as often as elsewhere.
    assert (rate[1:-1] - 2 / 10).abs().max() < 0.09
    assert (rate[[0, -1]] - 1 / 10).abs().max() < 0.07


def test_short_texts_lose_a_token_and_keep_a_token():
    generator = torch.Generator().manual_seed(0)
    for length in range(2, 12):
        for share in (0.01, 0.15, 0.5, 0.99):
            dropped = random_spans(length, generator, share=share, mean=1.0)
            assert dropped.shape == (length,)
            assert 0 < dropped.sum() < length


def test_a_word_between_two_gaps_is_enough():
    dropped = random_spans(3, torch.Generator(), share=0.6, mean=1.0)
    assert dropped.tolist() == [True, False, True]


def test_the_same_seed_drops_the_same_and_another_one_other_tokens():
    def made(seed):
        return random_spans(97, torch.Generator().manual_seed(seed)).tolist()

    assert made(3) == made(3) != made(4)


# Bad gaps


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"tokens": [5, 6]}, TypeError, "tokens: expected a tensor of integ"),
        ({"tokens": torch.ones(3)}, TypeError, "tokens: .*got torch.float32"),
        ({"tokens": ids([5, 6, 7])}, ValueError, r"one axis.*got \(1, 3\)"),
        ({"tokens": ids()[:0].long()}, ValueError, "with a token at least"),
        ({"dropped": ids(0, 1, 0)}, TypeError, "dropped: expected a boolean"),
        ({"dropped": flags(".x")}, ValueError, r"dropped: .*\(3,\), got \(2,"),
        ({"sentinel": 9.0}, TypeError, "sentinel: expected an int, got 9.0"),
        (
            {"sentinel": 7},
            ValueError,
            "sentinel: 1 gaps need the ids 6 … 7 .*token 7: too many gaps",
        ),
        ({"dropped": flags("x.x"), "sentinel": 9}, ValueError, "ids 7 … 9"),
    ],
)
def test_gaps_that_cannot_be_made_are_named(change, error, says):
    given = {"tokens": ids(5, 6, 7), "dropped": flags(".x."), "sentinel": 99}
    with pytest.raises(error, match=says):
        span_corrupt(**given | change)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ([5, 99, 7], [99, 6, 97], "target: expected .* 99 … 97, .*got .99, 97"),
        ([5, 98, 7], [99, 6, 98], "source: expected .* 99 … 99, .*got .98"),
        ([5, 7], [99, 6, 98], r"source: expected .* 99 … 99, .*got \[\]"),
        ([99, 5, 99], [99, 6, 98], r"source: .*got \[99, 99\]"),
        ([98, 5, 99], [99, 6, 98, 7, 97], r"source: .*99 … 98, .*98, 99\]"),
        ([5, 99, 7], [99, 6], "target ends with 6, got"),
        ([5, 99, 7], [99], "source: .*expected the sentinels from .*none"),
        ([5, 99, 7], [6, 100], r"target: .*none, .*with 100, got \[100\]"),
    ],
)
def test_a_source_and_a_target_that_do_not_fit_are_named(source, target, says):
    with pytest.raises(ValueError, match=says):
        span_restore(ids(*source), ids(*target), 99)


@pytest.mark.bad_input
def test_what_is_no_text_is_not_restored():
    with pytest.raises(TypeError, match="target: expected a tensor of integ"):
        span_restore(ids(5), [99], 99)
    with pytest.raises(ValueError, match="source: expected one text"):
        span_restore(ids([5]), ids(99), 99)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"length": 1}, ValueError, "length: expected at least 2, one token"),
        ({"length": 2.0}, TypeError, "length: expected an int, got 2.0"),
        ({"share": 0}, ValueError, "share: expected between 0 and 1, got 0"),
        ({"share": 1.0}, ValueError, "share: expected between 0 and 1, got 1"),
        ({"mean": 0.5}, ValueError, "mean: expected at least 1 token a gap"),
    ],
)
def test_gaps_that_cannot_be_drawn_are_named(given, error, says):
    with pytest.raises(error, match=says):
        random_spans(
            **{"length": 7, "generator": torch.Generator()} | given,
        )


@pytest.mark.bad_input
def test_a_target_that_begins_with_a_word_is_refused():
    with pytest.raises(ValueError, match="target: expected it to begin with"):
        span_restore(torch.tensor([4, 99]), torch.tensor([5, 99, 6, 98]), 99)
