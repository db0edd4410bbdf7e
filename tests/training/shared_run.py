"""What each of two processes does in ``test_distributed``."""

import dataclasses
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from companion.training import Objective, TrainConfig, make_task, train
from companion.training.distributed import Shared, processes
from companion.training.optimizer import adam
from companion.training.run_folder import build
from companion.training.steps import update

CONFIG = TrainConfig(
    data="copy",
    max_len=13,
    batch_tokens=397,
    d_model=6,
    num_heads=2,
    d_ff=5,
    steps=6,
    warmup=2,
    accumulate=2,
    save_every=2,
    validate_every=3,
)
DROPPED = dataclasses.replace(CONFIG, dropout=0.3)


def gradients(share):
    """The gradients of one step, and what it told.

    Its second batch has one row, so that one of two processes has none.
    """
    task = make_task(CONFIG)
    torch.manual_seed(0)
    model = build(CONFIG, task.src_codec, task.tgt_codec)
    objective = share(Objective(model, smoothing=0.1))
    first, second = task.batches.at(0), task.batches.at(1)
    batches = [first, tuple(part[:1] for part in second)]
    optimizer = adam(model.parameters(), lr=0.1)
    told = update(objective, optimizer, batches, step=1, rate=1e-9, clip=None)
    found = {name: p.grad for name, p in model.named_parameters()}
    return found, told


def main(folder: Path) -> None:
    """Leaves gradients, a run, one with dropout, and that one gone on with."""
    with processes() as here:
        found, told = gradients(lambda objective: Shared(objective, here))
        found["loss"] = torch.tensor([told.loss, told.tokens])
        save_file(found, folder / f"gradients-{here.process}.safetensors")
        train(CONFIG, folder / "plain")
        train(DROPPED, folder / "whole")
        if here.is_first:
            shutil.copytree(folder / "whole", folder / "cut")
            saved = folder / "cut" / "checkpoints"
            (saved / "step-00000006.safetensors").unlink()
        train(DROPPED, folder / "cut")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
