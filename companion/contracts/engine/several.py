"""Results of more than one part."""

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.guard import STRAY, Guarded


def require_several(fn: Guarded, result: object, count: int) -> None:
    """Raises Broken unless it is a tuple or list of ``count`` parts."""
    if isinstance(result, tuple | list):
        if len(result) == count:
            return
        what, hint = f"{len(result)} things", ""
    else:
        name = type(result).__name__
        what = "None" if result is None else f"a {name}"
        hint = STRAY[name] if name in ("NoneType", "generator") else ""
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. {hint}".rstrip()
    )
