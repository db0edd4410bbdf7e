"""The first figure of chapter 12: one sentence, four questions."""

import re
from html import unescape

import pytest
import torch
from figures.registry import shown

from companion.figures import four_questions
from companion.figures.gallery.four_questions import lessons_of, sees
from companion.masks import causal_mask, combine_masks
from companion.variants import span_corrupt, span_restore

TEXT = ["I", "do", "love", "little", "cats"]
CASES = [{1}, {0, 1}, {1, 3}, {0, 2, 4}, {0, 1, 2, 3, 4}]
FIRST = 20


def ids(tokens):
    """Ids as the package has them: sentinels count down from FIRST."""
    return torch.tensor(
        [
            4 + TEXT.index(w) if w in TEXT else FIRST + 1 - int(w[1:-1])
            for w in tokens
        ]
    )


@pytest.mark.parametrize("hidden", CASES)
def test_t5_reads_and_says_what_the_package_makes_of_the_sentence(hidden):
    lesson = lessons_of(TEXT, hidden)["T5"]
    said = [word for word in lesson.says if word]
    gone = torch.tensor([i in hidden for i in range(5)])
    source, target = span_corrupt(ids(TEXT), gone, FIRST)
    assert torch.equal(ids(lesson.encoder), source)
    assert torch.equal(ids(said), target)
    assert torch.equal(span_restore(source, target, FIRST), ids(TEXT))


@pytest.mark.parametrize("hidden", CASES)
def test_what_is_read_is_what_was_said_one_place_later(hidden):
    for model, lesson in lessons_of(TEXT, hidden).items():
        said = [word for word in lesson.says if word]
        if model != "BERT":
            assert lesson.decoder == ["<bos>", *said[:-1]]
        assert len(lesson.encoder) + len(lesson.decoder) == len(lesson.says)


def test_bert_has_a_hole_a_word_and_bart_one_a_run():
    lessons = lessons_of(TEXT, {1, 2, 4})
    assert lessons["BERT"].encoder == ["I", "[M]", "[M]", "little", "[M]"]
    assert lessons["BERT"].says == [None, "do", "love", None, "cats"]
    assert lessons["BART"].encoder == ["I", "[M]", "little", "[M]"]
    assert lessons["BART"].says[4:] == TEXT


def test_who_sees_whom_is_what_the_masks_of_the_package_say():
    lessons = lessons_of(TEXT, {1, 2})
    assert all(all(row) for row in sees(lessons["BERT"]))
    assert sees(lessons["GPT"]) == causal_mask(5).tolist()
    for model in ("T5", "BART"):
        lesson = lessons[model]
        n, m = len(lesson.encoder), len(lesson.decoder)
        masks = combine_masks(torch.ones(1, n).int(), torch.ones(1, m).int(), 0)
        rows = torch.tensor(sees(lesson))
        assert rows[:n, :n].all()
        assert not rows[:n, n:].any()
        assert torch.equal(rows[n:, n:], masks.tgt[0, 0])
        assert torch.equal(rows[n:, :n], masks.cross.expand(1, 1, m, n)[0, 0])


def test_a_square_is_filled_where_a_position_is_seen():
    figure = four_questions(TEXT, {1})
    tables = shown(figure).split("<table")[1:]
    for table, lesson in zip(
        tables, lessons_of(TEXT, {1}).values(), strict=True
    ):
        rows = table.partition("<tbody>")[2].split("</tr>")[:-1]
        found = [
            [
                kind.split()[0] == "seen"
                for kind in re.findall(r'<td class="((?:seen|hidden).*?)"', row)
            ]
            for row in rows
        ]
        assert found == sees(lesson)
        said = [
            unescape(re.search(r'class="(?:loss|none)">(.*?)</td>', row)[1])
            for row in rows
        ]
        assert said == [word or "·" for word in lesson.says]


def test_only_two_models_have_a_line_above_their_decoder():
    tables = shown(four_questions(TEXT, {1})).split("<table")[1:]
    assert ['<tr class="first">' in t for t in tables] == [0, 0, 1, 1]


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "hidden", "complaint"),
    [
        (["a"], [0], "text: expected 2 to 5 words, got 1"),
        (list("abcdef"), [0], "text: expected 2 to 5 words, got 6"),
        (["a", "b"], [], r"hidden: expected places 0 to 1, got \[\]"),
        (["a", "b"], [2], r"hidden: expected places 0 to 1, got \[2\]"),
    ],
)
def test_what_cannot_be_drawn_is_refused(text, hidden, complaint):
    with pytest.raises(ValueError, match=complaint):
        four_questions(text, hidden)
