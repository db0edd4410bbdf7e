"""The whole Transformer: PyTorch agrees, and nobody sees what is hidden."""

import math
from dataclasses import FrozenInstanceError
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from contracts.right import built
from torch import nn

from companion.blocks import FeedForward, Parts
from companion.contracts import check
from companion.masks import Masks, combine_masks, to_torch_transformer
from companion.multihead import MultiHeadAttention
from companion.transformer import (
    Decoder,
    DecoderLayer,
    Encoder,
    Transformer,
    TransformerConfig,
    shift_right,
)
from companion.transformer.model import start_weights

# All sizes differ, so no axis can stand in for another. Two heads of 13.
BATCH, SRC, TGT, D_MODEL, NUM_HEADS, D_FF = 3, 5, 7, 26, 2, 11
SRC_VOCAB, TGT_VOCAB, PAD = 17, 19, 0
ORDERS = pytest.mark.parametrize("norm_first", [False, True])


def config(**changes):
    return TransformerConfig(
        **{
            "src_vocab_size": SRC_VOCAB,
            "tgt_vocab_size": TGT_VOCAB,
            "d_model": D_MODEL,
            "num_heads": NUM_HEADS,
            "d_ff": D_FF,
            "num_layers": 2,
            "dropout": 0.0,
        }
        | changes
    )


def shaken(module):
    """Gains of 1 and biases of 0 would hide a gain or a bias that is lost."""
    for name, parameter in module.named_parameters():
        if name.endswith(("gain", "bias")):
            with torch.no_grad():
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return module


def model(**changes):
    return shaken(Transformer(config(**changes)).double())


@ORDERS
def test_the_models_keep_their_contracts(norm_first):
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 17, "tgt_vocab_size": 11}
    small = config(**sizes, norm_first=norm_first)
    encoder = built(lambda: Encoder(small))
    whole = built(lambda: Transformer(small))
    source = torch.tensor([[3, 5, 2]])

    def going_on(tokens):
        return whole(source.expand(len(tokens), -1), tokens)

    for component, mine in (
        ("encoder", encoder),
        ("attention_maps", encoder.maps),
        ("translation_model", whole),
        ("language_model", going_on),
    ):
        report = check(component, mine)
        assert report.passed, str(report)


@pytest.fixture
def tokens():
    """Sources and targets; the ends of some are padding, sources at 3 or 4."""
    src = torch.randint(1, SRC_VOCAB, (BATCH, SRC))
    tgt = torch.randint(1, TGT_VOCAB, (BATCH, TGT))
    src[1, 3:] = src[2, 4:] = tgt[0, 5:] = PAD
    return src, tgt


@pytest.fixture
def vectors():
    x = torch.randn(BATCH, TGT, D_MODEL, dtype=torch.float64)
    return x, torch.randn(BATCH, SRC, D_MODEL, dtype=torch.float64)


# PyTorch's own model, with our weights.


def copied(theirs, ours):
    """Their encoder or decoder layer with the weights of ours."""
    names = {"feed_forward.up_proj": "linear1"}
    names["feed_forward.down_proj"] = "linear2"
    pairs = {"self_attention": "self_attn"}
    norms = ["attention", "feed_forward"]
    if isinstance(ours, DecoderLayer):
        pairs["cross_attention"] = "multihead_attn"
        norms.insert(1, "cross")
    state, mine = {}, ours.state_dict()
    for our_name, their_name in pairs.items():
        names[f"{our_name}.out_proj"] = f"{their_name}.out_proj"
        for part in ("weight", "bias"):
            state[f"{their_name}.in_proj_{part}"] = torch.cat(
                [mine[f"{our_name}.{x}_proj.{part}"] for x in "qkv"]
            )
    for our_name, their_name in names.items():
        for part in ("weight", "bias"):
            state[f"{their_name}.{part}"] = mine[f"{our_name}.{part}"]
    for i, norm in enumerate(norms, 1):
        state[f"norm{i}.weight"] = mine[f"{norm}_residual.norm.gain"]
        state[f"norm{i}.bias"] = mine[f"{norm}_residual.norm.bias"]
    theirs.load_state_dict(state)


def torch_model(ours):
    """``nn.Transformer`` with the weights of ours."""
    layers = len(ours.encoder.layers)
    theirs = nn.Transformer(
        D_MODEL,
        NUM_HEADS,
        layers,
        layers,
        D_FF,
        dropout=0.0,
        batch_first=True,
        norm_first=ours.config.norm_first,
        dtype=torch.float64,
    )
    for name in ("encoder", "decoder"):
        stack, our_stack = getattr(theirs, name), getattr(ours, name)
        for layer, our_layer in zip(
            stack.layers, our_stack.layers, strict=True
        ):
            copied(layer, our_layer)
        if ours.config.norm_first:
            stack.norm.weight.data.copy_(our_stack.norm.gain)
            stack.norm.bias.data.copy_(our_stack.norm.bias)
        else:
            # PyTorch norms the end of a post-LN stack a second time; the
            # paper does not, and nor do we.
            stack.norm = None
    return theirs


def torch_logits(ours, theirs, src, tgt, masks):
    """PyTorch's stacks, between embeddings and an output written out here."""

    def embedded(embedding, ids):
        rate = 10_000 ** (-torch.arange(0, D_MODEL, 2) / D_MODEL).double()
        angle = torch.arange(ids.shape[1])[:, None] * rate
        positions = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        return F.embedding(ids, embedding.weight) * D_MODEL**0.5 + positions

    states = theirs(
        embedded(ours.src_embedding, src),
        embedded(ours.tgt_embedding, tgt),
        **to_torch_transformer(masks, NUM_HEADS),
    )
    return states @ ours.tgt_embedding.weight.T


@ORDERS
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_the_model_is_pytorch_s_model_and_so_are_its_gradients(
    tokens, norm_first
):
    ours = model(norm_first=norm_first)
    theirs, masks = torch_model(ours), combine_masks(*tokens, PAD)
    expected = torch_logits(ours, theirs, *tokens, masks)
    logits = ours(*tokens)
    torch.testing.assert_close(logits, expected)

    wanted = [ours.src_embedding.weight, ours.tgt_embedding.weight]
    upstream = torch.randn_like(logits)
    torch.testing.assert_close(
        torch.autograd.grad(logits, wanted, upstream),
        torch.autograd.grad(expected, wanted, upstream),
    )


@ORDERS
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_it_is_pytorch_s_model_without_any_mask_too(vectors, norm_first):
    ours, (y, x) = model(norm_first=norm_first), vectors
    expected = torch_model(ours)(x, y)
    torch.testing.assert_close(ours.decoder(y, ours.encoder(x)), expected)


# The parameters, on paper.


def attention(d):
    return 4 * (d * d + d)


def network(d, d_ff):
    return d * d_ff + d_ff + d_ff * d + d


def norm(d):
    return 2 * d


def counted(module):
    return sum(p.numel() for p in module.parameters())


def test_the_base_model_has_63_082_496_parameters():
    with torch.device("meta"):
        base = Transformer(TransformerConfig.base())
    d, d_ff = 512, 2048
    encoder_layer = attention(d) + network(d, d_ff) + 2 * norm(d)
    decoder_layer = 2 * attention(d) + network(d, d_ff) + 3 * norm(d)
    assert counted(base.encoder.layers[0]) == encoder_layer == 3_152_384
    assert counted(base.decoder.layers[0]) == decoder_layer == 4_204_032
    table = 37_000 * d
    assert counted(base.src_embedding) == table == 18_944_000
    total = table + 6 * encoder_layer + 6 * decoder_layer
    assert counted(base) == total == 63_082_496


def test_pre_ln_has_two_norms_more_and_two_vocabularies_two_tables():
    post = counted(Transformer(config()))
    assert counted(Transformer(config(norm_first=True))) - post == 4 * D_MODEL
    one = Transformer(config(tgt_vocab_size=SRC_VOCAB, shared_vocab=True))
    two = Transformer(config(tgt_vocab_size=SRC_VOCAB))
    assert counted(two) - counted(one) == SRC_VOCAB * D_MODEL


def test_base_is_the_paper_s_and_tiny_is_small():
    base = TransformerConfig.base()
    assert (base.d_model, base.num_heads, base.d_ff) == (512, 8, 2048)
    assert (base.num_layers, base.dropout) == (6, 0.1)
    assert base.shared_vocab
    assert not base.norm_first
    assert counted(Transformer(TransformerConfig.tiny(17, 19))) < 200_000


def test_every_layer_has_weights_of_its_own():
    made = model()
    for stack in (made.encoder, made.decoder):
        first, second = (set(layer.parameters()) for layer in stack.layers)
        assert first.isdisjoint(second)


# The embeddings and the output.


def test_the_output_is_tied_to_the_target_and_if_shared_to_the_source():
    apart, shared = model(), model(tgt_vocab_size=SRC_VOCAB, shared_vocab=True)
    assert shared.src_embedding.weight is shared.tgt_embedding.weight
    assert apart.src_embedding.weight is not apart.tgt_embedding.weight
    x = torch.randn(BATCH, D_MODEL, dtype=torch.float64)
    expected = x @ apart.tgt_embedding.weight.T
    torch.testing.assert_close(apart.logits(x), expected)
    shapes = [tuple(p.shape) for p in apart.parameters()]
    assert shapes.count((TGT_VOCAB, D_MODEL)) == 1


def test_the_tied_table_gets_gradient_from_both_of_its_uses(tokens):
    made, (src, _) = model(), tokens
    tgt = torch.full((BATCH, TGT), 4)
    chosen = made(src, tgt)[..., 9].sum()
    (gradient,) = torch.autograd.grad(chosen, made.tgt_embedding.weight)
    # Token 4 was read, token 9 was scored, token 5 was neither.
    assert [bool(gradient[i].any()) for i in (4, 9, 5)] == [True, True, False]


@ORDERS
def test_a_new_model_knows_next_to_nothing(norm_first):
    # Logits of variance 1 cost half a nat more than ln V: log E[e^z] = 1/2.
    vocab = 1009
    made = Transformer(
        TransformerConfig(
            src_vocab_size=vocab,
            tgt_vocab_size=vocab,
            d_model=128,
            num_heads=2,
            d_ff=512,
            norm_first=norm_first,
            dropout=0.0,
        )
    )
    src, tgt, answer = torch.randint(1, vocab, (3, 29, 31)).unbind()
    logits = made(src, tgt)
    loss = F.cross_entropy(logits.flatten(0, 1), answer.flatten())
    assert abs(loss - (math.log(vocab) + 0.5)) < 0.1
    assert abs(logits.std() - 1) < 0.05


def test_linear_maps_start_as_xavier_says():
    made = Transformer(config(d_model=64, d_ff=256))
    linears = [m for m in made.modules() if isinstance(m, nn.Linear)]
    assert len(linears) == 2 * 6 + 2 * 10
    for linear in linears:
        expected = (2 / (linear.in_features + linear.out_features)) ** 0.5
        assert abs(linear.weight.std() / expected - 1) < 0.05
        assert not linear.bias.any()


OTHER_PARTS = Parts(
    norm=nn.RMSNorm,
    attention=partial(MultiHeadAttention, bias=False),
    cross_attention=partial(MultiHeadAttention, bias=False, v_head_dim=3),
    feed_forward=partial(FeedForward, activation=F.gelu, bias=False),
)


@ORDERS
def test_stacks_are_made_of_the_parts_they_are_given(vectors, norm_first):
    sizes, (x, memory) = config(norm_first=norm_first), vectors
    for make, inputs in ((Encoder, (x,)), (Decoder, (x, memory))):
        made = make(sizes, OTHER_PARTS).double()
        kinds = [type(m) for m in made.modules()]
        # Two residuals a layer, or three; one more norm where none would be.
        norms = 2 * (1 + len(inputs)) + norm_first
        assert kinds.count(nn.RMSNorm) == norms
        assert not any("bias" in name for name in made.state_dict())
        y = x
        for layer in made.layers:
            assert layer.feed_forward.activation is F.gelu
            y = layer(y, *inputs[1:])
        torch.testing.assert_close(made(*inputs), made.norm(y))
        assert isinstance(made.norm, nn.RMSNorm) == norm_first


def test_a_decoder_layer_s_two_attentions_may_differ(vectors):
    layer = DecoderLayer(D_MODEL, NUM_HEADS, D_FF, parts=OTHER_PARTS).double()
    own, cross = layer.self_attention, layer.cross_attention
    assert (own.v_proj.out_features, cross.v_proj.out_features) == (26, 6)
    x, memory = vectors
    y = layer.attention_residual(x, own)
    y = layer.cross_residual(y, lambda y: cross(y, key=memory))
    expected = layer.feed_forward_residual(y, layer.feed_forward)
    torch.testing.assert_close(layer(x, memory), expected)


def test_maps_without_a_bias_start_as_xavier_says_too():
    made = Encoder(config(d_model=64, d_ff=256), OTHER_PARTS)
    made.apply(start_weights)
    linears = [m for m in made.modules() if isinstance(m, nn.Linear)]
    assert len(linears) == 2 * 6
    for linear in linears:
        assert linear.bias is None
        expected = (2 / (linear.in_features + linear.out_features)) ** 0.5
        assert abs(linear.weight.std() / expected - 1) < 0.05


def test_the_embeddings_are_multiplied_by_the_root_of_d_model_once(tokens):
    made, heard = model(), []
    hook = made.encoder.register_forward_pre_hook(
        lambda module, args: heard.append(args[0])
    )
    made(*tokens)
    hook.remove()
    zeros = torch.zeros(BATCH, SRC, D_MODEL, dtype=torch.float64)
    rows = F.embedding(tokens[0], made.src_embedding.weight)
    expected = rows * D_MODEL**0.5 + made.positions(zeros)
    torch.testing.assert_close(heard[0], expected)


# Who sees what.


def moves(run, tokens, vocab):
    """Which output positions (row) move with which token (column)."""
    before, columns = run(tokens), []
    for place in range(tokens.shape[1]):
        moved = tokens.clone()
        moved[:, place] = moved[:, place] % (vocab - 1) + 1  # Never a pad.
        change = (run(moved) - before).abs().amax((0, 2))
        columns.append(change > 1e-9)
    return torch.stack(columns, dim=1)


@ORDERS
def test_no_future_token_moves_a_past_logit_and_every_past_one_does(
    tokens, norm_first
):
    made, (src, tgt) = model(norm_first=norm_first), tokens
    tgt = tgt[1:2]  # The one without padding.
    seen = moves(lambda t: made(src[:1], t), tgt, TGT_VOCAB)
    assert torch.equal(seen, torch.ones(TGT, TGT, dtype=torch.bool).tril())


@ORDERS
def test_every_source_token_moves_every_logit(tokens, norm_first):
    made, (src, tgt) = model(norm_first=norm_first), tokens
    seen = moves(lambda s: made(s, tgt[:1]), src[:1], SRC_VOCAB)
    assert seen.shape == (TGT, SRC)
    assert seen.all()


def test_more_padding_changes_nothing_before_it(tokens):
    made, (src, tgt) = model(), tokens
    longer = [F.pad(t, (0, 2), value=PAD) for t in tokens]
    torch.testing.assert_close(made(*longer)[:, :TGT], made(src, tgt))


def test_a_pad_of_another_number_is_hidden_too():
    made = model(pad=13)
    src, tgt = torch.randint(1, 13, (1, SRC)), torch.randint(1, 13, (1, TGT))
    longer = [F.pad(t, (0, 2), value=13) for t in (src, tgt)]
    torch.testing.assert_close(made(*longer)[:, :TGT], made(src, tgt))


def test_a_source_of_padding_alone_stays_finite(tokens):
    made, (src, tgt) = model(), tokens
    src[2] = PAD
    logits = made(src, tgt)
    logits.sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in made.parameters())


def test_sentences_of_a_batch_do_not_see_each_other(tokens):
    made, (src, tgt) = model(), tokens
    alone = made(src[1:2, :3], tgt[1:2])
    torch.testing.assert_close(made(src, tgt)[1:2], alone)


def test_the_order_of_the_memory_does_not_matter_but_the_source_s_does(
    tokens,
):
    made, (src, tgt) = model(), tokens
    src, tgt, order = src[:1], tgt[:1], torch.tensor([2, 0, 4, 1, 3])
    masks = combine_masks(src, tgt, PAD)
    memory = made.encode(src, masks.src)
    told = made.decode(tgt, memory, masks.tgt, masks.cross)
    shuffled = made.decode(tgt, memory[:, order], masks.tgt, masks.cross)
    torch.testing.assert_close(shuffled, told)
    change = (made(src[:, order], tgt) - made(src, tgt)).abs()
    assert change.max() > 0.01


def test_masks_that_are_given_are_the_ones_used(tokens):
    made, (src, tgt) = model(), tokens
    masks = combine_masks(src, tgt, PAD)
    torch.testing.assert_close(made(src, tgt, masks), made(src, tgt))
    hidden = masks.cross.clone()
    hidden[..., 1] = False
    moved = made(src, tgt, masks._replace(cross=hidden)) - made(src, tgt)
    assert moved.abs().amax((1, 2)).gt(0.01).all()


# Teacher forcing.


def test_shift_right_on_paper():
    tokens = torch.tensor([[5, 7, 2], [6, 2, 0]])
    assert shift_right(tokens, 1).tolist() == [[1, 5, 7], [1, 6, 2]]


def test_shift_right_keeps_the_number_type():
    tokens = torch.tensor([[5, 7, 2]], dtype=torch.int32)
    assert shift_right(tokens, 1).dtype == torch.int32


@ORDERS
def test_one_parallel_pass_gives_what_a_pass_for_each_token_gives(
    tokens, norm_first
):
    made, (src, tgt) = model(norm_first=norm_first), tokens
    parallel = made(src, tgt)
    serial = [made(src, tgt[:, :i])[:, -1] for i in range(1, TGT + 1)]
    torch.testing.assert_close(torch.stack(serial, dim=1), parallel)


# The layers.


def decoder_layer(**settings):
    return shaken(DecoderLayer(D_MODEL, NUM_HEADS, D_FF, **settings).double())


def attention_output(layer, x, weights, key):
    values = layer.v_proj(key).unflatten(-1, (NUM_HEADS, -1))
    mixed = torch.einsum("bhqk,bkhd->bqhd", weights, values).flatten(-2)
    return layer.out_proj(mixed)


@ORDERS
def test_the_maps_of_a_decoder_layer_are_those_its_output_is_made_with(
    vectors, norm_first
):
    layer, (x, memory) = decoder_layer(norm_first=norm_first), vectors
    causal = torch.ones(TGT, TGT, dtype=torch.bool).tril()
    seen = torch.ones(BATCH, 1, 1, SRC, dtype=torch.bool)
    seen[1, ..., 3:] = False
    own = layer.weights(x, causal)
    cross = layer.cross_weights(x, memory, causal, seen)

    def looks_back(y):
        return attention_output(layer.self_attention, y, own, y)

    def looks_at_source(y):
        return attention_output(layer.cross_attention, y, cross, memory)

    y = layer.attention_residual(x, looks_back)
    y = layer.cross_residual(y, looks_at_source)
    y = layer.feed_forward_residual(y, layer.feed_forward)
    torch.testing.assert_close(layer(x, memory, causal, seen), y)
    assert not cross[1, ..., 3:].any()


@ORDERS
def test_the_maps_are_one_a_layer_and_hide_what_is_hidden_in_each(
    tokens, norm_first
):
    made, (src, tgt) = model(norm_first=norm_first, num_layers=4), tokens
    maps, masks = made.maps(src, tgt), combine_masks(src, tgt, PAD)
    sizes = Masks(src=(SRC, SRC), tgt=(TGT, TGT), cross=(TGT, SRC))
    for found, mask, size in zip(maps, masks, sizes, strict=True):
        assert len(found) == 4
        for weights in found:
            assert weights.shape == (BATCH, NUM_HEADS, *size)
            hidden = ~mask.expand(weights.shape)
            assert hidden.any()
            assert not weights[hidden].any()
            rows = weights.sum(-1)
            torch.testing.assert_close(rows, torch.ones_like(rows))
        assert not torch.allclose(found[0], found[1])


def test_the_maps_of_a_layer_are_those_of_what_reaches_it(tokens):
    made, (src, tgt) = model(), tokens
    masks, heard = combine_masks(src, tgt, PAD), {}
    for stack in (made.encoder, made.decoder):
        stack.layers[1].register_forward_pre_hook(
            lambda layer, args: heard.setdefault(layer, args)
        )
    made(src, tgt)
    maps, last = made.maps(src, tgt), made.decoder.layers[1]
    encoder_layer = made.encoder.layers[1]
    x, y = heard[encoder_layer][0], heard[last]
    torch.testing.assert_close(maps.src[1], encoder_layer.weights(x, masks.src))
    torch.testing.assert_close(maps.tgt[1], last.weights(y[0], masks.tgt))
    torch.testing.assert_close(maps.cross[1], last.cross_weights(*y[:4]))


def test_every_decoder_layer_reads_the_encoder_s_last_output(tokens):
    made, memories = model(num_layers=3), []
    for layer in made.decoder.layers:
        layer.register_forward_pre_hook(
            lambda layer, args: memories.append(args[1])
        )
    outputs = []
    made.encoder.register_forward_hook(
        lambda module, args, output: outputs.append(output)
    )
    made(*tokens)
    assert len(memories) == 3
    assert all(memory is outputs[0] for memory in memories)


def test_target_and_source_may_differ_in_length_either_way(vectors):
    layer, (x, memory) = decoder_layer(), vectors
    assert layer(x, memory).shape == x.shape
    assert layer(memory, x).shape == memory.shape


def test_dropout_is_off_in_eval_and_on_in_training(tokens):
    made = model(dropout=0.5)
    assert not torch.equal(made(*tokens), made(*tokens))
    made.eval()
    torch.testing.assert_close(made(*tokens), made(*tokens))


def test_the_dropout_of_the_config_is_that_of_every_residual():
    made = Transformer(config(dropout=0.3))
    rates = [m.p for m in made.modules() if isinstance(m, nn.Dropout)]
    # One for the embeddings, two an encoder layer and three a decoder layer.
    assert rates == [0.3] * (1 + 2 * 2 + 2 * 3)


def test_dropout_also_acts_on_the_embeddings(tokens):
    made, heard = model(dropout=0.5), []
    made.encoder.register_forward_pre_hook(
        lambda module, args: heard.append(args[0])
    )
    made(*tokens)
    assert 0.4 < (heard[0] == 0).double().mean() < 0.6


def test_a_model_runs_under_autocast(tokens):
    made = Transformer(config())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = made(*tokens)
    torch.testing.assert_close(logits.float(), made(*tokens), atol=0.2, rtol=0)


def test_a_model_can_be_made_twice_from_one_config_and_saved():
    first, second = (Transformer(config()) for _ in range(2))
    second.load_state_dict(first.state_dict())
    tokens = torch.ones(1, 3, dtype=torch.int64)
    torch.testing.assert_close(first(tokens, tokens), second(tokens, tokens))


def test_a_tiny_model_learns_to_say_again_what_it_read():
    made, losses = Transformer(TransformerConfig.tiny(7, 7)), []
    optimiser = torch.optim.Adam(made.parameters(), lr=1e-3)
    for _ in range(150):
        said = torch.randint(3, 7, (16, 3))
        logits = made(said, shift_right(said, 1))
        loss = F.cross_entropy(logits.flatten(0, 1), said.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    # To guess costs ln 4 = 1.39. Four seeds ended between 0.08 and 0.15.
    assert sum(losses[-5:]) / 5 < 0.3


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"num_heads": 3}, r"num_heads: expected a divisor of d_model = 26"),
        ({"dropout": 1.0}, r"dropout: expected a probability .*got 1.0"),
        ({"dropout": -0.1}, r"dropout: expected a probability .*got -0.1"),
        ({"d_ff": 0}, r"d_ff: expected at least 1, got 0"),
        ({"num_layers": -1}, r"num_layers: expected at least 1, got -1"),
        ({"pad": 17}, r"pad: expected an id from 0 to below 17.*got 17"),
        ({"pad": -1}, r"pad: expected an id from 0 to below 17.*got -1"),
        ({"shared_vocab": True}, r"shared_vocab: .*sizes 17 .*and 19"),
    ],
)
def test_a_config_that_makes_no_model_is_refused_at_once(change, match):
    with pytest.raises(ValueError, match=match):
        config(**change)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"d_model": 26.0}, r"d_model: expected an int, got 26.0"),
        ({"num_layers": True}, r"num_layers: expected an int, got True"),
        ({"norm_first": "pre"}, r"norm_first: expected True or False"),
    ],
)
def test_a_config_of_the_wrong_type_is_refused_at_once(change, match):
    with pytest.raises(TypeError, match=match):
        config(**change)


@pytest.mark.bad_input
def test_sizes_are_given_by_name_and_stay():
    with pytest.raises(TypeError, match="positional"):
        TransformerConfig(SRC_VOCAB, TGT_VOCAB)
    with pytest.raises(FrozenInstanceError, match="d_model"):
        config().d_model = 28


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [-1, SRC_VOCAB])
def test_a_source_id_outside_the_vocabulary_is_named(tokens, wrong):
    src, tgt = tokens
    src[1, 2] = wrong
    match = rf"src tokens: .*vocabulary of 17, got {wrong} at \(1, 2\)"
    with pytest.raises(ValueError, match=match):
        Transformer(config())(src, tgt)


@pytest.mark.bad_input
def test_a_target_id_outside_the_vocabulary_is_named(tokens):
    src, tgt = tokens
    tgt[2, 6] = 23
    match = r"tgt tokens: .*vocabulary of 19, got 23 at \(2, 6\)"
    with pytest.raises(ValueError, match=match):
        Transformer(config())(src, tgt)


@pytest.mark.bad_input
def test_tokens_that_are_no_integers_are_refused(tokens):
    src, tgt = tokens
    with pytest.raises(TypeError, match=r"tgt_tokens: expected .*float32"):
        Transformer(config())(src, tgt.float())


@pytest.mark.bad_input
def test_a_source_without_its_target_names_both_shapes(tokens):
    src, tgt = tokens
    with pytest.raises(ValueError, match=r"\(3, 5\).*\(2, 7\)"):
        Transformer(config())(src, tgt[:2])


@pytest.mark.bad_input
def test_one_mask_instead_of_three_is_refused(tokens):
    src, tgt = tokens
    mask = combine_masks(src, tgt, PAD).tgt
    with pytest.raises(TypeError, match=r"masks: expected Masks.*got Tensor"):
        Transformer(config())(src, tgt, mask)


@pytest.mark.bad_input
def test_a_mask_of_numbers_is_refused(tokens):
    src, tgt = tokens
    masks = combine_masks(src, tgt, PAD)
    masks = masks._replace(cross=masks.cross.float())
    with pytest.raises(TypeError, match="mask: expected a boolean tensor"):
        Transformer(config())(src, tgt, masks)


@pytest.mark.bad_input
def test_a_memory_that_does_not_fit_is_named(vectors):
    layer, (x, memory) = decoder_layer(), vectors
    decoder = Decoder(config()).double()
    for run in (layer, layer.cross_weights, decoder):
        with pytest.raises(ValueError, match=r"memory: .*batch=3.*\(2, 5, 26"):
            run(x, memory[:2])
        with pytest.raises(ValueError, match=r"d_model=26\), got \(3, 5, 13"):
            run(x, memory[..., :13])
        with pytest.raises(TypeError, match=r"memory: expected torch.float64"):
            run(x, memory.float())


@pytest.mark.bad_input
def test_an_encoder_names_vectors_of_another_width():
    with pytest.raises(ValueError, match=r"x: .*d_model=26\), got \(3, 5, 13"):
        Encoder(config())(torch.randn(3, 5, 13))


@pytest.mark.bad_input
def test_shift_right_refuses_what_is_no_batch_of_tokens():
    with pytest.raises(ValueError, match=r"tokens: expected \(batch, seq\)"):
        shift_right(torch.tensor([5, 7, 2]), 1)
    with pytest.raises(TypeError, match=r"tokens: .*integers, got .*float32"):
        shift_right(torch.ones(2, 3), 1)
    with pytest.raises(TypeError, match=r"bos: expected an int, got '<bos>'"):
        shift_right(torch.ones(2, 3, dtype=torch.long), "<bos>")


@pytest.mark.bad_input
def test_a_decoder_layer_names_what_is_no_batch_of_vectors():
    layer, memory = DecoderLayer(D_MODEL, 2, D_FF), torch.ones(1, SRC, D_MODEL)
    for call in (layer, layer.cross_weights):
        with pytest.raises(ValueError, match=r"x: .*\(batch, tgt, d_model=26"):
            call(torch.ones(TGT, D_MODEL), memory)
        with pytest.raises(TypeError, match="x: expected a tensor, got None"):
            call(None, memory)


@pytest.mark.bad_input
def test_the_generator_names_what_is_no_state():
    logits = Transformer(config()).logits
    with pytest.raises(ValueError, match=r"x: .*width 26, got \(2, 7\)"):
        logits(torch.ones(2, 7))
    with pytest.raises(TypeError, match=r"x: expected .*float32, got .*64"):
        logits(torch.ones(2, D_MODEL, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"x: .* on cpu, got one on meta"):
        logits(torch.ones(2, D_MODEL, device="meta"))


@pytest.mark.bad_input
def test_sizes_that_are_no_config_are_refused():
    with pytest.raises(TypeError, match=r"config: .*Config, got dict"):
        Transformer({"d_model": D_MODEL})
