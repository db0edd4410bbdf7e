"""From scores to sentences.

search       greedy and beam search over any function that scores tokens
sampling     temperature, top-k, top-p, and drawing a sentence
cache        the decoder, a position at a time, with stored keys and values
beams        beam search for many sentences
translation  from source ids to target ids
quality      how much of a translation stands in the reference
"""

from companion.decoding.cache import StepDecoder, cached_decode
from companion.decoding.quality import bleu, ngrams
from companion.decoding.sampling import sample, sampling_filter
from companion.decoding.search import (
    beam_search,
    greedy_decode,
    length_penalty,
)
from companion.decoding.translation import next_token, translate

__all__ = [
    "StepDecoder",
    "beam_search",
    "bleu",
    "cached_decode",
    "greedy_decode",
    "length_penalty",
    "next_token",
    "ngrams",
    "sample",
    "sampling_filter",
    "translate",
]
