"""Tokens to ids and back."""

import operator
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NoReturn, SupportsIndex

__all__ = ["Vocabulary"]


class Vocabulary:
    """A numbered list of tokens, in the order given.

    The first three ids mean no word: ``pad`` fills short sentences up, ``bos``
    begins a sentence, ``eos`` ends it.

    Args:
        tokens: Their ids begin at 3.

    Raises:
        ValueError: A token is there twice, or is written like a special one.

    Example:
        >>> vocabulary = Vocabulary(["little", "cats"])
        >>> vocabulary.encode(["cats"])
        [4]
        >>> vocabulary.decode([1, 3, 4, 2, 0])
        ['little', 'cats']
    """

    pad, bos, eos = 0, 1, 2
    specials = ("<pad>", "<bos>", "<eos>")

    def __init__(self, tokens: Sequence[str]):
        self.tokens = (*self.specials, *tokens)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        for i, token in enumerate(self.tokens):
            if self._ids[token] != i:
                raise ValueError(f"tokens: {token!r} is there twice")

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """Take the tokens of some sentences, in the order they first occur."""
        return cls(list(dict.fromkeys(t for s in sentences for t in s)))

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """Look up an id per token. A string is read character by character.

        Raises:
            ValueError: A token is unknown; the message names the nearest one.
        """
        known = self._ids
        return [
            known[token] if token in known else self._unknown(token)
            for token in tokens
        ]

    def decode(self, ids: Iterable[SupportsIndex]) -> list[str]:
        """Look up the tokens up to ``eos``, without ``pad`` and ``bos``.

        Raises:
            TypeError: An id is no integer.
            ValueError: An id has no token.
        """
        tokens = []
        for i in map(self._integer, ids):
            if i == self.eos:
                break
            if i not in (self.pad, self.bos):
                tokens.append(self.tokens[i])
        return tokens

    def _unknown(self, token: str) -> NoReturn:
        near = get_close_matches(str(token), self.tokens, n=1, cutoff=0.5)
        hint = (
            f"the nearest known one is {near[0]!r}" if near else "none is near"
        )
        raise ValueError(f"unknown token {token!r}; {hint}")

    def _integer(self, i: SupportsIndex) -> int:
        try:
            i = operator.index(i)
        except TypeError:
            raise TypeError(f"ids: expected integers, got {i!r}") from None
        if not 0 <= i < len(self):
            raise ValueError(f"ids: expected 0 to {len(self) - 1}, got {i}")
        return i
