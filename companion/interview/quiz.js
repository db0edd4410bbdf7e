// Turns the questions of page.py into something to answer.

const LANGUAGES = [["both", "English + 中文"], ["en", "English"], ["zh", "中文"]];
const LEVELS = [["all", "All", "全部"], ["junior", "junior", "初级"],
  ["mid", "mid", "中级"], ["senior", "senior", "高级"]];
const MEMORY = "companion-language";

const words = (en, zh) =>
  [make("span", { lang: "en" }, en), make("span", { lang: "zh-CN" }, zh)];

const live = (name) =>
  make("div", { class: name, "aria-live": "polite" });

// A question that is answered by pressing a button, or Enter.
function ask(legend, ...fields) {
  const verdict = live("verdict");
  const form = make("form", { novalidate: "" },
    make("fieldset", {}, make("legend", {}, ...legend), ...fields),
    make("button", { type: "submit" }, ...words("Check", "对答案")), verdict);
  return { form, verdict };
}

function answered(form, verdict, judge) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    verdict.replaceChildren(...judge());
  });
}

const line = (state, en, zh) =>
  make("p", { class: state }, ...words(en, zh));

const copies = (element) =>
  [...element.children].map((child) => child.cloneNode(true));

// Every kind gets the question's parts and a way to mark the question.

function inWords({ work, mark }) {
  const points = work.querySelector("details.points");
  const answer = work.querySelector("details.answer");
  const list = points.querySelector("ul");
  const score = make("output");
  const total = list.children.length;
  const count = () => {
    const hit = list.querySelectorAll(":checked").length;
    score.replaceChildren(
      ...words(`${hit} of ${total} points`, `得分点 ${hit} / ${total}`));
    mark(hit === total ? "good" : "some", `${hit}/${total}`);
  };
  for (const item of list.children)
    item.replaceChildren(make("label", {},
      make("input", { type: "checkbox" }),
      make("span", {}, ...item.childNodes)));
  list.addEventListener("change", count);
  const rubric = make("fieldset", {},
    make("legend", {}, ...words("Tick what you said", "勾选你答到的")));
  list.before(rubric);
  rubric.append(list, score);
  points.before(make("label", { class: "draft" },
    make("span", {}, ...words("Your answer", "你的回答")),
    make("textarea", { rows: 4 })));
  answer.hidden = true;
  points.addEventListener("toggle", () => {
    answer.hidden = false;
    count();
  }, { once: true });
}

function choice({ work, prompt, mark }) {
  const options = work.querySelector("ol.options");
  const whys = work.querySelector("ol.whys");
  const answer = work.querySelector("details.answer");
  const places = [...options.children].map((item) => {
    const place = live("why");
    item.replaceChildren(make("label", {},
      make("input", { type: "radio", name: "option" }),
      make("span", {}, ...item.childNodes)), place);
    return place;
  });
  const { form, verdict } = ask(copies(prompt));
  form.querySelector("legend").className = "unseen";
  options.before(form);
  form.querySelector("fieldset").append(options);
  answered(form, verdict, () => {
    const boxes = [...options.querySelectorAll("input")];
    const chosen = boxes.findIndex((box) => box.checked);
    if (chosen < 0) return [line("bad", "Choose one first.", "请先选一项。")];
    [...whys.children].forEach((why, number) => {
      options.children[number].classList.add(why.className);
      places[number].append(...why.children);
    });
    whys.hidden = true;
    answer.open = true;
    const right = options.children[chosen].className === "right";
    mark(right ? "good" : "bad", right ? "✓" : "✗");
    return [right ? line("good", "Right.", "正确。")
      : line("bad", "Not that one.", "选错了。")];
  });
}

// Full-width digits, a typographic minus and commas between thousands are
// numbers too.
function parse(text) {
  const plain = text.normalize("NFKC").replace("\u2212", "-").trim();
  const grouped = /^[-+]?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain);
  const number = Number(grouped ? plain.replaceAll(",", "") : plain);
  return plain === "" || !Number.isFinite(number) ? null : number;
}

function numeric({ work, prompt, key, mark }) {
  const answer = work.querySelector("details.answer");
  const input = make("input",
    { type: "text", inputmode: "decimal", autocomplete: "off" });
  const { form, verdict } = ask(copies(prompt), make("label", {},
    make("span", {}, ...words("Your number", "你的结果")), input));
  form.querySelector("legend").className = "unseen";
  work.prepend(form);
  const near = (number, value) =>
    Math.abs(number - value) <= key.tolerance + 1e-9 * Math.abs(value);
  answered(form, verdict, () => {
    const number = parse(input.value);
    input.setAttribute("aria-invalid", number === null);
    if (number === null)
      return [line("bad", "Type a number, such as 0.25 or 1024.",
        "请输入一个数，例如 0.25 或 1024。")];
    const right = near(number, key.value);
    mark(right ? "good" : "bad", right ? "✓" : "✗");
    if (right) answer.open = true;
    if (right) return [line("good", "Right.", "正确。")];
    const mistake = key.mistakes.findIndex((value) => near(number, value));
    const reason = mistake < 0 ? work.querySelector("details.hint > div")
      : work.querySelectorAll("dd")[mistake];
    return [line("bad", "Not yet.", "还不对。"), ...copies(reason)];
  });
}

const KINDS = { open: inWords, choice, numeric, code() {} };

function chooser(legend, options, chosen, choose) {
  const field = make("fieldset", {}, make("legend", {}, ...legend));
  for (const [value, ...texts] of options) {
    const box = make("input", { type: "radio", name: legend[0].textContent });
    box.checked = value === chosen;
    box.addEventListener("change", () => choose(value));
    const shown = texts.length > 1 ? words(...texts) : texts;
    field.append(make("label", {}, box, make("span", {}, ...shown)));
  }
  choose(chosen);
  return field;
}

// Where a page may store nothing, the language is chosen anew each time.
function recall() {
  try { return localStorage.getItem(MEMORY); } catch { return null; }
}

function remember(language) {
  try { localStorage.setItem(MEMORY, language); } catch { /* as above */ }
}

function settings(root) {
  const known = LANGUAGES.some(([value]) => value === recall());
  const form = make("form", { class: "settings" },
    chooser(words("Language", "语言"), LANGUAGES, known ? recall() : "both",
      (language) => {
        root.dataset.language = language;
        remember(language);
      }),
    chooser(words("Level", "难度"), LEVELS, "all",
      (level) => { root.dataset.only = level; }));
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
}

function mount(root, data) {
  const list = root.querySelector(".questions");
  [...list.children].forEach((question, number) => {
    const seal = make("span", { class: "seal" });
    question.querySelector(".tags").append(seal);
    KINDS[question.dataset.kind]({
      work: question.querySelector(".work"),
      prompt: question.querySelector(".prompt"),
      key: data[number],
      mark(state, text) {
        seal.className = `seal ${state}`;
        seal.textContent = text;
      },
    });
  });
  list.before(settings(root));
  for (const each of root.querySelectorAll("input, textarea, button, summary"))
    for (const [name, value] of Object.entries(OWN_KEYS))
      each.setAttribute(name, value);
}
