"""What the answers of chapter 11 claim, computed."""

import math

import pytest
import torch
import torch.nn.functional as F
from interview.proving import (
    answers,
    mistake,
    parameters,
    repair,
)
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from companion import decoding, transformer

BOS, EOS = 1, 2


def table(rows):
    """A step function over five tokens: probabilities by the prefix."""

    def step_fn(tokens):
        said = [tuple(row.tolist()[1:]) for row in tokens]
        return torch.tensor([rows[prefix] for prefix in said]).log()

    return step_fn


# Token 3 looks better, and all that follows it is poor.
FORK = table(
    {
        (): [0.0, 0.0, 0.0, 0.6, 0.4],
        (3,): [0.0, 0.0, 0.4, 0.3, 0.3],
        (4,): [0.0, 0.0, 0.9, 0.05, 0.05],
        (3, 3): [0.0, 0.0, 1.0, 0.0, 0.0],
        (3, 4): [0.0, 0.0, 1.0, 0.0, 0.0],
        (4, 3): [0.0, 0.0, 1.0, 0.0, 0.0],
        (4, 4): [0.0, 0.0, 1.0, 0.0, 0.0],
    }
)


def test_a_beam_of_two_finds_what_greedy_misses():
    assert decoding.greedy_decode(FORK, BOS, EOS, 3) == [3, EOS]
    assert decoding.beam_search(FORK, BOS, EOS, 1, 3, 0.0) == [3, EOS]
    assert decoding.beam_search(FORK, BOS, EOS, 2, 3, 0.0) == [4, EOS]
    assert 0.4 * 0.9 > 0.6 * 0.4


def small_model():
    torch.manual_seed(0)
    config = transformer.TransformerConfig.tiny(11, 13)
    return transformer.Transformer(config).eval()


def test_one_pass_trains_n_tokens_and_n_passes_write_them():
    model, passes = small_model(), []
    model.decoder.register_forward_hook(lambda *_: passes.append(1))
    src = torch.tensor([[BOS, 5, 7, 3, EOS]])
    model(src, torch.tensor([[BOS, 4, 6, 8, 9, 3, 7]]))
    assert len(passes) == 1
    passes.clear()
    step_fn = decoding.next_token(model, src)
    said = decoding.greedy_decode(step_fn, BOS, EOS, 7)
    assert len(passes) == len(said)


def test_a_cache_gives_the_logits_of_the_full_pass():
    model = small_model()
    src = torch.tensor([[BOS, 5, 7, 3, EOS], [BOS, 9, EOS, 0, 0]])
    tokens = torch.tensor([[BOS, 4, 6, 8], [BOS, 3, 3, 12]])
    cached = decoding.cached_decode(model, src, tokens)
    assert_close(cached, model(src, tokens))


def test_teacher_forcing_repairs_each_error_and_free_running_keeps_it():
    """A model that copies the word before, plus one, and errs once."""
    right = list(range(3, 13))

    def says(word, place):
        return word + (2 if place == 4 else 1)

    forced = [right[0]]
    forced += [says(right[i - 1], i) for i in range(1, len(right))]
    free = [right[0]]
    for i in range(1, len(right)):
        free.append(says(free[-1], i))
    wrong = [
        sum(a != b for a, b in zip(x, right, strict=True))
        for x in (forced, free)
    ]
    assert wrong == [1, 6]


def test_bleu_is_of_a_corpus_and_of_tokens():
    lines = ["the cat sat on the mat .", "a dog ran away again ."]
    said = [line.split() for line in lines]
    meant = [said[0], [*said[1][:3], "off", "and", *said[1][3:]]]
    whole = decoding.bleu(said, meant)
    each = [decoding.bleu([s], [m]) for s, m in zip(said, meant, strict=True)]
    assert abs(whole - sum(each) / 2) > 5
    # The same words, with the full stop left on its word.
    glued = [" ".join(s).replace(" .", ".").split() for s in (*said, *meant)]
    assert abs(decoding.bleu(glued[:2], glued[2:]) - whole) > 1
    # "the" earns no more than the reference has of it.
    assert decoding.bleu([["the"] * 7], [meant[0]]) == 0


def test_a_length_penalty_lets_the_longer_hypothesis_win():
    def score(total, n, alpha=0.6):
        return total / ((5 + n) / 6) ** alpha

    assert score(-2.3, 6) > score(-2.0, 3)
    wrong = -2.3, -2.3 * (11 / 6) ** 0.6, -2.3 / 6
    answers("decoding-a-length-penalty", score(-2.3, 6), *wrong)


def test_top_p_keeps_the_token_that_crosses_the_line():
    p = torch.tensor([0.5, 0.2, 0.15, 0.1, 0.05])
    kept = decoding.sampling_filter(p.log(), None, 0.8, 1.0).softmax(-1)
    wrong = (p[0] / p[:2].sum()), p[0], (p[0] / 0.8)
    answers("decoding-top-p", kept[0], *wrong)


def test_a_low_temperature_widens_the_gap():
    logits = torch.tensor([2.0, 0.0])
    cold = decoding.sampling_filter(logits, None, None, 0.5).softmax(-1)
    plain = logits.softmax(-1)[0].item()
    wrong = (0.5 * logits).softmax(-1)[0], plain, plain / 2
    answers("decoding-temperature", cold[0], *wrong)


def positions_passed(model, src, n, cache):
    """How many target positions go through the first decoder layer."""
    seen = []
    layer = model.decoder.layers[0].feed_forward
    handle = layer.register_forward_pre_hook(
        lambda _, args: seen.append(args[0].shape[1])
    )
    if cache:
        decoding.cached_decode(model, src, torch.full((1, n), 5))
    else:
        for i in range(1, n + 1):
            model(src, torch.full((1, i), 5))
    handle.remove()
    return sum(seen)


def test_without_a_cache_the_positions_add_up_to_a_triangle():
    model, src = small_model(), torch.tensor([[BOS, 5, EOS]])
    for n in (3, 7):
        whole = positions_passed(model, src, n, cache=False)
        assert whole == n * (n + 1) // 2
    with_cache = positions_passed(model, src, 64, cache=True)
    wrong = 64 * 64 / with_cache, 1.0, 64 * 65 / 2
    answers(
        "decoding-work-without-a-cache",
        positions_passed(model, src, 64, cache=False) / with_cache,
        *wrong,
    )


def test_a_cache_takes_two_vectors_a_layer_and_token():
    config = transformer.TransformerConfig.base()
    vectors = 2 * config.num_layers * 1000
    size = vectors * config.d_model * 4 / 1e6
    wrong = size / 2, size / config.num_layers, size * config.num_heads
    answers("decoding-size-of-a-cache", size, *wrong)


def test_the_brevity_penalty_is_an_exponential():
    reference = [str(i) for i in range(10)]
    score = decoding.bleu([reference[:8]], [reference])
    wrong = 100 * 8 / 10, 100.0, 100 * math.exp(1 - 8 / 10)
    answers("decoding-brevity", score, *wrong)


def test_a_wider_search_finds_the_empty_sentence():
    """Each token is likely, the end is not; and still the end wins a sum."""
    vocabulary, right, n = 50, 0.7, 12
    other = (1 - right - 0.05) / (vocabulary - 4)

    def step_fn(tokens):
        p = torch.full((len(tokens), vocabulary), other)
        p[:, :2] = 0.0
        p[:, EOS], p[:, 3] = 0.05, right
        done = torch.tensor([len(row) > n for row in tokens])
        p[done] = 0.0
        p[done, EOS] = 1.0
        return p.log()

    assert right**n < 0.05
    narrow = decoding.beam_search(step_fn, BOS, EOS, 1, n + 1, 0.0)
    wide = decoding.beam_search(step_fn, BOS, EOS, 20, n + 1, 0.0)
    assert narrow == [3] * n + [EOS]
    assert wide == [EOS]


def test_a_step_of_one_token_stands_at_its_own_position():
    model = small_model()
    src = torch.tensor([[BOS, 5, 7, EOS]])
    tokens = torch.tensor([[BOS, 4, 4, 4]])
    full = model(src, tokens)
    # Every token at position 0: the first logits are right, and no others.
    alone = torch.cat([model(src, tokens[:, i : i + 1]) for i in range(4)], 1)
    assert_close(alone[:, :1], full[:, :1])
    assert (alone[:, 1:] - full[:, 1:]).abs().amax(-1).min() > 1e-3
    cached = decoding.cached_decode(model, src, tokens)
    assert_close(cached, full)


def test_a_step_reads_every_weight_for_one_position():
    network = small_model().encoder.layers[0].feed_forward
    weights = network.up_proj.weight.numel() + network.down_proj.weight.numel()
    for positions in (1, 100):
        with FlopCounterMode(display=False) as counter:
            network(torch.randn(1, positions, 64))
        assert counter.get_total_flops() / weights == 2 * positions


def test_accept_or_resample_leaves_the_target_distribution():
    p = torch.tensor([0.5, 0.3, 0.2])
    q = torch.tensor([0.2, 0.7, 0.1])
    accepted = q * (p / q).clamp(max=1)
    rejected = 1 - accepted.sum()
    rest = (p - q).clamp(min=0)
    assert rest.sum().item() == pytest.approx(rejected.item())
    assert_close(accepted + rejected * rest / rest.sum(), p)
    assert (accepted + rejected * p - p).abs().max() > 0.05
    assert (accepted / accepted.sum() - p).abs().max() > 0.05


def test_one_wrong_word_of_six():
    meant = ["I", "love", "little", "cats", "and", "birds"]
    said = [*meant[:-1], "dogs"]
    shares = [5 / 6, 4 / 5, 3 / 4, 2 / 3]
    wrong = 100 * sum(shares) / 4, 100 * shares[0], 100 * math.prod(shares)
    answers("decoding-bleu-by-hand", decoding.bleu([said], [meant]), *wrong)
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

    wrong = (
        sentences(a_token // 2),
        sentences(a_token // config.num_layers),
        sentences(a_token * config.num_heads),
    )
    answers("decoding-cache-against-weights", sentences(a_token), *wrong)


def test_a_step_without_the_sources_mask_is_right_alone():
    torch.manual_seed(0)
    config = transformer.TransformerConfig.tiny(11, 11)
    model = transformer.Transformer(config).eval()
    broken = mistake("cached_decode", "shows padding")
    src = torch.tensor([[BOS, 5, 7, 3, EOS], [BOS, 9, EOS, 0, 0]])
    tgt = torch.tensor([[BOS, 4, 6, 8], [BOS, 3, 3, 7]])
    alone = broken(model, src[1:, :3], tgt[1:])
    assert_close(alone, model(src[1:, :3], tgt[1:]))
    with torch.no_grad():
        gap = (broken(model, src, tgt) - model(src, tgt)).abs().amax((1, 2))
    assert gap[0] < 1e-4 < 1e-2 < gap[1]


def test_a_loop_that_ignores_the_end_says_it_again():
    def step_fn(tokens):
        last = tokens[:, -1]
        # bos → 3 → 4 → eos, and behind an end the sentence begins again.
        follows = torch.tensor([0, 3, 3, 4, EOS])
        return F.one_hot(follows[last], 5).float()

    broken = mistake("greedy_decode", "ignores eos")
    right = decoding.greedy_decode(step_fn, BOS, EOS, 9)
    assert right == [3, 4, EOS]
    assert broken(step_fn, BOS, EOS, 9) == 3 * right
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
    broken, repaired = repair(name)
    for alpha in (0.0, 0.6, 5.0):
        assert broken(step_fn, BOS, EOS, 20, 9, alpha) == [EOS]
        assert repaired(step_fn, BOS, EOS, 20, 9, alpha) == long
    assert broken(step_fn, BOS, EOS, 1, 9, 0.0) == long


def test_a_filter_that_stays_sorted_likes_the_first_ids():
    name = "decoding-noise-from-the-nucleus"
    logits = torch.tensor([[0.1, 0.2, 3.0, 0.0, 4.0, 1.0, 2.0]])
    broken, repaired = repair(name)
    assert torch.equal(
        broken(logits, 4, None, 0.5), repaired(logits, 4, None, 0.5)
    )
    a, b = (f(logits, None, 0.95, 1.0) for f in (broken, repaired))
    assert a.isfinite().sum() == b.isfinite().sum()
    assert a.argmax() == 0
    assert b.argmax() == 4
    kept = b.isfinite()
    assert torch.equal(b[kept], logits[kept])


def test_guesses_bring_a_geometric_sum_of_tokens_a_pass():
    draw = torch.Generator().manual_seed(0)
    kept = torch.rand(100_000, 4, generator=draw) < 0.8
    in_a_row = kept.int().cumprod(-1).sum(-1)  # up to the first rejection
    expected = (1 - 0.8**5) / (1 - 0.8)
    assert (1 + in_a_row).float().mean().item() == pytest.approx(
        expected, abs=0.02
    )
    answers(
        "decoding-tokens-a-pass",
        expected,
        1 + 4 * 0.8,
        expected - 1,
        1 / (1 - 0.8),
    )
