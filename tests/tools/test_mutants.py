"""The tests of the tests: which mutants live, and why they may."""

import json
import tomllib

import mutants
import pytest
from support.contents import ROOT

pytestmark = pytest.mark.once

LIVES = {
    "end": "survived",
    "where": "companion.blocks.norm.layer_norm",
    "was": "x + eps",
    "became": "x - eps",
}
RESULT = {
    "ends": {"killed": 7, "timeout": 1, "survived": 2, "not checked": 3},
    "alive": [LIVES, LIVES | {"end": "no tests", "became": "x"}],
    "date": "2026-11-21",
    "mutmut": "3.8.1",
    "torch": "2.13.0",
}


@pytest.mark.parametrize("part", mutants.PARTS)
def test_one_part_is_changed_and_its_own_tests_are_run(part, tmp_path):
    for _ in range(2):  # Again, as a second run does.
        mutants.prepare(part, tmp_path)
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)["tool"]["mutmut"]
    assert settings["source_paths"] == ["companion"]
    (tested, *_) = (
        path for name in settings["only_mutate"] for path in tmp_path.glob(name)
    )
    assert tested
    *tests, chosen = settings["pytest_add_cli_args_test_selection"]
    assert tests
    assert all((tmp_path / test).is_file() for test in tests)
    assert chosen == f"-k=not ({mutants.SLOW})"


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("a.b.x_norm__mutmut_3", "a.b.norm"),
        ("a.b.x__kept__mutmut_12", "a.b._kept"),
        ("a.b.xǁDropoutǁforward__mutmut_1", "a.b.Dropout.forward"),
    ],
)
def test_a_mutant_is_named_by_its_function_and_its_line(name, where):
    diff = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n def f():\n-    a < b\n+    a <= b\n"
    expected = {"where": where, "was": "a < b", "became": "a <= b"}
    assert mutants.change(name, diff) == expected


def test_the_page_shows_each_part_and_each_mutant_below_its_reason():
    reasons = [{"match": "layer_norm: .* → x - eps$", "why": "Because\nso."}]
    page = mutants.page(["blocks", "masks"], {"blocks": RESULT}, reasons)
    # What was not tried counts neither way.
    row = "| blocks | 13 | 7 | 1 | 2 | 3 | 80.0 | 2026-11-21 | 3.8.1 | 2.13.0 |"
    assert row in page
    assert "| masks | not run |" in page
    line = "    companion.blocks.norm.layer_norm: x + eps → x"
    assert f"\nBecause so.\n\n{line} - eps\n" in page
    assert f"\n{mutants.ORPHAN}\n\n{line} (no tests)\n" in page
    assert mutants.share({"not checked": 3}) == 0


def test_a_part_that_is_none_is_named(capsys):
    assert mutants.main(["attention", "optics"]) == 2
    assert "ONLY: expected some of attention, " in capsys.readouterr().out


def test_the_report_is_made_of_the_results_and_explains_all_of_them():
    results = json.loads(mutants.RESULTS.read_bytes())
    reasons = (ROOT / "tests" / "survivors.toml").read_text(encoding="utf-8")
    page = mutants.RESULTS.with_suffix(".md").read_text(encoding="utf-8")
    expected = tomllib.loads(reasons)["survivor"]
    assert page == mutants.page(mutants.PARTS, results, expected)
    assert mutants.ORPHAN not in page
    for result in results.values():
        assert mutants.share(result["ends"]) >= mutants.BAR
