"""Contracts of what BERT, T5 and today's blocks are made of."""

import re

import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.odd.variants import nobody, parts_exchanged
from contracts.right import built
from contracts.right.variants import (
    LANGUAGE_MODELS,
    TRANSLATION_MODELS,
    by_dictionary,
    by_loop,
    by_nested_choices,
    by_repeating,
    by_two_draws,
)
from torch import nn

from companion import variants
from companion.contracts import COMPONENTS, check
from companion.contracts.variants.grouped_query_attention import (
    cases,
    dealt_out_in_turns,
    oracle,
)
from companion.contracts.variants.mask_tokens import (
    Masked,
    Rewound,
    asked_for_masks_only,
    loss_everywhere,
    masking,
    padded,
    words,
)
from companion.contracts.variants.span_corrupt import Case, corrupt, some

pytestmark = pytest.mark.once

FIVE = (
    "mask_tokens",
    "span_corrupt",
    "span_restore",
    "grouped_query_attention",
    "rms_norm",
)


def holds(component, fn):
    report = check(component, fn)
    assert report.passed, str(report)


def of_a_hundred(tokens, generator):
    return variants.mask_tokens(tokens, generator, vocab_size=100)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_no_weights_make_a_gpt_fail(name, seed):
    holds("language_model", built(LANGUAGE_MODELS[name], seed))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", TRANSLATION_MODELS)
def test_no_weights_make_t5_or_bart_fail(name, seed):
    holds("translation_model", built(TRANSLATION_MODELS[name], seed))


@pytest.mark.parametrize("component", FIVE)
def test_a_stub_is_told_what_to_write(component):
    def stub(*args):
        raise NotImplementedError

    message = gate_message(component, stub)
    signature = COMPONENTS[component].signature.partition("(")[2]
    assert message.startswith("Nothing is written here yet. Write `def stub(")
    assert signature in message


# Masking


@pytest.mark.parametrize("way", [by_two_draws, by_nested_choices])
def test_chance_raises_no_false_alarm(way):
    """Shares are allowed five standard errors, whatever the numbers are."""

    def lucky(seed):
        def mask(tokens, generator):
            drawn = int(torch.randint(2**31, (), generator=generator))
            return way(tokens, torch.Generator().manual_seed(drawn + seed))

        return mask

    for seed in range(20):
        holds("mask_tokens", lucky(seed))


@pytest.mark.parametrize("share", [0.12, 0.18])
def test_a_share_that_is_three_points_off_is_found(share):
    def mask(tokens, generator):
        return masking(tokens, generator, share=share)

    report = check("mask_tokens", mask)
    assert "15 % of the words are chosen" in str(report).split("✓")[0]


def test_the_share_is_told_with_what_chance_explains():
    # √(0.15 · 0.85 / 8192) is 0.395 %, and five of it are 2.0 %.
    message = check("mask_tokens", nobody).failures[0].message
    assert "expected 15 %, and chance explains 2.0 more or less" in message


@pytest.mark.parametrize(
    "fn", [loss_everywhere, asked_for_masks_only, parts_exchanged]
)
def test_a_wrong_target_is_told_once_with_all_that_follows(fn):
    report = check("mask_tokens", fn)
    assert len(report.failures) > 3
    (_,) = report.grouped()


def test_what_was_made_of_a_text_is_counted_on_paper():
    tokens = torch.tensor([1, 10, 11, 12, 13, 14, 2, 0])
    inputs = torch.tensor([1, 3, 11, 99, 13, 14, 2, 0])
    target = torch.tensor([0, 10, 11, 12, 0, 14, 0, 0])
    found = Masked(tokens, inputs, target)
    assert found.share == pytest.approx(4 / 5)
    assert found.split == (1 / 4, 1 / 4, 2 / 4)
    assert found.others.tolist() == [99]


def test_half_of_the_padded_text_is_padding_and_all_ids_are_in_it():
    tokens = padded()
    assert 0.4 < (tokens == 0).float().mean() < 0.6
    assert set(tokens.unique().tolist()) == {0, 1, 2, *range(4, 100)}
    assert words(3, 5).min() >= 4


def test_a_generator_starts_over_for_each_call_of_a_contract():
    generator = Rewound(2)
    first = torch.rand(5, generator=generator)
    second = torch.rand(5, generator=generator)
    generator.start_over()
    assert torch.equal(torch.rand(5, generator=generator), first)
    assert not torch.equal(first, second)
    assert repr(generator) == "with seed 2"


def test_dropout_for_a_choice_is_a_draw_from_torchs_own_numbers():
    def mask(tokens, generator):
        chosen = (F.dropout(torch.ones(tokens.shape), 0.85) > 0) & (tokens > 3)
        return tokens.masked_fill(chosen, 3), tokens * chosen

    message = gate_message("mask_tokens", mask)
    assert message.startswith("It draws from torch's own random numbers")


def test_the_function_is_called_by_place_and_may_have_options():
    def mask(text, dice, *, share=0.15):
        return masking(text, dice, share=share)

    holds("mask_tokens", mask)

    def unable(tokens):
        return tokens, tokens

    message = gate_message("mask_tokens", unable)
    assert "The contracts call `unable(tokens, generator)`" in message


# Spans


def test_the_figure_of_the_paper_by_ids():
    """Thank you for inviting me to your party last week, figure 2."""
    text = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    dropped = [word in (13, 14, 19) for word in text]
    source, target = corrupt(Case(text, dropped, 99))
    assert source == [11, 12, 99, 15, 16, 17, 18, 98, 20]
    assert target == [99, 13, 14, 98, 19, 97]


@pytest.mark.parametrize("seed", range(5))
def test_the_package_agrees_on_any_text_and_puts_it_back(seed):
    case = some(seed, 37)
    source, target = variants.span_corrupt(*case.args)
    assert (source.tolist(), target.tolist()) == corrupt(case)
    restored = variants.span_restore(source, target, case.sentinel)
    assert restored.tolist() == case.tokens


def test_whether_parts_that_do_not_fit_are_refused_is_up_to_the_writer():
    holds("span_restore", variants.span_restore)  # It refuses them.
    holds("span_restore", by_dictionary)  # It does not.


@pytest.mark.parametrize(
    ("fn", "says"),
    [
        (lambda *args: None, "It returned None: .* forget `return`"),
        (lambda *args: by_loop(*args)[0].float(), "It returned a Tensor: "),
        (
            lambda *args: [x.float() for x in by_loop(*args)],
            "It returned float32 for int64",
        ),
        (lambda *args: (*by_loop(*args), 2), "It returned 3 things: expec"),
        (lambda *args: ([1.5], [2]), "It returned a list, not a tensor"),
        (lambda *args: (x for x in by_loop(*args)), "Use `return`, not `yi"),
    ],
)
def test_what_is_not_a_pair_of_ids_is_named(fn, says):
    assert re.search(says, gate_message("span_corrupt", fn))


# Shared heads


@pytest.mark.parametrize("case", cases())
def test_the_oracle_is_pytorchs_own_switch(case):
    q, k, v, *mask = cases()[case]
    expected = F.scaled_dot_product_attention(q, k, v, *mask, enable_gqa=True)
    torch.testing.assert_close(oracle(q, k, v, *mask), expected)


def test_heads_that_take_turns_are_shown_as_who_hears_whom():
    failure = check("grouped_query_attention", dealt_out_in_turns).failures[0]
    turns, groups = [[1, 0], [0, 1]] * 3, [[1, 0]] * 3 + [[0, 1]] * 3
    assert failure.got.tolist() == turns
    assert failure.expected.tolist() == groups
    assert failure.axes == ("head", "hears")


def test_shared_heads_may_be_written_with_a_module():
    class Grouped(nn.Module):
        def forward(self, q, k, v, mask=None):
            return by_repeating(q, k, v, mask)

    holds("grouped_query_attention", Grouped())


# RMS normalisation


def test_a_textbook_line_fails_in_float16_and_nowhere_else():
    def plain(x, gain, eps):
        return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * gain

    (failure,) = check("rms_norm", plain).failures
    assert failure.contract.startswith("In float16 a vector of numbers near")
    assert "square in float32, `x.float()`" in failure.message


def test_dividing_by_the_largest_first_is_as_good_as_float32():
    def by_largest(x, gain, eps):
        largest = x.detach().abs().amax(-1, keepdim=True).clamp_min(1)
        small = x / largest
        eps = eps / largest.float() ** 2
        squares = small.float().pow(2).mean(-1, keepdim=True)
        return (small * torch.rsqrt(squares + eps)).to(x.dtype) * gain

    holds("rms_norm", by_largest)
