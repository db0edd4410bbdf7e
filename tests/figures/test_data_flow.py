"""The figure of chapter 08: the whole Transformer at work."""

import math
import re
from html import unescape
from itertools import pairwise

import pytest
import torch
from figures.browser import LAPTOP, PHONE, computed, press
from figures.registry import EN, ZH, by_heart, data_of, html_of, parts_at, shown

from companion.data.phrasebook import batch
from companion.figures import data_flow
from companion.figures.gallery.data_flow import _sizes, shapes
from companion.figures.gallery.data_flow import model as flow_numbers
from companion.figures.gallery.data_flow.steps import (
    AROUND,
    DECODER,
    ENCODER,
    Sizes,
    generating,
    training,
)
from companion.figures.kit.digits import fixed
from companion.masks import causal_mask, combine_masks
from companion.transformer import Transformer, TransformerConfig, shift_right

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
    figure = data_flow(trained=by_heart())
    numbers = Sizes("14", "7", "2 layers", AROUND[False])
    for state, reads in (((0, 0), 5), ((1, 0), 1), ((1, 3), 3)):
        drawn = parts_at(figure, *state)["shape"]
        assert drawn == list(shapes(6, reads, numbers).values())
    says = [
        unescape(parts_at(figure, *state)["says"][0])
        for state in ((0, 7), (0, 6), (1, 2))
    ]
    assert "(5, 7). One pass" in says[0]
    assert "What leaves the stack, 2 layers, has the shape (5, 14)" in says[1]
    assert "its row of the scores, (1, 7)" in says[2]


def test_one_layer_is_no_plural():
    sizes = {"d_model": 7, "num_heads": 1, "d_ff": 5, "num_layers": 1}
    config = TransformerConfig(src_vocab_size=13, tgt_vocab_size=11, **sizes)
    named = _sizes(Transformer(config))
    assert named == Sizes("7", "11", "1 layer", AROUND[False])


def test_each_part_of_a_layer_says_where_its_norm_stands():
    sizes = {"d_model": 7, "num_heads": 1, "d_ff": 5, "num_layers": 1}
    sizes |= {"src_vocab_size": 13, "tgt_vocab_size": 11}
    before = Transformer(TransformerConfig(norm_first=True, **sizes))
    assert _sizes(before).around == AROUND[True] != AROUND[False]
    # Two of an encoder layer, three of a decoder layer.
    assert shown(data_flow()).count(AROUND[False]) == 5


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


def looks(figure, mode, step):
    """The classes of the tokens that are read, and of those that are said."""
    parts = parts_at(figure, mode, step)
    return [
        re.findall(r'class="token (\w+)"', parts[lane][0])
        for lane in ("tgt", "out")
    ]


def test_in_training_every_position_writes_in_one_pass():
    figure = data_flow("".join(SRC), " ".join(TGT))
    for step in range(8):
        assert looks(figure, 0, step)[0] == ["on"] * LANES
        [style] = parts_at(figure, 0, step)["decoder@style"]
        assert style.endswith(f"--reads: {LANES}")
    assert looks(figure, 0, 7)[1] == ["on"] * LANES
    assert looks(figure, 0, 3)[1] == ["old"] * LANES


def test_generating_what_is_written_is_read_in_the_next_pass():
    figure = data_flow("".join(SRC), " ".join(TGT))
    assert looks(figure, 1, 0) == [["on", "off", "off", "off"], ["off"] * LANES]
    assert looks(figure, 1, 2) == [
        ["on", "on", "next", "off"],
        ["old", "on", "off", "off"],
    ]
    assert looks(figure, 1, 4) == [["on"] * LANES, ["old", "old", "old", "on"]]


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
    says = parts_at(data_flow(), 0, 4)["says"][0]
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
    assert data_of(figure)["controls"][1]["counts"] == [8, 3]
    [says] = parts_at(figure, 1, 1)["says"]
    assert says.startswith("Pass 1: the decoder reads 1 token,")


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
    tables = flow_numbers.run(by_heart(), ZH, EN).tables
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
    tables = flow_numbers.run((model, zh, en), ZH, EN).tables
    for name in names:
        torch.testing.assert_close(
            torch.tensor(tables[name]["values"]),
            seen[name][:, : flow_numbers.SHOWN],
            atol=6e-5,
            rtol=0,
        )


def test_the_future_is_masked_and_has_no_number():
    table = flow_numbers.run(by_heart(), ZH, EN).tables["self_attention"]
    hidden = [[value is None for value in row] for row in table["values"]]
    assert torch.equal(~torch.tensor(hidden), causal_mask(5))


def test_generating_says_the_odds_of_each_token_and_assumes_nothing():
    model, zh, en = by_heart()
    figure = data_flow(trained=by_heart())
    pages = [parts_at(figure, 1, step + 1)["says"][0] for step in range(5)]
    out = torch.tensor([[en.bos]])
    for page, answer in zip(pages, [*EN, "<eos>"], strict=True):
        with torch.no_grad():
            odds = model(batch([ZH], zh), out)[0, -1].softmax(-1)
        best = odds.argmax()
        assert en.tokens[best] == answer
        said = unescape(page).replace("<eos> (", "<eos>” (")
        assert f"{answer}” (p = {odds[best]:.3f})" in said
        assert "assumed" not in page
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
    values = flow_numbers.run(by_heart(), ZH, EN).tables["logits"]
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


LANES_OF = len(EN) + 1


def lit(page):
    return page.locator(".part.lit").evaluate_all(
        "all => all.map(e => e.dataset.part)"
    )


def walk(page, steps):
    """Presses Next, with the keyboard, until the last step."""
    button = page.get_by_role("button", name="Next")
    for number, step in enumerate(steps):
        if number:
            button.focus()
            press(page, "Enter")
        assert computed(page).state[1] == number
        assert page.locator(".says").inner_text() == step.says
        assert set(lit(page)) == set(step.lit)
        encoder, decoder = step.passes
        passes = page.locator(".passes").inner_text()
        assert f"encoder {encoder}" in passes
        assert f"decoder {decoder}" in passes
        assert passes.count("●") == encoder + decoder
        yield step


def test_the_tour_of_training_says_every_step(reader):
    page = reader(html_of("data_flow"))
    steps = training(ZH, EN, int((~causal_mask(LANES_OF)).sum()))
    assert len(list(walk(page, steps))) == len(steps) == 8
    assert page.locator("output").inner_text() == "8 of 8"


def test_generating_goes_token_by_token(reader):
    page = reader(html_of("data_flow"))
    page.get_by_role("button", name="Generating").click()
    reads = ["<bos>", *EN]
    for step in walk(page, generating(ZH, EN)):
        seen = page.locator("[data-part=tgt] .on").all_inner_texts()
        assert seen == reads[: step.reads]
        share = 100 * (1 - step.reads / LANES_OF)
        clip = page.locator(".mask").evaluate(
            "e => getComputedStyle(e).clipPath"
        )
        assert clip == (f"inset(0px {share:g}% {share:g}% 0px)")
        shape = page.locator("[data-part=cross_attention] .shape")
        assert shape.inner_text() == f"weights ({step.reads}, {len(ZH)})"
        if step.writes:
            written = page.locator("[data-part=out] .on").all_inner_texts()
            assert written == [[*EN, "<eos>"][step.reads - 1]]
            following = page.locator("[data-part=tgt] .next")
            assert following.all_inner_texts() == reads[step.reads :][:1]


def test_the_ends_of_the_walk_hold(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    back = page.get_by_role("button", name="Back")
    forward = page.get_by_role("button", name="Next")
    assert back.get_attribute("aria-disabled") == "true"
    back.focus()  # It can still be reached, and does nothing.
    press(page, "Enter")
    assert computed(page).state[1] == 0
    for _ in range(12):
        forward.focus()
        press(page, "Enter")
    assert computed(page).state[1] == 7
    assert forward.get_attribute("aria-disabled") == "true"
    back.click()
    assert computed(page).state[1] == 6
    assert forward.get_attribute("aria-disabled") == "false"


def test_another_mode_starts_from_its_beginning_and_undoes_the_first(reader):
    page = reader(html_of("data_flow"))
    start = computed(page).says
    modes = [page.get_by_role("button", name=n)
             for n in ("Training", "Generating")]  # fmt: skip
    modes[1].click()
    page.get_by_role("button", name="Next").click()
    assert computed(page).state == [1, 1]
    assert page.locator(".token.off").count() > 0
    modes[0].click()
    assert (computed(page).state, computed(page).says) == ([0, 0], start)
    assert page.locator(".off").count() == 0
    pressed = [mode.get_attribute("aria-pressed") for mode in modes]
    assert pressed == ["true", "false"]


def box_of(page, part):
    return page.locator(f"[data-part={part}]").bounding_box()


def test_on_a_laptop_the_memory_stands_beside_what_reads_it(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    memory, cross = box_of(page, "memory"), box_of(page, "cross_attention")
    assert abs(memory["y"] - cross["y"]) < 2
    assert memory["x"] + memory["width"] < cross["x"]


def test_on_a_phone_the_decoder_stands_below_the_encoder(reader):
    page = reader(html_of("data_flow"), width=PHONE)
    computed(page)
    memory, tgt = box_of(page, "memory"), box_of(page, "tgt")
    assert memory["y"] + memory["height"] < tgt["y"]
    assert abs(memory["x"] - box_of(page, "cross_attention")["x"]) < 2


@pytest.mark.parametrize("part", ["src", "memory", "out"])
def test_on_a_phone_the_buttons_stay_in_sight(reader, part):
    page = reader(html_of("data_flow"), width=PHONE)
    computed(page)
    place = page.locator(f"[data-part={part}]")
    place.evaluate("e => e.scrollIntoView({block: 'start'})")
    button = page.get_by_role("button", name="Next").bounding_box()
    assert 0 <= button["y"] <= 800 - button["height"]
    top = place.bounding_box()
    assert top["y"] + top["height"] <= button["y"]


@pytest.mark.parametrize("width", [320, PHONE, LAPTOP])
def test_tokens_stay_in_their_lanes(reader, width):
    page = reader(html_of("long_flow"), width=width)
    computed(page)
    for part in ("src", "tgt", "out"):
        tokens = page.locator(f"[data-part={part}] .token").all()
        boxes = [token.bounding_box() for token in tokens]
        for one, other in pairwise(boxes):
            assert one["x"] + one["width"] <= other["x"] + 0.5
        for token in tokens:
            assert token.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_a_lane_starts_under_each_token_that_is_read(reader):
    page = reader(html_of("data_flow"))
    computed(page)
    page.get_by_role("button", name="Generating").click()
    for reads in (1, 1, 2):
        width, whole = page.locator("[data-part=logits]").evaluate(
            "e => [parseFloat(getComputedStyle(e, '::before').width),"
            " e.clientWidth]"
        )
        assert width / whole == pytest.approx(reads / LANES_OF, abs=0.01)
        page.get_by_role("button", name="Next").click()


def numbers(page):
    return page.locator(".numbers tbody tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def expected(table, rows, columns):
    return [
        [name, *(fixed(v) if v is not None else "masked" for v in row)]
        for name, row in zip(
            table["rows"][:rows],
            [row[:columns] for row in table["values"]],
            strict=False,
        )
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_step_shows_the_numbers_of_the_part_at_work(reader, theme):
    page = reader(html_of("trained_flow"), theme=theme)
    tables = flow_numbers.run(by_heart(), ZH, EN).tables
    choice, shown = page.locator("select"), set()
    ends = ["<bos>", *ZH, "<eos>"]
    sizes = Sizes("14", "7", "2 layers", AROUND[False])
    for _ in walk(page, training(ends, EN, 10, sizes)):
        part = computed(page).part
        shown.add(part)
        table = tables[part]
        assert part in lit(page)
        assert choice.input_value() == part
        assert page.locator(".numbers caption").inner_text() == table["title"]
        assert numbers(page) == expected(table, None, None)
    assert len(shown) == 7


def test_a_generating_decoder_has_only_the_rows_that_it_reads(reader):
    page = reader(html_of("trained_flow"))
    tables = flow_numbers.run(by_heart(), ZH, EN).tables
    page.get_by_role("button", name="Generating").click()
    for reads in range(1, LANES_OF + 1):
        page.get_by_role("button", name="Next").click()
        page.locator("select").select_option("self_attention")
        table = tables["self_attention"]
        assert numbers(page) == expected(table, reads, reads)
        page.locator("select").select_option("memory")
        assert len(numbers(page)) == len(ZH) + 2


def test_any_part_is_chosen_by_keyboard_until_the_next_step(reader):
    page = reader(html_of("trained_flow"), width=PHONE)
    computed(page)
    choice = page.get_by_label("Numbers of")
    choice.focus()
    press(page, "Home")
    assert computed(page).part == choice.input_value() == "src_embedding"
    assert numbers(page)[0][0] == "<bos>"
    page.get_by_role("button", name="Next").click()
    assert computed(page).part == "src_embedding"
    page.get_by_role("button", name="Next").click()
    assert computed(page).part == "memory"
