"""The zoo: known mistakes that no test of shapes finds.

Each trains, is wrong, and has a symptom that one notices late or never. It is a
record of its component, in ``companion/contracts``; the contracts catch every
one of them and name the likely mistake.

    from companion.zoo import ANIMALS, check_test
"""

from companion.contracts import COMPONENTS
from companion.contracts.engine.exam import check_test

__all__ = ["ANIMALS", "check_test"]

ANIMALS = [m for c in COMPONENTS.values() for m in c.mistakes if m.symptom]
"""Every known mistake with a symptom."""
