"""Searching, sampling and BLEU: oracles agree, cases on paper hold."""

import itertools
import math

import pytest
import sacrebleu
import torch
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.generation.logits_process import (
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.modeling_outputs import CausalLMOutput

from companion.data import phrasebook
from companion.decoding import (
    beam_search,
    bleu,
    greedy_decode,
    length_penalty,
    sample,
    sampling_filter,
)

VOCAB, BOS, EOS = 5, 1, 2
ALPHAS = pytest.mark.parametrize("alpha", [0, 0.6, 1.7])


def random_model(seed, vocab=VOCAB):
    """A step_fn whose scores depend on all that has been said."""
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(999, vocab, generator=generator, dtype=torch.double)

    def step(tokens):
        assert (tokens[:, 0] == BOS).all()
        powers = 7 ** torch.arange(tokens.shape[1])
        return 2 * numbers[(tokens * powers).sum(1) % 999]

    return step


def table(**rows):
    """A step_fn on paper: probabilities of a, b and eos after what was said.

    ``rows`` is keyed by what was said; the ids are bos 1, eos 2, a 3, b 4.
    """

    def step(tokens):
        said = ("".join(" _.ab"[i] for i in row) for row in tokens.tolist())
        shares = [rows[s.replace("_", "s")] for s in said]
        order = [[0, 0, end, a, b] for a, b, end in shares]
        return torch.tensor(order, dtype=torch.double).log()

    return step


A, B = 3, 4
# After a, nothing is likely. b begins worse and ends better.
TREE = table(
    s=(0.6, 0.4, 0.0),
    sa=(0.36, 0.34, 0.3),
    sb=(0.05, 0.05, 0.9),
    saa=(0, 0, 1),
    sab=(0, 0, 1),
    sba=(0, 0, 1),
    sbb=(0, 0, 1),
)


def score(step, tokens, alpha):
    total = 0.0
    for i, token in enumerate(tokens):
        logits = step(torch.tensor([[BOS, *tokens[:i]]]))
        total += logits.log_softmax(-1)[0, token].item()
    return total / ((5 + len(tokens)) / 6) ** alpha


def sentences(max_len):
    """Every sentence that ends, and those that were cut."""
    others = [token for token in range(VOCAB) if token != EOS]
    for length in range(max_len):
        for start in itertools.product(others, repeat=length):
            yield [*start, EOS]
    yield from map(list, itertools.product(others, repeat=max_len))


def pruned(step, beam, max_len, alpha):
    """Beam search once more, written another way: all that is alive, sorted."""
    alive, ended = [[]], []
    while alive and len(ended) < beam and len(alive[0]) < max_len:
        longer = [[*s, token] for s in alive for token in range(VOCAB)]
        longer.sort(key=lambda s: -score(step, s, 0))
        longer = longer[: beam - len(ended)]
        ended += [s for s in longer if s[-1] == EOS]
        alive = [s for s in longer if s[-1] != EOS]
    return max(ended + alive, key=lambda s: score(step, s, alpha))


class Wrapped(PreTrainedModel, GenerationMixin):
    """A step_fn as Hugging Face wants a model."""

    config_class = PretrainedConfig

    def __init__(self, step):
        config = PretrainedConfig(
            vocab_size=VOCAB, is_encoder_decoder=False, num_hidden_layers=0
        )
        super().__init__(config)
        self.step = step
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, input_ids, attention_mask=None, **_):
        starts = range(1, input_ids.shape[1] + 1)
        logits = [self.step(input_ids[:, :i]) for i in starts]
        return CausalLMOutput(logits=torch.stack(logits, dim=1))

    def prepare_inputs_for_generation(
        self, input_ids, attention_mask=None, **_
    ):
        return {"input_ids": input_ids}


def generated(step, max_len, **settings):
    ids = Wrapped(step).generate(
        torch.tensor([[BOS]]),
        attention_mask=torch.ones(1, 1),
        max_new_tokens=max_len,
        do_sample=False,
        use_cache=False,
        eos_token_id=EOS,
        pad_token_id=0,
        **settings,
    )
    said = ids[0, 1:].tolist()
    return said[: said.index(EOS) + 1] if EOS in said else said


# Greedy


def test_greedy_takes_the_best_token_each_time_on_paper():
    assert greedy_decode(TREE, BOS, EOS, 3) == [A, A, EOS]


@pytest.mark.parametrize("seed", range(7))
def test_greedy_agrees_with_hugging_face(seed):
    step = random_model(seed)
    assert greedy_decode(step, BOS, EOS, 11) == generated(step, 11)


def test_greedy_stops_at_eos_and_at_max_len():
    assert greedy_decode(TREE, BOS, EOS, 2) == [A, A]
    ended = greedy_decode(TREE, BOS, EOS, 100)
    assert ended == [A, A, EOS]


def test_0_is_a_token_to_begin_and_to_end_with():
    def back_to_0(rows):
        return torch.tensor([[1.0, 0.0]]).expand(len(rows), 2)

    assert greedy_decode(back_to_0, 0, 0, 5) == [0]


def test_a_search_reads_rows_that_begin_with_bos_and_grow_by_one():
    shapes = []

    def step(tokens):
        shapes.append(tuple(tokens.shape))
        return random_model(0)(tokens)

    said = greedy_decode(step, BOS, EOS, 5)
    assert shapes == [(1, i + 1) for i in range(len(said))]


# Beam


def test_a_beam_of_2_finds_on_paper_what_greedy_misses():
    # b eos: 0.4 · 0.9 = 0.36. a a eos: 0.6 · 0.36 = 0.22.
    assert beam_search(TREE, BOS, EOS, 2, 3, 0) == [B, EOS]
    assert beam_search(TREE, BOS, EOS, 1, 3, 0) == [A, A, EOS]


def test_without_a_length_penalty_the_shorter_of_two_wins_on_paper():
    # eos at once: 0.4. a a a eos: 0.6 · 0.8³ = 0.31, and four tokens.
    step = table(
        s=(0.6, 0, 0.4),
        sa=(0.8, 0.2, 0),
        saa=(0.8, 0.2, 0),
        saaa=(0.1, 0.1, 0.8),
    )
    assert beam_search(step, BOS, EOS, 2, 4, 0) == [EOS]
    # ln 0.4 / 1 = -0.92, and (ln 0.6 + 3 ln 0.8) / (9 / 6) = -0.79.
    assert beam_search(step, BOS, EOS, 2, 4, 1) == [A, A, A, EOS]


@ALPHAS
@pytest.mark.parametrize("seed", range(5))
def test_a_beam_as_wide_as_the_tree_is_brute_force(seed, alpha):
    step = random_model(seed)
    found = beam_search(step, BOS, EOS, VOCAB**3, 3, alpha)
    assert found == max(sentences(3), key=lambda s: score(step, s, alpha))


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_agrees_with_hugging_face(seed):
    step, settings = random_model(seed), {"length_penalty": 0.0}
    theirs = generated(
        step, 3, num_beams=VOCAB**2, early_stopping="never", **settings
    )
    assert beam_search(step, BOS, EOS, VOCAB**3, 3, 0) == theirs


@ALPHAS
@pytest.mark.parametrize("beam", [1, 2, 3])
def test_a_narrow_beam_prunes_by_sums_and_lets_the_ended_leave(beam, alpha):
    for seed in range(11):
        step = random_model(seed)
        expected = pruned(step, beam, 5, alpha)
        assert beam_search(step, BOS, EOS, beam, 5, alpha) == expected


@ALPHAS
def test_a_beam_of_1_is_greedy(alpha):
    for seed in range(23):
        step = random_model(seed)
        greedy = greedy_decode(step, BOS, EOS, 7)
        assert beam_search(step, BOS, EOS, 1, 7, alpha) == greedy


@ALPHAS
def test_no_pruned_search_scores_better_than_all_sentences(alpha):
    for seed in range(7):
        step = random_model(seed)
        best = max(score(step, s, alpha) for s in sentences(3))
        found = beam_search(step, BOS, EOS, 2, 3, alpha)
        assert score(step, found, alpha) <= best + 1e-12


def test_a_wider_beam_can_find_something_worse_on_paper():
    shares = {
        (): (0.4, 0.35, 0.25, 0, 0),
        (3,): (0.325, 0.175, 0.175, 0.175, 0.15),
        (4,): (0.31, 0.18, 0.17, 0.17, 0.17),
        (5,): (0.5, 0.5, 0, 0, 0),
    }

    def step(tokens):
        rows = []
        for _, *said in tokens.tolist():
            ends = said == [4, 3] or len(said) > 2
            five = shares.get(tuple(said), (0.2,) * 5)
            rows.append([0, 0, 1, *[0] * 5] if ends else [0, 0, 0, *five])
        return torch.tensor(rows, dtype=torch.double).log()

    # 0.35 · 0.31 = 0.1085. With three, both heirs of the third crowd it out.
    assert beam_search(step, BOS, EOS, 2, 5, 0) == [4, 3, EOS]
    wide = beam_search(step, BOS, EOS, 3, 5, 0)
    assert math.exp(score(step, wide, 0)) == pytest.approx(0.13 / 5)


def test_logits_and_log_probabilities_give_the_same_sentence():
    step = random_model(3)
    shifted = beam_search(lambda t: step(t) + 100, BOS, EOS, 3, 5, 0.6)
    assert shifted == beam_search(step, BOS, EOS, 3, 5, 0.6)


def test_sums_of_many_logs_are_kept_in_32_bits():
    # After 20 words the sum is -138, where float16 has steps of 1/8.
    def step(tokens):
        logits = torch.zeros(len(tokens), 1000, dtype=torch.float16)
        logits[:, 999] = 0.05
        return logits

    assert beam_search(step, BOS, EOS, 1, 40, 0.0) == [999] * 40


def test_a_forbidden_token_is_never_said():
    def step(tokens):
        logits = random_model(0)(tokens)
        logits[:, [0, BOS, A, B]] = -torch.inf
        return logits

    assert beam_search(step, BOS, EOS, 3, 4, 0.6) == [EOS]


def test_nobody_is_asked_what_follows_a_forbidden_token():
    asked = set()

    def step(tokens):
        asked.update(tokens.flatten().tolist())
        logits = torch.zeros(len(tokens), 5)
        logits[:, [0, BOS, A]] = -torch.inf
        return logits

    beam_search(step, BOS, EOS, 4, 3, 0.6)
    assert asked == {BOS, B}


def test_the_length_penalty_on_paper():
    assert length_penalty(1, 0.7) == 1
    assert length_penalty(7, 1) == 2
    assert length_penalty(7, 0) == 1
    assert length_penalty(19, 0.5) == 2


# Sampling

LOGITS = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625]).log()


def kept(top_k=None, top_p=None, temperature=None):
    logits = sampling_filter(LOGITS, top_k, top_p, temperature)
    return logits.isfinite().nonzero().flatten().tolist()


def test_a_filter_that_is_off_changes_nothing():
    assert torch.equal(sampling_filter(LOGITS, None, None, None), LOGITS)


def test_top_p_keeps_the_fewest_with_the_mass_on_paper():
    assert kept(top_p=0.5) == [0]
    assert kept(top_p=0.51) == [0, 1]
    assert kept(top_p=0.8) == [0, 1, 2]
    assert kept(top_p=1) == [0, 1, 2, 3, 4]
    assert kept(top_p=1e-9) == [0]


def test_top_k_comes_before_top_p_on_paper():
    # Of the two that top-k leaves, the best has 2/3.
    assert kept(top_k=2, top_p=0.6) == [0]
    assert kept(top_p=0.6) == [0, 1]


def test_temperature_comes_before_top_p_on_paper():
    # At temperature 1/2 shares are squared: 64, 16, 4, 1, 1 of 86.
    assert kept(top_p=0.7, temperature=0.5) == [0]
    assert kept(top_p=0.7) == [0, 1]


def test_top_k_keeps_whoever_ties_with_the_last():
    assert kept(top_k=3) == [0, 1, 2]
    assert kept(top_k=4) == [0, 1, 2, 3, 4]
    assert kept(top_k=99) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("top_k", [None, 1, 3, 40])
@pytest.mark.parametrize("top_p", [None, 0.3, 0.9])
@pytest.mark.parametrize("temperature", [None, 0.3, 2.0])
def test_the_filter_agrees_with_hugging_face(top_k, top_p, temperature):
    logits = 3 * torch.randn(7, 23, dtype=torch.double)
    theirs = logits
    if temperature is not None:
        theirs = TemperatureLogitsWarper(temperature)(None, theirs)
    if top_k is not None:
        theirs = TopKLogitsWarper(min(top_k, 23))(None, theirs)
    if top_p is not None:
        theirs = TopPLogitsWarper(top_p)(None, theirs)
    ours = sampling_filter(logits, top_k, top_p, temperature)
    torch.testing.assert_close(ours, theirs)


def test_a_row_is_filtered_without_the_others():
    logits = torch.randn(2, 3, 7, dtype=torch.double)
    ours = sampling_filter(logits, 5, 0.7, 1.3)
    alone = sampling_filter(logits[1, 2], 5, 0.7, 1.3)
    torch.testing.assert_close(ours[1, 2], alone)


def test_samples_are_as_frequent_as_the_model_says():
    generator = torch.Generator().manual_seed(0)
    step = table(s=(0.5, 0.2, 0.3))
    drawn = [
        sample(step, BOS, EOS, 1, generator=generator)[0] for _ in range(2000)
    ]
    for token, share in ((A, 0.5), (B, 0.2), (EOS, 0.3)):
        assert abs(drawn.count(token) / 2000 - share) < 0.04  # 3.5 sigma


def test_sampling_with_top_k_1_is_greedy_and_a_seed_repeats_itself():
    step = random_model(5)

    def draw(seed, **settings):
        generator = torch.Generator().manual_seed(seed)
        return sample(step, BOS, EOS, 9, generator=generator, **settings)

    assert draw(0, top_k=1) == greedy_decode(step, BOS, EOS, 9)
    assert draw(0, temperature=1e-3) == greedy_decode(step, BOS, EOS, 9)
    assert draw(3) == draw(3)
    assert len({tuple(draw(seed)) for seed in range(9)}) > 1


@pytest.mark.parametrize("script", [[EOS], [A, EOS], [A, B, A, EOS], [B] * 9])
def test_what_is_drawn_ends_where_eos_was_drawn(script):
    def step(tokens):
        logits = torch.full((len(tokens), 9), -torch.inf)
        logits[:, script[tokens.shape[1] - 1]] = 0.0
        return logits

    generator = torch.Generator().manual_seed(0)
    assert sample(step, BOS, EOS, 9, generator=generator) == script


# BLEU


def theirs(hypotheses, references):
    joined = [[" ".join(s) for s in part] for part in (hypotheses, references)]
    return sacrebleu.corpus_bleu(
        joined[0],
        [joined[1]],
        tokenize="none",
        smooth_method="none",
        force=True,
    ).score


def test_bleu_on_paper():
    said = [["I", "love", "little", "cats", "and", "dogs"]]
    meant = [["I", "love", "little", "cats", "and", "birds"]]
    # 5/6, 4/5, 3/4, 2/3 of the n-grams: their product is 1/3.
    assert bleu(said, meant) == pytest.approx(100 * (1 / 3) ** 0.25)


def test_a_word_counts_as_often_as_the_reference_has_it():
    # "the" three times where the reference has it once: 1/3, not 3/3; and a
    # tail that makes the longer n-grams match.
    said = [["the", "the", "the", "cat", "sat", "on", "a", "mat"]]
    meant = [["cat", "sat", "on", "a", "mat", "by", "the", "door"]]
    # 6/8 words, 4/7 pairs, 3/6 triples, 2/5 fours.
    product = 6 / 8 * 4 / 7 * 3 / 6 * 2 / 5
    assert bleu(said, meant) == pytest.approx(100 * product**0.25)


def test_the_brevity_penalty_on_paper():
    whole = ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert bleu([whole], [whole]) == pytest.approx(100)
    assert bleu([whole[:4]], [whole]) == pytest.approx(100 * math.exp(-1))
    # Too long is punished by the precisions alone.
    assert bleu([whole], [whole[:4]]) == pytest.approx(
        100 * (4 / 8 * 3 / 7 * 2 / 6 * 1 / 5) ** 0.25
    )


def test_bleu_adds_up_counts_and_is_no_mean_of_sentences():
    long, short = ["a", "b", "c", "d", "e", "f", "g"], ["x", "y"]
    # Alone, the short sentence has no run of four, and so 0.
    assert bleu([short], [short]) == 0
    assert bleu([long, short], [long, short]) == pytest.approx(100)


@pytest.mark.parametrize("seed", range(5))
def test_bleu_agrees_with_sacrebleu_on_random_sentences(seed):
    generator = torch.Generator().manual_seed(seed)

    def drawn():
        length = int(torch.randint(1, 17, (), generator=generator))
        ids = torch.randint(4, (length,), generator=generator)
        return ["abcd"[i] for i in ids]

    pairs = [(drawn(), drawn()) for _ in range(13)]
    for size in (1, 2, 13):
        said, meant = zip(*pairs[:size], strict=True)
        assert bleu(said, meant) == pytest.approx(theirs(said, meant))


def test_bleu_agrees_with_sacrebleu_on_real_sentences():
    meant = [pair.en for pair in phrasebook.split()[1][:97]]
    said = [s[1:] if i % 3 else (*s, s[0]) for i, s in enumerate(meant)]
    assert 20 < bleu(said, meant) < 95
    assert bleu(said, meant) == pytest.approx(theirs(said, meant))


# Bad input

LIMITS = {"bos": BOS, "eos": EOS, "max_len": 3}


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["bos", "eos", "max_len", "beam"])
@pytest.mark.parametrize("wrong", [-1, 2.0, True, None])
def test_a_limit_or_id_that_is_none_is_named(name, wrong):
    settings = LIMITS | {"beam": 2, "alpha": 0.6} | {name: wrong}
    error = ValueError if wrong == -1 else TypeError
    with pytest.raises(error, match=f"{name}: expected"):
        beam_search(TREE, **settings)
    if name != "beam":
        with pytest.raises(error, match=f"{name}: expected"):
            greedy_decode(TREE, **LIMITS | {name: wrong})
        generator = torch.Generator()
        with pytest.raises(error, match=f"{name}: expected"):
            sample(TREE, **LIMITS | {name: wrong}, generator=generator)


@pytest.mark.bad_input
def test_nothing_to_write_and_no_beam_are_named():
    with pytest.raises(ValueError, match="max_len: expected at least 1, got 0"):
        greedy_decode(TREE, BOS, EOS, 0)
    with pytest.raises(ValueError, match="beam: expected at least 1, got 0"):
        beam_search(TREE, BOS, EOS, 0, 3, 0.6)


@pytest.mark.bad_input
@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
def test_an_alpha_below_0_is_named(alpha):
    with pytest.raises(ValueError, match="alpha: expected a number from 0"):
        beam_search(TREE, BOS, EOS, 2, 3, alpha)
    with pytest.raises(TypeError, match="alpha: expected a number, got '1'"):
        beam_search(TREE, BOS, EOS, 2, 3, "1")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("returned", "error", "says"),
    [
        ([[0.5] * 5], TypeError, "a floating-point tensor, got list"),
        (torch.ones(1, 5).long(), TypeError, "got torch.int64"),
        (torch.ones(5), ValueError, r"\(1, vocab\), .*got \(5,\)"),
        (torch.ones(2, 5), ValueError, r"\(1, vocab\), .*got \(2, 5\)"),
        (torch.ones(1, 5) * torch.nan, ValueError, r"nan .*after \[1\]"),
        (torch.ones(1, 5) * -torch.inf, ValueError, r"-inf .*after \[1\]"),
    ],
)
def test_what_a_step_may_not_return_is_named(returned, error, says):
    def step(tokens):
        return returned

    for search in (
        lambda: greedy_decode(step, **LIMITS),
        lambda: beam_search(step, **LIMITS, beam=2, alpha=0),
        lambda: sample(step, **LIMITS, generator=torch.Generator()),
    ):
        with pytest.raises(error, match=f"step_fn: expected .*{says}"):
            search()


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"top_k": 0}, ValueError, "top_k: expected at least 1, got 0"),
        ({"top_k": 1.0}, TypeError, "top_k: expected an int"),
        ({"top_p": 0}, ValueError, "top_p: expected a number above 0"),
        ({"top_p": 1.1}, ValueError, "top_p: expected a share up to 1"),
        ({"top_p": "1"}, TypeError, "top_p: expected a number"),
        ({"temperature": 0}, ValueError, "temperature: .*above 0, got 0"),
        ({"temperature": math.nan}, ValueError, "temperature: expected"),
    ],
)
def test_a_setting_that_samples_nothing_is_named(settings, error, says):
    off = {"top_k": None, "top_p": None, "temperature": None}
    with pytest.raises(error, match=says):
        sampling_filter(LOGITS, **off | settings)
    generator = torch.Generator()
    with pytest.raises(error, match=says):
        sample(TREE, **LIMITS, generator=generator, **settings)


@pytest.mark.bad_input
def test_logits_that_are_none_and_a_seed_for_a_generator_are_named():
    with pytest.raises(TypeError, match=r"logits: expected a floating-point"):
        sampling_filter(torch.ones(3).long(), 1, None, None)
    with pytest.raises(ValueError, match=r"logits: .*one token, got \(2, 0\)"):
        sampling_filter(torch.ones(2, 0), 1, None, None)
    with pytest.raises(TypeError, match=r"generator: .*Generator, got int"):
        sample(TREE, **LIMITS, generator=3)


@pytest.mark.bad_input
def test_bleu_names_strings_and_missing_references():
    with pytest.raises(TypeError, match=r"hypotheses: .*string 'a b' at 0"):
        bleu(["a b"], [["a", "b"]])
    with pytest.raises(TypeError, match=r"references: .*string 'a b' at 1"):
        bleu([["a"], ["b"]], [["a"], "a b"])
    with pytest.raises(ValueError, match=r"references: .*got 1 for 2"):
        bleu([["a"], ["b"]], [["a"]])
    with pytest.raises(ValueError, match="got 0 for 0"):
        bleu([], [])
