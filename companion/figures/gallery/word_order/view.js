// Words are moved by mouse, finger, buttons or arrow keys. What the sentence
// becomes is computed from the order in which they stand.

function compute(words, { tokens, vectors }) {
  const rows = words.map((word) => vectors[word]);
  const concat = rows.flat(), start = Object.values(vectors).flat();
  return { words,
    bag: tokens.map((token) => words.filter((word) => word === token).length),
    // The vectors are in tenths: whole numbers, whose sum knows no order.
    mean: rows[0].map((_, k) =>
      rows.reduce((sum, row) => sum + row[k], 0) / rows.length / 10),
    concat: concat.map((tenths) => tenths / 10),
    start: start.map((tenths) => tenths / 10),
    changed: concat.map((tenths, i) => tenths !== start[i]) };
}

function rest({ mean, changed }) {
  return `: the counts and the mean, (${mean.map((number) => fixed(number, 1))
    .join(", ")}), are as at the start; ${changed.filter(Boolean).length} of `
    + `${changed.length} numbers of the concatenation changed.`;
}

const place = (item) => [...item.parentElement.children].indexOf(item);
const between = (low, value, high) => Math.max(low, Math.min(value, high));

// The neighbours step aside: the word keeps the focus and the pointer.
function put(item, goal) {
  while (place(item) < goal) item.before(item.nextElementSibling);
  while (place(item) > goal) item.after(item.previousElementSibling);
}

// The tile follows the pointer; its word takes the place below the pointer.
function drag(item, tile, move) {
  let grip = 0;
  tile.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    tile.setPointerCapture(event.pointerId);
    grip = event.clientX - item.getBoundingClientRect().left;
  });
  tile.addEventListener("pointermove", ({ pointerId, clientX }) => {
    if (!tile.hasPointerCapture(pointerId)) return;
    const { left, width } = item.parentElement.getBoundingClientRect();
    const places = item.parentElement.children.length;
    move(item, Math.floor((clientX - left) / width * places));
    const x = between(left, clientX - grip, left + width - item.offsetWidth);
    tile.style.translate = `${x - item.getBoundingClientRect().left}px`;
  });
  tile.addEventListener("lostpointercapture", () => {
    tile.style.translate = "";
  });
}

const button = (press, ...content) => {
  const made = make("button", { type: "button", ...OWN_KEYS }, ...content);
  made.addEventListener("click", press);
  return made;
};

// A word becomes a button: a click picks it, the arrow keys move it.
function tileOf(item, pick, move) {
  const text = item.firstChild;
  const tile = button(() => pick(item), ...text.childNodes);
  tile.className = text.className;
  text.replaceWith(tile);
  tile.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: place(item) - 1, ArrowRight: place(item) + 1,
      Home: 0, End: Infinity }[event.key];
    if (to === undefined || event.altKey) return;
    event.preventDefault();
    move(item, to);
  });
  drag(item, tile, move);
}

function mount(root, data) {
  const row = root.querySelector(".words"), start = [...row.children];
  const names = Object.keys(data.vectors), last = start.length - 1;
  const parts = [...root.querySelectorAll(".long li")];
  const cells = (kind) => root.querySelectorAll(`.${kind} tbody td`);
  const bag = cells("bag"), mean = cells("mean");
  let picked = start[0];

  function draw() {
    const words = [...row.children].map((item) => names[start.indexOf(item)]);
    const shown = compute(words, data);
    shown.bag.forEach((count, i) => tint(bag[i], count, 1, 0));
    shown.mean.forEach((number, i) => tint(mean[i], number, 1, 1));
    parts.forEach((part, i) => {
      const [number, before] = part.children;
      tint(number, shown.concat[i], 1, 1);
      part.toggleAttribute("data-changed", shown.changed[i]);
      before.textContent = shown.changed[i]
        ? `≠ ${fixed(shown.start[i], 1)}` : "=";
    });
    root.querySelector(".says").replaceChildren(
      make("span", { lang: "zh" }, words.join(" ")), rest(shown));
    root.computed = shown;
  }

  function pick(item) {
    picked = item;
    start.forEach((one) =>
      one.firstChild.setAttribute("aria-pressed", one === item));
    name.textContent = names[start.indexOf(item)];
    left.setAttribute("aria-disabled", place(item) === 0);
    right.setAttribute("aria-disabled", place(item) === last);
  }

  function move(item, to) {
    const goal = between(0, to, last), moved = goal !== place(item);
    put(item, goal);
    pick(item);
    if (moved) draw();
  }

  const name = make("b", { lang: "zh" });
  const left = button(() => move(picked, place(picked) - 1), "← move left");
  const right = button(() => move(picked, place(picked) + 1), "move right →");
  const restore = button(() => {
    row.append(...start);
    pick(picked);
    draw();
  }, "Restore the order");
  start.forEach((item) => tileOf(item, pick, move));
  root.querySelector(".controls").append(
    make("span", {}, "Picked: ", name), left, right, restore);
  pick(picked);
  draw();
}
