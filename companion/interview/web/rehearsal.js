// The mock interview of the bank page: what is chosen, and what is asked.

const number = (legend, value, min, max) => {
  const field = make("input",
    { type: "number", value, min, max, step: 1, required: "" });
  return { field, label: make("label", {},
    make("span", {}, ...words(...legend)), field) };
};

function topics(chapters) {
  const field = make("fieldset", { class: "topics" }, make("legend", {},
    ...words("Topics (none means all)", "主题（不选即全部）")));
  for (const [word, { title }] of Object.entries(chapters))
    field.append(make("label", { class: "chip" },
      make("input", { type: "checkbox", value: word }),
      make("span", {}, title)));
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
  const level = select(["Up to", "最高难度"], levels, "senior");
  const minutes = number(["Minutes", "分钟"], 30, 1, 240);
  const seed = number(["Seed", "种子"], anySeed(), 0, 4294967295);
  const chapters = topics(data.chapters), said = live("verdict");
  const form = panel(languages(), level.label, minutes.label, seed.label,
    chapters.field,
    make("button", { type: "submit" }, ...words("Begin", "开始")), said);

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
    seed.field.value = anySeed();
    place.replaceChildren(form);
    said.replaceChildren();
    level.field.focus();
  }

  async function begin() {
    const wanted = { level: level.field.value, chapters: chapters.chosen(),
      minutes: minutes.field.valueAsNumber, seed: seed.field.valueAsNumber };
    const fits = eligible(data.facts, wanted).map((each) => each.minutes);
    const shortest = Math.min(...fits);
    if (!(wanted.minutes >= shortest))
      return said.replaceChildren(line("bad", ...tooShort(shortest)));
    const facts = pick(data.facts, wanted);
    try {
      await Promise.all(facts.map(({ chapter }) => load(chapter)));
    } catch {
      const [first] = Object.values(data.chapters);
      return said.replaceChildren(missing(first.page));
    }
    interview(place, { ...wanted, facts, store, linked,
      card: ({ id, chapter }) => built(id, companionBank[chapter][id]),
      key: ({ id, chapter }) => companionBank[chapter][id].key,
      link: ({ id, chapter }) => companionBank[chapter][id].link,
    }, again);
  }

  form.addEventListener("submit", begin);
  place.replaceChildren(form);
  owned(place);
}

// A second card of a question in the list: it has the same parts, and no seal.
function built(id, { html }) {
  const item = document.getElementById(id).cloneNode(true);
  item.hidden = false;
  item.querySelector(".seal").remove();
  item.querySelector(".work").innerHTML = html;
  return item;
}
