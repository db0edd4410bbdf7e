"""What was measured, as JSON for programs and as a page for people."""

import json
import re
from pathlib import Path

TITLES = {
    "training": "A training step",
    "compiled": "A training step, compiled",
    "limit": "The share of the machine's matmul rate",
    "decoding": "Decoding, batch 32",
    "memory": "Peak memory of attention",
    "imports": "Time to import",
    "check": "What the check of a file costs",
    "learning": "Small tasks to exact match",
}
NOTES = {
    "training": (
        "Labels smoothed by 0, dropout 0.1 where each library puts it, Adam, "
        "gradients clipped, one batch of 32 sentences of 20 to 32 tokens out "
        "of 8,000: a fifth of all positions is padding, which on a CPU "
        "`companion` leaves out of its feed-forward networks and its logits, "
        "and the others compute. Whatever has `bf16` or `rerouted` in its name "
        "is beside the race: other numbers than plain fp32."
    ),
    "compiled": (
        "As above, each loss under `torch.compile` with its default settings; "
        "compiled, `companion` leaves no padding out. What compiling takes is "
        "not in these times."
    ),
    "memory": "Of one attention of 2 heads of 64, batch 1, inputs not counted.",
    "check": (
        "CPU seconds of `python -m companion check FILE` with all processes "
        "that it starts, the import of PyTorch among them."
    ),
    "decoding": "Every sentence is written to the last token.",
}


def write(
    facts: dict[str, str], sections: dict[str, list[dict]], folder: Path
) -> list[Path]:
    """Both files, named by date, machine and device.

    Sections that the file of that day has already, and this run has not,
    stay as they are; then all commits are told.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machine = re.sub(r"[^a-z0-9]+", "-", facts["machine"].lower()).strip("-")
    stem = f"{facts['date']}-{machine}"
    data, page = folder / f"{stem}.json", folder / f"{stem}.md"
    if data.exists():
        before = json.loads(data.read_text(encoding="utf-8"))
        sections = before["sections"] | sections
        commits = [f["commit"] for f in (before["facts"], facts)]
        facts = before["facts"] | facts
        facts["commit"] = ", ".join(dict.fromkeys(commits))
    told = {"facts": facts, "sections": sections}
    data.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    page.write_text(as_page(facts, sections), encoding="utf-8")
    return [data, page]


def as_page(facts: dict[str, str], sections: dict[str, list[dict]]) -> str:
    """Markdown: the machine, then a table for each section."""
    lines = ["# Benchmarks", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    for key, title in TITLES.items():
        lines += ["", f"## {title}", ""]
        if key in NOTES:
            lines += [NOTES[key], ""]
        rows = sections.get(key)
        lines += table(rows) if rows else ["Not measured."]
    return "\n".join(lines) + "\n"


def table(rows: list[dict]) -> list[str]:
    """One line a row, under the names of its columns."""
    names = list(rows[0])
    lines = [_line(names), _line(["---"] * len(names))]
    return lines + [_line(_number(row[name]) for name in names) for row in rows]


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: object) -> str:
    """Three digits are all that such a number is good for."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
