"""What figures are built from: numbers, tables, plots, listings."""

import math
import re
import warnings

import matplotlib.pyplot as plt
import pytest
import torch
from figures.browser import PHONE
from figures.registry import Tags, a_plot, html_of

from companion import figures
from companion.attention import (
    softmax,
)
from companion.figures import (
    heatmap,
    plot,
    source,
    style,
)
from companion.figures.gallery.score_matrix import movement
from companion.figures.kit.digits import HOTTEST, fixed, heat, lowered, short
from companion.figures.kit.inline import BASE_STYLE, PALETTE, inline
from companion.figures.kit.tables import rows_of


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


def test_a_plot_takes_its_colours_from_the_page():
    html = a_plot().html.split("</style>")[1]
    assert "var(--blue)" in html
    assert "var(--orange)" in html
    assert not re.search(r"#[0-9a-f]{6}", html)


def test_a_colour_of_the_cycle_is_the_pages_after_the_style_is_over():
    with style():
        figure, ax = plt.subplots()
        ax.plot([1, 2], color="C1")
        ax.text(0, 1, "a word", color="C0")
    html = plot(figure, caption="", alt="a line and a word").html
    drawing = html[html.index("<svg") : html.index("</svg>")]
    assert "stroke: var(--orange)" in drawing
    assert "fill: var(--blue)" in drawing
    assert not re.search("#1f77b4|#ff7f0e", drawing)


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


def test_a_colour_that_is_not_of_the_palette_stays_a_colour():
    figure, ax = plt.subplots()
    ax.axvline(3, linestyle=":", linewidth=1, color="#1f77b4")
    html = plot(figure, caption="", alt="a line").html
    assert 'stroke: #1f77b4"' in html


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


def test_source_shows_the_function_as_it_stands_in_the_package():
    figure = source(softmax, movement)
    assert figure.text.startswith("@checked_by(_check_softmax)\ndef softmax(")
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


def test_the_line_of_a_plot_follows_the_theme(reader):
    strokes = [
        reader(html_of("plot"), theme=theme)
        .locator("path[style*='--blue']")
        .first.evaluate("e => getComputedStyle(e).stroke")
        for theme in ("light", "dark")
    ]
    assert strokes == ["rgb(29, 95, 166)", "rgb(127, 181, 242)"]


def test_a_plot_is_legible_on_a_phone(reader):
    page = reader(html_of("plot"), width=PHONE)
    sizes = page.locator("svg text").evaluate_all(
        "all => all.map(e => e.getScreenCTM().a * "
        "parseFloat(getComputedStyle(e).fontSize))"
    )
    upright = [size for size in sizes if size > 1]  # a turned label has a = 0
    assert len(upright) > 5
    assert min(upright) >= 10
