"""Recipes: train, measure, and write down what was reached.

``python -m benchmarks.recipes NAME`` trains the configuration of that name in
``benchmarks/recipes/``, once for each seed, and writes a file with the numbers,
the device, the time, the memory and the versions. ``--table`` shows all files.
A run that was stopped goes on where it was.
"""

import argparse
import dataclasses
import datetime
import json
import platform
import re
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import torch

import companion
from benchmarks.machine import chip
from benchmarks.recipes_gpt import from_counts, gpt
from benchmarks.recipes_score import bleu, exact_match, validation_loss
from benchmarks.recipes_table import table, what
from companion.training import TrainConfig, load_trained, read_log, train
from companion.training.checkpoint import every
from companion.training.log import LOG
from companion.training.run_folder import CHECKPOINTS, Builder, build

HERE = Path(__file__).parent
TOML, RESULTS = HERE / "recipes", HERE / "results"
LIBRARIES = ("torch", "sentencepiece", "sacrebleu")


class Recipe(NamedTuple):
    """How a model is made and measured, and what its number stands beside.

    ``counts`` computes what else it stands beside, from the same data.
    """

    measure: Callable
    unit: str
    digits: int = 1
    beam: int = 1
    average: int = 1
    alpha: float = 0.6
    beside: str = ""
    counts: Callable[[], str] | None = None
    build: Builder = build


RECIPES = {
    "phrasebook": Recipe(exact_match, "exact match, %"),
    "copy": Recipe(exact_match, "exact match, %"),
    "reverse": Recipe(exact_match, "exact match, %"),
    "tatoeba": Recipe(bleu, "BLEU", beam=4, average=5),
    "multi30k": Recipe(
        bleu,
        "tokenised BLEU",
        2,
        beam=5,
        average=10,
        beside="published 41.02 (Wu et al. 2021, Tiny)",
    ),
    "shakespeare": Recipe(
        validation_loss,
        "validation loss of a GPT, nats a character",
        4,
        beside="published 1.4697 (nanoGPT: the best of its run, with AdamW "
        "and a cosine; here the end of the run)",
        counts=from_counts,
        build=gpt,
    ),
    "shakespeare-cpu": Recipe(
        validation_loss,
        "validation loss of a small GPT, nats a character",
        2,
        beside="published 1.88 (nanoGPT for a CPU, on a part of the text)",
        counts=from_counts,
        build=gpt,
    ),
}


def whats() -> dict[str, str]:
    """What each recipe measures, and what its number stands beside."""
    return {name: what(r.unit, r.beside) for name, r in RECIPES.items()}


def run(
    name: str, seeds: int, steps: int | None, runs: Path, results: Path
) -> Path:
    """Trains and measures a recipe, and returns the file it wrote.

    Raises:
        ValueError: there is no recipe of that name, or ``seeds`` is below 1.
        OSError, FloatingPointError: as ``companion.training.train``.
    """
    if name not in RECIPES:
        raise ValueError(
            f"name: expected one of {', '.join(RECIPES)}, got {name!r}"
        )
    if seeds < 1:
        raise ValueError(f"seeds: expected at least 1, got {seeds}")
    recipe, told = RECIPES[name], []
    planned = TrainConfig.from_toml(TOML / f"{name}.toml")
    changes = {} if steps is None else _shortened(planned, steps)
    for seed in range(seeds):
        config = dataclasses.replace(planned, seed=seed, **changes)
        folder = runs / f"{name}-{config.steps}" / f"seed-{seed}"
        told.append(_one(recipe, config, folder))
        score = f"{told[-1]['score']:.{recipe.digits}f}"
        print(f"{name}, seed {seed}: {recipe.unit} {score}", flush=True)
    result = _result(name, config, told) | {"planned_steps": planned.steps}
    results.mkdir(parents=True, exist_ok=True)
    short = "" if config.steps == planned.steps else f"-{config.steps}-steps"
    path = results / f"recipe-{name}-{_slug(result['device'])}{short}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def _shortened(planned: TrainConfig, steps: int) -> dict:
    """What changes with the number of steps: a warm-up longer than that."""
    if planned.schedule == "noam" or planned.warmup <= steps:
        return {"steps": steps}
    print(f"warm-up shortened to {steps} steps from {planned.warmup}")
    return {"steps": steps, "warmup": steps}


def _result(name: str, config: TrainConfig, told: list[dict]) -> dict:
    recipe = RECIPES[name]
    counted = recipe.counts() if recipe.counts else ""
    return {
        "recipe": name,
        "measure": recipe.unit,
        "beside": "; ".join(filter(None, (recipe.beside, counted))),
        "digits": recipe.digits,
        "beam": recipe.beam,
        **_machine(),
        "runs": told,
        "config": dataclasses.asdict(config),
    }


def _one(recipe: Recipe, config: TrainConfig, folder: Path) -> dict:
    """Trains with one seed: what it reached, and what that took."""
    began = time.process_time()
    goes_on = folder.exists()
    train(config, folder, build=recipe.build)
    spent = time.process_time() - began
    log = read_log(folder)
    # A shortened run may have left fewer checkpoints.
    averaged = min(recipe.average, len(every(folder / CHECKPOINTS)))
    trained = load_trained(folder, average=averaged, build=recipe.build)
    trained.model.to(companion.device())
    score = recipe.measure(trained, beam=recipe.beam, alpha=recipe.alpha)
    checked = _validations(log, folder)
    return {
        "seed": config.seed,
        "score": score.value,
        "over": score.over,
        "averaged": averaged,
        "last_validation_loss": checked[-1],
        "best_validation_loss": min(checked),
        # The sum of all steps, so that it is right if the run was resumed.
        "seconds": sum(r["tokens"] / r["speed"] for r in log if r["speed"]),
        "cpu_seconds": None if goes_on else spent,
        "tokens": sum(row["tokens"] for row in log),
        "memory_mib": _memory(),
    }


def _validations(log: list[dict], folder: Path) -> list[float]:
    checked = [row["validation"] for row in log if row["validation"]]
    if not checked:
        raise ValueError(
            f"{folder / LOG}: expected the log of the whole run, got "
            f"{len(log)} rows; to measure it again, move {folder} away"
        )
    return checked


def _memory() -> float:
    """The most that was ever in use: of the GPU, or else of the process."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def _machine() -> dict:
    kind = companion.device().type
    return {
        "kind": kind,
        "device": chip(kind),
        "threads": torch.get_num_threads(),
        "date": datetime.date.today().isoformat(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
    }


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def main(arguments: list[str] | None = None) -> None:
    """Reads the command line.

    Raises:
        SystemExit: it does not fit.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes")
    parser.add_argument("name", nargs="?", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer than the recipe has")
    parser.add_argument("--runs", type=Path, default=Path("runs/recipes"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(arguments)
    if options.name:
        try:
            run(
                options.name,
                options.seeds,
                options.steps,
                options.runs,
                options.results,
            )
        except (ValueError, OSError, FloatingPointError) as error:
            parser.error(str(error))
    elif not options.table:
        parser.error("expected the name of a recipe, or --table")
    if options.table or options.name:
        print(table(whats(), options.results))


if __name__ == "__main__":
    main()
