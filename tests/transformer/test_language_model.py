"""The language model: PyTorch's stack, causal, and blind to padding."""

from dataclasses import FrozenInstanceError

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from companion.contracts import check
from companion.transformer import LanguageModel, LanguageModelConfig

# All sizes differ, so no axis can stand in for another. Two heads of 13.
BATCH, SEQ, D_MODEL, NUM_HEADS, D_FF, VOCAB, LAYERS = 5, 7, 26, 2, 11, 19, 3
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


def config(**changes):
    return LanguageModelConfig(
        **{
            "vocab_size": VOCAB,
            "d_model": D_MODEL,
            "num_heads": NUM_HEADS,
            "d_ff": D_FF,
            "num_layers": LAYERS,
            "dropout": 0.0,
        }
        | changes
    )


def model(**changes):
    """Gains of 1 and biases of 0 would hide a gain or a bias that is lost."""
    made = LanguageModel(config(**changes)).double()
    for name, parameter in made.named_parameters():
        if name.endswith(("gain", "bias")):
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


@pytest.fixture
def tokens():
    """Sentences without padding."""
    return torch.randint(1, VOCAB, (BATCH, SEQ))


# PyTorch's own stack, with our weights.


def torch_stack(ours):
    layer = nn.TransformerEncoderLayer(
        D_MODEL,
        NUM_HEADS,
        D_FF,
        dropout=0.0,
        batch_first=True,
        norm_first=ours.config.norm_first,
        dtype=torch.float64,
    )
    norm = None
    if ours.config.norm_first:
        norm = nn.LayerNorm(D_MODEL, dtype=torch.float64)
        norm.weight.data.copy_(ours.encoder.norm.gain)
        norm.bias.data.copy_(ours.encoder.norm.bias)
    theirs = nn.TransformerEncoder(
        layer, LAYERS, norm, enable_nested_tensor=False
    )
    for mine, layer in zip(ours.encoder.layers, theirs.layers, strict=True):
        layer.load_state_dict(translated(mine.state_dict()))
    return theirs


def translated(mine):
    names = {
        "self_attention.out_proj.weight": "self_attn.out_proj.weight",
        "self_attention.out_proj.bias": "self_attn.out_proj.bias",
        "feed_forward.up_proj.weight": "linear1.weight",
        "feed_forward.up_proj.bias": "linear1.bias",
        "feed_forward.down_proj.weight": "linear2.weight",
        "feed_forward.down_proj.bias": "linear2.bias",
        "attention_residual.norm.gain": "norm1.weight",
        "attention_residual.norm.bias": "norm1.bias",
        "feed_forward_residual.norm.gain": "norm2.weight",
        "feed_forward_residual.norm.bias": "norm2.bias",
    }
    state = {theirs: mine[ours] for ours, theirs in names.items()}
    for part in ("weight", "bias"):
        state[f"self_attn.in_proj_{part}"] = torch.cat(
            [mine[f"self_attention.{x}_proj.{part}"] for x in "qkv"]
        )
    return state


def torch_logits(ours, tokens, padding=None):
    """PyTorch's stack between embeddings and an output written out here."""
    table, seq = ours.embedding.weight, tokens.shape[1]
    rate = 10_000 ** (-torch.arange(0, D_MODEL, 2).double() / D_MODEL)
    angle = torch.arange(seq)[:, None] * rate
    positions = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
    x = F.embedding(tokens, table) * D_MODEL**0.5 + positions
    # True in PyTorch's masks hides.
    hidden = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    states = torch_stack(ours)(
        x, mask=hidden, src_key_padding_mask=padding, is_causal=True
    )
    return states @ table.T


@ORDERS
def test_it_is_pytorch_s_causal_encoder_and_so_are_its_gradients(
    tokens, norm_first
):
    ours = model(norm_first=norm_first)
    logits, expected = ours(tokens), torch_logits(ours, tokens)
    assert logits.shape == (BATCH, SEQ, VOCAB)
    torch.testing.assert_close(logits, expected)

    upstream, table = torch.randn_like(logits), ours.embedding.weight
    torch.testing.assert_close(
        torch.autograd.grad(logits, table, upstream),
        torch.autograd.grad(expected, table, upstream),
    )


def test_padding_between_the_words_is_hidden_as_pytorch_hides_it(tokens):
    tokens[1, 3] = tokens[2, 2:4] = tokens[0, 5:] = 0
    ours, padding = model(), tokens == 0
    torch.testing.assert_close(
        ours(tokens)[~padding], torch_logits(ours, tokens, padding)[~padding]
    )


def test_without_a_pad_every_token_counts(tokens):
    tokens[1, 3] = 0
    ours = model(pad=None)
    torch.testing.assert_close(ours(tokens), torch_logits(ours, tokens))


@ORDERS
def test_the_package_keeps_the_contract_of_language_models(norm_first):
    made = LanguageModel(config(norm_first=norm_first)).eval()
    report = check("language_model", made)
    assert report.passed, str(report)


# Invariants.


@pytest.mark.parametrize("pad", [0, 3])
def test_padding_at_the_end_changes_nothing_before_it(tokens, pad):
    tokens[tokens == pad] = 7
    ours, longer = model(pad=pad), F.pad(tokens, (0, 4), value=pad)
    torch.testing.assert_close(ours(longer)[:, :SEQ], ours(tokens))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_a_row_that_is_all_padding_is_finite_and_so_is_its_gradient(tokens):
    tokens[2] = 0
    ours = model()
    with torch.autograd.detect_anomaly(check_nan=True):
        ours(tokens).sum().backward()
    assert all(p.grad.isfinite().all() for p in ours.parameters())


def test_logits_of_states_is_the_model_s_answer(tokens):
    ours = model()
    states = ours.states(tokens)
    torch.testing.assert_close(ours.logits(states), ours(tokens))
    picked = states[tokens == 7]
    torch.testing.assert_close(ours.logits(picked), ours(tokens)[tokens == 7])


def test_one_table_reads_and_writes_and_there_is_no_other_output():
    made = LanguageModel(config())
    table = VOCAB * D_MODEL
    layer = 4 * (D_MODEL**2 + D_MODEL) + 2 * D_MODEL * D_FF + D_FF
    layer += D_MODEL + 4 * D_MODEL
    count = sum(p.numel() for p in made.parameters())
    assert count == table + LAYERS * layer


def test_dropout_acts_in_training_only(tokens):
    noisy = LanguageModel(config(dropout=0.5))
    assert not torch.equal(noisy(tokens), noisy(tokens))
    noisy.encoder.eval()  # What is embedded is dropped, too (section 5.4).
    assert not torch.equal(noisy(tokens), noisy(tokens))
    noisy.eval()
    assert torch.equal(noisy(tokens), noisy(tokens))


def test_untrained_logits_have_about_the_variance_that_chance_has():
    made = LanguageModel(config(vocab_size=101, d_model=52, d_ff=97))
    logits = made(torch.randint(1, 101, (13, 17)))
    assert 0.5 < logits.std() < 2


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0}, r"vocab_size: expected at least 1, got 0"),
        ({"d_ff": 0}, r"d_ff: expected at least 1, got 0"),
        ({"num_layers": 0}, r"num_layers: expected at least 1, got 0"),
        ({"num_heads": 3}, r"num_heads: expected a divisor of d_model = 26"),
        ({"dropout": 1.0}, r"dropout: expected a probability"),
        ({"pad": 19}, r"pad: expected an id from 0 to below 19.*got 19"),
        ({"pad": -1}, r"pad: expected an id from 0 to below 19.*got -1"),
    ],
)
def test_a_size_that_cannot_be_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        config(**changes)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 2.5}, r"vocab_size: expected an int, got 2\.5"),
        ({"pad": "0"}, r"pad: expected an int, got '0'"),
        ({"norm_first": 1}, r"norm_first: expected True or False, got 1"),
    ],
)
def test_another_type_is_named(changes, message):
    with pytest.raises(TypeError, match=message):
        config(**changes)


def test_the_sizes_cannot_be_changed_later():
    with pytest.raises(FrozenInstanceError):
        config().d_model = 5


@pytest.mark.bad_input
def test_what_is_no_config_is_named():
    with pytest.raises(TypeError, match="expected a LanguageModelConfig, got"):
        LanguageModel({"vocab_size": VOCAB})


@pytest.mark.bad_input
def test_tokens_that_do_not_fit_are_named(tokens):
    ours = model()
    with pytest.raises(ValueError, match=r"tokens: expected ids from 0 to 18"):
        ours(tokens + VOCAB)
    with pytest.raises(ValueError, match=r"tokens: expected \(batch, seq\)"):
        ours(tokens[0])
    with pytest.raises(TypeError, match=r"tokens: expected a tensor of token"):
        ours(tokens.double())
    with pytest.raises(ValueError, match=r"x: expected vectors of width 26"):
        ours.logits(torch.ones(3, 5, dtype=torch.float64))
