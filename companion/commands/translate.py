"""``python -m companion translate``: a trained model says it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from companion import decoding
from companion.commands.alignment import KINDS, as_text, save
from companion.commands.train import RUNS
from companion.data.codecs import Codec
from companion.training import Trained, load_trained
from companion.training.checkpoint import every
from companion.training.run_folder import CHECKPOINTS, SOURCE

TRAIN = "python -m companion train"


def add_options(parser: ArgumentParser) -> None:
    """What to say, who says it, and how hard it searches."""
    add = parser.add_argument
    add("text", nargs="?", help="a sentence, in quotes")
    which = f"the run to take (default: in {RUNS} the newest that translates)"
    add("--folder", type=Path, help=which)
    add("--beam", type=int, default=4, help="1 is greedy; default 4")
    helped = "how much a long answer is helped (default 0.6)"
    add("--alpha", type=float, default=0.6, help=helped)
    add("--max-len", type=int, help="the longest answer, in tokens")
    shown = "print where each word looked, or save it as .svg or .html"
    add("--attention", nargs="?", const="", metavar="FILE", help=shown)


def run(options: Namespace) -> int:
    """Prints a translation, and where the model looked if that is wanted.

    Raises:
        FileNotFoundError: there is no trained model.
        ValueError: it cannot read the text.
    """
    text, picture = _text_and_picture(options)
    trained = load_trained(options.folder or newest(RUNS))
    src = read(trained, text)
    longest = options.max_len
    [said] = decoding.translate(
        trained.model,
        src,
        max_len=trained.config.max_len if longest is None else longest,
        beam=options.beam,
        alpha=options.alpha,
    )
    print(trained.tgt_codec.decode(said))
    if picture is not None:
        _show(trained, src, said, picture)
    return 0


def newest(runs: Path) -> Path:
    """The run with the newest checkpoint, of those that translate.

    Raises:
        FileNotFoundError: there is none.
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
            f"one, type: {TRAIN}"
        )
    return max(times, key=times.get)


def read(trained: Trained, text: str) -> Tensor:
    """The ids of a text, (1, src), as the model was trained to read them.

    Raises:
        ValueError: the model does not translate, or the text is empty, too
            long, or has a token that the model never saw.
    """
    codec, longest = trained.src_codec, trained.config.max_len
    if codec is None:
        raise ValueError(
            f"folder: expected a model that translates, got one that "
            f"continues {trained.config.data}"
        )
    ids = [codec.bos, *codec.encode(text), codec.eos]
    if len(ids) == 2:
        raise ValueError("text: expected at least one token, got none")
    if len(ids) > longest:
        raise ValueError(
            f"text: expected at most {longest - 2} tokens (max_len = "
            f"{longest}, with bos and eos), got {len(ids) - 2}"
        )
    return torch.tensor([ids])


def looked(
    trained: Trained, src: Tensor, said: list[int]
) -> Float[Tensor, "tgt src"]:
    """How much each token of the answer took from each of the source.

    The mean over the heads of the last layer. Row i is what the decoder
    looked at as it chose token i.
    """
    read = torch.tensor([[trained.tgt_codec.bos, *said[:-1]]])
    model = trained.model.eval()
    with torch.no_grad():
        maps = model.maps(src, read)
    return maps.cross[-1][0].mean(0)


def _show(trained: Trained, src: Tensor, said: list[int], file: str) -> None:
    source = _labels(trained.src_codec, src[0].tolist())
    target = _labels(trained.tgt_codec, said)
    rows = looked(trained, src, said).tolist()
    if file:
        save(Path(file), source, target, rows)
        print(f"Where it looked: {file}")
    else:
        print(as_text(source, target, rows))


def _labels(codec: Codec, ids: list[int]) -> list[str]:
    """A word for each id; a sub-word that is a space alone shows as one."""
    marks = {codec.bos: "<bos>", codec.eos: "<eos>"}
    return [marks.get(i) or codec.decode([i]).strip() or "_" for i in ids]


def _text_and_picture(options: Namespace) -> tuple[str, str | None]:
    """The text; argparse takes it for a file if it follows --attention."""
    text, picture = options.text, options.attention
    if text is None and picture and not picture.endswith(KINDS):
        text, picture = picture, ""
    if text is None:
        raise ValueError("text: expected a sentence, got none")
    return text, picture
