"""The package on an accelerator: the pretend one, or with DEVICE=cuda a GPU.

CUDA does not tell what kind of wait it was, so that there they are counted.
"""

import pytest
import torch
from contracts.right import RIGHT
from devices.public import (
    COMPUTED,
    LOOKING,
    SMALL,
    TARGET,
    TOKENS,
    WRITTEN,
    built,
    transformer,
)
from support.device import DEVICE, accelerator, counted
from torch import nn
from torch.utils._pytree import tree_leaves

from companion import MultiHeadAttention, check
from companion.contracts import check_model
from companion.training import (
    Objective,
    TrainConfig,
    adam,
    checkpoint,
    read_log,
    train,
    update,
)
from companion.training.capability import (
    can_compile,
    narrow_type,
    scaler_for,
)
from companion.training.distributed import place

pytestmark = pytest.mark.once
PRETENDED = pytest.mark.skipif(
    DEVICE != "pretend", reason="what a GPU can do is not ours to change"
)


@pytest.fixture
def device():
    with accelerator() as made:
        yield made


def seen(kind):
    """Name a wait as the device of these tests does."""
    return kind if DEVICE == "pretend" else "CUDA"


# What it refuses and counts


def test_it_computes_what_the_cpu_computes(device):
    x = torch.arange(15.0).view(3, 5)
    expected = (x @ x.mT).softmax(-1).cumsum(0)
    there = x.to(device)
    found = (there @ there.mT).softmax(-1).cumsum(0)
    assert found.device == device
    torch.testing.assert_close(found.cpu(), expected)


def test_gradients_arrive_there(device):
    x = torch.arange(3.0, device=device).requires_grad_()
    (x**2).sum().backward()
    assert x.grad.device == device
    assert x.grad.tolist() == [0, 2, 4]


def test_tensors_of_two_devices_do_not_meet(device):
    with pytest.raises(RuntimeError, match="on the same device"):
        torch.ones(3, device=device) + torch.ones(3)


def test_a_cpus_generator_draws_nothing_there(device):
    with pytest.raises(RuntimeError, match=f"'{DEVICE}' device type for gen"):
        torch.rand(3, device=device, generator=torch.Generator())
    there = torch.Generator(device)
    assert torch.rand(3, device=device, generator=there).device == device
    with pytest.raises(RuntimeError, match="'cpu' device type for generator"):
        torch.rand(3, generator=there)


def test_numpy_wants_a_copy_first(device):
    with pytest.raises(TypeError, match="to numpy"):
        torch.ones(3, device=device).numpy()


@pytest.mark.parametrize(
    ("kind", "ask"),
    [
        ("item", lambda x: x.sum().item()),
        ("item", lambda x: bool((x > 0).all())),
        ("item", lambda x: int(x[0])),
        ("boolean indexing", lambda x: x[x > 0]),
        ("nonzero", lambda x: x.nonzero()),
        ("copy", lambda x: x.cpu()),
        ("copy", lambda x: x + torch.ones(3).to(x.device)),
        ("copy", lambda x: x.tolist()),
        ("equal", lambda x: torch.equal(x, x.clone())),
    ],
)
def test_each_wait_is_counted(device, kind, ask):
    x = torch.arange(3.0, device=device)
    with counted() as waits:
        ask(x)
    assert [what for what, _ in waits.elements()] == [seen(kind)]


def test_what_stays_there_is_no_wait(device):
    x = torch.arange(3.0, device=device)
    with counted() as waits:
        torch.where(x > 0, x * 2, 0.0).argmax()
    assert not waits


# The package


@pytest.mark.parametrize(
    ("chapter", "name"),
    [(chapter, name) for chapter, each in COMPUTED.items() for name in each],
)
def test_the_result_is_where_the_inputs_are_and_only_a_look_waits(
    device, chapter, name
):
    call = COMPUTED[chapter][name]
    expected = tree_leaves(call(lambda x: x))

    with counted() as waits:
        found = tree_leaves(call(lambda x: x.to(device)))
    waited = [(what, place) for what, place in waits if place]
    assert bool(waited) == (name in LOOKING)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, torch.Tensor):
            assert one.device == device
            torch.testing.assert_close(one.cpu(), other)


@pytest.mark.parametrize("name", WRITTEN)
def test_the_same_is_written_there_and_a_step_waits_once(device, name):
    expected = WRITTEN[name](lambda x: x)
    with counted() as waits:
        assert WRITTEN[name](lambda x: x.to(device)) == expected
    found = [n for (_, place), n in waits.items() if place]
    # In the end what beams have found is copied, the ids and their number.
    assert sorted(found) == [2] * ("in beams" in name) + [7], waits


# check


@pytest.mark.parametrize("component", RIGHT)
def test_check_judges_alike_where_an_accelerator_is_the_default(
    device, component, monkeypatch
):
    # The device is slow, and how slow is not what is judged.
    monkeypatch.setattr("companion.contracts.engine.runner.SECONDS", 100.0)
    torch.set_default_device(device)
    try:
        assert check(component, RIGHT[component][0]).passed
    finally:
        torch.set_default_device(None)


def test_check_judges_a_module_where_it_lives(device):
    module = built(lambda: MultiHeadAttention(12, 3)).to(device)
    report = check("multihead", module)
    assert report.passed
    assert "where it lives" in str(report)
    assert {p.device for p in module.parameters()} == {device}


class MaskOfTheHost(nn.Module):
    """Right on the CPU; elsewhere its mask stays behind."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x):
        n = x.shape[1]
        past = torch.ones(n, n, dtype=torch.bool, device="cpu").tril()
        return self.attention(x, past)


def test_check_finds_a_mask_that_stays_behind(device):
    module = MaskOfTheHost(built(lambda: MultiHeadAttention(12, 3)))
    assert check("causal_attention", module).passed
    report = check("causal_attention", module.to(device))
    assert [f.contract for f in report.faults] == [
        "It works on the device where it lives"
    ]


class OfOneDevice(nn.Module):
    """Names its device, and keeps a tensor that is no buffer there."""

    def __init__(self, attention, device, kept_on):
        super().__init__()
        self.attention, self.device = attention, device
        self.past = torch.ones(99, 99, dtype=torch.bool).tril().to(kept_on)

    def forward(self, x):
        n = x.shape[1]
        nothing = torch.zeros(n, n, dtype=torch.bool, device=self.device)
        return self.attention(x, self.past[:n, :n] | nothing.to(self.device))


@pytest.mark.parametrize("kept_on", ["there", "here"])
def test_a_device_that_code_names_is_the_cpu_until_all_else_holds(
    device, kept_on
):
    attention = built(lambda: MultiHeadAttention(12, 3))
    place = device if kept_on == "there" else torch.device("cpu")
    module = OfOneDevice(attention, device, place).to(device)
    report = check("causal_attention", module)
    found = [f.contract for f in report.faults]
    left_behind = ["It works on the device where it lives"]
    assert found == (left_behind if kept_on == "here" else [])
    assert module.past.device == place
    assert {p.device for p in module.parameters()} == {device}


def test_a_mask_that_is_made_there_is_judged(device):
    def past(n):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    assert check("causal_mask", past).passed
    assert past(3).device == device
    assert not check("causal_mask", lambda n: past(n).mT).passed


def test_check_model_judges_a_model_that_lives_there(device):
    model = built(transformer).to(device)
    found = check_model(model)
    assert found.passed
    assert {p.device for p in model.parameters()} == {device}


# Training


def test_a_run_learns_there_what_it_learns_here(tmp_path, monkeypatch):
    settings = TrainConfig(data="copy", steps=5, warmup=2, **SMALL)
    with monkeypatch.context() as without:
        without.setattr(torch.accelerator, "is_available", lambda: False)
        train(settings, tmp_path / "here", progress=False)
    with accelerator(), counted() as waits:
        train(settings, tmp_path / "there", progress=False)
        assert any(place for _, place in waits)
    here, there = (read_log(tmp_path / f) for f in ("here", "there"))
    for one, other in zip(here, there, strict=True):
        for name in ("loss", "gradient"):
            assert one[name] == pytest.approx(other[name], rel=1e-4)


def test_a_step_waits_for_the_count_of_tokens_and_for_what_it_measured(device):
    model = built(transformer).to(device)
    batch = TOKENS.to(device), TARGET.to(device)
    optimizer = adam(model.parameters(), lr=1e-3)
    with counted() as waits:
        update(Objective(model), optimizer, [batch], step=1, rate=1e-3)
    assert [what for what, place in waits.elements() if place] == [
        seen(kind) for kind in ("item", "copy", "copy")
    ]


BOTH = [torch.float16, torch.bfloat16]


@pytest.mark.parametrize(
    ("able", "taken"),
    [(BOTH, torch.bfloat16), ([torch.float16], torch.float16), ([], None)],
)
@PRETENDED
def test_mixed_precision_is_the_best_that_the_device_has(
    device, monkeypatch, able, taken
):
    can(monkeypatch, able)
    assert narrow_type(device) == taken
    assert (scaler_for(taken, device) is None) == (taken != torch.float16)
    model = built(transformer).to(device)
    ids = TOKENS.to(device), TARGET.to(device)
    with torch.autocast(device.type, taken, enabled=taken is not None):
        assert model(*ids).dtype == (taken or torch.float32)


def can(monkeypatch, able):
    """Have a device that multiplies in these types only."""
    if DEVICE == "pretend":
        asked = staticmethod(lambda: able)
        module = torch.get_device_module(DEVICE)
        monkeypatch.setattr(type(module), "get_amp_supported_dtype", asked)
    else:
        wide = torch.bfloat16 in able
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: wide)


@pytest.mark.parametrize("able", [BOTH, [torch.float16]])
def test_a_run_in_mixed_precision_goes_on_as_if_it_had_not_stopped(
    device, tmp_path, monkeypatch, able
):
    can(monkeypatch, able)
    settings = TrainConfig(
        data="copy", steps=5, warmup=2, save_every=3, bf16=True, **SMALL
    )
    train(settings, tmp_path, progress=False)
    middle, end = checkpoint.every(tmp_path / "checkpoints")
    scale = checkpoint.read(middle).facts.get("scaler")
    if torch.bfloat16 in able:
        assert not scale
    else:
        assert (scale["scale"], scale["_growth_tracker"]) == (2.0**16, 3)
    whole = end.read_bytes()
    end.unlink()  # As if it had been killed before.
    train(settings, tmp_path, progress=False)
    assert end.read_bytes() == whole


@PRETENDED
def test_a_device_without_a_compiler_runs_what_is_not_compiled(
    device, tmp_path
):
    assert not can_compile(device)
    settings = TrainConfig(
        data="copy", steps=1, warmup=1, compile=True, **SMALL
    )
    with pytest.warns(RuntimeWarning, match="pretend has no compiler here"):
        train(settings, tmp_path, progress=False)


@PRETENDED
def test_processes_share_an_accelerator_only_if_each_has_one(
    device, monkeypatch
):
    cpu = torch.device("cpu")
    ways = torch.distributed.Backend.default_device_backend_map
    assert place(0, 1) == cpu  # Nothing adds up gradients that lie there.
    monkeypatch.setitem(ways, device.type, "gloo")
    assert place(0, 1) == device
    assert place(0, 2) == place(1, 2) == cpu
