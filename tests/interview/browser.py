"""What the tests share that drive the interview's pages in a browser."""

import pytest

from companion import CHAPTERS, interview
from companion.interview.web import overview

PAPER = {"light": "#ffffff", "dark": "#14181f"}
TABS_TO_REACH_ANYTHING = 200
WHOLE = {word: interview.load(word) for word in CHAPTERS}
BOOK = {
    word: overview.Chapter(
        f"{number:02} · {word}",
        f"{word}.html",
        {q.section: f"{word}.html#there" for q in WHOLE[word]},
    )
    for number, word in enumerate(CHAPTERS, 1)
}
FEW = {word: WHOLE[word] for word in ("rnn", "attention")}
"""Two chapters of it, which are laid out sooner where they are as good."""
FOCUSED = "it => it === document.activeElement"


def of(chapter, kind):
    """The questions of a chapter that are answered in one way."""
    return [q for q in WHOLE[chapter] if q.kind == kind]


def write_site(folder):
    """Store a page for each quiz, the bank page, and a notebook's interview."""
    bodies = {"mock": interview.mock(minutes=20, seed=3, language="zh").html}
    for word, questions in WHOLE.items():
        taught = f"<h2>{questions[0].section}#</h2>"
        bodies[word] = (
            f"<section id='there'>{taught}</section>{interview.show(word).html}"
        )
    answered = overview.answered_table()
    for name, asked, below in (("bank", WHOLE, answered), ("few", FEW, "")):
        bodies[name] = (
            "<main class='bd-article'><section><h1>Interview</h1>"
            f"<p>Before</p>{overview.mock_place()}"
            f"{overview.overview(asked, BOOK)}{below}</section></main>"
        )
    for name, body in bodies.items():
        (folder / f"{name}.html").write_text(
            '<!doctype html><html lang="en" data-theme="light">'
            '<meta charset="utf-8"><title>Page</title>'
            '<link rel="icon" href="data:,">'
            '<meta name="viewport" content="width=device-width">'
            f"<body>{body}</body></html>",
            encoding="utf-8",
        )


def card(page, question):
    """The opened card of a question."""
    item = page.locator(f"#{question.id}")
    item.locator("summary").first.click()
    return item


def submit(item, typed):
    """Type a number into a card; returns the verdict."""
    item.get_by_role("textbox").fill(str(typed))
    item.get_by_role("textbox").press("Enter")
    return item.locator(".verdict").inner_text()


def begin(page, *, seed, minutes=10):
    page.get_by_label("Seed").fill(str(seed))
    page.get_by_label("Minutes").fill(str(minutes))
    page.get_by_role("button", name="Begin").click()
    page.locator(".session").wait_for()


def answer(item, right):
    """Answers the card in some way; returns its mark if that is known."""
    kind = item.get_attribute("data-kind")
    if kind == "open":
        item.locator("details.points > summary").click()
        for box in item.get_by_role("checkbox").all():
            box.set_checked(right)
    elif kind == "code":
        name = "It passed" if right else "Not yet"
        item.get_by_role("radio", name=name).check()
    elif kind == "numeric":
        item.get_by_role("textbox").fill("123456789")
        item.get_by_role("button").click()
    else:
        item.get_by_role("radio").first.check()
        item.get_by_role("button").click()


def open_all(place):
    """Open every fold below."""
    place.locator("details, .end").evaluate_all("""all => all.forEach(
      (each) => { each.open = true; each.hidden = false; })""")


def go_to(page, element):
    """Press Tab until the element has the focus."""
    for _ in range(TABS_TO_REACH_ANYTHING):
        if element.evaluate(FOCUSED):
            return
        page.keyboard.press("Tab")
    pytest.fail("Tab does not reach it")


def contrast(page, theme):
    """Compute the lowest contrast of any text on a paper (WCAG 2, 1.4.3)."""
    return page.evaluate(CONTRAST, [theme, PAPER[theme]])


CONTRAST = """([theme, paper]) => {
  document.documentElement.dataset.theme = theme;
  document.body.style = `background: ${paper}; color-scheme: ${theme}`;
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const colour = getComputedStyle(element).backgroundColor;
    return channels(colour)[3] === 0 && element.parentElement
      ? ground(element.parentElement) : colour;
  };
  const texts = [...document.querySelectorAll(".companion *")].filter(
    (each) => each.checkVisibility() && !/style|script/i.test(each.tagName)
      && [...each.childNodes].some(
        (node) => node.nodeType === 3 && node.textContent.trim()));
  return Math.min(...texts.map((each) => {
    const [low, high] = [light(getComputedStyle(each).color),
      light(ground(each))].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""

# Answers every question of a page from within, and asks what it looks like.
DRIVE = """async (typed) => {
  const opened = (details) => new Promise((done) => {
    details.addEventListener("toggle", done, { once: true });
    details.open = true;
  });
  const text = (item, name) => item.querySelector(name)?.textContent;
  const state = (item) => ({ verdict: text(item, ".verdict"),
    seal: text(item, ".seal"), open: item.querySelector(".short").open });
  const drive = {
    async numeric(item) {
      const tries = [];
      for (const number of typed[item.id]) {
        item.querySelector("form input").value = number;
        item.querySelector("form").requestSubmit();
        tries.push(state(item));
      }
      return tries;
    },
    async choice(item) {
      const tries = [], form = item.querySelector("form");
      form.requestSubmit();
      const whys = [...item.querySelectorAll(".why")];
      tries.push({ ...state(item), whys: whys.map((why) => why.innerHTML) });
      for (const box of form.querySelectorAll("input")) {
        box.checked = true;
        form.requestSubmit();
        tries.push({ ...state(item), whys: whys.map((why) =>
          [why.textContent, why.getAttribute("aria-live")].join(" ")) });
      }
      return tries;
    },
    async open(item) {
      await opened(item.querySelector("details.points"));
      const tries = [state(item)];
      for (const box of item.querySelectorAll("[type=checkbox]")) {
        box.click();
        tries.push({ ...state(item), score: text(item, "output") });
      }
      return tries;
    },
    async code(item) {
      const tries = [];
      for (const box of item.querySelectorAll(".how input")) {
        box.click();
        tries.push(state(item));
      }
      return tries;
    },
  };
  const tries = {};
  for (const item of document.querySelectorAll(".question")) {
    item.querySelector("details").open = true;
    tries[item.id] = await drive[item.dataset.kind](item);
  }
  for (const each of document.querySelectorAll("details, .end")) {
    each.open = true;
    each.hidden = false;
  }
  const all = (names) => [...document.querySelectorAll(names)];
  return { tries, width: document.documentElement.scrollWidth,
    nameless: all("input, textarea, select").filter(
      (field) => !field.labels[0]?.textContent.trim()).length,
    untitled: all("fieldset").filter((field) =>
      !field.querySelector("legend")?.textContent.trim()).length,
    robbed: all("summary, input, textarea, button, select").filter((each) =>
      each.dataset.lmSuppressShortcuts !== "true").length };
}"""
