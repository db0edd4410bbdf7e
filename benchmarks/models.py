"""The models in the box: trained, packed, measured, and told in their cards.

``python -m benchmarks.models NAME`` runs the recipe of that model, unless its
run is there, packs what seed 0 has reached in 8 bits into a folder of
``companion/models``, takes a sample of text that it was not trained on, and
writes into its card what the packed model reaches. It is always seed 0 that is
packed, whatever the others reach.
"""

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks import recipes
from benchmarks.recipes import RECIPES, RESULTS, RUNS
from benchmarks.scores import RESAMPLED, Score, bleu_of
from companion import models
from companion.data.batches import collate, every_window
from companion.data.corpora import (
    attribution,
    read_table,
    shakespeare,
    tatoeba,
)
from companion.models.stored import pack
from companion.training import (
    Objective,
    TrainConfig,
    Trained,
    load_trained,
)
from companion.training.run_folder import CHECKPOINTS

SEEDS = 3
EVERY, CHARACTERS = 19, 8192
"""Of the test pairs one is taken of so many; of the plays the last so many."""
MARKED = re.compile(r"(?<=<!-- measured -->\n).*(?=<!-- until here -->)", re.S)
"""Where in a card the numbers stand."""


class Boxed(NamedTuple):
    """How a model of the package is made and measured.

    Attributes:
        recipe: Which one trains it.
        sample: Writes the sample into a folder.
        rows: Computes what the card tells of the model that was trained and of
            the packed one, beside the recipe's result.
    """

    recipe: str
    sample: Callable[[Path], None]
    rows: Callable[[Trained, Trained, dict], list[tuple[str, str]]]


def sample_pairs(folder: Path) -> list[tuple[str, str]]:
    """Read the sample of the translator: (Chinese, English)."""
    return [(zh, en) for en, zh, _ in read_table(folder / "sample.tsv")]


def sample_text(folder: Path) -> str:
    """Read the sample of the language model."""
    return (folder / "sample.txt").read_text(encoding="utf-8")


@torch.no_grad()
def pairs_loss(trained: Trained, pairs: Sequence[tuple[str, str]]) -> float:
    """Compute nats a token of the references, each read from its beginning."""
    src, tgt = trained.src_codec, trained.tgt_codec
    sides = [
        [[c.bos, *c.encode(text), c.eos] for text in texts]
        for c, texts in zip((src, tgt), zip(*pairs, strict=True), strict=True)
    ]
    batch = (collate(side) for side in sides)
    total, tokens = Objective(trained.model).eval()(*batch)
    return float(total) / int(tokens)


@torch.no_grad()
def windows_bits(trained: Trained, text: str) -> np.ndarray:
    """Compute the bits of each window of a text, and its characters.

    The recipe cuts a text in the same way, and measures the mean of all.

    Raises:
        ValueError: A character of the text is not one byte.
    """
    if not text.isascii():
        raise ValueError("text: expected ASCII, where a character is a byte")
    ids = torch.tensor(trained.tgt_codec.encode(text))
    length = trained.config.max_len - 1
    found = []
    for (window,) in every_window(ids, length=length, size=64):
        logits = trained.model(window[:, :-1]).mT
        nats = F.cross_entropy(logits, window[:, 1:], reduction="none")
        bits = nats.sum(1) / math.log(2)
        found += [(each, nats.shape[1]) for each in bits.tolist()]
    return np.array(found)


def bits_a_byte(trained: Trained, text: str) -> Score:
    """Compute the mean, and 95 per cent of those of resampled windows."""
    windows = windows_bits(trained, text)
    rng, count = np.random.default_rng(0), len(windows)
    drawn = windows[rng.integers(count, size=(RESAMPLED, count))].sum(1)
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    bits, characters = windows.sum(0)
    over = f"{characters:.0f} characters in {count} windows"
    return Score(float(bits / characters), over, (float(low), float(high)))


def translator_score(trained: Trained, pairs: list) -> Score:
    """Compute the BLEU of a translator as its recipe does."""
    recipe = RECIPES["tatoeba"]
    return bleu_of(trained, pairs, beam=recipe.beam, alpha=recipe.alpha)


def _pairs_sample(folder: Path) -> None:
    pairs = tatoeba("zh", "en").test[::EVERY]
    owners = attribution(pairs)
    lines = [
        f"{en}\t{zh}\t{owner}\n"
        for (zh, en), owner in zip(pairs, owners, strict=True)
    ]
    (folder / "sample.tsv").write_text("".join(lines), encoding="utf-8")


def _text_sample(folder: Path) -> None:
    text = shakespeare().valid[-CHARACTERS:]
    (folder / "sample.txt").write_text(text, encoding="utf-8")


def _pairs_rows(
    whole: Trained, packed: Trained, result: dict
) -> list[tuple[str, str]]:
    test = tatoeba("zh", "en").test
    sample = sample_pairs(models.folder_of("zh-en"))
    scores = [translator_score(trained, test) for trained in (whole, packed)]
    part = translator_score(packed, sample)
    loss, beam = pairs_loss(packed, sample), RECIPES["tatoeba"].beam
    return [
        (f"BLEU of the {len(test)} test sentences, 32 bits", _told(scores[0])),
        ("the same, packed in 8 bits", _told(scores[1])),
        ("the other seeds of the recipe, 32 bits", _others(result, 1)),
        (f"BLEU of the {len(sample)} sentences in `sample.tsv`", _told(part)),
        ("nats a token of their references", f"{loss:.3f}"),
        ("how", f"sacreBLEU, {_signature(scores[1])}, beam {beam}"),
    ]


def _text_rows(
    whole: Trained, packed: Trained, result: dict
) -> list[tuple[str, str]]:
    text = shakespeare().valid
    sample = sample_text(models.folder_of("shakespeare"))
    scores = [bits_a_byte(trained, text) for trained in (whole, packed)]
    part = bits_a_byte(packed, sample)
    return [
        (
            f"bits a byte of the last {len(text):,} characters, 32 bits",
            _told(scores[0], 3),
        ),
        ("the same, packed in 8 bits", _told(scores[1], 3)),
        (
            "the other seeds of the recipe, 32 bits",
            _others(result, 3, 1 / math.log(2)),
        ),
        (f"those of `sample.txt`, the last {len(sample):,}", _told(part, 3)),
    ]


def _signature(score: Score) -> str:
    """Write sacreBLEU's signature; a stroke would end a cell of a table."""
    return score.over.partition(", ")[2].replace("|", ", ")


BOXED = {
    "zh-en": Boxed("tatoeba", _pairs_sample, _pairs_rows),
    "shakespeare": Boxed("shakespeare-cpu", _text_sample, _text_rows),
}


def make(name: str, runs: Path = RUNS) -> Path:
    """Train if need be, pack, measure, and write into the card.

    Args:
        name: Which model.
        runs: Where the runs of the recipes lie.

    Returns:
        The card.

    Raises:
        ValueError: There is no model of that name.
        OSError, FloatingPointError: As ``companion.training.train``.
    """
    folder, boxed = models.folder_of(name), BOXED[name]
    recipe = RECIPES[boxed.recipe]
    config = TrainConfig.from_toml(
        recipes.TOML / f"{boxed.recipe}.toml", seed=0
    )
    run = runs / f"{boxed.recipe}-{config.steps}" / "seed-0"
    last = run / CHECKPOINTS / f"step-{config.steps:08}.safetensors"
    if last.exists():
        result = _result(boxed.recipe)
    else:
        told = recipes.run(boxed.recipe, SEEDS, None, runs, RESULTS)
        result = json.loads(told.read_text(encoding="utf-8"))
    whole = load_trained(run, recipe.average, build=recipe.build)
    pack(whole, folder)
    boxed.sample(folder)
    packed = models.load(name)
    rows = _about(boxed.recipe, result, packed, folder)
    rows += boxed.rows(whole, packed, result)
    path = folder / "card.md"
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    table = f"\n| what | number |\n| --- | --- |\n{table}\n\n"
    text = MARKED.sub(lambda _: table, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    return path


def _about(
    recipe: str, result: dict, packed: Trained, folder: Path
) -> list[tuple[str, str]]:
    """Tell how large it is, and what its training took."""
    numbers = sum(weight.numel() for weight in packed.model.parameters())
    files = [p for p in folder.iterdir() if p.suffix != ".md"]
    size = sum(path.stat().st_size for path in files)
    config = packed.config
    kept = RECIPES[recipe].average
    mean = f", mean of the last {kept} checkpoints" if kept > 1 else ""
    spent = result["runs"][0]["cpu_seconds"] or result["runs"][0]["seconds"]
    return [
        ("recipe", f"`benchmarks/recipes/{recipe}.toml`, seed 0{mean}"),
        ("weights", f"{numbers:,}; the folder takes {size / 1e6:.2f} MB"),
        (
            "training of seed 0, as recorded",
            f"{config.steps:,} steps, {spent / 60:.1f} minutes of CPU, "
            f"{result['device']}, {result['threads']} thread, "
            f"{result['date']}, torch {result['versions']['torch']}",
        ),
    ]


def _others(result: dict, digits: int, unit: float = 1.0) -> str:
    """Tell what the recipe reached with the seeds that were not packed."""
    return "; ".join(
        f"seed {run['seed']}: "
        + _told(_score(run["score"], run.get("interval"), unit), digits)
        for run in result["runs"][1:]
    )


def _score(
    value: float, interval: Sequence[float] | None, unit: float
) -> Score:
    ends = None if interval is None else [unit * end for end in interval]
    return Score(unit * value, "", ends and (ends[0], ends[1]))


def _told(score: Score, digits: int = 1) -> str:
    if score.interval is None:
        return f"{score.value:.{digits}f}"
    low, high = (f"{end:.{digits}f}" for end in score.interval)
    return f"{score.value:.{digits}f} ({low} … {high})"


def _result(recipe: str) -> dict:
    """Read the newest result of a recipe."""
    files = RESULTS.glob(f"recipe-{recipe}-*.json")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    own = [one for one in found if one["recipe"] == recipe]
    if not own:
        raise ValueError(
            f"{RESULTS}: expected what the recipe has reached; to measure it, "
            f"type: python -m benchmarks.recipes {recipe}"
        )
    return max(own, key=lambda one: one["date"])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line.

    Raises:
        SystemExit: It does not fit.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models")
    parser.add_argument("name", choices=models.NAMES)
    parser.add_argument("--runs", type=Path, default=RUNS)
    options = parser.parse_args(arguments)
    try:
        print(make(options.name, options.runs))
    except (ValueError, OSError, FloatingPointError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
