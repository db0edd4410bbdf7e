"""The race is fair and runs everywhere; the fast path is the plain one."""

import json
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks import (
    learning,
    machine,
    memory,
    race_decoding,
    race_training,
    report,
)
from benchmarks.__main__ import SECTIONS, main
from benchmarks.peers import EOS, PAD, PEERS, SIZES, TOY, batches, ours
from companion.blocks import Dropout, LayerNorm, layer_norm
from companion.decoding import translate
from companion.multihead import MultiHeadAttention
from companion.training import Objective

# One of the libraries we race against still scripts a function.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)
# Sizes are prime and all differ, so no axis can stand in for another.
TOKENS, VOCAB, WIDTH = 13, 17, 11


# The fast path is the same function


def test_the_layer_norm_of_the_module_is_the_one_that_is_written_out():
    norm = LayerNorm(WIDTH).double()
    nn.init.normal_(norm.gain)
    nn.init.normal_(norm.bias)
    x = torch.randn(3, 5, WIDTH, dtype=torch.double, requires_grad=True)
    wanted = layer_norm(x, norm.gain, norm.bias, norm.eps)
    torch.testing.assert_close(norm(x), wanted)
    inputs = [x, norm.gain, norm.bias]
    weight = torch.randn_like(x)
    torch.testing.assert_close(
        torch.autograd.grad((norm(x) * weight).sum(), inputs),
        torch.autograd.grad((wanted * weight).sum(), inputs),
    )


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_its_share_and_keeps_the_mean(p):
    # 250,001 is no multiple of the four features that share one draw.
    kept = Dropout(p).train()(torch.ones(250_001))
    share = (kept == 0).double().mean().item()
    # Five standard deviations of a share of so many.
    margin = 5 * (p * (1 - p) / 250_001) ** 0.5
    assert share == pytest.approx(p, abs=margin)
    (scale,) = kept[kept != 0].unique().tolist()
    assert scale == pytest.approx(1 / (1 - p), rel=1e-4)


def test_each_feature_and_each_call_is_drawn_for_itself():
    layer = Dropout(0.5).train()
    one, other = (layer(torch.ones(4, 25_000)) != 0 for _ in range(2))
    agreeing = [
        (a == b).double().mean().item()
        for a, b in [
            (one, other),
            (one[0], one[1]),
            # Four neighbours come out of one draw.
            *((one[:, 0::4], one[:, i::4]) for i in (1, 2, 3)),
            (one[:, :-4], one[:, 4:]),
        ]
    ]
    assert agreeing == [pytest.approx(0.5, abs=0.03)] * 6


def test_the_gradient_of_dropout_is_dropped_where_the_value_was():
    x = torch.ones(7, 11, requires_grad=True)
    kept = Dropout(0.3).train()(x)
    kept.sum().backward()
    assert torch.equal(x.grad, kept)
    assert (kept == 0).any()
    assert (kept != 0).any()


@pytest.mark.once  # What is compiled cannot look into the shape hook.
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_dropout_draws_as_the_plain_one_and_once(backend):
    layer = Dropout(0.3).train()
    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    torch.manual_seed(3)
    plain = layer(torch.ones(7, 11))
    torch.manual_seed(3)
    x = torch.ones(7, 11, requires_grad=True)
    kept = compiled(x)
    assert torch.equal(kept, plain)
    kept.sum().backward()
    assert torch.equal(x.grad, kept)  # dropped again where the value was
    assert not torch.equal(compiled(x), kept)


def test_a_dropout_of_almost_everything_stays_finite():
    assert Dropout(1 - 1e-9).train()(torch.ones(999)).isfinite().all()


def test_dropout_follows_the_seed():
    layer, x = Dropout(0.4).train(), torch.ones(5, 13)
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(layer(x), first)


def test_dropout_is_off_where_it_should_be():
    x = torch.randn(7, 11)
    assert torch.equal(Dropout(0.4).eval()(x), x)
    assert torch.equal(Dropout(0.0).train()(x), x)


def test_under_autocast_a_cpu_attends_in_32_bits(monkeypatch):
    """The loss of digits is that of the projections, and not one more."""
    seen = []
    fused = F.scaled_dot_product_attention

    def listening(q, *args, **how):
        seen.append(q.dtype)
        return fused(q, *args, **how)

    monkeypatch.setattr(F, "scaled_dot_product_attention", listening)
    layer = MultiHeadAttention(12, 3)
    x = torch.randn(2, 5, 12, requires_grad=True)
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    (wanted,) = torch.autograd.grad(layer(x, mask).sum(), x)
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x, mask)
    assert seen == [torch.float32, torch.float32]
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(
        out.float(), layer(x, mask), rtol=0.05, atol=0.05
    )
    (gradient,) = torch.autograd.grad(out.float().sum(), x)
    torch.testing.assert_close(gradient, wanted, rtol=0.1, atol=0.1)


# The race is fair


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: size.name)
def test_all_models_of_a_size_are_of_one_size(size):
    def count(model):
        # Positions are computed by some, and tables that nobody trains by
        # others.
        names = ("position", "pos_emb")
        return sum(
            p.numel()
            for name, p in model.named_parameters()
            if not any(word in name for word in names)
        )

    own = count(ours(size))
    for kind in PEERS.values():
        assert count(kind(size)) == pytest.approx(own, rel=0.02)


@pytest.mark.parametrize("name", PEERS)
def test_every_model_starts_from_the_loss_of_a_guess_and_learns(name):
    torch.manual_seed(0)
    peer = PEERS[name](TOY)
    (batch,) = batches(TOY, 1)
    first = peer.loss(*batch)
    optimizer = torch.optim.Adam(peer.parameters(), lr=1e-2)
    for _ in range(8):
        optimizer.zero_grad()
        loss = peer.loss(*batch)
        loss.backward()
        optimizer.step()
    assert first.item() == pytest.approx(6.9, abs=1.5)  # log 997
    assert loss < first - 1


@pytest.mark.parametrize("name", PEERS)
def test_more_padding_changes_no_loss(name):
    """Whoever looks at padding does other work than the rest."""
    peer = PEERS[name](TOY).eval()
    src, tgt = batches(TOY, 1)[0]
    more = F.pad(src, (0, 2), value=PAD), F.pad(tgt, (0, 2), value=PAD)
    torch.testing.assert_close(peer.loss(*more), peer.loss(src, tgt))


def test_the_package_and_nn_transformer_compute_the_same_thing():
    """The same weights give the same loss: what is timed is the same work."""
    size = TOY._replace(dropout=0.0)
    own, peer = ours(size), PEERS["nn.Transformer"](size)
    with torch.no_grad():
        peer.embedding.weight.copy_(own.tgt_embedding.weight)
        for side in ("encoder", "decoder"):
            pairs = zip(
                getattr(own, side).layers,
                getattr(peer.body, side).layers,
                strict=True,
            )
            for mine, theirs in pairs:
                _copy_layer(mine, theirs)
    (batch,) = batches(size, 1)
    total, count = Objective(own)(*batch)
    torch.testing.assert_close(total / count, peer.loss(*batch))


def _copy_layer(mine, theirs):
    places = [(mine.self_attention, theirs.self_attn)]
    norms = [mine.attention_residual, mine.feed_forward_residual]
    if hasattr(mine, "cross_attention"):
        places.append((mine.cross_attention, theirs.multihead_attn))
        norms.insert(1, mine.cross_residual)
    for one, other in places:
        parts = one.q_proj, one.k_proj, one.v_proj
        other.in_proj_weight.copy_(torch.cat([p.weight for p in parts]))
        other.in_proj_bias.copy_(torch.cat([p.bias for p in parts]))
        other.out_proj.load_state_dict(one.out_proj.state_dict())
    for number, residual in enumerate(norms, 1):
        norm = getattr(theirs, f"norm{number}")
        norm.weight.copy_(residual.norm.gain)
        norm.bias.copy_(residual.norm.bias)
    theirs.linear1.load_state_dict(mine.feed_forward.up_proj.state_dict())
    theirs.linear2.load_state_dict(mine.feed_forward.down_proj.state_dict())


def test_a_fifth_of_a_batch_is_padding():
    made = batches(SIZES[0], 20)
    tokens = torch.cat([side.flatten() for pair in made for side in pair])
    assert (tokens == PAD).double().mean().item() == pytest.approx(
        0.2, abs=0.03
    )


def test_turns_are_taken_and_the_first_is_not_counted(monkeypatch):
    now, order = [0.0], []

    def run(name, number):
        order.append((name, number))
        now[0] += [100, 3, 1, 2][number]

    monkeypatch.setattr(machine, "clock", lambda device: now[0])
    runs = {name: partial(run, name) for name in "ab"}
    times = machine.interleaved(runs, rounds=3, device="cpu")
    assert order == [(name, n) for n in range(4) for name in "ab"]
    assert [taken.rounds for taken in times.values()] == [(3, 1, 2)] * 2
    assert times["a"].median == 2


def test_a_ratio_is_the_middle_of_those_of_the_rounds():
    # The machine was slow in the second round, for both.
    ours, theirs = machine.Times((1, 8, 2)), machine.Times((3, 16, 4))
    assert theirs.over(ours) == 2


def test_every_sentence_of_the_race_is_written_to_its_last_token():
    torch.manual_seed(0)
    model = ours(TOY)
    race_decoding.silence(model.tgt_embedding.weight)
    assert not model.tgt_embedding.weight[EOS].any()
    (src, _) = batches(TOY, 1)[0]
    said = translate(model.eval(), src, max_len=29)
    assert [len(row) for row in said] == [29] * len(src)
    assert all(EOS not in row for row in said)


def test_the_exact_match_counts_whole_sentences(monkeypatch):
    said = [[5, 6, EOS], [7, EOS], [5, 5, EOS]]
    tgt = torch.tensor([[1, 5, 6, EOS], [1, 7, EOS, PAD], [1, 5, 6, EOS]])
    monkeypatch.setattr(learning, "translate", lambda *_, **__: said)
    assert learning.exact(None, tgt, tgt) == pytest.approx(2 / 3)


def test_what_is_asked_in_the_learning_race_was_not_practised():
    recipe = learning.RECIPES["reverse", "tuned"]
    made = learning.task("reverse", recipe._replace(steps=50), 0)
    known = {tuple(row) for src, _ in made.train for row in src.tolist()}
    src, tgt = made.test
    assert not known & {tuple(row) for row in src.tolist()}
    assert torch.equal(src.flip(1), tgt[:, 1:])


# What is measured is what it says


def test_the_peak_is_that_of_what_lives_at_one_time():
    def three_at_once():
        a = torch.empty(1000)
        b = torch.empty(2000)
        del a
        return b, torch.empty(500)

    # PyTorch may round a block up to 64 bytes.
    assert memory.peak(three_at_once, "cpu") == pytest.approx(12_000, abs=128)


def test_attention_without_weights_needs_less_and_with_dropout_does_not():
    rows = {}
    for name, way in memory.WAYS.items():
        q, k, v = (torch.randn(1, 2, 512, 64) for _ in range(3))
        rows[name] = memory.peak(lambda w=way, a=(q, k, v): w(*a), "cpu")
    explicit, none, dropped = rows.values()
    assert none * 10 < explicit
    assert dropped > none * 5


def test_rerouting_is_undone():
    switch = torch.backends.mkldnn.matmul
    before = switch.fp32_precision
    errors = race_training.rerouting_error()
    assert switch.fp32_precision == before
    assert errors["plain"] < 1e-5


def test_the_operations_of_a_step_are_counted_by_hand():
    size = TOY._replace(dropout=0.0, d_model=96, d_ff=389, batch=11, length=13)
    (src, tgt) = batches(size, 1)[0]
    batch, length = src.shape
    d, wide = size.d_model, size.d_ff
    here, there = batch * length, batch * (length - 1)
    read, written = ((side != PAD).sum().item() for side in (src, tgt[:, 1:]))
    products = (
        here * 4 * d * d
        + there * 6 * d * d
        + here * 2 * d * d
        + (read + written) * 2 * d * wide
        + written * size.vocab_size * d
    )
    # Two operations for each, and the backward pass has two such products;
    # attention itself is small beside them.
    assert race_training.flops(size, "cpu") == pytest.approx(
        6 * products, rel=0.03
    )


def test_a_table_shows_three_digits():
    assert report.table([{"a": 1234.5, "b": "x"}, {"a": 0.012345, "b": 7}]) == [
        "| a | b |",
        "| --- | --- |",
        "| 1,234 | x |",
        "| 0.0123 | 7 |",
    ]


# All of it runs


@pytest.mark.once  # It compiles too.
def test_the_whole_race_runs_at_toy_size_and_leaves_two_files(tmp_path, capsys):
    main(["--small", "--out", str(tmp_path)])
    (data,) = tmp_path.glob("*.json")
    (page,) = tmp_path.glob("*.md")
    told = json.loads(data.read_text(encoding="utf-8"))
    assert set(told["sections"]) == set(SECTIONS)
    assert {"date", "machine", "threads", "torch", "clock"} <= set(
        told["facts"]
    )
    text = page.read_text(encoding="utf-8")
    assert "Not measured" not in text
    for name in ("companion", *PEERS):
        assert f"| {name}" in text
    assert "| phrasebook | tuned |" in capsys.readouterr().out


def test_what_was_not_measured_is_said_to_be_so():
    page = report.as_page({"machine": "x"}, {})
    assert page.count("Not measured.") == len(report.TITLES)


def test_a_section_that_does_not_exist_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "speed" in capsys.readouterr().err


def test_a_part_measured_again_leaves_the_other_parts(tmp_path):
    told = {"date": "2026-01-02", "machine": "A (tm) B", "commit": "a1"}
    first = {"memory": [{"length": 7}], "training": [{"size": "old"}]}
    report.write(told, first, tmp_path)
    told["commit"] = "b2"
    [data, page] = report.write(told, {"training": [{"size": "x"}]}, tmp_path)
    assert "- commit: a1, b2" in page.read_text(encoding="utf-8")
    assert data.name == "2026-01-02-a-tm-b.json"
    sections = json.loads(data.read_text(encoding="utf-8"))["sections"]
    assert sections == first | {"training": [{"size": "x"}]}
    assert "| 7 |" in page.read_text(encoding="utf-8")


@pytest.mark.bad_input
def test_a_device_that_is_not_here_is_named(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="2"):
        main(["training", "--small", "--device", "cuda"])
    told = capsys.readouterr().err.splitlines()[-1]
    assert "device: expected cpu" in told
    assert told.endswith("got cuda")
