"""What later questions on chapters 08 to 11 claim, computed.

Where a claim has its cell in the chapter, the bank points there. Every number
of a numeric question, right or typically wrong, is computed here. A code
question that shows a sick function has a stub that runs: what its prompt says
of it is measured on that stub.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from answers import answers, parameters
from torch import nn

from companion import decoding, training, transformer, variants
from companion.contracts import check
from companion.data.batches import cut
from companion.interview import load
from companion.masks import combine_masks
from companion.zoo import ANIMALS


def written(name, which="stub"):
    """The function that a code question shows, or its solution."""
    chapter = name.partition("-")[0]
    (task,) = (q.task for q in load(chapter) if q.id == name)
    scope = {"torch": torch}
    exec(getattr(task, which), scope)
    (function,) = (f for n, f in scope.items() if n.startswith("my_"))
    return function


def specimen(component, name):
    """An animal of the zoo."""
    (found,) = (
        a for a in ANIMALS if (a.component, a.name) == (component, name)
    )
    return found


@pytest.mark.parametrize(
    ("name", "component", "says"),
    [
        (
            "transformer-a-gpt-too-good-to-be-true",
            "language_model",
            "Every row sees all tokens",
        ),
        (
            "transformer-2048-too-many",
            "parameter_count",
            "A norm at the end of encoder and decoder belongs to pre-LN",
        ),
        (
            "training-the-more-padding-the-better",
            "label_smoothing",
            "It divides by all positions",
        ),
        (
            "training-a-rate-that-jumps",
            "schedule",
            "The ramp is step · warmup^-1.5, not step · warmup^-0.5",
        ),
        (
            "decoding-a-beam-that-says-little",
            "beam_search",
            "It returns the first finished hypothesis",
        ),
        (
            "decoding-noise-from-the-nucleus",
            "sampling_filter",
            "The tokens come back in sorted order",
        ),
        (
            "variants-a-model-that-says-mask",
            "mask_tokens",
            "the target is what the token was before it was masked",
        ),
        (
            "variants-heads-that-nobody-asks",
            "grouped_query_attention",
            "All query heads get key head 0",
        ),
        (
            "variants-a-stream-too-small",
            "rms_norm",
            "It divides by the length of the vector",
        ),
    ],
)
def test_a_sick_stub_fails_and_its_solution_passes(name, component, says):
    report = check(component, written(name))
    assert not report.passed
    assert says in " ".join(str(report).split())
    assert check(component, written(name, "solution")).passed


# Chapter 08


def test_every_shape_on_the_way_from_ids_to_logits():
    src, tgt = torch.ones(2, 9, dtype=torch.long), torch.ones(2, 5).long()
    masks = combine_masks(src, tgt, 0)
    assert [tuple(m.shape) for m in masks] == [
        (2, 1, 1, 9),
        (2, 1, 5, 5),
        (2, 1, 1, 9),
    ]
    with torch.device("meta"):
        config = transformer.TransformerConfig.base()
        model = transformer.Transformer(config)
        memory = model.encode(src.to("meta"), masks.src.to("meta"))
        assert memory.shape == (2, 9, 512)
        logits = model(src.to("meta"), tgt.to("meta"))
    assert logits.shape == (2, 5, 37_000)
    layer = model.decoder.layers[0]
    y = torch.empty(2, 5, 512, device="meta")
    assert layer.self_attention.weights(y).shape == (2, 8, 5, 5)
    cross = layer.cross_attention
    assert cross.weights(y, key=memory).shape == (2, 8, 5, 9)
    assert cross.queries(y).shape == (2, 8, 5, 64)
    assert model.encoder.layers[0].self_attention.weights(memory).shape == (
        (2, 8, 9, 9)
    )


def test_a_picture_becomes_a_sentence_of_patches():
    width, colours, side = 16, 3, 224
    picture = torch.randn(1, colours, side, side)
    patches = F.unfold(picture, width, stride=width).mT
    assert patches.shape == (1, 196, 768)
    embed = nn.Linear(patches.shape[-1], 768)
    convolved = F.conv2d(
        picture,
        embed.weight.view(768, colours, width, width),
        embed.bias,
        stride=width,
    )
    torch.testing.assert_close(
        embed(patches), convolved.flatten(2).mT, atol=1e-4, rtol=1e-3
    )
    answers(
        "transformer-patches-of-a-picture",
        parameters(embed),
        embed.weight.numel(),
        parameters(nn.Linear(width * width, 768)),
        patches.shape[1] * 768,
    )


def test_a_decoder_that_asks_the_target_twice_never_hears_the_source():
    sick = specimen("translation_model", "asks the target twice").fn
    src, tgt = torch.randint(1, 11, (2, 7)), torch.randint(1, 11, (2, 5))
    logits = sick(src, tgt)
    assert torch.equal(sick(src.flip(1), tgt), logits)
    logits.square().sum().backward()
    assert all(p.grad is None for p in sick.encoder.parameters())
    assert all(p.grad is not None for p in sick.decoder.parameters())


def test_a_mean_over_positions_tells_the_first_row_of_the_last_token():
    name = "transformer-a-gpt-too-good-to-be-true"
    tokens = torch.tensor([[3, 7, 1, 4]])
    longer = torch.tensor([[3, 7, 1, 4, 9]])
    for which, moves in (("stub", True), ("solution", False)):
        model = written(name, which)
        gap = (model(longer)[:, 0] - model(tokens)[:, 0]).abs().max()
        assert bool(gap > 1e-3) is moves


def test_pytorchs_transformer_has_a_norm_too_many_at_each_end():
    name, base = "transformer-2048-too-many", (512, 2048, 6, 37_000)
    with pytest.warns(UserWarning, match="nested_tensor"):
        counted = written(name)(*base)
    with pytest.warns(UserWarning, match="nested_tensor"):
        assert written(name, "solution")(*base) == 63_082_496
    assert counted == 63_084_544
    assert counted - 63_082_496 == 2 * parameters(nn.LayerNorm(512))


# Chapter 09


def adams_first_step(beta2, corrected):
    """As a share of the rate, for any gradient."""
    g, beta1 = 50.0, 0.9
    m, v = (1 - beta1) * g, (1 - beta2) * g**2
    if corrected:
        m, v = m / (1 - beta1), v / (1 - beta2)
    return m / math.sqrt(v)


def test_adams_means_are_corrected_for_having_started_at_nothing():
    assert adams_first_step(0.98, corrected=True) == pytest.approx(1)
    assert adams_first_step(0.98, corrected=False) == pytest.approx(
        0.71, abs=0.005
    )
    assert adams_first_step(0.999, corrected=False) == pytest.approx(
        3.2, abs=0.05
    )
    # What is left of a gradient after 1 / (1 - beta) steps is about 1/e.
    for beta, steps in ((0.98, 50), (0.999, 1000)):
        assert 1 / (1 - beta) == pytest.approx(steps)
        assert beta**steps == pytest.approx(1 / math.e, abs=0.01)
        share = (1 - beta) * sum(beta**i for i in range(steps))
        assert share == pytest.approx(1 - beta**steps)
    weight = nn.Parameter(torch.zeros(1))
    adam = training.adam([weight], lr=0.001)
    weight.grad = torch.tensor([50.0])
    adam.step()
    assert abs(weight.item()) == pytest.approx(0.001)


def test_the_best_smoothed_loss_is_the_entropy_of_its_target():
    def entropy(*p):
        return -sum(share * math.log(share) for share in p)

    best = torch.tensor([[0.01] * 9 + [0.91]]).log()
    loss = F.cross_entropy(best, torch.tensor([9]), label_smoothing=0.1)
    assert loss.item() == pytest.approx(entropy(0.91, *[0.01] * 9))
    answers(
        "training-floor-of-a-smoothed-loss",
        loss.item(),
        0.0,
        F.cross_entropy(best, torch.tensor([9])).item(),
        entropy(0.9, *[0.1 / 8] * 8),
    )
    assert entropy(0.91) == pytest.approx(0.086, abs=5e-4)
    assert entropy(*[0.01] * 9) == pytest.approx(0.414, abs=5e-4)


def test_sorted_sentences_waste_less_on_padding():
    lengths = [5, 30, 6, 29, 7, 31, 8, 28]

    def positions(batches):
        return sum(
            len(batch) * max(lengths[i] for i in batch) for batch in batches
        )

    real = sum(lengths)
    as_they_come = positions([range(4), range(4, 8)])
    by_length = cut(lengths, max_tokens=124)
    assert [len(batch) for batch in by_length] == [4, 4]
    sorted_ = positions(by_length)
    assert (real, as_they_come, sorted_) == (144, 244, 156)
    answers(
        "training-padding-in-a-batch",
        100 * (1 - real / as_they_come),
        100 * (1 - real / sorted_),
        100 * (as_they_come - real) / real,
        100 * real / as_they_come,
    )


def test_the_mean_of_two_processes_is_not_that_of_their_tokens():
    weight = torch.zeros(10, requires_grad=True)
    losses = torch.tensor([0.5] * 9 + [2.0]) + weight
    pieces = losses.split([9, 1])
    means = sum(piece.mean() for piece in pieces) / 2
    assert means.item() == pytest.approx(1.25)
    assert losses.mean().item() == pytest.approx(0.65)
    (counts,) = torch.autograd.grad(means, weight, retain_graph=True)
    assert (counts[9] / counts[0]).item() == pytest.approx(9)
    # Scaled like this, the mean over processes is that over tokens.
    mended = sum(2 * piece.sum() / 10 for piece in pieces) / 2
    assert mended.item() == pytest.approx(0.65)


def test_a_loss_over_the_padded_length_falls_with_padding():
    logits = torch.randn(2, 5, 7)
    target = torch.tensor([[4, 2, 5, 1, 3], [5, 6, 2, 1, 4]])
    longer = F.pad(logits, (0, 0, 0, 5)), F.pad(target, (0, 5))
    for which, factor in (("stub", 0.5), ("solution", 1.0)):
        loss = written("training-the-more-padding-the-better", which)
        before, after = loss(logits, target, 0.1, 0), loss(*longer, 0.1, 0)
        torch.testing.assert_close(after, factor * before)


def test_a_ramp_too_steep_is_at_its_peak_within_a_few_dozen_steps():
    steep = written("training-a-rate-that-jumps")
    rates = [steep(step, 512, 4000) for step in range(1, 5000)]
    assert rates.index(max(rates)) + 1 == 16
    assert max(rates) == pytest.approx(0.011, abs=1e-4)
    crossing = 4000 ** (1 / 3)
    assert crossing == pytest.approx(15.9, abs=0.05)
    assert training.noam(4000, 512, 4000) / max(rates) == pytest.approx(
        0.06, abs=0.005
    )
    assert rates[-1] == pytest.approx(training.noam(4999, 512, 4000))


# Chapter 10

BOS, EOS = 1, 2


def test_one_wrong_word_of_six():
    meant = ["I", "love", "little", "cats", "and", "birds"]
    said = [*meant[:-1], "dogs"]
    shares = [5 / 6, 4 / 5, 3 / 4, 2 / 3]
    answers(
        "decoding-bleu-by-hand",
        decoding.bleu([said], [meant]),
        100 * sum(shares) / 4,
        100 * shares[0],
        100 * math.prod(shares),
    )
    middle = [*meant[:3], "dogs", *meant[4:]]
    assert decoding.bleu([middle], [meant]) == 0


def test_from_some_batch_on_the_cache_outweighs_the_model():
    config = transformer.TransformerConfig.base()
    with torch.device("meta"):
        weights = 4 * parameters(transformer.Transformer(config))
    a_token = 2 * config.num_layers * config.d_model * 4
    assert a_token == 24 * 1024
    assert weights / 2**20 == pytest.approx(241, abs=0.5)

    def sentences(a_token):
        return weights // (512 * a_token) + 1

    answers(
        "decoding-cache-against-weights",
        sentences(a_token),
        sentences(a_token // 2),
        sentences(a_token // config.num_layers),
        sentences(a_token * config.num_heads),
    )


def test_a_step_without_the_sources_mask_is_right_alone():
    torch.manual_seed(0)
    config = transformer.TransformerConfig.tiny(11, 11)
    model = transformer.Transformer(config).eval()
    sick = specimen("cached_decode", "shows padding").fn
    src = torch.tensor([[BOS, 5, 7, 3, EOS], [BOS, 9, EOS, 0, 0]])
    tgt = torch.tensor([[BOS, 4, 6, 8], [BOS, 3, 3, 7]])
    alone = sick(model, src[1:, :3], tgt[1:])
    torch.testing.assert_close(alone, model(src[1:, :3], tgt[1:]))
    with torch.no_grad():
        gap = (sick(model, src, tgt) - model(src, tgt)).abs().amax((1, 2))
    assert gap[0] < 1e-4 < 1e-2 < gap[1]


def test_a_loop_that_ignores_the_end_says_it_again():
    def step_fn(tokens):
        last = tokens[:, -1]
        # bos → 3 → 4 → eos, and behind an end the sentence begins again.
        follows = torch.tensor([0, 3, 3, 4, EOS])
        return F.one_hot(follows[last], 5).float()

    sick = specimen("greedy_decode", "ignores eos").fn
    right = decoding.greedy_decode(step_fn, BOS, EOS, 9)
    assert right == [3, 4, EOS]
    assert sick(step_fn, BOS, EOS, 9) == 3 * right
    assert step_fn(torch.tensor([[BOS, 3, 4]]))[0].argmax() == EOS


def often(share, vocabulary=30, most=6):
    """Says token 3 with ``share``, the end with 0.05, and ends after six."""

    def step_fn(tokens):
        p = torch.full((len(tokens), vocabulary), 0.0)
        p[:, 3:] = (0.95 - share) / (vocabulary - 4)
        p[:, EOS], p[:, 3] = 0.05, share
        if tokens.shape[1] > most:
            p = F.one_hot(torch.tensor([EOS]), vocabulary).float()
            p = p.expand(len(tokens), -1)
        return p.log()

    return step_fn


def test_the_first_to_finish_is_not_the_best():
    name = "decoding-a-beam-that-says-little"
    step_fn, long = often(0.9), [3] * 6 + [EOS]
    assert 0.9**6 > 0.05
    sick, sound = written(name), written(name, "solution")
    for alpha in (0.0, 0.6, 5.0):
        assert sick(step_fn, BOS, EOS, 20, 9, alpha) == [EOS]
        assert sound(step_fn, BOS, EOS, 20, 9, alpha) == long
    assert sick(step_fn, BOS, EOS, 1, 9, 0.0) == long


def test_a_filter_that_stays_sorted_likes_the_first_ids():
    name = "decoding-noise-from-the-nucleus"
    logits = torch.tensor([[0.1, 0.2, 3.0, 0.0, 4.0, 1.0, 2.0]])
    sick, sound = (written(name, which) for which in ("stub", "solution"))
    assert torch.equal(sick(logits, 4, None, 0.5), sound(logits, 4, None, 0.5))
    a, b = (f(logits, None, 0.95, 1.0) for f in (sick, sound))
    assert a.isfinite().sum() == b.isfinite().sum()
    assert a.argmax() == 0
    assert b.argmax() == 4
    kept = b.isfinite()
    assert torch.equal(b[kept], logits[kept])


# Chapter 11


def test_a_square_that_float16_cannot_hold():
    numbers = torch.arange(1, 1001).half()
    first = int(numbers[numbers.square().isinf()][0])
    largest = torch.finfo(torch.float16).max
    answers("variants-a-norm-that-overflows", first, largest, first - 1)
    gain = torch.ones(7, dtype=torch.float16)
    x = torch.linspace(-3, 3, 7).half()
    x[2] = first
    sick = specimen("rms_norm", "squares in half precision").fn
    assert (sick(x, gain, 1e-6) == 0).all()
    assert variants.rms_norm(x, gain)[2] > 1
    x[2] = first - 1
    assert sick(x, gain, 1e-6).count_nonzero() > 0


def test_a_target_taken_too_late_is_what_the_model_reads():
    name = "variants-a-model-that-says-mask"
    tokens = torch.randint(4, 100, (50, 200))
    for which, copies in (("stub", True), ("solution", False)):
        generator = torch.Generator().manual_seed(0)
        inputs, target = written(name, which)(tokens, generator)
        chosen = target != 0
        assert abs(chosen.float().mean() - 0.15) < 0.01
        assert abs((inputs[chosen] == 3).float().mean() - 0.8) < 0.03
        assert torch.equal(inputs[chosen], target[chosen]) is copies
        assert torch.equal(tokens[chosen], target[chosen]) is not copies


def test_key_heads_that_nobody_asks_get_no_gradient():
    name, heads = "variants-heads-that-nobody-asks", 24
    q = torch.randn(2, heads, 5, 3)
    for groups, unheard in ((1, 0), (8, 7)):
        k, v = torch.randn(2, 2, groups, 7, 3).unbind(0)
        k.requires_grad_()
        result = written(name)(q, k, v)
        (slope,) = torch.autograd.grad(result.square().sum(), k)
        silent = (slope == 0).all(-1).all(-1).all(0)
        assert silent.sum() == unheard
        first = variants.grouped_query_attention(q, k[:, :1], v[:, :1])
        torch.testing.assert_close(result, first)


def test_a_vector_of_length_one_is_root_d_times_too_small():
    sick = written("variants-a-stream-too-small")
    for width, factor in ((4096, 64), (64, 8)):
        x, gain = torch.randn(3, width), torch.ones(width)
        right = variants.rms_norm(x, gain, 1e-9)
        torch.testing.assert_close(factor * sick(x, gain, 1e-9), right)
    zeros = torch.zeros(1, 7, requires_grad=True)
    for which, steep in (("stub", 1e6), ("solution", 1e3)):
        norm = written("variants-a-stream-too-small", which)
        result = norm(zeros, torch.ones(7), 1e-6)
        (slope,) = torch.autograd.grad(result.sum(), zeros)
        torch.testing.assert_close(slope, torch.full((1, 7), steep))
    long = torch.full((1, 4096), 2000.0)
    assert long.norm() == pytest.approx(128_000)
    assert long.half().norm(dim=-1).isinf()
