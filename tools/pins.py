"""Write requirements/ again from pyproject.toml: versions, and sums of files.

    make pins [KEEP=1]

A pin names a version and the SHA-256 of its files, so that what is installed is
what was tested, wherever it was fetched. uv resolves all groups together, for
each Python and system that the course supports. With KEEP, versions that still
fit stay as they are: so one adds a package without raising the others.

book.txt   what renders the book
test.txt   what else runs and tests the course
torch.txt  PyTorch: its files on PyPI, and those for a CPU on its own index
cuda.txt   what PyPI's PyTorch needs beside on Linux, where it comes with CUDA
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
UV = Path(sys.executable).with_name("uv")
COMPILE = (
    *("pip", "compile", "--quiet", "--no-annotate", "--no-header"),
    *("--universal", "--python-version", "3.11", "--generate-hashes"),
    # One version for all, rather than the newest for each Python.
    "--fork-strategy=fewest",
)
EVERYTHING = ("--all-extras", "--group=test", "--group=mutants")
CUDA = re.compile(r"(nvidia|cuda)-|triton$")
NAME, SUM = re.compile(r"[\w.-]+"), re.compile(r"sha256:[0-9a-f]{64}")
HEAD = "# Written by make pins.\n"


def entries(text: str) -> dict[str, str]:
    """Split a file of requirements: name -> its lines."""
    found = re.findall(r"^\w.*\n(?:[ ]+.*\n)*", text, re.MULTILINE)
    return {_name(entry): entry for entry in found}


def compiled(*arguments: str, read: str | None = None) -> dict[str, str]:
    """Have uv resolve requirements.

    Raises:
        ValueError: it cannot; its own words are in the message.
    """
    done = subprocess.run(
        [UV, *COMPILE, *arguments],
        cwd=ROOT,
        input=read,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ValueError(f"uv says: {done.stderr.strip()}")
    return entries(done.stdout)


def resolved(book: dict[str, str], all_: dict[str, str]) -> dict[str, str]:
    """Sort what was resolved into files: name of the file -> its text.

    Args:
        book: What the group of that name needs.
        all_: What everything needs.

    Raises:
        ValueError: one package has two pins.
    """
    for name in book:
        # On which system it is wanted may differ: the tests want it on more.
        pins = {_pin(book[name]), _pin(all_.get(name, ""))}
        if len(pins) > 1:
            raise ValueError(f"the book and the tests differ: {pins}")
    files = {"book": [], "test": [], "torch": [], "cuda": []}
    for name, entry in all_.items():
        if name == "torch":
            files["torch"].append(entry)
        elif CUDA.match(name):
            files["cuda"].append(entry)
        else:
            files["book" if name in book else "test"].append(entry)
    return {name: HEAD + "".join(found) for name, found in files.items()}


def with_sums(torch: str, more: set[str]) -> str:
    """Let the pin of torch take files with further sums, too."""
    pin = torch.split(" \\\n")[0]
    sums = sorted({*SUM.findall(torch), *more})
    return " \\\n".join([pin, *(f"    --hash={each}" for each in sums)]) + "\n"


def cpu_sums(version: str, before: str, index: str = CPU_INDEX) -> set[str]:
    """Read the sums of torch's builds for a CPU from PyTorch's index.

    Args:
        version: Of torch.
        before: The file that these sums are to be written into. Where the index
            is out of reach, they are taken from there.
        index: Its address.

    Raises:
        ValueError: the index is out of reach, and ``before`` is of another
            version.
    """
    try:
        found = compiled(
            *("-", "--no-deps", "--default-index", index),
            read=f"torch=={version}+cpu ; sys_platform != 'darwin'\n",
        )
    except ValueError as error:
        if f"torch=={version} " not in before:
            raise ValueError(f"torch {version}: {error}") from None
        print(f"{index} is out of reach: its sums stay as they are")
        return set(SUM.findall(before))
    return set(SUM.findall(found["torch"]))


def versions(*files: str) -> str:
    """Write the pins of some files without sums, as constraints of pip."""
    texts = ((FOLDER / f"{name}.txt").read_text("utf-8") for name in files)
    return "".join(f"{_pin(e)}\n" for t in texts for e in entries(t).values())


def main(keep: bool) -> int:
    """Write the files, or say why not; return how the process ends.

    Args:
        keep: Whether versions that still fit stay as they are.
    """
    texts = {
        path.stem: path.read_text("utf-8") for path in FOLDER.glob("*.txt")
    }
    try:
        with tempfile.TemporaryDirectory() as place:
            # uv prefers the versions of the file that it is to write.
            place = Path(place)
            found = place / "found.txt"
            found.write_text("".join(texts.values()), encoding="utf-8")
            how = () if keep else ("--upgrade",)
            output = ("--output-file", str(found))
            compiled("pyproject.toml", *EVERYTHING, *output, *how)
            all_ = entries(found.read_text(encoding="utf-8"))
            same = place / "same.txt"
            same.write_text("\n".join(map(_pin, all_.values())))
            book = compiled("--group=book", "--constraints", str(same))
        files = resolved(book, all_)
        version = re.findall(r"==([\w.]+)", all_["torch"])[0]
        more = cpu_sums(version, texts["torch"])
    except ValueError as error:
        print(f"No pins: {error}")
        return 1
    files["torch"] = HEAD + with_sums(all_["torch"], more)
    for name, text in files.items():
        (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")
    return 0


def _pin(entry: str) -> str:
    return entry.partition(" ")[0]


def _name(entry: str) -> str:
    return NAME.match(entry)[0].lower()


if __name__ == "__main__":
    sys.exit(main(keep=bool(os.environ.get("KEEP"))))
