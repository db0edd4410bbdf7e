"""The tests of the tests: which mutants live, and why they may."""

import json
import tomllib
from pathlib import Path

import mutants
import pytest
from mutants_page import ORPHAN, page, share

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "benchmarks" / "results" / "mutants.md"
LIVES = {
    "end": "survived",
    "where": "companion.blocks.norm.layer_norm",
    "was": "x + eps",
    "became": "x - eps",
}
TOLD = {
    "ends": {"killed": 7, "timeout": 1, "survived": 2, "not checked": 3},
    "alive": [LIVES, LIVES | {"end": "no tests", "became": "x"}],
    "date": "2026-11-21",
    "mutmut": "3.8.1",
    "torch": "2.13.0",
}


def test_every_part_has_modules_and_tests():
    for part, tests in mutants.PARTS.items():
        module = ROOT / "companion" / part
        assert module.is_dir() or module.with_suffix(".py").exists()
        for name in tests:
            assert (ROOT / "tests" / name).exists()


def test_one_part_is_changed_and_its_own_tests_are_run(tmp_path):
    mutants.prepare("positions", tmp_path)
    mutants.prepare("positions", tmp_path)  # Again, as a second run does.
    assert (tmp_path / "companion" / "positions").is_dir()
    text = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    settings = tomllib.loads(text)["tool"]["mutmut"]
    assert settings["source_paths"] == ["companion"]
    assert settings["only_mutate"] == [
        "companion/positions.py",
        "companion/positions/*.py",
    ]
    assert settings["pytest_add_cli_args_test_selection"] == [
        "tests/test_positions.py",
        "tests/test_positions_relative.py",
        f"-k=not ({mutants.SLOW})",
    ]


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("a.b.x_norm__mutmut_3", "a.b.norm"),
        ("a.b.x__kept__mutmut_12", "a.b._kept"),
        ("a.b.xǁDropoutǁforward__mutmut_1", "a.b.Dropout.forward"),
    ],
)
def test_a_mutant_is_told_by_its_function_and_its_line(name, where):
    diff = "--- f\n+++ f\n@@ -1,3 +1,3 @@\n def f():\n-    a < b\n+    a <= b\n"
    told = {"where": where, "was": "a < b", "became": "a <= b"}
    assert mutants.change(name, diff) == told


def test_what_was_not_tried_counts_neither_way():
    assert share(TOLD["ends"]) == 80
    assert share({"not checked": 3}) == 0


def test_the_page_shows_each_part_and_each_mutant_below_its_reason():
    reasons = [{"match": "layer_norm: .* → x - eps$", "why": "Because\nso."}]
    said = page(["blocks", "masks"], {"blocks": TOLD}, reasons)
    row = "| blocks | 13 | 7 | 1 | 2 | 3 | 80.0 | 2026-11-21 | 3.8.1 | 2.13.0 |"
    assert row in said
    assert "| masks | not run |" in said
    line = "    companion.blocks.norm.layer_norm: x + eps → x"
    assert f"\nBecause so.\n\n{line} - eps\n" in said
    assert f"\n{ORPHAN}\n\n{line} (no tests)\n" in said


def test_a_part_that_is_none_is_named(capsys):
    assert mutants.main(["attention", "optics"]) == 2
    assert "ONLY: expected some of attention, " in capsys.readouterr().out


def test_the_report_is_made_of_what_was_found_and_explains_all_of_it():
    results = json.loads(REPORT.with_suffix(".json").read_bytes())
    text = (ROOT / "tests" / "survivors.toml").read_text(encoding="utf-8")
    reasons = tomllib.loads(text)["survivor"]
    said = REPORT.read_text(encoding="utf-8")
    assert said == page(mutants.PARTS, results, reasons)
    assert ORPHAN not in said
    for told in results.values():
        assert share(told["ends"]) >= mutants.BAR
