"""The trainer: many steps, and a folder that says how it went.

A run can be killed at any moment. Started again in the same folder it goes on
from its newest checkpoint and ends, on the same machine, with the very same
parameters as a run that was never stopped. (On a GPU as far as PyTorch's
kernels there give the same sum twice.)
"""

import dataclasses
import errno
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import torch
from torch import nn

from companion.extras import lazy
from companion.training import checkpoint
from companion.training.config import TrainConfig
from companion.training.disk import alone_in
from companion.training.distributed import Here, processes, share_out
from companion.training.log import Log
from companion.training.optimizer import adam
from companion.training.randomness import (
    own_random_numbers,
    random_state,
    start_at,
)
from companion.training.state import read_state
from companion.training.steps import Batch, Objective, Step, update
from companion.training.tasks import Task, make_task
from companion.training.trained import (
    CHECKPOINTS,
    CONFIG,
    Builder,
    Trained,
    build,
    read_codecs,
    read_config,
    remove_rests,
    require_facts,
    require_same,
    write_run,
)

tqdm = lazy("tqdm", "train")


def train(
    config: TrainConfig,
    folder: Path | str,
    *,
    resume: bool = True,
    progress: bool = True,
    build: Builder = build,
) -> Trained:
    """Trains a model in ``folder``, from its newest checkpoint if it has one.

    The caller's random numbers stay where they are. With ``progress`` a bar
    shows loss, learning rate and tokens a second, if there is a terminal.
    ``build`` makes the model of the configuration and the two codecs.

    Raises:
        FileExistsError: there is a run in ``folder``, and ``resume`` is False.
        BlockingIOError: another process is training in ``folder``.
        ValueError: that run is of another configuration or number of processes,
            or its newest checkpoint is cut short.
        FloatingPointError: the loss became NaN; the message has the step, the
            learning rate and the last good checkpoint.
        OSError: the disk is full, or the data are not to be had.
    """
    folder = Path(folder)
    with ExitStack() as stack:
        here = stack.enter_context(processes())
        stack.enter_context(own_random_numbers(config.seed))
        task = _task(config, folder, here, resume, stack)
        run = _Run(build(config, *task[:2]), config, folder, here, task)
        try:
            run.go_on(progress)
        except FloatingPointError as error:
            raise FloatingPointError(f"{error}; {run.last_good()}") from None
        except OSError as error:
            said = f"{error.strerror}; {run.last_good()}"
            raise OSError(error.errno, said, error.filename) from error
    return Trained(run.model.eval(), task.src_codec, task.tgt_codec, config)


def _task(
    config: TrainConfig,
    folder: Path,
    here: Here,
    resume: bool,
    stack: ExitStack,
) -> Task:
    """What there is to learn, with the codecs that lie in ``folder``."""
    if here.is_first:
        # Before the folder: data that are not to be had leave none behind.
        new = None if (folder / CONFIG).exists() else make_task(config)
        stack.enter_context(alone_in(folder))
        found = read_config(folder)
        if found is None:
            write_run(folder, config, new.src_codec, new.tgt_codec)
        elif resume:
            require_same(config, found, str(folder))
        else:
            raise FileExistsError(
                errno.EEXIST, "there is a run already; resume it", str(folder)
            )
        checkpoint.tidy(folder / CHECKPOINTS)
        remove_rests(folder)
    here.wait()
    return make_task(config, read_codecs(folder, config))


class _Run:
    """A run that has come as far as its newest checkpoint."""

    def __init__(
        self,
        model: nn.Module,
        config: TrainConfig,
        folder: Path,
        here: Here,
        task: Task,
    ):
        self.config, self.folder = config, folder
        self.here, self.task = here, task
        self.model = model.to(here.device).train()
        self.optimizer = adam(self.model.parameters(), lr=config.rate()(1))
        # All processes begin with the same model, and drop other parts of it.
        start_at(config.seed + 1 + here.process)
        self.facts = {
            "config": dataclasses.asdict(config),
            "processes": here.processes,
            "batches_an_epoch": len(task.batches),
        }
        self.done = self.position = 0
        self._resume()
        objective = Objective(self.model, smoothing=config.smoothing)
        if config.compile:
            objective.compile()
        self.objective = share_out(objective, here)

    def _resume(self) -> None:
        newest = checkpoint.latest(self.folder / CHECKPOINTS)
        if newest is None:
            return
        state = read_state(newest)
        facts = state["facts"]
        require_facts((*self.facts, "position"), facts, str(newest))
        found = TrainConfig.of(facts["config"])
        require_same(self.config, found, str(newest))
        for name in ("processes", "batches_an_epoch"):
            if facts[name] != self.facts[name]:
                raise ValueError(
                    f"{newest}: expected {name} = {self.facts[name]}, as this "
                    f"run has, got {facts[name]}"
                )
        process = self.here.process
        checkpoint.load(newest, self.model, self.optimizer, process=process)
        epoch, place = facts["position"]
        self.position = epoch * len(self.task.batches) + place
        self.done = state["step"]

    def go_on(self, progress: bool) -> None:
        """Takes all steps that are left."""
        config, here, rate = self.config, self.here, self.config.rate()
        steps = range(self.done + 1, config.steps + 1)
        with ExitStack() as stack:
            log = None
            if here.is_first:
                log = stack.enter_context(Log(self.folder, self.done))
            bar = stack.enter_context(self._bar(progress and here.is_first))
            for step in steps:
                told, speed = self._step(step, rate(step))
                due = _due(step, config.validate_every, config.steps)
                validation = self._validation() if due else None
                if log is not None:
                    log.add(told, speed, validation)
                bar.set_postfix_str(
                    f"loss {told.loss:.3f}, rate {told.rate:.2g}, "
                    f"{speed:.0f} tokens/s",
                    refresh=False,
                )
                bar.update()
                if _due(step, config.save_every, config.steps):
                    self._save(step)

    def _bar(self, shown: bool) -> AbstractContextManager:
        return tqdm.tqdm(
            total=self.config.steps,
            initial=self.done,
            unit="step",
            # None: shown in a terminal, and not in a file.
            disable=None if shown else True,
        )

    def _step(self, step: int, rate: float) -> tuple[Step, float]:
        """One update, and how many target tokens it took a second."""
        began = time.perf_counter()
        numbers = range(self.position, self.position + self.config.accumulate)
        told = update(
            self.objective,
            self.optimizer,
            [self._there(self.task.batches.at(n)) for n in numbers],
            step=step,
            rate=rate,
            clip=self.config.clip,
            autocast=torch.bfloat16 if self.config.bf16 else None,
        )
        self.position = numbers.stop
        return told, told.tokens / (time.perf_counter() - began)

    def _there(self, batch: Batch) -> Batch:
        return tuple(part.to(self.here.device) for part in batch)

    @torch.no_grad()
    def _validation(self) -> float:
        """The loss on the validation part, without smoothing and dropout."""
        here, objective = self.here, Objective(self.model).eval()
        device, bf16 = here.device.type, self.config.bf16
        total = tokens = 0
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            for batch in self.task.validation[here.process :: here.processes]:
                loss, count = objective(*self._there(batch))
                total, tokens = total + float(loss), tokens + count
        self.model.train()
        shares = here.gather((total, tokens))
        return sum(s[0] for s in shares) / sum(s[1] for s in shares)

    def _save(self, step: int) -> None:
        states = self.here.gather(random_state())
        if not self.here.is_first:
            return
        position = divmod(self.position, len(self.task.batches))
        where = self.folder / CHECKPOINTS
        facts = {**self.facts, "position": position}
        checkpoint.save(
            where, step, self.model, self.optimizer, facts=facts, rng=states
        )
        checkpoint.tidy(where, keep=self.config.keep)

    def last_good(self) -> str:
        """Which checkpoint there is to go on from."""
        found = checkpoint.every(self.folder / CHECKPOINTS)
        return f"the last good checkpoint is {found[-1] if found else 'none'}"


def _due(step: int, every: int, last: int) -> bool:
    return step % every == 0 or step == last
