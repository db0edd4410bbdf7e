"""Real texts: Tatoeba, Multi30k, tiny shakespeare, and one play of it.

``companion.data.files`` finds them, in a local copy or the network; the play is
in the package.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from companion.data.files import locate
from companion.data.groups import Pair, split

__all__ = [
    "SCRIPTS",
    "Splits",
    "Text",
    "attribution",
    "multi30k",
    "read_pair",
    "read_table",
    "romeo_and_juliet",
    "script_of",
    "shakespeare",
    "tatoeba",
]

HELD_OUT = 3
"""Per cent of Tatoeba to choose by, and as much to test on."""

SCRIPTS = ("simplified", "traditional")


class Splits(NamedTuple):
    """Sentence pairs (source, target): to train on, choose by and test on."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


class Text(NamedTuple):
    """A long text: most of it to train on, the end of it to choose by."""

    train: str
    valid: str


def script_of(text: str) -> str:
    """Tell the Chinese script: simplified, traditional, either or mixed.

    The national character sets decide. A Chinese character that GB 2312 (1980,
    mainland) lacks is traditional; one that it has and Big5 (1984, Taiwan)
    lacks is simplified; what both have, both scripts write.

    Example:
        >>> script_of("誰"), script_of("谁"), script_of("我")
        ('traditional', 'simplified', 'either')
    """
    chinese = [c for c in text if "\u3400" <= c <= "\u9fff"]
    in_gb = [c for c in chinese if _is_in(c, "gb2312")]
    traditional = len(in_gb) < len(chinese)
    simplified = not all(_is_in(c, "big5") for c in in_gb)
    if traditional and simplified:
        return "mixed"
    if traditional:
        return "traditional"
    return "simplified" if simplified else "either"


def _is_in(character: str, charset: str) -> bool:
    try:
        character.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def tatoeba(
    src: str = "zh", tgt: str = "en", *, script: str | None = None
) -> Splits:
    """Load Chinese and English sentences of the Tatoeba project.

    No sentence of one part is in another, in either language, capitals and
    punctuation aside.

    Args:
        src: "zh" or "en".
        tgt: The other one.
        script: Keeps the lines that can be written in that script; without it
            all are there, about half in each. It does not change in which part
            a line is.

    Raises:
        ValueError: A language or the script is another.
        OSError: The file cannot be had, as in ``files.locate``.
    """
    _check_languages(src, tgt, ("zh", "en"))
    if script not in (None, *SCRIPTS):
        raise ValueError(
            f"script: expected {SCRIPTS[0]!r}, {SCRIPTS[1]!r} or None, got "
            f"{script!r}"
        )
    lines = read_table(locate("tatoeba-cmn-eng/cmn.txt"))
    parts = split([(zh, en) for en, zh, _ in lines], percent=HELD_OUT)
    if script is not None:
        kept = (script, "either")
        parts = [[p for p in part if script_of(p[0]) in kept] for part in parts]
    if src == "en":
        parts = [[(en, zh) for zh, en in part] for part in parts]
    return Splits(*parts)


def attribution(pairs: Sequence[Pair]) -> list[str]:
    """Look up whose the sentences of some Tatoeba pairs (zh, en) are.

    The licence, CC BY 2.0 FR, asks for it wherever they are shown.

    Raises:
        ValueError: A pair is not in the corpus.
    """
    lines = read_table(locate("tatoeba-cmn-eng/cmn.txt"))
    owners = {(zh, en): owner for en, zh, owner in lines}
    missing = [pair for pair in pairs if pair not in owners]
    if missing:
        raise ValueError(f"pairs: {missing[0]} is no line of Tatoeba's")
    return [owners[pair] for pair in pairs]


def multi30k(
    src: str = "de",
    tgt: str = "en",
    *,
    tokenised: bool = False,
    test: str = "test_2016_flickr",
) -> Splits:
    """Load German and English descriptions of pictures (Elliott et al. 2016).

    For non-commercial research and education; never shipped.

    Args:
        src: "de" or "en".
        tgt: The other one.
        tokenised: Takes the lower-cased, tokenised files that published BLEU is
            computed on; they have the test of 2016 only.
        test: Which of the tests.

    Raises:
        ValueError: A language is another, there is no such test, or the files
            of a part have not the same number of lines.
        OSError: A file cannot be had, as in ``files.locate``.
    """
    _check_languages(src, tgt, ("de", "en"))
    tests = ["test_2016_flickr"]
    if not tokenised:
        tests += ["test_2017_flickr", "test_2017_mscoco"]
    if test not in tests:
        raise ValueError(f"test: expected one of {tests}, got {test!r}")
    form = "tok/{}.lc.norm.tok.{}" if tokenised else "raw/{}.{}.gz"
    parts = [
        read_pair(
            locate(f"multi30k/{form.format(part, src)}"),
            locate(f"multi30k/{form.format(part, tgt)}"),
        )
        for part in ("train", "val", test)
    ]
    return Splits(*parts)


def shakespeare() -> Text:
    """Load a million characters of Shakespeare, nine tenths to train on.

    Raises:
        OSError: The file cannot be had, as in ``files.locate``.
    """
    text = _read(locate("tinyshakespeare/input.txt"))
    border = len(text) * 9 // 10
    return Text(text[:border], text[border:])


def romeo_and_juliet() -> Text:
    """Load the play, which is in the package: no network is needed.

    It is the part of tiny shakespeare from its first speech to its last line.
    Nine tenths are to train on.

    Example:
        >>> romeo_and_juliet().train.splitlines()[1]
        "Gregory, o' my word, we'll not carry coals."
    """
    text = _read(Path(__file__).with_name("romeo.txt"))
    border = len(text) * 9 // 10
    return Text(text[:border], text[border:])


def read_table(path: str | Path) -> list[tuple[str, str, str]]:
    """Read the lines of a file as manythings.org writes them.

    A line is English, a tab, Chinese, a tab, and whose they are.

    Raises:
        ValueError: There is no line, or one has not three such columns.
    """
    found: list[tuple[str, str, str]] = []
    for number, line in enumerate(_lines(path), 1):
        columns = line.split("\t")
        if len(columns) != 3 or not all(columns):
            raise ValueError(
                f"{path}, line {number}: expected English, Chinese and the "
                f"attribution with tabs between, got {line[:60]!r}"
            )
        found.append((columns[0], columns[1], columns[2]))
    return found


def read_pair(src: str | Path, tgt: str | Path) -> list[Pair]:
    """Read the lines of two files side by side.

    Raises:
        ValueError: A file has no line, or one has fewer than the other.
    """
    sources, targets = _lines(src), _lines(tgt)
    if len(sources) != len(targets):
        raise ValueError(
            f"{src}, {tgt}: expected as many lines in both, got {len(sources)} "
            f"and {len(targets)}"
        )
    return list(zip(sources, targets, strict=True))


def _lines(path: str | Path) -> list[str]:
    text = _read(path)
    # Not splitlines, which also ends a line at what a text may contain.
    return text.removesuffix("\n").split("\n")


def _read(path: str | Path) -> str:
    path = Path(path)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    if not text.strip():
        raise ValueError(f"{path}: expected a text, got an empty file")
    return text


def _check_languages(src: str, tgt: str, languages: tuple[str, str]) -> None:
    if sorted((src, tgt)) != sorted(languages):
        raise ValueError(
            f"src, tgt: expected {languages[0]!r} and {languages[1]!r} in "
            f"either order, got {src!r} and {tgt!r}"
        )
