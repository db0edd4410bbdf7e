"""The figures that a kernel answers."""

import re
from html import unescape
from math import nan

import pytest
import torch
import torch.nn.functional as F
from figures.registry import Tags, read_aloud

from companion import figures
from companion.data.vocabulary import Vocabulary
from companion.decoding import (
    beam_search,
    length_penalty,
    next_token,
)
from companion.efficiency import quantize
from companion.figures import (
    live,
    small_rnn,
)
from companion.figures.gallery.objectives import (
    OTHERS,
    examples,
)
from companion.figures.gallery.objectives.parts import Words
from companion.figures.gallery.objectives.words import summary
from companion.multihead import MultiHeadAttention
from companion.positions import sinusoidal
from companion.rnn import gradient_to_inputs
from companion.seq2seq import Seq2Seq
from companion.training import noam
from companion.transformer import Transformer, TransformerConfig


@pytest.fixture(scope="module")
def translator():
    """An untrained model; it translates, if only into nonsense."""
    zh, en = Vocabulary("我爱小猫"), Vocabulary(["I", "love", "cats"])
    torch.manual_seed(0)
    return Seq2Seq(len(zh), len(en), 5, 7, context="dot"), zh, en


def test_the_live_gradients_are_those_of_the_package():
    figure = live.try_gradients()
    figure.controls["gain"].value = 1.5
    figure.controls["length"].value = 7
    x, h0, W, U, b = small_rnn(7)
    norms = gradient_to_inputs(x, h0, W, 1.5 * U, b)
    shown = read_aloud(figure)
    assert f"Gain 1.50: {norms[0]:.3g} at the first input" in shown
    assert "‖∂h₇/∂xₜ‖" in shown


def test_a_typed_sentence_is_translated_and_aligned(translator):
    figure = live.type_a_sentence(*translator)
    figure.controls["sentence"].value = " 小 猫"
    model, zh, en = translator
    src = torch.tensor([[zh.bos, *zh.encode("小猫"), zh.eos]])
    ids = en.decode(model.translate(src, 11)[0].tolist())
    shown = read_aloud(figure)
    assert " ".join(ids) in shown
    start = torch.tensor([[en.bos]])
    first = model.align(src, start)[0, 0].tolist()
    cells = re.findall(r"\d\.\d\d", shown)
    assert [float(c) for c in cells[:4]] == pytest.approx(first, abs=0.006)


def test_an_unknown_character_and_an_empty_field_are_answered(translator):
    figure = live.type_a_sentence(*translator)
    figure.controls["sentence"].value = "我爱狗"
    assert "unknown token &#x27;狗&#x27;" in figure.page.value
    assert 'role="alert"' in figure.page.value
    figure.controls["sentence"].value = "  "
    assert "Type a Chinese sentence." in figure.page.value


def test_typed_queries_and_keys_attend(translator):
    figure = live.try_attention()
    for name, text in {"q": "0 2", "k": "1 0\n0, 1", "v": "5\n7"}.items():
        figure.controls[name].value = text
    # The scores are 0 and 2/√2: weights 0.196 and 0.804, output 6.61.
    assert re.findall(r"\d\.\d\d", read_aloud(figure)) == [
        "0.20", "0.80", "6.61",
    ]  # fmt: skip
    figure.controls["scaled"].value = False
    # Without the scale 0 and 2: 0.119 and 0.881, output 6.76.
    assert re.findall(r"\d\.\d\d", read_aloud(figure)) == [
        "0.12", "0.88", "6.76",
    ]  # fmt: skip


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 0\n1", "q: expected rows of one length, got 2, 1"),
        ("", "q: expected rows of one length, got no rows"),
        ("1 x", "q, row 1: 'x' is not a number"),
        ("nan 1", "q, row 1: 'nan' is not between -1000 and 1000"),
        ("1 2 3", "d_k"),
    ],
)
def test_a_typed_matrix_that_does_not_fit_is_named(text, complaint):
    figure = live.try_attention()
    figure.controls["q"].value = text
    assert complaint in unescape(figure.page.value)


ZH = Vocabulary(list("我爱小猫狗"))


EN = Vocabulary(["I", "love", "little", "cats", "dogs"])


def a_model():
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 2}
    config = TransformerConfig(
        src_vocab_size=len(ZH), tgt_vocab_size=len(EN), **sizes
    )
    torch.manual_seed(5)
    return Transformer(config)


def test_the_live_schedule_says_the_rate_and_the_peak():
    figure = live.try_schedule()
    for name, value in {
        "d_model": 64, "warmup": 100, "step": 400, "factor": 2.0
    }.items():  # fmt: skip
        figure.controls[name].value = value
    # 2 · (64 · 100)^-½ = 0.025, and half of it at four times the step.
    assert 2 * noam(100, 64, 100) == pytest.approx(0.025, rel=1e-12)
    assert (
        "At step 400 the rate is 0.013, which is 50.0 % of the peak of 0.025 "
        "at step 100."
    ) in read_aloud(figure)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("warmup", 0, "warmup"),
        ("step", 0, "step"),
        ("d_model", -3, "d_model"),
        ("factor", 0.0, "factor: expected a number above 0"),
        ("factor", nan, "factor: expected a number above 0"),
    ],
)
def test_a_schedule_that_does_not_fit_is_named(name, value, complaint):
    figure = live.try_schedule()
    figure.controls[name].value = value
    assert complaint in read_aloud(figure)
    assert 'role="alert"' in figure.page.value


@pytest.mark.parametrize("beam", [1, 3])
def test_the_live_translation_is_the_beam_search_of_the_package(beam):
    model = a_model()
    figure = live.try_translation(model, ZH, EN)
    figure.controls["sentence"].value = "我爱 小狗"
    figure.controls["beam"].value = beam
    src = torch.tensor([[ZH.bos, *ZH.encode("我爱小狗"), ZH.eos]])
    step = next_token(model, src)
    ids = beam_search(step, EN.bos, EN.eos, beam, 17, 0.6)
    rows = torch.tensor([[EN.bos, *ids]])
    logits = model.eval()(src, rows[:, :-1])[0]
    logits[:, EN.pad] = -torch.inf
    total = logits.log_softmax(-1).gather(1, rows[0, 1:, None]).sum().item()
    said = read_aloud(figure)
    assert f"“{' '.join(EN.decode(ids))}”." in said
    numbers = [
        float(n.replace("−", "-"))
        for n in re.findall(r"(?:add up to|score of) (−?[\d.]+\d)", said)
    ]
    wanted = [total, total / length_penalty(len(ids), 0.6)]
    assert numbers == pytest.approx(wanted, abs=6e-4)
    looks = model.maps(src, rows[:, :-1]).cross[-1][0].mean(0)
    cells = re.findall(r"<td [^>]*>([\d.]+)</td>", figure.page.value)
    shown_weights = torch.tensor([float(cell) for cell in cells])
    torch.testing.assert_close(
        shown_weights.view(looks.shape), looks.detach(), atol=0.0051, rtol=0
    )


def test_the_live_translation_leaves_the_mode_of_the_model_alone():
    model = a_model().train()
    live.try_translation(model, ZH, EN)
    assert model.training
    assert all(module.training for module in model.modules())


@pytest.mark.bad_input
def test_an_unknown_character_is_answered_with_the_message_of_the_package():
    figure = live.try_translation(a_model(), ZH, EN)
    figure.controls["sentence"].value = "我爱鲸"
    assert "unknown token '鲸'; none is near" in read_aloud(figure)
    assert 'role="alert"' in figure.page.value
    figure.controls["sentence"].value = "  "
    assert "Type a Chinese sentence." in read_aloud(figure)


def test_the_live_masking_shows_three_damages_of_what_is_typed():
    figure = live.try_masking()
    values = {"text": "我 爱 猫 。 a", "share": 0.5, "seed": 4}
    for name, value in values.items():
        figure.controls[name].value = value
    said = read_aloud(figure)
    for model in ("BERT", "T5", "BART"):
        [example] = examples(model, Words(values["text"], OTHERS), 0.5, [4])
        assert f"{model} {summary(model, example)}" in said
        for lane in example.lanes:
            assert lane.name in said
            for piece in lane.reads:
                assert piece.text in said
    assert 'role="status"' in figure.page.value
    assert "opacity" in figure.page.value  # It has the style of the figure …
    assert "data-seen>" not in figure.page.value  # … and nobody is looked at.
    assert Tags(figure.page.value).open == []


@pytest.mark.bad_input
def test_too_short_a_text_is_answered_with_what_is_wrong():
    figure = live.try_masking()
    figure.controls["text"].value = "one"
    assert "text: expected 2 to 12 words, got 1" in read_aloud(figure)
    assert 'role="alert"' in figure.page.value


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


@pytest.fixture(
    params=[name for name in live.__all__ if name != "Live"], ids=str
)
def every_live(request, translator):
    given = {
        "type_a_sentence": translator,
        "try_translation": (a_model(), ZH, EN),
    }
    return getattr(live, request.param)(*given.get(request.param, ()))


def test_it_is_a_widget_and_a_sentence_for_where_none_works(every_live):
    bundle = every_live._repr_mimebundle_()
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    assert (view["version_major"], len(view["model_id"])) == (2, 32)
    assert set(bundle) == {"text/html", "text/plain"}
    for text in bundle.values():
        assert "This figure needs a kernel: run its cell to" in text


def test_it_answers_at_once_and_complains_of_nothing(every_live):
    page = every_live.page.value
    assert len(page) > 1000
    assert 'role="alert"' not in page


def test_every_live_figure_can_be_had_from_one_place():
    for name in live.__all__:
        assert getattr(live, name).__name__ == name
    assert figures.live is live


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
    assert f"sentence: expected 1 to 12 words, got {got}" in read_aloud(figure)


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
    within = re.search(r"to within \d\.\d×10⁻¹(\S)", read_aloud(figure))
    assert within[1] in "³⁴⁵⁶"


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
    assert "1 of 2 source tokens may be seen" in read_aloud(figure)
    assert "gives zeros" not in read_aloud(figure)


def test_a_source_of_padding_only_is_said_to_give_zeros():
    figure = live.try_masks()
    figure.controls["src"].value = "_ _ _"
    assert "0 of 3 source tokens" in read_aloud(figure)
    assert "attention gives zeros" in read_aloud(figure)


@pytest.mark.bad_input
def test_an_empty_row_is_named():
    figure = live.try_masks()
    figure.controls["tgt"].value = ""
    assert "tgt: expected 1 to 12 words, got 0" in read_aloud(figure)


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
    assert complaint in read_aloud(figure)
    assert 'role="alert"' in figure.page.value


def test_the_sizes_start_at_the_base_model_of_the_paper():
    # A layer has 4 or 8 maps 512 × 512, two between 512 and 2048, and norms.
    attention, norm = 4 * 512 * 513, 2 * 512
    feed_forward = 512 * 2049 + 2048 * 513
    encoder = 6 * (attention + feed_forward + 2 * norm)
    decoder = 6 * (2 * attention + feed_forward + 3 * norm)
    total = 37_000 * 512 + encoder + decoder
    figure = live.try_sizes()
    assert f"{total:,} parameters, 252 MB" in read_aloud(figure)
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
    assert f"{total:,} parameters" in read_aloud(figure)
    assert "Each head is 4 wide" in read_aloud(figure)


@pytest.mark.bad_input
def test_heads_that_do_not_divide_the_width_are_named():
    figure = live.try_sizes()
    figure.controls["num_heads"].value = 7
    assert "expected a divisor of d_model = 512, got 7" in read_aloud(figure)
    assert 'role="alert"' in figure.page.value


def test_the_live_integers_are_those_that_quantize_makes():
    figure = live.try_rounding("0.1 -0.3 0.4 0.7")
    page = figure.page.value
    assert all(f"<td>{n}</td>" in page for n in (1, -3, 4, 7))
    assert "Scales: 0.100. The largest error is 0.000." in page
    figure.controls["text"].value = "0.1 -0.3 0.4 0.7 0 0 0 7"
    assert "Scales: 1.00. The largest error is 0.400." in figure.page.value
    figure.controls["group"].value = 4
    assert "Scales: 0.100, 1.00." in figure.page.value
    figure.controls["bits"].value, figure.controls["symmetric"].value = 2, False
    weight = torch.tensor([[0.1, -0.3, 0.4, 0.7, 0, 0, 0, 7]])
    stored = quantize(weight, 2, per=4, symmetric=False)
    assert (
        "".join(f"<td>{n}</td>" for n in stored.integers[0].tolist())
        in figure.page.value
    )


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1 2 three", "&#x27;three&#x27; is not a number"),
        ("1 " * 17, "expected one row of at most 16"),
    ],
)
def test_numbers_that_cannot_be_rounded_are_named(typed, said):
    figure = live.try_rounding()
    figure.controls["text"].value = typed
    assert said in figure.page.value
    figure.controls["text"].value = "1 2 3"
    assert "Scales" in figure.page.value
    figure.controls["group"].value = 2
    assert "divides the 3 columns" in figure.page.value


def test_the_live_tokens_are_those_of_what_is_typed():
    figure = live.try_tokens([("a", "t"), ("c", "at")], "cat")
    assert figure.page.value.count('class="piece"') == 1
    figure.controls["text"].value = "chat 猫"
    assert "tokens: text 7." in read_aloud(figure)
    figure.controls["number"].value = 0
    assert "tokens: text 8." in read_aloud(figure)
