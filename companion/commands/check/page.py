"""What ``check`` found, as a page that stands alone and as JSON.

A report is there whole or not at all: it is written beside its place, and then
put there.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from companion import __version__
from companion.commands.check import counted, total, untried, worst
from companion.commands.check.process import Section
from companion.figures.kit.inline import system_style
from companion.sanitize import sanitize
from companion.words import ENGLISH, say

__all__ = ["as_json", "page", "write_html", "write_json"]

FORMAT = 1
"""Counted up when a field of the JSON is renamed or left out."""

STYLE = """
html { background: Canvas; color-scheme: light dark; }
body.companion { background: var(--paper); margin: 0; padding: 1rem;
  max-width: none; overflow-wrap: anywhere; }
.companion main { max-width: 62rem; margin: 0 auto; }
.companion h1 { font-size: 1.5rem; line-height: 1.25; }
.companion h2 { font-size: 1.2rem; margin: 2rem 0 0.3rem; }
.companion h3 { font-size: 1rem; margin: 1.2rem 0 0.3rem; }
.companion .muted { color: var(--muted); }
.companion .summary { font-weight: 700; }
.companion li { margin: 0.3rem 0; }
.companion figure.companion { margin: 0.4rem 0 1rem; }
@media (max-width: 30rem) { body.companion { padding: 0.4rem; } }
@media print { .companion section { break-inside: avoid; } }
"""


def write_html(
    path: Path, asked: str, sections: Sequence[Section], lang: str = ENGLISH
) -> None:
    """Write the page.

    Raises:
        OSError: It cannot be written.
    """
    _write(path, page(asked, sections, lang))


def write_json(path: Path, sections: Sequence[Section]) -> None:
    """Write the JSON; ``-`` writes it to the terminal.

    Raises:
        OSError: It cannot be written.
    """
    text = json.dumps(as_json(sections), ensure_ascii=False, indent=1) + "\n"
    if str(path) == "-":
        sys.stdout.write(text)
    else:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    """Put a file in its place at once."""
    place, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(place, "w", encoding="utf-8") as file:
            file.write(text)
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def as_json(sections: Sequence[Section]) -> dict:
    """Tell everything as JSON; the fields are described in the book."""
    parts = [part for section in sections for part in section.parts]
    return {
        "format": FORMAT,
        "companion": __version__,
        "passed": bool(parts)
        and not any(worst(part["found"]) == "fault" for part in parts),
        "files": [_file(section) for section in sections],
    }


def _file(section: Section) -> dict:
    return {
        "path": section.target.title,
        "error": section.error,
        "remarks": [*section.remarks.values()],
        "parts": [_part(section, part) for part in section.parts],
        "unjudged": [
            {
                "name": one["name"],
                "at": section.at(one["line"]),
                "level": one["level"],
                "reason": one["reason"],
            }
            for one in section.unjudged
        ],
        "untried": section.untried,
    }


def _part(section: Section, part: dict) -> dict:
    found = part["found"]
    return {
        "name": part["name"],
        "at": section.at(part["line"]),
        "component": part["component"],
        "found_by": part["how"],
        "level": worst(found),
        "headline": found["headline"],
        "assumed": found["assumed"],
        "failures": [
            {
                "level": group.get("level", "fault"),
                "contracts": group["names"],
                "message": group["message"],
                "why": group.get("excuse", ""),
            }
            for group in found["failed"]
        ],
        "held": found["held"],
        "waiting": found["waiting"],
    }


def page(asked: str, sections: Sequence[Section], lang: str = ENGLISH) -> str:
    """Write the page: it asks for nothing from anywhere."""
    title = f"check {Path(asked).name or asked}"
    summary = say(total(list(sections)), lang)
    body = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="summary">{_text(summary)}</p>',
    ]
    for section in sections:
        body += _section(section, len(sections) > 1, lang)
    # It stands once, and not in each report.
    style = _own_style(sections) + system_style() + STYLE
    return (
        f'<!doctype html>\n<html lang="{lang}">\n<head>\n'
        '<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n"
        '<body class="companion">\n<main>\n'
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _section(section: Section, headed: bool, lang: str) -> list[str]:
    """Write what became of one file, if there is anything to say."""
    remarks = [*section.remarks.values()]
    remarks += [section.error] if section.error else []
    if not (section.parts or section.unjudged or section.untried or remarks):
        return []
    lines = ["<section>"]
    level = "h2"
    if headed:
        lines.append(f"<h2>{_text(section.target.title)}</h2>")
        level = "h3"
    lines += [
        f'<p class="fails">{_text(say(remark, lang))}</p>' for remark in remarks
    ]
    for part in section.parts:
        where = section.at(part["line"])
        said = [say(f"({one})", lang) for one in part["found"]["assumed"]]
        lines += [
            f"<{level}>{_text(part['name'])}</{level}>",
            f'<p class="muted">{"<br>".join(map(_text, (where, *said)))}</p>',
            _without_style(part["page"]) or _plain(part["found"], lang),
        ]
    if section.unjudged:
        number = counted(len(section.unjudged), "part")
        heading = say(f"{number} not judged", lang)
        lines.append(f"<{level}>{heading}</{level}>\n<ul>")
        lines += [
            f"<li><strong>{_text(say(one['name'], lang))}</strong>, "
            f"{_text(section.at(one['line']))}: "
            f"{_text(say(one['reason'], lang))}</li>"
            for one in section.unjudged
        ]
        lines.append("</ul>")
    if names := untried([section]):
        lines.append(f"<p>{_text(say(names, lang))}</p>")
    return [*lines, "</section>"]


def _plain(found: dict, lang: str) -> str:
    """Write a report that came without a page: its process had ended."""
    headline = say(found["headline"], lang)
    lines = [f"<p><strong>{_text(headline)}</strong></p>"]
    for group in found["failed"]:
        lines.append(f"<p>{_text(say(group['message'], lang))}</p>")
    return "\n".join(lines)


def _without_style(text: str) -> str:
    return re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def _own_style(sections: Sequence[Section]) -> str:
    """Return the style that the reports bring, once."""
    for section in sections:
        for part in section.parts:
            if found := re.search(r"(?s)<style>(.*?)</style>", part["page"]):
                return found[1]
    return ""


def _text(text: str) -> str:
    return escape(sanitize(text))
