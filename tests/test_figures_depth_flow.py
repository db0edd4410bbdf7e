"""The figures of chapters 07 and 08, as Python makes them."""

import json
import math
import re
from functools import cache

import pytest
import torch
from test_figures import Tags

from companion.data.phrasebook import batch
from companion.data.vocabulary import Vocabulary
from companion.figures import data_flow, depth_curves
from companion.figures.gallery.data_flow import _sizes, shapes
from companion.figures.gallery.data_flow import model as flow_numbers
from companion.figures.gallery.data_flow.steps import (
    DECODER,
    ENCODER,
    Sizes,
    generating,
    training,
)
from companion.figures.gallery.depth_curves.view import BOTTOM, LEFT, RIGHT, TOP
from companion.masks import causal_mask, combine_masks
from companion.training import fit
from companion.transformer import Transformer, TransformerConfig, shift_right

NAMES = ("bare", "norm only", "post-LN", "pre-LN")
DEPTHS = (1, 2, 5)


def some_curves(names=NAMES, depths=DEPTHS):
    """Curves with a gradient that falls below what the plot shows."""
    draw = torch.Generator().manual_seed(3)
    return {
        name: {
            depth: {
                "similarity": torch.rand(depth + 1, generator=draw),
                "gradient": [10.0 ** (-3 * i * at) for at in range(depth)],
            }
            for depth in depths
        }
        for i, name in enumerate(names)
    }


def one_curve(similarity, gradient):
    return {
        "a": {
            len(gradient): {"similarity": similarity, "gradient": gradient},
        }
    }


ZH, EN = list("我爱小猫"), ["I", "love", "little", "cats"]


@cache
def by_heart():
    """A model that knows one sentence, and its vocabularies."""
    zh, en = (Vocabulary.from_sentences([side]) for side in (ZH, EN))
    torch.manual_seed(0)
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 2}
    config = TransformerConfig(
        src_vocab_size=len(zh), tgt_vocab_size=len(en), dropout=0.0, **sizes
    )
    model = Transformer(config)
    pair = batch([ZH], zh), batch([EN], en)
    fit(model, [pair] * 40, rate=lambda step: 1e-2)
    return model, zh, en


MAKERS = {
    "depth_curves": lambda: depth_curves(some_curves()),
    "data_flow": data_flow,
    "trained_flow": lambda: data_flow(trained=by_heart()),
}
every_figure = pytest.mark.parametrize(
    "make", MAKERS.values(), ids=list(MAKERS)
)


def shown(figure):
    """The page without its style and its script."""
    return figure.html.split("</style>")[1].split("<script")[0]


def data_of(figure):
    return json.loads(
        re.search(r"const data = (.*);\n", figure.html)[1].replace("<\\/", "</")
    )


@every_figure
def test_a_figure_is_whole_and_asks_nothing_of_another_place(make):
    html = make().html
    assert Tags(html).open == []
    assert not re.search(r"https?://|@import|//cdn|\bsrc=|\bfetch\(", html)
    assert not re.search(r"url\((?!#)", html)


@every_figure
def test_the_same_input_gives_the_same_bytes(make):
    assert make().html == make().html


# Depth curves.


def test_a_line_goes_through_its_numbers():
    figure = depth_curves(one_curve([0.0, 0.25, 1.0], [1.0, 0.1]))
    alike, gradient = re.findall(r'class="line" d="([^"]+)"', shown(figure))[:2]
    quarter = BOTTOM - (BOTTOM - TOP) / 4
    middle = (LEFT + RIGHT) / 2
    assert alike == (
        f"M{LEFT}.0 {BOTTOM}.0L{middle} {quarter}L{RIGHT}.0 {TOP}.0"
    )
    # 0.1 … 10, upwards: 1 stands in the middle, over the first layer.
    assert gradient == (f"M{middle} {(TOP + BOTTOM) / 2}L{RIGHT}.0 {BOTTOM}.0")


def test_a_line_that_leaves_the_plot_ends_at_its_edge_with_a_mark():
    # From 10⁻¹² to 1; the plot has the eight decades from 10⁻⁷ to 10.
    figure = depth_curves(one_curve([0, 0, 0], [1e-12, 1.0]))
    svg = shown(figure)
    first, last = (LEFT + RIGHT) / 2, RIGHT
    edge = f"{first + (last - first) * 5 / 12:.1f}"
    assert f'd="M{edge} {BOTTOM}.0L{RIGHT}.0 ' in svg
    assert f'translate({edge},{BOTTOM}.0)" d="M-5' in svg
    assert "below 10<sup>−7</sup>" in svg


def test_a_line_that_stays_in_the_plot_has_no_such_mark():
    svg = shown(depth_curves(one_curve([0, 0, 0], [1e-3, 0.9])))
    assert 'd="M-5' not in svg
    assert svg.count('class="mark"') == 4 + 1  # Two lines, and the legend.


def test_no_gradient_at_all_is_drawn_below_everything():
    figure = depth_curves(one_curve([0, 0, 0], [0.0, 0.0]))
    assert re.findall(r'class="line" d="([^"]*)"', shown(figure))[1] == ""
    assert "The gradient is 0 in the first layer" in figure.text


def test_tokens_that_point_apart_get_an_axis_to_minus_1():
    figure = depth_curves(one_curve([0.0, -0.5], [1.0]))
    path = re.findall(r'class="line" d="([^"]+)"', shown(figure))[0]
    middle = (TOP + BOTTOM) / 2
    assert path == (
        f"M{LEFT}.0 {middle}L{RIGHT}.0 {middle + (BOTTOM - TOP) / 4}"
    )


def test_a_cosine_a_hair_below_0_is_drawn_at_0_and_told_as_it_is():
    figure = depth_curves(one_curve([-0.013, 1], [1.0]))
    assert f"M{LEFT}.0 {BOTTOM}.0L" in shown(figure)
    assert "enter with a mean cosine of −0.01" in figure.text


def test_the_deepest_stack_is_told_first():
    curves = some_curves()
    curves["bare"][5] = {
        "similarity": [0.01, 0.5, 0.9, 0.95, 0.99, 0.999],
        "gradient": [7.1e-31, 1e-20, 1e-10, 1e-5, 1.5],
    }
    assert depth_curves(curves).text == (
        "Depth curves. 5 layers, bare: tokens enter with a mean cosine of 0.01 "
        "and leave with 1.00. The gradient is 7.1×10⁻³¹ in the first layer and "
        "1.50 in the last."
    )


def test_one_layer_is_first_and_last():
    figure = depth_curves(one_curve([0.0, 0.5], [2.0]))
    assert "1 layer, a: tokens" in figure.text
    assert figure.text.endswith("The gradient is 2.00 in the layer.")


def test_every_depth_has_its_page_with_the_ends_of_every_stack():
    curves = some_curves()
    data = data_of(depth_curves(curves))
    assert [page["depth"] for page in data["pages"]] == list(DEPTHS)
    for page, depth in zip(data["pages"], DEPTHS, strict=True):
        for cells, runs in zip(page["cells"], curves.values(), strict=True):
            end = runs[depth]["similarity"][-1].item()
            assert float(cells[0]) == pytest.approx(end, abs=0.0051)
        assert page["heads"][-1] == f"layer {depth}"
        assert page["cells"][0][1:] == ["1.00", "1.00"]


def test_the_chosen_line_is_drawn_last_and_above():
    svg = shown(depth_curves(some_curves()))
    for plot in re.findall(r"<svg viewBox=.*?</svg>", svg):
        order = re.findall(r'<g class="(line\d|chosen)">', plot)
        assert order == ["line1", "line2", "line3", "chosen", "line0"]


def test_a_name_with_markup_is_written_out():
    html = depth_curves(some_curves(names=("<b>&",))).html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html.split("<script")[0]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("curves", "complaint"),
    [
        ({}, "expected 1 to 4 names, got 0"),
        (some_curves(names="abcde"), "expected 1 to 4 names, got 5"),
        ({"a": {}}, "at least one depth"),
        (
            some_curves(names="a") | some_curves(names="b", depths=(3,)),
            r"the depths \[1, 2, 5\] for every name, got \[3\] for 'b'",
        ),
        (
            one_curve([0, 0], [1.0, 1.0]),
            r"'a'\]\[2\]\['similarity'\]: expected shape \(any, 3\), "
            r"got \(1, 2\)",
        ),
        (one_curve([0, 0], [torch.nan]), "gradient.*finite numbers, got nan"),
        (one_curve([0, 0], [-2.0]), "gradient.*expected sizes, got -2"),
        (one_curve([0, 2], [1.0]), "similarity.*cosines.*got 2"),
    ],
)
def test_curves_that_do_not_fit_are_named(curves, complaint):
    with pytest.raises(ValueError, match=complaint):
        depth_curves(curves)


# Data flow.

SRC, TGT = ["我", "爱", "小", "猫", "了"], ["I", "love", "cats"]
LANES = len(TGT) + 1


def a_model():
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 2}
    config = TransformerConfig(src_vocab_size=13, tgt_vocab_size=11, **sizes)
    return Transformer(config).eval()


def test_the_shapes_are_those_that_run_through_a_transformer():
    model, seen = a_model(), {}

    def write(name):
        def hook(module, inputs, output):
            seen[name] = tuple(output.shape[1:])

        return hook

    encoder, decoder = model.encoder.layers[-1], model.decoder.layers[-1]
    for name, module in {
        "src_embedding": model.src_embedding,
        "encoder_feed_forward": encoder.feed_forward,
        "memory": model.encoder,
        "tgt_embedding": model.tgt_embedding,
        "feed_forward": decoder.feed_forward,
    }.items():
        module.register_forward_hook(write(name))
    src, tgt = torch.ones(1, 5).long(), torch.ones(1, 3).long()
    seen["logits"] = tuple(model(src, tgt).shape[1:])
    maps = model.maps(src, tgt)
    for name, where in {
        "encoder_attention": maps.src,
        "self_attention": maps.tgt,
        "cross_attention": maps.cross,
    }.items():
        seen[name] = tuple(where[-1].shape[2:])
    words = {14: "d_model", 11: "vocab_size"}
    expected = {
        name: ", ".join(str(words.get(size, size)) for size in sizes)
        for name, sizes in seen.items()
    }
    ours = {
        name: re.search(r"\((.*)\)", text)[1]
        for name, text in shapes(5, 3).items()
    }
    assert ours == expected


def test_a_trained_flow_says_its_sizes_in_numbers():
    model, _, en = by_heart()
    assert (model.config.d_model, len(en)) == (14, 7)
    html = data_flow(trained=by_heart()).html
    page = html.split("</style>")[1]
    for symbol in ("d_model", "vocab_size", "N layers"):
        assert symbol in data_flow().html
        assert symbol not in page
    assert page.count('"times">2 layers<') == 2
    assert page.count("row × √14") == 2
    first, second = data_of(data_flow(trained=by_heart()))["modes"]
    numbers = Sizes("14", "7", "2 layers")
    for page in (*first, *second):
        assert page["shapes"] == shapes(6, page["reads"], numbers)
    assert "(5, 7). One pass" in first[-1]["says"]
    assert (
        "What leaves the stack, 2 layers, has the shape (5, 14)"
        in (first[-2]["says"])
    )
    assert "its row of the scores, (1, 7)" in second[2]["says"]


def test_one_layer_is_no_plural():
    sizes = {"d_model": 7, "num_heads": 1, "d_ff": 5, "num_layers": 1}
    config = TransformerConfig(src_vocab_size=13, tgt_vocab_size=11, **sizes)
    assert _sizes(Transformer(config)) == Sizes("7", "11", "1 layer")


def passes_of(run):
    """How often encoder and decoder of a real model run."""
    model, count = a_model(), {"encoder": 0, "decoder": 0}

    def counting(name):
        def hook(module, inputs, output):
            count[name] += 1

        return hook

    model.encoder.register_forward_hook(counting("encoder"))
    model.decoder.register_forward_hook(counting("decoder"))
    run(model, torch.tensor([[3, 5, 7, 9, 4]]), torch.tensor([[5, 7, 3, 2]]))
    return tuple(count.values())


def test_training_takes_the_passes_that_are_counted():
    def train(model, src, tgt):
        assert model(src, shift_right(tgt, bos=1)).shape[1] == LANES

    steps = training(SRC, TGT, hidden=6)
    assert steps[0].passes == steps[-1].passes == passes_of(train) == (1, 1)


def test_generating_takes_the_passes_that_are_counted():
    def generate(model, src, tgt):
        read = torch.tensor([[1]])
        memory = model.encode(src, None)
        for answer in tgt[0]:
            masks = combine_masks(src, read, pad=0)
            model.decode(read, memory, masks.tgt, masks.cross)
            read = torch.cat([read, answer.view(1, 1)], dim=1)

    steps = generating(SRC, TGT)
    assert steps[-1].passes == passes_of(generate) == (1, LANES)
    assert [step.passes[1] for step in steps] == list(range(LANES + 1))


def test_the_decoder_reads_the_target_shifted_right():
    page = shown(data_flow(tgt="I love my cats"))
    lanes = dict(
        re.findall(
            r'data-part="(src|tgt|out)".*?">(.*?)</div>', page, re.DOTALL
        )
    )
    words = {
        name: re.sub(r"<[^>]+>", " ", html).split()
        for name, html in lanes.items()
    }
    assert words == {
        "src": ["我", "爱", "小", "猫"],
        "tgt": ["&lt;bos&gt;", "I", "love", "my", "cats"],
        "out": ["I", "love", "my", "cats", "&lt;eos&gt;"],
    }


def test_a_word_that_occurs_twice_stands_twice():
    page = shown(data_flow(tgt="cats love cats"))
    assert page.count(">cats</span>") == 4


def test_in_training_every_position_writes_in_one_pass():
    pages = data_of(data_flow("".join(SRC), " ".join(TGT)))["modes"][0]
    for page in pages:
        assert page["tgt"] == ["on"] * LANES
        assert page["reads"] == LANES
    assert pages[-1]["out"] == ["on"] * LANES
    assert pages[3]["out"] == ["old"] * LANES


def test_generating_what_is_written_is_read_in_the_next_pass():
    pages = data_of(data_flow("".join(SRC), " ".join(TGT)))["modes"][1]
    assert pages[0]["tgt"] == ["on", "off", "off", "off"]
    assert pages[0]["out"] == ["off"] * LANES
    assert pages[2]["tgt"] == ["on", "on", "next", "off"]
    assert pages[2]["out"] == ["old", "on", "off", "off"]
    assert pages[-1]["tgt"] == ["on"] * LANES
    assert pages[-1]["out"] == ["old", "old", "old", "on"]


def test_the_tour_passes_every_part_and_goes_with_the_flow():
    first, *stops = training(SRC, TGT, hidden=6)
    assert first.lit == ENCODER + DECODER
    visited = [part for stop in stops for part in stop.lit]
    once = list(dict.fromkeys(visited))
    assert once == [*ENCODER, *DECODER]


def test_the_words_say_the_sizes():
    first, read, _, shift, mask, cross, *_ = training(SRC, TGT, hidden=6)
    assert "all 4 positions" in first.says
    assert "5 source tokens become 5 vectors" in read.says
    assert "must predict “I”" in shift.says
    assert "4 × 4 scores, of which the causal mask hides 6" in mask.says
    assert "4 queries from the decoder, 5 keys" in cross.says


def test_the_hidden_cells_are_counted_with_the_causal_mask():
    hidden = int((~causal_mask(5)).sum())
    assert hidden == 10
    says = data_of(data_flow())["modes"][0][4]["says"]
    assert f"causal mask hides {hidden}." in says


def test_the_squares_are_the_causal_mask():
    page = shown(data_flow(tgt=" ".join(TGT)))
    squares = re.findall(r'<i class="(sees|hides)">', page)
    seen = torch.tensor([square == "sees" for square in squares])
    assert torch.equal(seen.view(LANES, LANES), causal_mask(LANES))


def test_the_last_pass_ends_the_sentence():
    *_, before, last = generating(SRC, TGT)
    assert "“cats” (the right answer is assumed). It is fed back" in before.says
    assert "<eos>, which ends the sentence. That took 4 passes" in last.says
    assert "fed back" not in last.says


def test_one_token_is_enough_for_a_flow():
    figure = data_flow("猫", "cat")
    assert "1 source token becomes" not in figure.text
    pages = data_of(figure)["modes"]
    assert len(pages[1]) == 3
    assert pages[1][1]["says"].startswith("Pass 1: the decoder reads 1 token,")


# Data flow, with a trained model's numbers.


def test_every_number_is_one_that_runs_through_the_model():
    model, zh, en = by_heart()
    src, tgt = batch([ZH], zh), batch([EN], en)
    reads, answer = tgt[:, :-1], tgt[0, 1:]
    masks = combine_masks(src, reads, pad=0)
    with torch.no_grad():
        memory = model.encode(src, masks.src)
        odds = model(src, reads)[0].softmax(-1)[:, answer]
        maps = model.maps(src, reads)
        expected = {
            "src_embedding": model.positions(
                model.src_embedding.weight[src] * math.sqrt(14)
            )[0],
            "memory": memory[0],
            "encoder_attention": maps.src[-1][0].mean(0),
            "cross_attention": maps.cross[-1][0].mean(0),
            "self_attention": maps.tgt[-1][0].mean(0),
            "logits": odds,
        }
    tables = data_of(data_flow(trained=by_heart()))["tables"]
    assert set(expected) < set(tables) == set(shapes(1, 1))
    for part, values in expected.items():
        shown = [[v or 0.0 for v in row] for row in tables[part]["values"]]
        wanted = values[:, : len(shown[0])]
        torch.testing.assert_close(
            torch.tensor(shown), wanted, atol=6e-5, rtol=0
        )


def test_feed_forward_shows_what_comes_out_of_the_last_one():
    model, zh, en = by_heart()
    seen = {}
    names = {"encoder_feed_forward": "encoder", "feed_forward": "decoder"}
    for name, side in names.items():
        getattr(model, side).layers[-1].feed_forward.register_forward_hook(
            lambda _, args, out, name=name: seen.update({name: out[0]})
        )
    tables = data_of(data_flow(trained=(model, zh, en)))["tables"]
    for name in names:
        torch.testing.assert_close(
            torch.tensor(tables[name]["values"]),
            seen[name][:, : flow_numbers.SHOWN],
            atol=6e-5,
            rtol=0,
        )


def test_the_future_is_masked_and_has_no_number():
    table = data_of(data_flow(trained=by_heart()))["tables"]["self_attention"]
    hidden = [[value is None for value in row] for row in table["values"]]
    assert torch.equal(~torch.tensor(hidden), causal_mask(5))


def test_generating_says_the_odds_of_each_token_and_assumes_nothing():
    model, zh, en = by_heart()
    pages = data_of(data_flow(trained=by_heart()))["modes"][1][1:]
    out = torch.tensor([[en.bos]])
    for page, answer in zip(pages, [*EN, "<eos>"], strict=True):
        with torch.no_grad():
            odds = model(batch([ZH], zh), out)[0, -1].softmax(-1)
        best = odds.argmax()
        assert en.tokens[best] == answer
        assert f"{answer}” (p = {odds[best]:.3f})" in page["says"].replace(
            "<eos> (", "<eos>” ("
        )
        assert "assumed" not in page["says"]
        out = torch.cat([out, best.view(1, 1)], dim=1)


def test_the_caption_tells_the_loss_of_the_sentence():
    model, zh, en = by_heart()
    src, tgt = batch([ZH], zh), batch([EN], en)
    with torch.no_grad():
        log_p = model(src, tgt[:, :-1])[0].log_softmax(-1)
    loss = -log_p.gather(1, tgt[0, 1:, None]).mean()
    figure = data_flow(trained=by_heart())
    assert f"Its loss on this sentence is {loss:.3f}." in figure.html


@pytest.mark.parametrize("training_mode", [True, False])
def test_a_model_is_left_as_it_was(training_mode):
    model, zh, en = by_heart()
    model.train(training_mode)
    data_flow(trained=(model, zh, en))
    assert model.training is training_mode
    assert not any(part._forward_hooks for part in (model.encoder,
                   model.decoder))  # fmt: skip


def test_the_picture_without_scripts_has_the_numbers_of_its_step():
    page = shown(data_flow(trained=by_heart()))
    values = data_of(data_flow(trained=by_heart()))["tables"]["logits"]
    cells = re.findall(r"<td[^>]*>([^<]+)</td>", page)
    assert cells[-25:] == [
        f"{value:.2f}" for row in values["values"] for value in row
    ]


@pytest.mark.bad_input
def test_a_model_that_writes_something_else_is_named():
    _, zh, en = by_heart()
    config = TransformerConfig.tiny(len(zh), len(en))
    with pytest.raises(ValueError, match="trained: expected a model that wri"):
        data_flow(trained=(Transformer(config), zh, en))


@pytest.mark.bad_input
def test_a_source_that_does_not_fit_with_its_ends_is_named():
    with pytest.raises(ValueError, match="src: expected 1 to 6 tokens, got 7"):
        data_flow("我爱小猫们", trained=by_heart())


@pytest.mark.bad_input
def test_a_word_that_the_model_does_not_know_is_named():
    with pytest.raises(ValueError, match="狗"):
        data_flow("我爱小狗", trained=by_heart())


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"src": " "}, "src: expected 1 to 6 tokens, got 0"),
        ({"tgt": ""}, "tgt: expected 1 to 6 tokens, got 0"),
        ({"src": "我今天看到小猫"}, "src: expected 1 to 6 tokens, got 7"),
    ],
)
def test_sentences_that_do_not_fit_are_named(arguments, complaint):
    with pytest.raises(ValueError, match=complaint):
        data_flow(**arguments)
