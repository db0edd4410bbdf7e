"""Contracts of cutting special tokens out of a text before it is encoded."""

import re

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.tokens.pieces import (
    mistake,
    require,
    strings,
    strung,
)

__all__ = ["SPLIT_SPECIAL"]

END, SEP = "<|end|>", "[SEP]"
PLAIN = (f"I love cats.{END}我爱猫。{END} end", [END])
SEVERAL = ((f"a{SEP}b {END}c{SEP}", [END, SEP]), (f"{SEP}{END}x", [SEP, END]))
SIGNS = (
    (f"the end|> of {END}, so", [END]),
    ("a.b.c", ["."]),
    ("SEP or [SEP]", [SEP]),
)
LONGER = (
    ("x<s>>y<s>z", ["<s>", "<s>>"]),
    ("x<s>>y<s>z", ["<s>>", "<s>"]),
)
EDGES = ((f"{END}cats{END}", [END]), (f"{END}{END}", [END]))
BLANKS = ((f"  two {END}\n {END} ", [END]),)
NONE = (("no such token", [END]), ("nothing special", []))
EVERY = (PLAIN, *SEVERAL, *SIGNS, *LONGER, *EDGES, *BLANKS, *NONE)

SPLIT_SPECIAL = Component(
    name="split_special",
    signature="split_special(text, special)",
    returns="a list of strings that joined are the text",
    shape_contract="It returns a list of parts",
    read=strings,
    cases=lambda: {"for one special token": PLAIN},
)


def cut(text: str, special: list[str]) -> list[str]:
    """Cut at the special tokens, the longer one first."""
    parts, begin, at = [], 0, 0
    by_size = sorted(special, key=len, reverse=True)
    while at < len(text):
        here = next((s for s in by_size if text.startswith(s, at)), "")
        if here:
            parts += [text[begin:at], here]
            begin = at + len(here)
        at += len(here) or 1
    return [part for part in (*parts, text[begin:]) if part]


def require_all(fn: Guarded, cases: tuple) -> None:
    """Raise Broken unless the parts are right, empty ones aside."""
    for args in cases:
        got = [part for part in fn(*args) if part]
        if got != cut(*args):
            hint = mistake(fn, SPLIT_SPECIAL, EVERY)
            require(fn, args, cut(*args), hint)


@SPLIT_SPECIAL.before_reference
def nothing_lost(fn: Guarded) -> None:
    """Joined, the parts are the text."""
    for args in EVERY:
        got = fn(*args)
        if "".join(got) != args[0]:
            hint = mistake(fn, SPLIT_SPECIAL, EVERY)
            says = (
                f"With {fn.describe(args)} it returned {strung(got)}: joined "
                f"that is {strung(''.join(got))}."
            )
            raise Broken(f"{hint} {says}" if hint else says, cause=hint)


@SPLIT_SPECIAL.before_reference
def whole(fn: Guarded) -> None:
    """A special token is one part, wherever it stands."""
    require_all(fn, (PLAIN, *SEVERAL))


@SPLIT_SPECIAL.contract
def signs(fn: Guarded) -> None:
    """Its characters mean themselves, and are no pattern."""
    require_all(fn, SIGNS)


@SPLIT_SPECIAL.contract
def longer(fn: Guarded) -> None:
    """Where one begins with another the longer one is meant."""
    require_all(fn, LONGER)


@SPLIT_SPECIAL.contract
def blanks(fn: Guarded) -> None:
    """Blanks around a special token stay."""
    require_all(fn, BLANKS)


@SPLIT_SPECIAL.contract
def none(fn: Guarded) -> None:
    """A text without special tokens is one part."""
    require_all(fn, NONE)


@SPLIT_SPECIAL.contract
def no_empty_part(fn: Guarded) -> None:
    """No part is empty."""
    for args in EDGES:
        require(fn, args, cut(*args), mistake(fn, SPLIT_SPECIAL, EVERY))


# Known mistakes


def by_pattern(text, special, escape=re.escape, longest_first=True):
    """The usual way, by a regular expression."""
    if not special:
        return [text]
    by_size = sorted(special, key=len, reverse=longest_first)
    pattern = "|".join(map(escape, by_size))
    found, begin = [], 0
    for match in re.finditer(pattern, text):
        found += [text[begin : match.start()], match[0]]
        begin = match.end()
    return [part for part in (*found, text[begin:]) if part]


@SPLIT_SPECIAL.mistake(
    hint="The special tokens are taken for a pattern, in which | means *or* "
    "and [ ] one of several: use `re.escape`.",
    symptom="the word end is cut out of every text",
)
def unescaped(text, special):
    """`re.split` with the tokens as they are written."""
    return by_pattern(text, special, escape=str)


@SPLIT_SPECIAL.mistake(
    hint="The special tokens are lost: `re.split` keeps them if the pattern "
    "stands in brackets.",
    symptom="documents run into each other, as nothing ends them",
)
def special_lost(text, special):
    """What stands between the special tokens."""
    return [p for p in by_pattern(text, special) if p not in special]


@SPLIT_SPECIAL.mistake(
    hint="The text comes back whole: special tokens have to be cut out before "
    "merges are applied, or they are split.",
    symptom="the end of a text is spelled in seven tokens, and never learned",
)
def special_split(text, special):
    """Nothing is cut out."""
    return [text]


@SPLIT_SPECIAL.mistake(
    hint="The shorter token wins where one begins with another: sort them by "
    "length.",
    symptom="one of the special tokens never occurs",
)
def shorter_first(text, special):
    """Tokens are tried from the shortest on."""
    return by_pattern(text, special, longest_first=False)


@SPLIT_SPECIAL.mistake(
    hint="Only the first special token of the text is cut out.",
    symptom="right for one document, wrong for several in a row",
)
def first_only(text, special):
    """`partition`, once."""
    at = [(text.find(s), -len(s), s) for s in special if s in text]
    if not at:
        return [text]
    parts = text.partition(min(at)[2])
    return [part for part in parts if part]


@SPLIT_SPECIAL.mistake(
    hint="Blanks around the parts are stripped: they belong to the text.",
    symptom="the text that comes back has lost its line breaks",
)
def blanks_stripped(text, special):
    """Tidy parts."""
    return [p.strip() for p in by_pattern(text, special) if p.strip()]


@SPLIT_SPECIAL.mistake(
    hint="There are empty parts, at the ends or between two special tokens: "
    "leave them out.",
)
def empty_parts(text, special):
    """What `re.split` returns, with nothing taken out of it."""
    if not special:
        return [text]
    by_size = sorted(special, key=len, reverse=True)
    return re.split(f"({'|'.join(map(re.escape, by_size))})", text)


@SPLIT_SPECIAL.mistake(
    hint="A text without special tokens is lost: it is one part.",
    symptom="texts without an end sign are empty",
)
def plain_text_lost(text, special):
    """Only what stands before or behind a special token is returned."""
    parts = by_pattern(text, special)
    return parts if {*parts} & {*special} else []
