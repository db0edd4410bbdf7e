// As companion.positions.rotate turns, and as rotary_drawing.py draws.

const pairs = (vector) => vector.flatMap((x, i) =>
  i % 2 ? [] : [[x, vector[i + 1]]]);
const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);

const rotate = (vector, rates, position) => pairs(vector).map(([x, y], i) => {
  const angle = position * rates[i];
  const cos = Math.cos(angle), sin = Math.sin(angle);
  return [x * cos - y * sin, x * sin + y * cos];
});

// What is added in place of a turn: the sinusoidal code.
const encoded = (vector, rates, position) => rates.flatMap((rate, i) => [
  vector[2 * i] + Math.sin(position * rate),
  vector[2 * i + 1] + Math.cos(position * rate)]);

const between = (q, k) => Math.atan2(q[0] * k[1] - q[1] * k[0], dot(q, k));
const degrees = (angle) => angle * 180 / Math.PI;
const point = ([x, y]) => `(${fixed(x)}, ${fixed(y)})`;

function score({ query, key, rates }, p, j) {
  const q = rotate(query, rates, p), k = rotate(key, rates, j);
  const products = q.map((pair, i) => dot(pair, k[i]));
  return { p, j, q, k, products, angles: q.map((pair, i) => between(pair, k[i])),
    score: products.reduce((a, b) => a + b),
    added: dot(encoded(query, rates, p), encoded(key, rates, j)) };
}

function sentence(here, there) {
  const [one, two] = here.products.map((product) => fixed(product));
  return `Query at ${here.p}, key at ${here.j}, offset `
    + `${fixed(here.j - here.p, 0)}: the pairs give ${one} and ${two}, so the `
    + `score is ${fixed(here.score)}. One step on, at ${there.p} and `
    + `${there.j}, it is ${fixed(there.score)}. With the sinusoidal code added `
    + `instead it is ${fixed(here.added)} here and ${fixed(there.added)} there.`;
}

function turn(hand, [x, y], unit) {
  const [line, tip] = hand.children;
  const [across, up] = [(unit * x).toFixed(2), (-unit * y).toFixed(2)];
  line.setAttribute("x2", across);
  line.setAttribute("y2", up);
  tip.setAttribute("cx", across);
  tip.setAttribute("cy", up);
}

function wedge(q, k, angle, radius) {
  const [start, end] = [q, k].map(([x, y]) => {
    const size = (x * x + y * y) ** 0.5;
    return `${(radius * x / size).toFixed(2)} ${(-radius * y / size).toFixed(2)}`;
  });
  return `M0 0L${start}A${radius} ${radius} 0 0 ${Number(angle < 0)} ${end}Z`;
}

function mount(root, data) {
  const { span, box, rates } = data;
  const controls = root.querySelector(".controls");
  const dials = [...root.querySelectorAll(".dial")];
  const rows = (kind) => [...root.querySelector(`table.${kind}`).tBodies[0].rows];

  function drawDial(dial, q, k, angle) {
    for (const [name, pair] of [["q", q], ["k", k]]) {
      turn(dial.querySelector(`svg > .hand.${name}`), pair, box.unit);
      dial.querySelector(`.to.${name}`).textContent = point(pair);
    }
    dial.querySelector(".wedge").setAttribute("d",
      wedge(q, k, angle, box.wedge));
  }

  function drawTables({ p, j, angles, products, score }, places) {
    const [total, ...parts] = rows("products").reverse();
    parts.reverse().forEach(({ cells }, i) => {
      [p * rates[i], j * rates[i], angles[i]].forEach((angle, column) => {
        cells[column + 1].textContent = `${fixed(degrees(angle), 1)}°`;
      });
      tint(cells[4], products[i], box.largest);
    });
    tint(total.cells[2], score, box.largest);
    rows("places").forEach(({ cells }, i) => {
      cells[0].textContent = `${places[i].p} and ${places[i].j}`;
      tint(cells[1], places[i].score, box.largest, 3);
      tint(cells[2], places[i].added, box.largest, 3);
    });
  }

  function drawPlot({ p, j, score }) {
    const { left, right, top, bottom, low, high } = box;
    const x = fixed(left + (right - left) * (j - p + span) / (2 * span), 1);
    const y = fixed(bottom - (score - low) / (high - low) * (bottom - top), 1);
    root.querySelector(".drop").setAttribute("d", `M${x} ${top}V${bottom}`);
    root.querySelector(".mark").setAttribute("transform",
      `translate(${x},${y})`);
  }

  function draw() {
    const p = Number(query.value), j = Number(key.value);
    const places = data.steps.map((step) => score(data, p + step, j + step));
    const [here, there] = places;
    dials.forEach((dial, i) =>
      drawDial(dial, here.q[i], here.k[i], here.angles[i]));
    drawTables(here, places);
    drawPlot(here);
    root.querySelector(".says").textContent = sentence(here, there);
    root.computed = { ...here, places };
  }

  const lower = () => Math.min(query.value, key.value);

  // Both go as far as the upper one has room, so that the offset stays.
  function settle() {
    both.max = span - Math.abs(key.value - query.value);
    both.disabled = both.max === "0";
    both.value = lower();
    both.dispatchEvent(new Event("input"));
    draw();
  }

  function carry() {
    const step = both.value - lower();
    if (!step) return;
    for (const input of [query, key])
      input.value = Number(input.value) + step;
    for (const input of [query, key]) input.dispatchEvent(new Event("input"));
  }

  const place = (name, value) => slider(controls, name,
    { min: 0, max: span, value, show: String }, settle);
  const query = place("Query at p", data.start[0]);
  const key = place("Key at j", data.start[1]);
  const both = slider(controls, "Both, the offset kept", { min: 0, max: span,
    value: lower(), show: () => `${query.value} and ${key.value}` }, carry);
  settle();
}
