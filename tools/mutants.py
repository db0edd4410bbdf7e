"""Break the package a little, a thousand times, and see if a test notices.

    python tools/mutants.py [PART ...]

mutmut makes the changes, one at a time, and runs the tests of that part which
reach the changed function; its settings stand in pyproject.toml. The results
go to ``benchmarks/results/mutants.md``, where, unlike in mutmut's own list,
every mutant that lives stands below its reason, from ``tests/survivors.toml``.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
BAR = 90
PARTS = (
    *("attention", "multihead", "positions", "masks", "blocks"),
    *("decoding", "training"),
)
"""Modules or packages; their tests have the same name."""
# Whole trainings, other processes and many drawn examples, anew for each mutant
# that they reach.
SLOW = (
    "broken_run or healthy or sentences_by_heart or test_killed or "
    "test_distributed or test_properties"
)
NOTICED = ("killed", "timeout")
COLUMNS = "part mutants killed timeout alive left-out % date mutmut torch"
ORPHAN = "Nobody has said yet why it may live."
HEAD = """# The tests are tested

mutmut changes a line of the package, and the tests of its part run: one should
fail. `make mutants` does it again, `make mutants ONLY=attention` for one part;
it takes hours. A mutant that runs for ever counts as noticed, one that no test
reaches does not. Not changed are the messages of errors where they are raised,
docstrings, annotations, decorated functions, and what stands outside of
functions.

"""


def tests_of(part: str) -> list[str]:
    """List the test files of a part: the folder PART, or ``test_PART*.py``."""
    patterns = f"tests/test_{part}*.py", f"tests/{part}/**/test_*.py"
    paths = (path for pattern in patterns for path in ROOT.glob(pattern))
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def prepare(part: str, folder: Path) -> None:
    """Make a folder in which mutmut changes one part and runs its tests."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("companion", "tests"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(ROOT / name)
    only = {
        "only_mutate": [f"companion/{part}.py", f"companion/{part}/*.py"],
        "pytest_add_cli_args_test_selection": [
            *tests_of(part),
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
    """Make the changes that are not made yet, and run the tests."""
    # Named, even if all, mutmut first runs the tests as it will run them.
    command = Path(sys.executable).with_name("mutmut"), "run", "*"
    # A fork of a process that had several threads may wait for ever.
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, check=True, env=one_thread)


def collect(folder: Path) -> dict:
    """Count how many mutants met which end; list the changes nobody noticed."""
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
                if end not in (*NOTICED, "not checked"):
                    diff = get_diff_for_mutant(name, path=path)
                    alive.append({"end": end, **change(name, diff)})
    return {"ends": ends, "alive": alive}


def change(name: str, diff: str) -> dict[str, str]:
    """Return the function that a mutant is of, and the lines that differ."""
    module, _, key = name.partition("__mutmut_")[0].rpartition(".")
    function = key.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
    lines = diff.splitlines()[2:]
    was, became = (
        " ".join(x[1:].strip() for x in lines if x[:1] == sign) for sign in "-+"
    )
    return {"where": f"{module}.{function}", "was": was, "became": became}


def share(ends: dict[str, int]) -> float:
    """Return how many of a hundred mutants that were tried were noticed."""
    tried = sum(ends.values()) - ends.get("not checked", 0)
    return 100 * sum(ends.get(end, 0) for end in NOTICED) / max(tried, 1)


def page(
    parts: Iterable[str], results: dict[str, dict], reasons: list[dict]
) -> str:
    """Write the table; then each mutant that lives, below the reason it may.

    A reason has a ``match``, a regular expression for ``function: line →
    changed line``, and says ``why``.
    """
    names = COLUMNS.split()
    rows, lists = [names, ["---"] * len(names)], []
    for part in parts:
        if part not in results:
            rows.append([part, "not run"] + [""] * (len(names) - 2))
            continue
        result, ends = results[part], results[part]["ends"]
        counts = [sum(ends.values()), *(ends.get(end, 0) for end in NOTICED)]
        counts += [len(result["alive"]), ends.get("not checked", 0)]
        facts = [result[name] for name in ("date", "mutmut", "torch")]
        rows.append([part, *counts, f"{share(ends):.1f}", *facts])
        lists += ["", f"## {part}"]
        for why, mutants in _by_reason(result["alive"], reasons).items():
            lists += ["", why, "", *mutants]
    table = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return HEAD + "\n".join([*table, *lists]) + "\n"


def _by_reason(alive: list[dict], reasons: list[dict]) -> dict[str, list[str]]:
    groups = defaultdict(list)
    for m in alive:
        text = f"{m['where']}: {m['was']} → {m['became']}"
        fitting = (r["why"] for r in reasons if re.search(r["match"], text))
        end = "" if m["end"] == "survived" else f" ({m['end']})"
        why = " ".join(next(fitting, ORPHAN).split())
        groups[why].append(f"    {text}{end}")
    return groups


def main(parts: list[str]) -> int:
    """Run some parts, or all; return 1 if more live than may."""
    if unknown := [part for part in parts if part not in PARTS]:
        print(f"ONLY: expected some of {', '.join(PARTS)}, got {unknown[0]}")
        return 2
    results = json.loads(RESULTS.read_bytes()) if RESULTS.exists() else {}
    facts = {name: version(name) for name in ("mutmut", "torch")}
    for part in parts or PARTS:
        folder = ROOT / "_build" / "mutants" / part
        prepare(part, folder)
        run_mutmut(folder)
        today = {"date": date.today().isoformat()}
        results[part] = {**today, **facts, **collect(folder)}
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False))
    reasons = (ROOT / "tests" / "survivors.toml").read_text(encoding="utf-8")
    text = page(PARTS, results, tomllib.loads(reasons)["survivor"])
    RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text.partition("\n\n##")[0])
    low = [part for part in results if share(results[part]["ends"]) < BAR]
    print(*(f"{part}: less than {BAR} % were noticed" for part in low))
    return int(bool(low) or ORPHAN in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
