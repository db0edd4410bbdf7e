"""``python -m companion translate``: ask a trained model."""

import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from companion import decoding, models
from companion.commands.alignment import KINDS, as_text, check_kind, save
from companion.commands.train import RUNS, example_of
from companion.data.codecs import Codec, Subwords
from companion.shell import typed
from companion.training import Trained, load_trained
from companion.training.checkpoint import every
from companion.training.run_folder import CHECKPOINTS, SOURCE

__all__ = ["add_options", "attended", "newest", "read", "run"]

WIDEST = 100
"""Memory grows with the beam, and translations are no better long before."""


def add_options(parser: ArgumentParser) -> None:
    """Add what to translate, with which model, and how hard to search."""
    add = parser.add_argument
    helped = "a sentence, in quotes; without one, each line of the input"
    add("text", nargs="?", help=helped)
    which = f"the run to take (default: in {RUNS} the newest that translates)"
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--folder", type=Path, help=which)
    which = "a model that the package brings along, for example zh-en"
    either.add_argument("--model", metavar="NAME", help=which)
    add("--beam", type=int, default=4, help="1 is greedy; default 4")
    helped = "how much a long answer is helped (default 0.6)"
    add("--alpha", type=float, default=0.6, help=helped)
    add("--max-len", type=int, help="the longest answer, in tokens")
    shown = "print where each word looked, or save it as .svg or .html"
    add("--attention", nargs="?", const="", metavar="FILE", help=shown)


def run(options: Namespace) -> int:
    """Print translations, and where the model attended if that is wanted.

    Raises:
        FileNotFoundError: There is no trained model.
        ValueError: It cannot read the text.
    """
    texts, picture = _texts_and_picture(options)
    if options.beam > WIDEST:
        raise ValueError(f"beam: expected at most {WIDEST}, got {options.beam}")
    trained = _trained(options)
    sources = [read(trained, text) for text in texts]
    model: Any = trained.model
    longest = options.max_len
    for src in sources:
        [ids] = decoding.translate(
            model,
            src,
            max_len=trained.config.max_len if longest is None else longest,
            beam=options.beam,
            alpha=options.alpha,
        )
        answer = trained.tgt_codec.decode(ids)
        print(answer, flush=True)
        if not answer.strip():
            _say_why_nothing_came(trained)
        if picture is not None:
            _show(trained, src, ids, picture)
    return 0


def _say_why_nothing_came(trained: Trained) -> None:
    """Tell an empty answer, which the model gave, from a failure."""
    print(
        "note: this model ended its answer before the first word; it was "
        f"trained for {trained.config.steps} steps",
        file=sys.stderr,
    )


def _trained(options: Namespace) -> Trained:
    if options.model is not None:
        return models.load(options.model)
    return load_trained(options.folder or newest(RUNS))


def newest(runs: Path) -> Path:
    """Find the run with the newest checkpoint, of those that translate.

    Raises:
        FileNotFoundError: There is none.
    """
    saved = {
        codec.parent: every(codec.parent / CHECKPOINTS)[-1:]
        for codec in runs.glob(f"*/{SOURCE}")
    }
    times = {
        run: last[0].stat().st_mtime for run, last in saved.items() if last
    }
    if not times:
        raise FileNotFoundError(
            f"no trained model in {runs.absolute()} that translates; to train "
            f"one, type: {typed('train')}; to take one that is there, add: "
            "--model zh-en"
        )
    return max(times, key=times.__getitem__)


def read(trained: Trained, text: str) -> Tensor:
    """Encode a text, (1, src), as the model was trained to read it.

    Raises:
        ValueError: The model does not translate, or the text is empty, too
            long, or has a token that the model never saw.
    """
    codec, longest = trained.src_codec, trained.config.max_len
    if codec is None:
        raise ValueError(
            "model: expected a model that translates, got one that "
            f"continues {trained.config.data}"
        )
    ids = [codec.bos, *_encoded(trained, codec, text), codec.eos]
    if len(ids) == 2:
        raise ValueError("text: expected at least one token, got none")
    if len(ids) > longest:
        raise ValueError(
            f"text: expected at most {longest - 2} tokens (max_len = "
            f"{longest}, with bos and eos), got {len(ids) - 2}"
        )
    return torch.tensor([ids])


def _encoded(trained: Trained, codec: Codec, text: str) -> list[int]:
    """Encode a text; if a token is new, say what the model has learnt."""
    try:
        return codec.encode(text)
    except ValueError as error:
        if isinstance(codec, Subwords):  # It spells what it has not seen.
            raise
        known = codec.joint.join(codec.vocabulary.tokens[3:])
        example = shlex.quote(example_of(trained.config))
        raise ValueError(
            f"text: {error}. This model has learnt {len(codec) - 3} "
            f"{codec.kind} and no others, for example {example}: {known}"
        ) from None


def attended(
    trained: Trained, src: Tensor, ids: list[int]
) -> Float[Tensor, "tgt src"]:
    """Compute how much each token of the answer attended to the source.

    The mean over the heads of the last layer. Row i is what the decoder
    attended to as it chose token i.

    Args:
        trained: A model that translates.
        src: What it read.
        ids: What it wrote.
    """
    tgt = torch.tensor([[trained.tgt_codec.bos, *ids[:-1]]])
    model: Any = trained.model.eval()
    with torch.no_grad():
        maps = model.maps(src, tgt)
    return maps.cross[-1][0].mean(0)


def _show(trained: Trained, src: Tensor, ids: list[int], file: str) -> None:
    assert trained.src_codec is not None  # ``read`` has refused that.
    source = _labels(trained.src_codec, src[0].tolist())
    target = _labels(trained.tgt_codec, ids)
    rows = attended(trained, src, ids).tolist()
    if file:
        save(Path(file), source, target, rows)
        print(f"Where it looked: {file}")
    else:
        print(as_text(source, target, rows))


def _labels(codec: Codec, ids: list[int]) -> list[str]:
    """Write a word for each id; a sub-word that is a space alone is a _."""
    marks = {codec.bos: "<bos>", codec.eos: "<eos>"}
    return [marks.get(i) or codec.decode([i]).strip() or "_" for i in ids]


def _texts_and_picture(options: Namespace) -> tuple[list[str], str | None]:
    """Find the text; argparse takes it for a file after --attention."""
    text, picture = options.text, options.attention
    if text is None and picture and not picture.endswith(KINDS):
        text, picture = picture, ""
    texts = _lines() if text is None else [text]
    if not texts:
        raise ValueError(
            "text: expected a sentence, or lines on the standard input, got "
            "none"
        )
    if picture:
        check_kind(Path(picture))
    if picture is not None and len(texts) > 1:
        raise ValueError(
            f"attention: expected one sentence to draw, got {len(texts)}"
        )
    return texts, picture


def _lines() -> list[str]:
    """Read what is piped in; nobody is asked to type at a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return []
    return [line for line in sys.stdin.read().splitlines() if line.strip()]
