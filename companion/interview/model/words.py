"""The words of the interview's pages, and texts in both languages as HTML."""

from companion.interview.model.markup import to_html, to_line
from companion.interview.model.toml import Text

__all__ = [
    "ASKS",
    "CHAPTER",
    "LANGUAGES",
    "LEVEL",
    "VERDICTS",
    "WORDS",
    "block",
    "folded",
    "line",
    "written",
]

LANGUAGES = {"both": ("en", "zh"), "en": ("en",), "zh": ("zh",)}
LEVEL = {
    "junior": Text("junior", "初级"),
    "mid": Text("mid", "中级"),
    "senior": Text("senior", "高级"),
}
ASKS = {
    "concept": Text("concept", "概念"),
    "derivation": Text("derivation", "推导"),
    "number": Text("number", "计算"),
    "code": Text("code", "手写"),
    "debug": Text("debug", "排错"),
    "systems": Text("systems", "系统"),
}
# A chapter's word, and what the title of its page calls it.
CHAPTER = {
    "rnn": Text("rnn", "从词向量到循环网络"),
    "seq2seq": Text("seq2seq", "编码器与解码器"),
    "attention": Text("attention", "注意力"),
    "multihead": Text("multihead", "多头注意力"),
    "positions": Text("positions", "位置编码"),
    "masks": Text("masks", "掩码"),
    "blocks": Text("blocks", "模块"),
    "transformer": Text("transformer", "Transformer"),
    "tokens": Text("tokens", "词元"),
    "training": Text("training", "训练"),
    "decoding": Text("decoding", "解码"),
    "variants": Text("variants", "变体"),
    "efficiency": Text("efficiency", "推理效率"),
    "clinic": Text("clinic", "诊所"),
}
WORDS = {
    **LEVEL,
    **ASKS,
    "points": Text("Key points", "得分点"),
    "whys": Text("Each option", "逐项解析"),
    "hint": Text("Hint", "提示"),
    "solution": Text("A solution", "参考实现"),
    "short": Text("In 30 seconds", "30 秒回答"),
    "answer": Text("In three minutes", "3 分钟回答"),
    "slip": Text("Often said", "常见的错误回答"),
    "mistakes": Text("Typical wrong numbers", "常见的错误结果"),
    "notes": Text("What the notes answered", "笔记是怎么答的"),
    "missing": Text("Wrong or missing", "错误或遗漏"),
    "decides": Text("The number that decides", "关键数字"),
    "follow": Text("Asked next", "追问"),
    "right": Text("Right.", "正确。"),
    "wrong": Text("Wrong.", "错误。"),
    "why": Text("Why it is wrong", "错在哪里"),
    "proof": Text("Proved by", "依据"),
    "section": Text("Taught in", "出处"),
    "self": Text("Link to this question", "本题链接"),
    "run": Text("Run it", "运行检查"),
    "course": Text("course only", "仅限本课"),
    "practise": Text("In a notebook", "在笔记本里"),
    "correct": Text("correct", "正确"),
    "incomplete": Text("incomplete", "不完整"),
    "partly wrong": Text("partly wrong", "部分错误"),
    "unanswered": Text("unanswered", "未作答"),
    "where": Text("Where", "位置"),
    "asked": Text("Asked", "问题"),
    "verdict": Text("Verdict", "评价"),
}
VERDICTS = {**WORDS, "wrong": Text("wrong", "错误")}


def line(text: Text) -> str:
    """Turn a text of one paragraph into HTML, both languages side by side."""
    en, zh = to_line(text.en), to_line(text.zh)
    return f'<span lang="en">{en}</span><span lang="zh-CN">{zh}</span>'


def block(text: Text) -> str:
    """Turn a text into HTML, one language below the other."""
    en, zh = to_html(text.en), to_html(text.zh)
    return f'<div lang="en">{en}</div><div lang="zh-CN">{zh}</div>'


def folded(name: str, html: str, kind: str = "step") -> str:
    """Make a part of a card that opens under its name."""
    return (
        f'<details class="{name} {kind}"><summary>{line(WORDS[name])}</summary>'
        f"<div>{html}</div></details>"
    )


def written(value: float) -> str:
    """Write a number as people do: thousands apart, and a real minus.

    Example:
        >>> written(-1024.5)
        '−1,024.5'
    """
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")
