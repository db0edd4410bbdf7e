"""The ids that are no words, the same for every model of the chapter."""

PAD, BOS, EOS, MASK, FIRST_WORD = range(5)
"""BERT calls ``BOS`` [CLS] and ``EOS`` [SEP]; words begin at ``FIRST_WORD``."""
