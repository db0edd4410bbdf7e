// Two positions are picked; their encodings are computed as the page's own.

const encode = (rates, position) => rates.flatMap((rate) =>
  [Math.sin(position * rate), Math.cos(position * rate)]);

const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);

// Two other positions with the product a·b, and so at another distance.
function twin(a, b, length) {
  const small = Math.min(a, b), order = [];
  for (let p = small - 1; p > 0; p -= 1) order.push(p);
  for (let p = small + 1; p < length; p += 1) order.push(p);
  for (const p of order) {
    const q = a * b / p;
    if (Number.isInteger(q) && p < q && q < length) return [p, q];
  }
  return null;
}

function compute(rates, length, a, b) {
  const first = encode(rates, a), second = encode(rates, b);
  let step = Math.max(a, b) + 1 < length ? 1 : -1;
  if (Math.min(a, b) + step < 0) step = 0;
  return { a, b, first, second, step, dot: dot(first, second),
    parts: rates.map((_, i) => dot(first.slice(2 * i, 2 * i + 2),
      second.slice(2 * i, 2 * i + 2))),
    moved: dot(encode(rates, a + step), encode(rates, b + step)),
    twin: twin(a, b, length) };
}

// A product that no line break cuts.
const times = (p, q) => `${p}\u00a0×\u00a0${q}\u00a0=\u00a0${p * q}`;

function sentence({ a, b, step, dot, parts, moved, twin }) {
  const way = step > 0 ? "One step on" : step < 0 ? "One step back"
    : "Where they are";
  const p = a + step, q = b + step;
  const same = twin ? ` But ${times(...twin)} too, at offset `
    + `${twin[1] - twin[0]}.` : "";
  return `Positions ${a} and ${b}, offset ${fixed(b - a, 0)}: the dot product `
    + `of their encodings is ${fixed(dot)}, the sum of the ${parts.length} `
    + `cosines. ${way}, at ${p} and ${q}, it is ${fixed(moved)}. The bare `
    + `index has ${times(a, b)} here and ${times(p, q)} there.${same}`;
}

function turn(hand, sine, cosine) {
  const x = (28 * sine).toFixed(2), y = (-28 * cosine).toFixed(2);
  const [line, tip] = hand.children;
  line.setAttribute("x2", x);
  line.setAttribute("y2", y);
  tip.setAttribute("cx", x);
  tip.setAttribute("cy", y);
}

function mount(root, { rates, length, start, drawing }) {
  const controls = root.querySelector(".controls");
  const clocks = [...root.querySelectorAll(".clock")];
  const rows = root.querySelectorAll(".pair tbody tr");
  const here = root.querySelector(".here");
  const { left, right, top, slope } = drawing;
  const across = (position, count) =>
    `${(left + (right - left) * (position + 0.5) / count).toFixed(2)}%`;

  function draw() {
    const shown = compute(rates, length, Number(a.value), Number(b.value));
    const { first, second, parts } = shown, offset = shown.b - shown.a;
    root.querySelector(".spot.a").setAttribute("x", across(shown.a, length));
    root.querySelector(".spot.b").setAttribute("x", across(shown.b, length));
    clocks.forEach((clock, i) => {
      const [x, y] = [2 * i, 2 * i + 1];
      turn(clock.querySelector(".hand.a"), first[x], first[y]);
      turn(clock.querySelector(".hand.b"), second[x], second[y]);
      clock.querySelector(".part").textContent = fixed(parts[i]);
    });
    here.setAttribute("x", across(offset + length - 1, 2 * length - 1));
    here.querySelector("circle").setAttribute("cy",
      (top + slope * (rates.length - shown.dot)).toFixed(1));
    const at = here.querySelector(".at");
    at.textContent = `offset ${fixed(offset, 0)}`;
    at.style.textAnchor = 2 * Math.abs(offset) < length ? "middle"
      : offset > 0 ? "end" : "start";
    first.forEach((value, i) => [value, second[i], value * second[i]]
      .forEach((number, j) => {
        rows[i].cells[j + 1].textContent = fixed(number, 3);
      }));
    root.querySelector(".says").textContent = sentence(shown);
    back.disabled = Math.min(shown.a, shown.b) === 0;
    on.disabled = Math.max(shown.a, shown.b) === length - 1;
    root.computed = shown;
  }

  const place = (name, value) => slider(controls, name,
    { min: 0, max: length - 1, value, show: String }, draw);
  const a = place("Position a", start[0]), b = place("Position b", start[1]);

  // Both positions, one step on: the offset stays.
  function mover(text, name, step) {
    const button = make("button", { type: "button", "aria-label": name,
      ...OWN_KEYS }, text);
    button.addEventListener("click", () => {
      for (const input of [a, b]) {
        input.value = Number(input.value) + step;
        input.dispatchEvent(new Event("input"));
      }
    });
    return button;
  }
  const back = mover("← both", "Both positions one step back", -1);
  const on = mover("both →", "Both positions one step on", 1);
  controls.append(make("div", { class: "both" }, back, on));
  draw();
}
