"""The figure of chapter 12: four objectives."""

import re
from itertools import pairwise

import pytest
import torch
from figures.browser import LAPTOP, PHONE, computed, focused, press
from figures.registry import Tags, data_of, html_of, shown

from companion.figures import objectives
from companion.figures.gallery.objectives import (
    MODELS,
    OTHERS,
    SEEDS,
    TEXT,
    examples,
    start,
)
from companion.figures.gallery.objectives.model import (
    SPANS,
    bart,
    bert,
    gpt,
    t5,
)
from companion.figures.gallery.objectives.parts import SENTINELS, Words
from companion.figures.gallery.objectives.view import seen
from companion.figures.gallery.objectives.words import position, summary
from companion.masks import combine_masks
from companion.training import Objective
from companion.variants import (
    BART,
    BERT,
    BOS,
    EOS,
    FIRST_WORD,
    GPT,
    MASK,
    PAD,
    T5,
    BARTConfig,
    BERTConfig,
    GPTConfig,
    MaskedModelling,
    T5Config,
    bart_noise,
    mask_tokens,
    random_spans,
    span_corrupt,
    span_restore,
)

TEXTS = (
    TEXT,
    "a b",
    "我 爱 小 猫 。 她 爱 狗 。",
    ". a b . . c . d d . .",
    "no stop at all here",
    "a b . the rest",
)


every_text = pytest.mark.parametrize("text", TEXTS)


every_model = pytest.mark.parametrize("model", MODELS)


SHARES = (0.15, 0.3, 0.5)


def drawn(make, text, seed, share=0.3):
    """An example, its words, and a generator as it was before the draw."""
    generators = [torch.Generator().manual_seed(seed) for _ in range(2)]
    words = Words(text, OTHERS)
    return make(words, generators[0], share), words, generators[1]


def draws(text):
    return [(seed, share) for seed in range(15) for share in SHARES]


def texts(pieces):
    return [piece.text for piece in pieces]


def amount(note):
    """``"3 tokens in 2"`` -> 3; no note is none."""
    return int(note.split()[0]) if note else 0


def ids_of(lane, words):
    """A lane's tokens as ids, as the package has them."""
    special = {
        "[CLS]": BOS, "[SEP]": EOS, "<bos>": BOS, "<eos>": EOS, "MASK": MASK,
    }  # fmt: skip
    special |= {name: words.size - 1 - i for i, name in enumerate(SENTINELS)}
    return [
        special.get(text, FIRST_WORD + (text in words.names
                    and words.names.index(text)))
        for text in lane
    ]  # fmt: skip


def test_the_draws_shown_first_have_every_kind_of_damage():
    first = {
        model: examples(model, Words(TEXT, OTHERS), 0.3, SEEDS)
        for model in MODELS
    }
    assert first["BERT"][0].counts == {"mask": 2, "random": 1, "kept": 1}
    assert first["T5"][0].counts == {"gone": 3, "gaps": 2}
    assert first["BART"][0].counts == {"gone": 3, "gaps": 2, "moved": 1}
    notes = {
        piece.note for e in first["BART"] for piece in e.lanes[0].reads
    }  # fmt: skip
    assert {"0 tokens", "1 token", "2 tokens", "3 tokens in 2"} <= notes


@every_text
def test_bert_reads_and_says_what_mask_tokens_makes(text):
    for seed, share in draws(text):
        example, words, fresh = drawn(bert, text, seed, share)
        tokens = torch.tensor([[BOS, *words.ids, EOS]])
        size = FIRST_WORD + len(words.names)
        inputs, target = mask_tokens(
            tokens, fresh, vocab_size=size, share=share
        )
        [lane] = example.lanes
        assert ids_of(texts(lane.reads), words) == inputs[0].tolist()
        asked = target[0].tolist()
        assert lane.says == [
            None if i == PAD else words.names[i - FIRST_WORD] for i in asked
        ]
        fates = {"special": 0, "plain": 0, "mask": 0, "kept": 0, "random": 0}
        for piece, said in zip(lane.reads, lane.says, strict=True):
            fates[piece.kind] += 1
            assert (said is None) == (piece.kind in ("special", "plain"))
            if said is not None:
                same = {"mask": "MASK", "kept": said}
                assert piece.text == same.get(piece.kind, piece.text)
                assert (piece.text == said) == (piece.kind == "kept")
        marks = [piece.kind == "chosen" for piece in example.text]
        assert marks == [said is not None for said in lane.says[1:-1]]
        assert example.counts.items() <= fates.items()


def test_gpt_reads_the_text_and_says_it_one_place_earlier():
    example = gpt(Words("a b a", ()))
    [lane] = example.lanes
    assert texts(lane.reads) == ["<bos>", "a", "b", "a"]
    assert lane.says == ["a", "b", "a", "<eos>"]
    assert texts(example.text) == ["a", "b", "a"]


@every_text
def test_t5_reads_and_says_what_span_corrupt_makes(text):
    for seed, share in draws(text):
        example, words, fresh = drawn(t5, text, seed, share)
        dropped = random_spans(len(words.ids), fresh, share=share, mean=SPANS)
        sentinel = words.size - 1
        source, target = span_corrupt(
            torch.tensor(words.ids), dropped, sentinel
        )
        encoder, decoder = example.lanes
        assert ids_of(texts(encoder.reads), words) == [*source.tolist(), EOS]
        assert ids_of(decoder.says, words) == [*target.tolist(), EOS]
        assert texts(decoder.reads) == ["<bos>", *decoder.says[:-1]]
        assert encoder.says is None
        restored = span_restore(source, target, sentinel)
        assert restored.tolist() == words.ids
        marks = [piece.kind == "gone" for piece in example.text]
        assert marks == dropped.tolist()


@every_text
def test_a_sentinel_says_how_many_tokens_the_target_has_for_it(text):
    for seed, share in draws(text):
        example, *_ = drawn(t5, text, seed, share)
        encoder, decoder = example.lanes
        notes = {p.text: p.note for p in encoder.reads if p.kind == "sentinel"}
        places = [decoder.says.index(name) for name in SENTINELS
                  if name in decoder.says]  # fmt: skip
        lengths = [b - a - 1 for a, b in pairwise(places)]
        assert [amount(note) for note in notes.values()] == lengths
        assert sum(lengths) == example.counts["gone"]
        assert len(lengths) == example.counts["gaps"]


@every_text
def test_bart_reads_what_bart_noise_makes_and_says_the_whole_text(text):
    for seed, share in draws(text):
        example, words, fresh = drawn(bart, text, seed, share)
        stop = next((w for w in words.text if w in (".", "。")), None)
        # Where nothing ends a sentence, any id that is not there will do.
        end = words.size if stop is None else words.names.index(stop) + 4
        noisy, _ = bart_noise(
            torch.tensor(words.ids), fresh, stop=end, share=share
        )
        encoder, decoder = example.lanes
        reads = ids_of(texts(encoder.reads), words)
        assert reads == [BOS, *noisy.tolist(), EOS]
        assert decoder.says == [*words.text, "<eos>"]
        assert texts(decoder.reads) == ["<bos>", *words.text]
        gone = sum(piece.kind == "gone" for piece in example.text)
        assert sum(amount(p.note) for p in encoder.reads) == gone
        assert gone == example.counts["gone"]
        left = [p.text for p in example.text if p.kind == "plain"]
        assert sorted(left) == sorted(p.text for p in encoder.reads
                                      if p.kind == "plain")  # fmt: skip


def test_a_mask_says_which_tokens_are_missing_between_its_neighbours():
    # All words differ, so that it can be seen which ones a mask hides.
    text = "a b c d . e f g"
    for seed, share in draws(text):
        example, words, _ = drawn(bart, text, seed, share)
        reads = example.lanes[0].reads[1:-1]
        orders = [words.text, [*words.text[5:], *words.text[:5]]]
        assert any(fits(reads, order) for order in orders)


def fits(reads, order):
    """Whether the pieces fill the order up, masks with what their note says."""
    at = 0
    for piece in reads:
        if piece.kind == "mask":
            at += amount(piece.note)
        elif order[at : at + 1] != [piece.text]:
            return False
        else:
            at += 1
    return at == len(order)


def test_only_a_text_of_two_sentences_can_have_them_moved():
    assert {drawn(bart, "a b c .", s)[0].counts["moved"] for s in range(9)} == {
        0
    }
    moved = [drawn(bart, "a . b c .", s)[0].counts["moved"] for s in range(30)]
    assert set(moved) == {0, 1}


@every_model
@pytest.mark.parametrize("seed", [3, 12])
def test_a_loss_stands_where_the_objective_of_the_package_counts_one(
    model, seed
):
    words = Words(TEXT, OTHERS)
    [example] = examples(model, words, 0.3, [seed])
    rows = [
        torch.tensor([ids_of(texts(lane.reads), words)])
        for lane in example.lanes
    ]
    says = example.lanes[-1].says
    if model == "BERT":
        target = torch.tensor(
            [[PAD if s is None else ids_of([s], words)[0] for s in says]]
        )
        ours = MaskedModelling(BERT(BERTConfig.tiny(words.size)))
        counted = ours.count(rows[0], target)
    else:
        whole = torch.tensor([[BOS, *ids_of(says, words)]])
        counted = Objective(a_model(model, words.size)).count(*rows[:-1], whole)
    assert counted == sum(said is not None for said in says)


NETWORKS = {
    "BERT": lambda size: BERT(BERTConfig.tiny(size)),
    "GPT": lambda size: GPT(GPTConfig.tiny(size)),
    "T5": lambda size: T5(T5Config.tiny(size)),
    "BART": lambda size: BART(BARTConfig.tiny(size)),
}


def a_model(name, size):
    torch.manual_seed(7)
    return NETWORKS[name](size).eval()


def states_of(model, rows):
    """The last states of each stack, from the tokens of each."""
    if len(rows) == 1:
        return [model.states(rows[0])]
    masks = combine_masks(*rows, PAD)
    memory = model.encode(rows[0], masks.src)
    return [memory, model.decode(rows[1], memory, masks.tgt, masks.cross)]


@every_model
def test_the_grids_are_who_depends_on_whom_in_the_model(model):
    [example] = examples(model, Words(TEXT, OTHERS), 0.3, [12])
    lengths = [len(lane.reads) for lane in example.lanes]
    # Every position has a token of its own, so a row of the table's gradient
    # is what one position did.
    ids = list(range(4, 4 + sum(lengths)))
    rows = torch.tensor([ids]).split(lengths, dim=1)
    network = a_model(model, 64)
    table = getattr(network, "embedding", None) or network.tgt_embedding
    states = states_of(network, rows)
    for grid in example.grids:
        asked = states[grid.asks][0]
        weights = torch.randn(asked.shape[-1])
        found = [
            torch.autograd.grad(
                state @ weights, table.weight, retain_graph=True
            )[0][rows[grid.seen][0]].abs().sum(-1) > 0
            for state in asked
        ]  # fmt: skip
        assert torch.stack(found).tolist() == grid.rows


def test_a_full_square_a_triangle_and_all_three():
    words = Words("a b . c", ())
    full, triangle, *both = [
        examples(model, words, 0.5, [0])[0].grids for model in MODELS
    ]
    assert [grid.name for grid in full + triangle] == ["Encoder", "Decoder"]
    assert torch.tensor(full[0].rows).all()
    ones = torch.ones(5, 5, dtype=torch.bool)
    assert torch.equal(torch.tensor(triangle[0].rows), ones.tril())
    for grids in both:
        assert [grid.name for grid in grids] == ["Encoder", "Decoder", "Cross"]


def test_what_is_marked_as_seen_is_the_row_of_the_grid():
    [example] = examples("T5", Words(TEXT, OTHERS), 0.3, [12])
    lengths = [len(lane.reads) for lane in example.lanes]
    none = [[False] * length for length in lengths]
    assert seen(example, None) == none
    assert seen(example, (0, 3)) == [[True] * lengths[0], none[1]]
    triangle = [place <= 2 for place in range(lengths[1])]
    assert seen(example, (1, 2)) == [[True] * lengths[0], triangle]


def test_the_grid_is_drawn_as_squares_and_dots():
    html = objectives("a b").html
    grid = re.search(r"<summary>GPT.*?(<svg.*?</svg>)", html, re.DOTALL)[1]
    rows = re.findall(r"<g.*?</g>", grid)
    found = [
        [re.findall(r"h(\d+)", re.search(f'"{kind}" d="(.*?)"', row)[1])
         if f'"{kind}"' in row else [] for kind in ("seen", "dots")]
        for row in rows
    ]  # fmt: skip
    assert found == [
        [["16"], ["32"]],
        [["32"], ["16"]],
        [["48"], []],
    ]


def test_each_objective_is_told_in_a_sentence_or_two():
    words = Words("我 爱 小 猫 。 她 爱 狗 。", ())
    said = {
        model: summary(model, examples(model, words, 0.3, [12])[0])
        for model in MODELS
    }
    assert said["GPT"] == (
        "Nothing is drawn and nothing is damaged. 10 of 10 positions have a "
        "loss: each must say the next token, and what comes later is hidden."
    )
    assert said["T5"] == (
        "3 of 9 tokens are gone, and a sentinel stands for each gap. The "
        "decoder says what is gone and no more: 7 of 7 positions have a loss."
    )
    assert "of 9 tokens are chosen: " in said["BERT"]
    assert said["BART"].endswith(
        "The decoder says the whole text: 10 of 10 positions have a loss."
    )


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ((2, 1, 0), "3 of 9 tokens are chosen: 2 masked, 1 random, 0 unch"),
        ((0, 0, 1), "1 of 9 tokens is chosen: 0 masked, 0 random, 1 unch"),
        ((0, 0, 0), "No token is chosen."),
    ],
)
def test_what_was_chosen_is_counted(counts, told):
    example, *_ = drawn(bert, "a b c d e f g h i", 0)
    kinds = dict(zip(("mask", "random", "kept"), counts, strict=True))
    assert summary("BERT", example._replace(counts=kinds)).startswith(told)


@pytest.mark.parametrize(
    ("model", "lane", "place", "told"),
    [
        ("BERT", 0, 0, "Encoder position 1, “[CLS]”, sees all 12 positions. "
         "No loss here."),
        ("GPT", 0, 0, "Decoder position 1, “<bos>”, sees itself alone. It must "
         "say “the”."),
        ("GPT", 0, 1, "Decoder position 2, “the”, sees itself and the position "
         "before it. It must say “teacher”."),
        ("GPT", 0, 10, "Decoder position 11, “.”, sees itself and the 10 "
         "positions before it. It must say “<eos>”."),
        ("BART", 0, 0, "Encoder position 1, “<bos>”, sees all 11 positions of "
         "the encoder. No loss here."),
        ("BART", 1, 4, "Decoder position 5, “a”, sees itself and the 4 "
         "positions before it and all 11 positions of the encoder. It must "
         "say “flower”."),
    ],
)  # fmt: skip
def test_a_position_says_what_it_sees_and_must_say(model, lane, place, told):
    [example] = examples(model, Words(TEXT, OTHERS), 0.3, SEEDS[:1])
    assert position(example, lane, place) == told


@every_model
def test_a_position_with_a_loss_is_looked_at_first(model):
    for example in examples(model, Words(TEXT, OTHERS), 0.3, SEEDS):
        lane, place = start(example)
        assert example.lanes[lane].says[place] is not None


def test_gpt_is_first_looked_at_in_the_middle():
    assert start(gpt(Words(TEXT, ()))) == (0, 4)


def test_where_nothing_has_a_loss_the_first_position_is_looked_at():
    example, *_ = drawn(bert, "a b", 0, share=0.0)
    assert start(example) == (0, 0)
    assert summary("BERT", example).startswith("No token is chosen")


def test_without_scripts_all_four_can_be_read():
    page = shown(objectives())
    assert re.findall(r"<summary>(.*?)</summary>", page) == [*MODELS[1:]]
    assert page.count('class="here"') == 4
    assert page.count("<svg") == 1 + 1 + 3 + 3
    assert not re.search(r"<(button|input)", page)


def test_chinese_is_read_out_as_chinese_and_markup_is_written_out():
    page = shown(objectives("猫 <b> &amp; 。"))
    assert '<span lang="zh">猫</span>' in page
    assert "&lt;b&gt;" in page
    assert "&amp;amp;" in page
    assert "<b></span>" not in page
    assert Tags(objectives("猫 <b> &amp; 。").html).open == []


def test_one_seed_is_enough_and_gpt_needs_none():
    tabs = data_of(objectives(seeds=[1]))["tabs"]
    assert [len(pages) for pages in tabs] == [1, 1, 1, 1]
    assert [len(p) for p in data_of(objectives())["tabs"]] == [4, 1, 4, 4]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"text": "one"}, "text: expected 2 to 12 words, got 1"),
        ({"text": "a " * 13}, "text: expected 2 to 12 words, got 13"),
        ({"seeds": []}, "seeds: expected 1 to 5, got 0"),
        ({"seeds": range(6)}, "seeds: expected 1 to 5, got 6"),
        ({"share": 1.5}, "share: expected a number from 0 to 1, got 1.5"),
        ({"share": 0}, "share: expected between 0 and 1, got 0"),
    ],
)
def test_a_text_that_does_not_fit_is_named(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        objectives(**settings)


every_model = pytest.mark.parametrize("model", MODELS)


def example_of(model, draw):
    return examples(model, Words(TEXT, OTHERS), 0.3, SEEDS)[draw]


def opened(reader, model="BERT", **options):
    """The figure, with the tab of a model chosen."""
    page = reader(html_of("objectives"), **options)
    computed(page)
    page.get_by_role("tab", name=model, exact=True).click()
    return page


def cards(page, lane=0):
    return page.locator(".panel .cards").nth(lane).locator(".tile")


@every_model
def test_a_phone_shows_the_whole_tab_and_its_smallest_words(reader, model):
    page = opened(reader, model, width=PHONE)
    assert page.locator("figure").evaluate("e => e.scrollWidth") <= PHONE - 32
    edges = page.locator("figure :is(svg text, .tile, button)")
    for left, right in edges.evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.right])"
    ):
        assert left >= 16
        assert right <= PHONE - 16
    sizes = page.locator(".panel svg text").evaluate_all(
        """all => all.map(e => parseFloat(getComputedStyle(e).fontSize)
            * e.getScreenCTM().a)"""
    )
    assert len(sizes) >= 6
    assert min(sizes) >= 11


@pytest.mark.parametrize("width", [PHONE, LAPTOP])
def test_without_scripts_all_four_can_be_unfolded(reader, width):
    page = reader(html_of("objectives"), width=width, java_script_enabled=False)
    assert page.locator("figure :is(input, button)").count() == 0
    assert page.locator(".controls").inner_text() == "BERT"
    assert page.locator("svg:visible").count() == 1
    for summary_of in page.locator("summary").all():
        summary_of.click()
    assert page.locator("svg:visible").count() == 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_with_scripts_there_are_tabs_instead(reader):
    page = opened(reader)
    assert page.locator("details, .controls > .title").count() == 0
    assert page.get_by_role("tab").all_inner_texts() == [*MODELS]


@every_model
def test_a_tab_shows_what_python_says_of_its_draw(reader, model):
    page = opened(reader, model)
    example = example_of(model, 0)
    now = computed(page)
    assert (now.model, now.draw) == (model, 0)
    assert page.locator(".says").inner_text() == summary(model, example)
    for lane, row in enumerate(example.lanes):
        read = cards(page, lane).locator("> span").all_inner_texts()
        assert read == [piece.text for piece in row.reads]
    said = cards(page, len(example.lanes) - 1).locator("> s")
    assert [text.split("\n")[0].strip() for text in said.all_inner_texts()] == [
        "○" if word is None else word for word in example.lanes[-1].says
    ]
    panel = page.get_by_role("tabpanel")
    tab = page.locator(f"#{panel.get_attribute('aria-labelledby')}")
    assert tab.inner_text() == model
    assert tab.get_attribute("aria-selected") == "true"
    assert tab.get_attribute("aria-controls") == panel.get_attribute("id")
    assert page.locator("[aria-selected=true]").count() == 1


@every_model
def test_a_click_shows_what_a_position_sees_in_words_cards_and_grid(
    reader, model
):
    page = opened(reader, model)
    example = example_of(model, 0)
    for lane, row in enumerate(example.lanes):
        for place in (0, 3, len(row.reads) - 1):
            cards(page, lane).nth(place).click()
            now = computed(page)
            assert (now.lane, now.place) == (lane, place)
            assert now.sees == seen(example, (lane, place))
            said = position(example, lane, place)
            assert page.locator(".here").inner_text() == said
            check_marks(page, example, lane, place)


def check_marks(page, example, lane, place):
    for other, sees in enumerate(seen(example, (lane, place))):
        marked = cards(page, other).evaluate_all(
            "all => all.map(e => [e.hasAttribute('data-seen'),"
            " e.getAttribute('aria-pressed')])"
        )
        assert [mark for mark, _ in marked] == sees
        pressed = [state == "true" for _, state in marked]
        assert pressed == [
            (other, i) == (lane, place) for i in range(len(sees))
        ]
    for grid, svg in zip(
        example.grids, page.locator(".panel svg").all(), strict=True
    ):
        rows = svg.locator("g").evaluate_all(
            "all => all.map(e => e.hasAttribute('data-chosen'))"
        )
        chosen = [grid.asks == lane and i == place for i in range(len(rows))]
        assert rows == chosen


def test_a_click_on_a_row_of_a_grid_chooses_who_asks(reader):
    page = opened(reader, "T5")
    grids = page.locator(".panel svg")
    for grid, lane in ((0, 0), (1, 1), (2, 1)):
        grids.nth(grid).locator("g").nth(5).locator("rect").click()
        assert (computed(page).lane, computed(page).place) == (lane, 5)
        assert cards(page, lane).nth(5).get_attribute("aria-pressed") == "true"


def test_arrow_keys_go_through_the_tabs(reader):
    page = opened(reader)
    page.locator("#before").focus()
    press(page, "Tab")
    for key, model in [
        ("ArrowRight", "GPT"), ("ArrowRight", "T5"), ("End", "BART"),
        ("ArrowRight", "BART"), ("ArrowLeft", "T5"), ("Home", "BERT"),
    ]:  # fmt: skip
        press(page, key)
        assert computed(page).model == focused(page, "innerText") == model


def test_arrow_keys_go_through_the_positions_of_a_lane(reader):
    page = opened(reader, "BART", width=PHONE)
    page.locator("#before").focus()
    press(page, "Tab", "Tab", "Tab")
    page.evaluate("scrollTo(0, 0)")
    assert (computed(page).lane, computed(page).place) == (0, 0)
    for key, place in [
        ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 10),
        ("ArrowRight", 10), ("Home", 0), ("ArrowLeft", 0),
    ]:  # fmt: skip
        press(page, key)
        now = computed(page)
        assert (now.lane, now.place) == (0, place)
        assert focused(page, "getAttribute('aria-label')") == now.here
    press(page, "ArrowDown", "ArrowDown", "ArrowUp")
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") == 0
    press(page, "Tab", "ArrowRight")
    assert (computed(page).lane, computed(page).place) == (1, 1)


def test_drawing_again_goes_round_through_the_draws(reader):
    page = opened(reader, "BART")
    again = page.get_by_role("button", name="Draw again")
    for draw in (1, 2, 3, 0):
        again.press("Enter")
        said = summary("BART", example_of("BART", draw))
        assert page.locator(".says").inner_text() == said
        count = page.locator("output").inner_text()
        assert count == f"{draw + 1} of 4"
        assert focused(page, "innerText") == "Draw again"
    again.press("Enter")
    page.get_by_role("tab", name="T5").click()
    said = summary("T5", example_of("T5", 1))
    assert page.locator(".says").inner_text() == said


def test_there_is_nothing_to_draw_for_gpt(reader):
    page = opened(reader, "GPT")
    again = page.get_by_role("button", name="Draw again")
    assert again.get_attribute("aria-disabled") == "true"
    before = page.locator("figure").inner_html()
    again.press("Enter")
    assert page.locator("figure").inner_html() == before
    assert page.locator("output").inner_text() == "nothing to draw"


def test_kinds_of_damage_differ_in_more_than_their_colour(reader):
    page = opened(reader, "BERT")
    looks = {
        kind: page.locator(f".panel .{kind} > span").first.evaluate(
            "e => { const s = getComputedStyle(e); return [s.borderTopStyle,"
            " s.backgroundImage.split('(')[0], s.borderTopLeftRadius]; }"
        )
        for kind in ("plain", "mask", "random", "kept")
    }
    notes = {
        kind: page.locator(f".panel .{kind} > i").first.inner_text()
        for kind in ("mask", "random", "kept")
    }
    assert notes == {"mask": "masked", "random": "random", "kept": "unchanged"}
    page.get_by_role("tab", name="T5").click()
    looks["sentinel"] = page.locator(".panel .sentinel > span").first.evaluate(
        "e => { const s = getComputedStyle(e); return [s.borderTopStyle,"
        " s.backgroundImage.split('(')[0], s.borderTopLeftRadius]; }"
    )
    assert len({tuple(look) for look in looks.values()}) == 5


def test_what_is_hidden_is_faint_and_has_no_line_below(reader):
    page = opened(reader, "GPT")
    cards(page).nth(2).click()
    page.locator("figcaption").hover()
    looks = (
        cards(page)
        .locator("> span")
        .evaluate_all(
            "all => all.map(e => { const s = getComputedStyle(e);"
            " return [s.opacity, s.boxShadow === 'none']; })"
        )
    )
    assert looks == [["1", False]] * 3 + [["0.4", True]] * 8
