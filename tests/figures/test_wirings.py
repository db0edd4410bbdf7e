"""The second figure of chapter 02: three ways to hand a context over."""

from itertools import pairwise

import pytest
import torch
from figures.registry import SOURCE, TARGET, WEIGHTS, figure_of, parts_at

from companion.figures import wirings
from companion.figures.gallery.wirings import WAYS, route
from companion.figures.gallery.wirings.view import wires_of
from companion.seq2seq import Seq2Seq

CONTEXTS = dict(zip(WAYS, ("once", "each", "dot"), strict=True))
N, M = 4, 3


@pytest.mark.parametrize("way", WAYS)
def test_arrows_are_counted_as_in_the_lesson(way):
    hops = [len(route(way, 4, step)) - 1 for step in (1, 4)]
    assert hops == {WAYS[0]: [4, 7], WAYS[1]: [4, 4], WAYS[2]: [1, 1]}[way]


def moved(context, *, reading=True, writing=True):
    """Which outputs the first word of the source moves in the package's model.

    Args:
        context: The kind of context.
        reading: Whether the encoder's state may pass from word to word.
        writing: The same of the decoder's.
    """
    torch.manual_seed(0)
    model = Seq2Seq(11, 11, 5, 7, context).double()
    for lstm, passes in ((model.encoder, reading), (model.decoder, writing)):
        if not passes:  # Nothing is kept, and nothing of the past is read.
            lstm.U.data.zero_()
            lstm.b.data[7:14] = -1e4
            lstm.W.data[7:14] = 0
    src = torch.tensor([[3, 4, 5, 6], [9, 4, 5, 6]])
    logits = model(src, torch.tensor([[1, 7, 8]] * 2))
    return (logits[0] - logits[1]).abs().amax(-1).gt(1e-12).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_the_way_that_is_drawn_is_there_in_the_package(way):
    for step in range(1, M + 1):
        steps = {*pairwise(route(way, N, step))}
        needs = {
            "reading": any(start[0] == end[0] == "h" for start, end in steps),
            # What is handed over enters where the decoder's memory does.
            "writing": way == WAYS[0],
        }
        # Without what the way does not need, the word still arrives.
        assert moved(CONTEXTS[way], **needs)[step - 1]
        # What it needs, every way needs: without it nothing arrives.
        for part in (part for part, needed in needs.items() if needed):
            assert not moved(CONTEXTS[way], **{part: False})[step - 1]


@pytest.mark.parametrize("way", range(3))
def test_the_bold_arrows_are_the_way(way):
    wires = wires_of(WEIGHTS[:, :N].tolist())
    for step in range(M + 1):
        classes = parts_at(figure_of("wirings"), way, step)["arrow@class"]
        bold = [
            (wire.start, wire.end)
            for wire, kind in zip(wires, classes, strict=True)
            if kind == "on"
        ]
        assert {*bold} == {*pairwise(route(WAYS[way], N, step))}


def test_the_lines_to_a_mixture_are_as_thick_as_the_weights():
    wires = wires_of(WEIGHTS[:, :N].tolist())
    for step, row in enumerate(WEIGHTS[:, :N].tolist(), 1):
        for j, share in enumerate(row, 1):
            (path,) = (
                wire.path
                for wire in wires
                if (wire.start, wire.end, wire.way)
                == (f"h{j}", f"s{step}", WAYS[2])
            )
            assert f'stroke-width="{1 + 9 * share:.1f}"' in path


def test_only_the_mixture_of_this_step_is_seen():
    wires = wires_of(WEIGHTS[:, :N].tolist())
    classes = parts_at(figure_of("wirings"), 2, 2)["arrow@class"]
    seen = {
        wire.step
        for wire, kind in zip(wires, classes, strict=True)
        if kind != "gone" and wire.way == WAYS[2]
    }
    assert seen == {2}


@pytest.mark.bad_input
def test_words_that_do_not_fit_the_drawing_are_refused():
    with pytest.raises(
        ValueError, match="source: expected 1 to 4 words, got 5"
    ):
        wirings(SOURCE, TARGET, WEIGHTS)
    with pytest.raises(ValueError, match=r"weights: .*\(3, 4\), got \(3, 5\)"):
        wirings(SOURCE[:4], TARGET, WEIGHTS)
