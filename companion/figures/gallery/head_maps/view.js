// A number of heads is picked, and a cell is pointed at; the maps are given.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1],
  ArrowRight: [0, 1], Home: [0, -Infinity], End: [0, Infinity] };

function mount(root, { start, heads, maps, captions, notes, words }) {
  const squares = root.querySelector(".squares");
  const empty = squares.firstChild.cloneNode(true);
  const last = words.tokens.length - 1;
  const inside = (place) => Math.min(Math.max(place, 0), last);
  let place = [0, last, 0];

  const cell = ([head, i, j]) =>
    squares.children[head].firstChild.tBodies[0].rows[i].cells[j + 1];

  function square(rows, head) {
    const home = empty.cloneNode(true), table = home.firstChild;
    const attributes = { role: "grid", "aria-label": `Head ${head + 1}`,
      ...OWN_KEYS };
    for (const [name, value] of Object.entries(attributes))
      table.setAttribute(name, value);
    table.caption.innerHTML = captions[model()][head];
    rows.forEach((row, i) => row.forEach((weight, j) => {
      const one = table.tBodies[0].rows[i].cells[j + 1];
      one.setAttribute("role", "gridcell");
      one.tabIndex = -1;
      tint(one, weight);
    }));
    return home;
  }

  function look(to) {
    for (const old of squares.querySelectorAll("[data-chosen]"))
      old.removeAttribute("data-chosen");
    place = to;
    const [head, row, column] = place, weight = cell(place).textContent;
    // One tab stop a map: the cell in the same place as the one looked at.
    for (const stop of squares.querySelectorAll("td[tabindex='0']"))
      stop.tabIndex = -1;
    maps[model()].forEach((_, other) => {
      cell([other, row, column]).tabIndex = 0;
    });
    const [name, width] = words.models[model()];
    const [asks, seen] = [row, column].map((at) => words.tokens[at]);
    const says = `${name} of width ${width}. Head ${head + 1}: “${asks}” at `
      + `place ${row + 1} gives ${weight} of its weight to “${seen}” at place `
      + `${column + 1}: ${words.texts[row - column + last]}.`;
    cell(place).setAttribute("data-chosen", "");
    cell(place).setAttribute("aria-label", says);
    root.querySelector(".says").textContent = says;
    root.computed = { heads: heads[model()], head, row, column, says };
    return cell(place);
  }

  function pick() {
    squares.replaceChildren(...maps[model()].map(square));
    root.querySelector(".aside").textContent = notes[model()];
    const row = maps[model()][0][place[1]];
    look([0, place[1], row.indexOf(Math.max(...row))]);
  }

  // Where a cell is, or nothing where there is no cell.
  function find(target) {
    const found = target.closest("tbody td");
    if (!found) return null;
    return [[...squares.children].indexOf(found.closest("div")),
      found.parentElement.rowIndex - 1, found.cellIndex - 1];
  }

  const model = names([...root.querySelectorAll(".chooser thead th")].slice(1),
    start, () => pick(), ["ArrowLeft", "ArrowRight"]);
  root.querySelectorAll(".chooser button").forEach((button, i) =>
    button.setAttribute("aria-label", words.models[i][0]));

  // A mouse that rests is said to be over a cell again after a tap, and when
  // the page scrolls; only one that moves says what its reader looks at.
  for (const way of ["click", "mousemove", "focusin"])
    squares.addEventListener(way, (event) => {
      const found = find(event.target);
      if (found && String(found) !== String(place)) look(found);
    });
  squares.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const [head, i, j] = find(event.target);
    look([head, inside(i + step[0]), inside(j + step[1])]).focus();
  });
  pick();
}
