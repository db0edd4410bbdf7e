"""The trainer: what a run is made of, what it leaves, and how it goes on."""

import dataclasses
import errno
import json
import math
import os
import random
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from support.standin import stand_in
from torch import nn
from tqdm import tqdm

from companion.data.codecs import Characters
from companion.training import (
    TrainConfig,
    checkpoint,
    load_trained,
    make_task,
    read_log,
    train,
)
from companion.training.capability import compiler_options
from companion.training.checkpoint import average, every, save
from companion.training.config import DIRECTIONS
from companion.training.run_folder import LOCK, build, lock
from companion.training.steps import Objective
from companion.transformer import LanguageModel, Transformer

# The bar's own lock is one with those of all forks. mutmut forks, and one that
# is killed while it holds the lock would stop the others for ever.
tqdm.set_lock(threading.RLock())

TINY = TrainConfig(
    data="copy",
    max_len=13,
    batch_tokens=601,
    d_model=6,
    num_heads=2,
    d_ff=5,
    dropout=0.2,
    steps=7,
    warmup=3,
    save_every=2,
    validate_every=3,
    keep=3,
)


def saved(step):
    return Path("checkpoints") / f"step-0000000{step}.safetensors"


def changed(**changes):
    return dataclasses.replace(TINY, **changes)


def parameters(trained):
    return [p.detach() for p in trained.model.parameters()]


def equal(left, right):
    pairs = zip(parameters(left), parameters(right), strict=True)
    return all(torch.equal(p, q) for p, q in pairs)


def stopped_at(monkeypatch, step, error):
    """A run in which ``error`` comes at some step, in place of its update."""
    from companion.training import trainer

    update = trainer.update

    def stop(*args, **kwargs):
        if kwargs["step"] == step:
            raise error
        return update(*args, **kwargs)

    monkeypatch.setattr(trainer, "update", stop)


def replace_newest(folder, facts):
    """Write other facts into the newest checkpoint."""
    (folder / saved(7)).unlink()
    model = nn.Linear(2, 3)
    adam = torch.optim.Adam(model.parameters())
    save(folder / "checkpoints", 7, model, adam, facts=facts)


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Small stand-ins for the real corpora."""
    return stand_in(tmp_path / "corpora", monkeypatch)


def test_a_run_takes_the_steps_that_a_plain_loop_takes(tmp_path):
    """The oracle: PyTorch's Adam and cross-entropy, all written out."""
    config = changed(dropout=0.0, smoothing=0.1, clip=0.5, accumulate=2)
    task = make_task(config)
    torch.manual_seed(config.seed)
    model = build(config, task.src_codec, task.tgt_codec)
    adam = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    for step in range(1, config.steps + 1):
        pairs = [task.batches.at(n) for n in (2 * step - 2, 2 * step - 1)]
        sums = [
            F.cross_entropy(
                model(src, tgt[:, :-1]).flatten(0, 1),
                tgt[:, 1:].flatten(),
                ignore_index=0,
                label_smoothing=0.1,
                reduction="sum",
            )
            for src, tgt in pairs
        ]
        tokens = sum((tgt[:, 1:] != 0).sum() for _, tgt in pairs)
        adam.zero_grad()
        loss = sum(sums) / tokens
        loss.backward()
        losses.append(loss.item())
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        adam.param_groups[0]["lr"] = config.rate()(step)
        adam.step()
    trained = train(config, tmp_path, progress=False)
    # Not parameter by parameter: the bias of the keys changes nothing, so its
    # gradient is rounding error, of which Adam makes whole steps.
    src, tgt = pairs[0]
    logits = trained.model(src, tgt[:, :-1])
    torch.testing.assert_close(logits, model(src, tgt[:, :-1]))
    rows = read_log(tmp_path)
    for row, loss in zip(rows, losses, strict=True):
        assert row["loss"] == pytest.approx(loss, rel=1e-5)
    assert rows[-1]["tokens"] == tokens


@pytest.mark.parametrize("data", list(DIRECTIONS))
def test_each_kind_of_data_goes_on_as_if_never_stopped(
    data, tmp_path, monkeypatch, corpora
):
    sizes = {"vocab_size": 340, "batch_tokens": 200, "max_len": 50}
    config = changed(data=data, **sizes)
    whole = train(config, tmp_path / "whole", progress=False)
    with monkeypatch.context() as patch:
        stopped_at(patch, 6, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            train(config, tmp_path / "cut", progress=False)
    assert len(read_log(tmp_path / "cut")) == 5
    resumed = train(config, tmp_path / "cut", progress=False)
    assert equal(resumed, whole)
    assert [row["step"] for row in read_log(tmp_path / "cut")] == [*range(1, 8)]
    kind = LanguageModel if data == "shakespeare" else Transformer
    loaded = load_trained(tmp_path / "cut")
    assert isinstance(loaded.model, kind)
    # It reads and writes in the words that it was trained in.
    for mine, theirs in zip(whole[1:3], loaded[1:3], strict=True):
        assert type(mine) is type(theirs)
        assert mine is None or len(mine) == len(theirs)


class WithBatchNorm(Transformer):
    """Has a buffer that training changes, and evaluation reads."""

    def __init__(self, config):
        super().__init__(config)
        self.norm = nn.BatchNorm1d(config.d_model)

    def decode(self, *args, **kwargs):
        states = super().decode(*args, **kwargs)
        return self.norm(states.mT).mT


def test_a_model_with_running_statistics_goes_on_as_if_never_stopped(
    tmp_path, monkeypatch
):
    def build_it(config, src, tgt):
        return WithBatchNorm(build(config, src, tgt).config)

    def run(folder):
        return train(TINY, folder, progress=False, build=build_it)

    whole = run(tmp_path / "whole")
    assert whole.model.norm.running_mean.abs().max() > 0.01
    with monkeypatch.context() as patch:
        stopped_at(patch, 6, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "cut")
    for trained in (
        run(tmp_path / "cut"),
        load_trained(tmp_path / "cut", build=build_it),
    ):
        expected, got = whole.model.state_dict(), trained.model.state_dict()
        assert expected.keys() == got.keys()
        assert all(torch.equal(expected[name], got[name]) for name in expected)


def test_what_a_run_leaves_is_as_documented(tmp_path):
    trained = train(TINY, tmp_path, progress=False)
    names = {path.name for path in tmp_path.iterdir()}
    # Not every system keeps a lock that nobody holds.
    assert sorted(names - {LOCK}) == [
        "checkpoints",
        "config.json",
        "log.csv",
        "source.codec",
        "target.codec",
    ]
    steps = [path.name for path in every(tmp_path / "checkpoints")]
    assert steps == [saved(step).name for step in (4, 6, 7)]
    loaded = load_trained(tmp_path)
    assert equal(loaded, trained)
    assert loaded.config == trained.config == TINY
    assert loaded.tgt_codec.decode(loaded.src_codec.encode("face")) == "face"
    assert not loaded.model.training
    assert not trained.model.training


def test_a_vocabulary_of_another_run_is_named(tmp_path):
    train(TINY, tmp_path, progress=False)
    Characters.train(["xyz"]).save(tmp_path / "source.codec")
    told = r"expected \(6, .*source\.codec and target\.codec in .* another run"
    with pytest.raises(ValueError, match=told):
        load_trained(tmp_path)


def test_an_averaged_model_is_the_mean_of_the_last_checkpoints(tmp_path):
    train(TINY, tmp_path, progress=False)
    model = load_trained(tmp_path, average=2).model
    mean = average(every(tmp_path / "checkpoints")[-2:])
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, mean[name])
    assert len(every(tmp_path / "checkpoints")) == 3
    load_trained(tmp_path, average=3)


def test_the_log_has_a_row_a_step(tmp_path):
    trained = train(changed(dropout=0.0), tmp_path, progress=False)
    rows = read_log(tmp_path)
    assert [row["step"] for row in rows] == [*range(1, 8)]
    rate = TINY.rate()
    for row in rows:
        assert row["rate"] == pytest.approx(rate(int(row["step"])), rel=1e-5)
        assert row["tokens"] > 0
        assert row["speed"] > 0
        assert row["gradient"] > 0
    measured = [row["step"] for row in rows if row["validation"] is not None]
    assert measured == [3, 6, 7]
    # By hand, over the validation part as one batch.
    total = tokens = 0
    for src, tgt in make_task(TINY).validation:
        logits = trained.model(src, tgt[:, :-1]).flatten(0, 1)
        answer = tgt[:, 1:].flatten()
        total += F.cross_entropy(
            logits, answer, ignore_index=0, reduction="sum"
        ).item()
        tokens += int((answer != 0).sum())
    assert rows[-1]["validation"] == pytest.approx(total / tokens, rel=1e-4)


def test_a_finished_run_takes_no_more_steps(tmp_path, monkeypatch):
    trained = train(TINY, tmp_path, progress=False)
    stopped_at(monkeypatch, 8, AssertionError("a step too many"))
    assert equal(train(TINY, tmp_path, progress=False), trained)


def test_what_somebody_else_keeps_in_the_folder_stays(tmp_path):
    mine = [
        tmp_path / "mine.tmp",
        tmp_path / "log.csv.tmp",
        tmp_path / "notes.12.tmp",
        tmp_path / "checkpoints" / "step-1.tmp",
        tmp_path / "checkpoints" / "step-old",
    ]
    leftovers = [
        tmp_path / f"{name}.12.tmp"
        for name in (
            *("config.json", "log.csv", "source.codec", "target.codec"),
            saved(3),
        )
    ]
    mine[-1].parent.mkdir()
    for path in (*mine, *leftovers):
        path.write_text("mine")
    trained = train(TINY, tmp_path, progress=False)
    assert all(path.exists() for path in mine)
    assert not any(path.exists() for path in leftovers)
    # Nor is it taken for a checkpoint.
    assert equal(load_trained(tmp_path), trained)


def test_data_that_are_not_to_be_had_leave_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPANION_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match="nowhere"):
        train(changed(data="tatoeba"), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_the_seed_decides_and_the_callers_random_numbers_do_not(tmp_path):
    torch.manual_seed(1)
    random.seed(1)
    expected = torch.rand(2).tolist(), random.random()
    first = train(TINY, tmp_path / "a", progress=False)
    torch.manual_seed(1)
    random.seed(1)
    again = train(TINY, tmp_path / "b", progress=False)
    assert (torch.rand(2).tolist(), random.random()) == expected
    other = train(changed(seed=1), tmp_path / "c", progress=False)
    assert equal(first, again)
    assert not equal(first, other)


def test_bf16_rounds_the_products_and_keeps_the_weights_exact(tmp_path):
    plain = train(TINY, tmp_path / "a", progress=False)
    half = train(changed(bf16=True), tmp_path / "b", progress=False)
    assert all(p.dtype == torch.float32 for p in parameters(half))
    assert not equal(plain, half)
    for key in ("loss", "validation"):
        losses = [read_log(tmp_path / x)[-1][key] for x in "ab"]
        assert losses[0] == pytest.approx(losses[1], rel=0.02)
        assert losses[0] != losses[1]


def test_compile_compiles_the_objective_once(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(
        Objective, "compile", lambda it, options: compiled.append(it)
    )
    monkeypatch.setattr(f"{train.__module__}.can_compile", lambda _: True)
    train(TINY, tmp_path / "a", progress=False)
    assert compiled == []
    train(changed(compile=True), tmp_path / "b", progress=False)
    assert [type(it) for it in compiled] == [Objective]


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:torch.jit")
@pytest.mark.parametrize(("device", "told"), [("cpu", 0), ("cuda", 1)])
def test_the_compiler_knows_what_it_is_told(device, told):
    options = compiler_options(torch.device(device))
    assert len(options) == told
    torch.compile(torch.neg, options=options)  # Refuses what it does not know.


# The compiler looks at the gradients of whatever it meets, and cannot follow
# the checkers of types.
@pytest.mark.once
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor",
    "ignore:Guards may run slower on Python 3.13.0",
)
def test_a_compiled_run_learns_what_a_plain_one_learns(tmp_path, monkeypatch):
    # All of the compiler but its last stage, which would ask for a C++ one.
    last_but_one = torch._dynamo.lookup_backend("aot_eager")
    traced = []

    def backend(graph, inputs):
        traced.append(graph)
        return last_but_one(graph, inputs)

    monkeypatch.setattr(
        Objective,
        "compile",
        lambda it, options: nn.Module.compile(it, backend=backend),
    )
    monkeypatch.setattr(f"{train.__module__}.can_compile", lambda _: True)
    still = changed(dropout=0.0, smoothing=0.1, steps=3)
    plain = train(still, tmp_path / "a", progress=False)
    assert traced == []
    still = dataclasses.replace(still, compile=True)
    fast = train(still, tmp_path / "b", progress=False)
    assert traced
    moved = dict(fast.model.named_parameters())
    for name, p in plain.model.named_parameters():
        # No softmax sees a key's bias: its gradient is noise, and Adam makes
        # steps of it.
        if not name.endswith("k_proj.bias"):
            torch.testing.assert_close(p, moved[name], atol=1e-5, rtol=1e-4)
    losses = [read_log(tmp_path / x)[-1]["loss"] for x in "ab"]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_bar_shows_loss_rate_and_speed_in_a_terminal_only(
    tmp_path, monkeypatch, capsys
):
    train(TINY, tmp_path / "a")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    train(TINY, tmp_path / "b")
    shown = capsys.readouterr().err
    for word in ("loss ", "rate ", "tokens/s", "7/7", "step/s"):
        assert word in shown
    assert " 0/7" in shown
    train(TINY, tmp_path / "c", progress=False)
    assert capsys.readouterr().err == ""
    (tmp_path / "b" / saved(7)).unlink()
    train(TINY, tmp_path / "b")
    assert re.match(r"\s*86%.* 6/7", capsys.readouterr().err)


def test_the_speed_is_in_target_tokens_a_second(tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    train(TINY, tmp_path, progress=False)
    for row in read_log(tmp_path):
        assert row["speed"] == pytest.approx(row["tokens"] / 2, rel=0.01)


def test_a_run_makes_the_folders_above_it(tmp_path):
    train(TINY, tmp_path / "a" / "b" / "c", progress=False)
    text = (tmp_path / "a" / "b" / "c" / "config.json").read_text()
    assert text.startswith('{\n "data": "copy",\n')


def test_a_language_model_has_the_sizes_of_the_configuration(corpora):
    config = changed(data="shakespeare", d_model=10, d_ff=7, num_layers=3)
    built = build(config, None, make_task(config).tgt_codec).config
    sizes = "d_model", "num_heads", "d_ff", "num_layers", "dropout"
    assert [getattr(built, name) for name in sizes] == [10, 2, 7, 3, 0.2]


def test_a_nan_stops_with_step_rate_and_last_good_checkpoint(
    tmp_path, monkeypatch
):
    forward = Objective.forward
    calls = []

    def poisoned(self, *batch):
        calls.append(1)
        loss, count = forward(self, *batch)
        return loss * (float("nan") if len(calls) == 4 else 1), count

    config = changed(validate_every=7, save_every=2)
    with monkeypatch.context() as patch:
        patch.setattr(Objective, "forward", poisoned)
        with pytest.raises(
            FloatingPointError,
            match=r"step 4: .*nan.*learning rate 0\.004; the last good "
            r"checkpoint is .*step-00000002",
        ):
            train(config, tmp_path / "cut", progress=False)
    # Nothing is lost: without the poison it ends as it would have.
    resumed = train(config, tmp_path / "cut", progress=False)
    assert equal(resumed, train(config, tmp_path / "whole", progress=False))


@pytest.mark.bad_input
def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path, monkeypatch):
    fsync, calls = os.fsync, []

    def full(handle):
        calls.append(1)
        # Of each file the data and then its folder: four files as it begins,
        # one checkpoint.
        if len(calls) > 2 * (4 + 1):
            raise OSError(errno.ENOSPC, "No space left on device")
        return fsync(handle)

    folder = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError,
            match=r"No space left.*last good checkpoint is .*step-00000002",
        ) as told:
            train(TINY, folder, progress=False)
    assert told.value.errno == errno.ENOSPC
    names = [path.name for path in (folder / "checkpoints").iterdir()]
    assert names == [saved(2).name]
    whole = train(TINY, tmp_path / "whole", progress=False)
    assert equal(train(TINY, folder, progress=False), whole)


@pytest.mark.bad_input
def test_another_configuration_is_refused_and_the_field_named(tmp_path):
    train(TINY, tmp_path, progress=False)
    with pytest.raises(
        ValueError,
        match=rf"{re.escape(str(tmp_path))}.* another configuration: expected "
        r"peak = 0.5, got 0.005",
    ):
        train(changed(peak=0.5), tmp_path, progress=False)
    # A checkpoint that was put there from another run.
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "d_ff": 7}))
    with pytest.raises(ValueError, match=r"step-00000007.*d_ff = 7, got 5"):
        train(changed(d_ff=7), tmp_path, progress=False)


@pytest.mark.bad_input
def test_another_number_of_processes_or_other_data_are_refused(tmp_path):
    train(TINY, tmp_path, progress=False)
    facts = checkpoint.read(tmp_path / saved(7)).facts
    for name in ("processes", "batches_an_epoch"):
        replace_newest(tmp_path, {**facts, name: 1234})
        with pytest.raises(ValueError, match=rf"{name} = \d+, .*got 1234"):
            train(TINY, tmp_path, progress=False)


@pytest.mark.bad_input
def test_a_checkpoint_cut_short_stops_the_run_and_nothing_goes(tmp_path):
    train(TINY, tmp_path, progress=False)
    found = every(tmp_path / "checkpoints")
    found[-1].write_bytes(found[-1].read_bytes()[:1000])
    for read in (lambda: train(TINY, tmp_path), lambda: load_trained(tmp_path)):
        with pytest.raises(
            ValueError,
            match=r"00000007.safetensors: .*cut short.*; .*"
            r"00000006.safetensors is whole: to go on from there, move",
        ):
            read()
    assert every(tmp_path / "checkpoints") == found
    found[-1].rename(tmp_path / "away")
    train(TINY, tmp_path, progress=False)
    assert every(tmp_path / "checkpoints") == found


@pytest.mark.bad_input
def test_a_nan_before_the_first_checkpoint_says_that_there_is_none(
    tmp_path, monkeypatch
):
    nothing = torch.tensor(math.nan, requires_grad=True)
    monkeypatch.setattr(Objective, "forward", lambda *_: (nothing, 1))
    with pytest.raises(FloatingPointError, match=r"checkpoint is none$"):
        train(TINY, tmp_path, progress=False)


@pytest.mark.bad_input
def test_a_run_without_a_checkpoint_cannot_be_read(tmp_path):
    train(TINY, tmp_path, progress=False)
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(FileNotFoundError, match="no run has left a checkpoint"):
        load_trained(tmp_path)


@pytest.mark.bad_input
def test_a_checkpoint_that_fits_no_model_is_named(tmp_path):
    train(TINY, tmp_path, progress=False)

    def wider(config, src, tgt):
        return build(dataclasses.replace(config, d_ff=7), src, tgt)

    with pytest.raises(ValueError, match="step-00000007"):
        load_trained(tmp_path, build=wider)


@pytest.mark.bad_input
def test_a_run_is_not_begun_twice_nor_read_where_none_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="no run has left a checkpoint"):
        load_trained(tmp_path)
    train(TINY, tmp_path, progress=False)
    with pytest.raises(FileExistsError, match="a run already; resume it"):
        train(TINY, tmp_path, resume=False, progress=False)
    for number in (0, 4):
        with pytest.raises(ValueError, match="average: expected 1 to 3"):
            load_trained(tmp_path, average=number)


@pytest.mark.bad_input
def test_a_folder_in_which_another_trains_is_refused(tmp_path):
    train(TINY, tmp_path, progress=False)
    log = (tmp_path / "log.csv").read_bytes()
    (tmp_path / "log.csv.12.tmp").touch()  # The other writes just now.
    with (
        lock(tmp_path),
        pytest.raises(BlockingIOError, match="another process is training"),
    ):
        train(TINY, tmp_path, progress=False)
    assert (tmp_path / "log.csv.12.tmp").exists()
    assert (tmp_path / "log.csv").read_bytes() == log
    train(TINY, tmp_path, progress=False)  # It has ended.


@pytest.mark.bad_input
def test_a_checkpoint_of_another_trainer_is_named(tmp_path):
    train(TINY, tmp_path, progress=False)
    replace_newest(tmp_path, {})
    with pytest.raises(
        ValueError, match=r"step-00000007.*expected the fact 'config', got none"
    ):
        train(TINY, tmp_path, progress=False)
    assert len(read_log(tmp_path)) == 7


@pytest.mark.bad_input
@pytest.mark.parametrize("name", ["source.codec", "target.codec"])
def test_a_codec_that_is_gone_is_named(tmp_path, name):
    train(TINY, tmp_path, progress=False)
    (tmp_path / name).unlink()
    for read in (train, lambda _, folder: load_trained(folder)):
        with pytest.raises(FileNotFoundError, match=name):
            read(TINY, tmp_path)
    assert len(read_log(tmp_path)) == 7


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("data", "got"),
    [(b"\xff\xfe", "no text"), (b"day,weight\n1,70\n", "day,weight")],
    ids=["bytes", "table"],  # mutmut cannot take bytes for a name.
)
def test_a_log_of_something_else_is_named_and_stays(tmp_path, data, got):
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    for read in (
        lambda: train(TINY, tmp_path, progress=False),
        lambda: read_log(tmp_path),
    ):
        with pytest.raises(ValueError, match=rf"log\.csv: expected .*{got}"):
            read()
    assert path.read_bytes() == data


@pytest.mark.bad_input
def test_a_length_that_keeps_no_pair_is_named_as_the_user_does(tmp_path):
    with pytest.raises(ValueError, match=r"^max_len: expected .* got 4"):
        train(changed(max_len=4), tmp_path, progress=False)


@pytest.mark.parametrize("cut", ["6,0.5", "6", ",1,2,3,4,5,6"])
def test_a_row_that_was_cut_short_goes_when_the_run_goes_on(tmp_path, cut):
    whole = train(TINY, tmp_path, progress=False)
    log = tmp_path / "log.csv"
    rows = log.read_text().splitlines(keepends=True)
    log.write_text("".join(rows[:6]) + cut)
    (tmp_path / saved(7)).unlink()
    (tmp_path / saved(6)).unlink()
    again = train(TINY, tmp_path, progress=False)
    assert [row["step"] for row in read_log(tmp_path)] == [*range(1, 8)]
    assert equal(again, whole)


@pytest.mark.bad_input
def test_a_log_without_a_number_for_its_step_is_named_when_going_on(tmp_path):
    train(TINY, tmp_path, progress=False)
    with (tmp_path / "log.csv").open("a") as log:
        log.write("y,2,3,4,5,6,\n")
    (tmp_path / saved(7)).unlink()
    with pytest.raises(ValueError, match=r"log\.csv: .*numbers, got 'y'"):
        train(TINY, tmp_path, progress=False)


@pytest.mark.bad_input
def test_a_folder_with_another_config_json_is_named(tmp_path):
    for text, says in (
        ("{", "cut short"),
        ('{"data": "co', "cut short"),
        ('{"color": 3}', "unknown key 'color'"),
        ('{"steps": "many"}', "steps: expected int"),
        ("[1]", r"expected a table of fields, got \[1\]"),
        ("[]", "expected a table of fields"),
    ):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ValueError, match=rf"config\.json: {says}"):
            train(TINY, tmp_path, progress=False)
