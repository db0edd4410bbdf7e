"""The files of the corpora: from where they come, and how to know them.

Each is pinned to a commit and known by its checksum. None of them is shipped.
"""

from typing import NamedTuple

__all__ = ["FILES", "INSIDE", "NOTICES", "File"]

GITHUB = "https://raw.githubusercontent.com"
MULTI30K = (
    f"{GITHUB}/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a"
    "/data/task1"
)


class File(NamedTuple):
    """What a file is known by, and where it is downloaded.

    Attributes:
        sha256: Its checksum.
        size: Its length in bytes.
        url: Where it lies.
    """

    sha256: str
    size: int
    url: str


_MULTI30K_FILES = {
    "raw/test_2016_flickr.de.gz": (
        22890,
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    ),
    "raw/test_2016_flickr.en.gz": (
        21077,
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    ),
    "raw/test_2017_flickr.de.gz": (
        21471,
        "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    ),
    "raw/test_2017_flickr.en.gz": (
        19138,
        "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    ),
    "raw/test_2017_mscoco.de.gz": (
        10230,
        "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    ),
    "raw/test_2017_mscoco.en.gz": (
        8844,
        "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    ),
    "raw/train.de.gz": (
        637044,
        "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    ),
    "raw/train.en.gz": (
        568929,
        "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    ),
    "raw/val.de.gz": (
        24681,
        "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    ),
    "raw/val.en.gz": (
        21650,
        "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    ),
    "tok/test_2016_flickr.lc.norm.tok.de": (
        71917,
        "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
    ),
    "tok/test_2016_flickr.lc.norm.tok.en": (
        63307,
        "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
    ),
    "tok/train.lc.norm.tok.de": (
        2150008,
        "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    ),
    "tok/train.lc.norm.tok.en": (
        1837696,
        "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    ),
    "tok/val.lc.norm.tok.de": (
        77273,
        "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    ),
    "tok/val.lc.norm.tok.en": (
        64608,
        "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    ),
}

FILES = {
    # manythings.org replaces its file every few weeks; this copy stays.
    "tatoeba-cmn-eng/cmn-eng.zip": File(
        "d606361aa7312dcdfb15ef4fc51cb1e7ed8bc2dc608a7b192626cd36e8403106",
        1386340,
        f"{GITHUB}/wuyuhanwyh777-max/CET4Focus"
        "/475b882fee97ab839782287f57ac71a03476655e/data/cmn-eng.zip",
    ),
    "tinyshakespeare/input.txt": File(
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
        1115394,
        f"{GITHUB}/karpathy/char-rnn"
        "/6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e"
        "/data/tinyshakespeare/input.txt",
    ),
    **{
        f"multi30k/{path}": File(sha256, size, f"{MULTI30K}/{path}")
        for path, (size, sha256) in _MULTI30K_FILES.items()
    },
}

INSIDE = {
    "tatoeba-cmn-eng/cmn.txt": File(
        "d766002332a8f21099afd7427138d44f06bed7486a18f7f0f26f217092667d73",
        4565695,
        "tatoeba-cmn-eng/cmn-eng.zip",
    ),
}
"""What lies in a zip file: for its url, the name of that file in ``FILES``."""

NOTICES = {
    "multi30k": (
        "Multi30K (Elliott et al. 2016; English: Flickr30K, Young et al. "
        "2014) is for non-commercial research and education only. Do not "
        "redistribute it. https://github.com/multi30k/dataset"
    ),
    "tatoeba-cmn-eng": (
        "Sentences from Tatoeba (tatoeba.org), via www.manythings.org/anki, "
        "CC BY 2.0 FR: whoever redistributes some says whose they are; "
        "companion.data.corpora.attribution names the authors of each."
    ),
    "tinyshakespeare": (
        "Shakespeare is in the public domain; this file was put together by "
        "Andrej Karpathy, https://github.com/karpathy/char-rnn (MIT)."
    ),
}
"""What whoever uses a corpus should know; shown once, when it is downloaded."""
