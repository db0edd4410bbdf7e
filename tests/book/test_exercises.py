"""Every exercise of the book: the stub, the solution and three wrong answers.

Of the cells before a stub and a solution, only what they need is run: the other
cells train.
"""

import ast
import dis
import re
from collections import defaultdict
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import nbformat
import pytest
from wrong_tests import WRONG as WRONG_TESTS

from companion.contracts import COMPONENTS, check
from companion.zoo import ANIMALS, check_test

pytestmark = pytest.mark.once

BOOK = Path(__file__).parents[2] / "book"
CHECKED = re.compile(
    r'check\("(?P<component>\w+)", \w+\)|check_test\(\s*"(?P<sick>\w+)", '
    r'"(?P<animal>[\w ]+)", \w+\s*\)'
)
HINT = re.compile(
    r"<details><summary>(.+?)</summary>\n\n(.+?)\n\n</details>", re.S
)

# The cell of the stub -> animals of the zoo: what is often written there.
TYPICAL = {
    "rnn-exercise-repair": (
        "forgets between steps",
        "transposed memory",
        "one step late",
    ),
    "rnn-exercise-rnn": (
        "starts from zero",
        "overwritten",
        "reshaped for a transpose",
    ),
    "seq2seq-exercise-alignment": (
        "over the batch",
        "first query for all",
        "cosine",
    ),
    "seq2seq-exercise-repair": ("over the batch", "naive softmax", "cosine"),
    "attention-exercise-softmax": (
        "overflows",
        "one maximum for all",
        "ignores dim",
    ),
    "attention-exercise-masked": (
        "multiplied afterwards",
        "nan in empty rows",
        "mask times a billion",
    ),
    "attention-exercise-attention": (
        "unscaled",
        "over the queries",
        "upside down",
    ),
    "multihead-exercise-split": (
        "viewed straight",
        "every third column",
        "batch and heads mixed",
    ),
    "multihead-exercise-multihead": (
        "split by view alone",
        "joined by view alone",
        "upside down",
    ),
    "multihead-exercise-grouped": (
        "repeated in the wrong order",
        "heads attend to heads",
        "multiplied afterwards",
    ),
    "positions-exercise-sinusoidal": (
        "dimension for i",
        "sines then cosines",
        "even widths only",
    ),
    "positions-exercise-add": (
        "indexed by the batch",
        "one vector for all",
        "added in place",
    ),
    "positions-exercise-rope": (
        "turned by place",
        "pairs that disagree",
        "one sign lost",
    ),
    "masks-exercise-causal": (
        "transposed triangle",
        "marks what is hidden",
        "sees the next one too",
    ),
    "masks-exercise-padding": (
        "marks the padding",
        "hides rows of padding",
        "padding is always zero",
    ),
    "masks-exercise-combine": (
        "joined by or",
        "causal for the source",
        "memory mask from the target",
    ),
    "blocks-exercise-norm": (
        "over the batch",
        "unbiased",
        "eps outside the root",
    ),
    "blocks-exercise-ff": (
        "nothing between",
        "ends with a relu",
        "adds and norms itself",
    ),
    "blocks-exercise-encoder": (
        "mask in the first layer only",
        "mask upside down",
        "the same layer twice",
    ),
    "transformer-exercise-count": (
        "tied table counted twice",
        "matrices without biases",
        "decoder is an encoder",
    ),
    "transformer-exercise-model": (
        "asks the target twice",
        "decoder reads padding",
        "memory of the first layer",
    ),
    "transformer-exercise-maps": (
        "every layer reads the input",
        "asked after it has run",
        "mask in the first layer only",
    ),
    "training-exercise-schedule": (
        "without warm up",
        "the larger one",
        "a step late",
    ),
    "training-exercise-shift": ("unshifted", "rolled round", "shifted left"),
    "training-exercise-smoothing": (
        "counts padding",
        "unsmoothed",
        "softmax over positions",
    ),
    "decoding-exercise-greedy": ("bos included", "ignores eos", "eos left out"),
    "decoding-exercise-beam": (
        "greedy in disguise",
        "extends the finished",
        "unpenalised",
    ),
    "decoding-exercise-filter": (
        "times temperature",
        "loses the crossing token",
        "left in order",
    ),
    "decoding-exercise-bleu": (
        "unclipped",
        "brevity unpunished",
        "arithmetic mean",
    ),
    "variants-mask-exercise": (
        "masks all it chooses",
        "masks padding",
        "loss everywhere",
    ),
    "variants-span-exercise": (
        "a sentinel a token",
        "sentinels count up",
        "never says it is over",
    ),
    "variants-grouped-exercise": (
        "dealt out in turns",
        "first head for all",
        "scaled by d model",
    ),
}


class Exercise(NamedTuple):
    """An exercise as its notebook holds it.

    Attributes:
        cell: The name of the stub's cell.
        component: What its check asks for.
        animal: The sick one, if the answer is a test that finds it.
        before: The code up to and with the solution.
        stub: The code of the stub.
        solution: The code of the solution.
        hints: What stands between the check and the solution, as Markdown.
    """

    cell: str
    component: str
    animal: str | None
    before: str
    stub: str
    solution: str
    hints: str


def tagged(cell, tag):
    return tag in cell.metadata.get("tags", [])


def exercises_of(path):
    """The exercises of a notebook, in order; a stub is never among the code."""
    cells, before = nbformat.read(path, as_version=4).cells, []
    for i, cell in enumerate(cells):
        if not tagged(cell, "exercise"):
            before += [cell.source] if cell.cell_type == "code" else []
            continue
        after = next(
            j for j in range(i, len(cells)) if tagged(cells[j], "solution")
        )
        between = cells[i + 1 : after]
        [asked] = [
            found
            for c in between
            if (found := CHECKED.search(c.source))
            and found.end() == len(c.source)
        ]
        solution = cells[after].source
        yield Exercise(
            cell.id,
            asked["component"] or asked["sick"],
            asked["animal"],
            "\n".join([*before, solution]),
            cell.source,
            solution,
            "\n".join(c.source for c in between if c.cell_type == "markdown"),
        )


EXERCISES = [e for p in sorted(BOOK.glob("*.ipynb")) for e in exercises_of(p)]
WRONG = [
    (exercise, wrong)
    for exercise in EXERCISES
    for wrong in TYPICAL.get(exercise.cell, ())
]
TESTS = [
    (exercise, *wrong)
    for exercise in EXERCISES
    for wrong in WRONG_TESTS.get((exercise.component, exercise.animal), ())
]


def written(exercise, code, everything):
    """The function that ``code`` defines, with what it needs of the rest.

    Loops are left out: their variables have names that later cells take.
    """
    body = [s for s in ast.parse(everything).body if not isinstance(s, ast.For)]
    makers = defaultdict(list)
    for statement in body:
        for name in names(statement, "STORE_NAME"):
            makers[name].append(statement)
    function = ast.parse(code).body[0].name
    needed, asking = [], [function]
    while asking:
        for statement in makers.get(asking.pop(), ()):
            if statement not in needed:
                needed.append(statement)
                asking += names(statement, "LOAD_NAME", "LOAD_GLOBAL")
    module = {"__name__": exercise.cell}
    exec(compiled(*sorted(needed, key=body.index)), module)
    return module[function]


def compiled(*statements):
    module = ast.fix_missing_locations(ast.Module([*statements], []))
    return compile(module, "<cells>", "exec", dont_inherit=True)


def names(statement, *operations):
    """The names of its module that a statement reads, or that it makes."""
    found, codes = set(), [compiled(statement)]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        steps = dis.get_instructions(code)
        found |= {step.argval for step in steps if step.opname in operations}
    return found


def judged(exercise, fn):
    """The report that the exercise's check gives on ``fn``."""
    if exercise.animal:
        return check_test(exercise.component, exercise.animal, fn)
    return check(exercise.component, fn)


def animal_called(name, component):
    found = [a for a in ANIMALS if (a.name, a.component) == (name, component)]
    assert len(found) == 1, f"{component} has no animal called {name}"
    return found[0]


def by_cell(value):
    name = getattr(value, "__name__", value)
    return getattr(value, "cell", name).replace(" ", "_")


def test_every_exercise_has_three_wrong_answers():
    functions = {e.cell for e in EXERCISES if not e.animal}
    assert functions == set(TYPICAL)
    tests = {(e.component, e.animal) for e in EXERCISES if e.animal}
    assert tests == set(WRONG_TESTS)
    answers = [*TYPICAL.values(), *WRONG_TESTS.values()]
    assert {len(set(found)) for found in answers} == {3}


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_cell)
def test_a_stub_is_told_that_nothing_is_written_and_what_to_write(exercise):
    stub = written(exercise, exercise.stub, exercise.stub)
    report = judged(exercise, stub)
    assert len(report.failures) == 1
    signature = COMPONENTS[exercise.component].signature
    wanted = "fn)" if exercise.animal else signature.partition("(")[2]
    assert report.failures[0].message.startswith(
        f"Nothing is written here yet. Write `def {stub.__name__}({wanted}`"
    )


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_cell)
def test_a_solution_passes(exercise):
    solution = written(exercise, exercise.solution, exercise.before)
    report = judged(exercise, solution)
    assert report.passed, str(report)


@pytest.mark.parametrize(("exercise", "wrong"), WRONG, ids=by_cell)
def test_a_typical_wrong_answer_is_told_its_mistake(exercise, wrong):
    creature = animal_called(wrong, exercise.component)
    report = check(exercise.component, creature.fn)
    assert not report.passed, f"{wrong} passes"
    first = report.failures[0]
    assert first.contract == creature.contract, str(report)
    assert creature.says in first.message, str(report)


@pytest.mark.parametrize(("exercise", "test", "says"), TESTS, ids=by_cell)
def test_a_typical_wrong_test_is_told_what_it_does_not_see(
    exercise, test, says
):
    report = judged(exercise, test)
    assert not report.passed, f"{test.__name__} passes"
    assert any(says in f.message for f in report.failures), str(report)


@pytest.mark.parametrize("exercise", EXERCISES, ids=by_cell)
def test_three_hints_come_in_order_and_give_no_solution_away(exercise):
    hints = HINT.findall(exercise.hints)
    assert [title for title, _ in hints] == ["Hint 1", "Hint 2", "Hint 3"]
    lines = exercise.solution.splitlines()
    # A line may be given, and that is the last hint; never the whole.
    for _, hint in hints[:2]:
        assert not any(
            line.strip() in hint for line in lines if len(line.strip()) > 20
        )
    for _, hint in hints:
        assert "```" not in hint
