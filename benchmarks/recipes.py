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
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import torch

import companion
from benchmarks.machine import chip
from benchmarks.scores import (
    bleu,
    counted_losses,
    exact_match,
    validation_loss,
)
from companion.models import gpt
from companion.training import TrainConfig, load_trained, read_log, train
from companion.training.checkpoint import every
from companion.training.log import LOG
from companion.training.run_folder import CHECKPOINTS, Builder, build

HERE = Path(__file__).parent
TOML, RESULTS = HERE / "recipes", HERE / "results"
RUNS = Path("runs/recipes")
LIBRARIES = ("torch", "sentencepiece", "sacrebleu")
HEAD = ("recipe", "what", "reached", "seeds", "steps", "time", "memory", "on")
NOTHING = "not measured"


class Recipe(NamedTuple):
    """How a model is made and measured, and what its number stands beside.

    Attributes:
        measure: Computes the score.
        unit: What it is a score of.
        digits: How many of them are shown.
        beam: Width of the search; 1 is greedy.
        average: Of how many of the last checkpoints the model is the mean.
        alpha: How much a long sentence is helped.
        beside: A published number.
        counts: Computes what else it stands beside, from the same data.
        build: Makes the model.
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
        counts=counted_losses,
        build=gpt,
    ),
    "shakespeare-cpu": Recipe(
        validation_loss,
        "validation loss of a small GPT, nats a character",
        2,
        beside="published 1.88 (nanoGPT for a CPU, on a part of the text)",
        counts=counted_losses,
        build=gpt,
    ),
}


def measures() -> dict[str, str]:
    """Tell what each recipe measures, and what its number stands beside."""
    return {name: _what(r.unit, r.beside) for name, r in RECIPES.items()}


def run(
    name: str, seeds: int, steps: int | None, runs: Path, results: Path
) -> Path:
    """Train and measure a recipe.

    Args:
        name: Which recipe.
        seeds: How many runs, with the seeds 0, 1 …
        steps: Fewer than the recipe has, or None.
        runs: Where the runs lie.
        results: Where the result goes.

    Returns:
        The file with the result.

    Raises:
        ValueError: There is no recipe of that name, or ``seeds`` is below 1.
        OSError, FloatingPointError: As ``companion.training.train``.
    """
    if name not in RECIPES:
        raise ValueError(
            f"name: expected one of {', '.join(RECIPES)}, got {name!r}"
        )
    if seeds < 1:
        raise ValueError(f"seeds: expected at least 1, got {seeds}")
    recipe, found = RECIPES[name], []
    path = TOML / f"{name}.toml"
    planned = TrainConfig.from_toml(path)
    changes = {} if steps is None else {"steps": steps}
    for seed in range(seeds):
        config = TrainConfig.from_toml(path, seed=seed, **changes)
        folder = runs / f"{name}-{config.steps}" / f"seed-{seed}"
        found.append(_one(recipe, config, folder))
        score = f"{found[-1]['score']:.{recipe.digits}f}"
        print(f"{name}, seed {seed}: {recipe.unit} {score}", flush=True)
    result = _result(name, config, found) | {"planned_steps": planned.steps}
    results.mkdir(parents=True, exist_ok=True)
    short = "" if config.steps == planned.steps else f"-{config.steps}-steps"
    path = results / f"recipe-{name}-{_slug(result['device'])}{short}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path


def table(measures: Mapping[str, str], results: Path) -> str:
    """Write a row for each result as Markdown, from the files in ``results``.

    Args:
        measures: What each recipe measures, for those without a result.
        results: A folder.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    files = sorted(results.glob("recipe-*.json"))
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for name, what in measures.items():
        own = [_row(result) for result in found if result["recipe"] == name]
        rows += own or [(name, what, NOTHING, *("",) * (len(HEAD) - 3))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _result(name: str, config: TrainConfig, found: list[dict]) -> dict:
    recipe = RECIPES[name]
    counted = recipe.counts() if recipe.counts else ""
    return {
        "recipe": name,
        "measure": recipe.unit,
        "beside": "; ".join(filter(None, (recipe.beside, counted))),
        "digits": recipe.digits,
        "beam": recipe.beam,
        **_machine(),
        "runs": found,
        "config": dataclasses.asdict(config),
    }


def _one(recipe: Recipe, config: TrainConfig, folder: Path) -> dict:
    """Train with one seed; note what it reached, and what that took."""
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
        "interval": score.interval,
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
    """Read the most that was ever in use: of the GPU, else of the process."""
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


def _what(measure: str, beside: str) -> str:
    """Tell what is measured, and what its number stands beside."""
    return f"{measure}; {beside}".removesuffix("; ")


def _row(result: dict) -> Sequence[str]:
    runs = result["runs"]
    done, planned = result["config"]["steps"], result["planned_steps"]
    return (
        result["recipe"],
        _what(result["measure"], result["beside"]),
        _reached(result),
        ", ".join(str(run["seed"]) for run in runs),
        str(done) if done == planned else f"{done} of {planned}",
        _duration(runs, result["kind"]),
        f"{max(run['memory_mib'] for run in runs):.0f} MiB",
        f"{result['device']}, {result['threads']} thread(s), {result['date']}",
    )


def _reached(result: dict) -> str:
    """Tell the scores; of losses also the lowest, where a run went past it."""
    runs, digits = result["runs"], result["digits"]
    reached = _band([run["score"] for run in runs], digits)
    if not result["measure"].startswith("validation loss"):
        return reached
    lowest = _band([run["best_validation_loss"] for run in runs], digits)
    return reached if lowest == reached else f"{reached}; lowest {lowest}"


def _band(scores: Sequence[float], digits: int) -> str:
    ends = {f"{score:.{digits}f}" for score in (min(scores), max(scores))}
    return " … ".join(sorted(ends, key=float))


def _duration(runs: Sequence[dict], kind: str) -> str:
    """Tell the time of the slowest: CPU time, if it never stopped."""
    # What else the machine does counts in the time on the clock.
    cpu = [run["cpu_seconds"] for run in runs]
    worked = kind == "cpu" and None not in cpu
    most = max(cpu if worked else (run["seconds"] for run in runs))
    time = f"{most:.0f} s" if most < 120 else f"{most / 60:.0f} min"
    return f"{time} of CPU" if worked else time


def main(arguments: list[str] | None = None) -> None:
    """Read the command line.

    Raises:
        SystemExit: It does not fit.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes")
    parser.add_argument("name", nargs="?", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer than the recipe has")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument(
        "--results",
        type=Path,
        help="where the result goes (default: benchmarks/results; with "
        "--steps, which only tries a recipe, where the runs lie)",
    )
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(arguments)
    results = options.results or (
        RESULTS if options.steps is None else options.runs
    )
    if options.name:
        try:
            run(
                options.name,
                options.seeds,
                options.steps,
                options.runs,
                results,
            )
        except (ValueError, OSError, FloatingPointError) as error:
            parser.error(str(error))
    elif not options.table:
        parser.error("expected the name of a recipe, or --table")
    if options.table or options.name:
        print(table(measures(), results))


if __name__ == "__main__":
    main()
