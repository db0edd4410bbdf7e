"""Contracts of decoding: what others published, and what is up to a writer."""

import pytest
import torch
from contracts.known import gate_message
from contracts.right.decoding import by_argmax, by_sorting, in_lists
from sacrebleu.metrics import BLEU

from companion.contracts import check
from companion.contracts.decoding.beam_search import (
    CUT,
    WHOLE,
    Search,
    best_of_all,
)
from companion.contracts.decoding.bleu import ALL
from companion.contracts.decoding.bleu import RIGHT as SCORE
from companion.contracts.decoding.cached_decode import (
    model,
    sources,
    targets,
)
from companion.contracts.decoding.sampling_filter import SAMPLING_FILTER
from companion.contracts.decoding.step_functions import StubModel, wander
from companion.decoding import (
    bleu,
)

pytestmark = pytest.mark.once


def holds(component, fn):
    report = check(component, fn)
    assert report.passed, str(report)


# Ids


@pytest.mark.parametrize(
    "form",
    [list, tuple, torch.tensor, lambda ids: torch.tensor([ids])],
    ids=["list", "tuple", "tensor", "row"],
)
def test_ids_may_come_in_any_form(form):
    holds("greedy_decode", lambda *args: form(by_argmax(*args)))


def test_ids_may_be_tensors_in_a_list_or_a_list_in_a_list():
    holds("greedy_decode", lambda *args: [by_argmax(*args)])
    holds("greedy_decode", lambda *args: list(torch.tensor(by_argmax(*args))))


@pytest.mark.parametrize("result", ["5 3", 5, [0.5], [True], [[1], [2]], {}])
def test_what_holds_no_ids_is_refused(result):
    message = gate_message("greedy_decode", lambda *args: result)
    assert "expected a list of ids, without bos, up to eos" in message


def test_a_stub_model_answers_a_row_alone_as_among_others():
    model = StubModel(wander(3), 5)
    rows = torch.tensor([[1, 5, 7], [1, 4, 4]])
    each = torch.cat([model(row[None]) for row in rows])
    assert torch.equal(model(rows), each)
    assert (each < 0).all()


# Beam search


def test_what_is_best_of_all_is_found_by_a_right_search():
    for case in [*WHOLE, *CUT]:
        assert Search()(case) == best_of_all(case)


def test_either_length_penalty_is_right_and_nothing_between():
    def by(power):
        def search(step_fn, bos, eos, beam, max_len, alpha):
            return in_lists(step_fn, bos, eos, beam, max_len, power * alpha)

        return search

    holds("beam_search", by(1))
    for power in (0, 2.5, -1):
        (failure,) = check("beam_search", by(power)).failures
        assert failure.contract == "With alpha it divides by the length penalty"


# What may be drawn


def test_the_warpers_of_hugging_face_are_a_filter():
    transformers = pytest.importorskip("transformers")

    def warped(logits, top_k, top_p, temperature):
        warpers = [transformers.TemperatureLogitsWarper(float(temperature))]
        if top_k is not None:
            warpers.append(transformers.TopKLogitsWarper(top_k))
        if top_p is not None:
            warpers.append(transformers.TopPLogitsWarper(top_p))
        for warper in warpers:
            logits = warper(None, logits)
        return logits

    holds("sampling_filter", warped)


@pytest.mark.parametrize("constant", [-7.0, 100.0])
def test_a_number_added_to_a_row_is_nobodys_business(constant):
    holds("sampling_filter", lambda *args: by_sorting(*args) + constant)


def test_no_case_comes_near_the_edge_of_p():
    """Where rounding would decide, two right filters may differ."""
    for logits, k, p, temperature in SAMPLING_FILTER.cases().values():
        if p is None:
            continue
        left = by_sorting(logits, k, None, temperature).softmax(-1)
        mass = left.sort(descending=True).values.cumsum(-1)
        assert (mass - p).abs().min() > 1e-3


# BLEU


def test_the_expected_scores_are_those_of_sacrebleu():
    metric = BLEU(tokenize="none", force=True, smooth_method="none")
    for hypotheses, references in ALL:
        ours, theirs = (
            [" ".join(words) for words in side]
            for side in (hypotheses, references)
        )
        score = metric.corpus_score(ours, [theirs]).score
        assert abs(SCORE(hypotheses, references) - score) < 1e-9


# Keys and values


def test_what_is_expected_of_a_cache_depends_on_all_that_it_reads():
    network, src, tokens = model(), sources(3), targets(3)
    before = network(src, tokens)
    src[0, 0] = 3 if src[0, 0] != 3 else 4
    assert (network(src, tokens)[0] - before[0]).abs().min(-1).values.min() > 0
    assert torch.equal(network(src, tokens)[1], before[1])


def test_the_full_pass_alone_has_the_right_logits():
    (failure,) = check(
        "cached_decode", lambda model, src, tokens: model(src, tokens)
    ).failures
    assert failure.contract.startswith("Each position passes the decoder once")


# The core


def test_a_check_puts_back_how_many_threads_there_were():
    before = torch.get_num_threads()
    inside = []

    def score(hypotheses, references):
        inside.append(torch.get_num_threads())
        return bleu(hypotheses, references)

    torch.set_num_threads(2)
    try:
        holds("bleu", score)
        assert torch.get_num_threads() == 2
        assert set(inside) == {1}
    finally:
        torch.set_num_threads(before)


def test_lists_are_handed_over_as_lists_and_copied():
    def greedy(hypotheses, references):
        assert type(hypotheses) is type(hypotheses[0]) is list
        score = bleu(hypotheses, references)
        hypotheses[0].clear()
        return score

    holds("bleu", greedy)


def test_a_model_is_named_and_not_written_out():
    message = gate_message("cached_decode", lambda model, src, tokens: 1 / 0)
    assert "The arguments were model Transformer, src (2, 7), tok" in message
