"""Whatever the sizes and numbers: rules of chapter 01."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.drawn import (
    FEW,
    SEEDS,
    SIZES,
    ids,
    normal,
    padded,
)
from torch import nn

from companion.rnn import (
    LSTM,
    RNN,
    ConcatFNN,
    MeanFNN,
    bag_of_words,
    feed_forward,
    gradient_to_inputs,
    one_hot,
    start_small,
    tf_idf,
    unroll,
)

VOCAB, SAID = 11, 13
TOKENS = ids(FEW, SIZES, low=0, high=VOCAB)
close = torch.testing.assert_close


@st.composite
def driven(draw):
    """x, h0, W, U, b: a batch of sequences, and a network to read them."""
    batch, seq, d_in, hidden = (draw(SIZES) for _ in range(4))
    shapes = (batch, seq, d_in), (batch, hidden)
    shapes += (hidden, d_in), (hidden, hidden), (hidden,)
    return [draw(normal(*shape)) for shape in shapes]


# Words and vectors.


@given(TOKENS)
def test_one_hot_keeps_the_id_and_nothing_else(tokens):
    vectors = one_hot(tokens, VOCAB)
    assert torch.equal(vectors.argmax(-1), tokens)
    assert (vectors.sum(-1) == 1).all()


@given(TOKENS, SEEDS)
def test_a_bag_of_words_forgets_the_order_and_keeps_the_length(tokens, seed):
    torch.manual_seed(seed)
    bag = bag_of_words(tokens, VOCAB)
    order = torch.randperm(tokens.shape[1])
    assert torch.equal(bag_of_words(tokens[:, order], VOCAB), bag)
    assert (bag.sum(-1) == tokens.shape[1]).all()


@given(TOKENS)
def test_the_bag_of_two_texts_is_the_sum_of_their_bags(tokens):
    both = torch.cat([tokens, tokens.flip(1)], dim=1)
    assert torch.equal(bag_of_words(both, VOCAB), 2 * bag_of_words(tokens, 11))


@given(TOKENS, SEEDS)
def test_tf_idf_is_linear_in_the_text_and_blind_to_what_all_have(tokens, seed):
    counts = bag_of_words(tokens, VOCAB)
    weighted = tf_idf(counts)
    close(tf_idf(3 * counts), 3 * weighted)
    torch.manual_seed(seed)
    order = torch.randperm(len(counts))
    close(tf_idf(counts[order]), weighted[order])
    assert not weighted[:, (counts > 0).all(0)].any()
    assert not weighted[counts == 0].any()
    assert (weighted >= 0).all()


@given(SIZES, SIZES, SIZES, SIZES)
def test_a_feedforward_network_sees_one_row_at_a_time(d_in, hidden, out, rows):
    network, x = feed_forward(d_in, hidden, out), torch.randn(rows, d_in)
    assert network(x).shape == (rows, out)
    close(network(x)[-1:], network(x[-1:]))


@given(TOKENS, SIZES, SIZES, SEEDS)
def test_a_mean_of_vectors_knows_neither_order_nor_number(
    tokens, d_model, classes, seed
):
    torch.manual_seed(seed)
    model = MeanFNN(VOCAB, d_model, classes)
    order = torch.randperm(tokens.shape[1])
    again = torch.cat([tokens[:, order]] * 2, dim=1)
    close(model(again), model(tokens))


@given(TOKENS, SIZES, SIZES, FEW)
def test_vectors_side_by_side_fit_one_length_only(tokens, width, classes, more):
    length = tokens.shape[1]
    model = ConcatFNN(VOCAB, width, classes, length)
    close(model(tokens)[-1:], model(tokens[-1:]))
    with pytest.raises(ValueError, match=f"^ids: .*length {length}, got"):
        model(padded(tokens, more))


# Recurrent networks.


@given(driven())
def test_unrolling_agrees_with_pytorch_whatever_the_sizes(parts):
    x, h0, W, U, b = parts
    rnn = nn.RNN(W.shape[1], len(b), batch_first=True).double()
    values = dict(zip(("ih", "hh"), (W, U), strict=True))
    state = {f"weight_{name}_l0": w for name, w in values.items()}
    state |= {"bias_ih_l0": b, "bias_hh_l0": 0 * b}
    rnn.load_state_dict(state)
    close(unroll(*parts), rnn(x, h0[None])[0])


@given(driven(), st.data())
def test_a_recurrent_network_goes_on_from_where_it_stopped(parts, data):
    x, h0, *network = parts
    cut = data.draw(st.integers(0, x.shape[1] - 1))
    whole = unroll(x, h0, *network)
    state = whole[:, cut - 1] if cut else h0
    close(unroll(x[:, cut:], state, *network), whole[:, cut:])
    assert (whole.abs() <= 1).all()


@given(SIZES, SIZES, SEEDS)
def test_the_first_weights_lie_within_one_over_the_root(rows, hidden, seed):
    torch.manual_seed(seed)
    weight = start_small(rows, hidden, hidden=hidden)
    assert weight.shape == (rows, hidden)
    assert (weight.abs() <= hidden**-0.5).all()


@given(FEW, SIZES, SIZES, SIZES, SIZES, SEEDS)
def test_an_rnn_speaks_linearly_of_its_states(
    batch, seq, d_in, hidden, d_out, seed
):
    torch.manual_seed(seed)
    rnn, x = RNN(d_in, hidden, d_out), torch.randn(batch, seq, d_in)
    said, states = rnn(x)
    close(said, states @ rnn.V.T + rnn.c)
    close(states, unroll(x, torch.zeros(batch, hidden), rnn.W, rnn.U, rnn.b))


@given(FEW, SIZES, SIZES, SIZES, SEEDS)
def test_an_lstm_agrees_with_pytorch_and_can_be_interrupted(
    batch, seq, d_in, hidden, seed
):
    torch.manual_seed(seed)
    ours, x = LSTM(d_in, hidden), torch.randn(batch, seq, d_in)
    theirs = nn.LSTM(d_in, hidden, batch_first=True)
    state = {"weight_ih_l0": ours.W, "weight_hh_l0": ours.U}
    state |= {"bias_ih_l0": ours.b, "bias_hh_l0": torch.zeros_like(ours.b)}
    theirs.load_state_dict(state)
    states, last = ours(x)
    close(states, theirs(x)[0])
    cut = seq // 2
    if cut:
        close(ours(x[:, cut:], ours(x[:, :cut])[1])[1], last)


@given(driven())
def test_no_input_moves_the_last_state_more_than_its_path_allows(parts):
    x, h0, W, U, b = (p[0] if i < 2 else p for i, p in enumerate(parts))
    norms = gradient_to_inputs(x, h0, W, U, b)
    longest = torch.linalg.matrix_norm(U, ord=2)
    ages = torch.arange(len(x) - 1, -1, -1)
    bound = longest**ages * torch.linalg.matrix_norm(W)
    assert (norms >= 0).all()
    assert (norms <= bound * (1 + 1e-9)).all()
