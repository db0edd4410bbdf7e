"""BERT, GPT, T5 and BART, from the same parts, and today's block.

specials  the ids that are no words
masking   what BERT reads: masked tokens, and pairs of sentences
bert      the encoder that sees both sides
bert_training  its objectives: holes, what comes next, classes
gpt       the stack that says what comes next
gpt_writing  what it writes, with stored keys and values
spans     what T5 reads and writes: gaps with a name
t5        the encoder and the decoder that turn text into text
noise     what BART reads: a text that was damaged
bart      the encoder and the decoder that repair it
"""

from companion.variants.bart import BART, BARTConfig
from companion.variants.bert import BERT, BERTConfig, Classifier
from companion.variants.bert_training import (
    Classifying,
    MaskedModelling,
    PreTraining,
)
from companion.variants.gpt import GPT, GPTConfig
from companion.variants.gpt_writing import cached_step, generate
from companion.variants.grouped import (
    GroupedQueryAttention,
    cache_numbers,
    grouped_query_attention,
)
from companion.variants.masking import mask_tokens, sentence_pairs
from companion.variants.noise import (
    bart_noise,
    delete,
    infill,
    mask_each,
    permute_sentences,
    rotate,
)
from companion.variants.parts import RMSNorm, SwiGLU, rms_norm, today
from companion.variants.spans import random_spans, span_corrupt, span_restore
from companion.variants.specials import BOS, EOS, FIRST_WORD, MASK, PAD
from companion.variants.t5 import T5, T5Config

__all__ = [
    "BART",
    "BERT",
    "BOS",
    "EOS",
    "FIRST_WORD",
    "GPT",
    "MASK",
    "PAD",
    "T5",
    "BARTConfig",
    "BERTConfig",
    "Classifier",
    "Classifying",
    "GPTConfig",
    "GroupedQueryAttention",
    "MaskedModelling",
    "PreTraining",
    "RMSNorm",
    "SwiGLU",
    "T5Config",
    "bart_noise",
    "cache_numbers",
    "cached_step",
    "delete",
    "generate",
    "grouped_query_attention",
    "infill",
    "mask_each",
    "mask_tokens",
    "permute_sentences",
    "random_spans",
    "rms_norm",
    "rotate",
    "sentence_pairs",
    "span_corrupt",
    "span_restore",
    "today",
]
