"""Pack the built book: a zip of its pages, and the same book as a PDF.

    make bundle

The pages in the zip work from disk. The PDF is those pages, one after the
other, as Chromium prints them without their scripts; hints, solutions and
answers stand at its end. Both lie in ``_build/bundle``.
"""

import sys
import zipfile
from pathlib import Path

import paper
from playwright.sync_api import Browser, Error, sync_playwright

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "_build" / "html"
FOLDER = ROOT / "_build" / "bundle"
CHROMIUM = "/usr/bin/chromium"
FOOTER = (
    '<div style="width: 100%; text-align: center; font-size: 8pt">'
    '<span class="pageNumber"></span></div>'
)
MARGIN = {"top": "17mm", "bottom": "19mm", "left": "18mm", "right": "18mm"}
# What is easily read on a screen is large on paper.
SCALE = 0.8
LIMIT_MS = 600_000


def named(version: str, suffix: str) -> str:
    """What a file of the bundle is called."""
    return f"companion-{version}.{suffix}"


def pack(pages: Path, target: Path) -> None:
    """Write the site in ``pages`` as a zip of one folder, named as it is."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(pages.rglob("*")):
            name = path.relative_to(pages).as_posix()
            if path.is_file() and not name.startswith("."):
                # Without a date of its own: the same pages, the same bytes.
                entry = zipfile.ZipInfo(f"{target.stem}/{name}")
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())


def print_pdf(browser: Browser, page: Path, target: Path) -> None:
    """Print ``page``, once its fonts and formulas are there.

    Raises:
        ValueError: it asks for a file that is not there.
    """
    tab = browser.new_page()
    tab.set_default_timeout(LIMIT_MS)
    missing = []
    tab.on("requestfailed", lambda request: missing.append(request.url))
    tab.goto(page.as_uri(), wait_until="load")
    tab.evaluate("window.MathJax?.startup?.promise")
    tab.evaluate("document.fonts.ready")
    if missing:
        raise ValueError(f"{page.name} has no {', '.join(missing)}")
    tab.pdf(
        path=target,
        format="A4",
        scale=SCALE,
        margin=MARGIN,
        outline=True,
        tagged=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOTER,
    )
    tab.close()


def print_book(pages: Path, documents: list[str], version: str) -> Path:
    """Print the ``documents`` in ``pages`` as one PDF; return where it lies.

    Raises:
        Error: Chromium is not there, or does not answer.
    """
    sheet = FOLDER / "paper.html"
    text = paper.paper(pages, documents, version)
    sheet.write_text(text, encoding="utf-8")
    target = FOLDER / named(version, "pdf")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        print_pdf(browser, sheet, target)
        browser.close()
    sheet.unlink()
    return target


def main() -> int:
    """Pack the built pages, both ways, or say what is missing."""
    sys.path.append(str(ROOT))
    from companion import __version__ as version

    FOLDER.mkdir(parents=True, exist_ok=True)
    pack(PAGES, FOLDER / named(version, "zip"))
    print(f"Written: {FOLDER / named(version, 'zip')}")
    try:
        pdf = print_book(PAGES, paper.order(ROOT / "_toc.yml"), version)
    except (Error, ValueError) as error:
        print(f"No PDF: {error}")
        return 1
    print(f"Written: {pdf}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
