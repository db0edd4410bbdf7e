"""Reports in Chinese: what the table has, and how a line is made of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from babel.messages.pofile import read_po
from contracts.known import RECORD, SHIPPED, report_on
from torch import nn

from companion.commands import main
from companion.contracts import COMPONENTS, check, check_model, each_contract
from companion.contracts.engine.exam import check_test
from companion.contracts.engine.norms import as_told
from companion.contracts.pytest_tests import ContractBroken
from companion.words import CODE, say, understood, wrapped

pytestmark = pytest.mark.once

KNOWN = json.loads(RECORD.read_text(encoding="utf-8"))
SHAPES = re.compile(r"\([^()\u3400-\u9fff]*\)")
SENTENCE = re.compile(r"(?:[A-Za-z]+[,;:]? ){3}[A-Za-z]+")
# What an exception says is its own, and stays as it is.
THEIRS = re.compile(r"raised \w+|cannot be called as")


def unscaled(q, k, v, mask=None):
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(q.dtype).min)
    return (
        scores.softmax(-1)
        @ v
        * (1 if mask is None else mask.any(-1)[..., None])
    )


def english_in(text):
    """Four words that follow each other, outside of code and shapes."""
    found = SENTENCE.search(SHAPES.sub("`", CODE.sub("`", text)))
    return found and found[0]


def test_a_wrong_attention_is_told_in_chinese():
    lines = str(check("attention", unscaled, lang="zh")).splitlines()
    assert lines[:4] == [
        "attention：23 项契约中有 2 项未通过",
        "",
        "✗ 与 PyTorch 结果一致",
        "✗ 不管 d_k 是多少，分数都除以 √d_k",
    ]
    assert lines[4:6] == [
        "    分数没有缩放：softmax 之前先除以 √d_k。"
        "批次元素 0、第 2 行、特征 5：你的是",
        "    -1.006，应为 -0.3599。",
    ]
    assert lines[6] == "✓ 返回形状正确的张量"
    assert len(lines) == 27


def test_the_page_of_a_report_is_chinese_too():
    page = check("attention", unscaled, lang="zh")._repr_mimebundle_()
    text = page["text/html"]
    assert (
        "<strong>分数没有缩放：softmax 之前先除以 √d_k。</strong>批次" in text
    )
    assert "<caption>你的，批次元素 0</caption>" in text
    assert '<th scope="row">第 2 行</th>' in text
    assert "<summary>21 项成立</summary>" in text
    body = re.sub(r"<style>.*?</style>|<[^>]*>", " ", text, flags=re.DOTALL)
    assert not english_in(" ".join(body.split()))


def test_a_report_without_a_language_is_the_english_one():
    plain, english, chinese = (
        check("attention", unscaled, **lang)
        for lang in ({}, {"lang": "en"}, {"lang": "zh"})
    )
    assert str(plain) == str(english) != str(chinese)
    assert plain.headline == chinese.headline
    assert plain.failures[0].message == chinese.failures[0].message
    assert str(replace(chinese, lang="en")) == str(plain)


@pytest.mark.bad_input
@pytest.mark.parametrize(
    "ask",
    [
        lambda: check("softmax", torch.softmax, lang="fr"),
        lambda: check_model(torch.nn.Linear(2, 2), lang="fr"),
        lambda: check_test("causal_mask", "transposed triangle", id, lang="fr"),
    ],
)
def test_another_language_is_refused(ask):
    with pytest.raises(
        ValueError, match=r"^lang: expected \"en\" or \"zh\".*'fr'"
    ):
        ask()


def test_no_message_about_a_known_mistake_leaves_an_english_sentence():
    left = {
        key: text
        for key, texts in KNOWN.items()
        for text in texts
        if not THEIRS.search(text) and english_in(say(text))
    }
    assert left == {}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_report_on_a_mistake_of_each_component_has_no_english_sentence(
    component,
):
    key = next(key for key in SHIPPED if key.startswith(f"{component}/"))
    report = report_on(key)
    if any(THEIRS.search(f.message) for f in report.failures):
        pytest.skip("what the exception says is English")
    text = str(replace(report, lang="zh"))
    assert re.search("[\u3400-\u9fff]", text)
    assert not english_in(" ".join(text.split()))


@pytest.mark.parametrize("bias", [None, "shift"])
@pytest.mark.parametrize("gain", ["`gain` is its gain", "1 + `g` is its gain"])
def test_how_a_norm_was_called_is_told_in_chinese(gain, bias):
    for lacks, has in ((False, True), (bias is None, False)):
        said = as_told(gain, bias, lacks, has)
        told = say(f"Called as yours: {said}.")
        assert understood(told), told


def test_a_layer_of_pytorchs_is_told_in_chinese():
    layer = nn.MultiheadAttention(12, 3)
    (told, *_) = check("multihead", layer).assumed
    assert "the sequence comes first" in told
    assert understood(say(told)), say(told)


def test_what_the_table_does_not_have_stays_as_it_is():
    for text in ("", "Nobody wrote this.", "{0}", "(", "`", "✗ ", ". ? !"):
        assert say(text) == text
    assert say("b is not used. Nobody wrote this.") == (
        "没有用到 b。Nobody wrote this."
    )


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("At row 2, key 3 yours is NaN, expected 0.5.",
         "第 2 行、键 3：你的是 NaN，应为 0.5。"),
        ("Batch (0, 1, 2), row 1 sums to 2, not to 1.",
         "批次元素 (0, 1, 2)、第 1 行之和为 2，不是 1。"),
        ("The arguments were x (2, 3), mask None.",
         "参数是 x (2, 3), mask None。"),
        ("It raised KeyError in line 2 of `f`, `return x. y`: No such thing. "
         "The arguments were x 1.",
         "在 `f` 第 2 行 `return x. y` 抛出 KeyError：No such thing. "
         "参数是 x 1。"),
        ("2 files, 3 parts judged, 1 with faults, 0 not judged",
         "2 个文件，判断了 3 个部分，1 个有错误，0 个未判断"),
    ],
)  # fmt: skip
def test_a_line_is_put_together_from_its_sentences(english, chinese):
    assert say(english) == chinese


def test_a_line_in_chinese_is_as_wide_as_its_signs():
    text = "分数没有缩放：softmax 之前先除以 `q @ k.mT`。" * 6
    lines = wrapped(text, "zh", 40, indent="  ", more="    ")
    wide = [sum(2 if ord(c) > 0x2E80 else 1 for c in line) for line in lines]
    assert 34 < max(wide) <= 40
    assert lines[0].startswith("  分")
    assert all(line[4:5] not in "，。：；" for line in lines[1:])
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_contract_in_a_test_file_fails_in_chinese():
    @each_contract("softmax", lang="zh")
    def test_mine():
        return lambda scores, dim: scores.softmax(0)

    with pytest.raises(ContractBroken) as told:
        test_mine(contract="It agrees with PyTorch")
    assert str(told.value).startswith(
        "✗ 与 PyTorch 结果一致\n    没有用到 `dim`：softmax 总是沿着轴 0 做。"
    )


WRONG = """
def softmax(scores, dim):
    return scores.softmax(0)
"""


def test_the_command_writes_its_report_and_its_page_in_chinese(
    tmp_path, capsys
):
    path, page = tmp_path / "mine.py", tmp_path / "report.html"
    path.write_text(WRONG)
    options = ["--lang", "zh", "--html", str(page)]
    assert main(["check", str(path), *options]) == 1
    said = capsys.readouterr().out
    assert "✗ softmax：" in said
    assert "    没有用到 `dim`：softmax 总是沿着轴 0 做。" in said
    assert "1 个文件，判断了 1 个部分，1 个有错误，0 个未判断" in said
    text = page.read_text(encoding="utf-8")
    assert '<html lang="zh">' in text
    assert "没有用到 <code>dim</code>：softmax 总是沿着轴 0 做。" in text


def test_another_language_is_refused_on_the_command_line(capsys):
    with pytest.raises(SystemExit):
        main(["check", "mine.py", "--lang", "fr"])
    assert "--lang: invalid choice: 'fr'" in capsys.readouterr().err


# The samples on the page about check.

PAGE = Path(__file__).parents[3] / "book" / "check.md"
CATALOGUE = PAGE.parent / "locale" / "zh_CN" / "LC_MESSAGES" / "book/check.po"
# Whatever else stands on a line goes on from the line before.
BEGINS = re.compile(r"[✓✗!·…(]|Only a risk|\w+(/\w+)?\.py:|\w+: |\d+ files?, ")


def sentences(sample):
    """The lines of a report, put together again; cut ones are left out."""
    found, indent = [], 0
    for line in filter(None, sample.splitlines()):
        text, own = line.strip(), len(line) - len(line.lstrip())
        if not found or BEGINS.match(text) or own > indent + 1:
            found.append(text)
        else:
            found[-1] += f" {text}"
        indent = own
    return [re.sub(r" At batch [^:]*$", "", text) for text in found]


@pytest.mark.once
def test_the_samples_of_the_chinese_page_are_what_is_printed():
    with CATALOGUE.open("rb") as file:
        known = {m.id.strip(): m.string for m in read_po(file) if m.id}
    samples = re.findall(r"```text\n(.+?)```", PAGE.read_text("utf-8"), re.S)
    assert len(samples) == 6
    for sample in samples:
        chinese = re.sub("批次元素[^：]*：\\n", "", known[sample.strip()])
        told = "".join(say(text) for text in sentences(sample))
        assert "".join(chinese.split()) == "".join(told.split())
