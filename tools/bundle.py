"""Pack the built book: a zip of its pages, and three PDFs.

    make bundle

The pages in the zip work from disk. The PDFs are the course in English and in
Chinese, and its question bank, which is in both, as Chromium prints them
without their scripts. All lie in ``_build/bundle``.
"""

import io
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import paper
from playwright.sync_api import Browser, Error, sync_playwright
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    IndirectObject,
    NameObject,
    NumberObject,
    PdfObject,
    StreamObject,
)

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
# In a font's table: this glyph means that Chinese radical.
RADICAL = re.compile(r"^(<\w+>) <(2[EF]\w\w)>$", re.MULTILINE)
# Those that Unicode does not call the same as their word.
WORDS = str.maketrans(
    "⻅⻆⻉⻋⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻬⻮⻰",
    "见角贝车长门青韦页风飞食马骨鬼鱼鸟卤麦黄齐齿龙",
)
LIMIT_MS = 600_000
# What moves the pen of a PDF, each on a line: a b c d e f, and which.
MOVES = re.compile(
    rb"^(?:[qQ]|(?:\S+ ){3}(\S+) \S+ (\S+) (cm|Tm))$", re.MULTILINE
)
# How many objects of a PDF are compressed together.
TOGETHER = 500
# The files of a bundle, and what the PDFs are made of.
ZIP = ".zip"
PDFS = {
    ".pdf": paper.course,
    "-zh.pdf": lambda pages, documents, version: paper.course(
        pages / "zh", documents, version, "zh"
    ),
    "-questions.pdf": paper.bank,
}
# Where the text of a page begins and ends, in points from its lower edge.
BOTTOM, TOP = 19 / 25.4 * 72, 842 - 17 / 25.4 * 72


def named(version: str, suffix: str) -> str:
    """Name a file of the bundle."""
    return f"companion-{version}{suffix}"


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


def plain(table: str) -> str:
    """Put words for radicals into a font's table of characters.

    Where a font draws 力 and the radical ⼒ alike, Chromium names the radical,
    and nobody who searches for the word finds it.
    """
    return RADICAL.sub(_word, table)


def _word(found: re.Match) -> str:
    radical = chr(int(found[2], 16)).translate(WORDS)
    return f"{found[1]} <{ord(normalize('NFKC', radical)):04X}>"


def mend_words(pdf: Path) -> None:
    """Let the text of ``pdf`` be found: each of its fonts names words."""
    writer = PdfWriter(clone_from=pdf)
    tables = {}
    for page in writer.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            table = font.get_object().get("/ToUnicode")
            tables[id(table)] = table
    for table in filter(None, tables.values()):
        table.set_data(plain(table.get_data().decode("latin-1")).encode())
    writer.write(pdf)


def pack_objects(pdf: Path) -> None:
    """Write ``pdf`` again, with all that is no stream in compressed streams.

    What lets it be read aloud is an object for each word or cell, more than a
    hundred thousand, and Chromium and pypdf write each as text: that was more
    than half of the file. PDF 1.5 has a better way (ISO 32000-1, 7.5.7 and
    7.5.8).
    """
    reader = PdfReader(pdf)
    written = bytearray(b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n")
    # Where each object is: its kind, then a place or a stream and a number.
    where = {0: (0, 0, 0)}
    size = max(reader.xref[0]) + 1

    def write(number: int, thing: PdfObject) -> None:
        where[number] = (1, len(written), 0)
        written.extend(b"%d 0 obj\n%s\nendobj\n" % (number, _bytes(thing)))

    small = []
    for number in sorted(reader.xref[0]):
        thing = reader.get_object(IndirectObject(number, 0, reader))
        if isinstance(thing, StreamObject):
            write(number, thing)
        elif thing is not None:
            small.append((number, _bytes(thing)))
    for start in range(0, len(small), TOGETHER):
        some = small[start : start + TOGETHER]
        heads, texts = [], b""
        for at, (number, text) in enumerate(some):
            where[number] = (2, size, at)
            heads.append(b"%d %d " % (number, len(texts)))
            texts += text + b"\n"
        head = b"".join(heads)
        entries = {"/N": NumberObject(len(some))}
        entries["/First"] = NumberObject(len(head))
        write(size, _compressed("/ObjStm", head + texts, entries))
        size += 1
    begin = len(written)
    where[size] = (1, begin, 0)
    table = b"".join(
        kind.to_bytes(1) + place.to_bytes(4) + at.to_bytes(2)
        for kind, place, at in (
            where.get(number, (0, 0, 0)) for number in range(size + 1)
        )
    )
    entries = {
        key: reader.trailer.raw_get(key)
        for key in ("/Root", "/Info", "/ID")
        if key in reader.trailer
    }
    entries["/Size"] = NumberObject(size + 1)
    entries["/W"] = ArrayObject(map(NumberObject, (1, 4, 2)))
    write(size, _compressed("/XRef", table, entries))
    written.extend(b"startxref\n%d\n%%%%EOF\n" % begin)
    pdf.write_bytes(written)


def _bytes(thing: PdfObject) -> bytes:
    stream = io.BytesIO()
    thing.write_to_stream(stream)
    return stream.getvalue()


def _compressed(
    kind: str, data: bytes, entries: dict[str, PdfObject]
) -> StreamObject:
    plain = DecodedStreamObject()
    plain.set_data(data)
    stream = plain.flate_encode()
    stream[NameObject("/Type")] = NameObject(kind)
    for key, value in entries.items():
        stream[NameObject(key)] = value
    return stream


def half_empty(pdf: PdfReader) -> list[int]:
    """Number the pages, from 1, that end before their middle.

    The last of a chapter may.
    """
    starts = {
        pdf.get_destination_page_number(entry)
        for entry in pdf.outline
        if not isinstance(entry, list)
    }
    return [
        number
        for number, page in enumerate(pdf.pages, 1)
        if number not in starts | {len(pdf.pages)}
        and lowest(page) > (BOTTOM + TOP) / 2
    ]


def lowest(page: PageObject) -> float:
    """Where the last line stands, without the number below it.

    Of what Chromium draws only the text is looked at: a figure has a caption.
    """
    scale, y, kept, lines = 1.0, 0.0, [], [TOP]
    for operator in MOVES.finditer(page.get_contents().get_data()):
        if operator[0] == b"q":
            kept.append((scale, y))
        elif operator[0] == b"Q":
            scale, y = kept.pop()
        else:
            down, up = map(float, operator.groups()[:2])
            if operator[3] == b"cm":
                scale, y = scale * down, y + scale * up
            else:
                lines.append(y + scale * up)
    return min(each for each in lines if each > BOTTOM)


def print_books(
    pages: Path, documents: list[str], version: str
) -> Iterator[Path]:
    """Print the ``documents`` in ``pages``; give each PDF as it is done.

    Raises:
        Error: Chromium is not there, or does not answer.
    """
    sheet = FOLDER / "paper.html"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        for suffix, make in PDFS.items():
            text = make(pages, documents, version)
            sheet.write_text(text, encoding="utf-8")
            target = FOLDER / named(version, suffix)
            print_pdf(browser, sheet, target)
            mend_words(target)
            pack_objects(target)
            yield target
        browser.close()
    sheet.unlink()


def main() -> int:
    """Pack the built pages, each way, or say what is missing."""
    sys.path.append(str(ROOT))
    from companion import __version__ as version

    if not (PAGES / "index.html").is_file():
        print(f"Nothing was packed: no book in {PAGES}. make bundle builds it.")
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    pack(PAGES, FOLDER / named(version, ZIP))
    print(f"Written: {FOLDER / named(version, ZIP)}")
    documents = paper.order(ROOT / "_toc.yml")
    try:
        for path in print_books(PAGES, documents, version):
            pdf = PdfReader(path)
            empty = ", ".join(map(str, half_empty(pdf))) or "none"
            print(f"Written: {path}")
            print(f"  {len(pdf.pages)} pages; half empty: {empty}")
    except (Error, ValueError) as error:
        print(f"No PDF: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
