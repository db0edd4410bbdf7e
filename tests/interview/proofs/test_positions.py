"""What the answers of chapter 05 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    parameters,
    repair,
)
from torch.testing import assert_close

from companion import positions, transformer


def base():
    with torch.device("meta"):
        return transformer.Transformer(transformer.TransformerConfig.base())


def test_the_third_number_at_position_100_of_width_4():
    row = positions.sinusoidal(101, 4)[100]
    wrong = math.sin(100 * 10_000 ** (-2 * 2 / 4)), row[3], row[0]
    answers("positions-an-entry-by-hand", row[2], *wrong)


def test_the_norm_of_a_position_of_width_512():
    norms = positions.sinusoidal(997, 512).double().norm(dim=-1)
    assert_close(norms, norms[:1].expand_as(norms))
    norm = norms[0].item()
    answers("positions-norm-of-a-position", norm, 512**0.5, norm**2, 1)


def test_six_back_in_the_first_of_eight_alibi_heads():
    bias = positions.alibi_bias(8, 7)[0]
    wrong = -bias[6, 0], -6, -6 / 8
    answers("positions-alibi-bias", bias[6, 0], *wrong)


def test_a_larger_base_slows_the_slowest_pair_and_not_the_fastest():
    d, stretch = 14, 4
    evens = torch.arange(0, d, 2, dtype=torch.float64)
    base, larger = 10_000, 10_000 * stretch ** (d / (d - 2))
    slower = larger ** (-evens / d) / base ** (-evens / d)
    assert_close(slower[[0, -1]], slower.new_tensor([1, 1 / 4]))
    assert (slower.diff() < 0).all()


# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ = 2, 5


def test_the_longest_wavelength_at_the_papers_width():
    lengths = 2 * math.pi / positions.frequencies(512).double()
    wrong = 2 * math.pi * 10_000, 10_000, lengths[0]
    answers("positions-longest-wavelength", lengths[-1], *wrong)
    ratio = (lengths[1:] / lengths[:-1]).mean()
    assert ratio == pytest.approx(1.037, abs=5e-4)


def test_t5_learns_a_number_for_each_head_and_bucket():
    heads, buckets, width = 8, 32, 64
    wrong = heads * buckets * width, buckets
    answers(
        "positions-weights-of-t5", parameters(positions.T5Bias(heads)), *wrong
    )
    assert parameters(positions.Shaw(width, clip=16)) == 4224


def test_a_default_table_tied_to_the_output_starts_with_huge_logits():
    torch.manual_seed(0)
    vocab_size, d = 37_000, 512
    hidden, wanted = torch.randn(31, d), torch.randint(vocab_size, (31,))
    with torch.no_grad():
        table = torch.nn.Embedding(vocab_size, d).weight
        loud, fair = hidden @ table.T, hidden @ table.T / d**0.5
    answers("positions-logits-of-a-default-table", d**0.5, 1, d)
    assert loud.std() == pytest.approx(d**0.5, abs=0.3)
    assert fair.std() == pytest.approx(1, abs=0.02)
    assert F.cross_entropy(loud, wanted) > 60
    first = F.cross_entropy(fair, wanted)
    assert first == pytest.approx(math.log(vocab_size) + 1 / 2, abs=0.5)


def test_positions_in_bfloat16_are_shared_from_256_on():
    exact = torch.arange(1024)
    rounded = exact.bfloat16().long()
    assert torch.equal(rounded[:257], exact[:257])
    assert rounded[257] == 256
    # Between two powers of two only every second, then every fourth is left.
    for start, step in ((256, 2), (512, 4)):
        assert (rounded[start : 2 * start] % step == 0).all()
    x = torch.randn(1, 14).expand(1024, -1)
    late = positions.rotate(x, exact.bfloat16().float())
    turned = positions.rotate(x, exact)
    assert_close(late[:257], turned[:257])
    assert not torch.allclose(late[257:], turned[257:], atol=0.1)
    # Cosines and sines may be rounded: 600 and 601 stay apart.
    last = turned.bfloat16()
    assert (last[600] != last[601]).any()
    assert_close(last.float(), turned, atol=0.02, rtol=0.02)


def test_rope_that_counts_rows_is_right_for_a_whole_text_only():
    broken, repaired = repair("positions-repair-rope-beside-a-cache")
    x, places = torch.randn(SEQ, 14), torch.arange(SEQ)
    assert_close(broken(x, places), repaired(x, places))
    alone = [
        [rope(x[i : i + 1], places[i : i + 1]) for i in range(SEQ)]
        for rope in (broken, repaired)
    ]
    by_broken, by_repaired = map(torch.cat, alone)
    assert_close(by_repaired, repaired(x, places))
    # Each token by itself is turned as if it stood at position 0.
    assert torch.equal(by_broken, x)


def test_places_as_shares_of_the_length_move_when_a_word_is_added():
    broken, repaired = repair("positions-repair-what-a-new-word-moves")
    x = torch.zeros(BATCH, SEQ, 14)
    for add, stays in ((broken, False), (repaired, True)):
        same = torch.isclose(add(x)[:, :3], add(x[:, :3])).all()
        assert bool(same) is stays
    table = broken(torch.zeros(1, SEQ, 14))[0]
    assert torch.pdist(table).min() > 0.1
    assert table.abs().max() <= 1
    places = [torch.linspace(0, 100, n)[3].item() for n in (10, 5)]
    assert places == pytest.approx([33, 75], abs=0.4)


def test_sines_and_cosines_of_different_angles_know_no_distance():
    broken, repaired = repair("positions-repair-a-table-without-distance")
    for make, knows in ((broken, False), (repaired, True)):
        table = make(101, 14).double()
        assert table[0].tolist() == [0, 1] * 7
        assert torch.pdist(table).min() > 0.1
        three_apart = (table @ table.T).diagonal(3)
        assert bool(table.norm(dim=-1).std() < 1e-5) is knows
        assert bool(three_apart.std() < 1e-5) is knows
