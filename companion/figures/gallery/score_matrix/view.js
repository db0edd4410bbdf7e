// Scores and values are fields; weights, output and ‖J‖₂ follow.

const LIMIT = 1000;

function parse(text) {
  const plain = text.normalize("NFKC").trim().replace(",", ".")
    .replace("\u2212", "-");
  if (!plain) return { wrong: "is empty" };
  if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(plain))
    return { wrong: `is not a number: “${text}”` };
  const value = Number(plain);
  return Math.abs(value) <= LIMIT ? { value }
    : { wrong: `is not between −${LIMIT} and ${LIMIT}: “${text}”` };
}

// Turn a table of numbers into fields. What is typed counts while it is a
// number; else what the field had before does, and a line says so.
function fields(table, what, changed) {
  const problem = make("p", { class: "problem", role: "alert" });
  table.after(problem);
  const problems = new Map();
  const rows = [...table.tBodies[0].rows].map((row, i) =>
    [...row.cells].slice(1).map((cell, j) => {
      const place = `${what}, row ${i + 1}, column ${j + 1}`;
      const start = cell.textContent;
      const field = { value: Number(start), input: make("input", {
        type: "text", value: start, autocomplete: "off",
        "aria-label": place, ...OWN_KEYS }) };
      let before = field.value;
      field.input.addEventListener("focus", () => { before = field.value; });
      field.input.addEventListener("input", () => {
        const { value, wrong } = parse(field.input.value);
        field.value = wrong ? before : value;
        problems.delete(place);
        if (wrong) problems.set(place,
          `${place} ${wrong}. ${before} still counts.`);
        field.input.setAttribute("aria-invalid", Boolean(wrong));
        problem.textContent = [...problems.values()].join("\n");
        changed();
      });
      cell.replaceChildren(field.input);
      cell.className = "field";
      return field;
    }));
  return () => rows.map((row) => row.map((field) => field.value));
}

function sentence({ d_k, scale, factor, scores, largest, movement }) {
  return `dₖ = ${d_k}, scale ${scale}: the softmax sees these scores ×\u00a0`
    + `${short(factor)}, so ${fixed(scores[0][0])} enters as `
    + `${fixed(scores[0][0] * factor)}. Row 1 puts ${short(largest[0])} on `
    + `one key and follows its scores at a rate of at most `
    + `${short(movement[0])}.`;
}

function compute(d_k, { name, of }, scores, values) {
  const factor = Math.sqrt(d_k) * of(d_k);
  const weights = scores.map((row) => softmax(row.map((s) => s * factor)));
  const output = weights.map((row) => values[0].map((_, k) =>
    row.reduce((sum, weight, j) => sum + weight * values[j][k], 0)));
  return { d_k, scale: name, factor, scores, weights, output,
    largest: weights.map((row) => Math.max(...row)),
    movement: weights.map(movement) };
}

function mount(root, data) {
  const table = (kind) => root.querySelector(`table.${kind}`);
  const cells = (kind) => [...table(kind).tBodies[0].rows]
    .map((row) => [...row.cells].slice(1));
  const weightCells = cells("weights"), outputCells = cells("output");
  const controls = root.querySelector(".controls");

  function draw() {
    const shown = compute(2 ** power.value, SCALES[choice.value],
      scores(), values());
    const top = Math.max(...shown.output.flat().map(Math.abs));
    shown.weights.forEach((row, i) => {
      row.forEach((weight, j) => tint(weightCells[i][j], weight));
      weightCells[i].at(-2).textContent = short(shown.largest[i]);
      weightCells[i].at(-1).textContent = short(shown.movement[i]);
      shown.output[i].forEach((number, k) =>
        tint(outputCells[i][k], number, top, 3));
    });
    root.querySelector(".says").textContent = sentence(shown);
    root.computed = shown;
  }

  const power = slider(controls, "Width of a query, dₖ", { min: 0, max: 10,
    value: Math.log2(data.d_k), show: (power) => String(2 ** power) }, draw);
  const choice = slider(controls, "Scale: q · k is multiplied by", { min: 0, max: 2,
    value: 1, show: (choice) => SCALES[choice].name }, draw);
  const scores = fields(table("scores"), "Scores", draw);
  const values = fields(table("values"), "Values", draw);
  draw();
}
