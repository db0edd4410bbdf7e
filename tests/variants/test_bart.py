"""BART is Hugging Face's BART with our weights; its five noises keep rules.

``transformers`` brings the oracle, of random weights; nothing is downloaded.
"""

import math
from collections import Counter
from functools import partial

import pytest
import torch
from torch import nn

from companion.contracts import check
from companion.masks import combine_masks
from companion.transformer import TransformerConfig
from companion.variants.bart import BART, BARTConfig
from companion.variants.noise import (
    bart_noise,
    delete,
    infill,
    mask_each,
    permute_sentences,
    rotate,
)
from companion.variants.spans import random_spans, span_corrupt
from companion.variants.specials import BOS, EOS, FIRST_WORD, MASK, PAD

# All sizes differ, so no axis can stand in for another. Two heads of 13.
BATCH, SRC, TGT, D_MODEL, NUM_HEADS, D_FF = 3, 7, 5, 26, 2, 11
VOCAB, LAYERS, MAX_LEN = 37, 3, 17
STOP = 4
NOISES = {
    "mask_each": mask_each,
    "delete": delete,
    "infill": infill,
    "permute_sentences": partial(permute_sentences, stop=STOP),
    "rotate": rotate,
}
EVERY = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def ids(*tokens):
    return torch.tensor(tokens)


def is_subsequence(short, long):
    rest = iter(long)
    return all(token in rest for token in short)


# The model, beside Hugging Face's with our weights

same = partial(torch.testing.assert_close, atol=1e-10, rtol=1e-10)


def config(**changes):
    return BARTConfig(
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


def model(**changes):
    """Weights all over the place, so that none can be lost unseen."""
    made = BART(config(**changes)).double().eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


@pytest.fixture
def pair():
    """A batch with padding on both sides, each row of its own length."""
    src = torch.randint(FIRST_WORD, VOCAB, (BATCH, SRC))
    tgt = torch.randint(FIRST_WORD, VOCAB, (BATCH, TGT))
    src[1, 4:], src[2, 6:], tgt[0, 2:], tgt[2, 4:] = PAD, PAD, PAD, PAD
    return src, tgt


def hugging_face(ours):
    """Hugging Face's model with the weights of ours."""
    transformers = pytest.importorskip("transformers")
    size = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in {
            "layers": LAYERS,
            "attention_heads": NUM_HEADS,
            "ffn_dim": D_FF,
        }.items()
    }
    settings = transformers.BartConfig(
        vocab_size=VOCAB,
        d_model=D_MODEL,
        max_position_embeddings=MAX_LEN,
        pad_token_id=PAD,
        **size,
    )
    theirs = transformers.BartForConditionalGeneration(settings)
    theirs = theirs.double().eval()
    missing, unexpected = theirs.load_state_dict(renamed(ours), strict=False)
    assert not unexpected
    tied = {"encoder.embed_tokens", "decoder.embed_tokens"}
    names = {f"model.{name}.weight" for name in tied}
    assert set(missing) <= {*names, "lm_head.weight", "final_logits_bias"}
    theirs.tie_weights()
    return theirs


def renamed(ours):
    """Our parameters under their names, and two rows more of positions."""
    names = {
        "tgt_embedding": "shared",
        "positions.src": "encoder.embed_positions",
        "positions.tgt": "decoder.embed_positions",
        "norms.src": "encoder.layernorm_embedding",
        "norms.tgt": "decoder.layernorm_embedding",
        "self_attention": "self_attn",
        "cross_attention": "encoder_attn",
        "attention_residual.norm": "self_attn_layer_norm",
        "cross_residual.norm": "encoder_attn_layer_norm",
        "feed_forward_residual.norm": "final_layer_norm",
        "feed_forward.up_proj": "fc1",
        "feed_forward.down_proj": "fc2",
        ".gain": ".weight",
    }
    state = {}
    for name, weight in ours.state_dict().items():
        for mine, other in names.items():
            name = name.replace(mine, other)
        if "embed_positions" in name:
            weight = torch.cat([torch.full_like(weight[:2], 99.0), weight])
        state[f"model.{name}"] = weight
    return state


def test_bart_is_hugging_face_s_with_our_weights_and_padding(pair):
    ours = model()
    theirs = hugging_face(ours)
    src, tgt = pair
    with torch.no_grad():
        out = theirs(
            input_ids=src,
            attention_mask=(src != PAD).long(),
            decoder_input_ids=tgt,
            decoder_attention_mask=(tgt != PAD).long(),
        )
        memory = ours.encode(src, combine_masks(src, tgt, PAD).src)
        logits = ours(src, tgt)
    real_src, real_tgt = src != PAD, tgt != PAD
    same(memory[real_src], out.encoder_last_hidden_state[real_src])
    same(logits[real_tgt], out.logits[real_tgt])


def test_the_base_model_has_the_published_count_but_for_the_unread_rows():
    with torch.device("meta"):
        ours = BART(BARTConfig.base())
    count = sum(p.numel() for p in ours.parameters())
    sides, unread, d_model = 2, 2, 768
    assert count == 139_417_344
    assert count + sides * unread * d_model == 139_420_416


def test_the_published_count_is_the_one_that_hugging_face_counts():
    transformers = pytest.importorskip("transformers")
    base = {"d_model": 768, "encoder_layers": 6, "decoder_layers": 6}
    base |= {"encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072}
    base |= {"encoder_attention_heads": 12, "decoder_attention_heads": 12}
    with torch.device("meta"):
        theirs = transformers.BartForConditionalGeneration(
            transformers.BartConfig(**base)
        )
        theirs.tie_weights()
    assert sum(p.numel() for p in theirs.parameters()) == 139_420_416


def test_bart_keeps_the_contract_of_a_translation_model():
    report = check("translation_model", BART(BARTConfig.tiny(11)).eval())
    assert report.passed, report


def test_the_first_layers_get_normalised_vectors(pair):
    ours = BART(config()).double()
    got = {}
    for side in ("encoder", "decoder"):
        layer = getattr(ours, side).layers[0]
        layer.register_forward_pre_hook(
            lambda _, args, side=side: got.update({side: args[0]})
        )
    ours(*pair)
    for x in got.values():
        torch.testing.assert_close(x.mean(-1), torch.zeros_like(x[..., 0]))
        # Short of 1: the vectors are small, and eps counts.
        assert (x.var(-1, unbiased=False) > 0.9).all()


def test_one_table_reads_and_writes_and_each_side_has_its_own_positions(pair):
    ours = model()
    src, tgt = pair
    both = torch.minimum(src[:, :TGT], tgt)
    vectors = [ours._embed(name, both) for name in ("src", "tgt")]
    assert not torch.allclose(*vectors)
    ours.positions["tgt"], ours.norms["tgt"] = (
        ours.positions["src"],
        ours.norms["src"],
    )
    vectors = [ours._embed(name, both) for name in ("src", "tgt")]
    same(*vectors)
    rows = [p for p in ours.parameters() if p.shape == (VOCAB, D_MODEL)]
    assert len(rows) == 1


def test_with_norm_first_each_side_ends_with_a_norm():
    ours = BART(config(norm_first=True))
    assert isinstance(ours.encoder.norm, nn.Module)
    counted = sum(p.numel() for p in ours.parameters())
    plain = sum(p.numel() for p in BART(config()).parameters())
    assert counted - plain == 2 * 2 * D_MODEL


@pytest.mark.bad_input
def test_bart_refuses_what_it_cannot_be_made_of():
    with pytest.raises(TypeError, match="expected a BARTConfig, got Transf"):
        BART(TransformerConfig.tiny(5, 5))
    with pytest.raises(TypeError, match="pad: expected an int, got None"):
        config(pad=None)
    with pytest.raises(ValueError, match=r"pad: expected an id .* got 37"):
        config(pad=VOCAB)
    with pytest.raises(ValueError, match="max_len: expected at least 1"):
        config(max_len=0)


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_bart_names_the_side_that_it_cannot_read(pair, side):
    ours = BART(config())
    at = ("src", "tgt").index(side)

    def read(tokens):
        both = list(pair)
        both[at] = tokens
        return ours(*both)

    long = torch.full((BATCH, MAX_LEN + 1), FIRST_WORD)
    assert read(long[:, 1:]).isfinite().all()
    with pytest.raises(ValueError, match=f"{side}: expected at most .*=17 "):
        read(long)
    with pytest.raises(ValueError, match=f"{side}: expected ids .* got 37"):
        read(torch.full((BATCH, 2), VOCAB))


# The noises, on paper


def test_masking_each_token_or_none():
    text = ids(7, 8, 9)
    assert mask_each(text, seeded(), share=1.0).tolist() == [MASK] * 3
    assert mask_each(text, seeded(), share=0.0).tolist() == [7, 8, 9]


def test_deleting_each_token_or_none():
    text = ids(7, 8, 9)
    assert delete(text, seeded(), share=1.0).tolist() == []
    assert delete(text, seeded(), share=0.0).tolist() == [7, 8, 9]


def test_infilling_all_of_a_text_leaves_masks_only():
    found = {tuple(infill(ids(7, 8), seeded(i), share=1.0)) for i in range(50)}
    assert {len(row) for row in found} >= {1, 2}
    assert {int(token) for row in found for token in row} == {MASK}


def test_infilling_nothing_changes_nothing():
    assert infill(ids(7, 8, 9), seeded(), share=0.0).tolist() == [7, 8, 9]


def test_a_span_of_three_leaves_one_mask_anywhere():
    # Half of six is three. A mean that large makes one span of all three.
    text = ids(7, 8, 9, 10, 11, 12)
    found = {
        tuple(infill(text, seeded(i), share=0.5, mean=40.0).tolist())
        for i in range(100)
    }
    assert found == {
        (MASK, 10, 11, 12),
        (7, MASK, 11, 12),
        (7, 8, MASK, 12),
        (7, 8, 9, MASK),
    }


def test_a_span_of_length_0_puts_a_mask_where_nothing_is_missing():
    # One token of four goes. With so small a mean nearly all spans are empty.
    text = ids(7, 8, 9, 10)
    rows = [
        infill(text, seeded(i), share=0.25, mean=0.1).tolist()
        for i in range(40)
    ]
    inserted = Counter(row.count(MASK) - 1 for row in rows)
    assert max(inserted) > 5
    for row in rows:
        kept = [token for token in row if token != MASK]
        assert len(kept) == 3
        assert is_subsequence(kept, text.tolist())
    # The empty ones stand everywhere, at both ends too.
    assert {(row[0] == MASK, row[-1] == MASK) for row in rows} >= {
        (True, False),
        (False, True),
    }


def test_two_sentences_have_two_orders():
    text = ids(7, 8, STOP, 9, STOP)
    found = {
        tuple(permute_sentences(text, seeded(i), stop=STOP).tolist())
        for i in range(30)
    }
    assert found == {(7, 8, STOP, 9, STOP), (9, STOP, 7, 8, STOP)}


def test_what_stands_behind_the_last_stop_is_a_sentence_too():
    text = ids(7, STOP, 8, 9)
    found = {
        tuple(permute_sentences(text, seeded(i), stop=STOP).tolist())
        for i in range(30)
    }
    assert found == {(7, STOP, 8, 9), (8, 9, 7, STOP)}


def test_a_text_of_three_has_three_rotations():
    found = {tuple(rotate(ids(7, 8, 9), seeded(i)).tolist()) for i in range(30)}
    assert found == {(7, 8, 9), (8, 9, 7), (9, 7, 8)}


# The noises, by what always holds


@pytest.fixture
def text():
    """A long text of different words, with a stop behind every tenth."""
    made = torch.arange(FIRST_WORD + 1, FIRST_WORD + 20_001)
    made[9::10] = STOP
    return made


@EVERY
def test_a_noise_leaves_the_text_as_it_was_and_can_be_repeated(noise, text):
    before = text.clone()
    first = noise(text, seeded(5))
    assert torch.equal(text, before)
    assert torch.equal(noise(text, seeded(5)), first)
    assert not torch.equal(noise(text, seeded(6)), first)
    assert first.dtype == text.dtype


def test_masking_hides_three_tokens_in_ten_and_keeps_their_places(text):
    noisy = mask_each(text, seeded())
    hidden = noisy == MASK
    assert torch.equal(noisy[~hidden], text[~hidden])
    error = math.sqrt(0.3 * 0.7 / len(text))
    assert abs(float(hidden.float().mean()) - 0.3) < 5 * error


def test_deletion_shortens_and_does_not_say_where(text):
    noisy = delete(text, seeded())
    error = math.sqrt(0.3 * 0.7 / len(text))
    assert abs(1 - len(noisy) / len(text) - 0.3) < 5 * error
    assert MASK not in noisy
    assert is_subsequence(noisy.tolist(), text.tolist())


def test_infilling_hides_three_tokens_in_ten_behind_a_third_as_many(text):
    masks = []
    for seed in range(20):
        noisy = infill(text, seeded(seed))
        kept = noisy[noisy != MASK].tolist()
        assert len(kept) == 0.7 * len(text)
        assert is_subsequence(kept, text.tolist())
        masks.append(len(noisy) - len(kept))
    # The sum overshoots by 1.5 on average, which is cut: (12 / 3 - 1) / 2, with
    # 12 the mean square of a length. Without the spans of length 0 there would
    # be 5 % fewer masks.
    expected = (0.3 * len(text) + 1.5) / 3
    error = math.sqrt(0.3 * len(text) / 3**2 / len(masks))
    assert abs(sum(masks) / len(masks) - expected) < 4 * error


def test_one_span_in_twenty_has_length_0():
    # Poisson: e^-3 = 0.050. A text of one token has them all before the last,
    # which hides it: k empty ones with probability p^k.
    empty = [len(infill(ids(9), seeded(i))) - 1 for i in range(3000)]
    share = sum(empty) / (len(empty) + sum(empty))
    p = math.exp(-3)
    assert abs(share - p) < 5 * math.sqrt(p / len(empty))


def test_permutation_keeps_every_sentence_whole(text):
    def sentences(tokens):
        return Counter(map(tuple, tokens.view(-1, 10).tolist()))

    noisy = permute_sentences(text, seeded(), stop=STOP)
    assert sentences(noisy) == sentences(text)


def test_each_order_of_three_sentences_is_as_likely_as_the_others():
    three = ids(7, STOP, 8, STOP, 9, STOP)
    orders = Counter(
        tuple(permute_sentences(three, seeded(i), stop=STOP)[::2].tolist())
        for i in range(1200)
    )
    assert len(orders) == 6
    error = math.sqrt(1200 / 6 * 5 / 6)
    assert max(abs(n - 200) for n in orders.values()) < 5 * error


def test_rotation_is_undone_by_rotating_back(text):
    noisy = rotate(text, seeded(3))
    back = int((noisy == text[0]).nonzero())
    assert back
    assert torch.equal(noisy.roll(-back), text)


def test_every_token_may_come_first_after_a_rotation():
    firsts = Counter(
        int(rotate(torch.arange(7, 19), seeded(i))[0]) for i in range(1200)
    )
    assert len(firsts) == 12
    error = math.sqrt(100 * 11 / 12)
    assert max(abs(n - 100) for n in firsts.values()) < 5 * error


def test_bart_s_noise_is_permutation_and_then_infilling(text):
    how = {"share": 0.5, "mean": 2.0}
    noisy, whole = bart_noise(text, seeded(8), stop=STOP, **how)
    generator = seeded(8)
    shuffled = permute_sentences(text, generator, stop=STOP)
    assert torch.equal(noisy, infill(shuffled, generator, **how))
    assert torch.equal(whole, text)


def test_bart_says_the_whole_text_and_t5_only_what_is_missing():
    text = torch.arange(FIRST_WORD, FIRST_WORD + 100)
    _, whole = bart_noise(text, seeded(), stop=FIRST_WORD, share=0.15)
    gaps = random_spans(len(text), seeded(), share=0.15)
    _, missing = span_corrupt(text, gaps, 999)
    # 15 words in 5 gaps, a sentinel before each and one at the end.
    assert (len(whole), len(missing)) == (100, 15 + 5 + 1)


@pytest.mark.bad_input
@EVERY
def test_a_noise_refuses_what_is_no_text(noise):
    with pytest.raises(TypeError, match="text: expected a tensor of integers"):
        noise(torch.ones(3), seeded())
    with pytest.raises(TypeError, match="text: expected a tensor of integers"):
        noise([7, 8], seeded())
    with pytest.raises(ValueError, match="text: expected 1 axes"):
        noise(ids(7, 8)[None], seeded())
    with pytest.raises(ValueError, match="text: expected at least one id"):
        noise(ids(7)[:0], seeded())
    for special in (PAD, BOS, EOS):
        with pytest.raises(ValueError, match=rf"bos or eos.*{special} at 1"):
            noise(ids(7, special), seeded())


@pytest.mark.bad_input
def test_noises_refuse_settings_that_make_no_sense():
    text = ids(7, 8)
    for noise in (mask_each, delete, infill):
        with pytest.raises(ValueError, match=r"share: .* got 1\.5"):
            noise(text, seeded(), share=1.5)
    with pytest.raises(ValueError, match=r"mean: expected .* above 0, got 0"):
        infill(text, seeded(), mean=0)
    with pytest.raises(ValueError, match=r"stop: .* 4 or above, got 2"):
        permute_sentences(text, seeded(), stop=EOS)
    with pytest.raises(TypeError, match="stop: expected an int"):
        permute_sentences(text, seeded(), stop=4.0)
