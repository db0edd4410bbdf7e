"""The trainer: many steps, and a folder that says how it went.

A run can be killed at any moment. Started again in the same folder it goes on
from its newest checkpoint and ends, on the same machine, with the very same
parameters as a run that was never stopped. (On a GPU as far as PyTorch's
kernels there give the same sum twice.)
"""

import dataclasses
import errno
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

import torch
from torch import nn

from companion.extras import lazy
from companion.training import checkpoint
from companion.training.capability import (
    can_compile,
    compiler_options,
    narrow_type,
    scaler_for,
)
from companion.training.checkpoint import random_state, seed_all, seeded
from companion.training.config import TrainConfig
from companion.training.distributed import Here, processes, share_out
from companion.training.log import Log
from companion.training.optimizer import adam
from companion.training.run_folder import (
    CHECKPOINTS,
    CONFIG,
    SOURCE,
    TARGET,
    Builder,
    Trained,
    build,
    lock,
    read_codecs,
    read_config,
    remove_leftovers,
    require_same,
    write_run,
)
from companion.training.steps import Batch, Objective, Step, update
from companion.training.tasks import Task, make_task

__all__ = ["train"]

tqdm = lazy("tqdm", "train")


def train(
    config: TrainConfig,
    folder: Path | str,
    *,
    resume: bool = True,
    progress: bool = True,
    build: Builder = build,
) -> Trained:
    """Train a model in ``folder``, from its newest checkpoint if it has one.

    The caller's random numbers stay where they are.

    Args:
        config: What to learn, with which model, in how many steps.
        folder: Where the run lies, or shall lie.
        resume: Whether to go on with a run that is there.
        progress: Whether a bar shows loss, learning rate and tokens a second,
            if there is a terminal.
        build: Makes the model, from the configuration and the two codecs.

    Returns:
        The trained model in evaluation mode, its codecs, its configuration.

    Raises:
        FileExistsError: There is a run in ``folder``, and ``resume`` is False.
        BlockingIOError: Another process is training in ``folder``.
        ValueError: That run is of another configuration or number of processes,
            or its newest checkpoint is damaged.
        FloatingPointError: The loss became NaN; the message has the step, the
            learning rate and the last good checkpoint.
        OSError: The disk is full, or the data cannot be had.
    """
    folder = Path(folder)
    with ExitStack() as stack:
        here = stack.enter_context(processes())
        stack.enter_context(seeded(config.seed))
        task = None
        if here.is_first:
            # Before the folder: data that cannot be had leave none behind.
            task = None if (folder / CONFIG).exists() else make_task(config)
            stack.enter_context(lock(folder))
            task = _prepare(config, folder, task, resume=resume)
        here.wait()
        task = task or _task_of(config, folder)
        model = build(config, task.src_codec, task.tgt_codec)
        run = _Run(model, config, folder, here, task)
        try:
            run.go_on(progress=progress)
        except (FloatingPointError, OSError) as error:
            found = checkpoint.every(folder / CHECKPOINTS)
            newest = found[-1] if found else "none"
            good = f"the last good checkpoint is {newest}"
            if isinstance(error, FloatingPointError):
                raise FloatingPointError(f"{error}; {good}") from None
            message = f"{error.strerror}; {good}"
            raise OSError(error.errno, message, error.filename) from error
    return Trained(model.eval(), task.src_codec, task.tgt_codec, config)


def _task_of(config: TrainConfig, folder: Path) -> Task:
    """Make the task of a run that has begun, with the codecs it has stored."""
    codecs = read_codecs(folder, config)
    try:
        return make_task(config, codecs)
    except ValueError as error:
        # The data had no such token when these codecs were made of them.
        raise ValueError(
            f"{folder}: its {SOURCE} and {TARGET} cannot read the data "
            f"{config.data!r}; one of them is of another run ({error})"
        ) from None


def _prepare(
    config: TrainConfig, folder: Path, task: Task | None, *, resume: bool
) -> Task | None:
    """Begin a run in ``folder``, or make sure that the one there is this.

    Returns:
        The task with which the run has begun; None if it had begun before.
    """
    found = read_config(folder)
    if found is None:
        task = task or make_task(config)
        write_run(folder, config, task.src_codec, task.tgt_codec)
    elif resume:
        task = None
        require_same(config, found, str(folder))
    else:
        raise FileExistsError(
            errno.EEXIST, "there is a run already; resume it", str(folder)
        )
    remove_leftovers(folder)
    return task


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
        seed_all(config.seed + 1 + here.process)
        self.facts = {
            "config": dataclasses.asdict(config),
            "processes": here.processes,
            "batches_an_epoch": len(task.batches),
        }
        self.done = self.position = 0
        self.narrow = narrow_type(here.device) if config.bf16 else None
        self.scaler = scaler_for(self.narrow, here.device)
        self._resume()
        objective = Objective(self.model, smoothing=config.smoothing)
        if config.compile and can_compile(here.device):
            objective.compile(options=compiler_options(here.device))
        elif config.compile:
            warnings.warn(
                f"compile: {here.device.type} has no compiler here, so the run "
                "is not compiled",
                RuntimeWarning,
                stacklevel=4,
            )
        self.objective = share_out(objective, here)

    def _resume(self) -> None:
        newest = checkpoint.latest(self.folder / CHECKPOINTS)
        if newest is None:
            return
        saved = checkpoint.read(newest)
        for name in (*self.facts, "position"):
            if name not in saved.facts:
                raise ValueError(
                    f"{newest}: expected the fact {name!r}, got none"
                )
        found = TrainConfig.of(saved.facts["config"])
        require_same(self.config, found, str(newest))
        for name in ("processes", "batches_an_epoch"):
            if saved.facts[name] != self.facts[name]:
                raise ValueError(
                    f"{newest}: expected {name} = {self.facts[name]}, as this "
                    f"run has, got {saved.facts[name]}"
                )
        checkpoint.restore(
            saved,
            self.model,
            self.optimizer,
            process=self.here.process,
            where=str(newest),
        )
        epoch, index = saved.facts["position"]
        self.position = epoch * len(self.task.batches) + index
        self.done = saved.step
        # A run that began where no loss is scaled has no scale to go on with.
        if self.scaler and saved.facts.get("scaler"):
            self.scaler.load_state_dict(saved.facts["scaler"])

    def go_on(self, *, progress: bool) -> None:
        """Take all steps that are left."""
        config, first = self.config, self.here.is_first
        rate = config.rate()
        with ExitStack() as stack:
            log = None
            if first:
                log = stack.enter_context(Log(self.folder, self.done))
            bar = tqdm.tqdm(
                total=config.steps,
                initial=self.done,
                unit="step",
                # None: shown in a terminal, and not in a file.
                disable=None if progress and first else True,
            )
            stack.enter_context(bar)
            for number in range(self.done + 1, config.steps + 1):
                step, speed = self._step(number, rate(number))
                due = _due(number, config.validate_every, config.steps)
                validation = self._validation() if due else None
                if log is not None:
                    log.add(step, speed, validation)
                bar.set_postfix_str(
                    f"loss {step.loss:.3f}, rate {step.rate:.2g}, "
                    f"{speed:.0f} tokens/s",
                    refresh=False,
                )
                bar.update()
                if _due(number, config.save_every, config.steps):
                    self._save(number)

    def _step(self, step: int, rate: float) -> tuple[Step, float]:
        """Take one step; return it, and the target tokens a second."""
        began = time.perf_counter()
        numbers = range(self.position, self.position + self.config.accumulate)
        taken = update(
            self.objective,
            self.optimizer,
            [self._to_device(self.task.batches.at(n)) for n in numbers],
            step=step,
            rate=rate,
            clip=self.config.clip,
            scaler=self.scaler,
            autocast=self.narrow,
        )
        self.position = numbers.stop
        return taken, taken.tokens / (time.perf_counter() - began)

    def _to_device(self, batch: Batch) -> Batch:
        return tuple(part.to(self.here.device) for part in batch)

    @torch.no_grad()
    def _validation(self) -> float:
        """Compute the validation loss, without smoothing and dropout."""
        here, objective = self.here, Objective(self.model).eval()
        device, narrow = here.device.type, self.narrow
        total = tokens = 0
        with torch.autocast(device, narrow, enabled=narrow is not None):
            for batch in self.task.validation[here.process :: here.processes]:
                loss, count = objective(*self._to_device(batch))
                total, tokens = total + float(loss), tokens + int(count)
        self.model.train()
        shares = here.gather((total, tokens))
        return sum(s[0] for s in shares) / sum(s[1] for s in shares)

    def _save(self, step: int) -> None:
        states = self.here.gather(random_state())
        if not self.here.is_first:
            return
        position = divmod(self.position, len(self.task.batches))
        checkpoint.save(
            self.folder / CHECKPOINTS,
            step,
            self.model,
            self.optimizer,
            facts={**self.facts, "position": position, **self._scale()},
            rng=states,
        )
        checkpoint.tidy(self.folder / CHECKPOINTS, keep=self.config.keep)

    def _scale(self) -> dict:
        return {"scaler": self.scaler.state_dict()} if self.scaler else {}


def _due(step: int, every: int, last: int) -> bool:
    return step % every == 0 or step == last
