"""The zoo: wrong implementations that return the right shape.

Each would pass a test of shapes, trains, and is wrong. The contracts have to
catch every one of them and say why; ``tests/test_zoo.py`` sees to it.

    from companion.zoo import ANIMALS
"""

from importlib import import_module

from companion.contracts import COMPONENTS

# A line for each module. Imported by name, so that no module imports its
# animals from here before they are registered.
MODULES = ("masks", "joined_masks", "norms", "networks")

for name in MODULES:
    import_module(f"companion.zoo.{name}")

ANIMALS = [m for c in COMPONENTS.values() for m in c.mistakes if m.symptom]
"""Every known mistake with a symptom."""

from companion.contracts.engine.exam import check_test  # noqa: E402

__all__ = ["ANIMALS", "check_test"]
