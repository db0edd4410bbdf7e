"""Walk a learner's way through Colab: a bare runtime, an empty folder.

    make journey [ONLY=book/06_masks.ipynb] [RUNTIME=3.13] [TORCH=2.11]
        [WITH="numpy==2.1.* ipython==7.34.*"]

Each notebook gets a new environment with what such a runtime has, and without
the course. Its own install cell fetches the course from a repository made of
the working commit, which stands in for the public home. The outputs must be
those stored, plots excepted: each matplotlib draws in bytes of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import colab
import trial

FOLDER = colab.ROOT / "_build" / "journey"
DIFFERS = Path(__file__).with_suffix(".cfg")
HOME = "somebody/course"
RUNTIME = ("numpy", "matplotlib", "ipywidgets", "ipykernel", "pip")
CELL_LIMIT_S = 600


def runtime(folder: Path, python: str, torch: str) -> Path:
    """Make an environment with torch and a kernel; return its interpreter.

    WITH says of what version something shall be.
    """
    uv = Path(sys.executable).with_name("uv")
    new = [uv, "venv", "--quiet", "--clear", "--python", python, folder]
    subprocess.run(new, check=True)
    interpreter = folder / "bin" / "python"
    # Where pip is told to look, uv looks too.
    links = os.environ.get("PIP_FIND_LINKS")
    sources = {"UV_FIND_LINKS": links} if links else {}
    install = [uv, "pip", "install", "--quiet", "--python", interpreter]
    with_ = os.environ.get("WITH", "").split()
    subprocess.run(
        [*install, f"torch=={torch}.*", *RUNTIME, *with_],
        check=True,
        env=os.environ | sources,
    )
    return interpreter


def stand_in(root: Path, folder: Path) -> str:
    """Make a repository of the working commit's files; return its commit.

    It is no clone: of a shallow one pip wants a part of what is not there, and
    git starts itself again and again to find it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    files = folder.with_suffix(".zip")
    colab.git(root, "archive", "--output", str(files), "HEAD")
    shutil.unpack_archive(files, folder)
    files.unlink()
    colab.git(folder, "init", "--quiet")
    colab.git(folder, "add", "--all", "--force")
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    unsigned = ("-c", "commit.gpgsign=false")
    colab.git(folder, *who, *unsigned, "commit", "--quiet", "-m", ".")
    return colab.working_commit(folder)


def surroundings(home: Path, kernels: Path, interpreter: Path) -> dict:
    """Return what makes ``home`` public, and ``interpreter`` the kernel."""
    start = [str(interpreter), "-m", "ipykernel_launcher"]
    kernel = {"argv": [*start, "-f", "{connection_file}"], "language": "python"}
    path = kernels / "kernels" / "runtime" / "kernel.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(kernel), encoding="utf-8")
    return trial.own() | {
        "JUPYTER_PATH": str(kernels),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{home}.insteadOf",
        "GIT_CONFIG_VALUE_0": f"https://github.com/{HOME}",
    }


def walk(notebook: Path, around: dict) -> subprocess.CompletedProcess:
    """Run the notebook's cells against its stored outputs, as nbval does."""
    options = ["--quiet", "-p", "no:cacheprovider", "--nbval"]
    options += ["--nbval-kernel-name=runtime"]
    options += [f"--nbval-cell-timeout={CELL_LIMIT_S}"]
    options += [f"--nbval-sanitize-with={DIFFERS}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, notebook],
        env=around,
        capture_output=True,
        text=True,
    )


def journey(notebook: Path, home: Path, python: str, torch: str) -> bool:
    """Take one published notebook through a runtime of its own."""
    place = FOLDER / notebook.stem
    shutil.rmtree(place, ignore_errors=True)
    desk = place / "desk"
    desk.mkdir(parents=True)
    shutil.copy(notebook, desk)
    interpreter = runtime(place / "runtime", python, torch)
    around = surroundings(home, place / "jupyter", interpreter)
    done = walk(desk / notebook.name, around)
    if done.returncode:
        print(done.stdout + done.stderr)
    last = done.stdout.strip().splitlines()[-1]
    print(f"{notebook.stem}: {last}", flush=True)
    shutil.rmtree(place)
    return done.returncode == 0


def main(names: list[str]) -> int:
    """Walk through the named notebooks, or all; return how many failed."""
    python = os.environ.get("RUNTIME") or sys.executable
    torch = os.environ.get("TORCH") or version("torch").split("+")[0]
    home = FOLDER / "home"
    commit = stand_in(colab.ROOT, home)
    print(f"Python {python}, torch {torch}", flush=True)
    editions = colab.publish(home, FOLDER / "editions", HOME, commit)
    wanted = {Path(name).stem for name in names} or {p.stem for p in editions}
    if unknown := wanted - {path.stem for path in editions}:
        print(f"ONLY: no such notebook: {' '.join(sorted(unknown))}")
        return len(unknown)
    chosen = [path for path in editions if path.stem in wanted]
    return sum(not journey(path, home, python, torch) for path in chosen)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
