"""Text to ids and back: by character, by word, by sub-word.

A codec's ids 0, 1, 2 are pad, bos, eos, as in ``Vocabulary``. ``encode`` adds
none of them; ``decode`` stops at eos and drops pad and bos.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, SupportsIndex

from companion.data.atomic import write_atomically
from companion.data.subwords import Subwords
from companion.data.vocabulary import Vocabulary

__all__ = ["Characters", "Codec", "Subwords", "Words", "load"]


class Characters:
    """A character is a token: Chinese without word borders, and Shakespeare.

    Raises:
        ValueError: a token is there twice, is a special one, or is none that a
            text could be split into.
    """

    kind: ClassVar[str] = "characters"
    joint: ClassVar[str] = ""
    pad, bos, eos = Vocabulary.pad, Vocabulary.bos, Vocabulary.eos

    def __init__(self, tokens: Sequence[str]):
        for token in tokens:
            if self.split(token) != [token]:
                raise ValueError(
                    f"tokens: expected {self.kind}, got {token!r} among them"
                )
        self.vocabulary = Vocabulary(tokens)

    @classmethod
    def train(cls, texts: Iterable[str]) -> "Characters":
        """Every token of some texts, in the order they first occur.

        Raises:
            ValueError: there is no text, or none has a token.
        """
        found = dict.fromkeys(t for text in texts for t in cls.split(text))
        if not found:
            raise ValueError("texts: expected at least one token, got none")
        return cls(list(found))

    @classmethod
    def split(cls, text: str) -> list[str]:
        """The tokens of a text."""
        return list(text)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without bos and eos.

        Raises:
            ValueError: a token was never seen; the message names the nearest.
        """
        return self.vocabulary.encode(self.split(text))

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, if all are known.

        Raises:
            ValueError: a token was never seen; the message names the nearest.
        """
        return [self.vocabulary.tokens[i] for i in self.encode(text)]

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The text of some ids, up to eos, without pad and bos.

        Raises:
            TypeError: an id is no integer.
            ValueError: an id has no token.
        """
        return self.joint.join(self.vocabulary.decode(ids))

    def save(self, path: str | Path) -> None:
        """Writes its tokens as JSON; ``load`` reads them."""
        tokens = self.vocabulary.tokens[len(Vocabulary.specials) :]
        said = {"kind": self.kind, "tokens": tokens}
        write_atomically(path, json.dumps(said, ensure_ascii=False).encode())


class Words(Characters):
    """What stands between single spaces is a token: "I love little cats"."""

    kind = "words"
    joint = " "

    @classmethod
    def split(cls, text: str) -> list[str]:
        """The tokens of a text; an empty text has none."""
        return text.split(" ") if text else []


Codec = Characters | Words | Subwords
"""What training and decoding take: all have the same methods."""


def load(path: str | Path) -> Codec:
    """The codec that ``save`` wrote, whichever it is.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds something else, or was cut short.
    """
    data = Path(path).read_bytes()
    try:
        # No file of sentencepiece begins like that: 0x0A comes first.
        if not data.startswith(b"{"):
            return Subwords(data)
        said = json.loads(data)
        kinds = {codec.kind: codec for codec in (Characters, Words)}
        return kinds[said["kind"]](said["tokens"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected a codec as save writes it, got {len(data)} "
            f"bytes that are none ({error})"
        ) from None
