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

function select(options, chosen) {
  const field = make("select");
  for (const [value, ...texts] of options)
    field.append(make("option", { value }, texts.join(" ")));
  field.value = chosen;
  return field;
}

const anyOf = (options) => select([["all", "All", "全部"], ...options], "all");

function filters(chapters, changed) {
  const fields = [chapters, LEVELS, ASKS].map(anyOf);
  const [chapter, level, kind] = fields;
  const text = make("input", { type: "search", autocomplete: "off" });
  const count = make("output", { "aria-live": "polite" });
  const form = panel(languages(), labelled("Chapter", "章节", chapter),
    labelled("Level", "难度", level), labelled("Kind", "题型", kind),
    labelled("Search", "搜索", text), count);
  form.addEventListener("input", changed);
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
      const notes = item.querySelector("details.notes");
      if (!notes) return;
      notes.hidden = false;
      notes.open = true;
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
  showSeals(items, store);
  show();
  followAddress((item) => {
    if (!item.hidden) return;
    bar.clear();
    show();
  });
}

// The mock interview of the page: what is chosen, and what is asked.

const number = (value, min, max) => make("input",
  { type: "number", value, min, max, step: 1, required: "" });

function topics(chapters) {
  const field = make("fieldset", { class: "topics" }, make("legend", {},
    ...words("Topics (none means all)", "主题（不选即全部）")));
  for (const [word, { title }] of Object.entries(chapters))
    field.append(
      ticked(make("input", { type: "checkbox", value: word }), title));
  return { field, chosen: () =>
    [...field.querySelectorAll(":checked")].map((box) => box.value) };
}

// A seed that can be told to somebody.
const anySeed = () => Math.floor(10000 * Math.random());

function tooShort(shortest) {
  return shortest === Infinity
    ? ["No question fits.", "没有符合条件的题目。"]
    : [`The shortest question here takes ${shortest} minutes.`,
      `这里最短的题需要 ${shortest} 分钟。`];
}

function rehearsal(place, data, load, store) {
  const level = select(LEVELS, "senior");
  const minutes = number(30, 1, 240), seed = number(anySeed(), 0, 4294967295);
  const chapters = topics(data.chapters), status = live("verdict");
  const form = panel(languages(), labelled("Up to", "最高难度", level),
    labelled("Minutes", "分钟", minutes), labelled("Seed", "种子", seed),
    chapters.field,
    make("button", { type: "submit" }, ...words("Begin", "开始")));

  const linked = {
    chapter: (word) => make("a", { href: data.chapters[word].page },
      data.chapters[word].title),
    section(word, text) {
      const { id } = data.facts.find((each) =>
        each.chapter === word && each.section === text);
      return make("a", { href: companionBank[word][id].link }, text);
    },
    question: (id, prompt) => make("a", { href: `#${id}` }, ...prompt),
  };

  function again() {
    seed.value = anySeed();
    place.replaceChildren(form, status);
    status.replaceChildren();
    level.focus();
  }

  async function run({ minutes, seed }, facts, kept) {
    try {
      await Promise.all(facts.map(({ chapter }) => load(chapter)));
    } catch {
      const [first] = Object.values(data.chapters);
      return status.replaceChildren(missing(first.page));
    }
    interview(place, { minutes, seed, facts, store, linked,
      card: ({ id, chapter }) => built(id, companionBank[chapter][id]),
      key: ({ id, chapter }) => companionBank[chapter][id].key,
      link: ({ id, chapter }) => companionBank[chapter][id].link,
    }, again, { kept, keep: keeping() });
  }

  function begin() {
    const wanted = { level: level.value, chapters: chapters.chosen(),
      minutes: minutes.valueAsNumber, seed: seed.valueAsNumber };
    const fits = eligible(data.facts, wanted).map((each) => each.minutes);
    const shortest = Math.min(...fits);
    if (!(wanted.minutes >= shortest))
      return status.replaceChildren(line("bad", ...tooShort(shortest)));
    return run(wanted, pick(data.facts, wanted));
  }

  form.addEventListener("submit", begin);
  const kept = waiting(data.facts);
  const goOn = () => run(kept, kept.asked.map((id) =>
    data.facts.find((each) => each.id === id)), kept);
  place.replaceChildren(kept ? offer(kept, goOn, again) : form, status);
  keepKeys(place);
}

// A second card of a question in the list: it has the same parts, and no seal.
function built(id, { html }) {
  const item = document.getElementById(id).cloneNode(true);
  item.hidden = false;
  item.querySelector(".seal").remove();
  item.querySelector(".work").innerHTML = html;
  return item;
}

function mount(root, data) {
  const store = progress(), load = loader(data);
  listed(root, data, load, store);
  keepKeys(root);
  const place = document.querySelector(".mock-place");
  if (place) rehearsal(place, data, load, store);
}
