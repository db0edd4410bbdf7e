"""Text to sub-words and back, by byte-pair encoding."""

import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import SupportsIndex

from companion.data.atomic import write_atomically
from companion.data.vocabulary import Vocabulary
from companion.extras import lazy

__all__ = ["Subwords"]

sentencepiece = lazy("sentencepiece", "train")

SPACE = "\u2581"
"""What sentencepiece writes for a space."""

SETTINGS = {
    "model_type": "bpe",
    "byte_fallback": True,
    "pad_id": Vocabulary.pad,
    "bos_id": Vocabulary.bos,
    "eos_id": Vocabulary.eos,
    "unk_id": 3,
    # Both others change the text: full-width signs, double spaces.
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "num_threads": 1,
    "minloglevel": 2,
}


class Subwords:
    """Sub-words by byte-pair encoding (Sennrich et al. 2016).

    The library is sentencepiece (Kudo and Richardson 2018): it needs no words,
    so Chinese without spaces is as good a text as English; what it never saw
    it spells in bytes, so no character is unknown; spaces are part of the
    tokens, so decoding gives back the very text; it needs no other library,
    and the same texts give the same file, which is no pickle.

    Args:
        model: What ``save`` writes.

    Raises:
        ValueError: ``model`` is something else.
    """

    pad, bos, eos = Vocabulary.pad, Vocabulary.bos, Vocabulary.eos

    def __init__(self, model: bytes):
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(
                model_proto=model
            )
        except RuntimeError:
            raise ValueError(
                "model: expected what sentencepiece writes, got "
                f"{len(model)} other bytes"
            ) from None
        names = ("pad_id", "bos_id", "eos_id", "unk_id")
        got = [getattr(self._pieces, name)() for name in names]
        wanted = [SETTINGS[name] for name in names]
        if got != wanted:
            raise ValueError(
                f"model: expected ids {wanted} of pad, bos, eos and unknown, "
                f"got {got}"
            )

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "Subwords":
        """Learn sub-words from texts; use those of the training part only.

        The rarest characters, 5 in 10,000 of the text, get no token of their
        own.

        Args:
            texts: What to learn from.
            vocab_size: Tokens, 4 special ones and 256 bytes included.

        Raises:
            ValueError: There is no text, or it has too many characters or too
                few sub-words for ``vocab_size``.
        """
        texts = [_checked(text) for text in texts]
        if not any(texts):
            raise ValueError("texts: expected at least one token, got none")
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(texts),
                model_writer=written,
                vocab_size=vocab_size,
                **SETTINGS,
            )
        except RuntimeError as error:
            raise ValueError(_refused(vocab_size, str(error))) from None
        return cls(written.getvalue())

    def __len__(self) -> int:
        return len(self._pieces)

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids, without bos and eos.

        Raises:
            ValueError: The text holds sentencepiece's sign for a space.
        """
        return self._pieces.encode(_checked(text))

    def tokens(self, text: str) -> list[str]:
        """Split a text into sub-words, as sentencepiece writes them."""
        return [self._pieces.id_to_piece(i) for i in self.encode(text)]

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """Turn ids into a text, up to eos, without pad and bos.

        Raises:
            ValueError: An id has no token.
        """
        kept = []
        for i in map(int, ids):
            if not 0 <= i < len(self):
                raise ValueError(f"ids: expected 0 to {len(self) - 1}, got {i}")
            if i == self.eos:
                break
            kept.append(i)
        return self._pieces.decode(kept)

    def save(self, path: str | Path) -> None:
        """Write sentencepiece's own file; ``codecs.load`` reads it."""
        write_atomically(path, self._pieces.serialized_model_proto())


def _refused(vocab_size: int, reason: str) -> str:
    """Say how many sub-words there can be; sentencepiece names other flags."""
    for pattern, bound in (
        (r"smaller than required_chars\. \d+ vs (\d+)", "at least"),
        (r"too high \(\d+\)\. .* <= (\d+)", "at most"),
    ):
        if found := re.search(pattern, reason):
            return (
                f"vocab_size: expected {bound} {found[1]} for these texts, "
                f"got {vocab_size}"
            )
    return f"vocab_size: sentencepiece refuses {vocab_size}: {reason.strip()}"


def _checked(text: str) -> str:
    """Refuse a text if decoding would turn a sign in it into a space."""
    if SPACE in text:
        raise ValueError(
            f"text: expected none of sentencepiece's sign for a space, "
            f"{SPACE!r} (U+2581), got {text!r}"
        )
    return text
