"""What the newer model answers of chapters 04 to 07 claim, computed.

Where a claim has its cell in a chapter, the bank points there. Every number of
a numeric question, right or typically wrong, is computed here. A question that
asks for a repair shows its sick function: it fails in the way that is told.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from answers import answers, parameters

from companion import blocks, masks, multihead, positions, variants
from companion.contracts import check
from companion.interview import load

# Sizes are prime and all differ, so no axis can stand in for another.
BATCH, SEQ = 2, 5


def sick_and_cured(name):
    """The function that a question shows, and the one that repairs it.

    The first fails its contract, the second passes.
    """
    chapter = name.split("-")[0]
    task = next(q.task for q in load(chapter) if q.id == name)
    sick, cured = map(written, (task.stub, task.solution))
    report = check(task.component, sick)
    assert not report.passed
    assert "Nothing is written here yet" not in str(report)
    assert check(task.component, cured).passed
    return sick, cured


def written(source):
    """The function that some lines of code define."""
    scope = {"torch": torch}
    exec(source, scope)
    (name,) = scope.keys() - {"torch", "__builtins__"}
    return scope[name]


def moved(fn, x, *rest, position=-1):
    """Which rows of a result move with one position of ``x``."""
    other = x.clone()
    other[:, position] += 1
    change = fn(other, *rest) - fn(x, *rest)
    return (change.abs().amax((0, 2)) > 1e-5).tolist()


# Chapter 04


def test_the_maps_of_two_sentences_and_eight_heads():
    with torch.device("meta"):
        layer = multihead.MultiHeadAttention(512, 8)
        x = torch.empty(2, 100, 512)
        maps, out = layer.weights(x), layer(x)
    answers(
        "multihead-numbers-in-the-maps",
        maps.numel(),
        maps[:, 0].numel(),
        out.numel(),
        maps[0].numel(),
    )


def test_an_even_average_of_two_words_out_of_eleven():
    words = torch.cartesian_prod(torch.arange(11), torch.arange(11))
    seen = words.sort().values  # An even average does not tell the order.
    right = sum(
        max((wanted == word).sum() for word in range(11))
        for pair in seen.unique(dim=0)
        for wanted in [words[(seen == pair).all(1), 0]]
    )
    answers(
        "multihead-an-even-average",
        right.item() / len(words),
        1 / 2,
        1 / 11,
        1,
    )


def test_a_repeated_mask_hides_the_padding_of_another_sentence():
    heads, width = 3, 7
    q, k, v = torch.randn(3, BATCH, heads, SEQ, width)
    tokens = torch.tensor([[7, 7, 7, 7, 7], [7, 7, 0, 0, 0]])
    mask = masks.padding_mask(tokens, 0).expand(-1, 1, SEQ, -1)
    right = F.scaled_dot_product_attention(q, k, v, mask)

    def folded(q, k, v, mask):
        out = F.scaled_dot_product_attention(
            *(t.flatten(0, 1) for t in (q, k, v)), mask
        )
        return out.unflatten(0, (-1, heads))

    each = mask[:, 0].repeat_interleave(heads, dim=0)
    torch.testing.assert_close(folded(q, k, v, each), right)
    dealt = mask[:, 0].repeat(heads, 1, 1)
    wrong = folded(q, k, v, dealt)
    # Head 1 of sentence 0 has the mask of sentence 1, and the reverse.
    same = (wrong - right).abs().amax((2, 3)) < 1e-5
    assert same.tolist() == [[True, False, True]] * 2
    alone = folded(q[1:], k[1:], v[1:], mask[1:, 0].repeat(heads, 1, 1))
    torch.testing.assert_close(alone, right[1:])


def test_a_join_without_the_transpose_leaks_and_keeps_every_shape():
    sick, cured = sick_and_cured("multihead-repair-the-join")
    x, past = torch.randn(BATCH, SEQ, 12), masks.causal_mask(SEQ)
    assert sick(x).shape == cured(x).shape
    assert any(moved(sick, x, past)[:-1])
    assert moved(cured, x, past) == [False] * (SEQ - 1) + [True]
    order = torch.tensor([3, 0, 4, 2, 1])
    assert not torch.allclose(sick(x[:, order]), sick(x)[:, order], atol=0.1)
    torch.testing.assert_close(cured(x[:, order]), cured(x)[:, order])


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_key_heads_dealt_out_in_turns_are_right_for_one_group_and_for_all(
    groups,
):
    sick, cured = sick_and_cured("multihead-repair-shared-heads")
    q = torch.randn(BATCH, 6, SEQ, 7)
    k, v = torch.randn(2, BATCH, groups, 11, 7)
    right = variants.grouped_query_attention(q, k, v)
    torch.testing.assert_close(cured(q, k, v), right)
    assert torch.allclose(sick(q, k, v), right, atol=1e-5) == (groups != 2)


# Chapter 05


def test_the_longest_wavelength_at_the_papers_width():
    lengths = 2 * math.pi / positions.frequencies(512).double()
    answers(
        "positions-longest-wavelength",
        lengths[-1].item(),
        2 * math.pi * 10_000,
        10_000,
        lengths[0].item(),
    )
    ratio = (lengths[1:] / lengths[:-1]).mean()
    assert ratio == pytest.approx(1.037, abs=5e-4)


def test_t5_learns_a_number_for_each_head_and_bucket():
    heads, buckets, width = 8, 32, 64
    answers(
        "positions-weights-of-t5",
        parameters(positions.T5Bias(heads)),
        heads * buckets * width,
        buckets,
    )
    assert parameters(positions.Shaw(width, clip=16)) == 4224


def test_a_default_table_tied_to_the_output_starts_with_huge_logits():
    torch.manual_seed(0)
    vocab_size, d = 37_000, 512
    hidden, wanted = torch.randn(31, d), torch.randint(vocab_size, (31,))
    with torch.no_grad():
        table = torch.nn.Embedding(vocab_size, d).weight
        loud, fair = hidden @ table.T, hidden @ table.T / d**0.5
    answers("positions-logits-of-a-default-table", d**0.5, 1, d)
    assert loud.std() == pytest.approx(d**0.5, abs=0.3)
    assert fair.std() == pytest.approx(1, abs=0.02)
    assert F.cross_entropy(loud, wanted) > 60
    first = F.cross_entropy(fair, wanted)
    assert first == pytest.approx(math.log(vocab_size) + 1 / 2, abs=0.5)


def test_positions_in_bfloat16_are_shared_from_256_on():
    exact = torch.arange(1024)
    rounded = exact.bfloat16().long()
    assert torch.equal(rounded[:257], exact[:257])
    assert rounded[257] == 256
    # Between two powers of two only every second, then every fourth is left.
    for start, step in ((256, 2), (512, 4)):
        assert (rounded[start : 2 * start] % step == 0).all()
    x = torch.randn(1, 14).expand(1024, -1)
    late = positions.rotate(x, exact.bfloat16().float())
    turned = positions.rotate(x, exact)
    torch.testing.assert_close(late[:257], turned[:257])
    assert not torch.allclose(late[257:], turned[257:], atol=0.1)
    # Cosines and sines may be rounded: 600 and 601 stay apart.
    last = turned.bfloat16()
    assert (last[600] != last[601]).any()
    torch.testing.assert_close(last.float(), turned, atol=0.02, rtol=0.02)


def test_rope_that_counts_rows_is_right_for_a_whole_text_only():
    sick, cured = sick_and_cured("positions-repair-rope-beside-a-cache")
    x, places = torch.randn(SEQ, 14), torch.arange(SEQ)
    torch.testing.assert_close(sick(x, places), cured(x, places))
    alone = [
        [rope(x[i : i + 1], places[i : i + 1]) for i in range(SEQ)]
        for rope in (sick, cured)
    ]
    by_sick, by_cured = map(torch.cat, alone)
    torch.testing.assert_close(by_cured, cured(x, places))
    # Each token by itself is turned as if it stood at position 0.
    assert torch.equal(by_sick, x)


def test_places_as_shares_of_the_length_move_when_a_word_is_added():
    sick, cured = sick_and_cured("positions-repair-what-a-new-word-moves")
    x = torch.zeros(BATCH, SEQ, 14)
    for add, stays in ((sick, False), (cured, True)):
        same = torch.isclose(add(x)[:, :3], add(x[:, :3])).all()
        assert bool(same) is stays
    table = sick(torch.zeros(1, SEQ, 14))[0]
    assert torch.pdist(table).min() > 0.1
    assert table.abs().max() <= 1
    places = [torch.linspace(0, 100, n)[3].item() for n in (10, 5)]
    assert places == pytest.approx([33, 75], abs=0.4)


def test_sines_and_cosines_of_different_angles_know_no_distance():
    sick, cured = sick_and_cured("positions-repair-a-table-without-distance")
    for make, knows in ((sick, False), (cured, True)):
        table = make(101, 14).double()
        assert table[0].tolist() == [0, 1] * 7
        assert torch.pdist(table).min() > 0.1
        three_apart = (table @ table.T).diagonal(3)
        assert bool(table.norm(dim=-1).std() < 1e-5) is knows
        assert bool(three_apart.std() < 1e-5) is knows


# Chapter 06


def test_a_mask_of_ones_that_is_added_leaves_the_future_in_sight():
    q, k, v = torch.zeros(1, 7), torch.randn(4, 7), torch.eye(4)
    seen = torch.tensor([[True, True, False, False]])
    added, hidden, open_to_all = (
        F.scaled_dot_product_attention(q, k, v, mask)[0, 2:].sum().item()
        for mask in (seen.float(), seen, None)
    )
    answers("masks-a-mask-of-numbers", added, hidden, open_to_all, 1 - added)
    assert added == pytest.approx(1 / (math.e + 1))


def test_three_texts_packed_into_a_row_of_six():
    text = torch.tensor([1, 1, 1, 2, 2, 3])
    past, same = masks.causal_mask(6), text[:, None] == text
    packed = past & same
    answers(
        "masks-entries-of-a-packed-row",
        packed.sum().item(),
        past.sum().item(),
        same.sum().item(),
        past.numel(),
    )
    assert (past & ~same).sum() == 11
    # Packed or alone, a text gives the same, and a neighbour moves nothing.
    layers = [blocks.EncoderLayer(14, 2, 11) for _ in range(2)]
    x, middle = torch.randn(1, 6, 14), slice(3, 5)

    def read(x, mask):
        for layer in layers:
            x = layer(x, mask)
        return x

    alone = read(x[:, middle], masks.causal_mask(2))
    torch.testing.assert_close(read(x, packed)[:, middle], alone)
    assert not moved(lambda x: read(x, packed), x, position=0)[3]
    assert moved(lambda x: read(x, past), x, position=0)[3]


def test_lengths_counted_from_the_left_fit_padding_on_the_right_only():
    sick, cured = sick_and_cured("masks-repair-what-prompts-broke")
    right = torch.tensor([[7, 8, 0, 0, 0], [3, 4, 5, 6, 7]])
    left = right.flip(1)
    assert torch.equal(sick(right, 0), cured(right, 0))
    assert sick(left, 0)[0].flatten().tolist() == [True] * 2 + [False] * 3
    assert cured(left, 0)[0].flatten().tolist() == [False] * 3 + [True] * 2
    # One prompt at a time has no pads.
    assert torch.equal(sick(left[1:], 0), cured(left[1:], 0))


def test_rows_of_padding_that_see_nobody_spread_nan_to_the_words():
    sick, cured = sick_and_cured("masks-repair-a-nan-out-of-padding")
    tgt = torch.tensor([[1, 7, 8, 0, 0], [1, 5, 6, 7, 8]])
    src, words = tgt, tgt != 0

    def layer(x, mask):
        scores = (x @ x.mT).masked_fill(~mask, -torch.inf)
        return x + scores.softmax(-1) @ x

    x = torch.randn(BATCH, SEQ, 7)
    for make, spreads in ((sick, True), (cured, False)):
        mask = make(src, tgt, 0)[1][:, 0]
        first = layer(x, mask)
        assert first[words].isfinite().all()
        second = layer(first, mask)
        assert bool(second[0][words[0]].isnan().any()) is spreads
        assert second[1].isfinite().all()


# Chapter 07


def test_what_is_linear_in_an_encoder_layer_and_what_is_not():
    layer = blocks.EncoderLayer(14, 2, 11)
    x, u, w = torch.randn(3, 1, SEQ, 14)
    attention = multihead.MultiHeadAttention(14, 2, bias=False)
    mix = attention(x, value=u) + 2 * attention(x, value=w)
    torch.testing.assert_close(attention(x, value=u + 2 * w), mix)
    assert not torch.allclose(attention(2 * x), 2 * attention(x), atol=0.01)
    norm = layer.attention_residual.norm
    torch.testing.assert_close(norm(2 * x), norm(x), atol=1e-3, rtol=0)
    up, down = torch.randn(14, 11), torch.randn(11, 14)
    torch.testing.assert_close(
        x @ up @ down, x @ (up @ down), atol=1e-3, rtol=1e-3
    )


def test_a_norm_that_is_never_called_keeps_its_gain_at_one():
    layer = blocks.EncoderLayer(14, 2, 11)
    first = layer.attention_residual.norm
    second = layer.feed_forward_residual.norm
    x, read_off = torch.randn(BATCH, SEQ, 14), torch.randn(14)
    adam = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(3):
        y = first(x + layer.self_attention(x))
        y = first(y + layer.feed_forward(y))
        adam.zero_grad()
        (y @ read_off - 1).square().mean().backward()
        adam.step()
    silent = {n for n, p in layer.named_parameters() if p.grad is None}
    assert silent == {
        f"feed_forward_residual.norm.{name}"
        for name, _ in second.named_parameters()
    }
    gains = {norm: dict(norm.named_parameters()) for norm in (first, second)}
    moves = [(p != p.round()).all() for p in gains[first].values()]
    assert all(moves)
    assert {p.unique().item() for p in gains[second].values()} == {0, 1}


def test_a_square_of_a_thousand_does_not_fit_half_precision():
    (question,) = (
        q for q in load("blocks") if q.id == "blocks-rms-norm-from-memory"
    )
    mine, gain = written(question.task.solution), torch.ones(14).half()
    x = (1000 + torch.randn(SEQ, 14)).half()
    right = F.rms_norm(x.double(), (14,), eps=1e-6)
    close = {"atol": 1e-2, "rtol": 1e-2}
    torch.testing.assert_close(mine(x, gain, 1e-6).double(), right, **close)
    assert torch.finfo(torch.float16).max == 65_504
    for size, fits in ((255, True), (256, False)):
        alike = torch.full((14,), float(size)).half()
        mean_square = alike.square().mean()
        narrow = alike * torch.rsqrt(mean_square + 1e-6)
        assert bool(narrow.all()) is fits
        assert bool(mean_square.isfinite()) is fits
    threes = torch.full((4,), 3.0)
    torch.testing.assert_close(mine(threes, torch.ones(4), 0.0), threes / 3)
    assert F.normalize(threes, dim=-1).tolist() == [0.5] * 4


def test_a_difference_of_squares_loses_the_variance_far_from_zero():
    torch.manual_seed(0)
    sick, cured = sick_and_cured("blocks-repair-a-norm-far-from-zero")
    gain, bias, eps = torch.ones(14), torch.zeros(14), 1e-5
    # Entries that float32 holds exactly, also next to 10 000.
    x = (64 * torch.randn(101, 14)).round() / 64
    right = F.layer_norm(x, (14,), eps=eps)
    near = {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(sick(x, gain, bias, eps), right, **near)
    far = x + 10_000
    torch.testing.assert_close(
        cured(far, gain, bias, eps), right, atol=0.01, rtol=0.01
    )
    lost = sick(far, gain, bias, eps).isnan().any(-1)
    assert 0 < lost.sum() < len(lost)
    square = torch.tensor(1e8)
    assert torch.nextafter(square, 2 * square) - square == 8


def test_the_weights_of_a_post_ln_layer_fit_a_pre_ln_layer_and_mean_nothing():
    sick, cured = sick_and_cured("blocks-repair-a-layer-that-speaks-noise")
    d, d_ff = 14, 11
    shapes = dict.fromkeys(("w_q", "w_k", "w_v", "w_o"), (d, d))
    shapes |= {"w_1": (d_ff, d), "b_1": (d_ff,)}
    shapes |= {"w_2": (d, d_ff), "b_2": (d,)}
    weights = {n: torch.randn(s) / s[-1] ** 0.5 for n, s in shapes.items()}
    for place in (1, 2):
        weights[f"gain_{place}"] = torch.ones(d)
        weights[f"bias_{place}"] = torch.zeros(d)
    x = y = z = torch.randn(BATCH, SEQ, d)
    for _ in range(12):
        y, z = sick(y, weights, 2), cured(z, weights, 2)
    ones = torch.ones(BATCH, SEQ)
    torch.testing.assert_close(z.std(-1, correction=0), ones, atol=1e-3, rtol=0)
    assert y.std() > 2 * sick(x, weights, 2).std()
    silent = weights | {
        n: torch.zeros_like(weights[n]) for n in ("w_o", "w_2", "b_2")
    }
    assert torch.equal(sick(x, silent, 2), x)
    assert not torch.allclose(cured(x, silent, 2), x, atol=0.1)
