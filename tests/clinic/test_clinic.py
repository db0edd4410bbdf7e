"""A doctor's instruments: they name the sick, and leave the healthy alone."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.attention import scaled_dot_product_attention
from companion.clinic import (
    MORE,
    alone_and_in_company,
    first_difference,
    how_far,
    moved_by,
    same_twice,
    seen_before,
    without_gradient,
)
from companion.data.groups import plain
from companion.masks import padding_mask
from companion.transformer import (
    Encoder,
    LanguageModel,
    LanguageModelConfig,
    StackConfig,
)

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, WORDS = 3, 5, 13
PAD = 0


@pytest.fixture
def model():
    torch.manual_seed(0)
    return LanguageModel(
        LanguageModelConfig(
            vocab_size=WORDS, d_model=14, num_heads=2, d_ff=17, num_layers=2
        )
    ).eval()


@pytest.fixture
def tokens():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(1, WORDS, (BATCH, SEQ), generator=generator)


def others(tokens):
    """Another token everywhere, and never padding."""
    return tokens % (WORDS - 1) + 1


class Sum(nn.Module):
    """Word vectors, and what is to be asked about sentences."""

    def __init__(self, width=7):
        super().__init__()
        self.table = nn.Embedding(WORDS, width)
        self.used = nn.Linear(width, width)
        self.unused = nn.Linear(width, 11)
        self.silent = nn.Linear(width, width)

    def forward(self, tokens):
        x = self.used(self.table(tokens))
        return x + 0 * self.silent(x)


def test_a_layer_that_is_never_called_has_no_gradient(tokens):
    model = Sum()
    found = without_gradient(model, model(tokens).sum())
    assert found == {
        "unused.weight": 7 * 11,
        "unused.bias": 11,
        "silent.weight": 7 * 7,
        "silent.bias": 7,
    }


def test_every_parameter_of_a_healthy_model_has_a_gradient(model, tokens):
    loss = F.cross_entropy(model(tokens).mT, tokens)
    assert without_gradient(model, loss) == {}


def test_frozen_parameters_are_not_asked_for(tokens):
    model = Sum()
    model.unused.requires_grad_(False)
    model.silent.requires_grad_(False)
    assert without_gradient(model, model(tokens).sum()) == {}


def test_the_gradients_of_a_step_stay_as_they_were(tokens):
    model = Sum()
    loss = model(tokens).sum()
    without_gradient(model, loss)
    assert all(p.grad is None for p in model.parameters())
    loss.backward()  # The graph is still there.
    assert model.used.weight.grad is not None


@pytest.mark.bad_input
def test_a_loss_without_a_graph_is_refused(tokens):
    model = Sum()
    with pytest.raises(ValueError, match=r"loss.*\(3, 5, 7\).*True"):
        without_gradient(model, model(tokens))
    with pytest.raises(ValueError, match=r"loss.*False"):
        without_gradient(model, torch.zeros(()))
    with pytest.raises(ValueError, match="model: expected parameters"):
        without_gradient(nn.ReLU(), model(tokens).sum())


def test_a_causal_model_is_moved_by_the_past_alone(model, tokens):
    seen = moved_by(model, tokens, others(tokens))
    assert torch.equal(seen, torch.ones(SEQ, SEQ).tril().bool())


def test_a_model_that_looks_ahead_is_moved_by_the_future(tokens):
    table = torch.randn(WORDS, 7, generator=torch.Generator().manual_seed(2))
    ahead = torch.ones(SEQ, SEQ).triu(1).bool()

    def fn(tokens):
        x = table[tokens]
        return scaled_dot_product_attention(x, x, x, ahead)

    # Row 3 sees token 4 alone: a single weight is 1, whatever it is asked by.
    seen = moved_by(fn, tokens, others(tokens))
    assert torch.equal(seen.triu(1), ahead)
    assert not seen[-1].any()


def test_a_sentence_may_keep_its_token_if_another_changes(model, tokens):
    other = others(tokens)
    other[0] = tokens[0]
    seen = moved_by(model, tokens, other)
    assert torch.equal(seen, torch.ones(SEQ, SEQ).tril().bool())


def test_rows_need_not_be_as_many_as_positions(tokens):
    seen = moved_by(lambda t: t[:, 1:3, None].float(), tokens, others(tokens))
    assert seen.tolist() == [
        [False, True, False, False, False],
        [False, False, True, False, False],
    ]


def test_a_function_of_nothing_is_moved_by_nothing(tokens):
    seen = moved_by(lambda t: torch.ones(BATCH, 2, 7), tokens, others(tokens))
    assert seen.shape == (2, SEQ)
    assert not seen.any()


@pytest.mark.bad_input
def test_others_must_differ_and_fit(model, tokens):
    with pytest.raises(ValueError, match=r"others.*\(3, 5\).*\(3, 4\)"):
        moved_by(model, tokens, tokens[:, :4])
    same = others(tokens)
    same[:, 2] = tokens[:, 2]
    with pytest.raises(ValueError, match="got the same ones at 2"):
        moved_by(model, tokens, same)
    with pytest.raises(TypeError, match="others: expected a tensor of token"):
        moved_by(model, tokens, tokens.float())


@pytest.fixture
def padded(tokens):
    """Sentences of 5, 2 and 4 tokens."""
    tokens = tokens.clone()
    tokens[1, 2:] = PAD
    tokens[2, 4:] = PAD
    return tokens


@pytest.fixture
def encode():
    torch.manual_seed(3)
    table = nn.Embedding(WORDS, 14)
    config = StackConfig(d_model=14, num_heads=2, d_ff=17, num_layers=2)
    encoder = Encoder(config).eval()

    def fn(tokens, mask=padding_mask):
        return encoder(table(tokens), mask(tokens, PAD) if mask else None)

    return fn


def test_a_healthy_encoder_does_not_mind_its_company(encode, padded):
    assert max(alone_and_in_company(encode, padded, PAD)) < 1e-5


def test_an_encoder_that_reads_padding_does(encode, padded):
    found = alone_and_in_company(lambda t: encode(t, None), padded, PAD)
    assert found.alone > 0.1
    assert found.elsewhere < 1e-5
    assert found.padded > 0.1


def test_positions_along_the_batch_mind_the_place(encode, padded):
    def fn(tokens):
        places = torch.arange(len(tokens)).view(-1, 1, 1)
        return encode(tokens) + places

    found = alone_and_in_company(fn, padded, PAD)
    # On paper: the last of three is at place 2, alone at 0; rolled, it is at 0.
    assert found.alone == pytest.approx(2, abs=1e-5)
    assert found.elsewhere == pytest.approx(2, abs=1e-5)
    assert found.padded < 1e-5


def test_what_a_length_does_is_found_by_more_padding(padded):
    def fn(tokens):
        return torch.full((*tokens.shape, 1), float(tokens.shape[1]))

    found = alone_and_in_company(fn, padded, PAD)
    assert found == (SEQ - 2, 0, MORE)


@pytest.mark.bad_input
def test_company_needs_two_sentences_with_tokens(encode, padded):
    with pytest.raises(ValueError, match="two sentences or more"):
        alone_and_in_company(encode, padded[:1], PAD)
    padded[1] = PAD
    with pytest.raises(ValueError, match="not pad = 0"):
        alone_and_in_company(encode, padded, PAD)
    with pytest.raises(TypeError, match="pad: expected an int"):
        alone_and_in_company(encode, padded, None)


def test_dropout_left_on_answers_otherwise_the_second_time():
    dropout = nn.Dropout(0.5)
    x = torch.ones(BATCH, SEQ)
    assert same_twice(dropout, x) == 2  # 0 once, and 1 / 0.5 once.
    assert same_twice(dropout.eval(), x) == 0


def test_an_answer_written_into_the_same_tensor_is_still_compared():
    x = torch.zeros(SEQ)
    assert same_twice(lambda: x.add_(3)) == 3


def test_a_step_of_sgd_goes_as_far_as_rate_times_norm(model, tokens):
    F.cross_entropy(model(tokens).mT, tokens).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    assert how_far(model, optimizer.step) == pytest.approx(0.125, rel=1e-3)
    assert how_far(model, lambda: None) == 0


def test_two_computations_part_at_the_first_position_that_differs():
    one = torch.randn(BATCH, SEQ, 7, generator=torch.Generator().manual_seed(4))
    other = one.clone()
    assert first_difference(one, other + 1e-6) is None
    other[1, 3:, 2] += 0.1
    assert first_difference(one, other) == 3
    other[2, 1, 0] = torch.nan
    assert first_difference(one, other) == 1
    numbers = torch.tensor([[1.0, 2.0, 3.0]])
    assert first_difference(numbers, numbers + torch.tensor([0, 0, 1])) == 2


@pytest.mark.bad_input
def test_computations_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match=r"other.*\(3, 5, 2\).*\(3, 4, 2\)"):
        first_difference(torch.zeros(3, 5, 2), torch.zeros(3, 4, 2))


def test_what_was_seen_before_is_listed_as_the_test_has_it():
    train = ["I like cats.", "No!"]
    test = ["i like cats", "Yes!", "No!"]
    assert seen_before(train, test) == ["No!"]
    assert seen_before(train, test, plain) == ["i like cats", "No!"]
    assert seen_before([], iter(test)) == []


@pytest.mark.bad_input
def test_an_empty_test_set_is_no_clean_test_set():
    with pytest.raises(ValueError, match="test: expected something"):
        seen_before(["a"], [])
