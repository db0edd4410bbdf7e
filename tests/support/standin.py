"""Small corpora in the format of the real ones, for tests without them."""

import gzip
from hashlib import sha256
from itertools import product

from companion.data import phrasebook
from companion.data.pinned import FILES, INSIDE, File

NOUNS = {"hund": "dog", "mann": "man", "junge": "boy", "vogel": "bird"}
PLACES = {
    "im park": "in the park",
    "auf der straße": "in the street",
    "am strand": "on the beach",
}
VERBS = {"läuft": "runs", "sitzt": "sits", "steht": "stands"}
# One English line twice, one Chinese line twice, and both scripts.
CHAINS = [
    ("Hi.", "嗨。"),
    ("Hi.", "你好。"),
    ("Hello!", "你好。"),
    ("Who is it?", "誰？"),
    ("Who is it?", "谁？"),
]


def chinese_english():
    """Lines as manythings.org writes them."""
    said = [
        (" ".join(pair.en).capitalize() + ".", "".join(pair.zh) + "。")
        for pair in phrasebook.pairs()[::5]
    ]
    return "".join(
        f"{en}\t{zh}\tCC-BY 2.0 (France) Attribution: tatoeba.org #{n}\n"
        for n, (en, zh) in enumerate([*CHAINS, *said])
    )


def untokenised(lines):
    """As people write them."""
    return "".join(
        f"{line.removesuffix(' .').capitalize()}.\n"
        for line in lines.splitlines()
    )


def german_english(count):
    """The first so many descriptions, as lines of German and of English."""
    made = list(product(NOUNS, VERBS, PLACES))[:count]
    de = "".join(f"ein {noun} {verb} {place} .\n" for noun, verb, place in made)
    en = "".join(
        f"a {NOUNS[noun]} {VERBS[verb]} {PLACES[place]} .\n"
        for noun, verb, place in made
    )
    return {"de": de, "en": en}


def stand_in(folder, monkeypatch):
    """Writes them to a folder and makes them the corpora, until the test ends.

    Sets COMPANION_DATA and the checksums; returns the folder.
    """
    said = chinese_english()
    texts = {
        "tatoeba-cmn-eng/cmn.txt": said,
        "tinyshakespeare/input.txt": "To be, or not to be:\n" * 200,
    }
    for name in FILES:
        if name.startswith("multi30k"):
            counts = {"train": 29, "val": 7}
            count = counts.get(name.split("/")[2].split(".")[0], 5)
            language = name.removesuffix(".gz")[-2:]
            lines = german_english(count)[language]
            texts[name] = untokenised(lines) if "/raw/" in name else lines
    for name, text in texts.items():
        replace(folder, monkeypatch, name, text)
    monkeypatch.setenv("COMPANION_DATA", str(folder))
    return folder


def replace(folder, monkeypatch, name, text):
    """Makes a text one of the corpora's files, checksum included."""
    data = text.encode()
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    table = INSIDE if name in INSIDE else FILES
    pinned = File(sha256(data).hexdigest(), len(data), table[name].url)
    monkeypatch.setitem(table, name, pinned)
