// A chapter's questions in its page.

function mount(root, data) {
  const list = root.querySelector(".questions");
  const items = [...list.children];
  const store = progress();
  showSeals(items, store);
  items.forEach((item, number) => ready(item, data[number], store));
  list.before(panel(languages(), chooser(words("Level", "难度"),
    [["all", "All", "全部"], ...LEVELS], "all",
    (level) => { root.dataset.only = level; })));
  list.after(keeper(store, items.map((item) => item.id)));
  keepKeys(root);
  followAddress();
}
