"""Contracts of masks and of whole models: what others wrote, and numbers."""

import copy
import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from contracts.known import gate_message
from contracts.odd.transformer import TheMemoryReplacesWhatAsked
from contracts.right import built
from contracts.right.transformer import (
    ENCODERS,
    LANGUAGE_MODELS,
    TRANSLATION_MODELS,
    Layers,
    Ours,
    OursInAList,
    PostNorm,
    PyTorchs,
)
from torch import nn

from companion.contracts import check
from companion.contracts.transformer.translation_model import Translator
from companion.masks import combine_masks
from companion.transformer import Transformer, TransformerConfig

pytestmark = pytest.mark.once

SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 17, "num_layers": 2}


def config(norm_first):
    return TransformerConfig(
        src_vocab_size=13,
        tgt_vocab_size=11,
        dropout=0.0,
        norm_first=norm_first,
        **SIZES,
    )


def holds(component, fn):
    report = check(component, fn)
    assert report.passed, str(report)


def test_a_model_in_training_mode_is_told_of_its_dropout():
    noisy = replace(config(norm_first=False), dropout=0.1)
    assert "dropout is on" in gate_message(
        "translation_model", Transformer(noisy)
    )


@pytest.mark.parametrize(
    "encoder",
    [
        pytest.param(lambda: OursInAList(3, norm_first=True), id="ours"),
        pytest.param(
            lambda: PyTorchs(2, norm_first=True, dropout=0.0), id="PyTorch's"
        ),
    ],
)
def test_pre_ln_without_its_last_norm_is_told_so(encoder):
    module = built(encoder)
    holds("encoder", module)
    owner = getattr(module, "inner", module)
    owner.norm = None if owner is not module else torch.nn.Identity()
    (failure,) = check("encoder", module).failures
    assert "one more norm stands after the last" in failure.message


# What is right is right with any weights


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_no_weights_make_a_language_model_fail(name, seed):
    holds("language_model", built(LANGUAGE_MODELS[name], seed))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", TRANSLATION_MODELS)
def test_no_weights_make_a_translation_model_fail(name, seed):
    holds("translation_model", built(TRANSLATION_MODELS[name], seed))


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda m: type(m).__name__)
def test_large_and_small_weights_are_as_good(encoder):
    for scale in (0.3, 2.0):
        scaled = copy.deepcopy(encoder)
        with torch.no_grad():
            for p in scaled.parameters():
                p.mul_(scale if p.ndim > 1 else 1)
        holds("encoder", scaled)
        holds("attention_maps", scaled.maps)


# What others published


@pytest.fixture
def transformers():
    return pytest.importorskip("transformers")


def test_gpt_2_is_a_language_model(transformers):
    sizes = {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 16}
    given = transformers.GPT2Config(
        vocab_size=11, bos_token_id=1, eos_token_id=2, **sizes
    )
    model = built(lambda: transformers.GPT2LMHeadModel(given)).eval()
    holds("language_model", lambda tokens: model(tokens).logits)


def test_t5_is_a_translation_model(transformers):
    sizes = {"d_model": 12, "d_kv": 4, "d_ff": 17, "num_layers": 2}
    given = transformers.T5Config(
        vocab_size=11, num_heads=3, decoder_start_token_id=0, **sizes
    )
    model = built(lambda: transformers.T5ForConditionalGeneration(given)).eval()

    def translate(src, tgt):
        mask = (src != 0).long()
        out = model(input_ids=src, attention_mask=mask, decoder_input_ids=tgt)
        return out.logits

    holds("translation_model", translate)

    def without_a_mask(src, tgt):
        return model(input_ids=src, decoder_input_ids=tgt).logits

    report = check("translation_model", without_a_mask)
    faults, notes = report.grouped()
    assert "Two tokens of padding" in faults[0].message
    assert "T5 leaves the division out" in notes[0].excuse


# Numbers instead of functions


@pytest.mark.parametrize("count", [63_082_496, 63_045_632])
def test_a_plain_number_is_judged_as_the_count_of_the_base_model(count):
    holds("parameter_count", count)


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (
            63_084_544,
            "2,048 too many: .* A norm at the end of encoder and deco",
        ),
        (82_026_496, "18,944,000 too many: .* embeddings are counted twice"),
        (44_138_496, "18,944,000 too few: .* embeddings are missing"),
        (62_984_192, "The LayerNorms are missing. The biases of the feed-forw"),
        (65_000_000, r"without\.$"),
    ],
)
def test_a_wrong_number_is_told_what_it_counts_otherwise(count, says):
    report = check("parameter_count", count)
    assert len(report.failures) == 1
    assert re.search(says, report.failures[0].message)


def test_in_the_base_model_two_mistakes_count_the_same():
    # d_ff is 4 · d_model: 2 · (d_ff + d_model) biases are 5 · 2 · d_model.
    (failure,) = check("parameter_count", 63_082_496 - 6 * 10 * 512).failures
    assert "LayerNorms are missing. Or: The biases of the" in failure.message


@pytest.mark.parametrize("given", [True, 6.3e7, None, "63082496"])
def test_what_is_neither_a_number_nor_a_function_is_refused(given):
    kind = type(given).__name__
    message = gate_message("parameter_count", given)
    assert message.startswith(f"It is not a function but a {kind}")


# What a message shows


def test_the_layer_that_drops_the_mask_is_named():
    """The maps of a published figure: masked in layer 0 and nowhere else."""
    model = built(lambda: PostNorm(3))

    def maps(x, mask):
        found = model.maps(x, mask)
        free = model.maps(x, torch.ones_like(mask))
        return [found[0], found[1], free[2]]

    (failures, *_) = check("attention_maps", maps).grouped()
    message = failures[0].message
    assert message.startswith("Layer 2, batch 0, head 0, query 0, key 1: ")
    assert "Layer 0 hides it: does every layer get the mask" in message


def test_a_leak_between_tokens_shows_who_moves_with_whom():
    def leaks(tokens):
        ahead = torch.nn.functional.one_hot(tokens, 11).float()
        return ahead.flip(1).cumsum(1).flip(1)

    failure = check("language_model", leaks).failures[0]
    assert "is the mask upside down" in failure.message
    assert torch.equal(failure.got, torch.ones(5, 5).triu())
    assert torch.equal(failure.expected, torch.ones(5, 5).tril())


def test_masks_are_judged_as_they_spread_and_not_by_their_shape():
    def written_out(src_tokens, tgt_tokens, pad):
        masks = combine_masks(src_tokens, tgt_tokens, pad)
        batch, src, tgt = (
            len(src_tokens),
            len(src_tokens[0]),
            len(tgt_tokens[0]),
        )
        shapes = ((src, src), (tgt, tgt), (tgt, src))
        return [
            mask.expand(batch, 1, *shape)
            for mask, shape in zip(masks, shapes, strict=True)
        ]

    holds("combine_masks", written_out)


class OfDistances(nn.Module):
    """Two layers of attention whose scores fall with the distance."""

    def __init__(self, slope=1.0, turns=0.0, *, fused=False):
        super().__init__()
        self.slope, self.turns, self.fused = slope, turns, fused
        self.all = nn.ModuleList(nn.Linear(12, 36) for _ in "12")

    def turned(self, x):
        """Turn the first two numbers by the place."""
        angle = self.turns * torch.arange(x.shape[1])
        one, other = x[..., 0].clone(), x[..., 1].clone()
        cos, sin = angle.cos(), angle.sin()
        turned = one * cos - other * sin, one * sin + other * cos
        return torch.cat([torch.stack(turned, -1), x[..., 2:]], -1)

    def forward(self, x, mask):
        place = torch.arange(x.shape[1])
        back = (place[:, None] - place).clamp(min=0)
        added = torch.zeros(mask.shape[2:]).masked_fill(~mask[0, 0], -1e9)
        # Where the sign is wrong, all that is seen is as far as the next.
        added = added - (back if self.slope > 0 else back.mT)
        for part in self.all:
            q, k, v = part(x).chunk(3, -1)
            q, k = self.turned(q), self.turned(k)
            if self.fused:
                y = F.scaled_dot_product_attention(q, k, v, added)
            else:
                y = (q @ k.mT * 12**-0.5 + added).softmax(-1) @ v
            x = x + y
        return x


def spoken(encoder):
    return built(lambda: Layers(encoder(), positions=False)).eval()


ONLY_MASKED = "nothing but the causal mask knows places"


@pytest.mark.parametrize(
    "encoder",
    [
        lambda: Ours(2),
        lambda: PyTorchs(),
        lambda: OfDistances(-1.0),
        lambda: OfDistances(-1.0, fused=True),
    ],
)
def test_that_only_the_causal_mask_knows_places_is_a_risk(encoder):
    report = check("language_model", spoken(encoder))
    assert report.passed, str(report)
    assert ONLY_MASKED in report.risks[0].message
    assert "without positions on purpose" in report.risks[0].why


@pytest.mark.parametrize(
    "encoder",
    [
        OfDistances,
        lambda: OfDistances(fused=True),
        lambda: OfDistances(-1.0, turns=1.0),
        lambda: OfDistances(-1.0, turns=1.0, fused=True),
    ],
)
def test_distances_and_turns_in_the_scores_alone_are_positions(encoder):
    report = check("language_model", spoken(encoder))
    assert report.passed, str(report)
    assert not report.risks, str(report)


class TwoTables(nn.Module):
    """Looks positions up by the ids of the tokens."""

    def __init__(self, rows):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 12), nn.Embedding(rows, 12)

    def forward(self, ids):
        return self.words(ids) + self.places(ids)


def placed_by_ids(rows):
    model = Layers(Ours(2), positions=False)
    model.embed = TwoTables(rows)
    return model


def test_positions_that_are_looked_up_by_ids_are_a_fault():
    report = check("language_model", built(lambda: placed_by_ids(32)))
    [found] = report.faults
    assert "look up several tables (rows: 11, 32)" in found.message
    # As many rows as there are words may be a second table of words.
    report = check("language_model", built(lambda: placed_by_ids(11)))
    assert ONLY_MASKED in report.risks[0].message


class NoPlacesInTheTarget(Translator):
    def target(self, tgt):
        return self.tgt(tgt)


def test_a_target_whose_places_only_its_mask_knows_is_a_risk():
    report = check("translation_model", built(NoPlacesInTheTarget))
    assert report.passed, str(report)
    assert ONLY_MASKED in report.risks[0].message


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("left_out", ["self", "cross", "feed"])
@pytest.mark.parametrize("adapted", [False, True])
def test_a_residual_that_a_decoder_has_lost_is_told_with_its_part(
    norm_first, left_out, adapted
):
    def make():
        model = TheMemoryReplacesWhatAsked(2, norm_first=norm_first)
        model.left_out = ["self", "cross", "feed"].index(left_out)
        return model

    model = built(make)
    fn = (lambda src, tgt: model(src, tgt)) if adapted else model
    report = check("translation_model", fn)
    [lost] = (f for f in report.faults if "leads past" in f.contract)
    assert f"`layers.0.{left_out}`" in lost.message
