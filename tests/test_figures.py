"""Figures as Python makes them: words, numbers, HTML that needs nobody."""

import math
import re
import subprocess
import sys
import warnings
from html import unescape
from html.parser import HTMLParser

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

from companion import figures
from companion.attention import softmax
from companion.data.vocabulary import Vocabulary
from companion.figures import (
    alignment_grid,
    heatmap,
    live,
    plot,
    score_matrix,
    small_rnn,
    source,
    style,
    unrolled_rnn,
)
from companion.figures.gallery.alignment_grid import context
from companion.figures.gallery.score_matrix import movement
from companion.figures.kit.digits import HOTTEST, fixed, heat, lowered, short
from companion.figures.kit.grids import rows_of
from companion.figures.kit.inline import BASE_STYLE, inline
from companion.figures.kit.palette import PALETTE
from companion.rnn import gradient_to_inputs, unroll
from companion.seq2seq import Seq2Seq

matplotlib.use("agg")

# Sizes are prime and all differ, so no axis can stand in for another.
SOURCE, TARGET, NUMBERS = 5, 3, 2
WORDS = ["我", "爱", "小", "猫", "<eos>"], ["love", "cats", "<eos>"]


def an_alignment():
    weights = softmax(torch.randn(TARGET, SOURCE))
    return alignment_grid(*WORDS, weights, torch.randn(SOURCE, NUMBERS))


def a_plot():
    with style():
        figure, ax = plt.subplots()
        ax.plot([1, 2, 3], [5, 7, 11], label="我爱")
        ax.plot([1, 2, 3], [7, 7, 7], label="小猫")
        ax.set(xlabel="位置", yscale="log")
        ax.legend()
    return plot(figure, caption="Rising.", alt="A line that rises")


MAKERS = {
    "unrolled_rnn": unrolled_rnn,
    "alignment_grid": an_alignment,
    "score_matrix": score_matrix,
    "plot": a_plot,
    "source": lambda: source(softmax),
}
every_figure = pytest.mark.parametrize(
    "make", MAKERS.values(), ids=MAKERS.keys()
)


class Tags(HTMLParser):
    """Collects start tags, and complains of an end without its start."""

    void = frozenset({"input", "br", "meta", "link", "img", "col"})

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in {"tbody"} and tag != "tbody":
            self.open.pop()  # HTML lets a tbody end by itself.
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag


@every_figure
def test_a_figure_shows_itself_as_html_and_as_text(make):
    bundle = make()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/html"].startswith("<figure")
    assert bundle["text/plain"].strip()


@every_figure
def test_the_same_input_gives_the_same_bytes(make):
    torch.manual_seed(2)
    first = make().html
    torch.manual_seed(2)
    assert make().html == first


@every_figure
def test_every_tag_that_opens_closes(make):
    assert Tags(make().html).open == []


@every_figure
def test_nothing_is_asked_of_another_place(make):
    html = make().html
    assert not re.search(r"https?://|@import|//cdn|\bsrc=", html)
    assert not re.search(r"\bfetch\(|\bimport\b.*\bfrom\b ['\"]", html)
    assert not re.search(r"url\((?!#)", html)


def test_the_package_is_imported_without_torch_and_matplotlib():
    code = (
        "import sys, companion.figures, companion.figures.kit.inline\n"
        "heavy = {'torch', 'matplotlib', 'ipywidgets', 'pygments'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_every_public_name_can_be_had_and_is_listed():
    for name in figures.__all__:
        assert getattr(figures, name).__name__ == name
        assert name in dir(figures)


@pytest.mark.bad_input
def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no 'unrolled_lstm'"):
        figures.unrolled_lstm  # noqa: B018


def test_a_closing_script_tag_in_the_data_does_not_end_the_script():
    html = inline("x", body="", label="", script="//", data="</script><b>")
    assert html.count("</script>") == 1
    assert "<\\/script><b>" in html


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.125, 2, "0.13"),
        (-0.125, 2, "−0.13"),
        (-0.001, 2, "0.00"),
        (7, 0, "7"),
    ],
)
def test_fixed_rounds_halves_away_from_zero_and_knows_no_minus_zero(
    value, places, text
):
    assert fixed(value, places) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.8, "0.800"),
        (-3.14159, "−3.14"),
        (69.39, "69.4"),
        (4760.2, "4760"),
        (524288, "5.2×10⁵"),
        (0.000019, "1.9×10⁻⁵"),
    ],
)
def test_short_keeps_about_three_digits(value, text):
    assert short(value) == text


def test_lowered_writes_the_number_below_the_line():
    assert lowered("x", 120) == "x₁₂₀"


def test_heat_says_the_sign_and_the_share_of_the_largest():
    assert heat(-2, 4) == f'class="minus" style="--heat: {HOTTEST // 2}%"'
    assert heat(9, 4) == f'class="plus" style="--heat: {HOTTEST}%"'
    assert heat(0, 0) == 'class="plus" style="--heat: 0%"'


def luminance(colour):
    parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
             for c in colour)  # fmt: skip
    return sum(
        w * p for w, p in zip((0.2126, 0.7152, 0.0722), parts, strict=True)
    )


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def themes():
    """Name -> colour, of the light and of the dark theme."""
    rules = re.findall(r"\{([^}]*--ink: [^}]*)\}", BASE_STYLE)
    assert len(rules) == 2
    for rule in rules:
        yield {
            name: tuple(int(code[i : i + 2], 16) / 255 for i in (0, 2, 4))
            for name, code in re.findall(r"--(\w+): #(\w{6})", rule)
        }


@pytest.mark.parametrize("theme", list(themes()), ids=["light", "dark"])
def test_text_is_readable_on_the_ground_and_on_the_hottest_cell(theme):
    for name in ("ink", "muted", "blue", "orange", "teal", "plum", "bad"):
        assert contrast(theme[name], theme["paper"]) >= 4.5, name
    for tone in ("blue", "orange"):
        mixed = [
            HOTTEST / 100 * hot + (1 - HOTTEST / 100) * cold
            for hot, cold in zip(theme[tone], theme["paper"], strict=True)
        ]
        assert contrast(theme["ink"], mixed) >= 4.5, tone


def test_the_page_gets_the_same_hottest_cell_from_javascript():
    parts = (figures.kit.inline.HERE / "parts.js").read_text(encoding="utf-8")
    assert f"({HOTTEST} * share)" in parts


def test_rows_of_takes_tensors_and_lists_alike():
    grid = torch.tensor([[1.0, 2.0], [3.00004, 4.0], [5.0, 6.0]])
    assert rows_of("grid", grid) == [[1, 2], [3, 4], [5, 6]]
    assert rows_of("grid", grid.tolist(), height=3, width=2) == rows_of(
        "grid", grid
    )


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("values", "came"),
    [
        ([[1.0, 2.0], [3.0]], r"\(2, 'uneven'\)"),
        ([1.0, 2.0], r"\(2,\)"),
        ([], r"\(0,\)"),
        ([[], []], r"\(2, 0\)"),
        ([[1.0], [2.0], [3.0]], r"\(3, 1\)"),
        (7, r"\(\)"),
    ],
)
def test_rows_of_names_the_argument_and_both_shapes(values, came):
    with pytest.raises(ValueError, match=rf"states: .*\(2, any\), got {came}"):
        rows_of("states", values, height=2)


@pytest.mark.bad_input
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_rows_of_names_the_place_of_what_is_not_finite(value):
    with pytest.raises(ValueError, match=r"scores: .* in row 1, column 0"):
        rows_of("scores", [[0.0], [value]])


# The unrolled RNN.


def test_the_small_rnn_turns_states_and_keeps_their_length():
    U = small_rnn().U
    torch.testing.assert_close(U @ U.T, torch.eye(8, dtype=U.dtype))


def test_without_tanh_the_gradient_falls_by_the_gain_at_every_step():
    x, h0, W, U, b = small_rnn(length=7)
    norms = gradient_to_inputs(0 * x, h0, W, 0.5 * U, b)
    expected = 0.5 ** torch.arange(6, -1, -1, dtype=norms.dtype)
    torch.testing.assert_close(norms, expected)


@pytest.mark.parametrize(("gain", "first"), [(0.8, 0.0144), (1.0, 1.0)])
def test_small_states_hardly_bend_the_line_of_the_small_rnn(gain, first):
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, gain * U, b)
    assert norms[0].item() == pytest.approx(first, rel=0.01)


def test_full_states_make_the_gradient_fall_short_of_the_line():
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, 2 * U, b)
    states = unroll(x[None], h0[None], W, 2 * U, b)[0]
    assert states[0].abs().mean() < 0.01 < 0.4 < states[-1].abs().mean()
    assert 1000 < norms[0] < 0.1 * 2**19


def test_the_unrolled_rnn_says_what_the_package_computes():
    x, h0, W, U, b = small_rnn()
    norms = gradient_to_inputs(x, h0, W, 0.8 * U, b)
    ratio = short((norms[-1] / norms[0]).item())
    figure = unrolled_rnn()
    assert f"x₁ reaches h₂₀ {ratio} times more weakly" in figure.text
    for value in norms.tolist():
        assert f"<td>{short(value)}</td>" in figure.html


def test_the_unrolled_rnn_draws_a_step_for_each_input():
    html = unrolled_rnn(small_rnn(length=7)).html
    assert html.count('class="step"') == 7
    assert "h₇" in html
    assert "h₈" not in html


# The alignment grid.


def test_the_context_is_the_weighted_sum_of_the_states():
    assert context([0.25, 0.75], [[4.0, 0.0], [0.0, 8.0]]) == [1.0, 6.0]
    weights, states = softmax(torch.randn(SOURCE)), torch.randn(SOURCE, NUMBERS)
    torch.testing.assert_close(
        torch.tensor(context(weights.tolist(), states.tolist())),
        weights @ states,
    )


def test_the_grid_starts_with_the_word_that_looks_most_sharply():
    figure = alignment_grid(
        ["小", "猫"], ["little", "cat"], [[0.6, 0.4], [0.1, 0.9]],
        [[1.0, 0.0], [0.0, -1.0]],
    )  # fmt: skip
    assert "“cat” looks most at “猫” (0.90)" in figure.text
    assert "context c: 0.10, −0.90." in figure.text


def test_chinese_words_are_marked_as_chinese_and_markup_is_escaped():
    html = an_alignment().html
    assert '<span lang="zh">猫</span>' in html
    assert "<th scope=col>&lt;eos&gt;</th>" in html
    assert "<eos>" not in html.split("<script")[0]


@pytest.mark.bad_input
def test_the_grid_refuses_weights_that_do_not_fit_the_words():
    weights, states = torch.full((5, 3), 1 / 3), torch.ones(SOURCE, 2)
    with pytest.raises(ValueError, match=r"weights: .*\(3, 5\), got \(5, 3\)"):
        alignment_grid(*WORDS, weights, states)


@pytest.mark.bad_input
def test_the_grid_refuses_states_that_do_not_fit_the_words():
    weights, states = torch.full((3, 5), 0.2), torch.ones(2, SOURCE)
    with pytest.raises(ValueError, match=r"states: .*\(5, any\), got \(2, 5\)"):
        alignment_grid(*WORDS, weights, states)


@pytest.mark.bad_input
def test_the_grid_names_the_word_whose_weights_do_not_sum_to_1():
    weights = torch.full((3, 5), 0.2)
    weights[1] = 0.3
    with pytest.raises(ValueError, match=r"1\.500 in the row of 'cats'"):
        alignment_grid(*WORDS, weights, torch.ones(SOURCE, 2))


# The score matrix.


def test_the_first_row_of_the_notes_example_is_finished():
    html = score_matrix().html.split("<script")[0]
    row = [0.27, 0.13, 0.49, 0.11]
    cells = "".join(f"<td {heat(w)}>{w:.2f}</td>".split(">", 1)[1] for w in row)
    shown = re.sub(r"<td [^>]*>", "", html)
    assert cells in shown
    assert "0.244</td>0.417</td>0.590</td>" in shown


def test_movement_is_a_half_for_two_equal_weights_and_never_more():
    assert movement(torch.tensor([0.5, 0.5])).item() == pytest.approx(0.5)
    assert movement(torch.tensor([1.0, 0.0])).item() == 0
    some = movement(softmax(5 * torch.randn(101, 7)))
    assert (some <= 0.5 + 1e-6).all()


@pytest.mark.bad_input
def test_the_score_matrix_needs_a_value_for_each_key():
    with pytest.raises(ValueError, match=r"values: .*\(3, any\), got \(2, 1\)"):
        score_matrix([[1.0, 2.0, 3.0]], [[1.0], [2.0]])


# Plots.


def test_a_plot_takes_its_colours_from_the_page():
    html = a_plot().html.split("</style>")[1]
    assert "var(--blue)" in html
    assert "var(--orange)" in html
    assert not re.search(r"#[0-9a-f]{6}", html)


def test_a_plot_writes_text_as_text_in_the_font_of_the_page():
    html = a_plot().html.split("</style>")[1]
    assert ">我爱</text>" in html
    assert "font-family" not in html


def test_a_plot_carries_its_alternative_text_and_scales():
    tags = Tags(a_plot().html).seen
    svg = next(attributes for tag, attributes in tags if tag == "svg")
    assert svg["role"] == "img"
    assert svg["aria-label"] == "A line that rises"
    assert {"width", "height"}.isdisjoint(svg)


def test_a_plot_is_closed_so_that_no_notebook_shows_it_twice():
    a_plot()
    assert plt.get_fignums() == []


def test_two_plots_of_a_page_share_no_id():
    with style():
        figure, ax = plt.subplots()
        ax.bar(["a", "b"], [2, 3])
    other = plot(figure, caption="", alt="bars").html
    ids = [set(re.findall(r' id="([^"]+)"', h)) for h in (a_plot().html, other)]
    assert ids[0]
    assert ids[1]
    assert ids[0].isdisjoint(ids[1])
    for html in (a_plot().html, other):
        asked = set(re.findall(r"#([\w-]+)[\")]", html.split("</style>")[1]))
        assert asked <= ids[0] | ids[1]


def test_a_plot_with_chinese_warns_of_no_missing_glyph():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a_plot()


def test_a_heatmap_writes_its_numbers_and_tints_by_sign():
    with style():
        figure, ax = plt.subplots()
        heatmap(ax, [[0.5, -1.0, 0.0]], ["I"], list("我爱猫"))
    html = plot(figure, caption="", alt="cells").html.split("</style>")[1]
    for text in ("0.50", "−1.00", "0.00", "我"):
        assert f">{text}</text>" in html
    assert re.search(r"fill: var\(--orange\)[^\"]*opacity: 0\.5", html)
    assert re.search(r"fill: var\(--blue\)[^\"]*opacity: 0\.25", html)


@pytest.mark.bad_input
def test_a_heatmap_names_both_shapes():
    with style():
        figure, ax = plt.subplots()
    with pytest.raises(ValueError, match=r"\(1, 2\), got \(1, 3\)"):
        heatmap(ax, [[1.0, 2.0, 3.0]], ["I"], ["我", "爱"])
    plt.close(figure)


@pytest.mark.bad_input
def test_a_plot_needs_words_for_who_cannot_see_it():
    figure = plt.figure()
    with pytest.raises(ValueError, match="alt: expected what the plot shows"):
        plot(figure, caption="", alt=" ")
    plt.close(figure)


@pytest.mark.bad_input
def test_a_label_that_mixes_chinese_and_mathtext_is_refused():
    with style():
        figure, ax = plt.subplots()
        ax.set_title("位置 $d_k$")
    with pytest.raises(ValueError, match=r"Chinese and \$…\$ do not mix"):
        plot(figure, caption="", alt="an axis")


def test_the_palette_is_the_light_theme_of_the_style_sheet():
    assert PALETTE["blue"] == "#1d5fa6"
    assert len(PALETTE) == len(set(PALETTE.values())) == 11


# Source.


def test_source_shows_the_function_as_it_stands_in_the_package():
    figure = source(softmax, movement)
    assert figure.text.startswith("def softmax(")
    assert "def movement(" in figure.text
    assert '<div class="highlight"><pre>' in figure.html
    assert "companion.figures.gallery.score_matrix.movement" in figure.html
    bare = re.sub(r"<[^>]+>", "", figure.html.split("</style>")[1])
    assert "exponentials.sum(dim, keepdim=True)" in bare


@pytest.mark.bad_input
@pytest.mark.parametrize("thing", [len, 7])
def test_source_refuses_what_has_no_python_source(thing):
    with pytest.raises(TypeError, match="written in Python, got"):
        source(thing)


@pytest.mark.bad_input
def test_source_of_nothing_is_refused():
    with pytest.raises(TypeError, match="got nothing"):
        source()


# Figures that need a kernel.


@pytest.fixture(scope="module")
def translator():
    """An untrained model; it translates, if only into nonsense."""
    zh, en = Vocabulary("我爱小猫"), Vocabulary(["I", "love", "cats"])
    torch.manual_seed(0)
    return Seq2Seq(len(zh), len(en), 5, 7, context="dot"), zh, en


def lives(translator):
    return (
        live.try_gradients(),
        live.type_a_sentence(*translator),
        live.try_attention(),
    )


def words_of(page):
    """What a page shows, without its style sheet and tags."""
    return re.sub(r"<style.*?</style>|<[^>]+>", " ", page.value)


def test_a_live_figure_is_a_widget_and_a_sentence_for_where_none_works(
    translator,
):
    for figure in lives(translator):
        bundle = figure._repr_mimebundle_()
        view = bundle.pop("application/vnd.jupyter.widget-view+json")
        assert view["version_major"] == 2
        assert len(view["model_id"]) == 32
        assert set(bundle) == {"text/html", "text/plain"}
        for text in bundle.values():
            assert "This figure needs a kernel: run its cell to" in text


def test_the_live_gradients_are_those_of_the_package():
    figure = live.try_gradients()
    figure.controls["gain"].value = 1.5
    figure.controls["length"].value = 7
    x, h0, W, U, b = small_rnn(7)
    norms = gradient_to_inputs(x, h0, W, 1.5 * U, b)
    shown = words_of(figure.page)
    assert f"Gain 1.50: {norms[0]:.3g} at the first input" in shown
    assert "‖∂h₇/∂xₜ‖" in shown


def test_a_typed_sentence_is_translated_and_aligned(translator):
    figure = live.type_a_sentence(*translator)
    figure.controls["sentence"].value = " 小 猫"
    model, zh, en = translator
    src = torch.tensor([[zh.bos, *zh.encode("小猫"), zh.eos]])
    ids = en.decode(model.translate(src, 11)[0].tolist())
    shown = words_of(figure.page)
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
    assert re.findall(r"\d\.\d\d", words_of(figure.page)) == [
        "0.20", "0.80", "6.61",
    ]  # fmt: skip
    figure.controls["scaled"].value = False
    # Without the scale 0 and 2: 0.119 and 0.881, output 6.76.
    assert re.findall(r"\d\.\d\d", words_of(figure.page)) == [
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
