"""The book's own letters, from disk and over HTTP, at the first visit.

Over HTTP a page asks for its first fonts before it reads its styles. A font
that comes late replaces a font of the reader's system that is made as wide, so
that the lines break where they will. From disk a script brings the fonts
themselves: there is nothing to wait for, and some browsers refuse a font file.
"""

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FONTS = Path(__file__).parents[1] / "assets" / "fonts.css"
FACE = re.compile(r"@font-face \{(.*?)\}", re.S)
RULE = re.compile(r"([a-z-]+): ([^;]+);")
FONT_FILE = re.compile(r'url\("([^"]+)"\)')
# Every page begins with these two.
FIRST_FONTS = ("source-serif-4-latin", "source-sans-3-latin")
HEAD = """<script>
if (location.protocol === "file:")
  document.write('<script src="{static}/fonts-disk.js"><\\/script>');
else {{
  for (const font of {fonts})
    document.write('<link rel="preload" as="font" type="font/woff2" '
      + 'crossorigin href="{static}/fonts/' + font + '.woff2">');
  document.write('<link rel="stylesheet" href="{static}/fonts.css">');
}}
</script>
<noscript><link rel="stylesheet" href="{static}/fonts.css"></noscript>
"""
CARRIED = """"use strict";
for (const [family, font, rules] of {faces})
  document.fonts.add(new FontFace(family,
    Uint8Array.from(atob(font), (letter) => letter.charCodeAt(0)), rules));
"""

# Spaces, small letters, the rest. One size for all leaves a line of twice as
# many paragraphs elsewhere, one for each letter of hardly fewer.
PARTS = (
    "U+20, U+A0",
    "U+61-7A",
    "U+21-60, U+7B-9F, U+A1-FF, U+2000-206F, U+2212",
)
SERIF = ("Times New Roman", "Liberation Serif")
BOLD_SERIF = ("Times New Roman Bold", "Liberation Serif Bold")
ITALIC_SERIF = ("Times New Roman Italic", "Liberation Serif Italic")
SANS = ("Arial", "Liberation Sans")
BOLD_SANS = ("Arial Bold", "Liberation Sans Bold")
MONO = ("Menlo", "DejaVu Sans Mono", "Liberation Mono", "Courier New")
# How high and how deep a font's line is, in hundredths of its size.
LINES = {
    "Source Serif 4": (103.6, 33.5),
    "Source Sans 3": (102.4, 40.0),
    "JetBrains Mono": (102.0, 30.0),
}
PHONE, WIDER = "(max-width: 768px)", "(min-width: 768.02px)"
# The width of the book's text in the font above over its width in the system's
# one, in percent, for each part; both set in Chromium. Source Serif 4 is wider
# where it is small, so a phone has numbers of its own.
STAND_INS = (
    ("Source Serif 4", "400", "normal", PHONE, SERIF, (93.7, 117.7, 101.9)),
    ("Source Serif 4", "400", "normal", WIDER, SERIF, (93.3, 116.5, 101.3)),
    ("Source Serif 4", "400", "italic", "all", ITALIC_SERIF, (91, 110.1, 103)),
    ("Source Serif 4", "600", "normal", PHONE, BOLD_SERIF, (88, 107.2, 94.2)),
    ("Source Serif 4", "600", "normal", WIDER, BOLD_SERIF, (85.5, 104.7, 92)),
    ("Source Serif 4", "650", "normal", "all", BOLD_SERIF, (88, 112.5, 97.1)),
    ("Source Sans 3", "400", "normal", "all", SANS, (72, 96.2, 88.3)),
    ("Source Sans 3", "600", "normal", "all", BOLD_SANS, (72, 91.2, 88.4)),
    ("JetBrains Mono", "400", "normal", "all", MONO, (100, 100, 100)),
)


def stand_ins() -> str:
    """Write the faces that are shown until a font has come."""
    faces = []
    for family, weight, style, where, system, sizes in STAND_INS:
        source = ", ".join(f'local("{name}")' for name in system)
        high, deep = LINES[family]
        for part, size in zip(PARTS, sizes, strict=True):
            faces.append(
                f'@media {where} {{ @font-face {{ font-family: "{family} '
                f'stand-in"; font-weight: {weight}; font-style: {style}; '
                f"src: {source}; unicode-range: {part}; size-adjust: {size}%; "
                f"ascent-override: {high / size * 100:.1f}%; descent-override: "
                f"{deep / size * 100:.1f}%; line-gap-override: 0% }} }}\n"
            )
    return "".join(faces)


def carried(styles: str) -> str:
    """Write a script with the fonts that a style sheet names."""
    faces = []
    for face in FACE.findall(styles):
        rules = {
            name: " ".join(rule.split()) for name, rule in RULE.findall(face)
        }
        file = FONTS.parent / FONT_FILE.search(rules["src"])[1]
        how = {
            "weight": rules["font-weight"],
            "style": rules.get("font-style", "normal"),
            "unicodeRange": rules["unicode-range"],
        }
        font = b64encode(file.read_bytes()).decode()
        faces.append([rules["font-family"].strip('"'), font, how])
    return CARRIED.format(faces=json.dumps(faces))


def write_fonts(app: Sphinx) -> None:
    """Put what is made from the style sheet where the pages look for it."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    disk = carried(FONTS.read_text(encoding="utf-8"))
    (static / "fonts-disk.js").write_text(disk, encoding="utf-8")
    (static / "stand-ins.css").write_text(stand_ins(), encoding="utf-8")


def ask_for_fonts(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Let a page begin with its fonts, before it reads its styles."""
    static = context["pathto"]("_static", resource=True)
    ask = HEAD.format(static=static, fonts=list(FIRST_FONTS))
    context["metatags"] = context.get("metatags", "") + ask


def setup(app: Sphinx) -> dict[str, bool]:
    """Register this extension with Sphinx."""
    app.connect("builder-inited", write_fonts)
    app.connect("html-page-context", ask_for_fonts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
