"""Vectors for words, and recurrent networks: PyTorch and paper agree."""

import math

import pytest
import torch
from torch import nn

from companion.rnn import (
    LSTM,
    RNN,
    ConcatFNN,
    MeanFNN,
    bag_of_words,
    gradient_to_inputs,
    one_hot,
    tf_idf,
    unroll,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_IN, HIDDEN, D_OUT, VOCAB, CLASSES = 3, 5, 7, 11, 2, 17, 13


@pytest.fixture
def ids():
    return torch.randint(VOCAB, (BATCH, SEQ))


@pytest.fixture
def x():
    return torch.randn(BATCH, SEQ, D_IN, dtype=torch.float64)


@pytest.fixture
def weights():
    """h0, W, U and b, in the order ``unroll`` takes them."""
    shapes = (BATCH, HIDDEN), (HIDDEN, D_IN), (HIDDEN, HIDDEN), (HIDDEN,)
    return [torch.randn(*s, dtype=torch.float64) / 3 for s in shapes]


def copied(ours, theirs):
    """PyTorch's network in double precision, with the weights of ours."""
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.W)
        theirs.weight_hh_l0.copy_(ours.U)
        theirs.bias_ih_l0.copy_(ours.b)
        theirs.bias_hh_l0.zero_()
    return theirs


def assert_same_gradients(ours, theirs):
    for mine, name in (
        ("W", "weight_ih"),
        ("U", "weight_hh"),
        ("b", "bias_ih"),
    ):
        torch.testing.assert_close(
            getattr(ours, mine).grad, getattr(theirs, f"{name}_l0").grad
        )


# Text to vectors


def test_an_embedding_is_a_one_hot_vector_times_a_table(ids):
    table = nn.Embedding(VOCAB, D_IN)
    torch.testing.assert_close(
        one_hot(ids, VOCAB) @ table.weight, table(ids), rtol=0, atol=0
    )


def test_one_hot_agrees_with_pytorch(ids):
    theirs = nn.functional.one_hot(ids, VOCAB).float()
    torch.testing.assert_close(one_hot(ids, VOCAB), theirs, rtol=0, atol=0)


def test_the_smallest_and_the_largest_id_have_a_place():
    assert one_hot(torch.tensor([0, 2]), 3).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_a_bag_of_words_counts_what_a_reader_counts():
    assert bag_of_words(torch.tensor([3, 1, 3]), 5).tolist() == [0, 1, 0, 2, 0]


def test_tf_idf_of_three_documents_done_by_hand():
    # Words: the (in all three), cat (in two), dog (in one), fish (in none).
    counts = torch.tensor([[2.0, 1, 0, 0], [1, 3, 0, 0], [1, 0, 2, 0]])
    cat, dog = math.log(3 / 2), math.log(3)
    by_hand = [[0, cat, 0, 0], [0, 3 * cat, 0, 0], [0, 0, 2 * dog, 0]]
    torch.testing.assert_close(tf_idf(counts), torch.tensor(by_hand))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (torch.ones(3), r"expected shape \(document, vocab\), got \(3,\)"),
        (torch.ones(0, 3), r"got \(0, 3\)"),
        (torch.tensor([[-1.0, 2]]), "from 0 up, got -1"),
        (torch.tensor([[math.nan, 2]]), "from 0 up, got nan"),
    ],
)
def test_tf_idf_refuses_what_is_no_table_of_counts(counts, message):
    with pytest.raises(ValueError, match=message):
        tf_idf(counts)


# Feedforward networks


def test_concatenating_keeps_the_order(ids):
    model = ConcatFNN(VOCAB, D_IN, CLASSES, length=SEQ)
    assert (model(ids) - model(ids.flip(1))).abs().max() > 0.01


def test_concatenating_pays_for_each_place_with_weights_of_its_own():
    def size(length):
        model = ConcatFNN(VOCAB, D_IN, CLASSES, length)
        return sum(p.numel() for p in model.parameters())

    assert size(5) - size(3) == 2 * D_IN * D_IN


def test_averaging_reads_any_length():
    model = MeanFNN(VOCAB, D_IN, CLASSES)
    one = model(torch.full((1, 1), 4))
    torch.testing.assert_close(model(torch.full((1, 31), 4)), one)


def test_only_words_that_occur_get_a_gradient():
    model = MeanFNN(VOCAB, D_IN, CLASSES)
    model(torch.tensor([[2, 3]])).sum().backward()
    moved = model.embedding.weight.grad.abs().sum(dim=1).nonzero().flatten()
    assert moved.tolist() == [2, 3]


@pytest.mark.bad_input
def test_another_length_is_told_which_length_the_network_is_for(ids):
    model = ConcatFNN(VOCAB, D_IN, CLASSES, length=7)
    with pytest.raises(ValueError, match=r"length 7, got .* length 5"):
        model(ids)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "reads",
    [
        lambda ids: one_hot(ids, VOCAB),
        lambda ids: bag_of_words(ids, VOCAB),
        MeanFNN(VOCAB, D_IN, CLASSES),
        ConcatFNN(VOCAB, D_IN, CLASSES, length=1),
    ],
    ids=["one_hot", "bag_of_words", "MeanFNN", "ConcatFNN"],
)
@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.tensor([[2.0]]), TypeError, "ids: .*integers, got torch.float"),
        (torch.tensor([[True]]), TypeError, "got torch.bool"),
        ([[2]], TypeError, "got list"),
        (torch.tensor([[-1]]), ValueError, r"of 17, got -1 at \(0, 0\)"),
        (torch.tensor([[VOCAB]]), ValueError, r"of 17, got 17 at \(0, 0\)"),
        (
            torch.zeros(0, 5, dtype=torch.long),
            ValueError,
            r"got shape \(0, 5\)",
        ),
        (
            torch.zeros(5, 0, dtype=torch.long),
            ValueError,
            r"got shape \(5, 0\)",
        ),
    ],
)
def test_ids_that_no_table_holds_are_refused(reads, ids, error, message):
    with pytest.raises(error, match=message):
        reads(ids)


@pytest.mark.bad_input
def test_one_sentence_without_a_batch_axis_is_refused():
    with pytest.raises(ValueError, match=r"2 axes, got shape \(3,\)"):
        MeanFNN(VOCAB, D_IN, CLASSES)(torch.tensor([1, 2, 3]))


@pytest.mark.bad_input
def test_one_id_is_no_bag():
    with pytest.raises(ValueError, match="expected an axis of positions"):
        bag_of_words(torch.tensor(2), VOCAB)


# Recurrent networks


def test_two_steps_of_a_recurrent_network_done_by_hand():
    # h1 = tanh(2·1 + 0.5·0 - 1), h2 = tanh(2·0 + 0.5·h1 - 1)
    one = torch.ones(1, 1)
    states = unroll(
        torch.tensor([[[1.0], [0.0]]]), 0 * one, 2 * one, one / 2, -one[0]
    )
    h1 = math.tanh(1)
    by_hand = torch.tensor([[[h1], [math.tanh(h1 / 2 - 1)]]])
    torch.testing.assert_close(states, by_hand)


def test_the_recurrent_network_is_that_of_pytorch(x, weights):
    ours = RNN(D_IN, HIDDEN, D_OUT).double()
    theirs = copied(ours, nn.RNN(D_IN, HIDDEN, batch_first=True).double())
    h0 = weights[0]
    outputs, states = ours(x, h0)
    expected, _ = theirs(x, h0.unsqueeze(0))
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(outputs, expected @ ours.V.T + ours.c)
    states.square().sum().backward()
    expected.square().sum().backward()
    assert_same_gradients(ours, theirs)


def test_the_lstm_is_that_of_pytorch(x, weights):
    ours = LSTM(D_IN, HIDDEN).double()
    theirs = copied(ours, nn.LSTM(D_IN, HIDDEN, batch_first=True).double())
    state = weights[0], weights[0].flip(0)
    states, (h, c) = ours(x, state)
    expected, (h_n, c_n) = theirs(x, tuple(s.unsqueeze(0) for s in state))
    torch.testing.assert_close(states, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(h, h_n[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(c, c_n[0], rtol=0, atol=1e-6)
    (states.square().sum() + c.sum()).backward()
    (expected.square().sum() + c_n.sum()).backward()
    assert_same_gradients(ours, theirs)


def test_an_lstm_has_four_times_the_weights_of_a_recurrent_network():
    def size(*weights):
        return sum(w.numel() for w in weights)

    rnn, lstm = RNN(D_IN, HIDDEN, D_OUT), LSTM(D_IN, HIDDEN)
    assert size(*lstm.parameters()) == 4 * size(rnn.W, rnn.U, rnn.b)


def test_without_a_state_the_memory_starts_empty(x):
    empty = torch.zeros(BATCH, HIDDEN, dtype=torch.float64)
    rnn = RNN(D_IN, HIDDEN, D_OUT).double()
    lstm = LSTM(D_IN, HIDDEN).double()
    assert rnn(x)[1].equal(rnn(x, empty)[1])
    assert lstm(x)[0].equal(lstm(x, (empty, empty))[0])


def test_reading_in_two_pieces_is_reading_at_once(x):
    rnn, lstm = RNN(D_IN, HIDDEN, D_OUT).double(), LSTM(D_IN, HIDDEN).double()
    first = rnn(x[:, :2])[1]
    both = torch.cat([first, rnn(x[:, 2:], first[:, -1])[1]], dim=1)
    torch.testing.assert_close(both, rnn(x)[1])
    first, state = lstm(x[:, :2])
    both = torch.cat([first, lstm(x[:, 2:], state)[0]], dim=1)
    torch.testing.assert_close(both, lstm(x)[0])


@pytest.mark.parametrize(
    ("make", "states"),
    [
        (lambda: RNN(D_IN, HIDDEN, D_OUT), 1),
        (lambda: LSTM(D_IN, HIDDEN), 0),
    ],
    ids=["RNN", "LSTM"],
)
def test_no_state_knows_the_future(make, states):
    model = make()
    x = torch.randn(1, SEQ, D_IN)
    moved = x.clone()
    moved[:, 3:] += 1
    # Two calls: within one, some processors round the rows differently.
    one, other = (model(each)[states][0] for each in (x, moved))
    assert one[:3].equal(other[:3])
    assert (one[3:] - other[3:]).abs().amax(dim=1).min() > 1e-3


def test_the_last_state_depends_on_the_order(x, weights):
    forth, back = unroll(x, *weights), unroll(x.flip(1), *weights)
    assert (forth[:, -1] - back[:, -1]).abs().max() > 0.01


def test_gradient_to_inputs_is_the_product_of_jacobians(x, weights):
    h0, W, U, b = weights
    x, h0 = x[0], h0[0]
    states = unroll(x[None], h0[None], W, U, b)[0]
    by_hand, reach = [], torch.eye(HIDDEN, dtype=x.dtype)
    for h in states.flip(0):  # dh_T/dh_t, from the last position to the first
        slope = torch.diag(1 - h**2)
        by_hand.insert(0, (reach @ slope @ W).norm())
        reach = reach @ slope @ U
    torch.testing.assert_close(
        gradient_to_inputs(x, h0, W, U, b), torch.stack(by_hand)
    )


def test_with_a_contracting_memory_the_first_of_40_inputs_hardly_counts():
    x = torch.randn(40, D_IN)
    U = 0.9 * torch.linalg.qr(torch.randn(HIDDEN, HIDDEN)).Q
    W, zero = torch.randn(HIDDEN, D_IN) / 3, torch.zeros(HIDDEN)
    norms = gradient_to_inputs(x, zero, W, U, zero)
    # No factor of the product stretches by more than 0.9.
    assert norms[0] <= 0.9**39 * W.norm()
    assert norms[0] < norms[-1] / 50


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("place", "wrong", "error", "message"),
    [
        (
            0,
            torch.ones(BATCH, SEQ, 8).double(),
            ValueError,
            r"x: .*d_in=7.*5, 8\)",
        ),
        (0, torch.ones(SEQ, D_IN).double(), ValueError, r"x: .*seq.*\(5, 7\)"),
        (0, torch.ones(BATCH, 0, D_IN).double(), ValueError, r"\(3, 0, 7\)"),
        (0, torch.ones(0, SEQ, D_IN).double(), ValueError, r"\(0, 5, 7\)"),
        (0, torch.ones(BATCH, SEQ, D_IN).long(), TypeError, "x: .*int64"),
        (0, torch.ones(BATCH, SEQ, D_IN), TypeError, "x: .*float64.*float32"),
        (0, [1.0], TypeError, "x: .*got list"),
        (1, torch.ones(2, HIDDEN).double(), ValueError, r"h0: .*batch=3.*\(2"),
        (2, torch.ones(HIDDEN).double(), ValueError, r"W: .*d_in.*\(11,\)"),
        (3, torch.ones(HIDDEN, 2).double(), ValueError, r"U: .*\(11, 2\)"),
        (4, torch.ones(1).double(), ValueError, r"b: .*hidden=11.*\(1,\)"),
    ],
)
def test_what_does_not_fit_is_named(x, weights, place, wrong, error, message):
    arguments = [x, *weights]
    arguments[place] = wrong
    with pytest.raises(error, match=message):
        unroll(*arguments)


@pytest.mark.bad_input
def test_an_lstm_names_what_does_not_fit():
    lstm, x = LSTM(D_IN, HIDDEN), torch.ones(BATCH, SEQ, D_IN)
    h = torch.ones(BATCH, HIDDEN)
    with pytest.raises(ValueError, match=r"x: .*d_in=7.*\(3, 5, 2\)"):
        lstm(x[..., :2])
    with pytest.raises(TypeError, match=r"x: .*float32.*int64"):
        lstm(x.long())
    with pytest.raises(ValueError, match=r"h: .*\(batch=3, hidden=11\)"):
        lstm(x, (h[:, :2], h))
    with pytest.raises(ValueError, match=r"c: .*\(2, 11\)"):
        lstm(x, (h, h[:2]))


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: tf_idf(None), "counts"),
        (lambda: RNN(3, 5, 7)(None), "x"),
        (lambda: unroll(*[None] * 5), "W"),
        (lambda: gradient_to_inputs(None, *[torch.ones(5)] * 4), "x"),
    ],
)
def test_nothing_where_a_tensor_belongs_is_named(call, name):
    with pytest.raises(TypeError, match=f"^{name}: expected .*, got NoneType"):
        call()
