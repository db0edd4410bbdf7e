"""The package without its extras, and what it says when one is missing."""

import json
import subprocess
import sys

import pytest

import companion
from companion import CHAPTERS, extras
from companion.extras import lazy

pytestmark = pytest.mark.once

PARTS = (*CHAPTERS, "contracts", "zoo", "figures", "interview", "commands")
EXTRAS = (
    *("matplotlib", "ipywidgets", "tqdm", "safetensors", "sentencepiece"),
    *("platformdirs", "filelock", "rich", "fsrs", "genanki", "sacrebleu"),
)
# What is used -> the package that it needs, and the extra that has it.
USES = {
    "data.files locate('multi30k')": ("platformdirs", "train"),
    "data.download fetch('', 'x', sha256='', size=0)": ("filelock", "train"),
    "data.subwords Subwords.train(['a'], 300)": ("sentencepiece", "train"),
    "training.checkpoint safetensors.load_file('x')": ("safetensors", "train"),
    "training.trainer tqdm.tqdm()": ("tqdm", "train"),
    "figures plot": ("matplotlib", "figures"),
    "figures.live": ("ipywidgets", "figures"),
    "interview.anki": ("genanki", "interview"),
    "interview.model.progress place()": ("platformdirs", "interview"),
    "interview.model.review": ("fsrs", "interview"),
    "interview.terminal": ("rich", "interview"),
}
SCRIPT = f"""
import json, os, sys
from importlib import import_module
from pathlib import Path
import companion.extras

companion.extras.ROOT = Path("nowhere")  # As in an installed package.

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
os.environ.pop("COMPANION_DATA", None)
for part in {PARTS}:
    import_module("companion." + part)
messages = {{}}
for use in {tuple(USES)}:
    try:
        part, _, expression = use.partition(" ")
        module = import_module("companion." + part)
        if expression:
            eval("module." + expression)
    except ModuleNotFoundError as error:
        messages[use] = str(error)
print(json.dumps(messages))
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """What each use says where no extra is installed."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path_factory.mktemp("empty"),
        capture_output=True,
        text=True,
    )
    # All parts were imported: none of them needs an extra.
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("use", USES)
def test_a_missing_extra_is_named_with_the_line_that_installs_it(messages, use):
    package, extra = USES[use]
    expected = f"{package} is missing: pip install 'companion[{extra}]'"
    assert messages[use] == expected


def test_a_command_names_the_extra_that_it_needs():
    done = subprocess.run(
        [sys.executable, "-c", STATS], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: rich is missing: pip install 'companion[interview]'\n"
    )


STATS = """
import sys
from pathlib import Path
import companion.extras
companion.extras.ROOT = Path("nowhere")
sys.modules["rich"] = sys.modules["rich.text"] = None
from companion.commands import main
sys.exit(main(["stats"]))
"""


def test_a_lazy_module_is_imported_when_it_is_used():
    assert lazy("json.decoder", "train").JSONDecoder().decode("[2]") == [2]


def test_without_a_checkout_the_line_installs_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "ROOT", tmp_path)
    with (
        pytest.raises(
            ModuleNotFoundError, match=r"pip install 'companion\[train\]'"
        ),
        extras.extra("train"),
    ):
        import nosuchpackage  # noqa: F401


def test_from_another_folder_the_line_leads_to_the_checkout(
    tmp_path, monkeypatch
):
    home = tmp_path / "课 程"
    home.mkdir()
    (home / "Makefile").touch()
    monkeypatch.setattr(extras, "ROOT", home)
    with (
        pytest.raises(ModuleNotFoundError, match=r"make -C '.*课 程' install"),
        extras.extra("train"),
    ):
        import nosuchpackage  # noqa: F401


def test_the_version_is_told_without_any_package():
    bare = [sys.executable, "-S", "-m", "companion", "--version"]
    done = subprocess.run(
        bare, cwd=extras.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"companion {companion.__version__}\n"
