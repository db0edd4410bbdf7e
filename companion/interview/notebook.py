"""A question of the bank to practise in a notebook, where ``check`` judges."""

import sys
import textwrap

from companion.interview.model.bank import course
from companion.interview.model.markup import to_plain
from companion.interview.model.question import Code

__all__ = ["practise"]


def practise(question: str) -> str | None:
    """Open a cell with a code question, its stub and its check.

    Args:
        question: The question's id, which its card shows.

    Returns:
        Outside a notebook, what such a cell would hold; inside one, nothing.

    Raises:
        ValueError: There is no such question, or it is answered otherwise.

    Example:
        >>> print(practise("attention-softmax-from-memory").splitlines()[-1])
        check("softmax", my_softmax)
    """
    cell = _cell(question)
    shell = _shell()
    if shell is None:
        return cell
    shell.set_next_input(cell)
    return None


def _cell(name: str) -> str:
    code = {
        q.id: (q.prompt, q.task) for q in course() if isinstance(q.task, Code)
    }
    if name not in code:
        _refuse(name, list(code))
    asked, task = code[name]
    # A Chinese sign is as wide as two.
    lines = [
        *textwrap.wrap(to_plain(asked.en), 76),
        *textwrap.wrap(to_plain(asked.zh), 38),
    ]
    comment = "\n".join(f"# {line}" for line in lines)
    return (
        "import torch\n\nfrom companion.contracts import check\n\n"
        f"{comment}\n\n\n{task.stub}\n\n\n"
        f'check("{task.component}", {task.name})'
    )


def _refuse(name: str, code: list[str]) -> None:
    kinds = {q.id: q.kind for q in course()}
    if name in kinds:
        raise ValueError(
            f"question: expected one that is answered in code, got {name!r}, "
            f"which is of kind {kinds[name]}; its chapter shows it"
        )
    chapter = str(name).partition("-")[0]
    near = [each for each in code if each.startswith(f"{chapter}-")] or code
    raise ValueError(
        f"question: expected one of {', '.join(near)}, got {name!r}"
    )


def _shell():
    # If IPython runs this, it has been imported.
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None
