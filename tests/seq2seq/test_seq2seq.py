"""Encoder-decoder and alignment: PyTorch and paper agree, rules hold."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.data.copying import copying_batches
from companion.seq2seq import (
    CONTEXTS,
    AdditiveAlignment,
    Seq2Seq,
    dot_alignment,
    fit,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SRC, TGT, D_MODEL, HIDDEN, SRC_VOCAB, TGT_VOCAB = 2, 5, 7, 3, 11, 13, 17
NOTHING = torch.empty(BATCH, 0, dtype=torch.long)


@pytest.fixture
def query():
    return torch.randn(BATCH, HIDDEN)


@pytest.fixture
def keys():
    return torch.randn(BATCH, SRC, HIDDEN)


@pytest.fixture
def mask():
    return torch.tensor([[True, False, True, True, False], [True] * SRC])


@pytest.fixture(params=["dot", "additive"])
def align(request):
    """Both alignments, for a query and keys of the same width."""
    if request.param == "dot":
        return dot_alignment
    return AdditiveAlignment(HIDDEN, HIDDEN, D_MODEL)


@pytest.fixture(params=CONTEXTS)
def model(request):
    return Seq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HIDDEN, request.param)


@pytest.fixture
def src():
    """Two sentences; the second is two words and padding."""
    ids = torch.randint(3, SRC_VOCAB, (BATCH, SRC))
    ids[1, 2:] = 0
    return ids


@pytest.fixture
def tgt():
    return torch.randint(3, TGT_VOCAB, (BATCH, TGT))


# Alignment


def test_dot_alignment_done_by_hand():
    # Scores ln 1, ln 2 and ln 5: the weights are 1, 2 and 5 eighths.
    keys = torch.tensor([[[1.0, 9], [2, 9], [5, 9]]]).log()
    weights = dot_alignment(torch.tensor([[1.0, 0]]), keys)
    torch.testing.assert_close(weights, torch.tensor([[1, 2, 5]]) / 8)


def test_dot_alignment_is_attention_over_unit_vectors(query, keys, mask):
    unit = torch.eye(SRC).expand(BATCH, SRC, SRC)
    theirs = F.scaled_dot_product_attention(
        query.unsqueeze(1), keys, unit, mask.unsqueeze(1), scale=1
    )
    torch.testing.assert_close(
        dot_alignment(query, keys, mask), theirs.squeeze(1)
    )


def test_additive_alignment_done_by_hand():
    # One number wide: the scores are 3 tanh(2 q + k).
    alignment = AdditiveAlignment(1, 1, 1)
    for part, number in (("W", 2), ("U", 1), ("v", 3)):
        nn.init.constant_(getattr(alignment, part).weight, number)
    weights = alignment(torch.tensor([[1.0]]), torch.tensor([[[-2.0], [0.0]]]))
    other = math.exp(3 * math.tanh(2))  # The first score is 3 tanh 0 = 0.
    by_hand = torch.tensor([[1, other]]) / (1 + other)
    torch.testing.assert_close(weights, by_hand)


def test_additive_alignment_reads_queries_and_keys_of_other_widths(keys):
    alignment = AdditiveAlignment(D_MODEL, HIDDEN, 2)
    assert alignment(torch.ones(BATCH, D_MODEL), keys).shape == (BATCH, SRC)


def test_weights_sum_to_1_and_only_a_mask_makes_one_0(align, query, keys, mask):
    weights = align(query, keys, mask)
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(BATCH))
    assert (weights == 0).equal(~mask)


def test_a_masked_key_changes_nothing(align, query, keys, mask):
    changed = keys.clone()
    changed[0, 1] = 100
    torch.testing.assert_close(
        align(query, changed, mask), align(query, keys, mask), rtol=0, atol=0
    )


def test_alignment_follows_its_keys_when_they_change_places(align, query, keys):
    torch.testing.assert_close(
        align(query, keys.flip(1)), align(query, keys).flip(1)
    )


def test_gradients_through_a_mask_are_finite(align, query, keys, mask):
    keys.requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        align(query, keys, mask).square().sum().backward()
    assert keys.grad[~mask].eq(0).all()
    assert keys.grad[mask].abs().sum() > 0


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query": torch.ones(3, HIDDEN)}, ValueError, r"query: .*batch=2"),
        ({"query": torch.ones(BATCH, 2)}, ValueError, r"query: .*=11\), got"),
        (
            {"query": torch.ones(BATCH, HIDDEN).long()},
            TypeError,
            "query: .*int",
        ),
        ({"keys": torch.ones(BATCH, HIDDEN)}, ValueError, r"keys: .*seq"),
        ({"keys": torch.ones(BATCH, 0, HIDDEN)}, ValueError, r"\(2, 0, 11\)"),
        ({"mask": torch.ones(BATCH, SRC)}, TypeError, "mask: .*bool.*float32"),
        ({"mask": torch.ones(SRC).bool()}, ValueError, r"\(2, 5\), got \(5,\)"),
        ({"mask": torch.zeros(BATCH, SRC).bool()}, ValueError, "row .*nothing"),
    ],
)
def test_alignment_names_what_does_not_fit(
    align, query, keys, change, error, message
):
    arguments = {"query": query, "keys": keys, "mask": None} | change
    with pytest.raises(error, match=message):
        align(**arguments)


# Encoder and decoder


def by_pytorch(model, src, tgt):
    """The same logits from PyTorch's modules, one sentence at a time."""
    cells = []
    for ours in (model.encoder, model.decoder):
        cell = nn.LSTMCell(ours.W.shape[1], HIDDEN)
        weights = ours.W, ours.U, ours.b, torch.zeros(4 * HIDDEN)
        torch.nn.utils.vector_to_parameters(
            torch.cat([w.detach().flatten() for w in weights]),
            cell.parameters(),
        )
        cells.append(cell)
    state, h = None, []
    for word in model.src_embedding(src[src != 0]):
        state = cells[0](word, state)
        h.append(state[0])
    h, logits = torch.stack(h), []
    for word in model.tgt_embedding(tgt):
        told = told_by_pytorch(model, state[0], h)
        state = cells[1](torch.cat([word, told]), state)
        logits.append(model.generator(torch.cat([state[0], told])))
    return torch.stack(logits)


def told_by_pytorch(model, s, h):
    if model.context in ("once", "each"):
        return h[-1] if model.context == "each" else h[-1][:0]
    if model.context == "dot":
        scores = h @ model.turn.weight @ s
    else:
        W, U, v = (getattr(model.alignment, part).weight for part in "WUv")
        scores = torch.tanh(s @ W.T + h @ U.T) @ v[0]
    return scores.softmax(0) @ h


def test_the_logits_are_those_of_pytorchs_modules(model, src, tgt):
    theirs = [by_pytorch(model, *pair) for pair in zip(src, tgt, strict=True)]
    torch.testing.assert_close(model(src, tgt), torch.stack(theirs))


def test_more_padding_changes_nothing(model, src, tgt):
    longer = torch.cat([src, torch.zeros(BATCH, 3, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model(longer, tgt), model(src, tgt))


def test_a_word_of_the_target_moves_no_logit_before_it(model, src, tgt):
    changed = tgt.clone()
    changed[:, 4] = 3 + (tgt[:, 4] - 2) % (TGT_VOCAB - 3)
    before, after = model(src, tgt), model(src, changed)
    assert before[:, :4].equal(after[:, :4])
    assert (before[:, 4] - after[:, 4]).abs().max() > 1e-4


def test_contexts_differ_only_in_what_the_decoder_is_told():
    def size(context):
        model = Seq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HIDDEN, context)
        return sum(p.numel() for p in model.parameters())

    # C widens what each of the 4 gates reads, and what the generator reads.
    told = HIDDEN * (4 * HIDDEN + TGT_VOCAB)
    assert size("each") - size("once") == told
    assert size("dot") - size("each") == HIDDEN**2
    assert size("additive") - size("each") == 2 * HIDDEN**2 + HIDDEN


@pytest.mark.parametrize("context", ["additive", "dot"])
def test_each_row_of_an_alignment_sums_to_1_over_the_words(context, src, tgt):
    model = Seq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HIDDEN, context)
    weights = model.align(src, tgt)
    torch.testing.assert_close(weights.sum(dim=2), torch.ones(BATCH, TGT))
    assert weights[1, :, 2:].eq(0).all()


def test_a_translation_is_the_likeliest_word_at_each_step(model, src):
    words = model.translate(src, TGT)
    read = torch.cat([torch.ones(BATCH, 1).long(), words[:, :-1]], dim=1)
    likeliest = model(src, read).argmax(dim=-1)
    going_on = (words == 2).cumsum(dim=1) - (words == 2).long() == 0
    assert words[going_on].equal(likeliest[going_on])


def test_nothing_but_padding_follows_the_end_of_a_translation(model, src):
    with torch.no_grad():
        model.generator.bias[2] = 100  # Nothing is likelier than eos.
    assert model.translate(src, 3).tolist() == [[2, 0, 0]] * BATCH


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("src", "tgt", "error", "message"),
    [
        ([[3.0]], [[3]], TypeError, "src: expected a tensor of integers"),
        ([[3]], [[3.0]], TypeError, "tgt_in: expected a tensor of integers"),
        ([[13]], [[3]], ValueError, "src: expected ids .* of 13, got 13"),
        (
            [[3]],
            [[-1]],
            ValueError,
            "tgt_in: expected ids .* of 17, got -1",
        ),
        ([3], [[3]], ValueError, r"src: expected 2 axes, got shape \(1,\)"),
        (NOTHING, [[3]], ValueError, r"src: .*at least one id.*\(2, 0\)"),
        ([[3], [3]], NOTHING, ValueError, r"tgt_in: .*at least one id"),
        ([[3], [0]], [[3], [3]], ValueError, "src: expected words.*row 1"),
        ([[3, 0, 4]], [[3]], ValueError, "src: expected words.*row 0"),
        ([[3]], [[3], [3]], ValueError, "tgt_in: expected 1 sentences, got 2"),
    ],
)
def test_what_is_no_batch_of_sentences_is_refused(
    model, src, tgt, error, message
):
    with pytest.raises(error, match=message):
        model(torch.as_tensor(src), torch.as_tensor(tgt))


@pytest.mark.bad_input
def test_other_misuse_is_named(model, src, tgt):
    with pytest.raises(ValueError, match="max_len: expected at least 1, got 0"):
        model.translate(src, 0)
    with pytest.raises(ValueError, match="context: 'twice' is none of"):
        Seq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HIDDEN, "twice")
    model.context = "each"
    with pytest.raises(ValueError, match="'each' has no alignment"):
        model.align(src, tgt)


# Training


def test_the_first_loss_of_fit_is_cross_entropy_without_padding(src):
    model = Seq2Seq(SRC_VOCAB, TGT_VOCAB, D_MODEL, HIDDEN, "dot")
    tgt = torch.tensor([[1, 5, 7, 2], [1, 6, 2, 0]])
    rows = [(0, 0, 5), (0, 1, 7), (0, 2, 2), (1, 0, 6), (1, 1, 2)]
    logits = model(src, tgt[:, :-1]).log_softmax(dim=-1)
    by_hand = -sum(logits[row].item() for row in rows) / len(rows)
    assert fit(model, [(src, tgt)]) == [pytest.approx(by_hand)]


def test_the_same_seed_trains_the_same_model():
    batches = copying_batches(length=3, symbols=5, size=7, steps=2, seed=0)
    model = Seq2Seq(8, 8, D_MODEL, HIDDEN, "each")
    losses = [fit(copy.deepcopy(model), batches) for _ in range(2)]
    assert losses[0] == losses[1]


def test_a_memory_starts_with_open_forget_gates(model):
    for lstm in (model.encoder, model.decoder):
        _, forget, *_ = lstm.b.chunk(4)
        assert forget.eq(1).all()
        assert lstm.b.eq(1).sum() == HIDDEN


def test_aligning_copies_what_one_vector_does_not_hold():
    right = {}
    for context in ("once", "dot"):
        torch.manual_seed(0)
        model = Seq2Seq(13, 13, 32, 64, context)
        task = {"length": 10, "symbols": 10}
        losses = fit(model, copying_batches(**task, size=32, steps=150, seed=0))
        assert losses[-1] < losses[0]
        ((src, tgt),) = copying_batches(**task, size=101, steps=1, seed=1)
        words = model.translate(src, 10)
        right[context] = (words == tgt[:, 1:]).float().mean().item()
    assert right["once"] < 0.5
    assert right["dot"] > 0.9
    # And it looks where it copies from.
    looked = model.align(src, tgt[:, :-1]).argmax(dim=-1)
    assert (looked == torch.arange(10)).float().mean() > 0.9
