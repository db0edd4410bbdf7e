"""Measures how a lesson's page is filled, and what a reader sees of it first.

    python tools/lint_lessons.py [_build/html/book/03_attention.html ...]

Of each built lesson, at 1400 x 900 with its folds closed, up to "Exercises":

    screens    its height
    code       the share of the height that is code or what code printed
    drawings   the share that is drawings: figures, plots, pictures; no listing,
               check, question or figure that needs a kernel
    first      where its first drawing begins, in screens
    asserts    cells in sight that assert and show nothing
    short      the share of sentences of six words or fewer

A lesson that has a lab must meet the targets, which stand below; the others are
measured only. Where there is no Chromium this says so and lets pass, unless
REQUIRE_CHROMIUM is set. The numbers serve the reader; a lesson that meets them
and bores is not done.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "_build" / "html" / "book"
CHROMIUM = "/usr/bin/chromium"
SCREEN = {"width": 1400, "height": 900}
SHORT = 6
# At most (1) or at least (-1) how much, and how it is printed.
TARGETS = {
    "screens": (1, 14, ".1f"),
    "code": (1, 0.40, ".0%"),
    "drawings": (-1, 0.25, ".0%"),
    "first": (1, 1, ".1f"),
    "asserts": (1, 0, ".0f"),
    "short": (1, 0.15, ".0%"),
}

# What lies in a closed fold has a size in Chromium, and is not seen.
JS = r"""
() => {
  const main = document.querySelector("article");
  const seen = e => {
    const fold = e.closest("details:not([open])");
    const {width, height} = e.getBoundingClientRect();
    return width > 0 && height > 0
      && (!fold || fold.querySelector("summary")?.contains(e));
  };
  const top = e => e.getBoundingClientRect().top + scrollY;
  const end = [...main.querySelectorAll("h2")]
    .find(h => /^Exercises/.test(h.textContent));
  const stop = end ? top(end) : main.getBoundingClientRect().bottom + scrollY;
  const all = selector => [...main.querySelectorAll(selector)]
    .filter(e => seen(e) && top(e) < stop);
  const outer = (selector, e) => !e.parentElement.closest(selector);
  const height = list => list
    .reduce((sum, e) => sum + e.getBoundingClientRect().height, 0);

  const CODE = "div.highlight, .companion-source";
  const code = all(CODE).filter(e => outer(CODE, e));
  const DRAWN = "figure, img, svg";
  const NOT = ".companion-source, .companion-check, .companion-quiz,"
    + ".companion-live, .highlight, .math, button, a.headerlink, nav, header";
  const drawn = all(DRAWN).filter(e => outer(DRAWN, e) && !e.closest(NOT)
    && e.getBoundingClientRect().height > 60);
  const only = all("div.cell").filter(cell => {
    const source = cell.querySelector(".cell_input pre");
    return source && seen(source) && !cell.querySelector(".cell_output")
      && /\bassert/.test(source.textContent);
  });
  const told = all("p, li").filter(e => !e.querySelector("p, li")
    && !e.closest("table, figure, div.cell, .reading-time, .admonition-title"));
  const size = stop - top(main);
  return {
    screens: size / innerHeight,
    code: height(code) / size,
    drawings: height(drawn) / size,
    first: drawn.length ? Math.min(...drawn.map(top)) / innerHeight : Infinity,
    asserts: only.length,
    told: told.map(e => e.textContent),
  };
}
"""


def measure(browser: Browser, address: str) -> dict[str, float]:
    """Measure one page."""
    page = browser.new_page(viewport=SCREEN)
    page.goto(address)
    page.evaluate("document.fonts.ready")
    found = page.evaluate(JS)
    page.close()
    sentences = [
        sentence
        for block in found.pop("told")
        for sentence in re.split(r"(?<=[.!?])\s+", block.strip())
        if sentence
    ]
    short = sum(len(sentence.split()) <= SHORT for sentence in sentences)
    return found | {"short": short / max(1, len(sentences))}


def beyond(found: dict[str, float]) -> list[str]:
    """Name what misses its target."""
    return [
        name
        for name, (sense, target, _) in TARGETS.items()
        if sense * found[name] > sense * target
    ]


def row(values: dict[str, float], missed: list[str] = ()) -> str:
    """Write the measures of a lesson side by side, a miss with a mark."""
    cells = (
        "!" * (name in missed) + format(values[name], form)
        for name, (_, _, form) in TARGETS.items()
    )
    return "".join(f"{cell:>10}" for cell in cells)


def lessons(pages: list[Path]) -> Iterator[tuple[Path, dict[str, float]]]:
    """Measure one page after the other."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for page in pages:
            yield page, measure(browser, page.resolve().as_uri())
        browser.close()


def report(measured: Iterable[tuple[Path, dict[str, float]]]) -> int:
    """Print the table; 1 where a lesson that has a lab misses a target."""
    print(f"{'lessons':18}" + "".join(f"{name:>10}" for name in TARGETS))
    targets = {name: target for name, (_, target, _) in TARGETS.items()}
    print(f"{'targets':18}" + row(targets))
    status = 0
    for page, found in measured:
        has_lab = (page.parent / "labs" / page.name).exists()
        missed = beyond(found) if has_lab else []
        print(f"{page.stem:18}{row(found, missed)}")
        status |= bool(missed)
    if status:
        print("! misses its target: see tools/lint_lessons.py.")
    return int(status)


def main(names: list[str]) -> int:
    """Measure the named pages, or every lesson of the built book."""
    if not Path(CHROMIUM).exists():
        print(f"No Chromium at {CHROMIUM}, so no lesson is measured.")
        return bool(os.environ.get("REQUIRE_CHROMIUM"))
    # A page at a chapter's old number only leads on, and has no notebook.
    stems = sorted(path.stem for path in (ROOT / "book").glob("[0-9]*.ipynb"))
    built = (BUILT / f"{stem}.html" for stem in stems)
    pages = [Path(each) for each in names] or [p for p in built if p.exists()]
    if not pages:
        print("The book is not built: run make book.")
        return 1
    return report(lessons(pages))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
