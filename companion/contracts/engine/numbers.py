"""What contracts see of a component that returns one number."""

from torch import Tensor

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.guard import STRAY, Guarded


def read_number(fn: Guarded, result: object, args: tuple) -> float:
    """The number, whatever kind of number it is."""
    if isinstance(result, Tensor):
        number = result.numel() == 1
    else:
        number = hasattr(result, "__float__") and not isinstance(result, bool)
    if number:
        return float(result)
    kind = type(result).__name__
    what = "None" if result is None else f"a {kind}"
    hint = "Return one number." if kind in ("tuple", "list") else ""
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. "
        f"{hint or STRAY.get(kind, '')}".rstrip()
    )
