"""Wrong answers where the answer is a test, and what is said of each."""

import torch
import torch.nn.functional as F

from companion.contracts.transformer.encoder_layer import arguments
from companion.masks import causal_mask
from companion.positions import sinusoidal

WRONG = {}
"""(component, animal) -> tests that do not tell it from a healthy one."""


def wrong(component, animal, says):
    """Registers a test, and words of the report on it."""

    def register(test):
        WRONG.setdefault((component, animal), []).append((test, says))
        return test

    return register


HIDDEN = "causal_mask", "marks what is hidden"


@wrong(*HIDDEN, "it looks at the shape, and not at the numbers")
def looks_at_the_shape(fn):
    assert fn(5).shape == (5, 5)
    assert fn(5).dtype == torch.bool


@wrong(*HIDDEN, "Your test is the wrong way round")
def takes_true_for_hidden(fn):
    assert fn(5)[0, 4]
    assert not fn(5)[4, 0]


@wrong(*HIDDEN, "What ails it: True means hidden where it is made")
def hides_something(fn):
    assert fn(5).any()
    assert not fn(5).all()


PADDED = "label_smoothing", "over the padded length"


def sentences(padding):
    """Logits, and ids behind which there is so much padding."""
    logits = torch.randn(2, 5 + padding, 11)
    target = torch.randint(1, 11, (2, 5 + padding))
    target[:, 5:] = 0
    return logits, target


@wrong(*PADDED, "What ails it: ")
def tries_no_padding(fn):
    logits, target = sentences(0)
    expected = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    torch.testing.assert_close(fn(logits, target, 0.0, 0), expected)


@wrong(*PADDED, "Your test calls a healthy one sick: ours. It fails in line 5")
def counts_padding_itself(fn):
    logits, target = sentences(3)
    expected = F.cross_entropy(logits.flatten(0, 1), target.flatten())
    torch.testing.assert_close(fn(logits, target, 0.0, 0), expected)


@wrong(*PADDED, "It returns a bool, which nobody looks at")
def returns_what_it_found(fn):
    logits, target = sentences(3)
    whole = fn(logits, target, 0.1, 0)
    cut = fn(logits[:, :5], target[:, :5], 0.1, 0)
    return torch.allclose(whole, cut)


PLACES = "add_positions", "indexed by the batch"


@wrong(*PLACES, "it looks at the shape, and not at the numbers")
def sees_that_something_was_added(fn):
    x = torch.randn(3, 5, 12)
    assert fn(x).shape == x.shape
    assert not torch.equal(fn(x), x)


@wrong(*PLACES, "Your test calls a healthy one sick: ours, a learned table")
def knows_one_table_only(fn):
    x = torch.zeros(3, 5, 12)
    expected = sinusoidal(5, 12).expand(3, 5, 12)
    torch.testing.assert_close(fn(x), expected)


@wrong(*PLACES, "Your test is the wrong way round")
def wants_sentences_to_differ(fn):
    y = fn(torch.ones(3, 5, 12))
    assert not torch.allclose(y[0], y[1])


AFTERWARDS = "attention", "multiplied afterwards"


@wrong(*AFTERWARDS, "What ails it: ")
def hides_nothing(fn):
    q, k, v = torch.randn(3, 2, 5, 7).unbind(0)
    expected = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(fn(q, k, v), expected)


@wrong(*AFTERWARDS, "What ails it: ")
def moves_a_hidden_value(fn):
    q, k, v = torch.randn(3, 2, 5, 7).unbind(0)
    moved = v.clone()
    moved[:, 4] += 1
    before, after = (fn(q, k, x, causal_mask(5)) for x in (v, moved))
    torch.testing.assert_close(before[:, :4], after[:, :4])


@wrong(*AFTERWARDS, "Its last digits are its own")
def wants_every_digit(fn):
    q, k, v = torch.randn(3, 2, 5, 7).unbind(0)
    mask = causal_mask(5)
    weights = (q @ k.mT / 7**0.5).masked_fill(~mask, -torch.inf).softmax(-1)
    assert torch.equal(fn(q, k, v, mask), weights @ v)


LOST = "encoder_layer", "repaired and lost its network"


@wrong(*LOST, "it looks at the shape, and not at the numbers")
def sees_finite_numbers(fn):
    x, weights, heads = arguments(2)
    assert fn(x, weights, heads).isfinite().all()


@wrong(*LOST, "What ails it: ")
def tries_attention_only(fn):
    x, weights, _ = arguments(2)
    assert not torch.allclose(fn(x, weights, 3), fn(x, weights, 2))


@wrong(*LOST, "What ails it: ")
def sees_a_gradient_arrive(fn):
    x, weights, heads = arguments(2)
    fn(x.requires_grad_(), weights, heads).square().sum().backward()
    assert x.grad.any()


GUESSED = "speculative_step", "from the target again"
HALF, SURE = torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])


@wrong(*GUESSED, "What ails it: After a refusal it draws from p")
def asks_for_any_token(fn):
    assert int(fn(HALF, SURE, 0, torch.Generator())) in (0, 1)


@wrong(*GUESSED, "Your test lets the sick one through")
def asks_of_a_guess_that_is_surely_kept(fn):
    q, dice = torch.tensor([0.8, 0.2]), torch.Generator()
    assert all(int(fn(HALF, q, 1, dice)) == 1 for _ in range(20))


@wrong(*GUESSED, "Your test calls a healthy one sick: ours")
def leaves_chance_no_room(fn):
    dice = torch.Generator().manual_seed(0)
    kept = sum(int(fn(HALF, SURE, 0, dice)) == 0 for _ in range(50))
    assert kept == 25
