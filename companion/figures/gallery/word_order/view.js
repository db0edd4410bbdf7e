// Words are moved by mouse, finger, buttons or arrow keys; Python has written
// what each of their orders becomes.

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
  const names = data.words, last = start.length - 1;
  const show = player(root, data.parts);
  let picked = start[0];

  const draw = () => show(data.orders.indexOf(
    [...row.children].map((item) => names[start.indexOf(item)]).join("")));

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
