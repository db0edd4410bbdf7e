"""The tested companion of a Transformer course in which every claim runs.

The chapters, in order:
    rnn          words as vectors, and networks that read one after another
    seq2seq      encoder and decoder, joined by one context or by attention
    attention    scaled dot-product attention
    multihead    several heads side by side
    positions    sinusoidal, learned, relative and rotary positions, ALiBi
    masks        padding, causal and cross masks, here and in other libraries
    blocks       feed-forward network, residual connection, normalisation
    transformer  encoder and decoder, and a language model
    tokens       byte-pair encoding, WordPiece and unigrams
    training     loss, schedule and the loop, in a folder that can go on
    decoding     greedy search, beam search, sampling, cache, BLEU
    variants     BERT, GPT, T5 and BART, and what newer models changed
    efficiency   what a model costs to run, and how it costs less
    clinic       finding what is wrong with somebody else's model

What stands beside them:
    contracts    what every correct implementation does, and known mistakes
    figures      pictures that work in a page, and live ones
    interview    questions with answers that are proved
    data         the phrase book, corpora, codecs and batches
    models       small trained models in the box, each with its card
    zoo          the known mistakes by name
    checks       what every public function checks of its arguments
    costs        operations, steps and paths of a layer
    commands     ``python -m companion``
    pytest_plugin  what pytest shows of a contract that does not hold
    extras       packages that only some of this needs
    sanitize     text that a terminal shows and never obeys
    words        what a report says, in another language
    shell        commands as the user can type them

The names below come from these parts, and are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from companion.attention import scaled_dot_product_attention
    from companion.contracts import check
    from companion.decoding import translate
    from companion.multihead import MultiHeadAttention
    from companion.training import TrainConfig, load_trained, train
    from companion.transformer import (
        LanguageModel,
        Transformer,
        TransformerConfig,
    )
    from companion.zoo import check_test

__all__ = [
    "CHAPTERS",
    "LanguageModel",
    "MultiHeadAttention",
    "TrainConfig",
    "Transformer",
    "TransformerConfig",
    "check",
    "check_test",
    "device",
    "load_trained",
    "scaled_dot_product_attention",
    "train",
    "translate",
]
__version__ = "0.1.0"
"""The version of the package and of the book; nothing else repeats it."""

CHAPTERS = (
    "rnn",
    "seq2seq",
    "attention",
    "multihead",
    "positions",
    "masks",
    "blocks",
    "transformer",
    "tokens",
    "training",
    "decoding",
    "variants",
    "efficiency",
    "clinic",
)
"""The chapters in order; chapter k imports only the modules before it."""

_HOME = {
    "LanguageModel": "transformer",
    "MultiHeadAttention": "multihead",
    "TrainConfig": "training",
    "Transformer": "transformer",
    "TransformerConfig": "transformer",
    "check": "contracts",
    "check_test": "zoo",
    "load_trained": "training",
    "scaled_dot_product_attention": "attention",
    "train": "training",
    "translate": "decoding",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'companion' has no attribute {name!r}")
    return getattr(import_module(f"companion.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def device() -> "torch.device":
    """Return the accelerator if the machine has one, else the CPU.

    Example:
        >>> device().type in ("cpu", "cuda", "mps", "xpu")
        True
    """
    import torch  # Here, so that building the book needs no torch.

    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None and torch.accelerator.is_available():
        return accelerator
    return torch.device("cpu")
