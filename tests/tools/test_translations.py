"""The catalogues of the Chinese edition, and the words of stored outputs."""

import ast
import json
import os
import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po
from docutils import nodes
from docutils.utils import new_document
from support.contents import ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import chinese as edition
import translations
from words import page_words, report_words

pytestmark = pytest.mark.once

NOTEBOOKS = sorted((ROOT / "book").rglob("*.ipynb"))
SAID = {
    "After {0} words 小 counts {1}.": "读完 {0} 个词后，小的系数是 {1}。",
    "next": "下一步",
    "After {0} words, {1}.": "{1}：读完 {0} 个词。",
    "One word": "一个词",
    "tbody next": "下一步",
}


def say(message):
    return SAID.get(message, message)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_an_output_without_translations_stays_as_it_is(path):
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        for output in cell.get("outputs", ()):
            stored = "".join(output.get("data", {}).get("text/html", ""))
            new = page_words.in_html(stored, lambda message: message)
            if page_words.REPORT.search(stored):  # By the package's own table.
                assert tags(new) == tags(stored)
            else:
                assert new == stored


def tags(html):
    return Counter(re.findall(r"<[^\s>]+", html))


REPORT = (
    '<figure class="companion companion-check" aria-label="rnn: 1 of 9 '
    'contracts fail"><p class="message"><strong>b is not used.</strong> At '
    "batch 0, step 1, unit 2 yours is 0.5, expected 1.</p>"
    "<summary>8 hold</summary><p>next</p></figure><p>8 hold</p>"
)


def test_a_report_is_said_by_the_table_of_the_package_and_nothing_else_is():
    assert page_words.in_html(REPORT, say) == (
        '<figure class="companion companion-check" aria-label="rnn：9 项契约中'
        '有 1 项未通过"><p class="message"><strong>没有用到 b。</strong>'
        "批次元素 0、第 1 步、单元 2：你的是 0.5，应为 1。</p>"
        "<summary>8 项成立</summary><p>下一步</p></figure><p>8 hold</p>"
    )


def test_what_a_report_says_asks_for_no_entry_of_the_catalogues():
    assert list(page_words.messages(REPORT)) == ["next", "{0} hold"]


def test_a_sentence_of_a_report_that_has_no_chinese_is_named(tmp_path):
    path = tmp_path / "zh.toml"
    path.write_text(
        '[rnn]\n"b is not used." = "没有用到 b。"\n"Take 3." = "取 4。"\n'
        '"Old." = "旧。"\n[composed]\n"Put together." = "拼成。"\n'
        '"b is not used." = "没有用 b。"\n',
        encoding="utf-8",
    )
    wanted = {"b is not used.": "rnn.py:1", "Take 3.": "rnn.py:2"}
    wanted["New, {0}."] = "rnn.py:3"
    known = {"Nobody has said this before.": "known", "b is not used.": "known"}
    assert list(translations.reports(path, wanted, known)) == [
        "zh.toml [rnn]: 'Take 3.': number: lacks '3', and has '4'",
        "zh.toml [rnn]: 'Old.' is no longer said in English",
        "zh.toml [composed]: 'b is not used.' stands there twice",
        "rnn.py:3: 'New, {0}.' is not translated in zh.toml",
        "known: zh.toml leaves 'Nobody has said this' of "
        "'Nobody has said this before.'",
    ]


SOURCE = '''
import re

"""A docstring is not shown."""


def wrong(fn, index, how):
    """Nor is this."""
    if not fn:
        raise ValueError("fn: expected a function, got something else")
    why = f"Row {index} moves, {how}. Is it {fn!r}?"
    raise Broken(f"{why} It is {index:.3g} here. {how} Look.", axes=("row",))


pattern = re.compile("a pattern is not")
RULE.mistake("an-id", hint="It is " "cut in two.", symptom="not read here")
'''


def test_what_a_report_can_say_is_read_off_the_source():
    found = [
        report_words.bare(part)
        for _, text in report_words.literals(ast.parse(SOURCE), False)
        if report_words.reads_like_english(text)
        for part in report_words.INNER.split(text)
    ]
    assert found == [
        "Row {0} moves, {1}. Is it {2}?",
        "It is {0} here.",
        "Look.",
        "row {0}",
        "It is cut in two.",
    ]


def test_numbers_are_carried_over_into_the_sentence():
    html = (
        "<p>After 4 words 小 counts −3.5.</p>"
        "<p>After 1,200 words 小 counts 2×10⁻³.</p>"
    )
    assert page_words.in_html(html, say) == (
        "<p>读完 4 个词后，小的系数是 −3.5。</p>"
        "<p>读完 1,200 个词后，小的系数是 2×10⁻³。</p>"
    )


def test_code_styles_and_class_names_are_no_words():
    html = (
        "<style>.next { top: 1px }</style><pre>next</pre><code>next</code>"
        '<p class="next">next</p>'
    )
    assert page_words.in_html(html, say) == html.replace(
        ">next</p>", ">下一步</p>"
    )


def test_english_beside_chinese_stays_english():
    beside = (
        '<p><span lang="en">next: <b>next</b></span><span lang="en">next</span>'
        '<span lang="zh-CN">下一步</span></p><div lang="en"><p>next</p></div>'
        '<div lang="zh-CN"><p>下一步</p></div>'
    )
    page = f"<p>next</p>{beside}<p>next</p>"
    assert edition.in_page(page, SAID) == (
        f"<p>下一步</p>{beside}<p>下一步</p>"
    )


def test_what_is_read_aloud_is_translated():
    html = '<b aria-label="next" data-next="next" data-bs-title="next"></b>'
    assert page_words.in_html(html, say) == (
        '<b aria-label="下一步" data-next="next" data-bs-title="下一步"></b>'
    )


def test_the_states_of_a_figure_are_translated_and_its_selectors_are_not():
    data = {
        "controls": [{"kind": "next", "name": "next", "rows": "next"}],
        "parts": {
            "says": [{"of": ["After 7 words 小 counts 11."]}],
            "box@class": [{"of": ["next"]}],
        },
    }
    found = page_words.in_html(
        f"<script>const data = {json.dumps(data)};\n(function find(tries) {{}})"
        "</script>",
        say,
    )
    new = json.loads(found.partition("data = ")[2].partition(";\n")[0])
    assert new["parts"]["says"] == [{"of": ["读完 7 个词后，小的系数是 11。"]}]
    assert new["parts"]["box@class"] == [{"of": ["next"]}]
    assert new["controls"] == [
        {"kind": "next", "name": "下一步", "rows": "next"}
    ]


SCRIPT = """
function mount(root, { count }) {
  const rows = root.querySelector("tbody next"), key = "next";
  const short = `next`, way = text.replace(/"[^"]*`/, "") || "One word";
  return `After ${count} words, ` + `${say({ way, at: `next` })}.`;
}
const data = {};
(function find(tries) {})"""


def test_the_sentences_of_a_script_are_translated_and_its_code_is_not():
    found = page_words.in_html(f"<script>{SCRIPT}</script>", say)
    assert found == f"<script>{SCRIPT}</script>".replace(
        "`After ${count} words, ` + `${say({ way, at: `next` })}.`",
        '`${say({ way, at: "下一步" })}：读完 ${count} 个词。`',
    ).replace("`next`", '"下一步"').replace("One word", "一个词")


def test_a_script_that_speaks_both_languages_stays_as_it_is():
    code = SCRIPT.replace("key", 'words("One word", "一个词")')
    html = f"<script>{code}</script>"
    assert page_words.in_html(html, say) == html


@pytest.mark.parametrize(
    ("english", "translated", "fault"),
    [
        (
            "\n\\text{loss} = a\n",
            "\n\\text{损失} = b\n",
            "formula: has other signs",
        ),
        ("Take 3 heads.", "取 4 个头。", "number: lacks '3', and has '4'"),
        (
            "So $x = 1$.",
            "所以 $x = 2$。",
            "formula: lacks '$x = 1$', and has '$x = 2$'",
        ),
        ("See [it](a.md).", "见那里。", "link: lacks 'a.md', and has nothing"),
        (
            "As {cite}`wu2016`.",
            "如文献。",
            "citation or role: lacks '{cite}`wu2016`', and has nothing",
        ),
        ("Call `fit`.", "调用 `run`。", "code: lacks '`fit`', and has '`run`'"),
        ("Yes, it is.", "对,是的。", "half-width punctuation at '对,'"),
        ("A GPU.", "一块GPU。", "no space between '块G'"),
        ("A mask.", "遮罩。", "'遮罩' for '掩码'"),
    ],
)
def test_a_translation_that_differs_is_told(english, translated, fault):
    assert list(translations.faults(english, translated)) == [fault]


def test_a_good_translation_has_no_fault():
    english = (
        "After `fit` the loss is 0.5 (chapter 07), see [here](a.md#b): $x$."
    )
    translated = "`fit` 之后，损失是 0.5（第 07 章），见[这里](a.md#b)：$x$。"
    assert list(translations.faults(english, translated)) == []


def test_words_in_a_formula_are_translated():
    english, translated = "So $\\text{loss} = 1$.", "所以 $\\text{损失} = 1$。"
    assert list(translations.faults(english, translated)) == []


def test_a_displayed_formula_has_chinese_words(tmp_path, monkeypatch):
    known = Catalog(locale="zh_CN", fuzzy=False)
    known.add("\n\\text{loss} = 1\n", "\n\\text{损失} = 1\n")
    with (tmp_path / "page.po").open("wb") as file:
        write_po(file, known)
    monkeypatch.setattr(edition, "CATALOGUES", tmp_path)
    app = SimpleNamespace(config=SimpleNamespace(language="zh_CN"))
    page = new_document("page")
    page.settings.env = SimpleNamespace(docname="page", app=app)
    page += [
        nodes.math_block(tex, tex)
        for tex in ("\n\\text{loss} = 1\n", "\nx = y\n")
    ]
    edition.Blocks(page).apply()
    assert [each.astext() for each in page] == [
        "\n\\text{损失} = 1\n",
        "\nx = y\n",
    ]


def test_chinese_counts_in_ten_thousands():
    english = "Of 4.5 million sentences 7 billion weights, or 3 thousand."
    assert (
        list(translations.faults(english, "450 万句，70 亿个权重，3 千。"))
        == []
    )
    (fault,) = translations.faults("It has 65 million.", "有 650 万。")
    assert fault == "number: lacks '65000000', and has '6500000'"


def test_the_sign_behind_a_formula_may_stand_outside_of_it():
    english = "It asks with $s_i.$ For the first $i,$ this is new."
    assert (
        list(translations.faults(english, "用 $s_i$ 提问。$i$，新的。")) == []
    )


def test_a_message_is_missing_old_or_left_over(tmp_path):
    path = tmp_path / "page.po"
    have, want = Catalog(locale="zh_CN", fuzzy=False), Catalog()
    have.add("One head.", "一个头。")
    have.add("Two heads.", "两个头。", flags=["fuzzy"])
    have.add("Three heads.", "三个头。")
    with path.open("wb") as file:
        write_po(file, have)
    for message in ("One head.", "Two heads.", "Four heads."):
        want.add(message)
    assert [fault for _, fault in translations._compare(path, want)] == [
        "'Two heads.' is newer than its translation",
        "'Four heads.' is not translated",
        "'Three heads.' is no longer said in English",
    ]


def test_a_changed_message_keeps_its_old_translation_as_a_draft(tmp_path):
    path = tmp_path / "page.po"
    first, second = Catalog(), Catalog()
    first.add("The loss of this model falls quickly at first.")
    second.add("The loss of this model falls slowly at first.")
    translations._merge(path, first)
    catalogue = translations.read(path)
    catalogue.get(
        "The loss of this model falls quickly at first."
    ).string = "先降得快。"
    with path.open("wb") as file:
        write_po(file, catalogue)
    translations._merge(path, second)
    (entry,) = [each for each in translations.read(path) if each.id]
    assert entry.string == "先降得快。"
    assert entry.fuzzy


def test_a_catalogue_that_is_in_step_is_left_alone(tmp_path):
    path, found = tmp_path / "page.po", Catalog()
    found.add("One head.")
    translations._merge(path, found)
    path.write_text(path.read_text("utf-8") + "# mine\n", encoding="utf-8")
    translations._merge(path, found)
    assert path.read_text("utf-8").endswith("# mine\n")
    found.add("Two heads.")
    translations._merge(path, found)
    assert "Two heads." in path.read_text("utf-8")


def test_a_page_is_written_anew_when_a_table_of_words_has_changed(tmp_path):
    older, newer = tmp_path / "old.html", tmp_path / "new.html"
    for path in (older, newer):
        path.touch()
    tables = edition.WORDS, edition.FRAME, edition.REPORTS
    changed = max(path.stat().st_mtime for path in tables)
    os.utime(older, (changed - 1, changed - 1))
    app = SimpleNamespace(
        builder=SimpleNamespace(name="html", get_target_uri="{}.html".format),
        config=SimpleNamespace(language="zh_CN"),
        outdir=tmp_path,
    )
    env = SimpleNamespace(found_docs={"old", "new", "not-yet"})
    assert edition.outdated(app, env) == ["old"]
    app.config.language = "en"
    assert edition.outdated(app, env) == []


def test_every_page_that_is_translated_has_a_catalogue_without_gaps():
    for page in translations.pages():
        catalogue = translations.read(edition.CATALOGUES / f"{page}.po")
        gaps = [m.id for m in catalogue if m.id and (not m.string or m.fuzzy)]
        assert gaps == [], page


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_message_of_a_notebook_is_found_in_its_source(path):
    page = path.relative_to(ROOT).with_suffix("").as_posix()
    cells = json.loads(path.read_text("utf-8"))["cells"]
    said = "\n".join(
        translations.in_chinese(page, "".join(cell["source"]))
        for cell in cells
        if cell["cell_type"] == "markdown"
    )
    entries = translations.read(translations.CATALOGUES / f"{page}.po")
    assert [e.id for e in entries if e.id and e.string not in said] == []


def test_a_cell_is_said_in_chinese_block_by_block(tmp_path, monkeypatch):
    catalogue = Catalog(locale="zh_CN")
    catalogue.add("score", "分数")
    catalogue.add("a score of *one* word", "*一个*词的分数")
    catalogue.add("No score here.", "这里没有旧的分数。", flags=["fuzzy"])
    with (tmp_path / "page.po").open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr(translations, "CATALOGUES", tmp_path)
    source = (
        "## score\n\n> a score\n> of *one* word\n\n- a score of\n  *one* word\n"
        "\n| `x` | score |\n\nNo score here."
    )
    assert translations.in_chinese("page", source) == (
        "## 分数\n\n> *一个*词的分数\n\n- *一个*词的分数\n"
        "\n| `x` | 分数 |\n\nNo score here."
    )


def test_a_title_with_a_number_is_no_list(monkeypatch):
    parsed = []

    def parse(app, source, *place):
        parsed.append(source)
        return nodes.paragraph()

    monkeypatch.setattr(edition, "PUBLISH", parse)
    for source in ("1. 一个标题", "12. 用 3. 来数", "1.5 倍", "第 1. 章"):
        edition.publish(None, source)
    assert parsed == ["1\\. 一个标题", "12\\. 用 3. 来数", "1.5 倍", "第 1. 章"]
