"""Attention tile by tile: what is kept of a row is what the package keeps."""

import math

import pytest
import torch
from figures.registry import EXPONENTIALS, figure_of, parts_at

from companion.efficiency import flash_attention, running
from companion.figures import tile_sweep

RESCALED, FORGOTTEN = 0, 1
VALUES = torch.tensor([[10.0], [20], [30], [40]])
SCORES = torch.tensor(EXPONENTIALS).float().log()


def numbers(mode, step):
    parts = parts_at(figure_of("tile_sweep"), mode, step)["number"]
    return [parts[4 * i : 4 * i + 4] for i in range(4)]


def test_the_last_column_is_attention():
    # With k = √d_k · the unit matrix, the scores are the queries.
    q, k = SCORES[None], 2 * torch.eye(4)[None]
    wanted = flash_attention(q, k, VALUES[None], causal=False)[0, :, 0]
    got = [float(row[3]) for row in numbers(RESCALED, 4)]
    assert got == pytest.approx(wanted.tolist(), abs=0.005)
    assert got[0] == 27.5


@pytest.mark.parametrize(("step", "keys"), [(1, 2), (2, 4)])
def test_the_three_numbers_of_a_row_are_those_of_the_keys_so_far(step, keys):
    wanted = running(SCORES[:2, :keys], VALUES[:keys])
    for i, (m, total, output, _) in enumerate(numbers(RESCALED, step)[:2]):
        assert math.log(float(m.removeprefix("ln "))) == pytest.approx(
            wanted.maximum[i].item()
        )
        assert float(total) == pytest.approx(wanted.total[i].item())
        assert float(output) == pytest.approx(wanted.output[i, 0].item())


def test_without_rescaling_only_a_row_whose_maximum_grew_is_wrong():
    right, wrong = numbers(RESCALED, 4), numbers(FORGOTTEN, 4)
    assert wrong[0][3] == "22.86"
    assert right[1:3] == wrong[1:3]
    assert right[3] != wrong[3]
    says = parts_at(figure_of("tile_sweep"), FORGOTTEN, 2)["says"][0]
    assert says.endswith("are 22.86 and 21.25, where 27.5 and 21.25 are right.")


@pytest.mark.parametrize("step", range(5))
def test_only_one_tile_of_scores_is_ever_seen(step):
    parts = parts_at(figure_of("tile_sweep"), RESCALED, step)
    assert parts["cell@class"].count("now") == (4 if step else 0)
    assert parts["cell@class"].count("gone") == 4 * max(step - 1, 0)


@pytest.mark.bad_input
def test_what_does_not_fit_is_refused():
    for bad in (
        ([[1, 2, 3]], [1, 2], 1),
        ([[1, 0]], [1, 2], 1),
        ([[1, 2]], [1, 2], 2),
        ([[1] * 5] * 5, [1] * 5, 1),
    ):
        with pytest.raises(ValueError, match="at most 4 rows"):
            tile_sweep(*bad)
