"""Training: the schedule, the loss, the optimizer, and the loop of steps.

schedule    how large a step is, at each step
loss        cross-entropy against a smoothed target
optimizer   the paper's Adam
steps       one update, many updates, and what each of them measured
diagnose    what the curves say about what is wrong

config      what a run is made of, from TOML, from flags, or by name
tasks       what it learns from
trainer     the run: a bar, a log, checkpoints, and going on after a kill
checkpoint  files that are whole or not there; averaging some
run_folder  what a run leaves behind, and reading it
log         a row a step
distributed several processes as one
capability  what a device can do: narrow numbers, compiled code
"""

from companion.training.config import TrainConfig
from companion.training.diagnose import Finding, diagnose
from companion.training.log import read_log
from companion.training.loss import label_smoothing
from companion.training.optimizer import adam
from companion.training.run_folder import Trained, load_trained
from companion.training.schedule import linear, noam
from companion.training.steps import Objective, Step, fit, update
from companion.training.tasks import corpus, make_task
from companion.training.trainer import train

__all__ = [
    "Finding",
    "Objective",
    "Step",
    "TrainConfig",
    "Trained",
    "adam",
    "corpus",
    "diagnose",
    "fit",
    "label_smoothing",
    "linear",
    "load_trained",
    "make_task",
    "noam",
    "read_log",
    "train",
    "update",
]
