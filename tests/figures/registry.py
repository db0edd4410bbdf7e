"""Every figure with an example of it, and how its keyboard works.

``test_every_figure.py`` and ``test_browser.py`` ask all of them the same
questions; what only one figure does is asked in the file with its name.
"""

import json
import re
from collections.abc import Callable
from functools import cache
from html import unescape
from html.parser import HTMLParser
from math import inf, nan
from typing import NamedTuple

import matplotlib.pyplot as plt
import torch

from companion.attention import softmax
from companion.data.phrasebook import batch
from companion.data.vocabulary import Vocabulary
from companion.efficiency import Machine, Sizes
from companion.figures import (
    Figure,
    alignment_grid,
    alignment_plane,
    attention_flow,
    attention_pull,
    beam_tree,
    cache_growth,
    clinic,
    clock_rows,
    data_flow,
    depth_curves,
    four_questions,
    head_cut,
    head_flow,
    head_maps,
    head_ties,
    live,
    lstm_cell,
    machine,
    mask_builder,
    mask_grids,
    matrices,
    merge_steps,
    noam_curve,
    norm_grid,
    norm_places,
    number_lines,
    objectives,
    page_tables,
    paths,
    plot,
    position_clocks,
    position_doors,
    ravine,
    recurrence,
    roofline,
    rotary_pair,
    run_doctor,
    sampling_bars,
    saturation,
    score_matrix,
    source,
    style,
    swapped_words,
    teacher_forcing,
    tile_sweep,
    todays_block,
    token_strips,
    unrolled_rnn,
    verdicts,
    warmup_curves,
    wirings,
    word_order,
    word_walks,
)
from companion.training import fit
from companion.transformer import Transformer, TransformerConfig

DRAW = torch.Generator().manual_seed(3)


# Two vectors on their way through the machine.
JOURNEYS = {
    name: [
        ((), {"it was": [n, 0, -n]}, f"{name} comes in."),
        (("self_attention", "norm_1"), {"+": [0, n, n]}, f"{name} looks back."),
        (("bridge", "memory"), {"it is": [n / 3, 1, 0]}, f"{name} & the rest."),
    ]
    for name, n in (("first", 2), ("second", 5))
}


class Example(NamedTuple):
    """A figure that moves, and what a keyboard does with it.

    Attributes:
        make: Makes the figure.
        stops: What Tab reaches, one after the other: tag names.
        moves: A control, and the key that makes the figure say something else.
        widest: Keys that, from the first control on, make it most crowded.
        drawn: What must stand there before and after the script has run.
    """

    make: Callable[[], Figure]
    stops: tuple[str, ...]
    moves: tuple[str, str]
    widest: tuple[str, ...] = ()
    drawn: str = ".says, td, th, caption, svg *"


# The alignment grid.
SOURCE = ["我", "爱", "小", "猫", "<eos>"]
TARGET = ["love", "cats", "<eos>"]
WEIGHTS = softmax(2 * torch.randn(3, 5, generator=DRAW))
STATES = torch.randn(5, 2, generator=DRAW)

# Merges from four words, and two lines cut in three ways.
MERGE_WORDS = {"cat": 6, "cats": 4, "hat": 3, "hats": 2}
LINES = ("I love <cats>", "我爱猫")
CUTS = {
    "characters": [[c.encode() for c in line] for line in LINES],
    "bytes": [[bytes([b]) for b in line.encode()] for line in LINES],
    "two pieces": [[line.encode()[:5], line.encode()[5:]] for line in LINES],
}

# A machine, a row of scores in two blocks and others, a prompt, eight weights.
A100 = Machine(operations=312e12, bytes=2039e9)
EXPONENTIALS = [[1, 2, 8, 1], [4, 1, 1, 2], [2, 2, 2, 2], [1, 1, 2, 4]]
PROMPT = ["the", "cat", "sat", "on", "the", "mat", "and", "it", "slept"]
EIGHT = [0.1, -0.3, 0.4, 0.7, 0.5, -0.2, 0.6, 0.7]

# An LSTM cell over three words.
GATES = {
    "forget": [0.05, 0.95, 0.05],
    "write": [0.95, 0.05, 0.95],
    "candidate": [1, 0, -1],
    "read": [0.1, 0.95, 0.1],
}

# One alignment in a plane.
NEEDLES = torch.randn(3, 2, generator=DRAW)

# Attention: three words of width 5, d_k = 2, d_v = 4.
X_WORDS = torch.randn(3, 5, generator=DRAW)
PROJECTIONS = [torch.randn(5, d, generator=DRAW) for d in (2, 2, 4)]

# A cache that grows.
OWN_CACHE = torch.Generator().manual_seed(6)
CAUSAL_WEIGHTS = torch.rand(5, 5, generator=OWN_CACHE).tril()
CAUSAL_WEIGHTS /= CAUSAL_WEIGHTS.sum(-1, keepdim=True)

# Multi-head attention: three words of width 4, two heads.
OWN = torch.Generator().manual_seed(4)
HEAD_WORDS = torch.randn(3, 4, generator=OWN)
HEAD_MATRICES = [torch.randn(4, 4, generator=OWN) for _ in range(4)]

# A layer with its norms in two places: three words of width 5.
PLACES = torch.Generator().manual_seed(5)
PLACED = torch.randn(3, 5, generator=PLACES)
MIXES = torch.randn(5, 5, generator=PLACES)


def place(x):
    """What stands for an attention: each word gets of the others."""
    return x.roll(1, 0) @ MIXES


def ponder(x):
    """What stands for a feed-forward network."""
    return (x @ MIXES).relu()


# Norms of two sentences, with three features.
GRID = torch.randint(-5, 6, (5, 3), generator=PLACES).float()

# The heads.
WORDS = ["我", "爱", "小", "猫", "<eos>", "a", "b"]
MAPS = {
    h: softmax(3 * torch.randn(h, 7, 7, generator=DRAW)) for h in (1, 3, 11)
}
BANDS = {h: {"1 back": (0.5, 0.75), "3 back": (1.0, 1.0)} for h in MAPS}

# Depth curves.
STACKS, DEPTHS = ("bare", "norm only", "post-LN", "pre-LN"), (1, 2, 5, 48)
CURVES = {
    name: {
        depth: {
            "similarity": torch.rand(depth + 1, generator=DRAW).tolist(),
            "gradient": [10.0 ** (-i * at / 2) for at in range(depth)],
        }
        for depth in DEPTHS
    }
    for i, name in enumerate(STACKS)
}

# Data flow.
ZH, EN = list("我爱小猫"), ["I", "love", "little", "cats"]
FORCED = ["I", "like", "little", "cats"]
WRITTEN = ["I", "like", "my", "cat"]
LONG = ("我今天看到猫", "really yesterday saw little elephants everywhere")


@cache
def by_heart():
    """A model that knows one sentence, and its vocabularies."""
    zh, en = (Vocabulary.from_sentences([side]) for side in (ZH, EN))
    torch.manual_seed(0)
    sizes = {"d_model": 14, "num_heads": 2, "d_ff": 17, "num_layers": 2}
    config = TransformerConfig(
        src_vocab_size=len(zh), tgt_vocab_size=len(en), dropout=0.0, **sizes
    )
    model = Transformer(config)
    pair = batch([ZH], zh), batch([EN], en)
    fit(model, [pair] * 40, rate=lambda step: 1e-2)
    return model, zh, en


# Sampling.
LOGITS = (2 * torch.randn(23, generator=DRAW)).tolist()
LOGITS[4] = -inf
CHOICES = ["猫", "elephants", "<eos>", *(f"word{i}" for i in range(20))]

# The beam.
TABLE = 2 * torch.randn(11, 11, generator=DRAW)
TOKENS = ["<pad>", "<bos>", "<eos>", "yesterday", "elephants", *"abcdef"]
BEAM = {"bos": 1, "eos": 2, "max_len": 6}


def step_fn(rows):
    """A model that knows only its last token."""
    return TABLE[rows[:, -1]]


# The doctor.
def measured(finding, factor, valid=None):
    return {
        "loss": [factor * 4 / (1 + step) for step in range(250)],
        "gradient": [factor * 10.0 ** (step % 7 - 3) for step in range(250)],
        "rate": [factor * 1e-3] * 250,
        "valid": valid,
        "finding": finding,
        "why": f"That is what {finding} looks like.",
    }


RUNS = {
    "Run A": measured("overfitting", 1, [3.0, 2.0, 2.5]),
    "Run B": measured("rate too high", 7)
    | {"loss": [4.0] * 100 + [900.0] * 100 + [nan] * 50},
    "Run C": measured("rate too low", 0.01),
    "Run D": measured("healthy", 2),
}

# The warm-up.
STEPS, D_MODEL = 20, 7
ENDS = {3: (4.0, 3.0, 5.0), 11: (1.0, 2.0, 1.5), 100: (3.0, 4.5, 4.25)}
"""Warm-up -> what three seeds lose in the end."""


def some_losses(ends=ENDS, steps=STEPS):
    """Runs that fall in a straight line from 5 to their ends."""
    return {
        warmup: [
            [5 - (5 - end) * step / steps for step in range(1, steps + 1)]
            for end in three
        ]
        for warmup, three in ends.items()
    }


CASES = (
    {
        "name": "the upside-down mask",
        "symptom": "The loss is 0.02 & it writes `nonsense` <here>.",
        "guesses": ["It overfits.", "It sees its future.", "It is too small."],
        "right": 1,
        "test": "Change token 3: which rows move?",
        "sick": "rows 0–2",
        "healthy": "none",
        "cure": "Turn it round: `~mask`.",
        "curves": {
            "training": [3.0 / (1 + step) for step in range(37)],
            "validation": [3.0 / (1 + step) + 0.5 for step in range(37)],
        },
    },
    {
        "name": "one sentence for all",
        "symptom": "It says the same thing again and again.",
        "guesses": ["A.", "B.", "C."],
        "right": 0,
        "test": "Alone, and in company.",
        "sick": "0.73",
        "healthy": "0.00",
        "cure": "Index by place.",
        "lines": {"it should say": "我 爱 猫", "it says": "the the the"},
    },
    {
        "name": "short rows",
        "symptom": "Rows do not sum to 1.",
        "guesses": ["D.", "E.", "F."],
        "right": 2,
        "test": "Sum the rows.",
        "sick": "0.33",
        "healthy": "1.00",
        "cure": "Mask first.",
        "matrix": torch.softmax(torch.arange(20.0).view(4, 5), -1),
    },
    {
        "name": "no picture",
        "symptom": "Nothing to see.",
        "guesses": ["G.", "H.", "I."],
        "right": 1,
        "test": "Twice.",
        "sick": "1",
        "healthy": "0",
        "cure": "Call `model.eval()`.",
    },
)


def a_plot():
    with style():
        figure, ax = plt.subplots()
        ax.plot([1, 2, 3], [5, 7, 11], label="我爱")
        ax.plot([1, 2, 3], [7, 7, 7], label="小猫")
        ax.set(xlabel="位置", yscale="log")
        ax.legend()
    return plot(figure, caption="Rising.", alt="A line that rises")


CELLS = ".says, td[style], td.extra, caption, tbody th, svg *"
LANES = (
    ".says, svg *, .passes, td, thead th, .part, .token, .shape, .mask i, .side"
)
MOVING = {
    "unrolled_rnn": Example(
        unrolled_rnn, ("INPUT", "SUMMARY"), ("input", "End"), ("End",)
    ),
    "word_order": Example(
        word_order,
        ("BUTTON",) * 7,
        ("button.tile", "ArrowRight"),
        ("End",),
        ".tile *, .long *, .says, td[style]",
    ),
    "attention_flow": Example(
        lambda: attention_flow(X_WORDS, *PROJECTIONS, words=SOURCE[:3], row=1),
        ("INPUT", *["BUTTON"] * 3, "SUMMARY"),
        ("button:nth-child(3)", "Enter"),
        drawn=".says, td, th, caption, svg *",
    ),
    "ravine": Example(
        ravine,
        ("INPUT", "INPUT", *["BUTTON"] * 3),
        ("input", "ArrowRight"),
        ("ArrowLeft", "Tab", "ArrowRight"),
        ".says, svg *",
    ),
    "recurrence": Example(
        lambda: recurrence(["我", "爱", "猫"], ["I", "love", "cat"]),
        ("INPUT", *["BUTTON"] * 3),
        ("input", "ArrowRight"),
    ),
    "cache_growth": Example(
        lambda: cache_growth(SOURCE, CAUSAL_WEIGHTS),
        ("INPUT", *["BUTTON"] * 3),
        ("input", "ArrowRight"),
        ("ArrowRight",),
        ".says, svg *",
    ),
    "merge_steps": Example(
        lambda: merge_steps(MERGE_WORDS, 4, "chats"),
        ("INPUT", *["BUTTON"] * 3),
        ("input", "ArrowRight"),
        ("Tab", "Tab", "Tab", "Enter", "Enter"),
    ),
    "roofline": Example(
        lambda: roofline(Sizes.seven_billion(), A100, 80e9),
        ("INPUT", "INPUT", "INPUT"),
        ("input", "ArrowRight"),
        ("End", "Tab", "End"),
        ".says, svg *",
    ),
    "tile_sweep": Example(
        lambda: tile_sweep(EXPONENTIALS, [10, 20, 30, 40], 2),
        ("INPUT", *["BUTTON"] * 3),
        ("button:nth-child(3)", "Enter"),
        ("ArrowRight", "Tab", "Tab", "Tab", *["Enter"] * 4),
        ".says, svg *",
    ),
    "page_tables": Example(
        lambda: page_tables(PROMPT, "well", "long"),
        ("INPUT",),
        ("input", "ArrowRight"),
        ("ArrowRight",) * 5,
        ".says, svg *",
    ),
    "number_lines": Example(
        lambda: number_lines(EIGHT, 7.0),
        ("INPUT", "INPUT", "INPUT"),
        ("input", "ArrowRight"),
        ("ArrowRight",),
        ".says, svg *, td",
    ),
    "token_strips": Example(
        lambda: token_strips(["English", "中文"], CUTS),
        ("INPUT",),
        ("input", "ArrowRight"),
        ("ArrowRight",),
    ),
    "lstm_cell": Example(
        lambda: lstm_cell(["我", "猫", "他"], ["I", "cat", "he"], GATES),
        ("INPUT", *["BUTTON"] * 3),
        ("button:nth-child(3)", "Enter"),
    ),
    "head_flow": Example(
        lambda: head_flow(
            HEAD_WORDS, HEAD_MATRICES, num_heads=2, words=SOURCE[:3], row=1
        ),
        ("INPUT", *["BUTTON"] * 3, "SUMMARY"),
        ("button:nth-child(3)", "Enter"),
        (*["Tab"] * 3, *["Enter"] * 9),
        drawn=".says, td, th, caption, svg *",
    ),
    "machine": Example(
        lambda: machine(
            SOURCE[:3], ["<bos>", *TARGET[:2]], JOURNEYS, axes="xyz"
        ),
        ("INPUT", *["BUTTON"] * 3, "SUMMARY"),
        ("button:nth-child(3)", "Enter"),
    ),
    "alignment_grid": Example(
        lambda: alignment_grid(SOURCE, TARGET, WEIGHTS, STATES),
        ("BUTTON",),
        ("button[tabindex='0']", "Home"),
        drawn=CELLS,
    ),
    "alignment_plane": Example(
        lambda: alignment_plane(
            SOURCE[:4],
            STATES[:4],
            TARGET,
            NEEDLES,
            glosses=["I", "love", "little", "cat"],
            order=[2, 3, 0, 1],
        ),
        ("INPUT", "INPUT"),
        ("input", "ArrowRight"),
        ("ArrowRight", "Tab", "ArrowRight"),
        ".says, svg *",
    ),
    "wirings": Example(
        lambda: wirings(SOURCE[:4], TARGET, WEIGHTS[:, :4]),
        ("INPUT", *["BUTTON"] * 3, "SUMMARY"),
        ("input", "ArrowRight"),
        ("ArrowRight", "ArrowRight"),
        ".says, svg *",
    ),
    "score_matrix": Example(
        score_matrix,
        ("INPUT",) * (2 + 16 + 12),
        ("input", "End"),
        ("Home", "Tab", "Home"),
        drawn=CELLS,
    ),
    "saturation": Example(
        saturation,
        (*["INPUT"] * 3, "SUMMARY"),
        ("input", "Home"),
        ("End", "Tab", "End"),
        ".says, .share b, td, th, caption, svg *",
    ),
    "head_maps": Example(
        lambda: head_maps(MAPS, WORDS, BANDS, d_model=66),
        ("BUTTON", "TD", "TD", "TD"),
        ("button[tabindex='0']", "Home"),
        ("End",),
        CELLS + ", .part",
    ),
    "position_clocks": Example(
        position_clocks,
        ("INPUT", "INPUT", "BUTTON", "BUTTON", "SUMMARY", "SUMMARY"),
        ("input", "Home"),
        ("End", "Tab", "End"),
        CELLS + ", .part, .pair td",
    ),
    "rotary_pair": Example(
        rotary_pair,
        ("INPUT",) * 3,
        ("input", "ArrowLeft"),
        ("End", "Tab", "Home"),
        ".says, .to, td, tbody th, svg *",
    ),
    "mask_builder": Example(
        mask_builder,
        ("INPUT",) * 5,
        ("input[type=checkbox]", " "),
        drawn=".says, pre, td[style], .mask td, caption, th",
    ),
    "norm_places": Example(
        lambda: norm_places(
            PLACED, place, ponder, words=SOURCE[:3], features=list("abcde")
        ),
        ("INPUT", *["BUTTON"] * 3, "SUMMARY"),
        ("button:nth-child(3)", "Enter"),
        (*["Tab"] * 3, *["Enter"] * 4),
        ".says, td, th, caption, svg *",
    ),
    "norm_grid": Example(
        lambda: norm_grid(GRID, SOURCE, sentences=(3, 2), start=(2, 1)),
        ("INPUT",) * 4,
        ("input[type=range]", "Home"),
        ("ArrowRight",),
        ".says, td, th, caption",
    ),
    "depth_curves": Example(
        lambda: depth_curves(CURVES),
        ("INPUT",) + ("BUTTON",) * 4,
        ("input", "Home"),
        drawn=".says, td, thead th, svg *",
    ),
    "data_flow": Example(
        data_flow, ("BUTTON",) * 4, ("button:nth-child(2)", "Enter"), (), LANES
    ),
    "long_flow": Example(
        lambda: data_flow(*LONG),
        ("BUTTON",) * 4,
        ("button:nth-child(2)", "Enter"),
        drawn=LANES,
    ),
    "trained_flow": Example(
        lambda: data_flow(trained=by_heart()),
        ("BUTTON",) * 4 + ("SELECT",),
        ("button:nth-child(2)", "Enter"),
        drawn=LANES,
    ),
    "noam_curve": Example(
        noam_curve,
        ("INPUT",) * 3,
        ("input", "Home"),
        ("End", "Tab", "End", "Tab", "End"),
    ),
    "warmup_curves": Example(
        lambda: warmup_curves(some_losses(), d_model=D_MODEL, device="CPU"),
        ("INPUT",),
        ("input", "Home"),
        ("End",),
    ),
    "run_doctor": Example(
        lambda: run_doctor(RUNS),
        # The group of radio buttons is one stop.
        ("BUTTON",) * 4 + ("INPUT", "BUTTON", "SUMMARY"),
        ("button:nth-child(3)", "Enter"),
        ("Tab", "Enter"),
    ),
    "beam_tree": Example(
        lambda: beam_tree(step_fn, TOKENS, **BEAM),
        ("BUTTON",) * 6,
        ("button", "Enter"),
        ("Tab", "Tab", "Enter"),
    ),
    "sampling_bars": Example(
        lambda: sampling_bars(LOGITS, CHOICES),
        ("INPUT",) * 3,
        ("input", "Home"),
        ("End",),
        ".says, td, th, td.track b, td.track i",
    ),
    "objectives": Example(
        objectives,
        # The tabs are one stop, and so is a lane.
        ("BUTTON", "BUTTON", "DIV"),
        ("[role=tab]", "ArrowRight"),
        drawn=".says, .panel *",
    ),
    "todays_block": Example(
        todays_block,
        ("INPUT", "SUMMARY"),
        ("input", "ArrowRight"),
        ("ArrowRight", "ArrowRight"),
        ".says, td, caption, svg *",
    ),
    "clinic": Example(
        lambda: clinic(CASES),
        ("INPUT", "INPUT", "BUTTON"),
        (".cases input", "ArrowRight"),
        drawn=".symptom",
    ),
}
"""Name -> a figure whose script moves it."""

STILL = {
    "four_questions": lambda: four_questions(
        ["I", "understandably", "love", "小猫", "cats"], [1, 2, 4]
    ),
    "attention_pull": lambda: attention_pull(
        SOURCE,
        WEIGHTS[0],
        STATES.abs(),
        ask=3,
        glosses=["I", "love", "little", "cat", "end"],
        axes=("animal", "small"),
    ),
    "clock_rows": clock_rows,
    "position_doors": position_doors,
    "swapped_words": lambda: swapped_words(
        ["猫", "追", "狗"],
        [2, 1, 0],
        [
            ("A bag", NEEDLES, NEEDLES.flip(0)),
            ("With places", NEEDLES, NEEDLES),
        ],
        glosses=["cat", "chases", "dog"],
    ),
    "word_walks": lambda: word_walks(
        [[2, 0], [0, 2], [1, 1]],
        ["我", "爱", "猫"],
        [[0, 1, 2], [2, 1, 0]],
        glosses=["I love the cat", "the cat loves me"],
    ),
    "head_ties": lambda: head_ties(
        [
            ("One head", SOURCE[:3], WEIGHTS[:1, :3], STATES[:1].abs()),
            ("Three heads", SOURCE[2:], WEIGHTS[:, :3], STATES[:3].abs()),
        ],
        ask=1,
        glosses=dict.fromkeys(SOURCE, "a word"),
        axes=("cat", "fish"),
    ),
    "head_cut": lambda: head_cut(SOURCE[:3], d_model=6, num_heads=3),
    "matrices": lambda: matrices(
        [(WEIGHTS, "weights"), (STATES[:3] @ STATES.T, "scores")],
        rows=TARGET,
        columns=SOURCE,
        between=["×"],
        mark=[(1, 2)],
    ),
    "mask_grids": lambda: mask_grids(
        [
            (torch.ones(3, 5).tril(1), "one too far", torch.ones(3, 5).tril()),
            (torch.ones(3, 5).tril(-1), "behind", torch.ones(3, 5).tril()),
        ],
        rows=TARGET[:3],
        columns=SOURCE,
        pads=[False, False, True, False, True],
    ),
    "verdicts": lambda: verdicts(
        {"float16": {"fill −1e9": ["right", "averages"], "add": ["NaN"] * 2}},
        ["ordinary", "empty"],
        good=["right"],
        bad=["NaN"],
    ),
    "paths": lambda: paths(7),
    "plot": a_plot,
    "source": lambda: source(softmax),
    "teacher_forcing": lambda: teacher_forcing(EN, FORCED, WRITTEN),
}
LONG_TEXT = "understandably 我 爱 小 猫 。 she is extraordinarily fond of cats"
LIVE = {
    "try_heads": live.try_heads,
    "try_positions": live.try_positions,
    "try_masks": live.try_masks,
    "try_norms": live.try_norms,
    "try_sizes": live.try_sizes,
    "try_schedule": live.try_schedule,
    "try_rounding": live.try_rounding,
    "try_tokens": lambda: live.try_tokens([("a", "t"), ("c", "at")]),
    "try_masking": lambda: live.try_masking(LONG_TEXT),
}
"""Name -> a figure that a kernel answers."""


@cache
def html_of(name):
    if name in LIVE:
        return LIVE[name]().page.value
    return figure_of(name).html


@cache
def figure_of(name):
    return MOVING[name].make() if name in MOVING else STILL[name]()


class Tags(HTMLParser):
    """Collects start tags, and complains of an end without its start."""

    void = frozenset({"input", "br", "meta", "link", "img", "col"})

    def __init__(self, html):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in {"tbody"} and tag != "tbody":
            self.open.pop()  # HTML lets a tbody end by itself.
        assert self.open, f"</{tag}> ends nothing"
        assert self.open.pop() == tag


def points(path):
    return [tuple(map(float, at.split())) for at in path[1:].split("L")]


def shown(figure):
    """The page without its style and its script."""
    return figure.html.split("</style>")[1].split("<script")[0]


def data_of(figure):
    """What the script gets."""
    return json.loads(
        re.search(r"const data = (.*);\n", figure.html)[1].replace("<\\/", "</")
    )


def parts_at(figure, *state):
    """What the parts of a played figure hold in a state of its controls."""
    return {
        name: [_text_at(state, **element) for element in elements]
        for name, elements in data_of(figure)["parts"].items()
    }


def _text_at(state, of, at=None):
    at = [*range(len(of))] if at is None else at
    for i in state:
        at = at[i] if isinstance(at, list) else at
    return of[at]


def read_aloud(live_figure):
    """What a live figure's answer says, without its style and tags."""
    page = live_figure.page.value
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", page)
    return " ".join(unescape(text).split())
