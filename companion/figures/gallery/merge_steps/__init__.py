"""Byte-pair merges step by step: learned from a few words, then replayed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from companion.figures.kit.figure import Figure
from companion.figures.kit.play import Parts, choice, played, steps
from companion.tokens import learn_merges
from companion.tokens.plain import Merge, joined

MOST = 5
"""Pairs that are listed with their counts."""
CAPTION = """Learning: the words as they are cut by now, with the piece that is
new in orange, and the most frequent pairs, of which the first is joined next.
Encoding has no counts: it goes down the list of merges and joins what it finds
in the word. A merge that is struck out found nothing."""


def merge_steps(
    frequencies: Mapping[str, int], merges: int, encode: str
) -> Figure:
    """Step through the learning of merges, and through a word's encoding.

    Args:
        frequencies: Word -> how often it occurs; at most 6 words.
        merges: How many to learn, at most 8.
        encode: The word that they are applied to.

    Raises:
        ValueError: There are more words or merges, or nothing to encode.

    Example:
        >>> merge_steps({"cat": 6, "hat": 3}, 2, "hat").text
        'Merges. Nothing is joined yet: 27 symbols in 9 words. The most \
frequent pair is a·t, 9 times.'
    """
    if not 1 <= len(frequencies) <= 6 or not 1 <= merges <= 8 or not encode:
        raise ValueError(
            "frequencies, merges, encode: expected 1 to 6 words, 1 to 8 merges "
            f"and a word, got {len(frequencies)}, {merges} and {encode!r}"
        )
    found = learn_merges(frequencies, merges)

    def show(mode: int, step: int) -> Parts:
        if mode:
            return _encoding(encode, found, step)
        return _learning(frequencies, found, step)

    controls = [
        choice("Watch", ["learning", f"encoding {encode}"], 0),
        steps([len(found) + 1] * 2, ["Start", "Back", "Next"]),
    ]
    html = played(
        "merges",
        show,
        controls,
        _body,
        module=__file__,
        label="Merges, learned and replayed",
        caption=CAPTION,
    )
    says = _learning_says(*_state(frequencies, found, 0), 0, found)
    return Figure(html, f"Merges. {says}")


def _state(
    frequencies: Mapping[str, int], merges: Sequence[Merge], step: int
) -> tuple[dict[str, list[str]], Counter[Merge], int]:
    """The words after ``step`` merges, their pairs and number of tokens."""
    splits = {word: list(word) for word in frequencies}
    for pair in merges[:step]:
        splits = {word: joined(p, pair) for word, p in splits.items()}
    counts: Counter[Merge] = Counter()
    for word, pieces in splits.items():
        for pair in pairwise(pieces):
            counts[pair] += frequencies[word]
    tokens = sum(len(p) * frequencies[w] for w, p in splits.items())
    return splits, counts, tokens


def _learning(
    frequencies: Mapping[str, int], merges: Sequence[Merge], step: int
) -> Parts:
    splits, counts, tokens = _state(frequencies, merges, step)
    new = "".join(merges[step - 1]) if step else ""
    ranked = sorted(counts, key=lambda pair: (-counts[pair], pair))[:MOST]
    return {
        "left": _table(
            "the words, and how often",
            [
                (f"{frequencies[word]} ×", _pieces(pieces, new), "")
                for word, pieces in splits.items()
            ],
        ),
        "right": _table(
            "pairs, and how often",
            [
                (
                    _pair(pair),
                    str(counts[pair]),
                    "next" if i == 0 and step < len(merges) else "",
                )
                for i, pair in enumerate(ranked)
            ]
            or [("no pair is left", "", "")],
        ),
        "says": escape(_learning_says(splits, counts, tokens, step, merges)),
    }


def _learning_says(
    splits: Mapping[str, Sequence[str]],
    counts: Mapping[Merge, int],
    tokens: int,
    step: int,
    merges: Sequence[Merge],
) -> str:
    if not step:
        words = tokens and sum(counts.values())
        number = tokens - words
        begins = f"Nothing is joined yet: {tokens} symbols in {number} words."
    else:
        left, right = merges[step - 1]
        begins = f"Merge {step} joins {left}·{right}: {tokens} tokens are left."
    if step == len(merges):
        return f"{begins} Here the example ends."
    best = merges[step]
    return (
        f"{begins} The most frequent pair is {best[0]}·{best[1]}, "
        f"{counts[best]} times."
    )


def _encoding(word: str, merges: Sequence[Merge], step: int) -> Parts:
    pieces, used = list(word), []
    for pair in merges[:step]:
        after = joined(pieces, pair)
        used.append(after != pieces)
        pieces = after
    new = "".join(merges[step - 1]) if step and used[-1] else ""
    kinds = ["used" if u else "unused" for u in used]
    kinds += ["next", *[""] * len(merges)]
    if not step:
        says = (
            f"{word} in symbols. Nothing is counted: the merges are replayed."
        )
    elif used[-1]:
        left, right = merges[step - 1]
        says = f"Merge {step} joins {left}·{right}."
    else:
        left, right = merges[step - 1]
        says = f"Merge {step}, {left}·{right}, finds nothing to join."
    if step == len(merges):
        says += f" The tokens are {' · '.join(pieces)}."
    return {
        "left": _table("the word", [("1 ×", _pieces(pieces, new), "")]),
        "right": _table(
            "merges, in their order",
            [
                (f"{i}.", _pair(pair), kinds[i - 1])
                for i, pair in enumerate(merges, 1)
            ],
        ),
        "says": escape(says),
    }


def _pieces(pieces: Sequence[str], new: str) -> str:
    return "".join(
        f'<span class="piece{_kind(piece, new)}">{escape(piece)}</span>'
        for piece in pieces
    )


def _kind(piece: str, new: str) -> str:
    if piece == new:
        return " new"
    return " long" if len(piece) > 1 else ""


def _pair(pair: Merge) -> str:
    return "·".join(map(escape, pair))


def _table(title: str, rows: Sequence[tuple[str, str, str]]) -> str:
    body = "".join(
        f'<tr class="{kind}"><th scope=row>{head}</th><td>{cell}</td></tr>'
        for head, cell, kind in rows
    )
    return (
        f'<table class="cells"><caption>{title}</caption>'
        f"<tbody>{body}</tbody></table>"
    )


def _body(parts: Parts) -> str:
    return f"""<div class="controls"></div>
<div class="side"><div class="words" data-part="left">{parts["left"]}</div>
<div class="pairs" data-part="right">{parts["right"]}</div></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
