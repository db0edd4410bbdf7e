"""The fourth figure of chapter 02: what a decoder reads."""

import re

import pytest
import torch
from figures.registry import EN, FORCED, WRITTEN, shown

from companion.figures import teacher_forcing
from companion.seq2seq import Seq2Seq, fit


def columns(figure, kind):
    """The words of a kind, panel by panel."""
    return [
        re.findall(rf'class="(?:{kind})"[^>]*>([^<]+)<', panel)
        for panel in shown(figure).split("<svg")[1:]
    ]


def test_what_is_read_is_what_the_package_reads():
    """Both ways of the model feed the same table: what comes in is watched."""
    torch.manual_seed(0)
    model, seen = Seq2Seq(11, 11, 5, 7), []
    model.tgt_embedding.register_forward_hook(
        lambda _, args, __: seen.extend(args[0].flatten().tolist())
    )
    src, tgt = torch.tensor([[3, 4, 5]]), torch.tensor([[1, 6, 7, 8, 9]])
    fit(model, [(src, tgt)])
    start, target = tgt[0, 0].item(), tgt[0, 1:].tolist()
    assert seen == [start, *target[:-1]]
    seen.clear()
    with torch.no_grad():
        model.generator.bias[2] = -100  # It never ends.
    written = model.translate(src, 4)[0].tolist()
    assert seen == [start, *written[:-1]]
    # The drawing shifts its words in the same two ways.
    figure = teacher_forcing(EN, FORCED, WRITTEN)
    right, own = columns(figure, "reads")
    assert right == ["⟨start⟩", *EN[:-1]]
    assert own == ["⟨start⟩", *WRITTEN[:-1]]


def test_a_word_is_marked_by_whether_it_is_the_target():
    said, written = columns(teacher_forcing(EN, FORCED, WRITTEN), "said|wrong")
    assert said == ["I ✓", "like ✗", "little ✓", "cats ✓"]
    assert written == ["I ✓", "like ✗", "my ✗", "cat ✗"]


@pytest.mark.bad_input
def test_words_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="said: expected 4 words, got 3"):
        teacher_forcing(EN, FORCED[:3], WRITTEN)
    with pytest.raises(ValueError, match=r"target: expected 1 to 4 .*got 5"):
        teacher_forcing([*EN, "too"], FORCED, WRITTEN)
