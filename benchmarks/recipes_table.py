"""The results of all recipes as one table; what is not there says so."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

HEAD = ("recipe", "what", "reached", "seeds", "steps", "time", "memory", "on")
NOTHING = "not measured"


def table(whats: Mapping[str, str], results: Path) -> str:
    """Markdown: a row for each result, from the files in ``results``.

    ``whats`` says of each recipe what it measures, for those without a result.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    files = sorted(results.glob("recipe-*.json"))
    told = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for name, said in whats.items():
        mine = [_row(result) for result in told if result["recipe"] == name]
        rows += mine or [(name, said, NOTHING, *("",) * (len(HEAD) - 3))]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def what(measure: str, beside: str) -> str:
    """What is measured, and what its number stands beside."""
    return f"{measure}; {beside}".removesuffix("; ")


def _row(result: dict) -> Sequence[str]:
    runs = result["runs"]
    done, planned = result["config"]["steps"], result["planned_steps"]
    return (
        result["recipe"],
        what(result["measure"], result["beside"]),
        _band([run["score"] for run in runs], result["digits"]),
        ", ".join(str(run["seed"]) for run in runs),
        str(done) if done == planned else f"{done} of {planned}",
        _time(runs, result["kind"]),
        f"{max(run['memory_mib'] for run in runs):.0f} MiB",
        f"{result['device']}, {result['threads']} thread(s), {result['date']}",
    )


def _band(scores: Sequence[float], digits: int) -> str:
    ends = {f"{score:.{digits}f}" for score in (min(scores), max(scores))}
    return " … ".join(sorted(ends, key=float))


def _time(runs: Sequence[dict], kind: str) -> str:
    """Of the slowest: of a CPU the time it worked, if it never stopped."""
    # What else the machine does counts in the time on the clock.
    cpu = [run["cpu_seconds"] for run in runs]
    worked = kind == "cpu" and None not in cpu
    most = max(cpu if worked else (run["seconds"] for run in runs))
    said = f"{most:.0f} s" if most < 120 else f"{most / 60:.0f} min"
    return f"{said} of CPU" if worked else said
