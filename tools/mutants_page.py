"""What became of the mutants, as a page for people."""

import re
from collections import defaultdict
from collections.abc import Iterable

ORPHAN = "Nobody has said yet why it may live."
HEAD = """# The tests are tested

mutmut changes a line of the package, and the tests of its part run: one should
fail. `make mutants` does it again, `make mutants ONLY=attention` for one part;
it takes hours. A mutant that runs for ever counts as noticed, one that no test
reaches does not. Not changed are the messages of errors where they are raised,
docstrings, annotations, decorated functions, and what stands outside of
functions.

"""
NOTICED = ("killed", "timeout")
COLUMNS = "part mutants killed timeout alive left-out % date mutmut torch"


def page(
    parts: Iterable[str], results: dict[str, dict], reasons: list[dict]
) -> str:
    """The table; then each mutant that lives, below the reason it may.

    A reason has a ``match``, a regular expression for ``function: line →
    changed line``, and says ``why``.
    """
    names = COLUMNS.split()
    rows = [names, ["---"] * len(names)]
    lines = []
    for part in parts:
        if part not in results:
            rows.append([part, "not run"] + [""] * (len(names) - 2))
            continue
        told = results[part]
        rows.append([part, *counts(told)])
        lines += ["", f"## {part}", *alive(told["alive"], reasons)]
    table = [f"| {' | '.join(map(str, row))} |" for row in rows]
    return HEAD + "\n".join([*table, *lines]) + "\n"


def counts(told: dict) -> list:
    """The cells of a part's row, behind its name."""
    ends = told["ends"]
    cells = [sum(ends.values()), *(ends.get(e, 0) for e in NOTICED)]
    cells += [len(told["alive"]), ends.get("not checked", 0)]
    cells += [f"{share(ends):.1f}"]
    return cells + [told[name] for name in ("date", "mutmut", "torch")]


def share(ends: dict[str, int]) -> float:
    """Of a hundred mutants that were tried, how many were noticed."""
    tried = sum(ends.values()) - ends.get("not checked", 0)
    return 100 * sum(ends.get(end, 0) for end in NOTICED) / max(tried, 1)


def alive(mutants: list[dict], reasons: list[dict]) -> list[str]:
    """The mutants that live, those with one reason below each other."""
    groups = defaultdict(list)
    for m in mutants:
        told = f"{m['where']}: {m['was']} → {m['became']}"
        fitting = (r["why"] for r in reasons if re.search(r["match"], told))
        why = " ".join(next(fitting, ORPHAN).split())
        if m["end"] != "survived":
            told += f" ({m['end']})"
        groups[why].append(f"    {told}")
    lines = []
    for why, told in groups.items():
        lines += ["", why, "", *told]
    return lines
