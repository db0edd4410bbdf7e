"""The zoo: wrong implementations that return the right shape.

Each would pass a test of shapes, trains, and is wrong. The contracts have to
catch every one of them and say why; ``tests/test_zoo.py`` sees to it.

    from companion.zoo import ANIMALS
"""

from importlib import import_module

from companion.zoo.animal import ANIMALS, Animal
from companion.zoo.exam import check_test

__all__ = ["ANIMALS", "Animal", "check_test"]

# A line for each module. Imported by name, so that no module imports its
# animals from here before they are registered.
MODULES = (
    "layers",
    "clipping",
    "batches",
    "softmax",
    "attention",
    "heads",
    "multihead",
    "maps",
    "positions",
    "masks",
    "joined_masks",
    "norms",
    "networks",
    "encoders",
    "encoder_norms",
    "languages",
    "translators",
    "counts",
    "loaded",
    "rotations",
    "recurrent",
    "losses",
    "schedules",
    "greedy",
    "beams",
    "sampling",
    "caches",
    "scores",
    "corruption",
    "spans",
)

for name in MODULES:
    import_module(f"companion.zoo.{name}")
