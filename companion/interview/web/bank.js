// The bank page: filters, cards that answer once they are opened, and the mock
// interview.

// An option has no markup that could hide one language. A Chinese page has one.
const inChinese = document.documentElement.lang.startsWith("zh");

function select(options, chosen) {
  const field = make("select");
  for (const [value, ...texts] of options)
    field.append(make("option", { value },
      inChinese ? texts.at(-1) : texts.join(" ")));
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

// What a card holds as it came. Once it can be answered, it holds more.
function insides() {
  const kept = {};
  return (item) =>
    kept[item.id] ??= item.querySelector(".work").innerHTML;
}

const taughtAt = (item) =>
  item.querySelector(".end .section a").getAttribute("href");

// What was answered under the id of a question that is gone counts for the one
// that asks the same now.
function carryOver(store, retired) {
  const known = store.all(), carried = {};
  for (const [old, now] of Object.entries(retired))
    if (old in known
      && !(Date.parse(carried[now]?.when) > Date.parse(known[old].when)))
      carried[now] = known[old];
  const younger = Object.entries(carried).filter(([name, { when }]) =>
    !(Date.parse(known[name]?.when) >= Date.parse(when)));
  if (younger.length) store.merge(written(Object.fromEntries(younger)));
}

function listed(root, data, inside, store) {
  const items = [...root.querySelectorAll(".question")];
  const texts = {}, filled = new Set();

  const fill = (item) => {
    if (filled.has(item.id)) return;
    filled.add(item.id);
    inside(item);
    ready(item, data.keys[item.id], store, { link: taughtAt(item) });
  };

  // Who comes from the table wants to see at once what the notes answered.
  function noted(link) {
    const item = document.getElementById(link.hash.slice(1));
    if (!item) return;
    link.addEventListener("click", () => {
      fill(item);
      const notes = item.querySelector("details.notes");
      if (!notes) return;
      notes.hidden = false;
      notes.open = true;
    });
  }

  // Answers are searched too; their text is gathered when it is first wanted.
  function gather() {
    data.facts.forEach(({ id, topics }, number) => {
      const summary = items[number].querySelector("summary").textContent;
      texts[id] ??= plain([id, ...topics, summary,
        unmarked(inside(items[number]))].join(" "));
    });
  }

  function show() {
    const wanted = plain(bar.text.value).split(/\s+/).filter(Boolean);
    if (wanted.length) gather();
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
    item.querySelector("details").addEventListener("toggle", () => fill(item));
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

function rehearsal(place, data, inside, store) {
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
      return make("a", { href: taughtAt(listedAs(id)) }, text);
    },
    question: (id, prompt) => make("a", { href: `#${id}` }, ...prompt),
  };

  function again() {
    seed.value = anySeed();
    place.replaceChildren(form, status);
    status.replaceChildren();
    level.focus();
  }

  function run({ minutes, seed }, facts, kept) {
    interview(place, { minutes, seed, facts, store, linked,
      card: ({ id }) => built(listedAs(id), inside),
      key: ({ id }) => data.keys[id],
      link: ({ id }) => taughtAt(listedAs(id)),
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
function built(listed, inside) {
  const item = listed.cloneNode(true);
  item.hidden = false;
  item.querySelector(".seal").remove();
  item.querySelector(".work").innerHTML = inside(listed);
  return item;
}

const listedAs = (id) => document.getElementById(id);

// An address with an id that is gone leads to the question that asks the same.
function leadOn(retired) {
  const go = () => {
    const now = retired[location.hash.slice(1)];
    if (now) location.replace(`#${now}`);
  };
  addEventListener("hashchange", go);
  go();
}

function mount(root, data) {
  const store = progress(), inside = insides();
  leadOn(data.retired);
  carryOver(store, data.retired);
  listed(root, data, inside, store);
  keepKeys(root);
  const place = document.querySelector(".mock-place");
  if (place) rehearsal(place, data, inside, store);
}
