"""Tokens, absolute positions and rotations: definitions, paper, invariants."""

import math
from types import SimpleNamespace

import pytest
import torch

from companion.positions import (
    LearnedPositions,
    SinusoidalPositions,
    TokenEmbedding,
    frequencies,
    rotate,
    rotate_complex,
    sinusoidal,
    sinusoids,
)
from companion.positions.absolute import _widest

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ, D_MODEL, VOCAB = 2, 5, 7, 11
EVEN = 26  # Twice a prime: RoPE needs pairs.
WIDE = torch.float64


def encoded(length, d_model):
    """The formula of the paper, entry by entry."""
    table = torch.zeros(length, d_model, dtype=WIDE)
    for position in range(length):
        for dim in range(d_model):
            angle = position / 10_000 ** (2 * (dim // 2) / d_model)
            wave = math.sin if dim % 2 == 0 else math.cos
            table[position, dim] = wave(angle)
    return table


def turned(x, positions):
    """RoPE as in its paper: a 2 × 2 rotation matrix a pair, one at a time."""
    out = torch.empty_like(x)
    d = x.shape[-1]
    for at, position in enumerate(positions.tolist()):
        for i in range(d // 2):
            angle = position * 10_000 ** (-2 * i / d)
            c, s = math.cos(angle), math.sin(angle)
            matrix = torch.tensor([[c, -s], [s, c]], dtype=x.dtype)
            pair = slice(2 * i, 2 * i + 2)
            out[..., at, pair] = x[..., at, pair] @ matrix.T
    return out


# An oracle: the definition, Hugging Face, PyTorch.


@pytest.mark.parametrize("d_model", [1, 2, 7, 12])
def test_sinusoidal_is_the_formula_at_odd_and_even_widths(d_model):
    torch.testing.assert_close(
        sinusoidal(SEQ, d_model, dtype=WIDE), encoded(SEQ, d_model)
    )


def test_sinusoidal_agrees_with_hugging_face_but_for_the_order():
    from transformers.models.gptj.modeling_gptj import (
        create_sinusoidal_positions,
    )

    theirs = create_sinusoidal_positions(SEQ, EVEN)  # All sines, then cosines.
    ours = sinusoidal(SEQ, EVEN)
    torch.testing.assert_close(ours[:, 0::2], theirs[:, : EVEN // 2])
    torch.testing.assert_close(ours[:, 1::2], theirs[:, EVEN // 2 :])


@pytest.mark.parametrize("turn", [rotate, rotate_complex])
def test_rope_is_a_rotation_matrix_for_each_pair(turn):
    x = torch.randn(BATCH, 3, SEQ, EVEN, dtype=WIDE)
    for positions in (torch.arange(SEQ), torch.randn(SEQ, dtype=WIDE) * 100):
        torch.testing.assert_close(turn(x, positions), turned(x, positions))


def test_rope_agrees_with_gpt_j_whose_pairs_are_neighbours():
    from transformers.models.gptj import modeling_gptj as gptj

    x = torch.randn(BATCH, SEQ, 3, EVEN)  # Their heads come after the seq.
    sin, cos = gptj.create_sinusoidal_positions(SEQ, EVEN).chunk(2, dim=-1)
    sin, cos = (t.expand(BATCH, SEQ, EVEN // 2) for t in (sin, cos))
    theirs = gptj.apply_rotary_pos_emb(x, sin, cos)
    ours = rotate(x.transpose(1, 2), torch.arange(SEQ)).transpose(1, 2)
    torch.testing.assert_close(ours, theirs)


def test_rope_agrees_with_llama_after_pairs_are_laid_out_as_halves():
    from transformers.models.llama import modeling_llama as llama

    config = llama.LlamaConfig(
        hidden_size=EVEN, num_attention_heads=1, num_key_value_heads=1
    )
    x = torch.randn(BATCH, 3, SEQ, EVEN)
    place = torch.arange(SEQ)
    # Their pair i is the dimensions i and i + d / 2, ours 2i and 2i + 1.
    to_halves = torch.cat([torch.arange(0, EVEN, 2), torch.arange(1, EVEN, 2)])
    cos, sin = llama.LlamaRotaryEmbedding(config)(x, place[None])
    theirs, _ = llama.apply_rotary_pos_emb(x[..., to_halves], x, cos, sin)
    torch.testing.assert_close(rotate(x, place)[..., to_halves], theirs)


def test_an_embedding_is_a_one_hot_vector_times_the_table():
    embed = TokenEmbedding(VOCAB, D_MODEL)
    tokens = torch.randint(VOCAB, (BATCH, SEQ))
    one_hot = torch.nn.functional.one_hot(tokens, VOCAB).float()
    expected = one_hot @ embed.weight * math.sqrt(D_MODEL)
    torch.testing.assert_close(embed(tokens), expected)


# Cases one can do on paper.


def test_position_zero_is_all_zeros_and_ones():
    assert sinusoidal(1, 5).tolist() == [[0, 1, 0, 1, 0]]


def test_the_second_pair_of_four_turns_a_hundred_times_slower():
    assert frequencies(4).tolist() == [1, 0.01]
    row = sinusoidal(4, 4, dtype=WIDE)[3]
    angles = [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]
    torch.testing.assert_close(row, torch.tensor(angles, dtype=WIDE))


def test_wavelengths_at_512_run_from_2_pi_to_60611():
    waves = 2 * math.pi / frequencies(512)
    assert waves[0].item() == 2 * math.pi
    assert round(waves[-1].item()) == 60_611


def test_a_quarter_turn_sends_the_first_axis_to_the_second():
    quarter = torch.tensor([math.pi / 2], dtype=WIDE)
    x = torch.tensor([[3.0, 4.0]], dtype=WIDE)
    expected = torch.tensor([[-4.0, 3.0]], dtype=WIDE)
    for turn in (rotate, rotate_complex):
        torch.testing.assert_close(turn(x, quarter), expected)


def test_an_embedding_looks_up_its_row_and_scales_it():
    embed = TokenEmbedding(3, 4)
    with torch.no_grad():
        embed.weight.copy_(torch.arange(12.0).view(3, 4))
    assert embed(torch.tensor([[2, 0]])).tolist() == [
        [[16, 18, 20, 22], [0, 2, 4, 6]]
    ]


def test_learned_positions_add_the_first_rows():
    learned = LearnedPositions(SEQ, D_MODEL)
    x = torch.randn(BATCH, 3, D_MODEL)
    torch.testing.assert_close(learned(x) - x, learned.weight[:3].expand_as(x))


# Invariants.


@pytest.mark.parametrize("shape", [(SEQ, D_MODEL), (BATCH, 3, SEQ, D_MODEL)])
def test_positions_run_along_the_sequence_and_not_along_the_batch(shape):
    added = SinusoidalPositions(D_MODEL)(torch.zeros(shape))
    expected = sinusoidal(SEQ, D_MODEL).expand(shape)
    torch.testing.assert_close(added, expected)


def test_a_shift_of_k_is_one_rotation_wherever_it_starts():
    table = sinusoidal(101, EVEN, dtype=WIDE)
    k = 3
    # Sine and cosine are (y, x) of a hand, so the hand turns the other way.
    shifted = rotate(table, torch.full((101,), -k))
    torch.testing.assert_close(shifted[:-k], table[k:], atol=1e-13, rtol=0)


def test_every_encoding_has_the_same_length():
    norms = sinusoidal(101, EVEN, dtype=WIDE).norm(dim=-1)
    expected = torch.full((101,), math.sqrt(EVEN / 2), dtype=WIDE)
    torch.testing.assert_close(norms, expected)


def test_the_product_of_two_encodings_depends_on_the_distance_only():
    table = sinusoidal(101, EVEN, dtype=WIDE)
    products = table @ table.T
    for distance in (0, 1, 17):
        assert products.diagonal(distance).std() < 1e-12
    torch.testing.assert_close(products, products.T)


def test_positions_may_be_negative_or_broken():
    places = torch.tensor([-3.0, 0.5])
    waves = sinusoids(places, 2, dtype=WIDE)
    torch.testing.assert_close(waves[:, 0], places.to(WIDE).sin())
    torch.testing.assert_close(waves[:, 1], places.to(WIDE).cos())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_still_tells_far_positions_apart(dtype):
    # float16 has no 2049 and bfloat16 no 257: positions may not pass them.
    table = sinusoidal(2053, EVEN, dtype=dtype)
    exact = sinusoidal(2053, EVEN, dtype=WIDE)
    torch.testing.assert_close(table.to(WIDE), exact, atol=4e-3, rtol=0)
    x = torch.ones(2053, EVEN, dtype=dtype)
    far = torch.arange(2053)
    torch.testing.assert_close(
        rotate(x, far).to(WIDE),
        rotate(x.to(WIDE), far),
        atol=1.2e-2,
        rtol=0,
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, WIDE])
def test_adding_and_turning_keep_the_number_type(dtype):
    x = torch.randn(BATCH, SEQ, EVEN, dtype=dtype)
    assert SinusoidalPositions(EVEN)(x).dtype == dtype
    for turn in (rotate, rotate_complex):
        assert turn(x, torch.arange(SEQ)).dtype == dtype


@pytest.mark.parametrize("turn", [rotate, rotate_complex])
def test_rope_keeps_lengths_and_leaves_position_zero_alone(turn):
    x = torch.randn(BATCH, SEQ, EVEN, dtype=WIDE)
    y = turn(x, torch.arange(SEQ))
    torch.testing.assert_close(y.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(y[:, 0], x[:, 0])


def test_the_score_of_two_turned_vectors_depends_on_their_offset_only():
    q, k = torch.randn(2, 1, EVEN, dtype=WIDE)

    def score(query, key):
        at = [torch.tensor([p]) for p in (query, key)]
        return (rotate(q, at[0]) @ rotate(k, at[1]).T).squeeze()

    for start in (10, 100, 1000):
        torch.testing.assert_close(score(start, start + 3), score(0, 3))
    # The offset has a sign: what is ahead differs from what is behind.
    assert not torch.isclose(score(0, 3), score(3, 0))


def test_gradients_reach_what_was_turned():
    x = torch.randn(SEQ, 4, dtype=WIDE, requires_grad=True)
    places = torch.arange(SEQ)
    for turn in (rotate, rotate_complex):
        assert torch.autograd.gradcheck(lambda x, f=turn: f(x, places), x)


def test_only_the_tokens_that_occur_get_a_gradient():
    embed = TokenEmbedding(VOCAB, D_MODEL)
    embed(torch.tensor([3, 5, 3])).sum().backward()
    moved = embed.weight.grad.any(dim=-1).nonzero().flatten()
    assert moved.tolist() == [3, 5]


def test_the_table_has_variance_one_over_d_and_what_is_looked_up_has_one():
    embed = TokenEmbedding(10_007, 31)
    vectors = embed(torch.arange(10_007))
    assert abs(vectors.var() - 1) < 0.02
    assert abs(embed.weight.var() * 31 - 1) < 0.02


def test_learned_positions_begin_as_small_as_those_of_bert():
    weight = LearnedPositions(1009, 31).weight
    assert abs(weight.std() / 0.02 - 1) < 0.02


def test_angles_are_in_64_bits_but_on_an_accelerator_that_has_none(monkeypatch):
    def made(size, *, device):
        return SimpleNamespace(device=torch.device(device))

    monkeypatch.setattr(torch, "empty", made)
    assert _widest("mps") == torch.float32
    assert _widest("cuda") == torch.float64


@pytest.mark.parametrize("kind", [torch.int32, torch.int64])
def test_ids_may_be_of_either_integer_type_and_any_shape(kind):
    embed = TokenEmbedding(VOCAB, D_MODEL)
    tokens = torch.randint(VOCAB, (BATCH, 3, SEQ), dtype=kind)
    scaled = embed.weight[tokens.long()] * math.sqrt(D_MODEL)
    torch.testing.assert_close(embed(tokens), scaled)


def test_fixed_positions_have_nothing_to_save_and_no_longest_length():
    fixed = SinusoidalPositions(D_MODEL)
    assert not fixed.state_dict()
    assert fixed(torch.zeros(10_007, D_MODEL)).isfinite().all()


def test_new_tensors_stand_where_the_input_stands():
    x = torch.zeros(BATCH, SEQ, EVEN, device="meta")
    places = torch.arange(SEQ, device="meta")
    assert SinusoidalPositions(EVEN)(x).is_meta
    assert LearnedPositions(SEQ, EVEN).to("meta")(x).is_meta
    for turn in (rotate, rotate_complex):
        assert turn(x, places).is_meta


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [VOCAB, -1])
def test_an_unknown_id_is_named_with_its_place_and_the_size(wrong):
    tokens = torch.zeros(BATCH, SEQ, dtype=torch.long)
    tokens[1, 3] = wrong
    match = rf"tokens: .*vocabulary of 11, got {wrong} at \(1, 3\)"
    with pytest.raises(ValueError, match=match):
        TokenEmbedding(VOCAB, D_MODEL)(tokens)


@pytest.mark.bad_input
@pytest.mark.parametrize("kind", [torch.float32, torch.bool, torch.uint8])
def test_ids_that_are_no_integers_are_refused(kind):
    tokens = torch.ones(BATCH, SEQ, dtype=kind)
    with pytest.raises(TypeError, match=f"tokens: .*integer.*{kind}"):
        TokenEmbedding(VOCAB, D_MODEL)(tokens)


@pytest.mark.bad_input
def test_a_list_of_ids_is_refused():
    with pytest.raises(TypeError, match=r"tokens: .*integer.*got list"):
        TokenEmbedding(VOCAB, D_MODEL)([[1, 2]])


@pytest.mark.bad_input
def test_a_length_beyond_the_table_names_both():
    x = torch.zeros(BATCH, SEQ, D_MODEL)
    with pytest.raises(ValueError, match=r"max_len=3 .*got 5"):
        LearnedPositions(3, D_MODEL)(x)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "add", [SinusoidalPositions(D_MODEL), LearnedPositions(SEQ, D_MODEL)]
)
def test_another_width_names_both_shapes(add):
    match = r"^x: .* \(\.\.\., seq, d_model\) = \(\.\.\., 7\), got \(2, 5, 13\)"
    with pytest.raises(ValueError, match=match):
        add(torch.zeros(BATCH, SEQ, 13))
    with pytest.raises(TypeError, match=r"x: .*floating.*torch.int64"):
        add(torch.zeros(BATCH, SEQ, D_MODEL, dtype=torch.long))


@pytest.mark.bad_input
def test_mixed_number_types_and_devices_are_refused_by_name():
    x = torch.zeros(SEQ, EVEN)
    match = r"^x: expected .*float32 as the table of positions has, .*float64"
    with pytest.raises(TypeError, match=match):
        LearnedPositions(SEQ, EVEN)(x.to(WIDE))
    with pytest.raises(ValueError, match=r"x: expected device cpu.*got meta"):
        LearnedPositions(SEQ, EVEN)(x.to("meta"))
    with pytest.raises(ValueError, match=r"tokens: .* on cpu.*got one on meta"):
        TokenEmbedding(VOCAB, EVEN)(torch.zeros(3, dtype=int, device="meta"))
    with pytest.raises(ValueError, match=r"positions: .*cpu.*got meta"):
        rotate(x, torch.arange(SEQ, device="meta"))


@pytest.mark.bad_input
@pytest.mark.parametrize("turn", [rotate, rotate_complex])
def test_an_odd_width_and_missing_positions_are_refused(turn):
    with pytest.raises(ValueError, match=r"x: expected an even width.*7"):
        turn(torch.zeros(SEQ, 7), torch.arange(SEQ))
    with pytest.raises(ValueError, match=r"positions: .*\(5,\).*got \(3,\)"):
        turn(torch.zeros(SEQ, EVEN), torch.arange(3))
    with pytest.raises(TypeError, match=r"positions: .*numbers.*torch.bool"):
        turn(torch.zeros(SEQ, EVEN), torch.ones(SEQ, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"positions: .*numbers.*range"):
        turn(torch.zeros(SEQ, EVEN), range(SEQ))
    match = r"^x: expected shape \(\.\.\., seq, d\), got \(26,\)$"
    with pytest.raises(ValueError, match=match):
        turn(torch.zeros(EVEN), torch.arange(1))


@pytest.mark.bad_input
def test_positions_that_are_no_row_of_numbers_are_refused():
    with pytest.raises(TypeError, match=r"positions: .*numbers.*got list"):
        sinusoids([0, 1], D_MODEL)
    with pytest.raises(ValueError, match=r"positions: .*one axis.*\(2, 3\)"):
        sinusoids(torch.zeros(2, 3), D_MODEL)


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [0, -1])
def test_sizes_below_one_are_refused_by_name(wrong):
    for make, name in (
        (lambda: sinusoidal(wrong, D_MODEL), "length"),
        (lambda: sinusoidal(SEQ, wrong), "d_model"),
        (lambda: LearnedPositions(wrong, D_MODEL), "max_len"),
        (lambda: LearnedPositions(SEQ, wrong), "d_model"),
        (lambda: TokenEmbedding(wrong, D_MODEL), "vocab_size"),
        (lambda: TokenEmbedding(VOCAB, wrong), "d_model"),
        (lambda: SinusoidalPositions(wrong), "d_model"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: .*got {wrong}"):
            make()


@pytest.mark.bad_input
@pytest.mark.parametrize("wrong", [5.0, True, "5"])
def test_a_size_that_is_no_whole_number_is_refused(wrong):
    with pytest.raises(TypeError, match=r"length: expected an int"):
        sinusoidal(wrong, D_MODEL)


def test_an_embedding_of_shapes_alone_has_nothing_to_check():
    tokens = torch.zeros(BATCH, SEQ, dtype=torch.long, device="meta")
    embedding = TokenEmbedding(VOCAB, EVEN).to("meta")
    assert embedding(tokens).shape == (BATCH, SEQ, EVEN)
