"""Checkpoints: whole or not there, and enough to go on from."""

import builtins
import errno
import json
import os
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from companion.training.checkpoint import (
    average,
    every,
    fill,
    latest,
    load,
    random_state,
    read,
    restore_random_state,
    save,
    seed_all,
    tensors_of,
    tidy,
)
from companion.training.optimizer import adam
from companion.transformer import Transformer, TransformerConfig


def network():
    return nn.Sequential(
        nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Dropout(0.5), nn.Linear(5, 2)
    )


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
    left, right = left.state_dict(), right.state_dict()
    assert left.keys() == right.keys()
    return all(torch.equal(left[name], right[name]) for name in left)


def named(step):
    return f"step-{step:08d}.safetensors"


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
        seed_all(seed)
        draws.append((random.random(), torch.rand(()).item()))
    assert draws[0] == draws[1]
    assert set(draws[0]).isdisjoint(draws[2])


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
    stored = read(path).model.values()
    assert sum(t.numel() for t in stored) == sum(
        p.numel() for p in model.parameters()
    )
    other = Transformer(config)
    load(path, other, adam(other.parameters(), lr=0.1))
    assert same(model, other)
    assert other.src_embedding.weight is other.tgt_embedding.weight


def test_buffers_come_back_but_those_that_are_no_state(begun, tmp_path):
    model, optimizer = begun
    model.register_buffer("table", torch.ones(3), persistent=False)
    stored = read(save(tmp_path, 1, model, optimizer)).model
    assert stored.keys() == model.state_dict().keys()
    assert torch.equal(stored["1.running_mean"], model[1].running_mean)
    assert stored["1.running_mean"].abs().max() > 0
    assert stored["1.num_batches_tracked"] == 3


def test_the_facts_come_back(begun, tmp_path):
    facts = {"config": {"peak": 0.1, "clip": None}, "position": [3, 7]}
    path = save(tmp_path, 13, *begun, facts=facts)
    assert path.name == named(13)
    assert load(path, *begun) == facts


def test_each_process_gets_its_own_random_numbers_back(begun, tmp_path):
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
    """The file is JSON and then tensors: to read it runs no code."""
    data = save(tmp_path, 1, *begun).read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert json.loads(data[8 : 8 + length])


def test_the_newest_is_the_one_with_the_most_steps(begun, tmp_path):
    assert latest(tmp_path) is None
    # By their names, the last of them would come before the second.
    for step in (2, 100_000_000, 99_999_999):
        save(tmp_path, step, *begun)
    assert [path.name for path in every(tmp_path)] == [
        named(step) for step in (2, 99_999_999, 100_000_000)
    ]
    assert latest(tmp_path).name == named(100_000_000)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about none")
def test_the_random_numbers_of_a_gpu_are_nothing_to_a_machine_without_one():
    state = random_state() | {"cuda": "of no use here"}
    before = torch.rand(3)
    restore_random_state(state)
    assert torch.equal(torch.rand(3), before)


def test_only_the_last_ones_are_kept(begun, tmp_path):
    for step in (2, 3, 5, 7):
        save(tmp_path, step, *begun)
    tidy(tmp_path, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        named(5),
        named(7),
    ]
    tidy(tmp_path)
    assert len(every(tmp_path)) == 2


def test_what_a_killed_run_left_is_no_checkpoint_and_goes(begun, tmp_path):
    save(tmp_path, 2, *begun)
    (tmp_path / f"{named(3)}.17.tmp").write_bytes(b"half")
    assert latest(tmp_path).name == named(2)
    tidy(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [named(2)]


def test_the_average_is_the_mean_of_all_but_counters(begun, tmp_path):
    model, optimizer = begun
    paths, seen = [], []
    for step in (1, 2, 3):
        steps(model, optimizer, 1)
        paths.append(save(tmp_path, step, model, optimizer))
        seen.append({n: t.clone() for n, t in tensors_of(model).items()})
    mean = average(paths)
    for name in ("0.bias", "1.running_var"):
        expected = torch.stack([tensors[name] for tensors in seen]).mean(0)
        torch.testing.assert_close(mean[name], expected)
        assert not torch.equal(mean[name], seen[-1][name])
    assert mean["1.num_batches_tracked"] == 6
    fill(model, mean, "the mean")
    assert torch.equal(model[0].bias, mean["0.bias"])


def test_the_average_of_one_checkpoint_is_that_checkpoint(begun, tmp_path):
    path = save(tmp_path, 1, *begun)
    for repeats in (1, 3):
        for name, tensor in average([path] * repeats).items():
            assert torch.equal(tensor, begun[0].state_dict()[name])


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
@pytest.mark.parametrize("calls", range(2))
def test_a_full_disk_leaves_earlier_checkpoints_and_no_half_one(
    begun, tmp_path, calls
):
    """The file is written, and then synced."""
    save(tmp_path, 1, *begun)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        full_after(patch, calls)
        with pytest.raises(OSError, match=r"No space left.*step-00000002") as e:
            save(tmp_path, 2, *begun)
    assert e.value.errno == errno.ENOSPC
    after = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert before == after
    assert [path.name for path in tmp_path.iterdir()] == [named(1)]
    # Once there is room the same step can be saved.
    assert latest(save(tmp_path, 2, *begun).parent).name == named(2)


@pytest.mark.bad_input
@pytest.mark.parametrize("kept", [0, 5, 100, 3000, -1])
def test_a_file_cut_short_is_named_and_so_is_the_way_on(begun, tmp_path, kept):
    for step in (1, 2, 3):
        save(tmp_path, step, *begun)
    file = tmp_path / named(3)
    file.write_bytes(file.read_bytes()[:kept])
    message = r"00000003.safetensors: expected a checkpoint.* is cut short"
    with pytest.raises(ValueError, match=message) as error:
        latest(tmp_path)
    assert f"{named(2)} is whole: to go on from there" in str(error.value)
    assert len(every(tmp_path)) == 3
    with pytest.raises(ValueError, match=message):
        average(every(tmp_path))


@pytest.mark.bad_input
def test_the_way_on_is_the_newest_one_that_is_whole(begun, tmp_path):
    for step in (1, 2, 3, 4):
        save(tmp_path, step, *begun)
    for step in (3, 4):
        (tmp_path / named(step)).write_bytes(b"")
    with pytest.raises(ValueError, match=f"{named(2)} is whole"):
        latest(tmp_path)
    for step in (1, 2):
        (tmp_path / named(step)).write_bytes(b"")
    with pytest.raises(ValueError, match=r"; no older checkpoint is whole$"):
        latest(tmp_path)


@pytest.mark.bad_input
def test_a_changed_file_is_not_read(begun, tmp_path):
    file = save(tmp_path, 1, *begun)
    whole = file.read_bytes()
    # In the tensors; in the facts, which are text.
    for index in (-1, whole.index(b"rng") + 40):
        data = bytearray(whole)
        data[index] ^= 1
        file.write_bytes(data)
        with pytest.raises(ValueError, match=r"checksum is not.*no older"):
            latest(tmp_path)


@pytest.mark.bad_input
def test_a_file_of_something_else_is_named(tmp_path):
    file = tmp_path / named(1)
    save_file({"weight": torch.ones(3)}, file)
    with pytest.raises(ValueError, match="or something else"):
        read(file)


@pytest.mark.bad_input
def test_a_checkpoint_of_another_model_names_the_parameter(begun, tmp_path):
    path = save(tmp_path, 1, *begun)
    wide = nn.Sequential(
        nn.Linear(3, 11), nn.BatchNorm1d(11), nn.Dropout(), nn.Linear(11, 2)
    )
    before = tensors_of(wide)["0.bias"].clone()
    with pytest.raises(
        ValueError,
        match=r"00001\S+: expected \(11,\) for the tensor 0.bias, got \(5,\)",
    ):
        load(path, wide, adam(wide.parameters(), lr=0.1))
    assert torch.equal(wide[0].bias, before)
    deep = nn.Sequential(*network(), nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"tensor 4.bias, got nothing"):
        load(path, deep, adam(deep.parameters(), lr=0.1))
    other = save(tmp_path, 2, wide, adam(wide.parameters(), lr=0.1))
    with pytest.raises(ValueError, match=r"00002\S+: expected \(5,\).*0.bias"):
        average([path, other])


@pytest.mark.bad_input
def test_a_missing_checkpoint_and_one_that_is_there_are_named(begun, tmp_path):
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        load(tmp_path / named(9), *begun)
    with pytest.raises(ValueError, match="paths: expected at least one"):
        average([])
    path = save(tmp_path, 1, *begun)
    with pytest.raises(FileExistsError, match=r"is there already.*00001"):
        save(tmp_path, 1, *begun)
    assert load(path, *begun) == {}
