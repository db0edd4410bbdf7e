"""Live figures of chapters 10 and 11: a schedule, and a trained model."""

import ipywidgets as widgets
import matplotlib.pyplot as plt
import torch

from companion.data.phrasebook import batch
from companion.data.vocabulary import Vocabulary
from companion.decoding import beam_search, length_penalty, next_token
from companion.figures.kit.digits import fixed, short
from companion.figures.kit.picture import plot, style
from companion.figures.kit.tables import table, tinted
from companion.figures.live.widget import Live, answered, note
from companion.training import noam
from companion.transformer import Transformer

BEAMS = [1, 2, 3, 4, 5]
ALPHA = 0.6
POINTS = 200


def try_schedule() -> Live:
    """Fields for the paper's schedule: width, warm-up, factor and a step."""
    numbers = {"d_model": 512, "warmup": 4000, "step": 1000}
    return Live(
        _schedule,
        "run its cell to type a width, a warm-up and a factor, and see the "
        "learning rate at any step.",
        **{
            name: widgets.IntText(
                value=value, description=name, continuous_update=False
            )
            for name, value in numbers.items()
        },
        factor=widgets.FloatText(
            value=1.0, description="factor", continuous_update=False
        ),
    )


def _schedule(d_model: int, warmup: int, step: int, factor: float) -> str:
    if not 0 < factor <= 1000:
        raise ValueError(
            f"factor: expected a number above 0 and up to 1000, got {factor}"
        )
    here = factor * noam(step, d_model, warmup)
    peak = factor * noam(warmup, d_model, warmup)
    last = max(4 * warmup, step)
    steps = sorted({max(1, last * i // POINTS) for i in range(POINTS + 1)})
    with style():
        figure, ax = plt.subplots()
        rates = (factor * noam(s, d_model, warmup) for s in steps)
        ax.plot(steps, [100 * rate / peak for rate in rates])
        ax.plot([step], [100 * here / peak], marker="o", linestyle="none")
        ax.set(xlabel="step", ylabel="rate, in % of the peak")
        ax.locator_params(axis="x", nbins=4)
    return plot(
        figure,
        caption=f"At step {step:,} the rate is {short(here)}, which is "
        f"{short(100 * here / peak)} % of the peak of {short(peak)} at step "
        f"{warmup:,}.",
        alt=f"The learning rate over {last:,} steps, with a dot at {step:,}.",
    ).html


def try_translation(
    model: Transformer,
    zh: Vocabulary,
    en: Vocabulary,
    start: str = "我爱小猫",
) -> Live:
    """A field for a Chinese sentence and a beam; the trained model translates.

    Args:
        model: A trained ``Transformer``, from characters to words.
        zh: The source's tokens, one character each.
        en: The target's tokens.
        start: The sentence that stands in the field at first.
    """

    def answer(sentence: str, beam: int) -> str:
        characters = list("".join(sentence.split()))
        if not characters:
            return note("Type a Chinese sentence.", role="note")
        return _translation(model, zh, en, characters, beam)

    return Live(
        answer,
        "run its cell to type a Chinese sentence, choose a beam and see what "
        "the trained model says, and where it looked.",
        sentence=widgets.Text(
            value=start, description="中文", continuous_update=False
        ),
        beam=widgets.Dropdown(options=BEAMS, value=1, description="beam"),
    )


@torch.no_grad()
def _translation(
    model: Transformer,
    zh: Vocabulary,
    en: Vocabulary,
    characters: list[str],
    beam: int,
) -> str:
    src = batch([characters], zh).to(next(model.parameters()).device)
    step = next_token(model, src)
    most = 3 * len(characters) + 5
    said = beam_search(step, en.bos, en.eos, beam, most, ALPHA)
    grid = table(
        "grid",
        "Where each word looked",
        [zh.tokens[i] for i in src[0].tolist()],
        [en.tokens[i] for i in said],
        [tinted(row) for row in _looks(model, src, [en.bos, *said[:-1]])],
    )
    sentence, total = " ".join(en.decode(said)), _total(step, en.bos, said)
    words = _words(sentence, total, len(said))
    return answered(words, grid, label="Translation")


def _words(sentence: str, total: float, length: int) -> str:
    score = total / length_penalty(length, ALPHA)
    return (
        f"“{sentence}”. The log-probabilities of its {length} tokens add up to "
        f"{fixed(total, 3)}; divided by the length penalty with α = {ALPHA} "
        f"that is a score of {fixed(score, 3)}. The table is the "
        "cross-attention of the last layer, the mean of its heads: each row is "
        "the place that says the word beside it."
    )


def _total(step, bos: int, said: list[int]) -> float:
    """The sum of the log-probabilities of what was said."""
    rows = ([bos, *said[:n]] for n in range(len(said)))
    logs = (step(torch.tensor([row]))[0].log_softmax(-1) for row in rows)
    return sum(log[i].item() for log, i in zip(logs, said, strict=True))


def _looks(model, src, reads: list[int]) -> list[list[float]]:
    training = model.training
    model.eval()
    maps = model.maps(src, torch.tensor([reads], device=src.device))
    model.train(training)
    return maps.cross[-1][0].mean(0).tolist()
