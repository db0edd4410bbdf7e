"""Contracts of decoding: from ids to a text, by way of bytes.

What becomes of bytes that are no UTF-8 is up to the writer, as long as it is no
error and what is well-formed around them stays.
"""

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded
from companion.contracts.tokens.pieces import mistake, require

__all__ = ["BPE_DECODE"]

VOCABULARY = [
    b"cat", b" little", b"\xe7\x8c", b"\xab", b"I", b" love", b"s ",
    "爱".encode(), b" ", b"\n", b"\xff",
]  # fmt: skip
LITTLE = ([4, 5, 1, 8, 2, 3], VOCABULARY)
SPREAD = (([2, 3], VOCABULARY), ([7, 2, 3, 0], VOCABULARY))
BLANKS = (([8, 8, 0, 6, 9], VOCABULARY), ([0, 8, 9, 8, 4], VOCABULARY))
FIRST = (([0, 5, 0, 0], VOCABULARY), ([0], VOCABULARY))
REPEATED = (([4, 4, 5, 5, 4], VOCABULARY),)
BROKEN = (([0, 10, 5], VOCABULARY), ([0, 2, 5], VOCABULARY))
EMPTY = ([], VOCABULARY)
EVERY = (LITTLE, *SPREAD, *BLANKS, *FIRST, *REPEATED, EMPTY)


def read(fn: Guarded, result: object, args: tuple) -> str:
    """Require a text."""
    if isinstance(result, str):
        return result
    name = type(result).__name__
    what = "None" if result is None else f"a {name}"
    hints = {
        "bytes": "Read them as UTF-8, `.decode`.",
        "NoneType": STRAY["NoneType"],
        "list": "Join its parts.",
    }
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. "
        f"{hints.get(name, '')}".rstrip()
    )


BPE_DECODE = Component(
    name="bpe_decode",
    signature="bpe_decode(ids, vocabulary)",
    returns="a text, a string",
    shape_contract="It returns a text",
    read=read,
    cases=lambda: {"for six ids": LITTLE},
)


def text_of(ids: list[int], vocabulary: list[bytes]) -> str:
    """Join the bytes, then read them."""
    return b"".join([vocabulary[i] for i in ids]).decode(errors="replace")


def require_all(fn: Guarded, cases: tuple) -> None:
    """Raise Broken unless the text is that of all bytes together."""
    for args in cases:
        if fn(*args) != text_of(*args):
            hint = mistake(fn, BPE_DECODE, EVERY)
            require(fn, args, text_of(*args), hint)


@BPE_DECODE.before_reference
def spread(fn: Guarded) -> None:
    """A character may be spread over several tokens."""
    require_all(fn, SPREAD)


@BPE_DECODE.before_reference
def as_it_was(fn: Guarded) -> None:
    """Tokens follow each other with nothing between them."""
    require_all(fn, (LITTLE, EMPTY))


@BPE_DECODE.contract
def blanks(fn: Guarded) -> None:
    """Blanks stay as they were."""
    require_all(fn, BLANKS)


@BPE_DECODE.contract
def first_id(fn: Guarded) -> None:
    """Id 0 is a token like any other."""
    require_all(fn, FIRST)


@BPE_DECODE.contract
def repeated(fn: Guarded) -> None:
    """A token may come twice in a row."""
    require_all(fn, REPEATED)


@BPE_DECODE.contract
def no_error(fn: Guarded) -> None:
    """Bytes that are no UTF-8 are no error, and the rest stays."""
    for args in BROKEN:
        got = fn(*args)
        if not (got.startswith("cat") and got.endswith(" love")):
            raise Broken(
                f"With ids {args[0]} it returned {got!r}, where only one "
                "token is no UTF-8: expected 'cat' at its beginning and "
                "' love' at its end."
            )


# Known mistakes


def each(ids, vocabulary, errors="replace"):
    """The text of each token on its own."""
    return [vocabulary[i].decode(errors=errors) for i in ids]


@BPE_DECODE.mistake(
    hint="Each token is read on its own: join the bytes first, because a "
    "character may be spread over several tokens.",
    symptom="English is fine, and Chinese is full of question marks",
)
def token_by_token(ids, vocabulary):
    """Reads each token as UTF-8, then joins the texts."""
    return "".join(each(ids, vocabulary))


@BPE_DECODE.mistake(
    hint="Half characters vanish: each token is read on its own, and errors "
    "are ignored. Join the bytes first.",
    symptom="Chinese characters are missing, and no error is raised",
)
def half_characters_ignored(ids, vocabulary):
    """Reads each token as UTF-8 and drops what is none."""
    return "".join(each(ids, vocabulary, "ignore"))


@BPE_DECODE.mistake(
    hint="Spaces are put between the tokens: they have their own.",
    symptom="words fall apart, and every space is there twice",
)
def joined_by_spaces(ids, vocabulary):
    """Tokens are taken for words."""
    parts = [vocabulary[i] for i in ids]
    return b" ".join(parts).decode(errors="replace")


@BPE_DECODE.mistake(
    hint="The bytes are read as Latin-1: they are UTF-8.",
    symptom="English is fine, and 猫 becomes three strange letters",
)
def read_as_latin(ids, vocabulary):
    """One character for each byte."""
    return b"".join([vocabulary[i] for i in ids]).decode("latin-1")


@BPE_DECODE.mistake(
    hint="Blanks at the ends are stripped: they belong to the text.",
    symptom="indented code comes back flat",
)
def stripped(ids, vocabulary):
    """A tidy end."""
    return text_of(ids, vocabulary).strip()


@BPE_DECODE.mistake(
    hint="Several blanks become one: they belong to the text.",
    symptom="tables and code come back without their columns",
)
def blanks_tidied(ids, vocabulary):
    """Splits at blanks, and joins with one space."""
    return " ".join(text_of(ids, vocabulary).split())


@BPE_DECODE.mistake(
    hint="Id 0 is dropped: here it is a token like any other.",
    symptom="one word is missing from every text",
)
def zero_dropped(ids, vocabulary):
    """`if i`, which is meant for padding."""
    return text_of([i for i in ids if i], vocabulary)


@BPE_DECODE.mistake(
    hint="A token that comes twice in a row is written once.",
    symptom="nothing is ever said twice",
)
def repetitions_dropped(ids, vocabulary):
    """Repetitions are taken for a mistake of the model."""
    kept = [i for n, i in enumerate(ids) if ids[n - 1 : n] != [i]]
    return text_of(kept, vocabulary)


@BPE_DECODE.mistake()
def strict(ids, vocabulary):
    """Raises an error where a model has written half a character."""
    return b"".join([vocabulary[i] for i in ids]).decode()


@BPE_DECODE.mistake(
    symptom="one strange byte, and the rest of the answer is gone",
)
def ends_at_the_first_error(ids, vocabulary):
    """Returns what could be read before the first error."""
    data = b"".join([vocabulary[i] for i in ids])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data[: error.start].decode()
