"""The figure of chapter 11: a beam search as a tree."""

import re
from html import unescape
from itertools import product

import pytest
import torch
from figures.browser import PHONE, computed
from figures.registry import BEAM, TOKENS, html_of, parts_at, shown, step_fn

from companion.data.vocabulary import Vocabulary
from companion.decoding import (
    beam_search,
    greedy_decode,
    length_penalty,
)
from companion.figures import (
    beam_tree,
)
from companion.figures.gallery.beam_tree.model import MOST, record

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


SETTINGS = {"bos": BOS, "eos": EOS, "max_len": 5, "alpha": 0.6}


def test_a_wider_beam_finds_what_greedy_search_misses():
    # I love <eos>: 0.5 · 0.4 · 0.75 = 0.15; the other: 0.4 · 0.9 · 0.75 = 0.27.
    figure = a_tree()
    said = figure.text
    assert "A beam of 2 says “the little elephants <eos>”" in said
    assert "a sum of −1.31 over 4 tokens" in said
    assert "Greedy search says “I love <eos>”" in said
    [says] = parts_at(figure, 0, 4)["says"]
    assert "beam of 1 says “I love &lt;eos&gt;”" in says
    assert "beam of 1 this is greedy search" in says


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
    tree = parts_at(a_tree(), 1, 0)["tree"][0]
    rows = re.findall(r"<g data-row", tree)
    assert len(rows) == 4
    first = re.search(r'data-row="1"(.*?)(?=<g data-row)', tree)[1]
    boxes = re.findall(r'class="node (\w+)', first)
    assert boxes == ["kept", "kept", "cut"]
    # Two sentences end, and both are in the beam of 2.
    assert tree.count('class="inner"') == 2
    assert first.count('class="edge cut"') == 1


def test_the_winner_has_its_way_from_the_root():
    tree = parts_at(a_tree(), 1, 0)["tree"][0]
    won = re.findall(r'node kept won".*?class="word"[^>]*>(.*?)<', tree)
    words = ["<bos>", "the", "little", "elephants", "<eos>"]
    assert [unescape(word) for word in won] == words


def test_a_step_says_who_stays_who_is_cut_and_who_has_finished():
    pages = [parts_at(a_tree(), 1, step) for step in range(1 + 4 + 1)]
    says = [unescape(page["says"][0]) for page in pages]
    assert says[0].startswith("A beam of 2: the search follows")
    assert says[1] == (
        "Step 1: of 3 continuations “I” (−0.69) and “the” (−0.92) stay. The "
        "best one cut is “little” (−2.30)."
    )
    ended = next(text for text in says if "is finished" in text)
    assert "becomes a score of" in ended
    assert pages[-1]["kept"][0].count(">wins<") == 1
    assert pages[-1]["kept"][0].count("finished") == 1


def test_the_table_gives_a_score_to_what_has_ended_only():
    [kept] = parts_at(a_tree(), 1, 2)["kept"]
    cells = re.findall(r"<td>(.*?)</td>", kept)
    assert "in the beam" in cells
    assert cells.count("–") == cells.count("in the beam")


def test_a_sentence_cut_at_max_len_competes_as_it_is():
    last = parts_at(a_tree(max_len=2), 1, 3)
    assert "says “the little”" in last["says"][0]
    assert "–</td>" not in last["kept"][0]


def test_a_row_has_room_on_a_phone():
    draw = random_steps(30, 3)
    figure = beam_tree(draw, [str(i) for i in range(30)], bos=1, eos=2,
                       max_len=8)  # fmt: skip
    for beam in range(3):
        rows = parts_at(figure, beam, 0)["tree"][0].split("<g data-row")[1:]
        assert all(1 <= row.count('class="node') <= MOST for row in rows)


def test_what_is_hardly_possible_gets_no_box():
    def unlikely(rows):
        logits = torch.full((len(rows), 7), -1e9)
        logits[:, EOS] = 0
        return logits

    figure = beam_tree(unlikely, list("abcdefg"), bos=1, eos=2, max_len=3)
    assert "1000000" not in parts_at(figure, 0, 0)["tree"][0]


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


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_the_last_step_has_the_winner_of_the_package(reader, beam):
    page = reader(html_of("beam_tree"))
    computed(page)
    page.get_by_role("button", name=f"Beam {beam}").click()
    assert computed(page).state[0] == beam - 1
    ids = beam_search(step_fn, beam=beam, alpha=0.6, **BEAM)
    words = [TOKENS[i] for i in ids]
    assert f"beam of {beam} says “{' '.join(words)}”" in computed(page).says
    won = page.locator(".node.won text.word").all_text_contents()
    assert won == ["<bos>", *words]
    wins = page.locator("tr:has([data-won]) th").all_inner_texts()
    assert wins == [" ".join(words)]


def test_the_steps_uncover_the_tree_row_by_row(reader):
    page = reader(html_of("beam_tree"))
    computed(page)
    page.get_by_role("button", name="Start").press("Enter")
    rows = page.locator("[data-row]").count()
    forward = page.get_by_role("button", name="Next")
    for step in range(rows + 2):
        if step:
            forward.press("Enter")
        assert computed(page).state == [1, step]
        seen = page.locator("[data-row]").evaluate_all(
            "all => all.map(e => Number(getComputedStyle(e).opacity))"
        )
        assert seen == [float(row < step) for row in range(rows)]
        place = page.locator("output").inner_text()
        assert place == f"{step + 1} of {rows + 2}"
        # Before the end the winner is not given away.
        over = page.locator(".picture.over").count() == 1
        assert over == (step == rows + 1)
        assert page.locator("[data-won]").count() == int(over)
    assert forward.get_attribute("aria-disabled") == "true"
    forward.press("Enter")
    assert computed(page).state[1] == rows + 1
    page.get_by_role("button", name="Back").press("Enter")
    assert computed(page).state[1] == rows


def test_kept_boxes_and_cut_ones_differ_in_more_than_their_colour(reader):
    page = reader(html_of("beam_tree"))
    computed(page)
    looks = [
        page.locator(f".node.{kind}:not(.won)").first.evaluate(
            "e => [getComputedStyle(e.querySelector('rect')).strokeDasharray,"
            " getComputedStyle(e.querySelector('.word')).fontWeight]"
        )
        for kind in ("kept", "cut")
    ]
    assert looks[0][0] != looks[1][0]
    assert looks[0][1] != looks[1][1]


def test_boxes_do_not_touch(reader):
    page = reader(html_of("beam_tree"), width=PHONE)
    computed(page)
    boxes = page.locator(".node > rect:first-child").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect())"
        ".map(r => [r.left, r.top, r.right, r.bottom])"
    )
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3]
            assert apart
