// The bank page: filters, cards whose inside comes when it is wanted, and the
// mock interview.

// A script, and not a file to fetch: pages opened from disk may fetch nothing.
function loader({ folder, version }) {
  const loads = {};
  return (chapter) => loads[chapter] ??= new Promise((done, failed) => {
    const script = make("script",
      { src: `${folder}/${chapter}.js?${version}` });
    script.addEventListener("load", () => done(companionBank[chapter]));
    script.addEventListener("error", () => {
      delete loads[chapter];
      script.remove();
      failed(new Error(script.src));
    });
    document.head.append(script);
  });
}

// A line of the list becomes a card, empty as yet.
function opening(item) {
  const prompt = item.querySelector(".prompt");
  const details = make("details", {},
    make("summary", {}, item.querySelector(".number"),
      make("span", { class: "prompt" }, ...prompt.childNodes),
      item.querySelector(".tags")),
    make("div", { class: "work" }));
  item.replaceChildren(details);
  return details;
}

const missing = (href) => make("p", { class: "bad" }, ...words(
  "This part did not load. ", "这一部分没有加载成功。"),
make("a", { href }, ...words("The chapter has it.", "请看该章。")));

function select(legend, options, chosen) {
  const field = make("select");
  for (const [value, text] of options)
    field.append(make("option", { value }, text));
  field.value = chosen;
  return { field, label: make("label", {},
    make("span", {}, ...words(...legend)), field) };
}

const ALL = ["all", "All 全部"];
const levels = LEVELS.slice(1).map(([value, en, zh]) => [value, `${en} ${zh}`]);
const asked = Object.entries(NAMED).map(([en, zh]) => [en, `${en} ${zh}`]);

function filters(chapters, changed) {
  const chapter = select(["Chapter", "章节"], [ALL, ...chapters], "all");
  const level = select(["Level", "难度"], [ALL, ...levels], "all");
  const kind = select(["Kind", "题型"], [ALL, ...asked], "all");
  const text = make("input", { type: "search", autocomplete: "off" });
  const count = make("output", { "aria-live": "polite" });
  const form = panel(languages(), chapter.label, level.label, kind.label,
    make("label", {}, make("span", {}, ...words("Search", "搜索")), text), count);
  form.addEventListener("input", changed);
  const fields = [chapter.field, level.field, kind.field];
  return { form, count, text,
    chosen: () => fields.map((field) => field.value),
    clear() {
      for (const field of fields) field.value = "all";
      text.value = "";
    } };
}

const plain = (text) => text.normalize("NFKC").toLowerCase();

const unmarked = (html) =>
  new DOMParser().parseFromString(html, "text/html").body.textContent;

function listed(root, data, load, store) {
  const items = [...root.querySelectorAll(".question")];
  const texts = {}, whole = new Set();
  data.facts.forEach(({ id, topics }, number) => {
    texts[id] = plain([id, ...topics, items[number].textContent].join(" "));
  });

  const insides = {};
  const fill = (item) => insides[item.id] ??= load(item.dataset.chapter)
    .then((cards) => {
      const { html, key, link } = cards[item.id];
      item.querySelector(".work").innerHTML = html;
      ready(item, key, store, { link });
    }).catch(() => {
      delete insides[item.id];
      item.querySelector(".work").replaceChildren(
        missing(`${data.chapters[item.dataset.chapter].page}#${item.id}`));
    });

  // Who comes from the table wants to see at once what the notes answered.
  function noted(link) {
    const item = document.getElementById(link.hash.slice(1));
    if (!item) return;
    link.addEventListener("click", async () => {
      await fill(item);
      const told = item.querySelector("details.notes");
      if (!told) return;
      told.hidden = false;
      told.open = true;
    });
  }

  // Answers are searched too, chapter by chapter as they arrive.
  function deepen() {
    for (const chapter of Object.keys(data.chapters)) {
      if (whole.has(chapter)) continue;
      whole.add(chapter);
      load(chapter).then((cards) => {
        for (const [id, { html }] of Object.entries(cards))
          if (id in texts) texts[id] += ` ${plain(unmarked(html))}`;
        show();
      }).catch(() => whole.delete(chapter));
    }
  }

  function show() {
    const wanted = plain(bar.text.value).split(/\s+/).filter(Boolean);
    if (wanted.length) deepen();
    const chosen = bar.chosen();
    for (const item of items) {
      const { chapter, level, asks } = item.dataset;
      item.hidden = ![chapter, level, asks].every((value, number) =>
        ["all", value].includes(chosen[number]))
        || !wanted.every((word) => texts[item.id].includes(word));
    }
    for (const part of root.querySelectorAll("section"))
      part.hidden = !part.querySelector(".question:not([hidden])");
    const left = items.filter((item) => !item.hidden).length;
    bar.count.replaceChildren(...words(`${left} of ${items.length} questions`,
      `${left} / ${items.length} 题`));
  }

  const names = Object.entries(data.chapters)
    .map(([word, { title }]) => [word, title]);
  const bar = filters(names, show);
  root.querySelector(".bank").before(bar.form,
    keeper(store, items.map((item) => item.id)));
  for (const item of items)
    opening(item).addEventListener("toggle", () => fill(item));
  for (const link of document.querySelectorAll(".noted a")) noted(link);
  sealed(items, store);
  show();
  called((item) => {
    if (!item.hidden) return;
    bar.clear();
    show();
  });
}

function mount(root, data) {
  const store = progress(), load = loader(data);
  listed(root, data, load, store);
  owned(root);
  const place = document.querySelector(".mock-place");
  if (place) rehearsal(place, data, load, store);
}
