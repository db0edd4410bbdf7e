"""The tested companion of a Transformer course in which every claim runs."""

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
    "training",
    "decoding",
    "variants",
    "clinic",
)
"""The chapters in order; chapter k imports only the modules before it."""


def device():
    """The accelerator if the machine has one, else the CPU."""
    import torch  # Here, so that building the book needs no torch.

    if torch.accelerator.is_available():
        return torch.accelerator.current_accelerator()
    return torch.device("cpu")
