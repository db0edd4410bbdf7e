"""Break the package a little, a thousand times, and see if a test notices.

    python tools/mutants.py [PART ...]

mutmut makes the changes, one at a time, and runs the tests of that part which
reach the changed function; its settings stand in pyproject.toml. What was found
goes to ``benchmarks/results/mutants.md``. Every mutant that lives needs a
reason in ``tests/survivors.toml``.
"""

import contextlib
import json
import os
import subprocess
import sys
import tomllib
from collections import Counter
from datetime import date
from importlib.metadata import version
from pathlib import Path

from mutants_page import ORPHAN, page, share

ROOT = Path(__file__).parents[1]
BAR = 90
# A part is a module or a package; these files test it.
PARTS = {
    "attention": ("test_attention.py",),
    "multihead": ("test_multihead.py",),
    "positions": ("test_positions.py", "test_positions_relative.py"),
    "masks": ("test_masks.py", "test_masks_libraries.py"),
    "blocks": ("test_blocks.py",),
    "decoding": ("test_decoding.py", "test_decoding_cache.py"),
    "training": (
        "training/test_checkpoint.py",
        "training/test_config.py",
        "training/test_diagnose.py",
        "training/test_loss.py",
        "training/test_steps.py",
        "training/test_trainer.py",
    ),
}
# Whole trainings, which would run anew for each mutant that they reach.
SLOW = "broken_run or healthy or sentences_by_heart"


def prepare(part: str, folder: Path) -> None:
    """Makes a folder in which mutmut changes one part and runs its tests."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("companion", "tests"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(ROOT / name)
    only = {
        "only_mutate": [f"companion/{part}.py", f"companion/{part}/*.py"],
        "pytest_add_cli_args_test_selection": [
            *(f"tests/{name}" for name in PARTS[part]),
            f"-k=not ({SLOW})",
        ],
    }
    # A list of strings is written alike in JSON and in TOML.
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in only.items()]
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    head, mark, tail = settings.partition("[tool.mutmut]\n")
    text = "".join([head, mark, *lines, tail])
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def run_mutmut(folder: Path) -> None:
    """Makes the changes that it has not made yet, and runs the tests."""
    # Named, even if all, mutmut first runs the tests as it will run them.
    command = Path(sys.executable).with_name("mutmut"), "run", "*"
    # A fork of a process that had several threads may wait for ever.
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, check=True, env=alone)


def found(folder: Path) -> dict:
    """How many mutants met which end, and the changes nobody noticed."""
    # Here, so that the tests of this module do without mutmut.
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    ends, alive = Counter(), []
    with contextlib.chdir(folder):
        for meta in sorted(Path("mutants").rglob("*.meta")):
            codes = json.loads(meta.read_bytes())["exit_code_by_key"]
            path = meta.relative_to("mutants").with_suffix("")
            for name, code in codes.items():
                end = status_by_exit_code[code]
                ends[end] += 1
                if end not in ("killed", "timeout", "not checked"):
                    diff = get_diff_for_mutant(name, path=path)
                    alive.append({"end": end, **change(name, diff)})
    return {"ends": ends, "alive": alive}


def change(name: str, diff: str) -> dict[str, str]:
    """The function that a mutant is of, and the lines that differ."""
    module, _, key = name.partition("__mutmut_")[0].rpartition(".")
    function = key.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    lines = diff.splitlines()[2:]
    was, became = (
        " ".join(x[1:].strip() for x in lines if x[:1] == sign) for sign in "-+"
    )
    return {"where": f"{module}.{function}", "was": was, "became": became}


def main(parts: list[str]) -> int:
    """Runs some parts, or all; 1 if more live than may."""
    wrong = [part for part in parts if part not in PARTS]
    if wrong:
        print(f"ONLY: expected some of {', '.join(PARTS)}, got {wrong[0]}")
        return 2
    kept = ROOT / "benchmarks" / "results" / "mutants.json"
    results = json.loads(kept.read_bytes()) if kept.exists() else {}
    facts = {name: version(name) for name in ("mutmut", "torch")}
    for part in parts or PARTS:
        folder = ROOT / "_build" / "mutants" / part
        prepare(part, folder)
        run_mutmut(folder)
        told = {"date": date.today().isoformat(), **facts, **found(folder)}
        results[part] = told
        kept.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    reasons = (ROOT / "tests" / "survivors.toml").read_text(encoding="utf-8")
    said = page(PARTS, results, tomllib.loads(reasons)["survivor"])
    kept.with_suffix(".md").write_text(said, encoding="utf-8")
    print(said.partition("\n\n##")[0])
    low = [part for part in results if share(results[part]["ends"]) < BAR]
    print(*(f"{part}: less than {BAR} % were noticed" for part in low))
    return int(bool(low) or ORPHAN in said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
