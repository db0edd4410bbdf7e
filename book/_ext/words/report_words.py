"""What reports on contracts can say, collected from the package's source.

Every literal that reads like English counts, but for docstrings, what is raised
at a caller, patterns and styles. What is put into an f-string is ``{0}``,
``{1}`` …, as in the package's tables of words. Of a contract its name, of a
level why, and of a mistake its story, hint and symptom are asked of the package
itself, and so are the known mistakes of its tests.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "companion"
KNOWN = ROOT / "tests" / "contracts" / "known_mistakes.json"
# Nobody shows these in a report.
RAISED = {"KeyError", "ModuleNotFoundError", "RuntimeError", "TypeError"}
RAISED |= {"ValueError"}
NO_WORDS = {"add_options", "add_memory", "note_if_unlimited"}
"""Functions whose words are those of the command's help."""
NO_SENTENCE = re.compile(
    r"\\|</?\w|\(\?|\)\?_|\|| \{ |^[\w.]+\(.*\)$|^\w+\.\w+$|^\S+:\w+$|^#|::"
)
KINDS_OF_PLACE = "axes", "unit"
"""Arguments that are words for a place."""
PLACEHOLDER = re.compile(r"\{\d+\}")
# A sentence of its own between others.
INNER = re.compile(r"(?<=[.?!]) (?:\{\d+\} )+(?=[A-Z`])")
FORMAT = re.compile(r"\{(\w*)(?::[^{}]*)?\}")
CODE = re.compile(r"`[^`]*`")
# What PyTorch says, which a message looks for, and sentences to be translated.
NOT_OURS = {
    "the little cat sees the old dog",
    "we love the small grey mouse that lives in our house",
    "the old dog sees the little cat",
    "the cat sees a little old dog",
    "Expected target size",
    "Boolean value of Tensor",
    "view size is not compatible",
    "with a bool tensor is not supported",
    "to be on the same device",
}


def sources() -> list[Path]:
    """List the files that say something in a report."""
    return [
        *sorted((PACKAGE / "contracts").rglob("*.py")),
        *sorted((PACKAGE / "commands" / "check").rglob("*.py")),
        PACKAGE / "commands" / "isolated.py",
        PACKAGE / "zoo.py",
    ]


def template(node: ast.Constant | ast.JoinedStr) -> str:
    """Write a literal with numbered places for what is put into it."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    text, names = "", []
    for part in parts:
        if isinstance(part, ast.Constant):
            text += numbered(part.value, names)
        else:
            names.append(None)
            text += f"{{{len(names) - 1}}}"
    return bare(text)


def numbered(text: str, names: list) -> str:
    """Number the places that ``str.format`` fills."""

    def number(found: re.Match) -> str:
        name = found[1]
        if not name or name not in names:
            names.append(name or None)
            return f"{{{len(names) - 1}}}"
        return f"{{{names.index(name)}}}"

    return FORMAT.sub(number, text)


def bare(text: str) -> str:
    """Leave out sentences that stand before and behind, and count anew.

    Example:
        >>> bare("{0} It returned {1}. {2}")
        'It returned {0}.'
    """
    text = re.sub(r"(\{\d+\})(?:\{\d+\})+", r"\1", " ".join(text.split()))
    text = re.sub(r"(?<=[.?!])\{\d+\}$", "", text)
    while found := re.match(r"\{\d+\} (?=[A-Z`{])(?!\{\d+\}[,:]? [a-z])", text):
        text = text[found.end() :]
    while found := re.search(r"(?<=[.?!]) \{\d+\}$", text):
        text = text[: found.start()]
    order = list(dict.fromkeys(PLACEHOLDER.findall(text)))
    return PLACEHOLDER.sub(lambda f: f"{{{order.index(f[0])}}}", text)


def reads_like_english(text: str) -> bool:
    """Tell if a literal has words to translate."""
    words = PLACEHOLDER.sub(" # ", CODE.sub(" # ", text))
    if text in NOT_OURS or NO_SENTENCE.search(words):
        return False
    if " " not in text.strip() and not text.endswith(("?", "!")):
        return False
    return bool(re.search(r"[A-Za-z]{2,}", words))


def literals(tree: ast.Module, about_words: bool) -> Iterator[tuple[int, str]]:
    """List the lines and the words of a file's literals.

    Args:
        tree: The file.
        about_words: Whether what the file names, if it is no text itself, are
            texts that are tried.
    """
    tried = {
        id(each)
        for each in tree.body
        if about_words
        and isinstance(each, ast.Assign)
        and not is_text(each.value)
    }
    yield from within(tree, tried)


def within(node: ast.AST, silent: set[int]) -> Iterator[tuple[int, str]]:
    """List those inside of a node, but for what is silent."""
    if is_silent(node) or id(node) in silent:
        return
    if isinstance(node, ast.keyword) and node.arg in KINDS_OF_PLACE:
        for each in ast.walk(node.value):
            if isinstance(each, ast.Constant) and each.value:
                yield each.lineno, f"{each.value} {{0}}"
        return
    if isinstance(node, ast.JoinedStr | ast.Constant) and isinstance(
        getattr(node, "value", ""), str
    ):
        yield node.lineno, template(node)
    for child in ast.iter_child_nodes(node):
        # The parts of an f-string are told with it.
        whole = isinstance(node, ast.JoinedStr) and is_text(child)
        if not whole:
            yield from within(child, silent)


def is_text(node: ast.AST) -> bool:
    """Tell if it is one text, or what is made by a call, but of a corpus."""
    if getattr(getattr(node, "func", None), "id", "") == "corpus":
        return False
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.Call)


def is_silent(node: ast.AST) -> bool:
    """Tell if nothing inside is shown in a report."""
    if isinstance(node, ast.FunctionDef) and node.name in NO_WORDS:
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # A docstring.
    if isinstance(node, ast.keyword) and node.arg in {"symptom", "metavar"}:
        return True  # A symptom is asked of the mistake.
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return getattr(node.exc.func, "id", "") in RAISED
    call = node.func if isinstance(node, ast.Call) else None
    return (
        isinstance(call, ast.Attribute)
        and isinstance(call.value, ast.Name)
        and call.value.id == "re"
    )


def written() -> dict[str, str]:
    """List the words of the source, each with the place that says it."""
    found: dict[str, str] = {}
    for path in sources():
        about_words = path.parent.name == "tokens" or path.stem == "bleu"
        tree = ast.parse(path.read_text("utf-8"))
        for line, text in literals(tree, about_words):
            if reads_like_english(text):
                place = f"{path.relative_to(ROOT).as_posix()}:{line}"
                for part in INNER.split(text):
                    found.setdefault(bare(part), place)
    return found


def registered() -> dict[str, str]:
    """List what the package knows by name, each with whom it belongs to."""
    import companion.zoo  # noqa: F401  # Some mistakes are registered there.
    from companion.contracts import COMPONENTS
    from companion.contracts.engine.levels import level_of
    from companion.contracts.engine.universal import contracts_of

    found: dict[str, str] = {}
    for name, component in COMPONENTS.items():
        for title, contract in contracts_of(component).items():
            found.setdefault(title, f"contract of {name}")
            found.setdefault(level_of(contract)[1], f"level in {name}")
        for axis in component.axes:
            found.setdefault(axis, f"axis of {name}")
            found.setdefault(f"{axis} {{0}}", f"axis of {name}")
        for mistake in component.mistakes:
            place = f"mistake {name}/{mistake.id}"
            found.setdefault(mistake.hint, place)
            found.setdefault(mistake.why, place)
            if mistake.symptom:
                found.setdefault(mistake.story, place)
                found.setdefault(mistake.symptom, place)
    del found[""]
    return found


def known() -> dict[str, str]:
    """List the messages about the mistakes that the tests know."""
    record = json.loads(KNOWN.read_text(encoding="utf-8"))
    return {
        text: f"{KNOWN.name}: {key}"
        for key, said in record.items()
        for text in said
    }
