"""Recipes: what they train, how they are measured, and what is written."""

import json
import re
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from support.accelerator import accelerator
from support.standin import stand_in

from benchmarks import models as boxed
from benchmarks import recipes, scores
from benchmarks.recipes import gpt, table
from benchmarks.scores import (
    bleu,
    counted_loss,
    exact_match,
    validation_loss,
)
from companion import decoding, models
from companion.data.corpora import shakespeare
from companion.training import (
    TrainConfig,
    corpus,
    load_trained,
    read_log,
    train,
)
from companion.variants import GPT

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
SMALL = """vocab_size = 300
d_model = 8
num_heads = 2
d_ff = 11
batch_tokens = 512
steps = 7
warmup = 3
save_every = 1
"""
SETTINGS = {"beam": 1, "alpha": 0.6}


def data_of(name):
    """shakespeare-cpu is shakespeare in another size."""
    return name.partition("-")[0]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Recipes of seven steps on corpora of the same format."""
    stand_in(tmp_path / "data", monkeypatch)
    folder = tmp_path / "toml"
    folder.mkdir()
    for name in recipes.RECIPES:
        text = f'data = "{data_of(name)}"\n{SMALL}'
        if name == "tatoeba":  # Chinese has many characters.
            text = text.replace("= 300", "= 600")
        (folder / f"{name}.toml").write_text(text)
    monkeypatch.setattr(recipes, "TOML", folder)
    return folder


@pytest.fixture
def trained(small, tmp_path):
    """Trains the small recipe of a name."""

    def made(name):
        config = TrainConfig.from_toml(small / f"{name}.toml")
        build = recipes.RECIPES[name].build
        return train(config, tmp_path / "trained" / name, build=build)

    return made


@pytest.fixture
def stub_model(monkeypatch):
    """Has a model answer whatever ``answer`` makes of a source's text."""

    def replace(trained, answer):
        def translate(model, src, *, max_len, beam, alpha):
            assert model is trained.model
            texts = (trained.src_codec.decode(row) for row in src)
            codec = trained.tgt_codec
            return [[*codec.encode(answer(t)), codec.eos] for t in texts]

        monkeypatch.setattr(scores.decoding, "translate", translate)

    return replace


# What is trained.


def test_each_recipe_has_a_file_that_trains_what_it_is_called():
    files = {path.stem: path for path in recipes.TOML.glob("*.toml")}
    assert set(files) == set(recipes.RECIPES)
    for name, path in files.items():
        assert TrainConfig.from_toml(path).data == data_of(name)


def test_the_recipe_of_multi30k_is_the_tiny_one():
    config = TrainConfig.from_toml(recipes.TOML / "multi30k.toml")
    recipe = recipes.RECIPES["multi30k"]
    assert (config.num_layers, config.d_model, config.d_ff) == (4, 128, 256)
    assert (config.num_heads, config.dropout) == (4, 0.3)
    assert (config.vocab_size, config.sides()) == (10_000, ("en", "de"))
    assert (recipe.beam, recipe.average, config.keep) == (5, 10, 10)
    assert "41.02" in recipe.beside


@pytest.mark.parametrize(
    ("name", "length", "windows", "layers", "width", "beside"),
    [
        ("shakespeare", 256, 64, 6, 384, "1.4697"),
        ("shakespeare-cpu", 64, 12, 4, 128, "1.88"),
    ],
)
def test_shakespeare_is_read_by_gpts_of_the_sizes_of_nanogpt(
    name, length, windows, layers, width, beside
):
    config = TrainConfig.from_toml(recipes.TOML / f"{name}.toml")
    assert config.batch_tokens == length * windows
    assert (config.num_layers, config.d_model) == (layers, width)
    assert (config.d_ff, config.num_heads) == (4 * width, config.num_layers)
    made = recipes.RECIPES[name].build(config, None, range(65))
    assert isinstance(made, GPT)
    assert made.config.max_len == length
    assert made.config.norm_first
    assert beside in recipes.RECIPES[name].beside


def test_what_is_averaged_is_kept():
    for name, recipe in recipes.RECIPES.items():
        config = TrainConfig.from_toml(recipes.TOML / f"{name}.toml")
        saved = config.steps // config.save_every
        assert recipe.average <= min(config.keep, saved), name


# How it is measured.


def test_exact_match_is_the_share_that_is_the_reference(trained, stub_model):
    copier = trained("copy")
    stub_model(copier, lambda text: text if len(text) % 2 else text + "a")
    test = corpus(copier.config).test
    odd = sum(len(text) % 2 for text, _ in test)
    assert 0 < odd < len(test)
    score = exact_match(copier, **SETTINGS)
    assert score.value == pytest.approx(100 * odd / len(test))
    assert score.over == f"{len(test)} unseen sentences"


@pytest.mark.parametrize(
    ("name", "how"), [("multi30k", "tok:none"), ("tatoeba", "tok:13a")]
)
def test_bleu_is_that_of_each_answer_with_its_own_reference(
    trained, stub_model, name, how
):
    model = trained(name)
    test = dict(corpus(model.config).test)
    stub_model(model, test.get)
    score = bleu(model, **SETTINGS)
    assert score.value == pytest.approx(100)
    assert how in score.over

    def worse(text):
        return test[text].replace(" in ", " at ").replace(" im ", " am ")

    stub_model(model, worse)
    value = bleu(model, **SETTINGS).value
    assert value < 99
    if name == "multi30k":
        own = decoding.bleu(
            [worse(text).split() for text in test],
            [text.split() for text in test.values()],
        )
        assert value == pytest.approx(own)


def test_the_interval_is_that_of_resampled_sentences(monkeypatch):
    expected = [
        "a cat sat on the mat",
        "the dog ran home",
        "it is late",
        "we saw two of them",
        "who is it, then?",
    ]
    got = [text.replace("the", "a") for text in expected[:4]] + ["who is he?"]
    metric = sacrebleu.BLEU()
    monkeypatch.setattr(scores, "RESAMPLED", 23)
    rng, redone = np.random.default_rng(0), []
    for _ in range(23):
        rows = rng.integers(5, size=5)
        drawn = [got[i] for i in rows], [[expected[i] for i in rows]]
        redone.append(metric.corpus_score(*drawn).score)
    ends = np.percentile(redone, [2.5, 97.5])
    assert scores.bleu_interval(metric, got, expected) == pytest.approx(ends)
    same = scores.bleu_interval(metric, expected, expected)
    assert same == pytest.approx((100, 100))


def test_a_model_that_learnt_nothing_scores_low(trained):
    # Next to nothing was learnt, and a beam is not what greedy is.
    score = bleu(trained("multi30k"), beam=2, alpha=0.6)
    assert 0 <= score.value < 50


@pytest.mark.parametrize("name", ["shakespeare", "phrasebook"])
def test_the_validation_loss_is_what_the_trainer_logged(
    trained, tmp_path, name
):
    model = trained(name)
    logged = read_log(tmp_path / "trained" / name)[-1]["validation"]
    assert validation_loss(model).value == pytest.approx(logged, rel=1e-4)


def test_what_was_measured_on_an_accelerator_is_written(small, tmp_path):
    with accelerator():
        where = {"runs": tmp_path / "runs", "results": tmp_path / "results"}
        path = recipes.run("shakespeare", 1, None, **where)
    (run,) = json.loads(path.read_text())["runs"]
    assert run["score"] == pytest.approx(run["last_validation_loss"], rel=1e-3)


def test_counts_on_paper():
    # Of three characters two are a, and each count is one larger.
    alone = counted_loss("aab", "ab", context=0)
    assert alone == pytest.approx(-(log(3 / 5) + log(2 / 5)) / 2)
    # After the two a that are followed: once a, once b.
    assert counted_loss("aab", "ab", context=1) == pytest.approx(log(2))
    # Nothing ever followed b.
    assert counted_loss("aab", "bb", context=1) == pytest.approx(log(2))


@pytest.mark.parametrize("before", ["", "o", "to", "x y"])
def test_the_shares_of_all_characters_add_up_to_1(before):
    text = "to be, or not to be: that is the question, x or y. " * 3
    losses = [
        counted_loss(text, before + last, context=len(before))
        for last in set(text)
    ]
    assert sum(exp(-loss) for loss in losses) == pytest.approx(1)


# What is written.


def launch(tmp_path, name, seeds=1, steps=None):
    runs, results = tmp_path / "runs", tmp_path / "results"
    path = recipes.run(name, seeds, steps, runs, results)
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_result_says_what_was_reached_on_what_and_how(small, tmp_path):
    result = launch(tmp_path, "multi30k", seeds=2)
    assert result["recipe"] == "multi30k"
    assert result["config"]["steps"] == result["planned_steps"] == 7
    assert set(result["versions"]) >= {"python", "torch", "sacrebleu"}
    assert result["device"]
    assert result["threads"] >= 1
    first, second = result["runs"]
    assert (first["seed"], second["seed"]) == (0, 1)
    assert first["last_validation_loss"] != second["last_validation_loss"]
    assert first["averaged"] == 7  # As many as there are, of 10.
    for run in result["runs"]:
        assert run["seconds"] > 0
        assert run["cpu_seconds"] > 0
        assert run["memory_mib"] > 50
        assert run["tokens"] > 0
    assert load_trained(tmp_path / "runs/multi30k-7/seed-1").config.seed == 1


def test_a_gpt_stands_beside_counts_of_the_same_text(small, tmp_path):
    result = launch(tmp_path, "shakespeare-cpu")
    said = r"1\.88 .*; counts of runs of 1, 2, 3, 4 characters: \d.*, \d\.\d\d"
    assert re.search(said, result["beside"])
    folder = tmp_path / "runs/shakespeare-cpu-7/seed-0"
    assert isinstance(load_trained(folder, build=gpt).model, GPT)


def test_a_run_that_was_stopped_is_gone_on_with(small, tmp_path):
    first = launch(tmp_path, "copy")["runs"][0]
    second = launch(tmp_path, "copy")["runs"][0]
    assert second.pop("cpu_seconds") is None
    assert first.pop("cpu_seconds") > 0
    assert second.pop("memory_mib") >= first.pop("memory_mib")
    assert first == second


def test_the_table_has_a_row_for_each_result_and_for_what_is_missing(
    small, tmp_path
):
    launch(tmp_path, "copy", seeds=2)
    launch(tmp_path, "copy", steps=5)
    launch(tmp_path, "shakespeare-cpu")
    told = table(recipes.measures(), tmp_path / "results").splitlines()
    assert len({line.count("|") for line in told}) == 1
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in told[2:]]
    found = [(row[0], row[3], row[4]) for row in cells]
    assert found == [
        ("phrasebook", "", ""),
        ("copy", "0", "5 of 7"),
        ("copy", "0, 1", "7"),
        ("reverse", "", ""),
        ("tatoeba", "", ""),
        ("multi30k", "", ""),
        ("shakespeare", "", ""),
        ("shakespeare-cpu", "0", "7"),
    ]
    reached = [row[2] for row in cells]
    assert [words == "not measured" for words in reached] == [
        *(True, False, False, True, True, True, True, False)
    ]
    assert "1.88" in cells[-1][1]
    # What a number would stand beside is told before there is one.
    assert "41.02" in cells[5][1]
    assert "1.4697" in cells[6][1]


def test_the_table_tells_the_lowest_loss_where_a_run_went_past_it(
    small, tmp_path
):
    launch(tmp_path, "shakespeare-cpu")
    (path,) = (tmp_path / "results").iterdir()

    def reached(lowest):
        result = json.loads(path.read_text())
        result["runs"][0] |= {"score": 2.5, "best_validation_loss": lowest}
        path.write_text(json.dumps(result))
        return table(recipes.measures(), path.parent).splitlines()[-1]

    assert "| 2.50 |" in reached(2.499)
    assert "| 2.50; lowest 2.41 |" in reached(2.41)


@pytest.mark.parametrize(
    ("kind", "cpu", "time"),
    [
        ("cuda", 30.0, "100 min"),
        ("cpu", 30.0, "31 s of CPU"),
        ("cpu", None, "100 min"),
    ],
)
def test_a_band_is_from_the_worst_to_the_best(tmp_path, kind, cpu, time):
    result = {
        "recipe": "copy",
        "measure": "exact match, %",
        "beside": "",
        "digits": 1,
        "planned_steps": 7,
        "kind": kind,
        "device": "a machine",
        "threads": 1,
        "date": "2026-01-01",
        "config": {"steps": 7},
        "runs": [
            {
                "seed": seed,
                "score": score,
                "seconds": 60.0 * score,
                "cpu_seconds": cpu and cpu + seed / 2,
                "memory_mib": 5.0 + seed,
            }
            for seed, score in enumerate([9.96, 100.0, 10.04])
        ],
    }
    (tmp_path / "recipe-copy-a.json").write_text(json.dumps(result))
    assert table({"copy": "x"}, tmp_path).splitlines()[-1] == (
        f"| copy | exact match, % | 10.0 … 100.0 | 0, 1, 2 | 7 | {time} | "
        "7 MiB | a machine, 1 thread(s), 2026-01-01 |"
    )


def test_the_command_writes_a_result_and_shows_the_table(
    small, tmp_path, capsys
):
    where = ["--runs", f"{tmp_path}/runs", "--results", f"{tmp_path}/results"]
    recipes.main(["reverse", "--seeds", "1", "--steps", "3", *where])
    first = capsys.readouterr().out
    assert "reverse, seed 0: exact match, % 0.0" in first
    recipes.main(["--table", *where])
    assert capsys.readouterr().out in first


def test_a_recipe_that_is_only_tried_leaves_the_results_alone(
    small, tmp_path, monkeypatch, capsys
):
    committed = tmp_path / "results"
    monkeypatch.setattr(recipes, "RESULTS", committed)
    where = ["--seeds", "1", "--runs", f"{tmp_path}/runs"]
    recipes.main(["copy", "--steps", "5", *where])
    assert "5 of 7" in capsys.readouterr().out
    assert not committed.exists()
    [path] = (tmp_path / "runs").glob("recipe-copy-*-5-steps.json")
    config = json.loads(path.read_text())["config"]
    # Three of seven steps become two of five.
    assert (config["steps"], config["warmup"]) == (5, 2)
    recipes.main(["copy", *where])
    assert len(list(committed.glob("recipe-copy-*.json"))) == 1


# What is packed.


@pytest.fixture
def box(small, tmp_path, monkeypatch):
    """A folder for models, with empty cards."""
    for name in models.NAMES:
        (tmp_path / "box" / name).mkdir(parents=True)
        empty = "# A card\n<!-- measured -->\nold\n<!-- until here -->\nend\n"
        (tmp_path / "box" / name / "card.md").write_text(empty)
    monkeypatch.setattr(models, "HERE", tmp_path / "box")
    monkeypatch.setattr(boxed, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(boxed, "EVERY", 2)
    monkeypatch.setattr(boxed, "CHARACTERS", 200)
    return tmp_path / "box"


def test_a_command_packs_seed_0_and_fills_the_card_of_a_translator(
    box, tmp_path
):
    path = boxed.make("zh-en", tmp_path / "runs")
    told = path.read_text(encoding="utf-8")
    assert told.startswith("# A card\n<!-- measured -->\n\n| what | number |")
    assert told.endswith("|\n\n<!-- until here -->\nend\n")
    assert "\nold\n" not in told
    assert re.search(r"\| BLEU of the \d+ test sentences.*\d \(0?\d.* … ", told)
    assert re.search(r"seed 1: \d.*; seed 2: \d", told)
    folder = tmp_path / "runs/tatoeba-7"
    whole = load_trained(folder / "seed-0", average=5)
    packed = models.load("zh-en")
    assert packed.config.seed == 0
    for old, new in zip(
        whole.model.parameters(), packed.model.parameters(), strict=True
    ):
        assert (old - new).abs().max() <= old.abs().max() / 250
    pairs = boxed.sample_pairs(box / "zh-en")
    assert pairs == corpus(whole.config).test[::2]
    # What is there is neither trained again nor changed.
    times = {p: p.stat().st_mtime_ns for p in folder.rglob("*.safetensors")}
    assert len(times) == 21
    assert boxed.make("zh-en", tmp_path / "runs").read_text("utf-8") == told
    assert times == {p: p.stat().st_mtime_ns for p in times}


def test_a_command_packs_and_measures_a_language_model(box, tmp_path):
    told = boxed.make("shakespeare", tmp_path / "runs").read_text("utf-8")
    packed = models.load("shakespeare")
    nats = validation_loss(packed).value
    assert f"| {nats / log(2):.3f} (" in told
    assert len(boxed.sample_text(box / "shakespeare")) == 200


def test_a_card_tells_of_the_runs_that_were_made_for_it(box, tmp_path):
    result = launch(tmp_path, "shakespeare-cpu", steps=3)
    result |= {"device": "another machine", "date": "9999-12-31"}
    other = tmp_path / "results/recipe-shakespeare-cpu-another-machine.json"
    other.write_text(json.dumps(result))
    told = boxed.make("shakespeare", tmp_path / "runs").read_text("utf-8")
    assert "another machine" not in told
    run = load_trained(tmp_path / "runs/shakespeare-cpu-7/seed-1", build=gpt)
    assert f"seed 1: {validation_loss(run).value / log(2):.3f}; seed 2" in told


def test_bits_a_byte_are_those_of_the_validation_loss(trained):
    model = trained("shakespeare")
    text = shakespeare().valid
    score = boxed.bits_a_byte(model, text)
    nats = validation_loss(model).value
    assert score.value == pytest.approx(nats / log(2), rel=1e-5)
    low, high = score.interval
    assert low < score.value < high


@pytest.mark.bad_input
def test_a_card_without_a_result_says_what_to_type(box):
    with pytest.raises(ValueError, match=r"benchmarks\.recipes tatoeba"):
        boxed._result("tatoeba")


# Bad input.


@pytest.mark.bad_input
def test_what_does_not_fit_is_told_without_a_traceback(small, tmp_path, capsys):
    where = ["--runs", f"{tmp_path}/runs", "--results", f"{tmp_path}/results"]
    with pytest.raises(SystemExit, match="2"):
        recipes.main(["copy", "--steps", "0", *where])
    assert "steps: expected at least 1, got 0" in capsys.readouterr().err


@pytest.mark.bad_input
def test_a_run_that_lost_its_log_is_not_measured(small, tmp_path):
    launch(tmp_path, "copy")
    [log] = (tmp_path / "runs").rglob("seed-0/log.csv")
    log.unlink()
    with pytest.raises(ValueError, match=r"log\.csv: expected .* got 0 rows"):
        launch(tmp_path, "copy")


@pytest.mark.bad_input
def test_what_cannot_be_run_is_named(small, tmp_path):
    with pytest.raises(ValueError, match=r"name: expected one of .*'poem'"):
        launch(tmp_path, "poem")
    with pytest.raises(ValueError, match="seeds: expected at least 1, got 0"):
        launch(tmp_path, "copy", seeds=0)
    assert not (tmp_path / "results").exists()


@pytest.mark.bad_input
def test_a_command_without_a_recipe_says_what_there_is(capsys):
    with pytest.raises(SystemExit, match="2"):
        recipes.main([])
    assert "expected the name of a recipe" in capsys.readouterr().err


def test_the_readme_shows_what_the_results_say():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table(recipes.measures(), recipes.RESULTS) in readme
