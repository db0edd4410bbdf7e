"""What a report looks like: text, and a page that is well formed."""

import re

import pytest
import torch
from contracts.known import report_on
from contracts.report.reader import Reader, page
from contracts.right.attention import attention_by_matmul

from companion.contracts import check
from companion.contracts.engine.page import side_by_side

pytestmark = pytest.mark.once


def unscaled(q, k, v, mask=None):
    return attention_by_matmul(q * k.shape[-1] ** 0.5, k, v, mask)


@pytest.fixture(scope="module")
def failing():
    return check("attention", unscaled)


def test_the_page_draws_both_tensors_beside_the_message(failing):
    failure = failing.failures[0]
    yours, expected = Reader(page(failing)).tables[:2]
    for cells, tensor in ((yours, failure.got), (expected, failure.expected)):
        shown = [float(cell.replace("−", "-")) for cell in cells]
        block = tensor[0].flatten()
        torch.testing.assert_close(
            torch.tensor(shown), block, atol=0.0051, rtol=0
        )


def test_the_outlined_number_is_the_one_in_the_message(failing):
    message = failing.failures[0].message
    assert "At batch 0, row 2, feature 5 yours is -1.006" in message
    assert '<td class="minus off" style="--heat:45%">−1.01</td>' in page(
        failing
    )


def test_a_page_is_the_same_in_every_run(failing):
    again = check("attention", unscaled)
    assert page(again) == page(failing)
    assert str(again) == str(failing)


def test_code_in_a_message_cannot_become_part_of_the_page():
    def softmax(scores, dim):
        raise ValueError("<script>alert(1)</script>")

    html = page(check("softmax", softmax))
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_the_picture_shows_the_place_that_the_words_name():
    report = report_on("split_heads/viewed-straight")
    failure, html = report.failures[0], page(report)
    where = "Batch 0, head 0, position 1, column 0 holds `x[0, 0, 7]`"
    assert failure.message.startswith(where)
    # The numbers are 0 … 209, so that each says where it stood.
    assert failure.got[failure.at] == 7
    assert failure.expected[failure.at] == 21
    assert "yours, batch 0, head 0<" in html
    outlined = re.findall('class="off"[^>]*>([^<]*)<', html)
    assert outlined[:2] == ["7", "21"]


def test_numbers_of_up_to_four_digits_are_written_out():
    got = torch.tensor([[100.0, 209.0, 9999.0, 10000.0, -123.0]])
    html = side_by_side(got, None, ("row", "key"))
    for number in (">100<", ">209<", ">9999<", ">1e4<", ">−123<"):
        assert number in html
    assert ">123<" in side_by_side(got.abs() + 0.4, None, ("row", "key"))


def test_what_holds_is_listed():
    report = check("attention", attention_by_matmul)
    assert str(report).startswith("attention: all 23 contracts hold\n\n✓ It")
    assert page(report).count('<li data-mark="✓">') == 23
    assert repr(report) == str(report)
    assert report._repr_mimebundle_()["text/plain"] == str(report)


def test_a_large_matrix_is_cut_around_the_worst_number():
    expected = torch.zeros(2, 11, 13)
    got = expected.clone()
    got[1, 9, 10] = 3
    html = side_by_side(got, expected, ("row", "key"))
    assert "yours, batch 1" in html
    assert html.count('scope="row"') == 14
    assert '<th scope="row">row 10</th>' in html
    assert '<th scope="col">12</th>' in html
    assert html.count('class="off"') == 2


def test_numbers_that_are_none_and_small_differences_can_be_read():
    got = torch.tensor([torch.nan, torch.inf, -torch.inf, 12345.0, -1e-5])
    html = side_by_side(got, None, ("key",))
    for number in ("NaN", "∞", "−∞", "1e4", ">0.00<"):
        assert number in html
    close = torch.tensor([[0.5, 0.25]])
    html = side_by_side(close + 0.001, close, ("row", "key"))
    assert "0.5010" in html
    assert "0.5000" in html


def test_code_in_the_name_of_a_contract_is_set_as_code():
    told = page(check("schedule", lambda *args: None))
    assert "Until <code>warmup</code> it rises" in told
    assert "`" not in re.sub("<style>.*?</style>", "", told, flags=re.S)
