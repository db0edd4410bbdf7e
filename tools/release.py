"""Make a release of the working commit: check, build, install, try.

    make release

Nothing is published. What came out lies in ``_build/release``, with the sums of
its files; the publish workflow hands it out from a tag.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import bundle
import trial
from colab import git, working_commit

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "_build" / "release"
UV = Path(sys.executable).with_name("uv")
BUILD = ("build", "--quiet", "--no-build-isolation", "--no-create-gitignore")
AUDIT = (
    *("tool", "run", "pip-audit==2.10.1", "--format=json", "--no-deps"),
    *("--disable-pip", "--progress-spinner=off"),
)


def check_tree(root: Path, version: str) -> None:
    """Check that the files are a commit, and no other version's tag is on it.

    Raises:
        ValueError: they are not, or it is.
    """
    working_commit(root)
    tags = [t for t in git(root, "tag", "--points-at").split() if t[0] == "v"]
    if tags and f"v{version}" not in tags:
        raise ValueError(
            f"expected the tag v{version}, as companion.__version__ says, "
            f"got {', '.join(tags)}"
        )


def entry(changelog: str, version: str) -> str:
    """Return the entry of a version in the change log.

    Raises:
        ValueError: it says nothing, or the newest entry is another's.
    """
    entries = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    heading, _, text = entries[0].partition("\n") if entries else ("", "", "")
    if heading.split(" ")[0] != version or not text.strip():
        raise ValueError(
            f"CHANGELOG.md: expected a first entry '## {version} (date)' with "
            f"text, got {heading!r}"
        )
    return text.strip() + "\n"


def build(source: Path, target: Path) -> Path:
    """Build the sdist, and the wheel from it; return the wheel."""
    subprocess.run(
        # The set-up tools are pinned here, so that no network is asked.
        [UV, *BUILD, "--python", sys.executable, "--out-dir", target, source],
        check=True,
    )
    return next(target.glob("*.whl"))


def carried(wheel: Path) -> set[str]:
    """List the files of the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {n for n in archive.namelist() if n.startswith("companion/")}


def audit(root: Path) -> str:
    """Say what is known against the pinned packages, or that nobody can."""
    files = sorted((root / "requirements").glob("*.txt"))
    done = subprocess.run(
        [UV, *AUDIT, *(f"--requirement={path}" for path in files)],
        capture_output=True,
        text=True,
    )
    return verdict(done.stdout)


def verdict(report: str) -> str:
    """Read the auditor's report.

    Raises:
        ValueError: a package is known to be vulnerable.
    """
    packages = json.loads(report)["dependencies"] if report.strip() else []
    known = [p for p in packages if "vulns" in p]
    bad = [f"{p['name']} {p['version']}" for p in known if p["vulns"]]
    if bad:
        raise ValueError(f"known to be vulnerable: {', '.join(bad)}")
    if not known:
        return "not audited: the database cannot be reached from here"
    return f"audited: {len(known)} packages, {len(packages) - len(known)} not"


def add_sums(folder: Path) -> None:
    """Write the SHA-256 of what is handed out, as ``sha256sum -c`` reads it.

    The notes of a release become its text, and are no file of it.
    """
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.glob("companion-*"))
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def make(root: Path, version: str) -> None:
    """Test, build and try the working commit.

    Raises:
        ValueError: something does not hold.
        CalledProcessError: a command failed; it has said why.
    """
    check_tree(root, version)
    text = entry((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    subprocess.run(["make", "test", "bundle"], cwd=root, check=True)
    check_tree(root, version)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        # Nothing but what is committed, and no rest of an older build.
        committed = Path(place, "source.tar")
        git(root, "archive", "--output", str(committed), "HEAD")
        source = Path(place, "source")
        shutil.unpack_archive(committed, source, filter="data")
        wheel = build(source, FOLDER)
        interpreter = trial.install(wheel, Path(place, "empty"))
        desk = Path(place, "desk")
        desk.mkdir()
        faults = trial.try_out(interpreter, desk, version)
        if faults:
            raise ValueError("\n".join(faults))
        shutil.copy(desk / "deck.apkg", FOLDER / bundle.named(version, ".apkg"))
    (FOLDER / "NOTES.md").write_text(text, encoding="utf-8")


def main(root: Path = ROOT) -> int:
    """Make a release, or say what is in its way."""
    sys.path.append(str(root))
    from companion import __version__ as version

    try:
        make(root, version)
        print(audit(root))
    except (ValueError, subprocess.CalledProcessError) as error:
        print(f"No release: {error}")
        return 1
    for suffix in (bundle.ZIP, *bundle.PDFS):
        shutil.copy(bundle.FOLDER / bundle.named(version, suffix), FOLDER)
    add_sums(FOLDER)
    print(f"Version {version}: {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
