"""What a training run is made of, checked before anything is read.

Plain argparse reads the flags, not tyro or jsonargparse: what does not fit
stays one line, and ``none`` may be written in small letters.
"""

import dataclasses
import inspect
import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, get_args

from companion.checks import check_sizes, check_switches
from companion.training.loss import check_smoothing
from companion.training.schedule import linear, noam
from companion.transformer import StackConfig

__all__ = [
    "DIRECTIONS",
    "PRESETS",
    "SCHEDULES",
    "SCRIPTS",
    "TrainConfig",
    "help_of",
]

# What there is to learn, and from which side to which; the first is meant
# where a configuration names none.
DIRECTIONS = {
    "phrasebook": ("zh-en", "en-zh"),
    "copy": (None,),
    "reverse": (None,),
    "tatoeba": ("zh-en", "en-zh"),
    "multi30k": ("en-de", "de-en"),
    "shakespeare": (None,),
}
SCRIPTS = (None, "simplified", "traditional")
SCHEDULES = ("noam", "linear")


# Runs that have a name: what differs from the defaults.
PRESETS = {
    # The phrasebook in seconds on one core.
    "tiny": {},
    # A real corpus on a small machine.
    "small": {
        "data": "tatoeba",
        "vocab_size": 8000,
        "d_model": 128,
        "d_ff": 512,
        "num_layers": 2,
        "dropout": 0.1,
        "steps": 10_000,
        "schedule": "noam",
        "peak": 2e-3,
        "warmup": 1000,
        "smoothing": 0.1,
        "save_every": 500,
        "validate_every": 500,
    },
    # Section 5 of the paper, with the data that there is.
    "base": {
        "data": "multi30k",
        "vocab_size": 10_000,
        "shared_vocab": True,
        "d_model": 512,
        "num_heads": 8,
        "d_ff": 2048,
        "num_layers": 6,
        "dropout": 0.1,
        "steps": 100_000,
        "batch_tokens": 25_000,
        "schedule": "noam",
        "peak": None,
        "warmup": 4000,
        "smoothing": 0.1,
        "save_every": 1000,
        "validate_every": 1000,
    },
}


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Describe a training run; the defaults learn the phrasebook in seconds.

    ``python -m companion train --help`` shows these lines.

    Args:
        data: What to learn.
        direction: From which language to which; none: the first of the data.
        script: Tatoeba's Chinese in this script only; none: in both.
        vocab_size: Sub-words a vocabulary, of Tatoeba and Multi30k.
        shared_vocab: One vocabulary for both languages.
        max_len: Longest sentence, in tokens with bos and eos, which is not
            left out; for shakespeare the window.
        d_model: Width of the model.
        num_heads: Attention heads a layer.
        d_ff: Width inside the feed-forward part.
        num_layers: Layers of the encoder, and of the decoder.
        dropout: Share of numbers set to zero in training, 0 to 1.
        norm_first: Normalise before each part of a layer, not after it.
        steps: Updates of the parameters.
        batch_tokens: Tokens in a batch, padding included.
        accumulate: Batches in a step.
        schedule: noam: up, then down as 1/sqrt(step); linear: up, then down
            to 0.
        peak: Largest learning rate; none (noam only): the paper's.
        warmup: Steps until the peak.
        smoothing: Label smoothing, 0 to 1.
        clip: Largest norm of the gradient; none: any.
        seed: Of all random numbers.
        save_every: Steps between checkpoints.
        validate_every: Steps between losses on the validation part.
        keep: How many of the last checkpoints stay.
        bf16: Multiply matrices in bfloat16, keep the parameters in float32;
            a device without it takes float16 and scales the loss, or float32.
        compile: torch.compile, where a compiler is at hand (C++ for a CPU,
            Triton for a GPU); on a CPU the first steps take minutes.

    Raises:
        TypeError: A value is of another type than its field.
        ValueError: A value is outside its range; the message names the field.

    Example:
        >>> config = TrainConfig(steps=100, warmup=10, peak=1e-3)
        >>> config.rate()(10)
        0.001
    """

    data: str = "phrasebook"
    direction: str | None = None
    script: str | None = None
    vocab_size: int = 8000
    shared_vocab: bool = False
    max_len: int = 128
    d_model: int = 64
    num_heads: int = 4
    d_ff: int = 128
    num_layers: int = 1
    dropout: float = 0.0
    norm_first: bool = False
    steps: int = 400
    batch_tokens: int = 1024
    accumulate: int = 1
    schedule: str = "linear"
    peak: float | None = 5e-3
    warmup: int = 50
    smoothing: float = 0.0
    clip: float | None = 1.0
    seed: int = 0
    save_every: int = 100
    validate_every: int = 100
    keep: int = 10
    bf16: bool = False
    compile: bool = False

    def __post_init__(self):
        for field in dataclasses.fields(self):
            _check_type(field.name, field.type, getattr(self, field.name))
        _check_choice("data", self.data, DIRECTIONS)
        _check_choice("schedule", self.schedule, SCHEDULES)
        if self.direction is not None:
            _check_choice("direction", self.direction, DIRECTIONS[self.data])
        check_sizes(
            **{
                field.name: getattr(self, field.name)
                for field in dataclasses.fields(self)
                if field.type is int and field.name not in ("seed", "warmup")
            }
        )
        self.stack()
        check_smoothing(self.smoothing)
        _check_positive(peak=self.peak, clip=self.clip)
        self._check_fit()
        self._check_schedule()

    def _check_fit(self) -> None:
        if not 0 <= self.seed < 2**32:
            raise ValueError(
                f"seed: expected 0 to {2**32 - 1}, got {self.seed}"
            )
        if self.batch_tokens < self.max_len:
            raise ValueError(
                f"batch_tokens: expected at least max_len = {self.max_len}, "
                f"so that a sentence fits in, got {self.batch_tokens}"
            )
        _check_choice("script", self.script, SCRIPTS)
        if self.script and self.data != "tatoeba":
            raise ValueError(
                f"script: expected None for the data {self.data!r}, got "
                f"{self.script!r}"
            )
        if self.shared_vocab and self.data in ("phrasebook", "shakespeare"):
            raise ValueError(
                f"shared_vocab: expected False for the data {self.data!r}, "
                "whose sides have no token in common, got True"
            )

    def _check_schedule(self) -> None:
        least = 1 if self.schedule == "noam" else 0
        most = math.inf if self.schedule == "noam" else self.steps
        if not least <= self.warmup <= most:
            raise ValueError(
                f"warmup: expected {least} to {most} steps for the schedule "
                f"{self.schedule!r}, got {self.warmup}"
            )
        if self.schedule == "linear" and self.peak is None:
            raise ValueError(
                "peak: expected a learning rate for the schedule 'linear', "
                "got None"
            )

    def stack(self) -> StackConfig:
        """Take the sizes of the model, without those of its vocabularies."""
        shared = dataclasses.fields(StackConfig)
        return StackConfig(**{f.name: getattr(self, f.name) for f in shared})

    def sides(self) -> tuple[str, str] | None:
        """Name the languages it reads and writes; None where there are none."""
        direction = self.direction or DIRECTIONS[self.data][0]
        if direction is None:
            return None
        src, tgt = direction.split("-")
        return src, tgt

    def rate(self) -> Callable[[int], float]:
        """Make the function from step 1, 2, … to the learning rate."""
        if self.schedule == "linear" and self.peak is not None:
            return partial(
                linear, steps=self.steps, peak=self.peak, warmup=self.warmup
            )
        top = noam(self.warmup, self.d_model, self.warmup)
        scale = 1.0 if self.peak is None else self.peak / top
        return lambda step: scale * noam(step, self.d_model, self.warmup)

    @classmethod
    def preset(cls, name: str, **changes) -> "TrainConfig":
        """Make the configuration of that name, with some ``changes``.

        A linear schedule keeps its shape in fewer steps: its warm-up becomes
        shorter in proportion, unless it is changed, too.

        Raises:
            TypeError: A value is of another type than its field.
            ValueError: There is no such preset or field, or a value does not
                fit.

        Example:
            >>> TrainConfig.preset("base", seed=5).d_model
            512
        """
        _check_choice("preset", name, PRESETS)
        return cls.of(_changed(PRESETS[name], changes))

    @classmethod
    def from_toml(cls, path: Path | str, **changes) -> "TrainConfig":
        """Read the configuration in a TOML file of one table, with ``changes``.

        Fewer steps shorten the warm-up, as in ``preset``.

        Raises:
            OSError: The file cannot be read.
            TypeError: A value is of another type than its field.
            ValueError: It is no TOML, or names no field, or a value does not
                fit; the message names the file.
        """
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            return cls.of(_changed(table, changes))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{path}: {error}") from None

    @classmethod
    def of(cls, values: dict) -> "TrainConfig":
        """Make the configuration with these values, and defaults elsewhere.

        Raises:
            TypeError: ``values`` is no dict, or a value of another type.
            ValueError: A value does not fit, or has no field.
        """
        if not isinstance(values, dict):
            raise TypeError(f"expected a table of fields, got {values!r}")
        known = [field.name for field in dataclasses.fields(cls)]
        for name in values:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = (
                    f"the nearest known one is {near[0]!r}"
                    if near
                    else f"the known ones are {', '.join(known)}"
                )
                raise ValueError(f"unknown key {name!r}; {hint}")
        return cls(**values)


def help_of(field: dataclasses.Field) -> str:
    """Write a line on a field: meaning, choices, value in the preset tiny."""
    text = inspect.getdoc(TrainConfig) or ""
    # A meaning may go on for some lines, which are indented further.
    (meaning,) = re.findall(
        rf"^    {field.name}: (.+(?:\n {{8}}.+)*)\.$", text, re.M
    )
    meaning = " ".join(meaning.split())
    directions = [d for some in DIRECTIONS.values() for d in some if d]
    choices = {
        "data": DIRECTIONS,
        "direction": dict.fromkeys(directions),
        "script": SCRIPTS[1:],
        "schedule": SCHEDULES,
    }.get(field.name, ())
    listed = f" ({', '.join(choices)})" if choices else ""
    return f"{meaning}{listed}; tiny: {str(field.default).lower()}"


def _changed(values: dict, changes: dict) -> dict:
    """Change some values; fewer steps have a shorter warm-up in proportion."""
    after = {**values, **changes}
    if "warmup" in changes or after.get("schedule", "linear") != "linear":
        return after
    planned = values.get("steps", TrainConfig.steps)
    warmup = values.get("warmup", TrainConfig.warmup)
    steps = after.get("steps", planned)
    # What is no number is refused later, with its name.
    if {type(n) for n in (planned, warmup, steps)} == {int} and planned > steps:
        after["warmup"] = warmup * steps // planned
    return after


def _check_type(name: str, kind: Any, value: Any) -> None:
    """Refuse True for 1, 1.5 for 1, and the like; 1 for 1.0 is welcome."""
    if kind is bool:
        check_switches(**{name: value})
        return
    kinds = get_args(kind) or (kind,)
    welcome = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, welcome) or isinstance(value, bool):
        wanted = " or ".join(each.__name__ for each in kinds)
        raise TypeError(
            f"{name}: expected {wanted.replace('NoneType', 'None')}, "
            f"got {value!r}"
        )


def _check_choice(name: str, value: str | None, choices) -> None:
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}: expected one of {words}, got {value!r}")


def _check_positive(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not 0 < number < math.inf:
            raise ValueError(
                f"{name}: expected a positive number, got {number}"
            )
