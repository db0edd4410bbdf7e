// Python has built every mask; here the choices are read and the page is shown.

// Lengths are compared with; the other libraries' masks are values.
const compares = (seen) => seen === "<";

// What one library writes for key j of a mask with so many keys seen.
function write([seen, hidden], sees, j, length) {
  if (!compares(seen)) return sees ? seen : hidden;
  return length === null ? "–" : `${j} ${sees ? seen : hidden} ${length}`;
}

function word(token) {
  const chinese = /[\u4e00-\u9fff]/.test(token);
  return chinese ? make("span", { lang: "zh" }, token) : token;
}

// A table's head and first column; returns the cells of its rows.
function lay(table, { queries, keys }) {
  table.tHead.rows[0].replaceChildren(make("td"),
    ...keys.map((key) => make("th", { scope: "col" }, word(key))));
  table.tBodies[0].replaceChildren(...queries.map((query) => {
    const row = make("tr", {}, make("th", { scope: "row" }, word(query)),
      ...keys.map(() => make("td")));
    row.className = query === "<pad>" ? "idle" : "";
    return row;
  }));
  return [...table.tBodies[0].rows].map((row) => [...row.cells].slice(1));
}

const SIGNS = { "!": ["leak", `leak`], "?": ["missing", `missing`] };

function drawMask(table, page, convention) {
  lay(table, page).forEach((cells, i) => cells.forEach((cell, j) => {
    const sees = page.mask[i][j] === "1", sign = page.marks[i][j];
    cell.className = sees ? "seen" : "masked";
    cell.textContent = write(convention, sees, j, page.length);
    if (!SIGNS[sign]) return;
    const [kind, name] = SIGNS[sign];
    cell.classList.add(kind);
    cell.append(make("b", {}, sign, make("span", { class: "unseen" }, name)));
  }));
}

function drawShares(table, page) {
  const shares = page.mask.map((row) => {
    const count = row.split("1").length - 1;
    return [...row].map((sees) => sees === "1" ? 1 / count : 0);
  });
  lay(table, page).forEach((cells, i) =>
    cells.forEach((cell, j) => {
      tint(cell, shares[i][j]);
      cell.toggleAttribute("data-leak", page.marks[i][j] === "!");
    }));
  return shares;
}

function mount(root, data) {
  const controls = root.querySelector(".controls");
  const places = Object.keys(data.places);
  const sentences = Object.keys(data.sentences);
  const libraries = Object.keys(data.conventions);
  const [place, sentence, ...on] = data.start;

  function draw() {
    const key = `${places[chosenPlace()]} ${sentences[chosenSentence()]} `
      + on_().map(Number).join("");
    const page = data.pages[key], name = libraries[chosenConvention()];
    const convention = data.conventions[name];
    drawMask(root.querySelector("table.mask"), page, convention);
    const shares = drawShares(root.querySelector("table.weights"), page);
    root.querySelector(".says").textContent = page.says;
    root.querySelector("pre").textContent = page.code;
    note.textContent = !compares(convention[0]) ? convention[2]
      : page.length === null
        ? "No lengths can say this mask: its rows differ."
        : `lengths = [${page.length}]. ${convention[2]}`;
    root.computed = { key, convention: name, shares };
  }

  const chosenPlace = choices(controls, "Place", Object.values(data.places),
    places.indexOf(place), draw);
  const chosenSentence = choices(controls, "Sentence",
    Object.values(data.sentences).map(word), sentences.indexOf(sentence), draw);
  const on_ = switches(controls, "Masks that are on",
    [`causal`, `padding`], on, draw);
  const chosenConvention = choices(controls, "Written as", data.names, 0, draw);
  const note = make("p", { class: "aside" });
  root.querySelector("pre").after(note);
  draw();
}
