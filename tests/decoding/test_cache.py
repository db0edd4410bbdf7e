"""With stored keys and values: the same logits, the same sentences."""

import sys
from itertools import pairwise

import pytest
import torch
from torch import nn

from companion.decoding import (
    StepDecoder,
    beam_search,
    cached_decode,
    greedy_decode,
    next_token,
    sample,
    translate,
)
from companion.decoding.beams import Beams, search_beams
from companion.transformer import Transformer, TransformerConfig

# All sizes differ, so no axis can stand in for another.
BATCH, SRC, TGT, SRC_VOCAB, TGT_VOCAB = 5, 7, 11, 19, 17
BOS, EOS, PAD = 1, 2, 0
ORDERS = pytest.mark.parametrize("norm_first", [False, True])
BEAMS = pytest.mark.parametrize("beam", [1, 2, 3])


def made(norm_first=False, dropout=0.0, ends=None):
    """A model with numbers large enough that every part of it matters.

    ``ends`` is about the logit of eos, so that sentences differ in length.
    """
    torch.manual_seed(1)
    model = Transformer(
        TransformerConfig(
            src_vocab_size=SRC_VOCAB,
            tgt_vocab_size=TGT_VOCAB,
            d_model=12,
            num_heads=3,
            d_ff=20,
            num_layers=2,
            dropout=dropout,
            norm_first=norm_first,
        )
    ).double()
    last = model.decoder.layers[-1].feed_forward_residual.norm
    norm = model.decoder.norm if norm_first else last
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
        norm.gain.mul_(4)
        if ends is not None:
            row = ends * norm.bias / norm.bias.square().sum()
            model.tgt_embedding.weight[EOS] = row
    return model.eval()


@pytest.fixture
def src():
    src = torch.randint(3, SRC_VOCAB, (BATCH, SRC))
    src[1, 4:] = src[3, 2:] = PAD
    return src


@pytest.fixture
def tokens():
    tokens = torch.randint(3, TGT_VOCAB, (BATCH, TGT))
    tokens[:, 0] = BOS
    return tokens


def alone(model, src, i):
    """The i-th sentence without its padding."""
    return src[i : i + 1, : int((src[i] != PAD).sum())]


# The same logits


@ORDERS
def test_one_position_at_a_time_gives_the_logits_of_all_at_once(
    src, tokens, norm_first
):
    model = made(norm_first)
    tokens[2, 6:] = PAD
    torch.testing.assert_close(
        cached_decode(model, src, tokens), model(src, tokens).detach()
    )


@ORDERS
@pytest.mark.parametrize("cache", [True, False])
def test_a_decoder_for_rows_gives_the_logits_of_all_at_once(
    src, tokens, norm_first, cache
):
    model = made(norm_first)
    with torch.inference_mode():
        decoder = StepDecoder(model, src, cache=cache)
        steps = [decoder.step(column) for column in tokens.unbind(1)]
    expected = model(src, tokens).detach()
    torch.testing.assert_close(torch.stack(steps, dim=1), expected)


@torch.inference_mode()
def test_the_cache_outgrows_its_first_room_and_forgets_nothing(src):
    model = made()
    tokens = torch.randint(3, TGT_VOCAB, (BATCH, 150))
    decoder = StepDecoder(model, src)
    steps = [decoder.step(column) for column in tokens.unbind(1)]
    torch.testing.assert_close(torch.stack(steps, 1), model(src, tokens))


@ORDERS
@torch.inference_mode()
def test_reordered_beams_go_on_from_what_they_took_over(
    src, tokens, norm_first
):
    model, beam = made(norm_first), 3
    said = torch.randint(3, TGT_VOCAB, (BATCH * beam, 1))
    many = src.repeat_interleave(beam, dim=0)
    decoder = StepDecoder(model, src, beam)
    for _ in range(5):
        last = decoder.step(said[:, -1])
        torch.testing.assert_close(last, model(many, said)[:, -1])
        first = torch.arange(BATCH).repeat_interleave(beam) * beam
        rows = first + torch.randint(beam, (BATCH * beam,))
        decoder.reorder(rows)
        new = torch.randint(3, TGT_VOCAB, (BATCH * beam, 1))
        said = torch.cat([said[rows], new], dim=1)


@torch.inference_mode()
def test_beams_that_change_places_take_turns_in_two_stores(src, tokens):
    decoder, rows = StepDecoder(made(), src, beam=3), 3 * BATCH
    lies = []
    for _ in range(70):  # At 2 and beyond 64 both rooms are made anew.
        decoder.step(torch.full((rows,), 5))
        decoder.reorder(torch.arange(rows))
        lies.append(decoder.caches[0].own.stored[0].data_ptr())
    for room in (lies[1:64], lies[64:]):  # A new one may lie where an old lay.
        assert len(set(room)) == 2
        assert all(here != there for here, there in pairwise(room))


@torch.inference_mode()
def test_forgetting_sentences_leaves_the_others_as_they_are(src, tokens):
    model, kept = made(), torch.tensor([3, 0])
    decoder = StepDecoder(model, src)
    for column in tokens[:, :4].unbind(1):
        decoder.step(column)
    decoder.keep(kept, kept)
    last = decoder.step(tokens[kept, 4])
    expected = model(src[kept], tokens[kept, :5])[:, -1]
    torch.testing.assert_close(last, expected)


# What it saves


def counted(module, run):
    """How many positions a module is applied to, call by call."""
    seen = []
    hook = module.register_forward_pre_hook(
        lambda module, args: seen.append(args[0].shape[1])
    )
    run()
    hook.remove()
    return seen


def test_no_key_is_computed_twice(src, tokens):
    model = made()

    def run():
        cached_decode(model, src, tokens)

    for layer in model.decoder.layers:
        assert counted(layer.self_attention.k_proj, run) == [1] * TGT
        assert counted(layer.self_attention.q_proj, run) == [1] * TGT
        assert counted(layer.cross_attention.v_proj, run) == [SRC]
    assert counted(model.encoder.layers[0].feed_forward, run) == [SRC]


def test_without_a_cache_each_step_computes_all_positions_again(src):
    model = made()
    network = model.decoder.layers[0].feed_forward

    def run(**settings):
        return lambda: translate(model, src, max_len=4, **settings)

    longest = max(map(len, run()()))
    assert counted(network, run(cache=False)) == [*range(1, longest + 1)]


def test_decoding_imports_no_optimiser():
    # To import PyTorch's compiler, as an optimiser does, costs a second.
    assert not [
        name
        for name in sys.modules
        if name.startswith("companion.decoding")
        and hasattr(sys.modules[name], "optim")
    ]


# The same sentences


@ORDERS
@pytest.mark.parametrize("ends", [None, 2, 4])
def test_greedy_in_a_batch_is_greedy_of_each_sentence(src, norm_first, ends):
    model = made(norm_first, ends=ends)
    found = translate(model, src, max_len=13)
    assert found == translate(model, src, max_len=13, cache=False)
    for i in range(BATCH):
        step = next_token(model, alone(model, src, i))
        assert found[i] == greedy_decode(step, BOS, EOS, 13)


@ORDERS
@BEAMS
@pytest.mark.parametrize("alpha", [0, 0.6])
def test_beams_in_a_batch_are_beams_of_each_sentence(norm_first, beam, alpha):
    lengths = set()
    src = torch.randint(3, SRC_VOCAB, (BATCH, SRC))
    src[1, 4:] = src[3, 2:] = PAD
    for ends in (2, 4):
        model = made(norm_first, ends=ends)
        settings = {"max_len": 9, "beam": beam, "alpha": alpha}
        found = translate(model, src, **settings)
        assert found == translate(model, src, **settings, cache=False)
        for i in range(len(src)):
            step = next_token(model, alone(model, src, i))
            expected = beam_search(step, BOS, EOS, beam, 9, alpha)
            assert found[i] == expected
        lengths |= set(map(len, found))
    assert len(lengths) > 1


@ORDERS
@BEAMS
@pytest.mark.parametrize("cache", [True, False])
def test_who_has_finished_is_thrown_out_and_the_others_go_on(
    norm_first, beam, cache, monkeypatch
):
    kept, keep = [], StepDecoder.keep

    def watched(self, sentences, rows):
        kept.append(len(sentences))
        keep(self, sentences, rows)

    monkeypatch.setattr(StepDecoder, "keep", watched)
    src = torch.randint(3, SRC_VOCAB, (7, SRC))
    src[1, 4:] = PAD
    model = made(norm_first, ends=4)
    settings = {"max_len": 9, "beam": beam, "cache": cache}
    said = translate(model, src, **settings)
    lengths = [len(row) for row in said]
    short = [i for i in range(7) if lengths[i] < 5]
    long = [i for i in range(7) if lengths[i] == 9]
    order = [long[0], *4 * short, long[1], *4 * short, long[2]]
    kept.clear()
    found = translate(model, src[order], **settings)
    assert kept  # Some went on after the others were thrown out.
    assert found == [said[i] for i in order]
    with torch.device("meta"):  # Where new tensors are made, unless told.
        assert translate(model, src[order], **settings) == found


class Numbers(StepDecoder):
    """Random scores that depend on the sentence and all that was said."""

    def __init__(self, sentences, beam):
        self.caches = None
        self.numbers = 2 * torch.randn(999, 5, dtype=torch.double)
        self.numbers[:, PAD] = -torch.inf
        self.sentence = torch.arange(sentences).repeat_interleave(beam)
        self.tokens = self.sentence.new_empty(len(self.sentence), 0)

    def scores(self, said, sentence):
        powers = 7 ** torch.arange(said.shape[1])
        return self.numbers[((said * powers).sum(1) + 31 * sentence) % 999]

    def step(self, tokens):
        self.tokens = torch.cat([self.tokens, tokens.unsqueeze(1)], dim=1)
        return self.scores(self.tokens, self.sentence)

    def keep(self, sentences, rows):
        self.tokens, self.sentence = self.tokens[rows], self.sentence[rows]


@BEAMS
@pytest.mark.parametrize("alpha", [0, 0.6, 2])
def test_beams_side_by_side_find_what_each_alone_would(beam, alpha):
    src = torch.ones(31, 1, dtype=torch.long)
    decoder = Numbers(31, beam)
    found = search_beams(
        decoder, src, pad=PAD, max_len=6, beam=beam, alpha=alpha
    )
    for i in range(31):
        expected = beam_search(
            lambda said, i=i: decoder.scores(said, i), BOS, EOS, beam, 6, alpha
        )
        assert found[i] == expected
    assert {len(row) for row in found} >= {1, 2, 3}


def test_a_beam_may_be_wider_than_the_vocabulary(src):
    model, beam = made(ends=3), TGT_VOCAB + 3
    [found] = translate(model, src[:1], max_len=4, beam=beam)
    step = next_token(model, src[:1])
    assert found == beam_search(step, BOS, EOS, beam, 4, 0.6)


def test_the_sums_of_beams_are_kept_in_32_bits():
    logits = (20 * torch.randn(6, 23)).half()  # Steps of 1/64 up there.
    beams = Beams(torch.ones(2, 1).long(), 3, 5, 0.6)
    beams.extend(logits)
    best = logits.float().log_softmax(-1)[[0, 3]].topk(3).values
    open_ends = beams.sums.isfinite()
    torch.testing.assert_close(
        beams.sums[open_ends], best[open_ends], atol=1e-4, rtol=0
    )
    assert open_ends.any()


def test_a_sentence_does_not_depend_on_who_is_in_its_batch(src):
    model = made(ends=3)
    for beam in (1, 3):
        together = translate(model, src, max_len=9, beam=beam)
        for i in range(BATCH):
            one = alone(model, src, i)
            said = translate(model, one, max_len=9, beam=beam)
            assert said == [together[i]]


@BEAMS
def test_a_source_of_one_token_is_translated(src, beam):
    model, one = made(ends=3), src[:, :1]
    found = translate(model, one, max_len=5, beam=beam)
    for i in range(BATCH):
        step = next_token(model, one[i : i + 1])
        assert found[i] == beam_search(step, BOS, EOS, beam, 5, 0.6)


@BEAMS
def test_a_model_in_32_bits_says_what_it_thinks_best(src, beam):
    model = made(ends=3).float()
    found = translate(model, src, max_len=9, beam=beam)
    for i in range(BATCH):
        step = next_token(model, alone(model, src, i))
        assert found[i] == beam_search(step, BOS, EOS, beam, 9, 0.6)


@BEAMS
@pytest.mark.parametrize("cache", [False, True])
def test_all_that_is_made_is_made_where_the_model_is(src, beam, cache):
    model, how = made(ends=4), {"max_len": 9, "beam": beam, "cache": cache}
    found = translate(model, src, **how)
    with torch.device("meta"):  # Where new tensors are made, unless told.
        assert translate(model, src, **how) == found


def test_padding_behind_a_source_changes_no_score_of_the_next_word(src):
    model, said = made(), torch.tensor([[BOS, 5, 7]])
    padded, short = src[1:2], alone(model, src, 1)
    assert padded.shape[1] > short.shape[1]
    torch.testing.assert_close(
        next_token(model, padded)(said), next_token(model, short)(said)
    )


def test_padding_is_never_said(src):
    model = made()
    last = model.decoder.layers[-1].feed_forward_residual.norm
    with torch.no_grad():  # Now padding has the largest logit of all.
        model.tgt_embedding.weight[PAD] = 9 * last.bias
    assert cached_decode(model, src, src[:, :1]).argmax(-1).eq(PAD).any()
    said = [*translate(model, src, max_len=5)]
    said += translate(model, src, max_len=5, beam=3)
    said.append(greedy_decode(next_token(model, src[:1]), BOS, EOS, 5))
    assert PAD not in {token for row in said for token in row}


def test_what_was_said_ends_with_eos_or_is_cut(src):
    for beam in (1, 2):
        for row in translate(made(ends=3), src, max_len=6, beam=beam):
            assert EOS not in row[:-1]
            assert row[-1] == EOS or len(row) == 6
            assert BOS not in row[:1]


def test_dropout_is_off_and_the_mode_comes_back(src, tokens):
    model = made(dropout=0.5)
    expected = model(src, tokens).detach()
    model.train()
    model.encoder.eval()
    before = [module.training for module in model.modules()]
    torch.testing.assert_close(cached_decode(model, src, tokens), expected)
    said = translate(model, src, max_len=7)
    assert said == translate(made(), src, max_len=7)
    assert said[0] == greedy_decode(next_token(model, src[:1]), BOS, EOS, 7)
    assert [module.training for module in model.modules()] == before


def test_the_weights_are_read_when_it_begins_and_not_stored_in_the_model(src):
    model = made()
    names = set(vars(model.decoder.layers[0].self_attention))
    translate(model, src, max_len=3)
    assert set(vars(model.decoder.layers[0].self_attention)) == names
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(-1)
    assert translate(model, src, max_len=7) == translate(
        model, src, max_len=7, cache=False
    )


def test_a_sentence_can_be_sampled_from_a_model(src):
    step = next_token(made(), src[:1])
    drawn = {
        tuple(
            sample(
                step,
                BOS,
                EOS,
                5,
                generator=torch.Generator().manual_seed(seed),
                temperature=3.0,
            )
        )
        for seed in range(7)
    }
    assert len(drawn) > 1


# Bad input


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"max_len": 0}, ValueError, "max_len: expected at least 1, got 0"),
        ({"max_len": 2.0}, TypeError, "max_len: expected an int"),
        ({"beam": 0}, ValueError, "beam: expected at least 1, got 0"),
        ({"alpha": -1}, ValueError, "alpha: expected a number from 0 up"),
        ({"cache": 1}, TypeError, "cache: expected True or False"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(src, settings, error, says):
    with pytest.raises(error, match=says):
        translate(made(), src, **{"max_len": 3} | settings)


@pytest.mark.bad_input
def test_a_source_that_is_none_is_named(src):
    model = made()
    bad = {
        r"src: expected at least one id, got shape \(2, 0\)": src[:2, :0],
        r"src: expected at least one id, got shape \(0, 7\)": src[:0],
        r"src: expected 2 axes": src[0],
        r"src: expected words, then padding.*row 1": src[:2]
        * torch.tensor([[1], [0]]),
        r"src: expected ids from 0 to 18.*got 19 at \(0, 3\)": torch.tensor(
            [[1, 3, 4, 19, 2]]
        ),
    }
    for says, wrong in bad.items():
        with pytest.raises(ValueError, match=says):
            translate(model, wrong, max_len=3)
        with pytest.raises(ValueError, match=says):
            next_token(model, wrong)
    with pytest.raises(TypeError, match=r"src: expected a tensor of integers"):
        translate(model, src.float(), max_len=3)
    with pytest.raises(ValueError, match="src: expected one sentence, got 5"):
        next_token(model, src)
    with pytest.raises(TypeError, match="model: expected the class Enc"):
        translate(nn.Linear(2, 3), src, max_len=3)


@pytest.mark.bad_input
def test_a_cached_pass_names_what_the_full_pass_names(src, tokens):
    model = made()
    for wrong in (tokens[:2], tokens[0], tokens.float()):
        with pytest.raises((TypeError, ValueError), match="tgt_tokens: expe"):
            cached_decode(model, src, wrong)
    with pytest.raises(ValueError, match=r"tgt tokens: .* from 0 to 16"):
        cached_decode(model, src, tokens + TGT_VOCAB)


@pytest.mark.bad_input
def test_a_decoder_for_rows_names_a_source_that_is_none(src):
    with pytest.raises(TypeError, match="src: expected a tensor of token ids"):
        StepDecoder(made(), src.float())
