// A number of heads is picked, and a cell is pointed at; the maps are given.

function towards(back) {
  return back === 0 ? "itself"
    : `${Math.abs(back)} ${back > 0 ? "back" : "ahead"}`;
}

// How far back a head looks most, and its mean weight there.
function distance(rows) {
  const n = rows.length, half = Math.floor(n / 2);
  let best = null;
  for (let back = -half; back <= half; back += 1) {
    const there = rows.map((row, i) => row[i - back])
      .filter((weight) => weight !== undefined);
    const mean = there.reduce((a, b) => a + b, 0) / there.length;
    const more = best === null ? 1 : mean - best.mean;
    if (more > 1e-9 || (more > -1e-9 && Math.abs(back) < Math.abs(best.back)))
      best = { back, mean };
  }
  return best;
}

// `names` are the headings of the columns, as Python wrote them.
function square(names, rows, head) {
  const name = (i, scope) => {
    const heading = names[i].cloneNode(true);
    heading.setAttribute("scope", scope);
    return heading;
  };
  const { back, mean } = distance(rows);
  const table = make("table", { class: "cells map", role: "grid",
    "aria-label": `Head ${head + 1}`, ...OWN_KEYS },
    make("caption", {}, make("b", {}, `Head ${head + 1}`),
      ` ${towards(back)} ${fixed(mean)}`),
    make("thead", {}, make("tr", {}, make("td"),
      ...names.map((_, i) => name(i, "col")))));
  table.append(make("tbody", {}, ...rows.map((row, i) => make("tr", {},
    name(i, "row"), ...row.map((weight) => {
      const cell = make("td", { role: "gridcell", tabindex: -1 });
      tint(cell, weight);
      return cell;
    })))));
  return make("div", {}, table);
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1],
  ArrowRight: [0, 1], Home: [0, -Infinity], End: [0, Infinity] };

function mount(root, { tokens, widths, start, maps, notes }) {
  const last = tokens.length - 1;
  const inside = (place) => Math.min(Math.max(place, 0), last);
  const squares = root.querySelector(".squares");
  const heads = [...root.querySelectorAll(".chooser thead th")].slice(1);
  const counts = heads.map((head) => Number(head.textContent));
  const names = [...squares.querySelector("thead tr").cells].slice(1);
  let shown = start, place = [0, last, 0];

  const cell = ([head, i, j]) =>
    squares.children[head].firstChild.tBodies[0].rows[i].cells[j + 1];

  function sentence([head, i, j]) {
    return `${shown} ${shown === 1 ? "head" : "heads"} of width `
      + `${widths[shown]}. Head ${head + 1}: “${tokens[i]}” at place ${i + 1} `
      + `gives ${fixed(maps[shown][head][i][j])} of its weight to `
      + `“${tokens[j]}” at place ${j + 1}: ${towards(i - j)}.`;
  }

  function look(to) {
    for (const old of squares.querySelectorAll("[data-chosen]"))
      old.removeAttribute("data-chosen");
    place = to;
    const [head, row, column] = place;
    // One tab stop a map: the cell in the same place as the one looked at.
    for (const stop of squares.querySelectorAll("td[tabindex='0']"))
      stop.tabIndex = -1;
    maps[shown].forEach((_, other) => { cell([other, row, column]).tabIndex = 0; });
    cell(place).setAttribute("data-chosen", "");
    root.querySelector(".says").textContent = sentence(place);
    cell(place).setAttribute("aria-label", sentence(place));
    root.computed = { heads: shown, head, row, column,
      weight: maps[shown][head][row][column],
      distances: maps[shown].map(distance) };
    return cell(place);
  }

  function pick(count) {
    shown = count;
    squares.replaceChildren(...maps[count].map((rows, head) =>
      square(names, rows, head)));
    root.querySelector(".aside").textContent = notes[count];
    heads.forEach((head, i) => {
      head.toggleAttribute("data-chosen", counts[i] === count);
      buttons[i].setAttribute("aria-pressed", counts[i] === count);
      buttons[i].tabIndex = counts[i] === count ? 0 : -1;
    });
    const row = maps[count][0][place[1]];
    look([0, place[1], row.indexOf(Math.max(...row))]);
  }

  // Where a cell is, or nothing where there is no cell.
  function find(target) {
    const found = target.closest("tbody td");
    if (!found) return null;
    return [[...squares.children].indexOf(found.closest("div")),
      found.parentElement.rowIndex - 1, found.cellIndex - 1];
  }

  const buttons = heads.map((head, i) => {
    const button = make("button", { type: "button", ...OWN_KEYS,
      "aria-label": counts[i] === 1 ? "1 head" : `${counts[i]} heads` },
      head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => pick(counts[i]));
    button.addEventListener("keydown", (event) => {
      const end = heads.length - 1;
      const to = { ArrowRight: Math.min(i + 1, end), Home: 0, End: end,
        ArrowLeft: Math.max(i - 1, 0) }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      pick(counts[to]);
      buttons[to].focus();
    });
    return button;
  });

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
  pick(start);
}
