"""Training runs that have a name: what differs from the defaults."""

PRESETS = {
    # The phrasebook in seconds on one core.
    "tiny": {},
    # A real corpus on a small machine.
    "small": {
        "data": "tatoeba",
        "vocab_size": 8000,
        "d_model": 128,
        "d_ff": 512,
        "num_layers": 2,
        "dropout": 0.1,
        "steps": 10_000,
        "schedule": "noam",
        "peak": 2e-3,
        "warmup": 1000,
        "smoothing": 0.1,
        "save_every": 500,
        "validate_every": 500,
    },
    # Section 5 of the paper, with the data that there is.
    "base": {
        "data": "multi30k",
        "vocab_size": 10_000,
        "shared_vocab": True,
        "d_model": 512,
        "num_heads": 8,
        "d_ff": 2048,
        "num_layers": 6,
        "dropout": 0.1,
        "steps": 100_000,
        "batch_tokens": 25_000,
        "schedule": "noam",
        "peak": None,
        "warmup": 4000,
        "smoothing": 0.1,
        "save_every": 1000,
        "validate_every": 1000,
    },
}
