"""Small trained models that the package brings along, each with its card.

``load("zh-en")`` translates Chinese to English, ``load("shakespeare")`` writes
on in the manner of the plays. Each lies in a folder of its own:

config.json          what it was trained by
source.codec         text to ids; a language model has none
target.codec         ids to text
weights.safetensors  each matrix in 8 bits
card.md              data, licence, recipe, what it reaches, what it cannot do
sample.*             text it was not trained on, to measure it by

``python -m benchmarks.models NAME`` makes one again.
"""

import dataclasses
from difflib import get_close_matches
from pathlib import Path

from companion.data.codecs import Codec
from companion.models.stored import read
from companion.training import TrainConfig, Trained
from companion.training.run_folder import Builder, build
from companion.variants import GPT, GPTConfig

__all__ = ["NAMES", "card", "folder_of", "gpt", "load"]

HERE = Path(__file__).parent


def gpt(config: TrainConfig, src: Codec | None, tgt: Codec) -> GPT:
    """Build a GPT for windows of a text, of which it reads all but the last.

    Args:
        config: The sizes.
        src: Not looked at; a GPT has no source.
        tgt: What reads and writes its text.

    Returns:
        A GPT that has learnt nothing.
    """
    sizes = dataclasses.asdict(config.stack())
    longest = config.max_len - 1
    return GPT(GPTConfig(vocab_size=len(tgt), max_len=longest, **sizes))


_BUILDERS: dict[str, Builder] = {"zh-en": build, "shakespeare": gpt}
NAMES = tuple(_BUILDERS)
"""The models that there are."""


def load(name: str) -> Trained:
    """Load a model that lies in the package: no network is asked.

    The caller's random numbers stay where they are.

    Args:
        name: One of ``NAMES``.

    Returns:
        The model in evaluation mode on the CPU, in 32 bits, its codecs and its
        configuration, as ``load_trained`` returns those of a run.

    Raises:
        ValueError: There is no model of that name, or a file is damaged.
        ModuleNotFoundError: A package of the extra ``train`` is missing.

    Example:
        >>> trained = load("shakespeare")
        >>> sum(weight.numel() for weight in trained.model.parameters())
        810240
    """
    return read(folder_of(name), _BUILDERS[name])


def card(name: str) -> str:
    """Read what is to be known about a model, as Markdown.

    Args:
        name: One of ``NAMES``.

    Returns:
        Its card.

    Raises:
        ValueError: There is no model of that name.

    Example:
        >>> print(card("zh-en").splitlines()[0])
        # zh-en: Chinese to English
    """
    return (folder_of(name) / "card.md").read_text(encoding="utf-8")


def folder_of(name: str) -> Path:
    """Find the folder of a model.

    Args:
        name: One of ``NAMES``.

    Returns:
        Where its files lie.

    Raises:
        ValueError: There is no model of that name; the message names the
            nearest.

    Example:
        >>> folder_of("zh-en").name
        'zh-en'
    """
    if name not in _BUILDERS:
        near = get_close_matches(str(name), NAMES, n=1)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise ValueError(
            f"model: expected one of {', '.join(map(repr, NAMES))}, got "
            f"{name!r}{hint}"
        )
    return HERE / name
