// Turns the cards of card.py into something to answer, step by step.

const words = (en, zh) =>
  [make("span", { lang: "en" }, en), make("span", { lang: "zh-CN" }, zh)];

const live = (name) =>
  make("div", { class: name, "aria-live": "polite" });

const line = (state, en, zh) =>
  make("p", { class: state }, ...words(en, zh));

const labelled = (en, zh, field, attributes = {}) =>
  make("label", attributes, make("span", {}, ...words(en, zh)), field);

const ticked = (box, ...texts) =>
  make("label", { class: "chip" }, box, make("span", {}, ...texts));

const copies = (element) =>
  [...element.children].map((child) => child.cloneNode(true));

// A question that is answered by pressing a button, or Enter.
function ask(legend, ...fields) {
  const verdict = live("verdict");
  const form = make("form", { novalidate: "" },
    make("fieldset", {}, make("legend", { class: "unseen" }, ...legend),
      ...fields),
    make("button", { type: "submit" }, ...words("Check", "对答案")), verdict);
  return { form, verdict };
}

function answered(form, verdict, judge) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    verdict.replaceChildren(...judge());
  });
}

// What an item holds becomes the label of a box.
const boxed = (item, attributes) =>
  item.replaceChildren(make("label", {}, make("input", attributes),
    make("span", {}, ...item.childNodes)));

// Every kind gets the question's parts and a way to mark the question.

function inWords({ work, mark, draft }) {
  const points = work.querySelector("details.points");
  const list = points.querySelector("ul");
  const score = make("output");
  const total = list.children.length;
  const count = () => {
    const hit = list.querySelectorAll(":checked").length;
    score.replaceChildren(
      ...words(`${hit} of ${total} points`, `得分点 ${hit} / ${total}`));
    mark(hit, total);
  };
  for (const item of list.children) boxed(item, { type: "checkbox" });
  list.addEventListener("change", count);
  const rubric = make("fieldset", {},
    make("legend", {}, ...words("Tick what you said", "勾选你答到的")));
  list.before(rubric);
  rubric.append(list, score);
  const field = make("textarea", { rows: 4 });
  const label = labelled("Your answer", "你的回答", field, { class: "draft" });
  // Paper has the text from the label: a field prints what fits into it.
  const typed = () => { label.dataset.text = field.value; };
  field.value = draft?.text ?? "";
  typed();
  field.addEventListener("input", () => {
    typed();
    draft?.keep(field.value);
  });
  points.before(label);
  points.addEventListener("toggle", count, { once: true });
}

function choice({ work, prompt, mark }) {
  const options = work.querySelector("ol.options");
  const whys = work.querySelector("ol.whys");
  const places = [...options.children].map((item) => {
    const place = live("why");
    boxed(item, { type: "radio", name: "option" });
    item.append(place);
    return place;
  });
  const { form, verdict } = ask(copies(prompt));
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
    step(work.querySelector("details.whys"), true);
    const right = options.children[chosen].className === "right";
    mark(right ? 1 : 0, 1);
    return [right ? line("good", "Right.", "正确。")
      : line("bad", "Not that one.", "选错了。")];
  });
}

// Full-width digits, a typographic minus, commas and blanks between thousands
// are numbers too.
function parse(text) {
  const plain = text.normalize("NFKC").replace("\u2212", "-").trim();
  const grouped = /^[-+]?\d{1,3}([ ,]\d{3})+(\.\d*)?$/.test(plain);
  const number = Number(grouped ? plain.replaceAll(/[ ,]/g, "") : plain);
  return plain === "" || !Number.isFinite(number) ? null : number;
}

function numeric({ work, prompt, key, mark }) {
  const input = make("input",
    { type: "text", inputmode: "decimal", autocomplete: "off" });
  const { form, verdict } = ask(copies(prompt),
    labelled("Your number", "你的结果", input));
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
    mark(right ? 1 : 0, 1);
    if (right) work.querySelector("details.short").open = true;
    if (right) return [line("good", "Right.", "正确。")];
    const mistake = key.mistakes.findIndex((value) => near(number, value));
    const reason = mistake < 0 ? work.querySelector("details.hint > div")
      : work.querySelectorAll("dd")[mistake];
    return [line("bad", "Not yet.", "还不对。"), ...copies(reason)];
  });
}

const OUTCOMES = [[2, "It passed", "通过了"], [1, "With help", "看了提示"],
  [0, "Not yet", "还没写出"]];

function code({ work, prompt, mark }) {
  const row = make("fieldset", { class: "how" }, make("legend", {},
    ...words("How did it go?", "结果如何？")));
  for (const [got, ...texts] of OUTCOMES) {
    const box = make("input", { type: "radio", name: prompt.textContent });
    box.addEventListener("change", () => mark(got, 2));
    row.append(ticked(box, ...words(...texts)));
  }
  work.querySelector("details.solution").before(make("form", {}, row));
}

const KINDS = { open: inWords, choice, numeric, code };

// Opening a step shows that there is a next one.
function step(element, skipped = false) {
  element.hidden = skipped;
  let next = element.nextElementSibling;
  while (next && !next.matches(".step")) next = next.nextElementSibling;
  if (!next) return;
  next.hidden = false;
  if (!next.matches("details")) step(next);
}

function unfold(work) {
  const steps = [...work.querySelectorAll(":scope > .step")];
  for (const each of steps.slice(1)) each.hidden = true;
  for (const each of steps)
    each.addEventListener("toggle", () => step(each, each.hidden),
      { once: true });
}

// A mark as a sign, and as a word for who hears the page.
function seal(element, { got, of }) {
  const state = got === of ? "good" : of <= 2 && got === 0 ? "bad" : "some";
  const [sign, name] = { good: ["✓", "right 正确"], bad: ["✗", "wrong 错误"],
    some: ["½", "half 一半"] }[state];
  element.className = `seal ${state}`;
  element.textContent = of > 2 ? `${got}/${of}` : sign;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label",
    of > 2 ? `${got} of ${of} points 得分点` : name);
}

// Where a heading of this page stands, as a link.
function heading(text) {
  const same = (words_) => words_.replaceAll("’", "'")
    .replace(/[#¶]?\s*$/, "").trim();
  const found = [...document.querySelectorAll("h1, h2, h3, h4")]
    .find((each) => same(each.textContent) === same(text));
  const name = found?.closest("section[id]")?.id || found?.id;
  return name && `#${name}`;
}

// Makes a card answer. `marked` is called with each mark, from 0 to 1: of a
// choice and a number the first one, since a second try knows more. `tried` is
// what it was called with on a page before.
function ready(item, key, store,
  { name = item.id, link, tried, marked = () => {} } = {}) {
  const work = item.querySelector(".work"), { kind } = item.dataset;
  let [first, ...last] = tried ?? [null];
  // In a mock interview the card has no id, and no draft.
  const draft = item.id ? store.draft(item.id) : null;
  if (tried) seal(item.querySelector(".seal"), { got: last[0], of: last[1] });
  KINDS[kind]({ work, prompt: item.querySelector(".prompt"), key, draft,
    mark(got, of) {
      // As a card is put back as it was, nothing is answered again.
      if (tried && last[0] === got && last[1] === of) return;
      const again = kind === "choice" || kind === "numeric";
      first = again && first !== null ? first : got / of;
      last = [got, of];
      store.record(name, got, of, first);
      seal(item.querySelector(".seal"), { got, of });
      marked(first, got, of);
    } });
  unfold(work);
  const place = work.querySelector(".end .section");
  const href = link ?? heading(place.textContent);
  if (href) place.replaceChildren(make("a", { href }, place.textContent));
  keepKeys(item);
}

function keepKeys(root) {
  for (const each of root.querySelectorAll(
    "input, textarea, button, select, summary"))
    for (const [name, value] of Object.entries(OWN_KEYS))
      each.setAttribute(name, value);
}

// Seals on all cards, now and whenever the progress changes.
function showSeals(items, store) {
  for (const item of items)
    item.querySelector(".tags").append(make("span", { class: "seal" }));
  const show = () => {
    const known = store.all();
    for (const item of items) {
      const place = item.querySelector(".seal");
      if (known[item.id]) seal(place, known[item.id]);
      else place.replaceChildren();
    }
  };
  store.listen(show);
  show();
}

// Opens the card that the address names.
function followAddress(open) {
  const go = () => {
    const item = document.getElementById(location.hash.slice(1));
    if (!item?.matches(".question")) return;
    open?.(item);
    item.querySelector("details").open = true;
    item.scrollIntoView();
    item.querySelector("summary").focus({ preventScroll: true });
  };
  addEventListener("hashchange", go);
  go();
}

// The language, chosen once for all pages, and other choices of one of a few.

const LANGUAGES = [["both", "English + 中文"], ["en", "English"], ["zh", "中文"]];
const MEMORY = "companion-language";

function chooser(legend, options, chosen, choose) {
  const field = make("fieldset", {}, make("legend", {}, ...legend));
  for (const [value, ...texts] of options) {
    const box = make("input", { type: "radio", value,
      name: legend[0].textContent });
    box.checked = value === chosen;
    box.addEventListener("change", () => choose(value));
    const shown = texts.length > 1 ? words(...texts) : texts;
    field.append(ticked(box, ...shown));
  }
  return field;
}

// Where a page may store nothing, the language is chosen anew each time.
function recall() {
  try { return localStorage.getItem(MEMORY); } catch { return null; }
}

function remember(language) {
  try { localStorage.setItem(MEMORY, language); } catch { /* as above */ }
}

function speak(language) {
  for (const each of document.querySelectorAll(".companion-quiz"))
    each.dataset.language = language;
  for (const box of document.querySelectorAll(
    `.settings [name="Language"][value="${language}"]`)) box.checked = true;
}

function languages(chosen) {
  const known = LANGUAGES.some(([value]) => value === recall());
  const page = document.documentElement.lang.startsWith("zh") ? "zh" : "both";
  const language = chosen ?? (known ? recall() : page);
  speak(language);
  return chooser(words("Language", "语言"), LANGUAGES, language, (value) => {
    speak(value);
    remember(value);
  });
}

const panel = (...fields) => {
  const form = make("form", { class: "settings" }, ...fields);
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
};
