// As saturation_drawing.py draws it, for every width, number of keys and scale.

const named = (letter, i) =>
  letter + [...String(i + 1)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function compute({ widths, few, spreads, counts }, i, n, choice) {
  const d_k = widths[i], { name: scale, of } = SCALES[choice];
  const scores = few[i].slice(0, n).map((score) => score * of(d_k));
  const weights = softmax(scores);
  return { d_k, scale, scores, weights, counts: counts[i][choice],
    jacobian: weights.map((p, row) =>
      weights.map((q, column) => (row === column ? p : 0) - p * q)),
    moves: movement(weights), spread: spreads[i] * of(d_k) };
}

function sentence({ d_k, scale, spread, counts, weights, moves }, { limit }) {
  const beyond = (counts[0] + counts.at(-1)) / sum(counts);
  return `dₖ = ${d_k}, scale ${scale}: random scores have a standard deviation `
    + `of ${short(spread)}, and ${fixed(100 * beyond, 1)}\u00a0% of them lie `
    + `beyond ±${limit}. The best of ${weights.length} keys gets `
    + `${fixed(Math.max(...weights))} of the weight, and the weights follow `
    + `their scores at a rate of at most ‖J‖₂\u00a0=\u00a0${short(moves)}.`;
}

function histogram({ box: [left, right, top, bottom], limit, bins, side, gap }) {
  const bin = (right - left) / (bins + 2 * (side + gap));
  const bar = (at, width, share) => share ? `M${fixed(left + bin * at, 1)} `
    + `${bottom}V${fixed(bottom - (bottom - top) * share, 1)}`
    + `h${fixed(bin * width - 0.8, 1)}V${bottom}z` : "";
  const place = (score) => left + bin * (side + gap
    + (score > limit ? bins + gap + side / 2
      : score < -limit ? -gap - side / 2 : (score / limit + 1) * bins / 2));
  return {
    bars(counts, high) {
      const last = counts.length - 1;
      return [counts.slice(1, last).map((n, i) =>
        bar(i + side + gap, 1, n / high)).join(""),
      bar(0, side, counts[0] / high)
        + bar(bins + side + 2 * gap, side, counts[last] / high)];
    },
    strokes: (scores) => scores.map((score) =>
      `M${fixed(place(score), 1)} ${bottom + 2}v12`).join(""),
  };
}

function keyRow(score, weight, i) {
  const bar = make("b", { style: `width: ${fixed(100 * weight, 1)}%` });
  return make("tr", {}, make("th", { scope: "row" }, named("k", i)),
    make("td", {}, fixed(score)), make("td", { class: "share" },
      make("div", {}, make("i", {}, bar), make("span", {}, fixed(weight)))));
}

function mapRow(entries, i) {
  const cells = entries.map((entry) => {
    const cell = make("td");
    tint(cell, 100 * entry, 25, 0);
    return cell;
  });
  return make("tr", {}, make("th", { scope: "row" }, named("p", i)), ...cells);
}

function mount(root, data) {
  const part = (name) => root.querySelector(name);
  const controls = part(".controls"), plot = histogram(data.drawing);

  function drawScores({ counts, scores }) {
    const tenths = Math.ceil(10 * Math.max(...counts) / sum(counts));
    const paths = [...plot.bars(counts, tenths * sum(counts) / 10),
      plot.strokes(scores)];
    [".within", ".beyond", ".keys"].forEach((name, i) =>
      part(`.plot ${name}`).setAttribute("d", paths[i]));
    root.querySelectorAll(".tick").forEach((tick, i) => {
      tick.textContent = `${5 * i * tenths} %`;
    });
  }

  function drawTables({ scores, weights, jacobian, moves }) {
    part(".weights tbody").replaceChildren(...scores.map((score, i) =>
      keyRow(score, weights[i], i)));
    part(".jacobian thead tr").replaceChildren(make("td"),
      ...scores.map((_, i) => make("th", { scope: "col" }, named("z", i))));
    part(".jacobian tbody").replaceChildren(...jacobian.map(mapRow));
    part(".norm").textContent = short(moves);
  }

  function draw() {
    const shown = compute(data, Number(width.value), Number(keys.value),
      scale());
    drawScores(shown);
    drawTables(shown);
    part(".says").textContent = sentence(shown, data.drawing);
    root.computed = shown;
  }

  const [i, n, choice] = data.start;
  const width = slider(controls, "Width of a query, dₖ", { min: 0,
    max: data.widths.length - 1, value: i,
    show: (i) => String(data.widths[i]) }, draw);
  const keys = slider(controls, "Number of keys, n", { min: 2,
    max: data.few[0].length, value: n, show: String }, draw);
  const scale = choices(controls, "Scale: q · k is multiplied by",
    SCALES.map(({ name }) => name), choice, draw);
  draw();
}
