"""The old way to register a mistake, until each stands in its component."""

import re
from collections.abc import Callable

from companion.contracts import COMPONENTS


def animal(
    component: str, *, seen: str, symptom: str, contract: str, says: str
) -> Callable:
    """Register a function or the class of a module, named by its name."""

    def register(make: Callable) -> Callable:
        words = r"_|(?<=[a-z])(?=[A-Z])|(?<=A)(?=[A-Z])"
        id = re.sub(words, "-", make.__name__).lower()
        return COMPONENTS[component].mistake(id, symptom=symptom)(make)

    return register
