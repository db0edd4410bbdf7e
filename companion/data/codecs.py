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

    Args:
        tokens: All that it knows, in the order of their ids.

    Raises:
        ValueError: A token is there twice, is a special one, or is none that a
            text could be split into.

    Example:
        >>> codec = Characters.train(["我爱小猫"])
        >>> codec.encode("小猫")
        [5, 6]
        >>> codec.decode([1, 5, 6, 2])
        '小猫'
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
        """Take every token of some texts, in the order they first occur.

        Raises:
            ValueError: There is no text, or none has a token.
        """
        found = dict.fromkeys(t for text in texts for t in cls.split(text))
        if not found:
            raise ValueError("texts: expected at least one token, got none")
        return cls(list(found))

    @classmethod
    def split(cls, text: str) -> list[str]:
        """Split a text into tokens."""
        return list(text)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids, without bos and eos.

        Raises:
            ValueError: A token was never seen; the message names the nearest.
        """
        return self.vocabulary.encode(self.split(text))

    def tokens(self, text: str) -> list[str]:
        """Split a text into tokens, all of which must be known.

        Raises:
            ValueError: A token was never seen; the message names the nearest.
        """
        return [self.vocabulary.tokens[i] for i in self.encode(text)]

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Turn ids into a text, up to eos, without pad and bos.

        Raises:
            TypeError: An id is no integer.
            ValueError: An id has no token.
        """
        return self.joint.join(self.vocabulary.decode(ids))

    def save(self, path: str | Path) -> None:
        """Write its tokens as JSON; ``load`` reads them."""
        tokens = self.vocabulary.tokens[len(Vocabulary.specials) :]
        stored = {"kind": self.kind, "tokens": tokens}
        write_atomically(path, json.dumps(stored, ensure_ascii=False).encode())


class Words(Characters):
    """What stands between single spaces is a token: "I love little cats"."""

    kind = "words"
    joint = " "

    @classmethod
    def split(cls, text: str) -> list[str]:
        """Split a text at spaces; an empty text has no token."""
        return text.split(" ") if text else []


Codec = Characters | Words | Subwords
"""What training and decoding take: all have the same methods."""


def load(path: str | Path) -> Codec:
    """Read the codec that ``save`` wrote, whichever it is.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It holds something else, or was cut short.
    """
    data = Path(path).read_bytes()
    try:
        # No file of sentencepiece begins like that: 0x0A comes first.
        if not data.startswith(b"{"):
            return Subwords(data)
        stored = json.loads(data)
        kinds = {codec.kind: codec for codec in (Characters, Words)}
        return kinds[stored["kind"]](stored["tokens"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected a codec as save writes it, got {len(data)} "
            f"bytes that are none ({error})"
        ) from None
