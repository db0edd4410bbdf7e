"""Says which component a learner's function is, whatever it is called.

from companion.contracts import checks

@checks("attention")
def look_around(q, k, v, mask=None): ...
"""

from collections.abc import Callable
from typing import Any


def checks(component: str, *args: Any, **named: Any) -> Callable:
    """Marks what ``python -m companion check`` checks, and changes nothing.

    ``args`` and ``named`` are what a class, or a function that builds a module,
    is to be called with: what comes back is checked.

    Raises:
        TypeError: ``component`` is not a string.
    """
    if not isinstance(component, str):
        raise TypeError(
            "component: expected a name, as in @checks('attention'), got a "
            f"{type(component).__name__}"
        )
    return lambda fn: fn
