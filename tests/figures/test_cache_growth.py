"""A cache beside the rows of attention: what is computed at which step."""

import re

import pytest
import torch
from figures.registry import CAUSAL_WEIGHTS, SOURCE, figure_of, parts_at

from companion.decoding import StepDecoder
from companion.figures import cache_growth
from companion.transformer import Transformer, TransformerConfig

WITH, WITHOUT = 0, 1


def computed(mode):
    """How many pairs of a key and a value are computed, for each step."""
    figure = figure_of("cache_growth")
    return [
        sum(
            kind in ("now", "again")
            for kind in parts_at(figure, mode, step)["pair@class"]
        )
        for step in range(len(SOURCE))
    ]


@pytest.mark.parametrize("mode", [WITH, WITHOUT])
def test_it_computes_as_many_positions_as_the_package_does(mode):
    model = Transformer(TransformerConfig.tiny(11, 13)).eval()
    seen = []
    model.decoder.layers[0].self_attention.k_proj.register_forward_hook(
        lambda module, args, out: seen.append(out.shape[-2])
    )
    source, tokens = torch.randint(3, 11, (1, 4)), torch.randint(3, 13, (5,))
    with torch.no_grad():
        steps = StepDecoder(model, source, cache=mode == WITH)
        for token in tokens:
            steps.step(token[None])
    assert computed(mode) == seen


@pytest.mark.parametrize(("mode", "total"), [(WITH, "5"), (WITHOUT, "15")])
def test_the_last_step_adds_up_what_was_computed(mode, total):
    says = parts_at(figure_of("cache_growth"), mode, 4)["says"][0]
    assert re.search(r"(\d+)\.$", says)[1] == total == str(sum(computed(mode)))


def test_every_weight_up_to_the_asking_token_is_drawn():
    html = figure_of("cache_growth").html
    drawn = re.findall(r"--weight:\d+%[^>]*>.*?>([\d.]+)</text>", html)
    rows, columns = torch.tril_indices(5, 5)
    wanted = CAUSAL_WEIGHTS[rows, columns].tolist()
    assert [float(each) for each in drawn] == pytest.approx(wanted, abs=0.0051)


def test_rows_of_earlier_tokens_are_finished_only_with_a_cache():
    figure = figure_of("cache_growth")
    kinds = [parts_at(figure, mode, 2)["row@class"] for mode in (0, 1)]
    assert kinds[WITH] == ["done", "done", "now", "later", "later"]
    assert kinds[WITHOUT] == ["again", "again", "now", "later", "later"]


@pytest.mark.bad_input
def test_weights_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"got 2 words and \(5, 5\)"):
        cache_growth(["I", "love"], CAUSAL_WEIGHTS)
    with pytest.raises(ValueError, match=r"at most 6 words, .* got 7 words"):
        cache_growth(["a"] * 7, torch.eye(7))
    with pytest.raises(ValueError, match="expected 0 on the future"):
        cache_growth(["I", "love"], torch.full((2, 2), 0.5))
