"""The command line: what it trains, what it says, and how it refuses."""

import dataclasses
import io
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from support.standin import stand_in

from benchmarks.scores import exact_match
from companion import decoding
from companion.commands import alignment, curve, main
from companion.commands import train as train_command
from companion.commands.alignment import as_text, columns
from companion.commands.translate import attended, newest, read
from companion.shell import typed
from companion.training import TrainConfig, load_trained, read_log, trainer
from companion.training.checkpoint import every
from companion.training.config import (
    DIRECTIONS,
    SCHEDULES,
    SCRIPTS,
    help_of,
)

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
SMALL = "--d-model 8 --d-ff 11 --num-heads 2 --warmup 3 --batch-tokens 256"
SHORT = [*SMALL.split(), "--steps", "13", "--save-every", "5"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of the default run, which takes seconds."""
    folder = tmp_path_factory.mktemp("runs") / "phrasebook"
    assert main(["train", "--folder", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The folder of a run that has learnt next to nothing."""
    folder = tmp_path_factory.mktemp("short") / "runs" / "short"
    assert main(["train", "--folder", str(folder), *SHORT]) == 0
    return folder


@pytest.fixture
def say(capsys):
    """Runs a command; returns its exit code, and what it told."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return run


# Training.


def test_the_default_run_says_99_percent_of_unseen_sentences(run, say):
    score = exact_match(load_trained(run), beam=1, alpha=0.6)
    assert score.value >= 99
    for beam in (1, 4):
        told = say("translate", "我爱小猫", "--folder", run, "--beam", beam)
        assert told == (0, "I love little cats\n", "")


def test_a_run_says_where_things_are_and_what_to_type_next(tmp_path, say):
    folder = tmp_path / "here"
    code, out, err = say("train", "--folder", folder, *SHORT)
    assert code == 0
    assert err == ""  # No bar where there is no terminal.
    first, done, then = out.splitlines()
    assert first == f"phrasebook, 13 steps, in {folder}"
    assert done.startswith("Done: step 13, loss ")
    assert "validation" in done
    assert done.endswith(f"The curve: {folder / 'curve.svg'}")
    command = typed("translate", "我爱小猫", "--folder", str(folder))
    assert then == f"Next: {command}"


@pytest.mark.parametrize(
    ("told", "d_model", "wanted"), [("", 64, [1]), ("2", 64, []), ("", 136, [])]
)
def test_a_small_model_takes_one_thread_unless_told(
    monkeypatch, told, d_model, wanted
):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if told:
        monkeypatch.setenv("OMP_NUM_THREADS", told)
    chosen = []
    monkeypatch.setattr(torch, "set_num_threads", chosen.append)
    train_command._choose_threads(TrainConfig(d_model=d_model))
    assert chosen == wanted


def test_each_task_has_a_sentence_to_try_next(tmp_path, say, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    sentences = {
        ("phrasebook", "en-zh"): "I love little cats",
        ("reverse", None): "abc",
        ("multi30k", "de-en"): "eine kleine katze schläft .",
        # As the model has read it: in lower case.
        ("multi30k", "en-de"): "a small cat is sleeping .",
    }
    for (data, direction), sentence in sentences.items():
        more = ["--direction", direction] if direction else []
        folder = tmp_path / f"{data}-{direction}"
        code, out, err = say(
            *("train", "--folder", folder, "--data", data, *SHORT),
            *("--vocab-size", "300", *more),
        )
        assert (code, err) == (0, "")
        assert f"translate {shlex.quote(sentence)} " in out
        if data != "multi30k":
            assert say("translate", sentence, "--folder", folder)[0] == 0


def test_flags_win_over_the_file_and_the_preset(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        train_command, "train", lambda c, f: seen.append((c, f))
    )
    monkeypatch.setattr(train_command, "_finish", lambda *_: None)
    file = tmp_path / "run.toml"
    file.write_text("steps = 7\nclip = 2.0\nwarmup = 3\n")
    flags = "--clip none --bf16 --peak 1e-3 --seed 5 --direction en-zh"
    main(["train", "--config", str(file), *flags.split()])
    main(["train", "--preset", "small", "--steps", "11", "--no-compile"])
    assert seen[0][0] == TrainConfig(
        steps=7,
        warmup=3,
        clip=None,
        bf16=True,
        peak=1e-3,
        seed=5,
        direction="en-zh",
    )
    assert seen[1][0] == TrainConfig.preset("small", steps=11)
    assert seen[1][0].warmup == 1000  # noam has no end to keep in shape.
    folders = [folder.as_posix() for _, folder in seen]
    assert folders == ["runs/phrasebook", "runs/tatoeba"]


def test_ten_steps_have_a_warm_up_that_fits_and_it_is_told(
    tmp_path, say, capsys
):
    folder = tmp_path / "ten"
    more = [word for word in SHORT if word not in ("--warmup", "3")]
    more[more.index("13")] = "10"
    code, out, err = say("train", "--folder", folder, *more)
    assert (code, err) == (0, "")
    # 50 of 400 steps are 1 of 10.
    first = f"phrasebook, 10 steps, warm-up 1, in {folder}"
    assert out.splitlines()[0] == first
    assert load_trained(folder).config.warmup == 1


def test_every_field_of_a_run_has_a_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    told = capsys.readouterr().out
    for field in dataclasses.fields(TrainConfig):
        assert f"--{field.name.replace('_', '-')}" in told
    one_line = " ".join(told.split())
    for field in dataclasses.fields(TrainConfig):
        assert help_of(field) in one_line
    for choices in (DIRECTIONS, SCHEDULES, SCRIPTS[1:]):
        assert f"({', '.join(choices)})" in one_line
    assert "on a CPU the first steps take minutes" in one_line


def test_a_stopped_run_says_so_and_the_same_command_goes_on(
    tmp_path, say, monkeypatch
):
    update = trainer.update

    def stopped(*arguments, step, **more):
        if step == 8:
            raise KeyboardInterrupt
        return update(*arguments, step=step, **more)

    monkeypatch.setattr(trainer, "update", stopped)
    command = ["train", "--folder", tmp_path, *SHORT]
    code, out, err = say(*command)
    assert (code, err) == (130, "")
    assert f"Stopped: step-00000005 in {tmp_path}" in out

    monkeypatch.setattr(trainer, "update", update)
    drawn = []
    monkeypatch.setattr(train_command, "draw", lambda log, _: drawn.extend(log))
    assert say(*command)[0] == 0
    # The curve is that of the whole run.
    assert [row["step"] for row in drawn] == list(range(1, 14))


def test_stopped_before_a_checkpoint_it_says_that_it_begins_anew(
    tmp_path, say, monkeypatch
):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "update", stopped)
    code, out, _ = say("train", "--folder", tmp_path, *SHORT)
    assert code == 130
    assert f"no checkpoint yet in {tmp_path}" in out
    assert "The same command begins anew." in out
    assert "goes on" not in out


def test_a_finished_run_without_its_log_is_whole_and_has_no_curve(
    tmp_path, say
):
    command = ["train", "--folder", tmp_path, *SHORT]
    say(*command)
    (tmp_path / "log.csv").unlink()
    (tmp_path / "curve.svg").unlink()
    code, out, err = say(*command)
    assert (code, err) == (0, "")
    lost = f"No curve: {tmp_path / 'log.csv'} has lost its rows."
    assert f"Done: step 13. {lost}" in out
    assert not (tmp_path / "curve.svg").exists()


# The curve.


def row(step, validation=None):
    return {
        "step": float(step),
        "loss": 2.0 * step,
        "rate": 3.0,
        "validation": validation,
    }


def test_the_curve_has_both_losses_and_the_rate(tmp_path):
    path = curve.draw([row(1), row(2, 5.0), row(3)], tmp_path / "curve.svg")
    ids = {node.get("id") for node in ElementTree.parse(path).iter()}
    assert ids >= {"loss", "validation", "rate"}


def test_many_steps_become_means_of_a_few_hundred():
    assert curve.thinned([row(n) for n in range(500)], "step") == [*range(500)]
    log = [row(n) for n in range(1201)]
    thin = curve.thinned(log, "loss")
    assert len(thin) == 401
    assert thin[:2] == [2.0, 8.0]  # Steps 0, 1, 2 and 3, 4, 5.
    assert thin[-1] == 2400.0


# Where it looked.


def test_an_alignment_on_paper():
    told = as_text(
        ["我", "爱", "zebra"],
        ["I", "热爱"],
        [[1.0, 0.0, 0.0], [0.04, 0.05, 0.91]],
    )
    assert told == (
        "       我   爱  zebra\n"  # Four columns for 热爱, three for each.
        "I     100    ·      ·\n"
        "热爱    ·    5     91"
    )


def test_the_columns_of_an_alignment_are_straight(run, say):
    code, out, _ = say("translate", "我爱小猫", "--folder", run, "--attention")
    assert code == 0
    answer, head, *rows = out.splitlines()
    assert answer == "I love little cats"
    assert len({columns(line) for line in (head, *rows)}) == 1
    assert head.split() == ["<bos>", *"我爱小猫", "<eos>"]
    words = [line.split()[0] for line in rows]
    assert words == ["I", "love", "little", "cats", "<eos>"]
    # "cats" took most from 猫: the fifth number of its row.
    cats = [0 if n == "·" else int(n) for n in rows[3].split()[1:]]
    assert max(range(6), key=cats.__getitem__) == 4


def test_what_it_looked_at_is_what_the_decoder_saw(run):
    trained = load_trained(run)
    src = read(trained, "我爱小猫")
    said = [trained.tgt_codec.encode("I love little cats")[0], 5, 7]
    rows = attended(trained, src, said)
    whole = trained.model.maps(
        src, torch.tensor([[trained.tgt_codec.bos, *said[:2]]])
    )
    torch.testing.assert_close(rows, whole.cross[-1].mean(1)[0])
    torch.testing.assert_close(rows.sum(-1), torch.ones(3))


@pytest.mark.parametrize("kind", [".svg", ".html"])
def test_an_alignment_can_be_kept(run, say, tmp_path, kind):
    file = tmp_path / f"alignment{kind}"
    told = say("translate", "我爱小猫", "--folder", run, "--attention", file)
    assert told == (0, f"I love little cats\nWhere it looked: {file}\n", "")
    page = file.read_text(encoding="utf-8")
    assert all(word in page for word in [*"我爱小猫", "little", "cats"])
    assert "<svg" in page
    if kind == ".svg":
        assert ElementTree.fromstring(page).tag.endswith("svg")


def test_the_text_may_follow_the_option(run, say):
    one = say("translate", "--folder", run, "--attention", "我爱小猫")
    other = say("translate", "我爱小猫", "--attention", "--folder", run)
    assert one == other
    assert one[0] == 0


# Sentences on the standard input.


@pytest.fixture
def pipe(monkeypatch):
    """Puts a text where a command reads its standard input."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_each_line_of_the_input_is_translated(run, say, pipe):
    pipe("我爱小猫\n\n你爱小狗\n")
    told = say("translate", "--folder", run)
    assert told == (0, "I love little cats\nyou love little dogs\n", "")


def test_an_answer_without_a_word_is_said_to_be_one(short, say, monkeypatch):
    eos = load_trained(short).tgt_codec.eos
    answers = iter([[[eos]], [[5, eos]]])
    monkeypatch.setattr(decoding, "translate", lambda *a, **k: next(answers))
    for note in ("trained for 13 steps", ""):
        code, out, err = say("translate", "我爱小猫", "--folder", short)
        assert (code, out.strip() == "") == (0, bool(note))
        assert err.endswith(f"{note}\n") if note else err == ""


@pytest.mark.bad_input
def test_of_several_lines_none_is_translated_if_one_cannot_be(run, say, pipe):
    pipe("我爱小猫\n我爱龙\n")
    assert refused(say("translate", "--folder", run), "'龙'") == ""
    pipe("我爱小猫\n我爱小狗\n")
    told = say("translate", "--folder", run, "--attention")
    assert refused(told, "attention: expected one sentence", "got 2") == ""


@pytest.mark.bad_input
def test_nobody_waits_for_a_terminal_to_be_typed_at(say, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for source in (Terminal("我\n"), io.StringIO(" \n"), None):
        monkeypatch.setattr("sys.stdin", source)
        refused(say("translate"), "text: expected a sentence, or lines")


# Which run.


def test_the_newest_run_answers(short, say, monkeypatch):
    older = short.with_name("older")
    assert main(["train", "--folder", str(older), *SHORT]) == 0
    last = {f: every(f / "checkpoints")[-1] for f in (short, older)}
    os.utime(last[older], (1, 1))
    assert newest(short.parent) == short
    os.utime(last[short], (0, 0))
    assert newest(short.parent) == older

    monkeypatch.chdir(short.parents[1])
    said = [say("translate", "我爱小猫", *f) for f in ([], ["--folder", older])]
    assert said[0] == said[1]
    assert said[0][0] == 0


def test_a_newer_run_that_cannot_answer_is_passed_over(
    tmp_path, say, monkeypatch
):
    stand_in(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert main(["train", *SHORT]) == 0
    poems = ["--data", "shakespeare", "--max-len", "11"]
    assert main(["train", *poems, *SHORT]) == 0
    begun = Path("runs/begun")  # It has no checkpoint yet.
    begun.mkdir()
    for name in ("source.codec", "target.codec", "config.json", "log.csv"):
        (begun / name).write_bytes(Path("runs/phrasebook", name).read_bytes())
    assert newest(Path("runs")) == Path("runs/phrasebook")
    assert say("translate", "我")[0] == 0


def test_the_answer_is_as_long_as_wanted_at_most(short, say):
    trained = load_trained(short)
    for most in (1, 3):
        told = say("translate", "我", "--folder", short, "--max-len", most)
        assert len(trained.tgt_codec.tokens(told[1].strip())) <= most


def test_help_needs_no_torch_and_is_what_no_command_gets():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from companion.commands import main; sys.exit(main([]))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True
    )
    assert b"translate" in told.stdout


# Bad input: one line, exit code 2, and no traceback.


def refused(told, *parts):
    code, out, err = told
    assert code == 2
    assert err.count("\n") == 1
    assert all(part in err for part in ("error: ", *parts)), err
    return out


@pytest.mark.bad_input
def test_without_a_run_it_says_how_to_train_one(tmp_path, say, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(say("translate", "我"), "no trained model", typed("train"))


@pytest.mark.bad_input
def test_a_folder_without_a_run_is_named(tmp_path, say):
    refused(say("translate", "我", "--folder", tmp_path / "no"), "no")


@pytest.mark.bad_input
def test_an_unknown_character_is_named(short, say):
    told = say("translate", "我爱龙", "--folder", short)
    assert refused(told, "unknown token '龙'", "learnt 74 characters") == ""
    assert "for example 我爱小猫: 我爱猫喜欢" in told[2].replace("'", "")
    for newcomer in ("hello", "我爱小猫！"):
        told = say("translate", newcomer, "--folder", short)
        refused(told, "has learnt 74 characters and no others")


@pytest.mark.bad_input
def test_a_vocabulary_of_another_run_is_named(short, say, tmp_path):
    folder = tmp_path / "mixed"
    shutil.copytree(short, folder)
    shutil.copy(folder / "target.codec", folder / "source.codec")
    for saved in every(folder / "checkpoints"):
        saved.unlink()
    told = say("train", "--folder", folder, *SHORT)
    refused(told, str(folder), "source.codec and target.codec", "'我爱")
    (folder / "source.codec").unlink()
    for command in (["train", *SHORT], ["translate", "我"]):
        if command[0] == "translate":
            shutil.copytree(
                short / "checkpoints",
                folder / "checkpoints",
                dirs_exist_ok=True,
            )
        told = say(*command, "--folder", folder)
        refused(told, f"{folder / 'source.codec'}: No such file")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected at least one token"),
        ("我" * 127, "expected at most 126 tokens (max_len = 128"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused(short, say, text, words):
    refused(say("translate", text, "--folder", short), words)


@pytest.mark.bad_input
def test_the_longest_text_is_read(short, say):
    told = say("translate", "我" * 126, "--folder", short, "--max-len", 1)
    assert told[0] == 0


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", "0"], "beam: expected at least 1"),
        (["--beam", "101"], "beam: expected at most 100, got 101"),
        (["--alpha", "-1"], "alpha"),
        (["--max-len", "0"], "max_len: expected at least 1, got 0"),
        (["我", "--attention", "map.png"], "ends in .svg or .html"),
    ],
)
def test_an_option_that_cannot_be_is_named(short, say, options, words):
    more = [] if "--attention" in options else ["我"]
    refused(say("translate", *more, *options, "--folder", short), words)


@pytest.mark.bad_input
def test_a_language_model_is_said_not_to_translate(tmp_path, say, monkeypatch):
    stand_in(tmp_path, monkeypatch)
    folder, data = tmp_path / "run", ["--data", "shakespeare", "--max-len", 11]
    code, out, _ = say("train", "--folder", folder, *data, *SHORT)
    assert code == 0
    assert "translate" not in out
    told = say("translate", "To be", "--folder", folder)
    refused(told, "expected a model that translates")


@pytest.mark.bad_input
def test_another_configuration_is_refused_and_nothing_is_lost(short, say):
    before = read_log(short)
    told = say("train", "--folder", short, *SHORT, "--seed", 3)
    refused(told, "seed", "another folder")
    assert read_log(short) == before


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step = 7", "unknown key 'step'; the nearest known one is 'steps'"),
        ("foo = 7", "unknown key 'foo'; the known ones are data, direction,"),
        ("[train]\nsteps = 7", "unknown key 'train'; the known ones are"),
        ("steps = 0", "steps: expected at least 1"),
        ("steps = ", "run.toml"),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path, say, text, words):
    file = tmp_path / "run.toml"
    file.write_text(text)
    refused(say("train", "--config", file), str(file), words)
    refused(say("train", "--config", tmp_path / "no.toml"), "no.toml")


@pytest.mark.bad_input
def test_a_flag_that_is_none_is_named(say, capsys):
    for flags in (["--step", "3"], ["--steps", "many"]):
        with pytest.raises(SystemExit, match="2"):
            main(["train", *flags])
        assert flags[0] in capsys.readouterr().err


@pytest.mark.bad_input
def test_another_process_than_the_first_says_which_it_is(say, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    code, out, err = say("train", "--steps", "0")
    assert (code, out) == (2, "")
    assert err.startswith("process 1: error: steps")


@pytest.mark.bad_input
def test_a_picture_of_no_steps_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected at least one step"):
        curve.draw([], tmp_path / "curve.svg")


@pytest.mark.bad_input
def test_an_alignment_is_saved_as_something_known(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.svg or \.html, got"):
        alignment.save(tmp_path / "a.pdf", ["a"], ["b"], [[1.0]])
