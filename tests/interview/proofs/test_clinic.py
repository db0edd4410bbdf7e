"""What the answers of chapter 14 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import answers, mistake
from torch import nn
from torch.testing import assert_close

from companion.attention import scaled_dot_product_attention
from companion.blocks import Dropout, EncoderLayer
from companion.contracts.transformer.encoder import (
    MaskOfTheFirstSentence,
    Stack,
)
from companion.contracts.transformer.encoder_layer import arguments
from companion.contracts.transformer.language_model import (
    BagOfWords,
    EncoderThatPredicts,
    Language,
)
from companion.contracts.transformer.translation_model import (
    DropsOutForEver,
    Translator,
)
from companion.decoding import cached_decode
from companion.masks import causal_mask
from companion.training import label_smoothing
from companion.transformer import Transformer, TransformerConfig, shift_right
from companion.zoo import ANIMALS


def sequences(*shape, seed=0):
    return torch.randint(
        11, shape, generator=torch.Generator().manual_seed(seed)
    )


def fitted(kind, steps, batches):
    """A language model of the zoo after some steps, and its last loss."""
    torch.manual_seed(0)
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        x = batches(step)
        logits = model(x[:, :-1]).transpose(1, 2)
        loss = F.cross_entropy(logits, x[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval(), loss.item()


def test_a_model_that_sees_its_answer_has_a_low_loss_and_writes_nonsense():
    model, _ = fitted(
        EncoderThatPredicts, 120, lambda step: sequences(32, 8, seed=step)
    )
    x = sequences(64, 8, seed=999)
    with torch.no_grad():
        # The last row's answer is not among the input.
        whole = model(x[:, :-1])[:, :-1]
        prefixes = [model(x[:, : i + 1])[:, -1] for i in range(6)]
    told = F.cross_entropy(whole.transpose(1, 2), x[:, 1:-1]).item()
    written = F.cross_entropy(torch.stack(prefixes, 2), x[:, 1:-1]).item()
    # Nobody can know these tokens: an honest loss is log 11 = 2.4 or more.
    assert told < 0.1
    assert written > math.log(11)


def test_on_the_same_batch_dropout_and_smoothing_alone_raise_the_loss():
    torch.manual_seed(0)
    x, target = torch.randn(64, 13), torch.randint(7, (64,))
    model = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), Dropout(0.5))
    model.append(nn.Linear(64, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        loss = F.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    train = sum(F.cross_entropy(model(x), target).item() for _ in range(20))
    assert train / 20 > 2 * F.cross_entropy(model.eval()(x), target).item()
    # The best loss there is, with a smoothing of 0.1 over 8,500 tokens.
    best = torch.full((1, 1, 8500), 0.1 / 8500)
    best[..., 0] += 0.9
    floor = label_smoothing(best.log(), torch.zeros(1, 1).long(), 0.1, None)
    assert floor.item() == pytest.approx(1.23, abs=0.005)


def lost():
    """The parameters behind the first norm of a layer of the notes' size."""
    layer = EncoderLayer(128, 8, 512)
    names = dict(layer.named_parameters())
    behind = ("feed_forward.", "feed_forward_residual.")
    return sum(p.numel() for n, p in names.items() if n.startswith(behind))


def test_the_repair_loses_a_network_and_a_norm_in_each_layer():
    assert lost() == 131_968
    x, weights, heads = arguments(2)
    broken = mistake("encoder_layer", "repaired and lost its network")
    before = broken(x, weights, heads)
    assert before.shape == x.shape
    for name in ("w_1", "b_1", "w_2", "b_2", "gain_2", "bias_2"):
        other = weights | {name: weights[name] + 1}
        assert torch.equal(broken(x, other, heads), before)
    for name in ("w_q", "w_o", "gain_1", "bias_1"):
        other = weights | {name: weights[name] * 2 + 1}
        assert not torch.allclose(broken(x, other, heads), before)


def test_the_same_sentences_have_half_the_loss_at_twice_the_length():
    broken = mistake("label_smoothing", "over the padded length")
    logits, target = torch.randn(2, 5, 11), 1 + sequences(2, 5) % 10
    longer = F.pad(logits, (0, 0, 0, 5)), F.pad(target, (0, 5))
    half = broken(*longer, 0.0, 0) / broken(logits, target, 0.0, 0)
    assert half.item() == pytest.approx(0.5)
    ours = [label_smoothing(*x, 0.0, 0) for x in ((logits, target), longer)]
    assert_close(*ours)


def test_under_the_first_sentences_mask_only_other_lengths_suffer():
    torch.manual_seed(0)
    model = MaskOfTheFirstSentence().eval()
    x = torch.randn(3, 5, 12)
    for lengths, right in (
        ([3, 3, 3], [True, True, True]),
        ([3, 5, 2], [True, False, False]),
    ):
        real = torch.arange(5) < torch.tensor(lengths)[:, None]
        together = model(x, real[:, None, None])
        alone = [model(x[i : i + 1, :n]) for i, n in enumerate(lengths)]
        found = [
            torch.allclose(together[i, :n], alone[i][0], atol=1e-5)
            for i, n in enumerate(lengths)
        ]
        assert found == right
    healthy = Stack().eval()
    together = healthy(x, real[:, None, None])
    assert_close(together[1:2], healthy(x[1:2]))


def test_dropout_moves_the_logits_and_a_draw_does_not():
    src, tgt = 1 + sequences(2, 5) % 10, 1 + sequences(2, 4, seed=1) % 10
    for kind, same in ((DropsOutForEver, False), (Translator, True)):
        torch.manual_seed(0)
        model = kind().eval()
        assert torch.equal(model(src, tgt), model(src, tgt)) is same
        torch.manual_seed(1)
        logits = model(src, tgt)[:, -1]
        draws = [torch.multinomial(logits.softmax(-1), 50, True) for _ in "12"]
        assert not torch.equal(*draws)


def test_a_cache_without_places_agrees_on_the_first_step_only():
    torch.manual_seed(0)
    config = TransformerConfig.tiny(11, 11)
    model = Transformer(config).eval()
    src, tokens = 1 + sequences(2, 5) % 10, 1 + sequences(2, 6, seed=1) % 10
    with torch.no_grad():
        whole = model(src, tokens)
        broken = mistake("cached_decode", "always at the start")(
            model, src, tokens
        )
        healthy = cached_decode(model, src, tokens)
    apart = (broken - whole).abs().amax((0, 2))
    assert apart[0] < 1e-4
    assert (apart[1:] > 1e-2).all()
    assert_close(healthy, whole, atol=1e-4, rtol=1e-4)


def test_where_half_precision_ends():
    assert torch.finfo(torch.float16).max == 65504
    assert torch.tensor(11.0).half().exp().isfinite()
    assert torch.tensor(12.0).half().exp().isinf()
    assert torch.tensor(12.0).bfloat16().exp().isfinite()
    # What does not fit is -∞, and a row of it is 0/0.
    assert torch.tensor(-1e9).half().isinf()
    row = torch.full((3,), -1e9).half()
    with pytest.raises(RuntimeError, match="without overflow"):
        row.masked_fill(row == 0, -1e9)
    assert row.softmax(-1).isnan().all()
    low = torch.full((3,), torch.finfo(torch.float16).min).half()
    assert low.softmax(-1).isfinite().all()
    # A square of 300 is enough for a variance of infinity.
    assert torch.tensor(300.0).half().square().isinf()
    # And what is small is 0, unless the loss is scaled.
    assert torch.tensor(1e-8).half() == 0
    assert torch.tensor(1e-8 * 1024).half() > 0


def test_a_forgotten_adam_makes_a_first_step_four_times_as_long():
    torch.manual_seed(0)
    w = nn.Parameter(torch.zeros(2000))

    def adam():
        return torch.optim.Adam([w], lr=1.0, betas=(0.9, 0.98), eps=1e-9)

    def step(optimizer):
        before = w.detach().clone()
        w.grad = torch.randn(2000)
        optimizer.step()
        return (w - before).square().mean().sqrt().item()

    kept = adam()
    sizes = [step(kept) for _ in range(300)]
    # Late in training gradients are mostly noise: √((1 − β₁) / (1 + β₁)).
    assert sizes[-1] == pytest.approx(math.sqrt(0.1 / 1.9), rel=0.1)
    assert step(adam()) == pytest.approx(1.0)


# Four tests of an attention that need no other attention.
def drawn():
    generator = torch.Generator().manual_seed(0)
    shapes = (2, 5, 7), (2, 5, 7), (2, 5, 3)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def on_paper(fn):
    """Scores log 3 and 0, after the division by √4: weights 3/4 and 1/4."""
    q = torch.tensor([[2.0, 0, 0, 0]])
    k = torch.tensor([[math.log(3), 0, 0, 0], [0.0, 0, 0, 0]])
    found = fn(q, k, torch.tensor([[1.0], [0.0]]), None)
    return torch.allclose(found, torch.tensor([[0.75]]))


def hiding_is_deleting(fn):
    q, k, v = drawn()
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[:, 4] = False
    cut = fn(q, k[:, :4], v[:, :4], None)
    return torch.allclose(fn(q, k, v, mask), cut, atol=1e-5)


def who_sees_nobody_gets_zeros(fn):
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[1] = False
    return torch.equal(fn(*drawn(), mask)[:, 1], torch.zeros(2, 3))


def finite_in_half_precision(fn):
    mask = causal_mask(5)
    mask[0] = False
    q, k, v = (x.half() for x in drawn())
    try:
        return bool(fn(q, k, v, mask).isfinite().all())
    except RuntimeError:  # PyTorch refuses to fill with what does not fit.
        return False


FOUR = (
    on_paper,
    hiding_is_deleting,
    who_sees_nobody_gets_zeros,
    finite_in_half_precision,
)


def test_four_tests_without_a_reference_catch_every_wrong_attention():
    assert all(holds(scaled_dot_product_attention) for holds in FOUR)
    broken = [a.fn for a in ANIMALS if a.component == "attention"]
    assert len(broken) == 14
    caught = {holds: sum(not holds(fn) for fn in broken) for holds in FOUR}
    assert all(not all(holds(fn) for holds in FOUR) for fn in broken)
    # No three of them do.
    for left_out in FOUR:
        others = [holds for holds in FOUR if holds is not left_out]
        assert any(all(holds(fn) for holds in others) for fn in broken)
    # All fourteen have the right shape, and finite numbers.
    q, k, v = drawn()
    for fn in broken:
        output = fn(q, k, v, causal_mask(5))
        assert output.shape == (2, 5, 3)
        assert output.isfinite().all()
    assert caught[on_paper] == 6
    assert caught[hiding_is_deleting] == 8


def test_a_split_by_line_tests_what_was_trained():
    """Each sentence stands three times; a tenth of the lines is dealt out."""
    generator = torch.Generator().manual_seed(0)
    lines = torch.arange(1000).repeat(3)
    order = torch.randperm(3000, generator=generator)
    test, train = lines[order[:300]], lines[order[300:]]
    assert torch.isin(test, train).float().mean() == pytest.approx(
        0.99, abs=0.01
    )
    # By sentence, none is known.
    order = torch.randperm(1000, generator=generator)
    test = order[:100].repeat(3)
    assert not torch.isin(test, order[100:]).any()


def test_a_healthy_model_learns_eight_sequences_by_heart():
    x = sequences(8, 8, seed=3)
    x[:, 0] = torch.arange(8)  # The first token tells them apart.
    _, healthy = fitted(Language, 120, lambda step: x)
    _, broken = fitted(BagOfWords, 120, lambda step: x)
    assert healthy < 0.02
    assert broken > 0.5


def test_a_roll_shows_the_first_row_the_last_token():
    tokens = torch.tensor([[5, 7, 11, 13]])
    broken = mistake("shift_right", "rolled round")
    assert broken(tokens, 1).tolist() == [[13, 5, 7, 11]]
    assert shift_right(tokens, 1).tolist() == [[1, 5, 7, 11]]


def test_the_loss_of_a_model_that_knows_nothing_yet():
    config = TransformerConfig.tiny(11, 8500)
    src, tgt = torch.randint(3, 11, (32, 5)), torch.randint(3, 8500, (32, 16))
    with torch.no_grad():
        logits = Transformer(config).eval()(src, tgt)
    # The answers are drawn anew: a word is not asked for where it is read.
    said = torch.randint(8500, tgt.shape)
    first = F.cross_entropy(logits.flatten(0, 1), said.flatten())
    assert logits.std() == pytest.approx(1, abs=0.1)
    even = math.log(8500)
    answers("clinic-a-first-loss", first, even, math.log2(8500), 0)
