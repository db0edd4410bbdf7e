"""How long until a small task is known: CPU seconds to 100 % exact match.

Exact match is counted on sequences that training has not seen, decoded
greedily, with every token right. ``tuned`` is what learns fastest here;
``paper`` has the dropout, the smoothing and the schedule of Vaswani et al.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from companion.data.copying import copying_batches
from companion.data.phrasebook import batch, phrasebook_batches, split
from companion.data.vocabulary import Vocabulary
from companion.decoding import translate
from companion.training import fit, linear, noam
from companion.transformer import Transformer, TransformerConfig

LENGTH, SYMBOLS = 10, 10


class Recipe(NamedTuple):
    """How to train: a model's width, one layer a side, and the steps."""

    steps: int
    batch: int
    rate: Callable[[int], float]
    dropout: float = 0.0
    smoothing: float = 0.0
    d_model: int = 64
    num_heads: int = 4
    d_ff: int = 128
    num_layers: int = 1


class Task(NamedTuple):
    """Batches to learn from, and pairs to be asked."""

    train: list[tuple[Tensor, Tensor]]
    test: tuple[Tensor, Tensor]
    sizes: tuple[int, int]


def tuned(steps: int, peak: float, batch: int, *, num_heads: int) -> Recipe:
    """A rate that rises for a twentieth of the steps, then falls on a line."""
    warmup = steps // 20
    return Recipe(
        steps,
        batch,
        lambda n: linear(n, steps, peak=peak, warmup=warmup),
        num_heads=num_heads,
    )


def paper(steps: int, warmup: int, batch: int, *, num_heads: int) -> Recipe:
    """Dropout, label smoothing and Noam, as in section 5 of the paper.

    At this width Noam's own height, 0.0125 after 100 steps, leaves single
    tokens wrong at the end. Three tenths of it do not.
    """
    return Recipe(
        steps,
        batch,
        lambda n: 0.3 * noam(n, 64, warmup),
        dropout=0.1,
        smoothing=0.1,
        num_heads=num_heads,
    )


# To say a sequence again, one head is enough, and learns in fewer steps than
# four. The phrasebook wants several.
RECIPES = {
    ("copy", "tuned"): tuned(320, 5e-3, 56, num_heads=1),
    ("reverse", "tuned"): tuned(300, 5e-3, 64, num_heads=1),
    ("phrasebook", "tuned"): tuned(400, 4e-3, 36, num_heads=4),
    ("copy", "paper"): paper(1000, 100, 48, num_heads=1),
    ("reverse", "paper"): paper(1000, 100, 48, num_heads=1),
    ("phrasebook", "paper"): paper(900, 100, 40, num_heads=4),
}


def race(*, small: bool, device: str) -> list[dict]:
    """A row for each task and recipe, over seeds; always on the CPU.

    Models this small are no work for a GPU.
    """
    rows = []
    for (name, kind), recipe in RECIPES.items():
        if small:
            recipe = recipe._replace(steps=2, batch=3)
        seeds = range(1 if small else 6)
        done = [learn(name, recipe, seed) for seed in seeds]
        rows.append(
            {
                "task": name,
                "recipe": kind,
                "steps": recipe.steps,
                "batch": recipe.batch,
                "seeds": len(seeds),
                "most CPU seconds": max(seconds for seconds, _ in done),
                "least exact match": min(share for _, share in done),
            }
        )
    return rows


def task(name: str, recipe: Recipe, seed: int) -> Task:
    """The batches of a task, and what the model has not seen."""
    common = {"size": recipe.batch, "steps": recipe.steps, "seed": seed}
    if name == "phrasebook":
        train, test = split()
        zh = Vocabulary.from_sentences(pair.zh for pair in train)
        en = Vocabulary.from_sentences(pair.en for pair in train)
        asked = batch([p.zh for p in test], zh), batch([p.en for p in test], en)
        made = phrasebook_batches(train, zh, en, **common)
        return Task(made, asked, (len(zh), len(en)))
    common |= {"length": LENGTH, "symbols": SYMBOLS}
    common |= {"backwards": name == "reverse"}
    train = copying_batches(**common)
    unseen = common | {"size": 500, "steps": 1, "seed": 10_000 + seed}
    (asked,) = copying_batches(**unseen)
    return Task(train, asked, (SYMBOLS + 3, SYMBOLS + 3))


def learn(name: str, recipe: Recipe, seed: int) -> tuple[float, float]:
    """CPU seconds of training, and the share of held-out answers all right."""
    here = task(name, recipe, seed)
    torch.manual_seed(seed)
    model = _model(recipe, here.sizes)
    start = time.process_time()
    fit(model, here.train, rate=recipe.rate, smoothing=recipe.smoothing)
    seconds = time.process_time() - start
    return seconds, exact(model, *here.test)


def exact(model: nn.Module, src: Tensor, tgt: Tensor) -> float:
    """The share of rows that greedy decoding gets right to the last token."""
    wanted = tgt[:, 1:]
    said = translate(model, src, max_len=wanted.shape[1])
    rows = [[i for i in row if i != Vocabulary.pad] for row in wanted.tolist()]
    right = sum(a == b for a, b in zip(said, rows, strict=True))
    return right / len(rows)


def _model(recipe: Recipe, sizes: tuple[int, int]) -> Transformer:
    return Transformer(
        TransformerConfig(
            src_vocab_size=sizes[0],
            tgt_vocab_size=sizes[1],
            d_model=recipe.d_model,
            num_heads=recipe.num_heads,
            d_ff=recipe.d_ff,
            num_layers=recipe.num_layers,
            dropout=recipe.dropout,
        )
    )
