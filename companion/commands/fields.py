"""What each field of a run means, for who reads ``train --help``."""

import dataclasses

from companion.training.config import DIRECTIONS, SCHEDULES, SCRIPTS

MEANINGS = {
    "data": "what to learn",
    "direction": "from which language to which; none: the first of the data",
    "script": "Tatoeba's Chinese in this script only; none: in both",
    "vocab_size": "sub-words a vocabulary, of Tatoeba and Multi30k",
    "shared_vocab": "one vocabulary for both languages",
    "max_len": "longest sentence, in tokens with bos and eos; for shakespeare "
    "the window",
    "d_model": "width of the model",
    "num_heads": "attention heads a layer",
    "d_ff": "width inside the feed-forward part",
    "num_layers": "layers of the encoder, and of the decoder",
    "dropout": "share of numbers set to zero in training, 0 to 1",
    "norm_first": "normalise before each part of a layer, not after it",
    "steps": "updates of the parameters",
    "batch_tokens": "tokens in a batch, padding included",
    "accumulate": "batches in a step",
    "schedule": "noam: up, then down as 1/sqrt(step); linear: up, then down "
    "to 0",
    "peak": "largest learning rate; none (noam only): the paper's",
    "warmup": "steps until the peak",
    "smoothing": "label smoothing, 0 to 1",
    "clip": "largest norm of the gradient; none: any",
    "seed": "of all random numbers",
    "save_every": "steps between checkpoints",
    "validate_every": "steps between losses on the validation part",
    "keep": "how many of the last checkpoints stay",
    "bf16": "compute in bfloat16, keep the parameters in float32",
    "compile": "torch.compile; on a CPU the first steps take minutes",
}
CHOICES = {
    "data": tuple(DIRECTIONS),
    "direction": tuple(
        dict.fromkeys(d for ds in DIRECTIONS.values() for d in ds if d)
    ),
    "script": SCRIPTS[1:],
    "schedule": SCHEDULES,
}


def told(field: dataclasses.Field) -> str:
    """A line on a field: meaning, choices, and the value of the preset tiny."""
    choices = CHOICES.get(field.name, ())
    listed = f" ({', '.join(choices)})" if choices else ""
    default = str(field.default).lower()
    return f"{MEANINGS[field.name]}{listed}; tiny: {default}"
