"""The configuration of a run: what it takes, and what it refuses."""

import dataclasses
import math

import pytest

from companion.training import TrainConfig, noam
from companion.training.config import PRESETS

TINY = TrainConfig(
    data="copy",
    max_len=13,
    batch_tokens=601,
    d_model=6,
    num_heads=2,
    d_ff=5,
    steps=7,
    warmup=3,
)


def changed(**changes):
    return dataclasses.replace(TINY, **changes)


def test_noam_peaks_where_the_configuration_says():
    own = changed(schedule="noam", peak=None, warmup=11).rate()
    scaled = changed(schedule="noam", peak=0.25, warmup=11).rate()
    assert own(3) == noam(3, TINY.d_model, 11)
    assert scaled(11) == pytest.approx(0.25)
    for step in (1, 5, 11, 44):
        assert scaled(step) / own(step) == pytest.approx(0.25 / own(11))
    assert scaled(44) == pytest.approx(0.125)


def test_presets_are_configurations_and_can_be_changed():
    assert TrainConfig.preset("tiny") == TrainConfig()
    base = TrainConfig.preset("base", seed=5)
    assert (base.d_model, base.num_layers, base.seed) == (512, 6, 5)
    # The paper's peak, 7e-4 at step 4000.
    assert base.rate()(4000) == pytest.approx(6.99e-4, rel=1e-3)
    for name in PRESETS:
        TrainConfig.preset(name)


def test_a_toml_file_and_the_flags_after_it(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('data = "reverse"\nsteps = 11\npeak = 0.25\n')
    config = TrainConfig.from_toml(path, steps=13, warmup=2)
    assert config == TrainConfig(data="reverse", steps=13, peak=0.25, warmup=2)


def test_fewer_steps_have_a_shorter_warm_up(tmp_path):
    # 50 of 400 steps are an eighth of them.
    for steps, warmup in ((800, 50), (400, 50), (399, 49), (80, 10), (7, 0)):
        assert TrainConfig.preset("tiny", steps=steps).warmup == warmup
    assert TrainConfig.preset("tiny", steps=80, warmup=3).warmup == 3
    assert TrainConfig.preset("small", steps=80).warmup == 1000
    path = tmp_path / "run.toml"
    path.write_text("steps = 100\nwarmup = 30\n")
    assert TrainConfig.from_toml(path, steps=50).warmup == 15
    # What the file asks for itself is not touched.
    assert TrainConfig.from_toml(path).warmup == 30
    path.write_text("steps = 20\n")
    with pytest.raises(ValueError, match="warmup: expected 0 to 20"):
        TrainConfig.from_toml(path)


@pytest.mark.bad_input  # The shape hook wants a float.
def test_a_whole_number_is_welcome_where_a_fraction_is():
    assert changed(peak=1, clip=2) == changed(peak=1.0, clip=2.0)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"data": "wmt"}, ValueError, "data: expected one of 'phrasebook'"),
        ({"data": 3}, TypeError, "data: expected str, got 3"),
        (
            {"data": "tatoeba", "direction": "de-en"},
            ValueError,
            "direction: expected one of 'zh-en', 'en-zh', got 'de-en'",
        ),
        ({"script": "latin"}, ValueError, "script: expected one of None"),
        (
            {"script": "simplified"},
            ValueError,
            "script: expected None for the data 'copy', got 'simplified'",
        ),
        ({"direction": 7}, TypeError, "direction: expected str or None, got 7"),
        ({"steps": 0}, ValueError, "steps: expected at least 1, got 0"),
        ({"steps": 2.0}, TypeError, r"steps: expected int, got 2\.0"),
        ({"steps": True}, TypeError, "steps: expected int, got True"),
        ({"keep": 0}, ValueError, "keep: expected at least 1"),
        ({"save_every": 0}, ValueError, "save_every: expected at least 1"),
        ({"accumulate": -1}, ValueError, "accumulate: expected at least 1"),
        ({"num_heads": 4}, ValueError, "num_heads: expected a divisor"),
        ({"d_model": "6"}, TypeError, "d_model: expected int, got '6'"),
        ({"dropout": 1.0}, ValueError, "dropout: expected a probability"),
        ({"smoothing": 1}, ValueError, "smoothing: expected a share"),
        ({"norm_first": 1}, TypeError, "norm_first: expected True or False"),
        ({"bf16": "yes"}, TypeError, "bf16: expected True or False"),
        ({"schedule": "cosine"}, ValueError, "schedule: expected one of 'noam"),
        ({"peak": None}, ValueError, "peak: expected a learning rate"),
        ({"peak": 0.0}, ValueError, "peak: expected a positive number"),
        ({"peak": "1"}, TypeError, "peak: expected float or None, got '1'"),
        ({"clip": -1.0}, ValueError, "clip: expected a positive number"),
        ({"clip": float("nan")}, ValueError, "clip: expected a positive"),
        ({"clip": math.inf}, ValueError, "clip: expected a positive"),
        ({"seed": -1}, ValueError, "seed: expected 0 to"),
        ({"seed": 2**32}, ValueError, "seed: expected 0 to 4294967295, got"),
        ({"warmup": -1}, ValueError, "warmup: expected 0 to 7 steps"),
        ({"warmup": 8}, ValueError, "warmup: expected 0 to 7 steps"),
        (
            {"warmup": 0, "schedule": "noam"},
            ValueError,
            "warmup: expected 1 to inf steps",
        ),
        ({"batch_tokens": 12}, ValueError, "batch_tokens: expected at least"),
        (
            {"data": "phrasebook", "shared_vocab": True},
            ValueError,
            "shared_vocab: expected False for the data 'phrasebook'",
        ),
        (
            {"data": "shakespeare", "shared_vocab": True},
            ValueError,
            "shared_vocab: expected False for the data 'shakespeare'",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_named(changes, error, says):
    with pytest.raises(error, match=says):
        changed(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 2**32 - 1},
        {"batch_tokens": 13},
        {"warmup": 0},
        {"warmup": 7},
        {"warmup": 1, "schedule": "noam"},
        {"warmup": 10**9, "schedule": "noam"},
    ],
)
def test_the_last_value_that_fits_is_welcome(changes):
    assert vars(changed(**changes)).items() >= changes.items()


@pytest.mark.bad_input
def test_a_wrong_type_in_a_file_is_a_type_error_and_a_value_is_not(tmp_path):
    path = tmp_path / "run.toml"
    for text, kind in (
        ("steps = 'many'", TypeError),
        ("steps = 0", ValueError),
    ):
        path.write_text(text)
        with pytest.raises(kind) as told:
            TrainConfig.from_toml(path)
        assert type(told.value) is kind


@pytest.mark.bad_input
def test_an_unknown_key_is_named_with_the_nearest_one(tmp_path):
    path = tmp_path / "run.toml"
    cases = {
        "warm_up = 3": r"run.toml: unknown key 'warm_up'.*is 'warmup'",
        "steps = 'many'": r"run.toml: steps: expected int, got 'many'",
        "steps = ": "run.toml: ",
    }
    for text, says in cases.items():
        path.write_text(text)
        with pytest.raises((TypeError, ValueError), match=says):
            TrainConfig.from_toml(path)
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        TrainConfig.from_toml(tmp_path / "none.toml")
    with pytest.raises(ValueError, match=r"preset: expected one of 'tiny'"):
        TrainConfig.preset("huge")
    with pytest.raises(ValueError, match=r"'sead'; the nearest .* 'seed'"):
        TrainConfig.preset("tiny", sead=3)
