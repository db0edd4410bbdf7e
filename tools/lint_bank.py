"""Reads the question bank as an editor would, and lists what is amiss.

    python tools/lint_bank.py

Each line has the file, the line and the id of a question, and what to do. That
solutions pass and numbers are computed, ``tests/interview`` tests.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT))  # A clone is enough; nothing has to be installed.

from companion import CHAPTERS  # noqa: E402
from companion.interview.model import bank, notes  # noqa: E402
from companion.interview.model.question import Choice, Open, Question  # noqa: E402

IDS = bank.BANK / "ids.txt"
# The right option is the longest in a share of the choices between these.
LONGEST = 0.15, 0.45
TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
HAN = re.compile(r"[\u4e00-\u9fff]")
LEAST = {"all": 180, "code": 30, "debug": 25, "numeric": 30}
SHORT = {"en": (25, 75), "zh": (40, 130)}
VARIANTS = {
    "en": {
        "feedforward": "feed-forward",
        "look-ahead mask": "causal mask",
        "pad mask": "padding mask",
        "encoder-decoder attention": "cross-attention",
    },
    "zh": {
        "集束搜索": "束搜索",
        "波束搜索": "束搜索",
        "词汇表": "词表",
        "译码器": "解码器",
        "互注意力": "交叉注意力",
        "隐状态": "隐藏状态",
        "遮罩": "掩码",
        "遮蔽": "掩码",
        "贪婪": "贪心",
        "层标准化": "层归一化",
        "层规范化": "层归一化",
        "梯度弥散": "梯度消失",
        "梯度剪裁": "梯度裁剪",
        "参数数量": "参数量",
        "注意力得分": "注意力分数",
        "令牌": "词元",
        "热身": "预热",
        "前向网络": "前馈网络",
        "语境向量": "上下文向量",
    },
}
"""Words the bank does not use, and what ``book/notation.md`` says instead."""


def faults(folder: Path = bank.BANK, ids: Path = IDS) -> list[str]:
    """All faults of a bank, question by question, then of the whole.

    Raises:
        ValueError: a file cannot be read; the message says where.
    """
    questions = [q for each in bank.read(folder).values() for q in each]
    found = []
    for question in questions:
        for check in (lengths, languages, variants, stars, blanks, anchors):
            for fault in check(question):
                found.append(f"{place(folder, question)}: {fault}")
    found += [f"notes.toml: {fault}" for fault in noted(questions)]
    return [*found, *whole(questions), *stable(questions, ids)]


def place(folder: Path, question: Question) -> str:
    """File, line and id of a question."""
    path = folder / f"{question.chapter}.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    wanted = rf'\s*id\s*=\s*"{re.escape(question.id)}"'
    number = next(n for n, s in enumerate(lines, 1) if re.match(wanted, s))
    return f"{path.name}:{number} {question.id}"


def size(text: str, language: str) -> int:
    """English in words, Chinese in signs without spaces and markup."""
    if language == "en":
        return len(text.split())
    return len(re.sub(r"[\s`*$]", "", text))


def lengths(question: Question) -> Iterator[str]:
    """Texts that are too long to say, or too short to say it."""
    for language, (least, most) in SHORT.items():
        number = size(getattr(question.short, language), language)
        if not least <= number <= most:
            yield (
                f"short.{language} has {number} words or signs: "
                f"write {least} to {most}"
            )
    if isinstance(question.task, Open):
        number = size(question.answer.en, "en")
        if not 60 <= number <= 200:
            yield f"answer.en has {number} words: write 60 to 200"
        if not 4 <= len(question.task.points) <= 7:
            yield f"{len(question.task.points)} points: write 4 to 7"


def texts(question: object) -> Iterator[tuple[str, str]]:
    """Every text below a question, with its language."""
    if hasattr(question, "en") and hasattr(question, "zh"):
        yield "en", question.en
        yield "zh", question.zh
    elif isinstance(question, tuple):
        for each in question:
            yield from texts(each)
    elif hasattr(question, "__dataclass_fields__"):
        for name in question.__dataclass_fields__:
            yield from texts(getattr(question, name))


def languages(question: Question) -> Iterator[str]:
    """English with Chinese in it, and Chinese without."""
    for name in ("prompt", "short", "answer"):
        text = getattr(question, name)
        if not HAN.search(text.zh):
            yield f"{name}.zh has no Chinese: translate it"
        # An answer may quote a sentence, such as 我爱你.
        if name != "answer" and HAN.search(text.en):
            yield f"{name}.en has Chinese: translate it"


def variants(question: Question | notes.Note) -> Iterator[str]:
    """Words for which the notation page has another."""
    told = {"en": "", "zh": ""}
    for language, text in texts(question):
        told[language] += text.lower()
    for language, text in told.items():
        for variant, word in VARIANTS[language].items():
            if variant in text:
                yield f"'{variant}': write '{word}', as the book does"


def stars(question: Question | notes.Note) -> Iterator[str]:
    """Markup that there is not: a single star stays a star."""
    marked = r"`[^`]*`|\$[^$]*\$|\*\*[^*]+\*\*"
    for _, text in texts(question):
        rest = re.sub(marked, "", text)
        if at := re.search(r".{0,12}\*.{0,12}", rest):
            yield f"'{at[0]}': write **…** to stress, $a · b$ to multiply"


def blanks(question: Question | notes.Note) -> Iterator[str]:
    """Numbers whose thousands a blank sets apart, which can break a line."""
    for _, text in texts(question):
        plain = re.sub(r"`[^`]*`", "", text)
        if at := re.search(
            r"(?<![\d.])\d{1,3}([ \u2009\u202f\xa0]\d{3})+\b", plain
        ):
            yield f"'{at[0]}': write '{re.sub(r'[^0-9]', ',', at[0])}'"


def anchors(question: Question) -> Iterator[str]:
    """Sections and proofs that are not there."""
    if question.chapter not in CHAPTERS:
        yield "its file is no chapter's: see CHAPTERS in companion/__init__.py"
        return
    number = CHAPTERS.index(question.chapter) + 1
    if question.section not in headings(f"{number:02}_{question.chapter}"):
        yield f"section '{question.section}': name a heading of its chapter"
    if not proven(question.proof):
        yield (
            f"proof '{question.proof}': name a cell, or a test that exists once"
        )


def noted(questions: list[Question]) -> Iterator[str]:
    """Answers of the notes that lead nowhere."""
    known = {question.id for question in questions}
    for note in notes.read():
        if note.master not in known:
            yield f"{note.id}: master '{note.master}': name a question"
        if not proven(note.proof):
            yield f"{note.id}: proof '{note.proof}': name what exists"
        for fault in [*stars(note), *blanks(note), *variants(note)]:
            yield f"{note.id}: {fault}"


@cache
def cells(document: str) -> list[Mapping]:
    """The cells of a chapter's lesson, and of its lab."""
    pages = [ROOT / "book" / f"{at}{document}.ipynb" for at in ("", "labs/")]
    return [
        cell
        for page in pages
        if page.exists()
        for cell in json.loads(page.read_text(encoding="utf-8"))["cells"]
    ]


@cache
def headings(document: str) -> set[str]:
    """The headings of a chapter, without what is code."""
    text = "\n".join(
        "".join(cell["source"])
        for cell in cells(document)
        if cell["cell_type"] == "markdown"
    )
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return set(re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE))


@cache
def tests() -> Mapping[str, list[Path]]:
    """The files that define a test function, by the name of the function."""
    found = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in TEST.findall(path.read_text(encoding="utf-8")):
            found[name].append(path)
    return found


def proven(proof: str) -> bool:
    """Whether the cell, or one test of this name, exists in any folder."""
    document, _, cell = proof.partition("#")
    if not cell:
        return len(tests().get(proof, ())) == 1
    code = [c for c in cells(document) if c["cell_type"] == "code"]
    return cell in {c["id"] for c in code}


def whole(questions: list[Question]) -> Iterator[str]:
    """What only the whole bank can get wrong."""
    kinds = Counter(question.kind for question in questions)
    have = {
        "all": len(questions),
        "code": kinds["code"],
        "numeric": kinds["numeric"],
        "debug": sum(question.asks == "debug" for question in questions),
    }
    for name, least in LEAST.items():
        if have[name] < least:
            yield f"bank: {have[name]} of '{name}': write {least} or more"
    yield from balance([q for q in questions if isinstance(q.task, Choice)])


def stable(questions: list[Question], ids: Path) -> Iterator[str]:
    """Names that went or came: progress and Anki know a question by its id."""
    known = ids.read_text(encoding="utf-8").split()
    now = [question.id for question in questions]
    for name in sorted(set(known) - set(now)):
        yield (
            f"{ids.name}: '{name}' is in no file. Give the question its id "
            "back; if another one stands for it now, delete the line here and "
            "write both ids into retired.txt"
        )
    for name in sorted(set(now) - set(known)):
        yield f"{ids.name}: '{name}' is new: add a line, and never change it"


def balance(choices: list[Question]) -> Iterator[str]:
    """Where the right option stands, and how long it is.

    A candidate who knows nothing should not find it by either.
    """
    for count in {len(question.task.options) for question in choices}:
        some = [q for q in choices if len(q.task.options) == count]
        at = Counter(
            [o.right for o in q.task.options].index(True) for q in some
        )
        fair = len(some) / count
        # Three standard deviations of a fair die, and one for small numbers.
        away = 3 * (fair * (1 - 1 / count)) ** 0.5 + 1
        for position in range(count):
            if abs(at[position] - fair) > away:
                yield (
                    f"bank: of {len(some)} choices with {count} options the "
                    f"right one is number {position + 1} in {at[position]}: "
                    f"move some, {fair:.0f} would be even"
                )
        yield from lengths_of_options(some)


def lengths_of_options(choices: list[Question]) -> Iterator[str]:
    """A habit that gives the right option away: never longest, or always."""
    least, most = (share * len(choices) for share in LONGEST)
    for language in ("en", "zh"):
        longest = sum(longest_is_right(q, language) for q in choices)
        if not least <= longest <= most:
            yield (
                f"bank: of {len(choices)} choices the right option is the "
                f"longest in {language} in {longest}: "
                f"{'shorten' if longest > most else 'lengthen'} some"
            )


def longest_is_right(question: Question, language: str) -> bool:
    """Whether the right option is longer than every other."""
    long = [len(getattr(o.text, language)) for o in question.task.options]
    right = next(o for o in question.task.options if o.right)
    mine = len(getattr(right.text, language))
    return mine == max(long) and long.count(mine) == 1


if __name__ == "__main__":
    found = faults()
    print("\n".join(found) or "no fault")
    sys.exit(bool(found))
