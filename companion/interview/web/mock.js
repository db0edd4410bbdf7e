// A mock interview in a notebook, whose questions Python has picked.

function mount(root, { keys, facts, minutes, seed, language }) {
  const list = root.querySelector(".questions");
  const fresh = Object.fromEntries(
    [...list.children].map((item) => [item.id, item]));
  const plain = (text) => make("span", {}, text);
  const place = make("div"), begin = () => interview(place, {
    facts, minutes, seed, store: progress(),
    card: ({ id }) => fresh[id].cloneNode(true),
    key: ({ id }) => keys[id], link: () => undefined,
    linked: { chapter: plain, section: (chapter, text) => plain(text),
      question: (id, prompt) => make("span", {}, ...prompt) },
  }, begin);
  place.append(make("p", {}, ...words(
    `${facts.length} questions, ${minutes} minutes, seed ${seed}.`,
    `共 ${facts.length} 题，${minutes} 分钟，种子 ${seed}。`)),
  button("Begin", "开始", begin));
  list.before(panel(languages(language)));
  list.replaceWith(place);
  keepKeys(root);
}
