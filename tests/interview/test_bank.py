"""The question bank: its format, what is in it, and the page made of it."""

import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest
from interview.proving import shown, solved

from companion import CHAPTERS
from companion.contracts import check
from companion.interview import load, show
from companion.interview.model.bank import BANK, read
from companion.interview.model.markup import to_html, to_plain
from companion.interview.model.question import KINDS
from companion.interview.web.card import work

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PROOFS = "".join(
    path.read_text(encoding="utf-8")
    for path in (ROOT / "tests/interview/proofs").glob("test_*.py")
)
QUESTIONS = [q for chapter in CHAPTERS for q in load(chapter)]


def by_id(question):
    return question.id


def of(kind):
    chosen = [q for q in QUESTIONS if q.kind == kind]
    return pytest.mark.parametrize("question", chosen, ids=by_id)


# What is in the bank


def test_every_chapter_has_its_file_and_no_file_is_left_over():
    files = {path.stem for path in BANK.glob("*.toml")}
    assert files == {*CHAPTERS, "notes"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_eight_questions_or_more_of_all_kinds(chapter):
    questions = load(chapter)
    assert len(questions) >= 8
    assert {q.kind for q in questions} == set(KINDS)


@of("numeric")
def test_every_number_is_computed_in_the_proofs(question):
    assert f'"{question.id}"' in PROOFS


@of("code")
def test_the_solution_of_a_code_question_passes_its_contracts(question):
    solution, stub = solved(question.id), shown(question.id)
    assert check(question.task.component, solution).passed
    assert stub.__name__ == solution.__name__
    assert str(signature(stub)) == str(signature(solution))
    report = check(question.task.component, stub)
    empty = "Nothing is written here yet" in str(report)
    # What is to be repaired runs; what is to be written does not.
    assert empty == (question.asks != "debug")
    assert not report.passed


def in_full(question, language):
    """Everything a reader is told without picking an option."""
    points = getattr(question.task, "points", ())
    texts = (question.prompt, question.answer, *points)
    return "\n".join(getattr(text, language) for text in texts)


@pytest.mark.parametrize(
    ("name", "en", "zh"),
    [
        ("attention-masked-softmax-from-memory", "if −∞ was added", "加上 −∞"),
        ("attention-why-scale", "over 0.9 on average", "0.9 以上"),
        ("attention-five-steps-in-order", "scales q before", "先缩放 q"),
        ("attention-against-the-ffn", "two matrices", "两个矩阵"),
        ("attention-against-the-ffn", "make Q, K and V", "得到 Q、K、V"),
        ("attention-why-not-d-k", "Bonus: .*Yang et al. 2022", "加分.*2022"),
        ("rnn-lstm-cell", "too little in chapter 01", "第 01 章.*不够"),
    ],
)
def test_an_answer_says_what_it_rests_on(name, en, zh):
    (question,) = (q for q in QUESTIONS if q.id == name)
    assert re.search(en, in_full(question, "en"))
    assert re.search(zh, in_full(question, "zh"))


@pytest.mark.parametrize(
    ("language", "claim", "of_paper"),
    [
        ("en", r"(never|no weight is) exactly 0", "on paper|float32"),
        ("zh", "不会恰好为 0", "理论上|float32"),
    ],
)
def test_that_softmax_is_never_zero_is_said_of_paper_only(
    language, claim, of_paper
):
    told = "\n".join(in_full(question, language) for question in QUESTIONS)
    lines = [s for s in told.splitlines() if re.search(claim, s, re.IGNORECASE)]
    assert lines
    for line in lines:
        assert re.search(of_paper, line, re.IGNORECASE), line


# The format

WORDS = "{ en = 'text', zh = '文字' }"
COMMON = f"""
asks = "concept"
level = "mid"
minutes = 3
section = "Interview"
source = "new"
proof = "test_a_valid_bank_is_read"
prompt = {WORDS}
short = {WORDS}
answer = {WORDS}
follow = [{WORDS}]
"""
SLIP = f"wrong = {WORDS}\nwhy = {WORDS}"
VALID = f"""
[[question]]
id = "rnn-open"
kind = "open"
topics = ["recurrence"]
{COMMON}
points = [{", ".join([WORDS] * 4)}]
{SLIP}

[[question]]
id = "rnn-choice"
kind = "choice"
{COMMON}
options = [
  {{ text = {WORDS}, why = {WORDS}, right = true }},
  {{ text = {WORDS}, why = {WORDS} }},
  {{ text = {WORDS}, why = {WORDS} }},
]

[[question]]
id = "rnn-numeric"
kind = "numeric"
{COMMON}
value = 3
tolerance = 0.5
hint = {WORDS}
mistakes = [{{ value = 5, why = {WORDS} }}]

[[question]]
id = "rnn-code"
kind = "code"
{COMMON}
component = "rnn"
stub = "def f(x): ..."
solution = "def f(x): return x"
{SLIP}
"""


def bank(tmp_path, **files):
    for name, content in files.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(content, encoding="utf-8")
    return read(tmp_path)


def test_a_valid_bank_is_read(tmp_path):
    questions = bank(tmp_path, rnn=VALID)["rnn"]
    assert [q.kind for q in questions] == list(KINDS)
    assert questions[0].topics == ("recurrence",)
    assert questions[0].prompt.zh == "文字"
    assert [o.right for o in questions[1].task.options] == [True, False, False]
    assert questions[2].task.mistakes[0].value == 5


FAULTS = [
    (
        'id = "rnn-choice"',
        'id = "choice"',
        "id: text like rnn-.*'choice'",
    ),
    ('kind = "open"', 'kind = "opne"', "kind: one of open, .*, got 'opne'"),
    ('asks = "concept"', 'asks = "do"', "asks: one of concept, .*'do'"),
    ('level = "mid"\n', "", "level: one of junior.*, got nothing"),
    ("minutes = 3", "minutes = 0", "minutes: .* from 1 up, got 0"),
    ('topics = ["recurrence"]', 'topics = "a"', "topics: a list of .*'a'"),
    ('"test_a_valid_', '"a_valid_', "proof: text like test_.*, got 'a_valid"),
    ("zh = '文字'", "zh = ''", "prompt.zh: text .*, got ''"),
    ("'text', zh", "'a `tick', zh", "prompt.en: text with every ` and .*`tick"),
    (f"[{WORDS}]", "[{ en = 'text' }]", r"follow\[1\].zh: .*, got nothing"),
    (f"[{WORDS}]", "[3]", r"follow\[1\]: a table, got 3"),
    (", right = true", "", "options: one that is right, got 0"),
    ("right = true", "right = 1", r"options\[1\].right: true or false, got 1"),
    ("tolerance = 0.5", "tolerance = -1", "tolerance: .* from 0 up, got -1"),
    ("value = 3", "value = true", "value: a number, got True"),
    ("value = 5", "value = 4", "mistakes: numbers more than 1 apart, got '3 a"),
    ("return x", "retrun x", "solution: Python that compiles, got"),
    ("tolerance = 0.5\n", "", "tolerance: a number from 0 up, got nothing"),
    ('component = "rnn"', 'component = "rnn"\nslip = 1', "slip: no such key"),
]


@pytest.mark.bad_input
@pytest.mark.parametrize(("old", "new", "complaint"), FAULTS)
def test_a_fault_is_named_with_its_line_question_and_key(
    tmp_path, old, new, complaint
):
    content = VALID.replace(old, new, 1)
    assert content != VALID
    with pytest.raises(ValueError, match="expected") as fault:
        bank(tmp_path, rnn=content)
    place = r"rnn\.toml:(\d+), question \d '[\w-]+', key '(\w+)"
    key, _, expected = complaint.partition(": ")
    assert re.search(f"key '{key}': expected {expected}", str(fault.value))
    number, top = re.match(place, str(fault.value)).groups()
    line = content.splitlines()[int(number) - 1]
    missing = complaint == f"{top}: {expected}" and "nothing" in expected
    assert line.startswith("[[question]]" if missing else top)


@pytest.mark.bad_input
def test_an_option_that_is_a_table_of_its_own_is_found_by_its_number(tmp_path):
    option = f"\n[[question.options]]\ntext = {WORDS}\nwhy = {WORDS}\n"
    wrong = option.replace("why", "wyh")
    content = VALID.partition("options")[0] + option * 2 + wrong
    line = content.count("\n") - 2
    with pytest.raises(ValueError, match=rf"rnn\.toml:{line}, .*\[3\]\.why"):
        bank(tmp_path, rnn=content)


@pytest.mark.bad_input
def test_an_id_belongs_to_one_question_of_the_bank(tmp_path):
    twice = VALID.replace("rnn-choice", "rnn-open")
    taken = r"a name of its own \(rnn.toml:3 has it\), got 'rnn-open'"
    with pytest.raises(ValueError, match=taken):
        bank(tmp_path, rnn=twice)


@pytest.mark.bad_input
def test_what_is_no_toml_is_refused_with_its_line(tmp_path):
    with pytest.raises(ValueError, match=r"rnn.toml: expected valid .*line"):
        bank(tmp_path, rnn=VALID.replace('"rnn-open"', '"rnn-open'))


@pytest.mark.bad_input
def test_a_list_that_is_written_otherwise_cannot_be_named(tmp_path):
    inline = VALID.replace("[[question]]", "[[ question ]]", 1)
    with pytest.raises(ValueError, match=r"each question under a line"):
        bank(tmp_path, rnn=inline)


@pytest.mark.bad_input
def test_a_file_without_questions_is_a_fault(tmp_path):
    with pytest.raises(ValueError, match=r"key 'question': expected a list"):
        bank(tmp_path, rnn="# nothing yet")


@pytest.mark.bad_input
def test_an_unknown_chapter_is_answered_with_the_known_ones():
    known = ", ".join(CHAPTERS)
    with pytest.raises(ValueError, match=f"one of {known}, got 'gru'"):
        show("gru")


# The markup


def test_markup_on_paper():
    assert to_html("Let `x < 1`.\n\nThen **stop**.") == (
        "<p>Let <code>x &lt; 1</code>.</p><p>Then <strong>stop</strong>.</p>"
    )
    assert to_html("$2nd_{in}^2 < tanh(h_{t-1})$") == (
        '<p><span class="formula">2<i>nd</i><sub><i>in</i></sub><sup>2</sup>'
        " &lt; tanh(<i>h</i><sub><i>t</i>−1</sub>)</span></p>"
    )


def test_a_short_formula_stays_on_one_line():
    assert "<i>q</i>\u00a0·\u00a0<i>k</i>" in to_html("$q · k$")


def test_a_chinese_stop_may_end_what_is_stressed():
    """CommonMark would print the stars."""
    assert to_html("**对。**因为") == "<p><strong>对。</strong>因为</p>"


def test_a_line_break_between_chinese_words_is_no_space():
    assert to_html("注意\n力，\n也行 a\nb") == "<p>注意力，也行 a\nb</p>"


def test_plain_text_has_no_markup():
    assert to_plain("Is `x` **not** $d_{model}$?\n\nNo.") == (
        "Is x not d_model? No."
    )


# The page


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_quiz_needs_nothing_from_anywhere(chapter):
    html = show(chapter).html
    assert html == show(chapter).html
    assert not re.search(r"https?:|//[a-z]|\bsrc=|@import|url\(", html)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_both_forms_of_a_quiz_hold_every_question_in_both_languages(chapter):
    bundle = show(chapter)._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    for question in load(chapter):
        for prompt in (question.prompt.en, question.prompt.zh):
            assert to_plain(prompt) in bundle["text/plain"]
        assert work(question) in bundle["text/html"]


def test_the_quiz_is_shown_where_there_is_no_torch():
    code = (
        "import sys\n"
        "for name in ('torch', 'matplotlib', 'numpy', 'ipywidgets'):\n"
        "    sys.modules[name] = None\n"
        "from companion import CHAPTERS, interview\n"
        "for chapter in CHAPTERS:\n"
        "    print(interview.show(chapter).text)\n"
    )
    shown = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={"PYTHONIOENCODING": "utf-8"},
    )
    assert shown.stderr == ""
    assert "1. [junior, open]" in shown.stdout
