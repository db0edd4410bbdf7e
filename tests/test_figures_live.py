"""Live figures of chapters 04 to 08: the package answers what is asked."""

import re
from html import unescape

import pytest
import torch
import torch.nn.functional as F

from companion import figures
from companion.figures import live
from companion.multihead import MultiHeadAttention
from companion.positions import sinusoidal
from companion.transformer import Transformer, TransformerConfig

MAKERS = (
    live.try_heads,
    live.try_positions,
    live.try_masks,
    live.try_norms,
    live.try_sizes,
)


def shown(figure):
    """What a page shows, without its style sheet and tags."""
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", figure.page.value)
    return " ".join(unescape(text).split())


def tables(figure):
    """Caption -> rows of cells, without the row and column names."""
    found = {}
    for table in re.findall(r"<table.*?</table>", figure.page.value, re.DOTALL):
        title = re.search(r"<caption>(.*?)</caption>", table)[1]
        body = table.split("<tbody>")[1]
        found[title] = [
            re.findall(r"<td[^>]*>(.*?)</td>", row)
            for row in body.split("</tr>")[:-1]
        ]
    return found


def numbers(rows):
    return torch.tensor(
        [[float(cell.replace("−", "-")) for cell in row] for row in rows]
    )


@pytest.mark.parametrize("make", MAKERS)
def test_it_is_a_widget_and_a_sentence_for_where_none_works(make):
    bundle = make()._repr_mimebundle_()
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    assert len(view["model_id"]) == 32
    for text in bundle.values():
        assert "This figure needs a kernel: run its cell to" in text


@pytest.mark.parametrize("make", MAKERS)
def test_it_answers_at_once_and_complains_of_nothing(make):
    page = make().page.value
    assert 'role="status"' in page
    assert 'role="alert"' not in page


def test_every_live_figure_can_be_had_from_one_place():
    for name in live.__all__:
        assert getattr(live, name).__name__ == name
    assert figures.live is live


# Heads.


def test_the_heads_are_those_of_an_attention_with_that_seed():
    figure = live.try_heads()
    figure.controls["sentence"].value = "I love cats I"
    figure.controls["num_heads"].value = 2
    figure.controls["seed"].value = 7
    torch.manual_seed(7)
    words = torch.randn(3, 16)
    attention = MultiHeadAttention(16, 2)
    maps = attention.weights(words[[0, 1, 2, 0]][None])[0]
    for number, weights in enumerate(maps, 1):
        ours = numbers(tables(figure)[f"Head {number}"])
        torch.testing.assert_close(ours, weights.detach(), atol=0.0051, rtol=0)


def test_equal_words_have_equal_rows_because_no_position_is_added():
    figure = live.try_heads()
    rows = tables(figure)["Head 1"]  # the cat sat on the mat
    assert rows[0] == rows[4]
    assert rows[0] != rows[1]


def test_the_heads_leave_the_random_numbers_of_the_reader_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    live.try_heads()
    assert torch.rand(1) == expected


@pytest.mark.bad_input
@pytest.mark.parametrize(("text", "got"), [(" ", 0), ("a " * 13, 13)])
def test_a_sentence_must_have_some_words_and_not_too_many(text, got):
    figure = live.try_heads()
    figure.controls["sentence"].value = text
    assert f"sentence: expected 1 to 12 words, got {got}" in shown(figure)


# Positions.


def test_dot_product_and_distance_are_those_of_the_encodings():
    figure = live.try_positions()
    for name, value in {"p": 5, "q": 2, "width": 6}.items():
        figure.controls[name].value = value
    table = sinusoidal(6, 6)
    measured = numbers(tables(figure)["Of the two positions"])
    here = torch.stack([table[5] @ table[2], (table[5] - table[2]).norm()])
    torch.testing.assert_close(measured[:2, 0], here, atol=1e-4, rtol=0)
    encodings = numbers(tables(figure)["Encodings, first dimensions"])
    both = table[torch.tensor([5, 2])]
    torch.testing.assert_close(encodings[:2], both, atol=0.0051, rtol=0)


@pytest.mark.parametrize(("p", "q", "width"), [(3, 10, 16), (97, 0, 128)])
def test_what_is_shown_of_two_positions_depends_on_their_offset(p, q, width):
    figure = live.try_positions()
    for name, value in {"p": p, "q": q, "width": width}.items():
        figure.controls[name].value = value
    for here, later in tables(figure)["Of the two positions"]:
        assert here == later
    encodings = tables(figure)["Encodings, first dimensions"]
    assert encodings[1] == encodings[2]
    assert encodings[1] != encodings[0]
    within = re.search(r"to within \d\.\d×10⁻¹(\S)", shown(figure))
    assert within[1] in "³⁴⁵⁶"


# Masks.


def test_the_three_masks_of_two_typed_rows_are_shown():
    figure = live.try_masks()
    figure.controls["src"].value = "我 _"
    figure.controls["tgt"].value = "<bos> cats _"
    yes, no = "True", "False"
    assert tables(figure) == {
        "src, for the encoder": [[yes, no]],
        "tgt, for the decoder": [[yes, no, no], [yes, yes, no], [yes, yes, no]],
        "cross": [[yes, no]],
        "src as key_padding_mask": [[no, yes]],
    }
    assert "1 of 2 source tokens may be seen" in shown(figure)
    assert "gives zeros" not in shown(figure)


def test_a_source_of_padding_only_is_said_to_give_zeros():
    figure = live.try_masks()
    figure.controls["src"].value = "_ _ _"
    assert "0 of 3 source tokens" in shown(figure)
    assert "attention gives zeros" in shown(figure)


@pytest.mark.bad_input
def test_an_empty_row_is_named():
    figure = live.try_masks()
    figure.controls["tgt"].value = ""
    assert "tgt: expected 1 to 12 words, got 0" in shown(figure)


# Norms.


def test_both_norms_are_those_of_pytorch():
    figure = live.try_norms()
    figure.controls["x"].value = "1 2 4\n0 -1 5\n7 7 1\n2 3 1"
    x = torch.tensor([[1.0, 2, 4], [0, -1, 5], [7, 7, 1], [2, 3, 1]])
    layer = numbers(tables(figure)["LayerNorm"])
    batch = numbers(tables(figure)["BatchNorm"])
    near = {"atol": 0.0051, "rtol": 0}
    torch.testing.assert_close(layer[:, :3], F.layer_norm(x, (3,)), **near)
    torch.testing.assert_close(batch[:4], torch.nn.BatchNorm1d(3)(x), **near)
    ends = torch.tensor([0.0, 1.0])
    assert torch.equal(layer[:, 3:], ends.expand(4, 2))
    assert torch.equal(batch[4:].T, ends.expand(3, 2))


def test_a_token_ten_times_as_long_is_the_same_to_layer_norm_only():
    rows = tables(live.try_norms())  # Its second row is ten times the first.
    assert rows["LayerNorm"][0] == rows["LayerNorm"][1]
    assert rows["BatchNorm"][0] != rows["BatchNorm"][1]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 2 3", "x: expected at least two rows"),
        ("1 2\n3", "x: expected rows of one length, got 2, 1"),
    ],
)
def test_a_table_that_no_batch_norm_can_use_is_named(text, complaint):
    figure = live.try_norms()
    figure.controls["x"].value = text
    assert complaint in shown(figure)
    assert 'role="alert"' in figure.page.value


# Sizes.


def test_the_sizes_start_at_the_base_model_of_the_paper():
    # A layer has 4 or 8 maps 512 × 512, two between 512 and 2048, and norms.
    attention, norm = 4 * 512 * 513, 2 * 512
    feed_forward = 512 * 2049 + 2048 * 513
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    total = 37_000 * 512 + encoder + decoder
    figure = live.try_sizes()
    assert f"{total:,} parameters, 252 MB" in shown(figure)
    rows = tables(figure)["Where the parameters are"]
    counts = [int(row[0].replace(",", "")) for row in rows]
    assert counts[0] == 37_000 * 512
    assert sum(counts[1:4]) == encoder
    assert counts[4:] == [
        12 * attention, 6 * feed_forward, 18 * norm, total
    ]  # fmt: skip


def test_the_sizes_count_a_real_model():
    figure = live.try_sizes()
    sizes = {"d_model": 64, "num_heads": 16, "d_ff": 256, "num_layers": 3}
    for name, value in sizes.items():
        figure.controls[name].value = value
    figure.controls["vocab_size"].value = 2000
    model = Transformer(
        TransformerConfig(
            src_vocab_size=2000, tgt_vocab_size=2000, shared_vocab=True, **sizes
        )
    )
    total = sum(parameter.numel() for parameter in model.parameters())
    assert f"{total:,} parameters" in shown(figure)
    assert "Each head is 4 wide" in shown(figure)


@pytest.mark.bad_input
def test_heads_that_do_not_divide_the_width_are_named():
    figure = live.try_sizes()
    figure.controls["num_heads"].value = 7
    assert "expected a divisor of d_model = 512, got 7" in shown(figure)
    assert 'role="alert"' in figure.page.value
