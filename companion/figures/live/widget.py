"""A figure that a kernel answers.

A stored notebook keeps only the sentence that says so. What is used of
ipywidgets is the same in versions 7.7 and 8.
"""

from collections.abc import Callable
from html import escape

import ipywidgets as widgets

from companion.figures.kit.inline import inline

PANELS = """
.companion.companion-live .panels { display: grid; gap: 1rem 1.6rem;
  margin-top: 0.7rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); }
.companion.companion-live .panels > .scroll { min-width: 0; }
.companion.companion-live .panels .cells { font-size: 0.8rem; }
.companion.companion-live .panels .cells :is(th, td) { min-width: 2.1rem;
  padding: 0.25rem; }
.companion.companion-live .panels tbody th { text-align: right; }
"""
VIEW = "application/vnd.jupyter.widget-view+json"


class Live:
    """Widgets that a kernel answers, and a sentence for where none does.

    Attributes:
        controls: What the reader changes, by name.
        page: Where the answer appears.
    """

    def __init__(self, answer: Callable[..., str], purpose: str, **controls):
        self.controls = controls
        self.page = widgets.HTML()
        self._answer = answer
        self._fallback = f"This figure needs a kernel: {purpose}"
        row = widgets.Box(
            list(controls.values()), layout=widgets.Layout(flex_flow="row wrap")
        )
        self._box = widgets.VBox([row, self.page])
        for control in controls.values():
            control.observe(self._refresh, names="value")
        self._refresh()

    def _refresh(self, change=None):
        values = {name: c.value for name, c in self.controls.items()}
        try:
            self.page.value = self._answer(**values)
        except (ValueError, TypeError) as problem:
            self.page.value = note(str(problem), role="alert")

    def _repr_mimebundle_(self, include=None, exclude=None):
        view = {"version_major": 2, "version_minor": 0}
        return {
            VIEW: view | {"model_id": self._box.model_id},
            "text/html": note(self._fallback, role="note"),
            "text/plain": self._fallback,
        }


def note(text: str, *, role: str) -> str:
    """A sentence in place of an answer; an alert stands in red."""
    body = f'<p role="{role}">{escape(text)}</p>'
    red = ".companion-live [role=alert] { color: var(--bad); }"
    return inline("live", body=body, label="Live figure", style=red)


def answered(sentence: str, *tables: str, label: str) -> str:
    """An answer: a sentence, and under it tables side by side."""
    return inline(
        "live",
        body=f'<p class="says" role="status">{escape(sentence)}</p>'
        f'<div class="panels">{"".join(tables)}</div>',
        label=label,
        style=PANELS,
    )
