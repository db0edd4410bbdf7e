"""A byte-level tokenizer: any text to ids, and back to the very text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from companion.checks import check_sizes
from companion.tokens.fast import fast_encode, fast_merges
from companion.tokens.plain import Merge, bpe_decode, ranks_of
from companion.tokens.words import (
    WORD,
    as_symbols,
    special_pattern,
    split_special,
    word_counts,
    words,
)

__all__ = ["Tokenizer", "bits_per_byte"]

REMEMBERED = 10_000
"""How many different words a tokenizer remembers the ids of."""


class Tokenizer:
    """Byte-pair encoding of bytes, so that no text is unknown.

    The ids 0 to 255 are the bytes, then come the pieces in the order of their
    merges, and after them the special tokens.

    Args:
        merges: As ``fast_merges`` learns them from ``word_counts``.
        special: Tokens that no merge makes, such as ``<|end|>``.

    Raises:
        ValueError: A special token is empty or there twice, or a merge joins
            pieces that there are not.

    Example:
        >>> tokenizer = Tokenizer.train(["low lower lowest"], vocab_size=258)
        >>> tokenizer.pieces("low!"), tokenizer.encode("low!")
        (['low', '!'], [257, 33])
    """

    def __init__(self, merges: Sequence[Merge], special: Sequence[str] = ()):
        self.merges, self.special = list(merges), list(special)
        if "" in self.special or len({*self.special}) < len(self.special):
            raise ValueError(
                "special: expected tokens that are different and not empty, "
                f"got {self.special}"
            )
        self._ids = {chr(byte): byte for byte in range(256)}
        for pair in self.merges:
            if not self._ids.keys() >= {*pair}:
                raise ValueError(
                    f"merges: expected pairs of known pieces, got {pair}"
                )
            self._ids.setdefault("".join(pair), len(self._ids))
        self.vocabulary = [piece.encode("latin-1") for piece in self._ids]
        self._special_ids = {
            text: len(self.vocabulary) + i
            for i, text in enumerate(self.special)
        }
        self.vocabulary += [text.encode("utf-8") for text in self.special]
        self._ranks = ranks_of(self.merges)
        self._word = lru_cache(REMEMBERED)(self._encode_word)

    @classmethod
    def train(
        cls, texts: Iterable[str], vocab_size: int, special: Sequence[str] = ()
    ) -> "Tokenizer":
        """Learn merges from texts.

        Args:
            texts: What to learn from. Special tokens are cut out of them.
            vocab_size: Tokens, the 256 bytes and the special ones included.
            special: Tokens that no merge makes.

        Raises:
            ValueError: ``vocab_size`` is too small for what is always there.
        """
        least = 256 + len(special)
        if vocab_size < least:
            raise ValueError(
                f"vocab_size: expected at least {least}, for the bytes and the "
                f"special tokens, got {vocab_size}"
            )
        parts = (
            part
            for text in texts
            for part in split_special(text, special)
            if part not in special
        )
        return cls(fast_merges(word_counts(parts), vocab_size - least), special)

    def __len__(self) -> int:
        return len(self.vocabulary)

    def _encode_word(self, word: str) -> list[int]:
        pieces = fast_encode(as_symbols(word), self._ranks)
        return [self._ids[piece] for piece in pieces]

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Turn a text into ids.

        Args:
            text: Any text.
            special: Whether what is written like a special token is one. Not
                so for a text that somebody else wrote: a user could end the
                text, or speak as somebody else.

        Raises:
            ValueError: The text has half a surrogate pair.
        """
        return list(self.encode_stream([text], special=special))

    def encode_stream(
        self, chunks: Iterable[str], *, special: bool = False
    ) -> Iterator[int]:
        """Turn a text that comes in chunks into ids, one after the other.

        The ids are those of the whole text, however it is cut. Kept back is
        only what the next chunk may still change, the last word and the
        beginning of a special token.

        Args:
            chunks: The text.
            special: As for ``encode``.

        Raises:
            ValueError: The text has half a surrogate pair.
        """
        rest = ""
        for text, is_special in _parts(chunks, self.special if special else []):
            if is_special:
                yield from self._all(rest)
                yield self._special_ids[text]
                rest = ""
                continue
            last = ""
            for found in WORD.finditer(rest + text):
                yield from self._word(last)
                last = found[0]
            rest = last
        yield from self._all(rest)

    def _all(self, text: str) -> Iterator[int]:
        for word in words(text):
            yield from self._word(word)

    def decode(self, ids: Iterable[int]) -> str:
        """Turn ids into a text; special tokens are written out.

        Raises:
            ValueError: An id has no token.
        """
        return bpe_decode(ids, self.vocabulary)

    def pieces(self, text: str) -> list[str]:
        """Show the pieces of a text; half a character is shown as U+FFFD.

        Raises:
            ValueError: The text has half a surrogate pair.
        """
        return [self.decode([i]) for i in self.encode(text)]


def _parts(
    chunks: Iterable[str], special: Sequence[str]
) -> Iterator[tuple[str, bool]]:
    """Cut special tokens out of a text in chunks; tell which parts they are."""
    if not special:
        yield from ((chunk, False) for chunk in chunks)
        return
    pattern, longest = special_pattern(special), max(map(len, special))
    rest = ""
    for chunk in chain(chunks, [None]):
        rest += chunk or ""
        # From here on a special token may begin whose end is not there yet,
        # or one that is longer than the one that is.
        sure = len(rest) if chunk is None else len(rest) - longest + 1
        begin = 0
        while (found := pattern.search(rest, begin)) and found.start() < sure:
            yield rest[begin : found.start()], False
            yield found[0], True
            begin = found.end()
        end = max(begin, sure)
        yield rest[begin:end], False
        rest = rest[end:]


def bits_per_byte(loss: float, tokens: int, size: int) -> float:
    """Turn a loss per token into one that does not depend on the tokenizer.

    Args:
        loss: The mean negative log-likelihood of a token, in nats, as
            ``cross_entropy`` computes it.
        tokens: How many tokens the text has.
        size: How many bytes it has in UTF-8.

    Returns:
        Bits a byte: loss · tokens / (ln 2 · size).

    Raises:
        ValueError: ``size`` is below 1.

    Example:
        >>> bits_per_byte(math.log(2), tokens=3, size=12)
        0.25
    """
    check_sizes(size=size)
    return loss * tokens / (math.log(2) * size)
