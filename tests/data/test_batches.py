"""Which sentences go together, in which order, and how they are padded."""

from collections import Counter
from random import Random

import pytest
import torch

from companion.data.batches import (
    PairBatches,
    WindowBatches,
    collate,
    cut,
    drop_long,
    encode_pairs,
    every_window,
)
from companion.data.codecs import Characters, Words

PAIRS, TOKENS = 997, 211


@pytest.fixture
def pairs():
    """Pairs of sentences of 3 to 23 ids, and no sentence twice."""
    rng = Random(0)
    made = []
    for n in range(PAIRS):
        length = rng.randint(1, 18)
        src = [1, *[3 + n] * length, 2]
        tgt = [1, *[2000 + n] * (length + rng.randint(0, 3)), 2]
        made.append((src, tgt))
    return made


@pytest.fixture
def batches(pairs):
    return PairBatches(pairs, max_tokens=TOKENS, seed=7)


def sentences(tensor):
    """The rows of a batch as lists, without padding."""
    return [[i for i in row if i != 0] for row in tensor.tolist()]


def padding(batches):
    """How much of some batches is padding."""
    ids = torch.cat([side.flatten() for batch in batches for side in batch])
    return (ids == 0).double().mean().item()


def an_epoch(batches, epoch=0):
    first = epoch * len(batches)
    return [batches.at(first + place) for place in range(len(batches))]


def test_a_pair_becomes_two_rows_from_bos_to_eos():
    zh, en = Characters.train(["我爱猫"]), Words.train(["I love cats"])
    made = encode_pairs([("爱猫", "love cats I")], zh, en)
    assert made == [([1, 4, 5, 2], [1, 4, 5, 3, 2])]


def test_rows_are_filled_up_behind_their_words():
    rows = collate([[1, 5, 2], [1, 2], [1, 7, 8, 2]])
    want = [[1, 5, 2, 0], [1, 2, 0, 0], [1, 7, 8, 2]]
    assert rows.tolist() == want
    assert rows.dtype == torch.int64


@pytest.mark.parametrize("epoch", [0, 3])
def test_an_epoch_has_every_pair_once_and_no_pair_torn(batches, pairs, epoch):
    seen = []
    for src, tgt in an_epoch(batches, epoch):
        seen += zip(sentences(src), sentences(tgt), strict=True)
    assert sorted(seen) == sorted(pairs)


def test_no_side_of_a_batch_has_too_many_ids(batches):
    sizes = [max(s.numel(), t.numel()) for s, t in an_epoch(batches)]
    assert max(sizes) <= TOKENS
    # And most are nearly full.
    assert sum(sizes) > 0.9 * TOKENS * len(sizes)


def test_padding_is_a_fraction_of_what_random_batches_have(batches, pairs):
    mixed = Random(0).sample(pairs, PAIRS)
    size = PAIRS // len(batches)
    chunks = [mixed[i : i + size] for i in range(0, PAIRS, size)]
    random = [tuple(map(collate, zip(*c, strict=True))) for c in chunks]
    assert padding(an_epoch(batches)) < 0.12
    assert padding(random) > 0.35


def test_a_batch_depends_on_its_number_and_the_seed_alone(batches, pairs):
    again = PairBatches(pairs, max_tokens=TOKENS, seed=7)
    numbers = list(range(2 * len(batches)))
    Random(0).shuffle(numbers)
    for number in numbers:
        for one, two in zip(batches.at(number), again.at(number), strict=True):
            assert torch.equal(one, two)


def test_a_stream_goes_on_where_another_stopped(batches):
    border = len(batches) - 2
    whole = batches.stream()
    for _ in range(border):
        next(whole)
    rest = batches.stream(start=border)
    for _ in range(5):  # Into the next epoch.
        for one, two in zip(next(whole), next(rest), strict=True):
            assert torch.equal(one, two)


def test_another_epoch_or_seed_deals_the_pairs_anew(batches, pairs):
    def dealt(batches, epoch):
        made = [frozenset(src[:, 1].tolist()) for src, _ in an_epoch(batches)]
        shifted = an_epoch(batches, epoch)
        other = [frozenset(src[:, 1].tolist()) for src, _ in shifted]
        return made, other

    other_seed = PairBatches(pairs, max_tokens=TOKENS, seed=8)
    for made, other in (
        dealt(batches, 1),
        (dealt(batches, 0)[0], dealt(other_seed, 0)[0]),
    ):
        assert len(made) == len(other)
        assert made != other  # The order.
        assert len(set(made) & set(other)) < 0.5 * len(made)  # Who with whom.


def test_seed_and_epoch_are_not_merely_added(pairs):
    """Seed 7 in epoch 1 would be seed 8 in epoch 0."""
    one = an_epoch(PairBatches(pairs, max_tokens=TOKENS, seed=7), 1)
    two = an_epoch(PairBatches(pairs, max_tokens=TOKENS, seed=8), 0)
    assert any(
        a.shape != b.shape or not torch.equal(a, b)
        for (a, _), (b, _) in zip(one, two, strict=True)
    )


def test_short_and_long_batches_are_mixed(batches):
    widths = [src.shape[1] for src, _ in an_epoch(batches)]
    third = len(widths) // 3
    means = [sum(part) / third for part in (widths[:third], widths[-third:])]
    assert abs(means[0] - means[1]) < 5
    assert widths != sorted(widths)


def test_a_list_is_cut_from_short_to_long_on_paper():
    assert cut([5, 2, 3, 2, 5], 6) == [[1, 3], [2], [0], [4]]
    assert cut([5, 2, 3, 2, 5], 10) == [[1, 3, 2], [0, 4]]


def test_what_is_too_long_is_dropped_on_purpose_and_counted(pairs):
    kept, dropped = drop_long(pairs, 11)
    assert len(kept) + dropped == PAIRS
    assert max(len(side) for pair in kept for side in pair) == 11
    gone = [pair for pair in pairs if pair not in kept]
    assert min(max(map(len, pair)) for pair in gone) == 12


# A long text.


@pytest.fixture
def text():
    return torch.arange(3, 1003)


@pytest.fixture
def windows(text):
    return WindowBatches(text, length=7, size=5, seed=3)


def test_windows_are_pieces_of_the_text(windows):
    for (tokens,) in an_epoch(windows):
        assert tokens.shape == (5, 8)
        assert (tokens.diff(dim=1) == 1).all()


@pytest.mark.parametrize("epoch", range(7))
def test_no_id_is_a_target_twice_in_an_epoch(windows, epoch):
    said = torch.cat([t[:, 1:].flatten() for (t,) in an_epoch(windows, epoch)])
    counts = Counter(said.tolist())
    assert set(counts.values()) == {1}
    # What is left out: less than a batch, and less than a window.
    assert len(counts) > 1000 - (5 + 1) * 7 - 1


def test_windows_begin_elsewhere_in_another_epoch(windows):
    begins = {
        (an_epoch(windows, epoch)[0][0][0, 0].item() - 3) % 7
        for epoch in range(20)
    }
    assert len(begins) >= 5


def test_windows_depend_on_their_number_alone(windows, text):
    again = WindowBatches(text, length=7, size=5, seed=3)
    for number in (40, 3, 77, 0):
        assert torch.equal(windows.at(number)[0], again.at(number)[0])
    first = next(windows.stream(start=40))[0]
    assert torch.equal(first, windows.at(40)[0])


@pytest.mark.parametrize("count", [2, 7, 8, 9, 15, 100, 101])
def test_each_id_but_the_first_is_measured_once_and_in_order(count):
    text = torch.arange(3, 3 + count)
    made = every_window(text, length=7, size=5)
    said = torch.cat([tokens[:, 1:].flatten() for (tokens,) in made])
    assert said.tolist() == list(range(4, 3 + count))
    for (tokens,) in made:
        assert len(tokens) <= 5
        assert tokens.shape[1] > 1
        assert (tokens.diff(dim=1) == 1).all()


# What is refused.


@pytest.mark.bad_input
def test_an_empty_corpus_has_no_batches():
    codec = Characters.train(["a"])
    with pytest.raises(ValueError, match="pairs: expected at least one"):
        encode_pairs([], codec, codec)
    with pytest.raises(ValueError, match="pairs: expected at least one"):
        PairBatches([], max_tokens=11, seed=0)
    with pytest.raises(ValueError, match="rows: expected at least one"):
        collate([])


@pytest.mark.bad_input
def test_a_pair_that_no_batch_can_hold_is_refused_with_the_count():
    pairs = [([1, 5, 2], [1, 2]), ([1, 2], [1, *[5] * 9, 2])]
    match = r"at least 11, .* got 10; 1 of 2 are longer: drop_long"
    with pytest.raises(ValueError, match=match):
        PairBatches(pairs, max_tokens=10, seed=0)
    PairBatches(pairs, max_tokens=11, seed=0)


@pytest.mark.bad_input
def test_nothing_left_after_dropping_is_refused():
    with pytest.raises(ValueError, match=r"max_len: .* got 2"):
        drop_long([([1, 5, 2], [1, 2])], 2)


@pytest.mark.bad_input
def test_a_text_too_short_for_a_batch_is_refused(text):
    match = "at least 42 for a batch of 5 windows of 7, got 41"
    with pytest.raises(ValueError, match=match):
        WindowBatches(text[:41], length=7, size=5, seed=0)
    assert len(WindowBatches(text[:42], length=7, size=5, seed=0)) == 1
    with pytest.raises(ValueError, match="ids: expected at least 2, got 1"):
        every_window(text[:1], length=7, size=5)


@pytest.mark.bad_input
def test_numbers_that_count_nothing_are_refused(batches, text):
    with pytest.raises(ValueError, match=r"number: .* at least 0, got -1"):
        batches.at(-1)
    with pytest.raises(ValueError, match=r"max_tokens: .* at least 1, got 0"):
        cut([2, 3], 0)
    with pytest.raises(ValueError, match=r"size: expected at least 1, got 0"):
        WindowBatches(text, length=7, size=0, seed=0)
    with pytest.raises(TypeError, match=r"length: expected an int, got 7.5"):
        every_window(text, length=7.5, size=5)
