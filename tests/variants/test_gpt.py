"""GPT: Hugging Face's GPT-2, PyTorch's causal stack, and what it writes."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import EncoderLayer
from companion.contracts import check
from companion.decoding import beam_search, greedy_decode, sample
from companion.masks import causal_mask
from companion.training import fit, linear
from companion.variants import (
    GPT,
    GPTConfig,
    cached_step,
    generate,
)
from companion.variants.gpt import GPT_PARTS
from companion.variants.parts import today

# All sizes differ, so no axis can stand in for another. Two heads of 14.
BATCH, SEQ, D_MODEL, NUM_HEADS, D_FF, VOCAB, LAYERS = 5, 7, 28, 2, 11, 19, 3
MAX_LEN, BOS, EOS = 13, 1, 2


def config(**changes):
    return GPTConfig(
        **{
            "vocab_size": VOCAB,
            "max_len": MAX_LEN,
            "d_model": D_MODEL,
            "num_heads": NUM_HEADS,
            "d_ff": D_FF,
            "num_layers": LAYERS,
            "dropout": 0.0,
        }
        | changes
    )


def model(parts=GPT_PARTS, **changes):
    """Weights so large that every part matters, gains and biases too."""
    made = GPT(config(**changes), parts)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made.eval()


@pytest.fixture
def tokens():
    return torch.randint(3, VOCAB, (BATCH, SEQ))


@pytest.fixture
def padded(tokens):
    """Words, then padding, of different lengths."""
    tokens[1, 4:] = tokens[3, 1:] = tokens[4, 6:] = 0
    return tokens


# Hugging Face's GPT-2, with our weights.


def hugging_face(ours):
    from transformers import GPT2Config, GPT2LMHeadModel

    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCAB,
            n_positions=MAX_LEN,
            n_embd=D_MODEL,
            n_head=NUM_HEADS,
            n_inner=D_FF,
            n_layer=LAYERS,
        )
    )
    missing = theirs.load_state_dict(translated(ours), strict=False)
    # The output is the table, which they list twice.
    assert missing == (["lm_head.weight"], [])
    return theirs.eval()


def translated(ours):
    """Our weights under their names; their maps are stored the other way."""
    state = {
        "transformer.wte.weight": ours.embedding.weight,
        "transformer.wpe.weight": ours.positions.weight,
        "transformer.ln_f.weight": ours.encoder.norm.gain,
        "transformer.ln_f.bias": ours.encoder.norm.bias,
    }
    names = {
        "attn.c_proj": "self_attention.out_proj",
        "mlp.c_fc": "feed_forward.up_proj",
        "mlp.c_proj": "feed_forward.down_proj",
    }
    for i, layer in enumerate(ours.encoder.layers):
        at = f"transformer.h.{i}."
        mine = layer.state_dict()
        for name, own in names.items():
            state[f"{at}{name}.weight"] = mine[f"{own}.weight"].T
            state[f"{at}{name}.bias"] = mine[f"{own}.bias"]
        parts = [f"self_attention.{x}_proj" for x in "qkv"]
        state[f"{at}attn.c_attn.weight"] = torch.cat(
            [mine[f"{part}.weight"].T for part in parts], dim=1
        )
        state[f"{at}attn.c_attn.bias"] = torch.cat(
            [mine[f"{part}.bias"] for part in parts]
        )
        for number, name in ((1, "attention"), (2, "feed_forward")):
            norm = f"{name}_residual.norm"
            state[f"{at}ln_{number}.weight"] = mine[f"{norm}.gain"]
            state[f"{at}ln_{number}.bias"] = mine[f"{norm}.bias"]
    return state


def test_it_is_hugging_face_s_gpt_2_and_so_are_its_gradients(tokens):
    ours = model()
    theirs = hugging_face(ours)
    logits, expected = ours(tokens), theirs(tokens).logits
    assert logits.shape == (BATCH, SEQ, VOCAB)
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)

    upstream = torch.randn_like(logits) / VOCAB
    torch.testing.assert_close(
        torch.autograd.grad(logits, ours.embedding.weight, upstream),
        torch.autograd.grad(expected, theirs.transformer.wte.weight, upstream),
        atol=1e-5,
        rtol=1e-4,
    )


def test_padding_is_hidden_as_hugging_face_hides_it(padded):
    ours, real = model(pad=0), padded != 0
    theirs = hugging_face(ours)(padded, attention_mask=real.long()).logits
    torch.testing.assert_close(
        ours(padded)[real], theirs[real], atol=1e-5, rtol=1e-5
    )


def test_padding_between_words_is_hidden_as_hugging_face_hides_it(tokens):
    tokens[0, 2] = tokens[2, 3:5] = 0
    ours, real = model(pad=0), tokens != 0
    theirs = hugging_face(ours)(tokens, attention_mask=real.long()).logits
    torch.testing.assert_close(
        ours(tokens)[real], theirs[real], atol=1e-5, rtol=1e-5
    )
    # It matters: without the mask the words after it say something else.
    assert (ours(tokens) - model(pad=None)(tokens))[0, 3:].abs().max() > 0.1


def test_the_published_sizes_have_the_published_number_of_parameters():
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):
        ours, theirs = GPT(GPTConfig.base()), GPT2LMHeadModel(GPT2Config())
    counts = [sum(p.numel() for p in m.parameters()) for m in (ours, theirs)]
    tables = 768 * (50_257 + 1024)
    layer = 4 * (768**2 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    assert counts == [tables + 12 * layer + 2 * 768] * 2 == [124_439_808] * 2
    assert tables == 39_383_808
    assert round(100 * tables / counts[0], 1) == 31.6


# A layer of GPT is a layer of the encoder under a causal mask.


def torch_layer(ours):
    theirs = nn.TransformerEncoderLayer(
        D_MODEL,
        NUM_HEADS,
        D_FF,
        dropout=0.0,
        activation=GPT_PARTS.feed_forward.keywords["activation"],
        batch_first=True,
        norm_first=True,
    )
    mine = ours.state_dict()
    names = {
        "linear1": "feed_forward.up_proj",
        "linear2": "feed_forward.down_proj",
        "self_attn.out_proj": "self_attention.out_proj",
    }
    state = {
        f"{name}.{part}": mine[f"{own}.{part}"]
        for name, own in names.items()
        for part in ("weight", "bias")
    }
    for number, name in ((1, "attention"), (2, "feed_forward")):
        state[f"norm{number}.weight"] = mine[f"{name}_residual.norm.gain"]
        state[f"norm{number}.bias"] = mine[f"{name}_residual.norm.bias"]
    for part in ("weight", "bias"):
        state[f"self_attn.in_proj_{part}"] = torch.cat(
            [mine[f"self_attention.{x}_proj.{part}"] for x in "qkv"]
        )
    theirs.load_state_dict(state)
    return theirs


def test_a_gpt_layer_is_an_encoder_layer_under_a_causal_mask():
    layer = model().encoder.layers[0]
    x, mask = torch.randn(BATCH, SEQ, D_MODEL), causal_mask(SEQ)
    ours = EncoderLayer(
        D_MODEL, NUM_HEADS, D_FF, norm_first=True, parts=GPT_PARTS
    )
    ours.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x, mask), ours(x, mask))
    theirs = torch_layer(layer)(x, src_mask=~mask, is_causal=True)
    torch.testing.assert_close(layer(x, mask), theirs, atol=1e-5, rtol=1e-5)
    # Without the mask it is the encoder's, and says something else.
    assert (layer(x) - theirs)[:, :-1].abs().max() > 0.1


def test_the_stack_is_the_layers_one_after_the_other_under_that_mask(tokens):
    ours, mask = model(), causal_mask(SEQ)
    x = ours.embedding.weight[tokens] + ours.positions.weight[:SEQ]
    for layer in ours.encoder.layers:
        x = torch_layer(layer)(x, src_mask=~mask, is_causal=True)
    norm = ours.encoder.norm
    x = F.layer_norm(x, (D_MODEL,), norm.gain, norm.bias)
    torch.testing.assert_close(
        ours(tokens), x @ ours.embedding.weight.T, atol=1e-4, rtol=1e-4
    )


def test_no_logit_has_a_gradient_from_its_future(tokens):
    ours, seen = model(), []
    ours.embedding.register_forward_hook(
        lambda module, args, output: seen.append(output)
    )
    logits = ours(tokens)
    reach = torch.stack(
        [
            torch.autograd.grad(row.sum(), seen[0], retain_graph=True)[0]
            .abs()
            .amax((0, 2))
            for row in logits.unbind(1)
        ]
    )
    assert torch.equal(reach > 0, causal_mask(SEQ))


def test_one_table_reads_and_writes():
    names = [name for name, _ in model().named_parameters()]
    assert [n for n in names if "layers" not in n] == [
        "embedding.weight",
        "positions.weight",
        "encoder.norm.gain",
        "encoder.norm.bias",
    ]


@pytest.mark.parametrize("changes", [{}, {"pad": 0}, {"norm_first": False}])
def test_the_package_keeps_the_contract_of_language_models(changes):
    report = check("language_model", GPT(config(**changes)).eval())
    assert report.passed, str(report)


def test_it_starts_with_small_weights_and_smaller_ones_where_they_add_up():
    sizes = {"vocab_size": 1009, "d_model": 128, "d_ff": 512}
    made = GPT(config(max_len=1024, num_layers=2, **sizes))
    layer = made.encoder.layers[0]
    spread = {
        "table": made.embedding.weight,
        "positions": made.positions.weight,
        "keys": layer.self_attention.k_proj.weight,
        "up": layer.feed_forward.up_proj.weight,
        "out": layer.self_attention.out_proj.weight,
        "down": layer.feed_forward.down_proj.weight,
    }
    found = {name: weight.std().item() for name, weight in spread.items()}
    wanted = dict.fromkeys(spread, 0.02) | {"out": 0.01, "down": 0.01}
    assert found == pytest.approx(wanted, rel=0.05)
    assert not layer.feed_forward.up_proj.bias.any()


def test_gpt_1_normalises_after_each_part_and_has_no_norm_at_the_end(tokens):
    first = GPT(config(norm_first=False))
    assert isinstance(first.encoder.norm, nn.Identity)
    states = first.states(tokens)
    torch.testing.assert_close(states.mean(-1), torch.zeros(BATCH, SEQ))


def test_dropout_acts_in_training_only(tokens):
    noisy = GPT(config(dropout=0.5))
    noisy.encoder.eval()  # What is embedded is dropped, too.
    assert not torch.equal(noisy(tokens), noisy(tokens))
    layer = noisy.train().encoder.layers[0]
    x = torch.randn(BATCH, SEQ, D_MODEL)
    assert not torch.equal(layer(x), layer(x))
    # The weights of the attention are not.
    assert torch.equal(layer.self_attention(x), layer.self_attention(x))
    noisy.eval()
    assert torch.equal(noisy(tokens), noisy(tokens))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_tiny_one_learns_to_count_in_seconds(seed):
    """Words stand in a ring, so that each one tells the next."""
    torch.manual_seed(seed)
    starts = torch.randint(11, (80, 16, 1))
    batches = [((row + torch.arange(9)) % 11 + 3,) for row in starts]
    tiny = GPT(GPTConfig.tiny(14))
    rate = {"rate": lambda step: linear(step, 80, peak=3e-3, warmup=10)}
    told = fit(tiny, batches, **rate)
    assert told[0].loss == pytest.approx(2.6, abs=0.2)  # log 14
    assert told[-1].loss < 0.3
    said = greedy_decode(cached_step(tiny), 3, EOS, 20)
    assert said == [(i + 1) % 11 + 3 for i in range(20)]


# The block of today, in the same model.


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_it_takes_the_parts_of_today_and_then_needs_no_table(tokens, kv_heads):
    modern = model(today(kv_heads), max_len=None)
    assert not [n for n, _ in modern.named_parameters() if "bias" in n]
    assert not [n for n, _ in modern.named_parameters() if "positions" in n]
    assert modern(torch.randint(3, VOCAB, (2, 5 * MAX_LEN))).isfinite().all()
    report = check("language_model", modern)
    assert report.passed, str(report)


# What it writes, with stored keys and values.

CACHED = [
    pytest.param({}, id="gpt"),
    pytest.param({"pad": 0}, id="pad"),
    pytest.param({"norm_first": False}, id="post-ln"),
    pytest.param({"parts": today(1), "max_len": None}, id="today"),
]


def recomputed(ours):
    """A step_fn that computes every position, every time."""

    @torch.no_grad()
    def step(tokens):
        logits = ours(tokens)[:, -1]
        if ours.config.pad is not None:
            logits[:, ours.config.pad] = -torch.inf
        return logits

    return step


@pytest.mark.parametrize("changes", CACHED)
def test_one_position_at_a_time_gives_the_logits_of_all_at_once(
    tokens, changes
):
    ours = model(**changes)
    step, plain = cached_step(ours), recomputed(ours)
    for length in range(1, SEQ + 1):
        torch.testing.assert_close(
            step(tokens[:, :length]),
            plain(tokens[:, :length]),
            atol=1e-4,
            rtol=1e-4,
        )


def test_padding_that_was_read_is_hidden_from_what_comes_after(tokens):
    tokens[0, 2] = tokens[2, 3:5] = 0
    ours = model(pad=0)
    step, plain = cached_step(ours), recomputed(ours)
    for length in range(1, SEQ + 1):
        torch.testing.assert_close(
            step(tokens[:, :length]),
            plain(tokens[:, :length]),
            atol=1e-4,
            rtol=1e-4,
        )


def counted(ours):
    """How many positions each call of the first layer's k_proj computes."""
    lengths = []
    attention = ours.encoder.layers[0].self_attention
    attention.k_proj.register_forward_hook(
        lambda module, args, output: lengths.append(args[0].shape[1])
    )
    return lengths


def test_no_position_is_computed_twice(tokens):
    ours = model()
    lengths, step = counted(ours), cached_step(ours)
    for length in range(1, SEQ + 1):
        step(tokens[:, :length])
        assert lengths == [1] * length
    plain = recomputed(ours)
    lengths.clear()
    for length in range(1, SEQ + 1):
        plain(tokens[:, :length])
    assert sum(lengths) == SEQ * (SEQ + 1) / 2


@pytest.mark.parametrize("changes", CACHED)
def test_a_row_that_is_another_one_is_read_from_its_beginning(tokens, changes):
    ours = model(**changes)
    step, plain = cached_step(ours), recomputed(ours)
    other = tokens.clone()
    other[2, 1] = 3 + (other[2, 1] - 2) % (VOCAB - 3)
    rows = [tokens[:, :4], other[:, :5], other[:, :5], tokens[:, :3]]
    for row in [*rows, tokens[:2, :4], tokens.flip(0)[:, :5]]:
        torch.testing.assert_close(step(row), plain(row), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("eos", [EOS, VOCAB])  # One that nobody can say.
@pytest.mark.parametrize("changes", CACHED)
def test_greedy_beam_and_sampled_text_are_those_without_a_cache(changes, eos):
    ours = model(**changes)

    def drawn(step_fn):
        draws = torch.Generator().manual_seed(3)
        return sample(
            step_fn, BOS, eos, 12, generator=draws, top_k=7, temperature=3.0
        )

    searches = [
        lambda step_fn: greedy_decode(step_fn, BOS, eos, 12),
        lambda step_fn: beam_search(step_fn, BOS, eos, 3, 12, 0.6),
        drawn,
    ]
    for search in searches:
        said = search(cached_step(ours))
        assert said == search(recomputed(ours))
        assert len(said) == 12 or said[-1] == eos


def test_a_step_that_was_stopped_half_way_is_taken_anew(tokens):
    ours = model()
    step, last = cached_step(ours), ours.encoder.layers[-1]
    step(tokens[:, :3])

    def stop(module, args):
        raise KeyboardInterrupt

    hook = last.feed_forward.register_forward_pre_hook(stop)
    with hook, pytest.raises(KeyboardInterrupt):
        step(tokens[:, :4])
    torch.testing.assert_close(
        step(tokens[:, :4]),
        recomputed(ours)(tokens[:, :4]),
        atol=1e-4,
        rtol=1e-4,
    )


def test_what_stands_before_each_row_is_read_once(tokens):
    ours = model()
    lengths = counted(ours)
    before, plain = [5, 3, 7], recomputed(ours)
    step = cached_step(ours, before)
    for length in (1, 2, 3):
        whole = torch.tensor([before] * BATCH)
        whole = torch.cat([whole, tokens[:, :length]], dim=1)
        got = step(tokens[:, :length])
        assert lengths == [4, 1, 1][:length]
        torch.testing.assert_close(got, plain(whole), atol=1e-4, rtol=1e-4)
        del lengths[length:]


def test_what_is_generated_is_what_is_drawn_after_the_whole_prompt():
    ours, prompt = model(), [5, 3, 7, 11]

    def rows(tokens):
        whole = torch.tensor([[*prompt[:-1], *row] for row in tokens.tolist()])
        return recomputed(ours)(whole)

    settings = {"top_k": 7, "top_p": 0.8, "temperature": 4.0}

    def both(settings):
        draws = [torch.Generator().manual_seed(3) for _ in range(2)]
        said = generate(
            ours, prompt, 9, eos=VOCAB, generator=draws[0], **settings
        )
        wanted = sample(rows, 11, VOCAB, 9, generator=draws[1], **settings)
        assert said == wanted
        return said

    # Each setting counts.
    said = [both(settings | {name: None}) for name in settings]
    assert len({tuple(row) for row in [*said, both(settings)]}) == 4


def test_padding_is_never_said():
    ours = model(pad=0)
    with torch.no_grad():
        ours.encoder.norm.bias.copy_(9 * ours.embedding.weight[0])
    assert int(ours(torch.tensor([[BOS]])).argmax()) == 0
    said = greedy_decode(cached_step(ours), BOS, EOS, 12)
    assert 0 not in said


def test_writing_drops_nothing_and_leaves_the_mode_as_it_was(tokens):
    ours = model(dropout=0.5).train()
    ours.encoder.layers[1].eval()
    step = cached_step(ours)
    assert torch.equal(step(tokens), cached_step(ours)(tokens))
    assert ours.training
    assert ours.encoder.layers[0].training
    assert not ours.encoder.layers[1].training
    assert not step(tokens).requires_grad


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_len": 0}, r"max_len: expected at least 1, got 0"),
        ({"vocab_size": 0}, r"vocab_size: expected at least 1, got 0"),
        ({"num_heads": 3}, r"num_heads: expected a divisor of d_model = 28"),
        ({"pad": 19}, r"pad: expected an id from 0 to below 19.*got 19"),
    ],
)
def test_a_size_that_cannot_be_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


@pytest.mark.bad_input
def test_another_type_is_named(tokens):
    with pytest.raises(TypeError, match=r"max_len: expected an int, got 2\.5"):
        config(max_len=2.5)
    other = dataclasses.asdict(config())
    with pytest.raises(TypeError, match="expected a GPTConfig, got dict"):
        GPT(other)
    with pytest.raises(TypeError, match="model: expected a CausalModel, got"):
        cached_step(nn.Linear(2, 3))
    with pytest.raises(TypeError, match=r"tokens: expected a tensor of int"):
        model()(tokens.double())


@pytest.mark.bad_input
@pytest.mark.parametrize("made", [lambda m: m, cached_step])
def test_more_tokens_than_positions_are_refused_with_both_numbers(made):
    long = torch.full((2, MAX_LEN + 1), 3)
    fn = made(model())
    message = r"tokens: expected at most max_len = 13 in a row, got 14"
    with pytest.raises(ValueError, match=message):
        fn(long)
    assert fn(long[:, 1:]).isfinite().all()


@pytest.mark.bad_input
@pytest.mark.parametrize("made", [lambda m: m, cached_step])
def test_tokens_that_do_not_fit_are_named(made, tokens):
    fn = made(model())
    with pytest.raises(ValueError, match=r"tokens: expected ids from 0 to 18"):
        fn(tokens + VOCAB)
    with pytest.raises(ValueError, match=r"tokens: expected at least one id"):
        fn(tokens[:, :0])


@pytest.mark.bad_input
def test_tokens_without_a_batch_and_an_empty_prompt_are_named(tokens):
    with pytest.raises(ValueError, match=r"tokens: expected 2 axes"):
        model()(tokens[0])
    draws = torch.Generator()
    with pytest.raises(ValueError, match="prompt: expected at least one id"):
        generate(model(), [], 5, eos=EOS, generator=draws)
