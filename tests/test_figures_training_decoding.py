"""The figures of chapters 09 and 10, as Python makes them."""

import json
import re
from html import unescape
from itertools import product
from math import inf, isfinite, nan

import pytest
import torch
from test_figures import Tags

from companion.data.vocabulary import Vocabulary
from companion.decoding import (
    beam_search,
    greedy_decode,
    length_penalty,
    next_token,
    sampling_filter,
)
from companion.figures import (
    beam_tree,
    live,
    noam_curve,
    run_doctor,
    sampling_bars,
)
from companion.figures.gallery import run_doctor as doctor
from companion.figures.gallery import sampling_bars as sampling
from companion.figures.gallery.beam_tree.model import MOST, record
from companion.figures.gallery.noam_curve import sentence, steps_shown
from companion.figures.gallery.noam_curve.view import (
    BOTTOM,
    LEFT,
    RIGHT,
    branches,
    paths,
)
from companion.training import noam
from companion.transformer import Transformer, TransformerConfig

BOS, EOS = 1, 2
WORDS = Vocabulary(["I", "love", "the", "little", "elephants"]).tokens
# Greedy search is lured by "I", after which nothing is likely.
TREE = {
    "": {"I": 0.5, "the": 0.4, "little": 0.1},
    "I": {"love": 0.4, "little": 0.3, "elephants": 0.3},
    "the": {"little": 0.9, "love": 0.1},
    "the little": {"elephants": 1.0},
}
ENDING = {"<eos>": 0.75, "love": 0.25}


def tree_of_words(rows):
    """What comes next, from TREE; what it does not know ends soon."""
    logits = torch.full((len(rows), len(WORDS)), -torch.inf)
    for logit, row in zip(logits, rows.tolist(), strict=True):
        said = " ".join(WORDS[i] for i in row[1:])
        for word, share in TREE.get(said, ENDING).items():
            logit[WORDS.index(word)] = torch.tensor(share).log()
    return logits


def random_steps(vocab, seed):
    """A model that knows only its last token: a table of logits."""
    draw = torch.Generator().manual_seed(seed)
    table = 2 * torch.randn(vocab, vocab, generator=draw)
    return lambda rows: table[rows[:, -1]]


def a_tree(**settings):
    settings = {"bos": BOS, "eos": EOS, "max_len": 5} | settings
    return beam_tree(tree_of_words, WORDS, **settings)


def a_run(finding="healthy", steps=30, **lists):
    falling = [4 / (1 + step) for step in range(steps)]
    return {
        "loss": falling,
        "gradient": [1 + loss for loss in falling],
        "rate": [1e-3] * steps,
        "valid": None,
        "finding": finding,
        "why": f"Because it is {finding}.",
    } | lists


SCORES = torch.linspace(3, -4, 17, dtype=torch.float64)
NAMES = [f"w{i}" for i in range(17)]
MAKERS = {
    "noam_curve": noam_curve,
    "run_doctor": lambda: run_doctor({"A": a_run(), "B": a_run("ill")}),
    "beam_tree": a_tree,
    "sampling_bars": lambda: sampling_bars(SCORES, NAMES),
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
    assert len(html) < 200_000


@every_figure
def test_the_same_input_gives_the_same_bytes(make):
    assert make().html == make().html


# The schedule.


@pytest.mark.parametrize("step", [1, 7, 4000, 4001, 100_000])
def test_the_smaller_branch_is_the_schedule(step):
    pair = branches(step, 512, 4000, 1)
    assert min(pair) == pytest.approx(noam(step, 512, 4000), rel=1e-12)
    assert (pair[0] < pair[1]) == (step < 4000)
    scaled = branches(step, 512, 4000, 0.5)
    assert scaled == pytest.approx([rate / 2 for rate in pair], rel=1e-12)


def test_the_peak_is_told_as_the_paper_has_it():
    # (512 · 4000)^-½ = 0.000699, and half of it at four times the step.
    said = sentence(512, 4000, 1).replace("\N{NO-BREAK SPACE}", " ")
    assert "its peak of 6.99 × 10⁻⁴ at step 4,000, which is" in said
    assert "at step 16,000 half of the peak is left" in said
    assert noam(16_000, 512, 4000) == pytest.approx(
        noam(4000, 512, 4000) / 2, rel=1e-12
    )


def test_a_factor_scales_the_peak_and_the_sentence_says_so():
    said = sentence(512, 4000, 2).replace("\N{NO-BREAK SPACE}", " ")
    assert "factor 2: the rate rises" in said
    assert "14.0 × 10⁻⁴ at step 4,000, which is 2 / √(512 · 4,000)" in said
    plain, straight = zip(paths(512, 4000, 1), paths(512, 4000, 2), strict=True)
    assert plain[0] == plain[1]  # Its axis counts in peaks.
    for once, twice in zip(*straight, strict=True):
        # A factor of 2 is 0.301 of a decade, and a decade is 16.4 pixels.
        assert points(once)[0][1] - points(twice)[0][1] == pytest.approx(
            (BOTTOM - 12) / 10 * 0.30103, abs=0.15
        )


def points(path):
    return [tuple(map(float, at.split())) for at in path[1:].split("L")]


def test_the_curve_rises_in_a_line_to_the_peak_and_goes_on_to_the_end():
    first, *_ = paths(512, 4000, 1)
    start, peak, *_, end = points(first[0])
    assert start == (LEFT, BOTTOM)
    assert peak[0] == pytest.approx(LEFT + (RIGHT - LEFT) / 5, abs=0.06)
    assert end[0] == RIGHT
    # At five times the warm-up 1/√5 of the peak is left.
    height = [BOTTOM - y for _, y in (peak, end)]
    assert height[1] / height[0] == pytest.approx(5**-0.5, abs=1e-3)


def test_in_powers_of_ten_the_branches_are_lines_that_cross_at_the_peak():
    rate, up, down = map(points, paths(512, 4000, 1)[1])
    assert len(rate) == 3
    assert len(up) == len(down) == 2
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in (up, down)]
    # A decade is 53.6 pixels across and 16.4 upwards: 1 and -½ become
    across, upwards = (RIGHT - LEFT) / 5, (BOTTOM - 12) / 10
    assert slopes[0] == pytest.approx(-upwards / across, abs=2e-3)
    assert slopes[1] == pytest.approx(upwards / across / 2, abs=2e-3)
    for line, slope in zip((up, down), slopes, strict=True):
        at = line[0][1] + slope * (rate[1][0] - line[0][0])
        assert at == pytest.approx(rate[1][1], abs=0.15)


def test_the_table_has_the_warm_up_once():
    assert steps_shown(100) == [1, 100, 10_000, 100_000]
    assert steps_shown(4000) == [1, 100, 4000, 10_000, 100_000]
    rows = re.findall(r"<tr>(.*?)</tr>", shown(noam_curve()))
    assert [row.count('"least"') for row in rows[1:]] == [1, 1, 2, 1, 1]


# The doctor.


def test_the_diagnoses_are_those_of_the_runs_each_once():
    runs = {"A": a_run("b"), "B": a_run("a"), "C": a_run("b")}
    data = data_of(run_doctor(runs))
    assert data["findings"] == ["a", "b"]
    assert [run["finding"] for run in data["runs"]] == ["b", "a", "b"]


def test_the_reader_is_told_the_numbers_and_not_what_is_wrong():
    figure = run_doctor({"A": a_run("secretly ill", valid=[3.0, 1.5, 2.5])})
    assert figure.text == (
        "Run doctor. A, 30 steps: the training loss goes from 4.00 to 0.133, "
        "the validation loss ends at 2.50, at best it was 1.50. The gradient "
        "lies between 1.13 and 5.00. The highest rate is 1.0×10⁻³. What is "
        "wrong?"
    )
    before = shown(figure).split("<details>")[0]
    assert "secretly" not in before


def test_numbers_that_are_none_are_counted_and_marked():
    loss = [4.0, 3.0, nan, nan] + [2.0] * 4
    gradient = [1.0, inf, 1.0, 1.0, nan] + [1.0] * 3
    run = a_run(loss=loss, gradient=gradient, rate=[0.1] * 8)
    figure = run_doctor({"A": run})
    assert "4 numbers are NaN or infinite" in figure.text
    plots = data_of(figure)["runs"][0]["plots"]
    crosses = [plot["svg"].count("M-5 -5L5 5") for plot in plots]
    ups = [plot["svg"].count("M-5 0H5L0 -8Z") for plot in plots]
    assert (crosses, ups) == ([1, 1, 0], [0, 1, 0])
    # The line is broken where there is no number.
    path = re.search(r'class="line" d="([^"]*)"', plots[0]["svg"])[1]
    assert path.count("M") == 2
    assert "nan" not in figure.html.lower().replace("nan or", "")


def test_a_loss_far_above_its_beginning_leaves_the_picture():
    run = a_run(loss=[4.0, 3.0, 90.0, 3.0], gradient=[1.0] * 4, rate=[0.1] * 4)
    svg = data_of(run_doctor({"A": run}))["runs"][0]["plots"][0]["svg"]
    assert svg.count("M-5 0H5L0 -8Z") == 1
    path = re.search(r'class="line" d="([^"]*)"', svg)[1]
    assert min(y for _, y in points(path)) == 14  # The upper edge.


def test_a_gradient_of_0_leaves_the_picture_below():
    run = a_run(loss=[4.0] * 4, gradient=[1.0, 0, 1, 1], rate=[0.1] * 4)
    svg = data_of(run_doctor({"A": run}))["runs"][0]["plots"][1]["svg"]
    assert svg.count("M-5 -8H5L0 0Z") == 1


def test_a_rate_that_starts_small_stays_in_the_picture():
    rate = [1e-6, 1e-3, 2e-3, 1e-3]
    run = a_run(loss=[4.0] * 4, gradient=[1.0] * 4, rate=rate)
    svg = data_of(run_doctor({"A": run}))["runs"][0]["plots"][2]["svg"]
    assert 'class="left"' not in svg


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0.012, ["0", "0.005", "0.010"]),
        (4.0, ["0", "2", "4"]),
        (0.2, ["0", "0.1", "0.2"]),
        (2e-5, ["0", "1.0×10⁻⁵", "2.0×10⁻⁵"]),
        (0.0, ["0", "0.5", "1.0"]),
    ],
)
def test_the_numbers_beside_an_axis_are_written_alike(highest, ticks):
    run = a_run(rate=[highest / 2] * 29 + [highest])
    svg = data_of(run_doctor({"A": run}))["runs"][0]["plots"][2]["svg"]
    assert re.findall(r'class="tick"[^>]*>(.*?)</text>', svg) == ticks


def test_thinning_keeps_the_last_number_and_every_accident():
    numbers = [float(i) for i in range(1, 1002)]
    numbers[500] = inf
    line = doctor.thinned(numbers)
    assert len(line) == doctor.POINTS
    assert line[-1] == (1001, 1001.0)
    assert [at for at in line if not isfinite(at[1])] == [(501, inf)]
    assert all(n == step for step, n in line if isfinite(n))
    assert doctor.thinned([3.0, 5.0]) == [(1, 3.0), (2, 5.0)]


def test_validation_losses_are_spread_over_the_run():
    assert doctor.spread([5.0, 3.0], 10) == [(5.0, 5.0), (10.0, 3.0)]


def test_a_finding_with_markup_is_written_out():
    html = run_doctor({"<i>": a_run("<b>&")}).html
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html.split("<script")[0]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        ({}, "runs: expected 1 to 7, got 0"),
        ({str(i): a_run() for i in range(8)}, "runs: expected 1 to 7, got 8"),
        (
            {"A": {"loss": [1, 2]}},
            r"runs\['A'\]: expected 'gradient', got \['loss'\]",
        ),
        (
            {"A": a_run(loss=[1.0, 2.0])},
            r"runs\['A'\]: expected loss, gradient, rate of one length, at "
            "least 2, got 2, 30, 30",
        ),
        ({"A": a_run(steps=1)}, "at least 2, got 1, 1, 1"),
    ],
)
def test_runs_that_do_not_fit_are_named(runs, complaint):
    with pytest.raises(ValueError, match=complaint):
        run_doctor(runs)


# The beam.

SETTINGS = {"bos": BOS, "eos": EOS, "max_len": 5, "alpha": 0.6}


def test_a_wider_beam_finds_what_greedy_search_misses():
    # I love <eos>: 0.5 · 0.4 · 0.75 = 0.15; the other: 0.4 · 0.9 · 0.75 = 0.27.
    figure = a_tree()
    said = figure.text
    assert "A beam of 2 says “the little elephants <eos>”" in said
    assert "a sum of −1.31 over 4 tokens" in said
    assert "Greedy search says “I love <eos>”" in said
    says = [t["pages"][-1]["says"] for t in data_of(figure)["trees"]]
    assert "beam of 1 says “I love <eos>”" in says[0]
    assert "beam of 1 this is greedy search" in says[0]


@pytest.mark.parametrize(
    ("seed", "beam", "alpha"), list(product(range(7), (1, 2, 3), (0.0, 0.6)))
)
def test_the_tree_ends_where_the_search_of_the_package_ends(seed, beam, alpha):
    step_fn = random_steps(11, seed)
    settings = SETTINGS | {"alpha": alpha, "beam": beam}
    one = record(step_fn, [str(i) for i in range(11)], **settings)
    assert list(one.winner) == beam_search(step_fn, **settings)
    # The best score of all that is left is the winner's.
    left = one.alive(len(one.steps))
    assert one.winner == max(left, key=one.score)
    if beam == 1:
        greedy = greedy_decode(step_fn, BOS, EOS, 5)
        assert list(one.winner) == greedy
    # Who stayed and did not end is whom the search asked about next.
    asked = []

    def watched(rows):
        asked.append({tuple(row[1:]) for row in rows.tolist()})
        return step_fn(rows)

    beam_search(watched, **settings)
    for step, rows in zip(one.steps, asked[1:], strict=False):
        assert {h for h in step.kept if h[-1] != EOS} == rows


def test_sums_and_scores_are_those_of_the_model():
    step_fn = random_steps(7, 0)
    one = record(step_fn, list("abcdefg"), beam=2, **SETTINGS)
    for ids in one.alive(len(one.steps)):
        rows = torch.tensor([BOS, *ids])
        logs = step_fn(rows[:-1, None]).log_softmax(-1)
        total = logs.gather(1, rows[1:, None]).sum().item()
        assert one.totals[ids] == pytest.approx(total, abs=1e-5)
        penalty = length_penalty(len(ids), 0.6)
        assert one.score(ids) == pytest.approx(total / penalty, abs=1e-5)
        assert one.own(ids) == pytest.approx(logs[-1, ids[-1]].item(), abs=1e-5)


def test_of_equal_sums_the_tree_keeps_those_the_search_keeps():
    def even(rows):
        return torch.zeros(len(rows), 13)

    settings = SETTINGS | {"beam": 3}
    one = record(even, [str(i) for i in range(13)], **settings)
    assert list(one.winner) == beam_search(even, **settings)
    for number, step in enumerate(one.steps[:-1]):
        going = {h for h in step.kept if h[-1] != EOS}
        following = {h[:-1] for h in one.steps[number + 1].shown}
        assert following <= going
    assert one.winner in one.alive(len(one.steps))


def test_kept_cut_and_finished_boxes_are_told_apart():
    tree = data_of(a_tree())["trees"][1]["drawing"]["svg"]
    rows = re.findall(r'<g data-row="\d">(.*?)</g></g>|<g data-row', tree)
    assert len(rows) == 4
    first = re.search(r'data-row="1">(.*?)(?=<g data-row)', tree)[1]
    boxes = re.findall(r'class="node (\w+)', first)
    assert boxes == ["kept", "kept", "cut"]
    # Two sentences end, and both are in the beam of 2.
    assert tree.count('class="inner"') == 2
    assert first.count('class="edge cut"') == 1


def test_the_winner_has_its_way_from_the_root():
    tree = data_of(a_tree())["trees"][1]["drawing"]["svg"]
    won = re.findall(r'node kept won".*?class="word"[^>]*>(.*?)<', tree)
    words = ["<bos>", "the", "little", "elephants", "<eos>"]
    assert [unescape(word) for word in won] == words


def test_a_step_says_who_stays_who_is_cut_and_who_has_finished():
    pages = data_of(a_tree())["trees"][1]["pages"]
    assert len(pages) == 1 + 4 + 1
    assert pages[0]["says"].startswith("A beam of 2: the search follows")
    assert pages[1]["says"] == (
        "Step 1: of 3 continuations “I” (−0.69) and “the” (−0.92) stay. The "
        "best one cut is “little” (−2.30)."
    )
    ended = next(p["says"] for p in pages if "is finished" in p["says"])
    assert "becomes a score of" in ended
    assert pages[-1]["table"].count(">wins<") == 1
    assert pages[-1]["table"].count("finished") == 1


def test_the_table_gives_a_score_to_what_has_ended_only():
    pages = data_of(a_tree())["trees"][1]["pages"]
    cells = re.findall(r"<td>(.*?)</td>", pages[2]["table"])
    assert "in the beam" in cells
    assert cells.count("–") == cells.count("in the beam")


def test_a_sentence_cut_at_max_len_competes_as_it_is():
    pages = data_of(a_tree(max_len=2))["trees"][1]["pages"]
    assert "says “the little”" in pages[-1]["says"]
    assert "–</td>" not in pages[-1]["table"]


def test_a_row_has_room_on_a_phone():
    draw = random_steps(30, 3)
    figure = beam_tree(draw, [str(i) for i in range(30)], bos=1, eos=2,
                       max_len=8)  # fmt: skip
    for tree in data_of(figure)["trees"]:
        rows = tree["drawing"]["svg"].split("<g data-row")[1:]
        assert all(1 <= row.count('class="node') <= MOST for row in rows)


def test_what_is_hardly_possible_gets_no_box():
    def unlikely(rows):
        logits = torch.full((len(rows), 7), -1e9)
        logits[:, EOS] = 0
        return logits

    figure = beam_tree(unlikely, list("abcdefg"), bos=1, eos=2, max_len=3)
    assert "1000000" not in data_of(figure)["trees"][0]["drawing"]["svg"]


def test_a_long_word_is_squeezed_and_markup_is_written_out():
    names = [*WORDS[:-1], "<b>incomprehensibly"]
    figure = beam_tree(tree_of_words_named(names), names, bos=1, eos=2,
                       max_len=5)  # fmt: skip
    assert "<b>incomp" not in shown(figure)
    assert 'textLength="56"' in shown(figure)


def tree_of_words_named(names):
    return lambda rows: tree_of_words(rows)[:, : len(names)]


@pytest.mark.bad_input
def test_a_search_that_does_not_fit_is_named():
    with pytest.raises(ValueError, match="max_len: expected 1 to 8, got 9"):
        a_tree(max_len=9)
    with pytest.raises(ValueError, match=r"tokens: expected 8 names.*got 2"):
        beam_tree(tree_of_words, ["a", "b"], bos=1, eos=2, max_len=3)
    with pytest.raises(ValueError, match="alpha"):
        a_tree(alpha=-1.0)


# Sampling.


@pytest.mark.parametrize(
    ("temperature", "k", "p"),
    list(product((0.2, 1.0, 2.0), (1, 3, None), (0.05, 0.6, None))),
)
def test_the_bars_are_what_the_filter_of_the_package_leaves(temperature, k, p):
    left = sampling.result(temperature, k, p, SCORES.tolist())
    filtered = sampling_filter(SCORES, k, p, temperature)
    drawn = filtered.softmax(-1)
    warm = (SCORES / temperature).softmax(-1)
    columns = torch.tensor(left.bars, dtype=torch.float64)
    for column, whole in zip(
        columns.T, (SCORES.softmax(-1), warm, drawn), strict=True
    ):
        torch.testing.assert_close(column[:12], whole[:12])
        torch.testing.assert_close(column[12], whole[12:].sum())
    assert left.kept == filtered.isfinite().sum()
    mass = warm[filtered.isfinite()].sum().item()
    assert left.mass == pytest.approx(mass, abs=1e-12)
    entropy = torch.distributions.Categorical(probs=drawn).entropy().item()
    assert left.bits[1] * 0.693147 == pytest.approx(entropy, abs=1e-5)


def test_four_even_tokens_have_two_bits():
    figure = sampling_bars([0.0, 0.0, 0.0, 0.0], list("abcd"))
    assert figure.text == (
        "Sampling. Temperature 1.0, top-k off, top-p 0.90: 4 tokens are left "
        "of 4. After the temperature they had 100.0\N{NO-BREAK SPACE}% of the "
        "probability; now they share all of it. The entropy goes from 2.00 "
        "bits to 2.00."
    )


def test_one_sure_token_is_left_alone():
    figure = sampling_bars([9.0, 0.0, -torch.inf], list("abc"))
    assert "1 token is left of 3" in figure.text
    assert "The entropy goes from 0.00 bits to 0.00" in figure.text
    rows = re.findall(r"<tr.*?</tr>", shown(figure))[1:]
    assert ["dropped" in row for row in rows] == [False, True, True]


def test_the_best_token_stands_first_and_equal_ones_in_their_order():
    figure = sampling_bars([1.0, 5.0, 1.0, 2.0], ["a", "<b>", "c", "猫"])
    names = re.findall(r"<th scope=row>(.*?)</th>", shown(figure))
    assert names == ["&lt;b&gt;", '<span lang="zh">猫</span>', "a", "c"]


def test_tokens_without_a_bar_share_a_line():
    rows = re.findall(
        r"<th scope=row>(.*?)</th>", shown(MAKERS["sampling_bars"]())
    )
    assert len(rows) == 13
    assert rows[-1] == "<i>5 others</i>"
    figure = sampling_bars(SCORES[:13], NAMES[:13])
    assert "<i>1 other</i>" in shown(figure)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("logits", "tokens", "complaint"),
    [
        ([1.0], ["a"], "logits: expected 2 to 2000 scores, got 1"),
        ([1.0, 2.0], ["a"], "tokens: expected 2 names.*got 1"),
        ([1.0, nan], ["a", "b"], "logits: expected numbers or -inf, got nan"),
        ([1.0, inf], ["a", "b"], "logits: expected numbers or -inf, got inf"),
        ([-inf, -inf], ["a", "b"], "a finite score, got only -inf"),
    ],
)
def test_a_distribution_that_does_not_fit_is_named(logits, tokens, complaint):
    with pytest.raises(ValueError, match=complaint):
        sampling_bars(logits, tokens)


# With a kernel.

ZH = Vocabulary(list("我爱小猫狗"))
EN = Vocabulary(["I", "love", "little", "cats", "dogs"])


def a_model():
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 2}
    config = TransformerConfig(
        src_vocab_size=len(ZH), tgt_vocab_size=len(EN), **sizes
    )
    torch.manual_seed(5)
    return Transformer(config)


def said_by(figure):
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", figure.page.value)
    return " ".join(unescape(text).split())


LIVE = {
    "try_schedule": live.try_schedule,
    "try_translation": lambda: live.try_translation(a_model(), ZH, EN),
}
every_live_figure = pytest.mark.parametrize(
    "make", LIVE.values(), ids=list(LIVE)
)


@every_live_figure
def test_a_live_figure_is_a_widget_and_a_sentence_for_where_none_works(make):
    bundle = make()._repr_mimebundle_()
    view = bundle.pop("application/vnd.jupyter.widget-view+json")
    assert len(view["model_id"]) == 32
    for text in bundle.values():
        assert "This figure needs a kernel: run its cell to" in text


@every_live_figure
def test_a_live_figure_answers_at_once_and_complains_of_nothing(make):
    page = make().page.value
    assert len(page) > 1000
    assert 'role="alert"' not in page


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
    ) in said_by(figure)


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
    assert complaint in said_by(figure)
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
    said = said_by(figure)
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
    assert "unknown token '鲸'; none is near" in said_by(figure)
    assert 'role="alert"' in figure.page.value
    figure.controls["sentence"].value = "  "
    assert "Type a Chinese sentence." in said_by(figure)
