"""What a run learns from: codecs, batches, and parts that stay apart."""

import dataclasses
import re

import pytest
import torch
from support.standin import stand_in

from companion.data.codecs import Characters, Subwords, Words
from companion.data.corpora import multi30k
from companion.training import TrainConfig, corpus, make_task
from companion.training.config import DIRECTIONS
from companion.training.run_folder import build

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


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    """Small stand-ins for the real corpora."""
    return stand_in(tmp_path / "corpora", monkeypatch)


def test_codecs_are_those_of_the_data(corpora):
    kinds = {
        "phrasebook": (Characters, Words),
        "copy": (Characters, Characters),
        "reverse": (Characters, Characters),
        "tatoeba": (Subwords, Subwords),
        "multi30k": (Subwords, Subwords),
        "shakespeare": (type(None), Characters),
    }
    for data, (src, tgt) in kinds.items():
        task = make_task(changed(data=data, vocab_size=340, batch_tokens=300))
        assert isinstance(task.src_codec, src)
        assert isinstance(task.tgt_codec, tgt)
    back = make_task(changed(data="phrasebook", direction="en-zh"))
    assert isinstance(back.src_codec, Words)
    assert isinstance(back.tgt_codec, Characters)


@pytest.mark.parametrize("data", ["phrasebook", "tatoeba", "multi30k"])
def test_each_corpus_can_be_learnt_in_both_directions(data, corpora):
    there, back = (
        corpus(changed(data=data, direction=direction)).train
        for direction in DIRECTIONS[data]
    )
    assert {*there} == {(tgt, src) for src, tgt in back}
    assert {*there} != {*back}


def test_multi30k_comes_tokenised_as_its_scores_are_published(corpora):
    found = corpus(changed(data="multi30k")).train
    assert found == multi30k("en", "de", tokenised=True).train
    assert found != multi30k("en", "de", tokenised=False).train


def test_a_script_can_be_asked_for(corpora):
    config = changed(data="tatoeba", script="simplified", vocab_size=340)
    chosen = corpus(config).train
    both = corpus(dataclasses.replace(config, script=None)).train
    assert 100 < len(chosen) < len(both)
    assert {*chosen} <= {*both}


def test_one_vocabulary_serves_both_languages_if_shared(corpora):
    config = changed(data="multi30k", vocab_size=340, shared_vocab=True)
    task = make_task(dataclasses.replace(config, max_len=61))
    assert task.src_codec is task.tgt_codec
    model = build(config, task.src_codec, task.tgt_codec)
    assert model.src_embedding is model.tgt_embedding


def test_a_tenth_of_the_letters_is_held_back_twice():
    parts = corpus(TINY)
    share = [len(part) / sum(map(len, parts)) for part in parts]
    assert share == pytest.approx([0.8, 0.1, 0.1], abs=0.02)


def test_the_phrasebook_has_chinese_without_spaces():
    (zh, en), *_ = corpus(changed(data="phrasebook")).train
    assert re.fullmatch(r"[\u4e00-\u9fff]+", zh)
    assert " " in en


def test_no_text_is_in_two_parts():
    for data in ("copy", "reverse", "phrasebook"):
        parts = corpus(changed(data=data))
        train_part, test_part = {*parts.train}, {*parts.test}
        assert len(train_part) > 1000
        assert len(test_part) > 400
        assert not train_part & test_part
        assert not train_part & {*parts.valid}


def test_reverse_says_it_backwards_and_copy_does_not():
    for data, order in (("copy", 1), ("reverse", -1)):
        for said, meant in corpus(changed(data=data)).test[:13]:
            assert meant == said[::order]


def test_a_language_model_reads_windows_without_padding(corpora):
    config = changed(data="shakespeare", batch_tokens=61, max_len=13)
    task = make_task(config)
    (tokens,) = task.batches.at(0)
    assert tokens.shape == (5, 13)
    assert build(config, None, task.tgt_codec).config.pad is None


def test_a_window_has_one_id_to_read_at_least_and_a_batch_one_window(corpora):
    config = changed(data="shakespeare", batch_tokens=2, max_len=1)
    assert make_task(config).batches.at(0)[0].shape == (2, 2)
    config = changed(data="shakespeare", batch_tokens=7, max_len=7)
    assert make_task(config).batches.at(0)[0].shape == (1, 7)


@pytest.mark.parametrize("data", ["phrasebook", "shakespeare"])
def test_the_seed_decides_what_comes_first(data, corpora):
    draws = [
        make_task(changed(data=data, seed=seed)).batches.at(0)[0]
        for seed in (3, 3, 4)
    ]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_windows_are_written_with_the_codec_of_the_run(corpora):
    codec = Characters("".join(sorted(map(chr, range(10, 127)), reverse=True)))
    task = make_task(changed(data="shakespeare"), stored=(None, codec))
    assert task.tgt_codec is codec


@pytest.mark.bad_input
def test_data_that_are_no_pairs_or_too_long_are_named():
    with pytest.raises(ValueError, match="data: expected pairs of texts"):
        corpus(changed(data="shakespeare"))
    with pytest.raises(ValueError, match="max_len: expected a number"):
        make_task(changed(max_len=4))
