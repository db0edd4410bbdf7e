"""Weights in few bits, against PyTorch's own and numbers on paper."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from companion.efficiency import (
    QuantizedLinear,
    integer_linear,
    pack_int4,
    quantize,
    quantize_linears,
    unpack_int4,
)

ROW, COLUMN, GROUP, BATCH = 5, 28, 7, 3
PAPER = [0.1, -0.3, 0.4, 0.7]
HOW = [
    (per, symmetric)
    for per in ("tensor", "row", GROUP)
    for symmetric in (True, False)
]


def drawn(*shape, seed=0, shift=0.0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator) + shift


# On paper


def test_four_numbers_in_four_bits_are_exact():
    stored = quantize(torch.tensor(PAPER), 4)
    assert stored.integers.tolist() == [1, -3, 4, 7]
    torch.testing.assert_close(stored.scale, torch.tensor([0.1]))
    torch.testing.assert_close(stored.dequantize(), torch.tensor(PAPER))


def test_one_outlier_takes_the_others_their_steps():
    stored = quantize(torch.tensor([*PAPER, 7.0]), 4)
    assert stored.scale.item() == 1
    assert stored.integers.tolist() == [0, 0, 0, 1, 7]


def test_a_group_of_its_own_keeps_an_outlier_from_the_others():
    weight = torch.tensor([[*PAPER, 7.0, 0.2, -0.4, 0.3]])
    stored = quantize(weight, 4, per=4)
    assert stored.integers.tolist() == [[1, -3, 4, 7, 7, 0, 0, 0]]
    torch.testing.assert_close(stored.dequantize()[0, :4], weight[0, :4])


def test_a_zero_point_uses_all_integers_where_no_number_is_below_0():
    weight = torch.tensor([0.0, 0.5, 1.0, 7.5])
    stored = quantize(weight, 4, symmetric=False)
    assert stored.integers.tolist() == [-8, -7, -6, 7]
    assert stored.zero_point.item() == -8
    torch.testing.assert_close(stored.dequantize(), weight)
    assert quantize(weight, 4).integers.tolist() == [0, 0, 1, 7]


@pytest.mark.parametrize(
    ("columns", "per", "bits"), [(128, 32, 4.5), (256, 128, 4.125), (4, 4, 8)]
)
def test_sixteen_bit_scales_cost_their_share(columns, per, bits):
    stored = quantize(
        drawn(ROW, columns), 4, per=per, scale_dtype=torch.float16
    )
    assert stored.bits_per_number == bits


# Against PyTorch


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_rows_are_rounded_as_pytorch_rounds_channels(bits, symmetric):
    weight = drawn(ROW, COLUMN, seed=bits, shift=0.3)
    stored = quantize(weight, bits, symmetric=symmetric)
    half = 2 ** (bits - 1)
    expected = torch.fake_quantize_per_channel_affine(
        weight,
        stored.scale[:, 0],
        stored.zero_point[:, 0].int(),
        axis=0,
        quant_min=-half + symmetric,
        quant_max=half - 1,
    )
    torch.testing.assert_close(stored.dequantize(), expected)


def test_a_matrix_is_rounded_as_pytorch_rounds_it():
    weight = drawn(ROW, COLUMN)
    stored = quantize(weight, 8, per="tensor", symmetric=False)
    expected = torch.fake_quantize_per_tensor_affine(
        weight, stored.scale.item(), int(stored.zero_point.item()), -128, 127
    )
    torch.testing.assert_close(stored.dequantize(), expected)
    assert stored.integers.min() == -128
    assert stored.integers.max() == 127


@pytest.mark.filterwarnings("ignore")  # The library's own, at its import.
@pytest.mark.parametrize(("per", "symmetric"), HOW)
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_integers_and_scales_are_those_of_torchao(bits, per, symmetric):
    """Run with torchao 0.18.0 on 2026-11-24: all the same, to the last bit.

    It is not among the tests' pins: transformers imports it wherever it is, and
    it then prints into the notebooks that use transformers.
    """
    name = "torchao.quantization.quant_primitives"
    torchao = pytest.importorskip(name, exc_type=ImportError)
    weight = drawn(ROW, COLUMN, seed=bits, shift=0.1)
    block = {"tensor": (ROW, COLUMN), "row": (1, COLUMN)}.get(per, (1, per))
    kind = "SYMMETRIC" if symmetric else "ASYMMETRIC"
    half = 2 ** (bits - 1)
    ends = torch.int8, -half + symmetric, half - 1
    scale, zero_point = torchao.choose_qparams_affine(
        weight, torchao.MappingType[kind], block, *ends, eps=1e-12
    )
    expected = torchao.quantize_affine(weight, block, scale, zero_point, *ends)
    stored = quantize(weight, bits, per=per, symmetric=symmetric)
    assert torch.equal(stored.integers, expected)
    assert torch.equal(stored.scale.flatten(), scale.flatten())
    assert torch.equal(stored.zero_point.flatten().int(), zero_point.flatten())


# What always holds


@pytest.mark.parametrize(("per", "symmetric"), HOW)
@pytest.mark.parametrize("bits", [2, 4, 5, 8])
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), shift=st.floats(-3, 3))
def test_no_number_is_off_by_more_than_half_a_scale(
    per, symmetric, bits, seed, shift
):
    weight = drawn(ROW, COLUMN, seed=seed, shift=shift).double()
    stored = quantize(weight, bits, per=per, symmetric=symmetric)
    off = (stored.dequantize(torch.float64) - weight).abs()
    groups = off.unflatten(-1, (stored.scale.shape[-1], -1))
    assert (groups <= stored.scale.unsqueeze(-1) / 2 * (1 + 1e-9)).all()
    half = 2 ** (bits - 1)
    assert stored.integers.min().item() >= -half + symmetric
    assert stored.integers.max().item() <= half - 1
    assert stored.symmetric or not symmetric


@pytest.mark.parametrize(("per", "symmetric"), HOW)
def test_zero_stays_zero(per, symmetric):
    weight = drawn(ROW, COLUMN, shift=2.0)
    weight[:, ::3] = 0
    weight[1] = 0
    stored = quantize(weight, 4, per=per, symmetric=symmetric)
    assert (stored.dequantize()[weight == 0] == 0).all()


@pytest.mark.parametrize(("per", "groups"), [("tensor", 1), ("row", 1), (7, 4)])
def test_what_shares_a_scale_is_one_row_of_scales(per, groups):
    stored = quantize(drawn(ROW, COLUMN), 4, per=per)
    assert stored.scale.shape == (1 if per == "tensor" else ROW, groups)
    alone = quantize(drawn(ROW, COLUMN)[2, :7], 4)
    if per == 7:
        assert torch.equal(stored.integers[2, :7], alone.integers)
        assert stored.scale[2, 0] == alone.scale


def test_smaller_groups_and_more_bits_are_nearer():
    weight = drawn(61, 84)
    weight[:, 5] *= 20

    def error(bits, per):
        return (quantize(weight, bits, per=per).dequantize() - weight).norm()

    assert error(4, "tensor") > error(4, "row") > error(4, 7)
    assert error(3, "row") > error(4, "row") > error(8, "row")


def test_integers_are_chosen_for_the_scale_as_it_is_stored():
    weight = drawn(ROW, COLUMN, seed=3) * 1e-6
    stored = quantize(weight, 4, scale_dtype=torch.float16)
    assert stored.scale.dtype == torch.float16
    scale = stored.scale.float()
    # In float16 so small a scale has two digits: the largest may be off more.
    inner = weight.abs() < 7 * scale
    off = (stored.dequantize() - weight).abs()
    assert (off <= scale / 2 * 1.0001)[inner].all()


def test_bfloat16_is_rounded_as_its_numbers_in_float32():
    weight = drawn(ROW, 101).bfloat16()
    small = quantize(weight, 8, scale_dtype=torch.float32)
    wide = quantize(weight.float(), 8)
    assert torch.equal(small.integers, wide.integers)
    assert quantize(weight, 8).scale.dtype == torch.bfloat16


# Two a byte


def test_the_first_of_two_lies_in_the_low_half_of_a_byte():
    packed = pack_int4(torch.tensor([[1, -3, 4, 7]], dtype=torch.int8))
    assert packed.tolist() == [[0xD1, 0x74]]


@pytest.mark.parametrize("columns", [1, 2, 7, 12])
def test_what_is_packed_comes_out_again(columns):
    integers = (torch.arange(ROW * columns) % 16 - 8).to(torch.int8)
    integers = integers.reshape(ROW, columns)
    packed = pack_int4(integers)
    assert packed.shape == (ROW, (columns + 1) // 2)
    assert packed.dtype == torch.uint8
    assert torch.equal(unpack_int4(packed, columns), integers)


@pytest.mark.bad_input
def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="-8 to 7, got 1 to 8"):
        pack_int4(torch.tensor([1, 8], dtype=torch.int8))
    with pytest.raises(ValueError, match=r"2 bytes.*got 5"):
        unpack_int4(torch.zeros(2, dtype=torch.uint8), 5)


# Layers


@pytest.mark.parametrize(("per", "symmetric"), HOW)
@pytest.mark.parametrize("bits", [3, 4, 8])
@pytest.mark.parametrize("bias", [True, False])
def test_a_small_layer_computes_with_the_rounded_weight(
    per, symmetric, bits, bias
):
    layer = nn.Linear(COLUMN, ROW, bias=bias)
    small = QuantizedLinear.of(layer, bits, per=per, symmetric=symmetric)
    x = drawn(BATCH, 2, COLUMN)
    rounded = quantize(
        layer.weight.detach(), bits, per=per, symmetric=symmetric
    )
    expected = nn.functional.linear(x, rounded.dequantize(), layer.bias)
    torch.testing.assert_close(small(x), expected)


def test_a_small_layer_is_small_and_can_be_saved():
    layer = nn.Linear(COLUMN, ROW)
    small = QuantizedLinear.of(layer, 4, per=GROUP)
    assert small.packed.nbytes == ROW * COLUMN / 2
    assert {*small.state_dict()} == {"packed", "scale", "zero_point", "bias"}
    again = QuantizedLinear.of(nn.Linear(COLUMN, ROW), 4, per=GROUP)
    again.load_state_dict(small.state_dict())
    assert torch.equal(again(torch.ones(COLUMN)), small(torch.ones(COLUMN)))
    assert not list(small.parameters())


def test_each_linear_layer_is_replaced_but_those_skipped():
    model = nn.Sequential(
        nn.Embedding(11, 4), nn.Sequential(nn.Linear(4, 6)), nn.Linear(6, 2)
    )
    table = model[0].weight.clone()
    assert quantize_linears(model, 4, skip=["2"]) is model
    assert isinstance(model[1][0], QuantizedLinear)
    assert type(model[2]) is nn.Linear
    assert torch.equal(model[0].weight, table)
    assert model(torch.tensor([[3, 5]])).shape == (1, 2, 2)


def test_a_product_of_integers_is_near_the_product():
    x, weight = drawn(BATCH, COLUMN), drawn(ROW, COLUMN, seed=1)
    exact = x @ weight.T
    eight = integer_linear(x, quantize(weight, 8))
    four = integer_linear(x, quantize(weight, 8), bits=4)
    off = [(y - exact).abs().max().item() for y in (eight, four)]
    assert off[0] < 0.2 < off[1]
    rounded = quantize(x, 8).dequantize() @ quantize(weight, 8).dequantize().T
    torch.testing.assert_close(eight, rounded)


@pytest.mark.bad_input
def test_a_scale_within_the_sum_is_refused():
    x, weight = drawn(BATCH, COLUMN), drawn(ROW, COLUMN)
    for stored in (
        quantize(weight, 8, per=7),
        quantize(weight, 8, symmetric=False),
    ):
        with pytest.raises(ValueError, match="one scale a row"):
            integer_linear(x, stored)


# What is refused


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("weight", "bits", "per", "error", "says"),
    [
        (torch.ones(2, 3), 9, "row", ValueError, "from 2 to 8, got 9"),
        (torch.ones(2, 3), 1, "row", ValueError, "from 2 to 8, got 1"),
        (torch.ones(2, 3), 4.0, "row", TypeError, "an int, got 4.0"),
        (torch.ones(2, 6), 4, 4, ValueError, "divides the 6 columns, got 4"),
        (torch.ones(2, 6), 4, 0, ValueError, "divides the 6 columns, got 0"),
        (torch.ones(2, 6), 4, "column", ValueError, "got 'column'"),
        (torch.ones(0, 6), 4, "row", ValueError, r"got \(0, 6\)"),
        (torch.tensor([torch.nan]), 4, "row", ValueError, "with NaN"),
        (torch.ones(6, dtype=torch.int8), 4, "row", TypeError, "int8"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(weight, bits, per, error, says):
    with pytest.raises(error, match=says):
        quantize(weight, bits, per=per)


@pytest.mark.bad_input
def test_only_a_linear_layer_is_replaced():
    with pytest.raises(TypeError, match="the class Linear, got Embedding"):
        QuantizedLinear.of(nn.Embedding(2, 3), 4)
    with pytest.raises(ValueError, match=r"\(row, column\), got \(3,\)"):
        QuantizedLinear(quantize(torch.ones(3), 4))
