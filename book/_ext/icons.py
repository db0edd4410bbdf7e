"""The theme's dozen icons as a style sheet, instead of its 1.5 MB script.

The theme sends all of Font Awesome to every page, as a script and as a font.
The outlines of the icons that it uses are taken from that very script.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# Font Awesome's number of each icon, where a name has two outlines.
ICONS = {
    "bars": "f0c9",
    "list": "f03a",
    "magnifying-glass": "f002",
    "sun": "f185",
    "moon": "f186",
    "circle-half-stroke": "f042",
    "arrow-up": "f062",
    "angle-left": "f104",
    "angle-right": "f105",
    "angle-down": "f107",
    "xmark": "f00d",
    "pencil": "f303",
}
SCRIPT = "_static/scripts/fontawesome.js"
OUTLINE = r'"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"{number}","([^"]+)"'
STYLE = """/* Font Awesome Free, fontawesome.com/license/free, CC BY 4.0. */
.fa-solid { font-family: inherit !important; }
.fa-solid::before { content: "" !important; display: inline-block; width: 1em;
  height: 1em; vertical-align: -0.125em; background: currentColor;
  mask: var(--icon) center / contain no-repeat; }
.fa-lg { font-size: 1.25em; line-height: 0.05em; vertical-align: -0.075em; }
.bd-sidebar-secondary.hide .onthispage::after { content: none !important; }
@media (forced-colors: active) {
  .fa-solid::before { background: CanvasText; forced-color-adjust: none; } }
"""


def outline(code: str, name: str, number: str) -> str:
    """Write one icon as a rule that sets ``--icon``.

    Raises:
        ExtensionError: the theme's script has no such icon, or several.
    """
    found = set(re.findall(OUTLINE.format(name=name, number=number), code))
    # The regular and the solid one have one number; the solid one is shorter.
    if not found:
        raise ExtensionError(f"the theme's icons: no {name!r} ({number})")
    width, height, path = min(found, key=lambda icon: len(icon[2]))
    svg = (
        f"%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} "
        f"{height}'%3E%3Cpath d='{path}'/%3E%3C/svg%3E"
    )
    return f'.fa-{name} {{ --icon: url("data:image/svg+xml,{svg}"); }}\n'


def slim(app: Sphinx, exception: Exception | None) -> None:
    """Put the style sheet in the place of the script."""
    if exception or app.builder.format != "html":
        return
    script = Path(app.outdir) / SCRIPT
    code = script.read_text(encoding="utf-8")
    if len(code) < 1000:
        return
    rules = (outline(code, *icon) for icon in ICONS.items())
    style = Path(app.outdir) / "_static" / "icons.css"
    style.write_text(STYLE + "".join(rules), encoding="utf-8")
    script.write_text("// See icons.css.\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("build-finished", slim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
