"""Self-contained HTML: what the page shows is in the page.

One rule serves a built page, Jupyter, VS Code and Colab alike: style, data and
script stand inside the element, nothing is asked of any other place, and what
stands in ``body`` is shown where scripts do not run.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

HERE = Path(__file__).parent


def read_style(path: Path) -> str:
    """A style sheet without its comments and line breaks."""
    text = path.read_text(encoding="utf-8")
    return " ".join(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).split())


def read_script(path: Path) -> str:
    """Read a script without its comments, empty lines and indentation."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"^ *(//.*)?\n?", "", text, flags=re.MULTILINE)


BASE_STYLE = read_style(HERE / "base.css")
PALETTE = dict(
    re.findall(r"--(\w+): (#[0-9a-f]{6})", BASE_STYLE[: BASE_STYLE.index("}")])
)
"""Name -> hexadecimal colour of the light theme, for what Python draws."""


def system_style() -> str:
    """Read the style all figures share, dark where the system is dark.

    For a page of its own: in a notebook and in the book a button decides.
    """
    theme = r'html\[data-theme="dark"\][^{]*\{([^}]*)\}'
    [dark] = re.findall(theme, BASE_STYLE)
    follows = f"@media (prefers-color-scheme: dark) {{ .companion {{{dark}}} }}"
    return BASE_STYLE + follows


MOUNT = """
const data = %(data)s;
(function find(tries) {
  const root = document.querySelector(
    '[data-companion="%(key)s"]:not([data-mounted])');
  if (root) { root.dataset.mounted = "yes"; mount(root, data); }
  else if (tries) setTimeout(find, 100, tries - 1);
})(100);
"""


def inline(
    kind: str,
    *,
    body: str,
    label: str,
    caption: str = "",
    style: str = "",
    script: str = "",
    data: object = None,
) -> str:
    """An element of the given kind, with everything it needs inside it.

    Args:
        kind: One word; the element's class is ``companion companion-<kind>``.
        body: HTML shown at once, and all there is without scripts.
        label: What a screen reader calls the element.
        caption: What the reader should see in it, as HTML.
        style: CSS for this kind, on top of the palette every kind shares.
        script: JavaScript that defines ``function mount(root, data)``.
        data: What ``mount`` gets, as JSON.
    """
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    parts = [f"<style>{BASE_STYLE}{style}</style>", body]
    if caption:
        parts.append(f"<figcaption>{caption}</figcaption>")
    key = hashlib.sha256((kind + body + payload).encode()).hexdigest()[:12]
    if script:
        mount = MOUNT % {"data": payload.replace("</", "<\\/"), "key": key}
        code = script.replace("</script", "<\\/script")
        parts.append(f'<script type="module">{code}{mount}</script>')
    return (
        f'<figure class="companion companion-{kind}" data-companion="{key}" '
        f'aria-label="{escape(label)}">\n' + "\n".join(parts) + "\n</figure>"
    )


def figure_parts(
    module: str, *shared: str, sheets: Iterable[str] = ()
) -> dict[str, str]:
    """Read the style and the script of a figure, as ``inline`` wants them.

    Args:
        module: ``__file__`` of the figure, which stands beside ``view.css``
            and, if it does more than play its states, ``view.js``.
        shared: Scripts of the kit that it builds on.
        sheets: Style sheets of the kit.
    """
    room = Path(module).parent
    scripts = [HERE / f"{file}.js" for file in ("parts", *shared)]
    styles = [HERE / f"{file}.css" for file in sheets]
    own = (room / "view.js").exists()
    scripts += [room / "view.js"] * own
    script = "".join(map(read_script, scripts))
    return {
        "style": "".join(map(read_style, [*styles, room / "view.css"])),
        "script": script if own else f"{script}const mount = play;",
    }
