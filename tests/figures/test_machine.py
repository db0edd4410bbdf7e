"""The whole Transformer in one drawing: the parts that the package has."""

import re
from itertools import pairwise

import pytest
from figures.registry import JOURNEYS, SOURCE, figure_of, parts_at

from companion.blocks import Residual
from companion.figures import machine
from companion.figures.gallery.machine.view import (
    BOXES,
    DECODER,
    ENCODER,
    PARTS,
    RIGHT,
    WIDE,
)
from companion.transformer import Transformer, TransformerConfig


def draw(stops=JOURNEYS, **more):
    return machine(SOURCE[:3], ["<bos>", "I"], stops, axes="xyz", **more)


def test_a_column_has_an_add_and_norm_for_each_residual_of_the_package():
    model = Transformer(TransformerConfig.tiny(5, 7))
    for stack, drawn in ((model.encoder, ENCODER), (model.decoder, DECODER)):
        layer = stack.layers[0]
        residuals = [
            name.split("_")[0]
            for name, module in layer.named_children()
            if isinstance(module, Residual)
        ]
        names = [name for name, _, _ in drawn.values()]
        assert names[1::2] == ["Add & Norm"] * len(residuals)
        # attention, cross (attention), feed (forward): in the package's order.
        for residual, name in zip(residuals, names[::2], strict=True):
            assert residual in name


def test_boxes_of_a_column_stand_under_each_other():
    for column in {x for x, *_ in BOXES.values()}:
        tops = [(y, high) for x, _, y, high in BOXES.values() if x == column]
        for (y, high), (following, _) in pairwise(tops):
            assert y + high + 8 <= following


def test_the_bridge_ends_at_the_cross_attention_in_the_same_drawing():
    html = figure_of("machine").html
    y = DECODER["cross_attention"][1] + DECODER["cross_attention"][2] / 2
    edge = RIGHT - WIDE / 2
    assert f'class="tip" d="M{edge:g} {y:g}l-7 -4v8z"' in html
    assert html.count("<svg") == 1


@pytest.mark.parametrize("which", [0, 1])
def test_a_stop_lights_its_parts_and_shows_its_numbers(which):
    name = [*JOURNEYS][which]
    for step, (lit, numbers, says) in enumerate(JOURNEYS[name]):
        at = parts_at(figure_of("machine"), which, step)
        now = [part for part, kind in zip(PARTS, at["part@class"], strict=True)
               if "now" in kind]  # fmt: skip
        assert {*now} == {*lit}
        assert at["says"] == [says.replace("&", "&amp;")]
        shown = re.findall(r"<td.*?>([−\d.]+)</td>", at["numbers"][0])
        (row,) = numbers.values()
        assert [float(v.replace("−", "-")) for v in shown] == pytest.approx(
            row, abs=0.005
        )


def test_one_stop_alone_needs_no_script():
    still = draw(at=1, start="second")
    assert "<script" not in still.html
    assert "<button" not in still.html
    assert still.text == "The machine. second looks back."
    assert still.html.count('class="box now"') == 2


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("stops", "more", "message"),
    [
        ({}, {}, "stops: expected one or more"),
        ({"a": []}, {}, "stops: expected one or more"),
        ({"a": JOURNEYS["first"], "b": JOURNEYS["first"][:1]}, {}, "as many"),
        ({"a": [(["norm"], {}, "")]}, {}, "no part is called 'norm'"),
        (
            {"a": [([], {"it": [1, 2]}, "")]},
            {},
            r"it: .*\(1, 3\), got \(1, 2\)",
        ),
        (JOURNEYS, {"at": 3}, "at: expected 0 to 2, got 3"),
        (JOURNEYS, {"start": "third"}, "start: no vector is called 'third'"),
    ],
)
def test_what_does_not_fit_is_refused(stops, more, message):
    with pytest.raises(ValueError, match=message):
        draw(stops, **more)
