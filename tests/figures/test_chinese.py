"""What the figures of the Chinese pages say once their controls are worked."""

import json
import re
import sys
from pathlib import Path

import pytest
from figures.browser import settled
from support.contents import NOTEBOOKS, ROOT

sys.path.append(str(ROOT / "book" / "_ext"))
import chinese as edition
from words import page_words

# What a Chinese page says in English as well.
TERMS = """Adam Add BART BERT BatchNorm CLS CPU False Face GB GPT GiB Hugging KV
Keras LN LSTM LayerNorm MASK NaN NameError Norm PyTorch QK RMSNorm RNN ReLU RoPE
SEP SGD SwiGLU Top Transformer True bos dropout epsilon length lengths ln log
logits min ms post pre softmax step tanh top warmup"""
# The words of the sentences that models read and write.
TOKENS = """ab and at ate bark big blue books bought cat cats chats dogs drew
eats egg fish flower he it likes little long love loves mat on sat she sleep
slept start teacher that the ve well you"""
KNOWN = {*TERMS.split(), *TOKENS.split()}
WORD = re.compile(r"(?<!\w)[A-Za-z]{2,}(?!\w)", re.ASCII)
# Code, tokens between quotation marks, and special tokens.
NAMED = re.compile(r"“[^”]*”|<[^>]*>|[\w.]+\([^)]*\)|\w+[_.=]\w+")
# Every control is worked, twice where one may wait for another; what is seen
# or read aloud after each is collected.
WORKED = """figure => {
  const heard = new Set();
  const read = (element) => {
    for (const name of ["alt", "aria-label", "aria-valuetext", "title"])
      if (element.hasAttribute(name)) heard.add(element.getAttribute(name));
    for (const child of element.childNodes)
      if (child.nodeType === 3) heard.add(child.data);
      else if (child.nodeType === 1
        && !child.matches("script, style, code, pre")) read(child);
  };
  const act = (element, value, ...events) => {
    element.value = value;
    for (const name of events)
      element.dispatchEvent(new Event(name, { bubbles: true }));
    read(figure);
  };
  read(figure);
  for (const slider of figure.querySelectorAll("[type=range]"))
    for (const value of [slider.min, slider.max, slider.max - 1])
      act(slider, value, "input");
  for (const select of figure.querySelectorAll("select"))
    for (const { value } of select.options) act(select, value, "change");
  for (const field of figure.querySelectorAll("[type=text]"))
    for (const value of ["", "x", "1e9", "1"])
      act(field, value, "focus", "input");
  for (let turn = 0; turn < 2; turn += 1)
    for (let i = 0; ; i += 1) {
      const button = figure.querySelectorAll(
        "button, [type=radio], [type=checkbox]")[i];
      if (!button) break;
      button.click();
      read(figure);
    }
  for (const cell of [...figure.querySelectorAll("td, .tile")].slice(-40)) {
    cell.click();
    read(figure);
  }
  return [...heard];
}"""


def live_figures():
    """Each figure with a script that a page stores, and the cell it is of."""
    for page in NOTEBOOKS:
        text = (ROOT / f"{page}.ipynb").read_text(encoding="utf-8")
        for cell in json.loads(text)["cells"]:
            for output in cell.get("outputs", ()):
                html = "".join(output.get("data", {}).get("text/html", ""))
                if "<script" in html and "companion-quiz" not in html:
                    yield pytest.param(
                        page, html, id=f"{Path(page).name}-{cell['id']}"
                    )


@pytest.mark.parametrize(("page", "html"), list(live_figures()))
def test_a_figure_speaks_chinese_whatever_is_pressed(reader, page, html):
    table = edition.words(page)
    opened = reader(
        page_words.in_html(html, lambda word: table.get(word, word))
    )
    settled(opened)
    heard = opened.locator("figure").last.evaluate(WORKED)
    assert any("\u4e00" <= sign <= "\u9fff" for sign in "".join(heard))
    left = {
        word: text
        for text in heard
        for word in WORD.findall(NAMED.sub("", text))
        if word not in KNOWN
    }
    assert left == {}
