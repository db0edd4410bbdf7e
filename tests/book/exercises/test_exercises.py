"""Every exercise of the book: its stub, its three wrong answers, its hints.

That a solution passes, the notebook's own cells assert, and nbval runs them.
"""

import ast
import re
from itertools import takewhile
from typing import NamedTuple

import nbformat
import pytest
from book.exercises.wrong_tests import WRONG as WRONG_TESTS
from support.contents import CHAPTERS, ROOT

from companion.contracts import COMPONENTS
from companion.zoo import check_test

pytestmark = pytest.mark.once

CHECKED = re.compile(
    r'check\("(?P<component>\w+)", \w+(?:, strict=True)?\)|'
    r'check_test\(\s*"(?P<sick>\w+)", "(?P<animal>[\w ]+)", \w+\s*\)'
)
HINT = re.compile(
    r"<details><summary>(.+?)</summary>\n\n(.+?)\n\n</details>", re.S
)

# The cell of the stub -> ids of known mistakes: what is often written there.
TYPICAL = {
    "efficiency-exercise-softmax": "sum-not-rescaled "
    "a-softmax-for-each-block nan-in-a-hidden-block",
    "efficiency-lab-exercise-quantize": "cut-off one-scale-for-all without-abs",
    "efficiency-lab-exercise-guess": "from-the-target-again "
    "ratio-upside-down always-kept",
    "efficiency-lab-exercise-pages": "writes-into-shared-blocks "
    "frees-shared-blocks one-table-for-both",
    "efficiency-lab-exercise-flash": "sum-of-the-row-forgotten "
    "upper-left-corner all-scores-at-once",
    "tokens-exercise-encode-code": "longest-match last-learned-first "
    "joins-overlapping-pairs",
    "tokens-lab-exercise-learn": "frequency-forgotten counted-only-once "
    "joins-overlapping-pairs",
    "tokens-lab-exercise-decode": "token-by-token joined-by-spaces "
    "read-as-latin",
    "tokens-lab-exercise-split": "unescaped special-lost shorter-first",
    "rnn-exercise-repair": "forgets-between-steps "
    "transposed-memory one-step-late",
    "rnn-exercise-rnn": "starts-from-zero overwritten reshaped-for-a-transpose",
    "seq2seq-exercise-alignment": "over-the-batch first-query-for-all cosine",
    "seq2seq-exercise-repair": "over-the-batch naive-softmax cosine",
    "attention-exercise-softmax": "overflows one-maximum-for-all ignores-dim",
    "attention-exercise-masked": "multiplied-afterwards "
    "nan-in-empty-rows mask-times-a-billion",
    "attention-exercise-attention": "unscaled over-the-queries upside-down",
    "multihead-exercise-split": "viewed-straight "
    "every-third-column batch-and-heads-mixed",
    "multihead-exercise-multihead": "split-by-view-alone "
    "joined-by-view-alone upside-down",
    "multihead-exercise-grouped": "repeated-in-the-wrong-order "
    "heads-attend-to-heads multiplied-afterwards",
    "positions-exercise-sinusoidal": "dimension-for-i "
    "sines-then-cosines even-widths-only",
    "positions-exercise-add": "indexed-by-the-batch "
    "one-vector-for-all added-in-place",
    "positions-exercise-rope": "turned-by-place "
    "pairs-that-disagree one-sign-lost",
    "masks-exercise-causal": "transposed-triangle "
    "marks-what-is-hidden sees-the-next-one-too",
    "masks-exercise-padding": "marks-the-padding "
    "hides-rows-of-padding padding-is-always-zero",
    "masks-exercise-combine": "joined-by-or "
    "causal-for-the-source memory-mask-from-the-target",
    "blocks-exercise-norm": "over-the-batch unbiased eps-outside-the-root",
    "blocks-exercise-gradient": "the-variance-is-a-constant "
    "over-the-positions divided-by-one-less",
    "blocks-exercise-ff": "nothing-between "
    "ends-with-a-relu adds-and-norms-itself",
    "blocks-exercise-encoder": "mask-in-the-first-layer-only "
    "mask-upside-down the-same-layer-twice",
    "transformer-exercise-count": "tied-table-counted-twice "
    "matrices-without-biases decoder-is-an-encoder",
    "transformer-exercise-model": "asks-the-target-twice "
    "decoder-reads-padding memory-of-the-first-layer",
    "transformer-exercise-maps": "every-layer-reads-the-input "
    "asked-after-it-has-run mask-in-the-first-layer-only",
    "training-exercise-schedule": "without-warm-up the-larger-one a-step-late",
    "training-exercise-shift": "unshifted rolled-round shifted-left",
    "training-exercise-smoothing": "counts-padding "
    "unsmoothed softmax-over-positions",
    "decoding-exercise-greedy": "bos-included ignores-eos eos-left-out",
    "decoding-exercise-beam": "greedy-in-disguise "
    "extends-the-finished unpenalised",
    "decoding-exercise-filter": "times-temperature "
    "loses-the-crossing-token left-in-order",
    "decoding-exercise-bleu": "unclipped brevity-unpunished arithmetic-mean",
    "variants-mask-exercise": "masks-all-it-chooses "
    "masks-padding loss-everywhere",
    "variants-span-exercise": "a-sentinel-a-token "
    "sentinels-count-up never-says-it-is-over",
    "variants-grouped-exercise": "dealt-out-in-turns "
    "first-head-for-all scaled-by-d-model",
}


class Exercise(NamedTuple):
    """An exercise as its notebook holds it.

    Attributes:
        stub: The cell of the stub.
        component: What its check asks for.
        animal: The sick one, if the answer is a test that finds it.
        report: What its check says of the stub.
        solution: The code of the solution.
        hints: What stands between the check and the solution, as Markdown.
    """

    stub: nbformat.NotebookNode
    component: str
    animal: str | None
    report: str
    solution: str
    hints: str


def tagged(cell, tag):
    return tag in cell.metadata.get("tags", [])


def exercises_of(chapter):
    """The exercises of a notebook, in order."""
    cells = nbformat.read(ROOT / f"{chapter}.ipynb", as_version=4).cells
    for i, stub in enumerate(cells):
        if not tagged(stub, "exercise"):
            continue
        between = list(
            takewhile(lambda c: not tagged(c, "solution"), cells[i + 1 :])
        )
        [(check, asked)] = [
            (c, found)
            for c in between
            if (found := CHECKED.fullmatch(c.source))
        ]
        yield Exercise(
            stub,
            asked["component"] or asked["sick"],
            asked["animal"],
            " ".join(check.outputs[0].data["text/plain"].split()),
            cells[i + 1 + len(between)].source,
            "\n".join(c.source for c in between if c.cell_type == "markdown"),
        )


EXERCISES = [e for chapter in CHAPTERS for e in exercises_of(chapter)]
TESTS = [
    (exercise, *wrong)
    for exercise in EXERCISES
    for wrong in WRONG_TESTS.get((exercise.component, exercise.animal), ())
]
every_exercise = pytest.mark.parametrize(
    "exercise", EXERCISES, ids=lambda exercise: exercise.stub.id
)


def test_every_exercise_has_three_wrong_answers_that_check_recognises():
    """What check says of them, contracts/test_known_mistakes.py asserts."""
    functions = {e.stub.id: e.component for e in EXERCISES if not e.animal}
    assert set(functions) == set(TYPICAL)
    for cell, component in functions.items():
        typical = set(TYPICAL[cell].split())
        assert len(typical) == 3
        assert typical <= {m.id for m in COMPONENTS[component].mistakes}
    tests = {(e.component, e.animal) for e in EXERCISES if e.animal}
    assert tests == set(WRONG_TESTS)
    assert {len(answers) for answers in WRONG_TESTS.values()} == {3}


@every_exercise
def test_a_stub_is_told_that_nothing_is_written_and_what_to_write(exercise):
    name = ast.parse(exercise.stub.source).body[0].name
    signature = COMPONENTS[exercise.component].signature
    wanted = "fn)" if exercise.animal else signature.partition("(")[2]
    assert (
        f"Nothing is written here yet. Write `def {name}({wanted}`"
    ) in exercise.report


@pytest.mark.parametrize(
    ("exercise", "test", "hint"),
    TESTS,
    ids=[f"{e.stub.id}-{test.__name__}" for e, test, _ in TESTS],
)
def test_a_typical_wrong_test_is_told_what_it_does_not_see(
    exercise, test, hint
):
    report = check_test(exercise.component, exercise.animal, test)
    assert not report.passed, f"{test.__name__} passes"
    assert any(hint in f.message for f in report.failures), str(report)


@every_exercise
def test_three_hints_come_in_order_and_give_no_solution_away(exercise):
    hints = HINT.findall(exercise.hints)
    assert [title for title, _ in hints] == ["Hint 1", "Hint 2", "Hint 3"]
    lines = [line.strip() for line in exercise.solution.splitlines()]
    # A line may be given, and that is the last hint; never the whole.
    for _, hint in hints[:2]:
        assert not any(line in hint for line in lines if len(line) > 20)
    for _, hint in hints:
        assert "```" not in hint
