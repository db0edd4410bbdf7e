"""One sentence, as BERT, GPT, T5 and BART learn from it, with their masks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.tables import word

MOST = 5
TITLES = {
    "BERT": "fill the holes",
    "GPT": "go on",
    "T5": "write what is missing",
    "BART": "write it all",
}
CAPTION = """A row is a position: at its left what it reads, in its squares whom
it may look at, at its right what it must say. Every word there has a loss; a
dot has none. Below the line is the decoder. The tokens that end a text are left
out."""


class Lesson(NamedTuple):
    """What one model is given, and what it is asked.

    Attributes:
        encoder: What the positions read that see each other.
        decoder: What the positions read that see what stands before them.
        says: For each position of both what it must say; None has no loss.
    """

    encoder: list[str]
    decoder: list[str]
    says: list[str | None]


def four_questions(text: Sequence[str], hidden: Collection[int]) -> Figure:
    """Draw what four models read of a sentence, whom they see, what they say.

    Args:
        text: The words, 2 to 5.
        hidden: The places of the words that are hidden from BERT, T5 and BART;
            what stands side by side is one gap to T5 and BART.

    Raises:
        ValueError: the words are too few or too many, or no such place exists.

    Example:
        >>> four_questions(["I", "love", "cats"], [1]).text.partition(" T5")[0]
        'Four questions. BERT reads I [M] cats, and says love. \
GPT reads <bos> I love, and says I love cats.'
    """
    if not 2 <= len(text) <= MOST:
        raise ValueError(f"text: expected 2 to {MOST} words, got {len(text)}")
    if not hidden or not all(0 <= place < len(text) for place in hidden):
        raise ValueError(
            f"hidden: expected places 0 to {len(text) - 1}, "
            f"got {sorted(hidden)}"
        )
    lessons = lessons_of(list(text), hidden)
    html = inline(
        "fourquestions",
        body='<div class="side">'
        + "".join(_table(model, each) for model, each in lessons.items())
        + "</div>",
        label="One sentence, four questions",
        caption=CAPTION,
        style=figure_parts(__file__, sheets=["diagram"])["style"],
    )
    told = ". ".join(_told(model, each) for model, each in lessons.items())
    return Figure(html, f"Four questions. {told}.")


def lessons_of(
    text: Sequence[str], hidden: Collection[int]
) -> dict[str, Lesson]:
    """Make of a sentence what each model reads and must say.

    Example:
        >>> lessons_of(["I", "love", "cats"], {1})["T5"]
        Lesson(encoder=['I', '<1>', 'cats'], decoder=['<bos>', '<1>', 'love'], \
says=[None, None, None, '<1>', 'love', '<2>'])
    """
    text, gaps, marked, short, cut = list(text), 0, [], [], []
    for place, each in enumerate(text):
        gone = place in hidden
        marked.append("[M]" if gone else each)
        if gone and place - 1 not in hidden:
            gaps += 1
            short.append("[M]")
            cut.append(f"<{gaps}>")
        if gone:
            cut.append(each)
        else:
            short.append(each)
    ends = [*cut, f"<{gaps + 1}>"]
    sentinels = iter(range(1, gaps + 1))
    source = [f"<{next(sentinels)}>" if w == "[M]" else w for w in short]
    blank: list[str | None] = [None] * len(short)
    chosen = [w if i in hidden else None for i, w in enumerate(text)]
    return {
        "BERT": Lesson(marked, [], chosen),
        "GPT": Lesson([], ["<bos>", *text[:-1]], [*text]),
        "T5": Lesson(source, ["<bos>", *ends[:-1]], [*blank, *ends]),
        "BART": Lesson(short, ["<bos>", *text[:-1]], [*blank, *text]),
    }


def sees(lesson: Lesson) -> list[list[bool]]:
    """Tell for each position whom it may look at: a row asks."""
    source = len(lesson.encoder)
    positions = range(len(lesson.says))
    return [
        [j < source or (i >= source and j <= i) for j in positions]
        for i in positions
    ]


def _table(model: str, lesson: Lesson) -> str:
    reads = [*lesson.encoder, *lesson.decoder]
    source = len(lesson.encoder)
    first = source if source and lesson.decoder else None

    def edge(i: int) -> str:
        return " first" if i == first else ""

    heads = "".join(
        f'<th scope=col class="{_kind(token)}{edge(j)}">{word(token)}</th>'
        for j, token in enumerate(reads)
    )
    body = ""
    for i, (token, row, said) in enumerate(
        zip(reads, sees(lesson), lesson.says, strict=True)
    ):
        squares = "".join(
            f'<td class="{"seen" if seen else "hidden"}{edge(j)}">'
            f"{'✓' if seen else '·'}</td>"
            for j, seen in enumerate(row)
        )
        loss = f'"loss">{word(said)}' if said else '"none">·'
        body += (
            f'<tr class="{edge(i).strip()}"><th scope=row '
            f'class="{_kind(token)}">{word(token)}</th>{squares}'
            f"<td class={loss}</td></tr>"
        )
    return (
        f'<div class="scroll"><table class="cells"><caption>{model}: '
        f"{TITLES[model]}</caption><thead><tr><td></td>{heads}"
        f'<th scope=col class="must">says</th></tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _kind(token: str) -> str:
    if token == "[M]":
        return "gap"
    return "special" if token.startswith("<") else "plain"


def _told(model: str, lesson: Lesson) -> str:
    reads = " ".join(lesson.encoder or lesson.decoder)
    said = " ".join(each for each in lesson.says if each)
    return f"{model} reads {reads}, and says {said}"
