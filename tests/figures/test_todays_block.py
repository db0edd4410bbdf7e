"""The figure of chapter 12 that exchanges the parts of a block."""

import pytest
import torch
import torch.nn.functional as F
from figures.registry import figure_of, parts_at
from torch import nn

from companion.blocks import EncoderLayer
from companion.figures import todays_block
from companion.figures.gallery.todays_block import stages_of
from companion.figures.gallery.todays_block.view import STREAM, boxes
from companion.variants import RMSNorm, SwiGLU, today

WIDTH = 24
ORDER = ["pre", "rms", "swiglu", "rope", "plain", "grouped"]


def numbers(name, width=WIDTH):
    (stage,) = (each for each in stages_of(width) if each.name == name)
    return stage.table.numbers


def count(module):
    return sum(p.numel() for p in module.parameters())


def test_the_weights_of_2017_are_those_of_the_packages_layer():
    with torch.device("meta"):
        layer = EncoderLayer(768, 12, 3072)
    attention = count(layer.self_attention)
    network = count(layer.feed_forward)
    (found,) = numbers("2017", 768)
    assert found == [
        round(attention / 1000),
        round(network / 1000),
        round((count(layer) - attention - network) / 1000),
    ]


def test_a_gated_network_has_as_many_weights_as_the_plain_one():
    plain, gated = numbers("SwiGLU", 768)
    assert plain[2] == gated[2] == round(count(SwiGLU(768, 2048)) / 1000)
    assert gated[1] == 2048


def test_the_norms_of_two_vectors_are_pytorchs():
    plain, rms = numbers("RMSNorm")
    x = torch.tensor([[1.0, 3], [11, 13]])
    close = {"atol": 1e-4, "rtol": 0}
    torch.testing.assert_close(
        torch.tensor(plain), F.layer_norm(x, (2,)).flatten(), **close
    )
    torch.testing.assert_close(
        torch.tensor(rms), F.rms_norm(x, (2,)).flatten(), **close
    )


def test_a_turned_score_depends_on_the_offset_and_an_added_one_does_not():
    added, turned = numbers("RoPE")
    assert turned[0] == pytest.approx(turned[1])
    assert turned[0] == pytest.approx(torch.tensor(1.0).cos().item())
    assert abs(added[0] - added[1]) > 0.1


def test_what_is_no_matrix_is_counted_as_in_the_layers():
    old, new = (
        EncoderLayer(WIDTH, 4, d_ff, norm_first=True, parts=parts)
        if parts
        else EncoderLayer(WIDTH, 4, d_ff)
        for parts, d_ff in ((None, 4 * WIDTH), (today(4), 8 * WIDTH // 3))
    )
    for layer, (biases, gains) in zip(
        (old, new), numbers("no biases"), strict=True
    ):
        flat = [(n, p) for n, p in layer.named_parameters() if p.ndim == 1]
        bias = sum(p.numel() for n, p in flat if n.endswith("bias"))
        gain = sum(p.numel() for n, p in flat if n.endswith("gain"))
        assert (biases, gains) == (bias, gain)
    assert isinstance(new.feed_forward, SwiGLU)
    assert any(isinstance(m, RMSNorm) for m in new.modules())
    assert not any(isinstance(m, nn.LayerNorm) for m in new.modules())


def test_shared_keys_make_an_eighth_of_the_cache():
    ((all_heads, few),) = numbers("shared keys")
    assert (all_heads, few) == (10, 1.25)


def test_only_after_the_sum_do_norms_stand_on_the_way_of_the_word():
    for changed, on_the_way in ((set(), True), ({"pre"}, False)):
        norms = [b for b in boxes(changed) if b.kind == "norm"]
        assert len(norms) == 2
        assert all((b.x == STREAM) == on_the_way for b in norms)


@pytest.mark.parametrize("step", range(7))
def test_a_choice_keeps_what_was_exchanged_before(step):
    picture = parts_at(figure_of("todays_block"), step)["picture"][0]
    done = {*ORDER[:step]}
    assert ("RMSNorm" in picture) == ("rms" in done)
    assert ("SwiGLU" in picture) == ("swiglu" in done)
    assert ("sinusoids" in picture) == ("rope" not in done)
    assert ("no biases" in picture) == ("plain" in done)
    assert ("shared keys" in picture) == ("grouped" in done)
    framed = picture.count('class="box now"')
    assert framed == [0, 2, 2, 1, 1, 0, 1][step]


@pytest.mark.bad_input
@pytest.mark.parametrize("width", [0, 16, -3])
def test_a_width_without_a_third_is_refused(width):
    with pytest.raises(ValueError, match=f"multiple of 3, got {width}"):
        todays_block(width)
