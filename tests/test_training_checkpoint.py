"""Checkpoints: whole or not there, and enough to go on from."""

import builtins
import errno
import json
import os
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from companion.training.checkpoint import (
    average,
    every,
    fill,
    latest,
    load,
    parameters_of,
    save,
    tidy,
)
from companion.training.optimizer import adam
from companion.training.randomness import random_state, restore, start_at
from companion.transformer import Transformer, TransformerConfig


def network():
    return nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.5), nn.Linear(5, 2))


def steps(model, optimizer, number):
    """Some steps whose gradients need the random numbers."""
    for _ in range(number):
        optimizer.zero_grad()
        model(torch.randn(7, 3)).square().sum().backward()
        optimizer.step()


@pytest.fixture
def begun():
    model = network()
    optimizer = adam(model.parameters(), lr=0.01)
    steps(model, optimizer, 3)
    return model, optimizer


def same(left, right):
    return all(
        torch.equal(p, q)
        for p, q in zip(left.parameters(), right.parameters(), strict=True)
    )


def test_what_was_loaded_goes_on_exactly_as_what_was_saved(begun, tmp_path):
    model, optimizer = begun
    path = save(tmp_path, 3, model, optimizer)
    steps(model, optimizer, 4)
    drawn = torch.rand(2).tolist()
    torch.manual_seed(11)
    other = network()
    its = adam(other.parameters(), lr=0.01)
    load(path, other, its)
    assert not same(other, model)
    steps(other, its, 4)
    assert same(other, model)
    assert torch.rand(2).tolist() == drawn


@pytest.mark.bad_input  # With the shape hook, beartype draws some of its own.
def test_pythons_random_numbers_go_on_too(begun, tmp_path):
    path = save(tmp_path, 3, *begun)
    drawn = random.random()
    random.seed(11)
    load(path, *begun)
    assert random.random() == drawn


def test_a_seed_is_a_beginning_for_python_and_for_pytorch():
    draws = []
    for seed in (3, 3, 4):
        start_at(seed)
        draws.append((random.random(), torch.rand(()).item()))
    assert draws[0] == draws[1]
    assert set(draws[0]).isdisjoint(draws[2])


def test_what_a_killed_run_left_is_in_nobodys_way(begun, tmp_path):
    (tmp_path / ".step-00000001.part").mkdir()
    (tmp_path / ".step-00000001.part" / "model.safetensors").touch()
    assert latest(save(tmp_path, 1, *begun).parent) == every(tmp_path)[0]


def test_a_table_used_twice_is_stored_once(tmp_path):
    """Source and target share their embeddings, which also score words."""
    config = TransformerConfig(
        src_vocab_size=11,
        tgt_vocab_size=11,
        d_model=6,
        num_heads=2,
        d_ff=7,
        num_layers=1,
        shared_vocab=True,
    )
    model = Transformer(config)
    path = save(tmp_path, 1, model, adam(model.parameters(), lr=0.1))
    stored = load_file(path / "model.safetensors")
    assert sum(t.numel() for t in stored.values()) == sum(
        p.numel() for p in model.parameters()
    )
    other = Transformer(config)
    load(path, other, adam(other.parameters(), lr=0.1))
    assert same(model, other)
    assert other.src_embedding.weight is other.tgt_embedding.weight


def test_the_facts_come_back(begun, tmp_path):
    facts = {"config": {"peak": 0.1, "clip": None}, "position": [3, 7]}
    path = save(tmp_path, 13, *begun, facts=facts)
    assert path.name == "step-00000013"
    assert load(path, *begun) == facts


def test_each_process_gets_its_own_random_numbers_back(begun, tmp_path):
    from companion.training.randomness import random_state

    states, drawn = [], []
    for _ in range(2):
        states.append(random_state())
        drawn.append(torch.rand(3).tolist())
    path = save(tmp_path, 1, *begun, rng=states)
    for process in (1, 0):
        load(path, *begun, process=process)
        assert torch.rand(3).tolist() == drawn[process]
    assert drawn[0] != drawn[1]


def test_nothing_is_pickled(begun, tmp_path):
    """The files are tensors and JSON: to read them runs no code."""
    path = save(tmp_path, 1, *begun)
    assert {file.suffix for file in path.iterdir()} == {".safetensors", ".json"}
    json.loads((path / "state.json").read_text())
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (path / name).read_bytes()[8:9] == b"{"


def test_the_newest_is_the_one_with_the_most_steps(begun, tmp_path):
    assert latest(tmp_path) is None
    # By their names, the last of them would come before the second.
    for step in (2, 100_000_000, 99_999_999):
        save(tmp_path, step, *begun)
    assert [path.name for path in every(tmp_path)] == [
        "step-00000002",
        "step-99999999",
        "step-100000000",
    ]
    assert latest(tmp_path).name == "step-100000000"


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about none")
def test_the_random_numbers_of_a_gpu_are_nothing_to_a_machine_without_one():
    state = random_state() | {"cuda": "of no use here"}
    before = torch.rand(3)
    restore(state)
    assert torch.equal(torch.rand(3), before)


def test_only_the_last_ones_are_kept(begun, tmp_path):
    for step in (2, 3, 5, 7):
        save(tmp_path, step, *begun)
    tidy(tmp_path, keep=2)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["step-00000005", "step-00000007"]
    tidy(tmp_path)
    assert len(every(tmp_path)) == 2


def test_what_a_killed_run_left_is_no_checkpoint_and_goes(begun, tmp_path):
    save(tmp_path, 2, *begun)
    for name in (".step-00000003.part", ".step-00000001.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"half")
    assert latest(tmp_path).name == "step-00000002"
    tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000002"]


def test_the_average_is_the_mean_of_each_parameter(begun, tmp_path):
    model, optimizer = begun
    paths, seen = [], []
    for step in (1, 2, 3):
        steps(model, optimizer, 1)
        paths.append(save(tmp_path, step, model, optimizer))
        seen.append(parameters_of(model)["0.bias"].clone())
    mean = average(paths)["0.bias"]
    torch.testing.assert_close(mean, torch.stack(seen).mean(0))
    assert not torch.equal(mean, seen[-1])
    fill(model, average(paths), "the mean")
    assert torch.equal(model[0].bias, mean)


def test_the_average_of_one_checkpoint_is_that_checkpoint(begun, tmp_path):
    path = save(tmp_path, 1, *begun)
    for repeats in (1, 3):
        for name, tensor in average([path] * repeats).items():
            assert torch.equal(tensor, dict(begun[0].named_parameters())[name])


def full_after(monkeypatch, calls):
    """A disk that is full at the call of that number to write or to fsync."""
    left = iter(range(calls))
    fsync, opened = os.fsync, Path.open

    def check():
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")

    class File:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            self.file.write(data[: len(data) // 2])
            check()
            self.file.write(data[len(data) // 2 :])

    def full_fsync(handle):
        check()
        return fsync(handle)

    def full_open(path, mode="r", *args, **kwargs):
        file = opened(path, mode, *args, **kwargs)
        return File(file) if "w" in mode else file

    monkeypatch.setattr(os, "fsync", full_fsync)
    monkeypatch.setattr(Path, "open", full_open)
    assert builtins.open is not full_open


@pytest.mark.bad_input
@pytest.mark.parametrize("calls", range(7))
def test_a_full_disk_leaves_earlier_checkpoints_and_no_half_one(
    begun, tmp_path, calls
):
    """Three files, written and synced in turn, then the folder itself."""
    save(tmp_path, 1, *begun)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        full_after(patch, calls)
        with pytest.raises(OSError, match=r"No space left.*step-00000002") as e:
            save(tmp_path, 2, *begun)
    assert e.value.errno == errno.ENOSPC
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert before == after
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]
    # Once there is room the same step can be saved.
    assert latest(save(tmp_path, 2, *begun).parent).name == "step-00000002"


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("model.safetensors", r"model.safetensors: cut short.*\d+ bytes, got"),
        ("optimizer.safetensors", r"optimizer.safetensors: cut short"),
        ("state.json", r"state.json: missing or cut short"),
    ],
)
@pytest.mark.parametrize("kept", [0, 100, None])
def test_a_file_cut_short_is_named_and_so_is_the_way_on(
    begun, tmp_path, name, says, kept
):
    for step in (1, 2, 3):
        save(tmp_path, step, *begun)
    file = tmp_path / "step-00000003" / name
    if kept is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=says) as told:
        latest(tmp_path)
    assert "step-00000002 is whole: to go on from there" in str(told.value)
    assert len(every(tmp_path)) == 3
    with pytest.raises(ValueError, match=says):
        average(every(tmp_path))


@pytest.mark.bad_input
def test_the_way_on_is_the_newest_one_that_is_whole(begun, tmp_path):
    for step in (1, 2, 3, 4):
        save(tmp_path, step, *begun)
    for step in (3, 4):
        (tmp_path / f"step-0000000{step}" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="step-00000002 is whole"):
        latest(tmp_path)
    for step in (1, 2):
        (tmp_path / f"step-0000000{step}" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"; no older checkpoint is whole$"):
        latest(tmp_path)


@pytest.mark.bad_input
def test_a_changed_file_is_not_read(begun, tmp_path):
    file = save(tmp_path, 1, *begun) / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match=r"its checksum is not.*no older"):
        latest(tmp_path)


@pytest.mark.bad_input
def test_a_checkpoint_of_another_model_names_the_parameter(begun, tmp_path):
    path = save(tmp_path, 1, *begun)
    wide = nn.Sequential(nn.Linear(3, 11), nn.Dropout(), nn.Linear(11, 2))
    before = parameters_of(wide)["0.bias"].clone()
    with pytest.raises(
        ValueError,
        match=r"00001: expected \(11,\) for the parameter 0.bias, got \(5,\)",
    ):
        load(path, wide, adam(wide.parameters(), lr=0.1))
    assert torch.equal(wide[0].bias, before)
    deep = nn.Sequential(*network(), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"parameter 3.bias, got nothing"):
        load(path, deep, adam(deep.parameters(), lr=0.1))
    other = save(tmp_path, 2, wide, adam(wide.parameters(), lr=0.1))
    with pytest.raises(ValueError, match=r"00002: expected \(5,\).*0.bias"):
        average([path, other])


@pytest.mark.bad_input
def test_a_missing_checkpoint_and_one_that_is_there_are_named(begun, tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load(tmp_path / "step-00000009", *begun)
    with pytest.raises(ValueError, match="paths: expected at least one"):
        average([])
    path = save(tmp_path, 1, *begun)
    with pytest.raises(FileExistsError, match=r"is there already.*00001"):
        save(tmp_path, 1, *begun)
    assert load(path, *begun) == {}
