// Python has drawn every tab of every draw; here one is shown, and a position
// in it looked at.

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1,
  Home: -Infinity, End: Infinity };
const into = (place, count) => Math.min(Math.max(place, 0), count - 1);

function tabList(home, panel, names, chosen) {
  const key = `companion-${Math.random().toString(36).slice(2)}`;
  const list = make("div", { role: "tablist", class: "tabs",
    "aria-label": "Objective" });
  const tabs = names.map((name, i) => {
    const tab = make("button", { type: "button", role: "tab",
      id: `${key}-${i}`, "aria-controls": key, ...OWN_KEYS }, name);
    tab.addEventListener("click", () => chosen(i));
    list.append(tab);
    return tab;
  });
  list.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    const next = into(tabs.indexOf(event.target) + move, tabs.length);
    chosen(next);
    tabs[next].focus();
  });
  panel.setAttribute("role", "tabpanel");
  panel.id = key;
  home.append(list);
  return (i) => {
    panel.setAttribute("aria-labelledby", tabs[i].id);
    tabs.forEach((tab, j) => {
      tab.setAttribute("aria-selected", i === j);
      tab.tabIndex = i === j ? 0 : -1;
    });
  };
}

function mount(root, { models, tabs }) {
  const controls = root.querySelector(".controls");
  const panel = root.querySelector(".panel");
  let model = 0, draw = 0, page, lanes;

  // The lane and the place of a card or of a row, or nothing.
  function find(target) {
    const card = target.closest(".tile"), row = target.closest("g");
    if (card) {
      const lane = lanes.findIndex((cards) => cards.includes(card));
      return [lane, lanes[lane].indexOf(card)];
    }
    if (!row) return null;
    const drawn = [...panel.querySelectorAll("svg")].indexOf(row.closest("svg"));
    return [page.grids[drawn].asks,
      [...row.parentNode.querySelectorAll("g")].indexOf(row)];
  }

  function look(at) {
    const [lane, place] = at;
    const sees = lanes.map((cards) => cards.map(() => false));
    for (const { asks, seen, rows } of page.grids)
      if (asks === lane) sees[seen] = [...rows[place]].map(Number).map(Boolean);
    lanes.forEach((cards, i) => cards.forEach((card, j) => {
      const here = i === lane && j === place;
      card.toggleAttribute("data-seen", sees[i][j]);
      card.toggleAttribute("data-chosen", here);
      card.setAttribute("aria-pressed", here);
      // One stop a lane: in the lane looked at, the card looked at.
      card.tabIndex = (i === lane ? here : j === 0) ? 0 : -1;
    }));
    panel.querySelectorAll("svg").forEach((svg, i) =>
      svg.querySelectorAll("g").forEach((row, j) => row.toggleAttribute(
        "data-chosen", page.grids[i].asks === lane && j === place)));
    panel.querySelector(".here").textContent = page.here[lane][place];
    root.computed = { model: models[model], draw, lane, place, sees,
      says: page.says, here: page.here[lane][place] };
    return lanes[lane][place];
  }

  function show(chosen, number) {
    model = chosen;
    const pages = tabs[model];
    draw = number;
    page = pages[draw % pages.length];
    panel.innerHTML = page.html;
    lanes = [...panel.querySelectorAll(".cards")].map((row, i) =>
      [...row.children].map((card, j) => {
        card.setAttribute("role", "button");
        card.setAttribute("aria-label", page.here[i][j]);
        for (const [name, value] of Object.entries(OWN_KEYS))
          card.setAttribute(name, value);
        return card;
      }));
    root.querySelector(".says").textContent = page.says;
    again.setAttribute("aria-disabled", pages.length < 2);
    count.textContent = pages.length < 2 ? "nothing to draw"
      : `${draw + 1} of ${pages.length}`;
    select(model);
    look(page.start);
  }

  // Not while the mouse rests: a page that scrolls would move the choice.
  panel.addEventListener("click", (event) => {
    const found = find(event.target);
    if (found) look(found).focus({ preventScroll: true });
  });
  panel.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move || !event.target.matches(".tile")) return;
    event.preventDefault();
    const [lane, place] = find(event.target);
    look([lane, into(place + move, lanes[lane].length)]).focus();
  });
  panel.addEventListener("focusin", (event) => {
    if (event.target.matches(".tile")) look(find(event.target));
  });

  controls.replaceChildren();
  const most = Math.max(...tabs.map((pages) => pages.length));
  const select = tabList(controls, panel, models, (i) => show(i, draw));
  const again = make("button", { type: "button" }, "Draw again");
  again.addEventListener("click", () => {
    if (again.getAttribute("aria-disabled") !== "true")
      show(model, (draw + 1) % most);
  });
  const count = make("output");
  controls.append(make("div", { class: "draws" }, again, count));
  root.querySelector(".others").remove();
  show(0, 0);
}
