// As noam.py draws it, for every position of the sliders.

const branches = (step, { d, warmup, factor }) =>
  [step * warmup ** -1.5, step ** -0.5].map((rate) => factor * d ** -0.5 * rate);
const noam = (step, set) => Math.min(...branches(step, set));
const long = (number) => number.toLocaleString("en");

function scales({ box: [left, right, top, bottom], last, above, decades }) {
  const x = (share) => left + (right - left) * share;
  const y = (share) => bottom - (bottom - top) * share;
  return {
    plain: ([step, peaks]) => [x(step / last), y(peaks / above)],
    decade: ([step, rate]) =>
      [x(step / decades[0]), y((rate - decades[1]) / -decades[1])],
  };
}

const path = (points) => "M"
  + points.map(([x, y]) => `${fixed(x, 1)} ${fixed(y, 1)}`).join("L");

function plainLines(warmup, { last, above }) {
  const falling = (first) => Array.from({ length: 41 }, (_, i) => {
    const step = first * (last / first) ** (i / 40);
    return [step, (warmup / step) ** 0.5];
  });
  const up = [[0, 0],
    [Math.min(above * warmup, last), Math.min(above, last / warmup)]];
  return [[[0, 0], ...falling(warmup)], up, falling(warmup / above ** 2)];
}

function straightLines(set, { decades: [right] }) {
  const [rise, fall] = branches(1, set).map(Math.log10);
  const { warmup } = set, peak = Math.log10(noam(warmup, set));
  const over = Math.min(right, -rise);
  const up = [[0, rise], [over, rise + over]];
  const down = [[0, fall], [right, fall - right / 2]];
  return [[up[0], [Math.log10(warmup), peak], down[1]], up, down];
}

function sentence({ d, warmup, factor }, peak) {
  return `d_model ${d}, ${long(warmup)} steps of warm-up, factor ${factor}: the `
    + "rate rises in a straight line to its peak of "
    + `${short(peak)}\u00a0×\u00a010⁻⁴ at step ${long(warmup)}, which is `
    + `${factor} / √(${d} · ${long(warmup)}). Then it falls with one over `
    + `the root of the step: at step ${long(4 * warmup)} half of the peak is left.`;
}

function mount(root, data) {
  const svgs = [...root.querySelectorAll(".plot svg")];
  const ticks = svgs[0].querySelectorAll(".tick");
  const rows = root.querySelector("tbody");
  const controls = root.querySelector(".controls");
  const { plain, decade } = scales(data);

  function place(svg, lines, [x, y]) {
    ["rate", "rising", "falling"].forEach((kind, i) =>
      svg.querySelector(`.${kind}`).setAttribute("d", path(lines[i])));
    [x, y] = [fixed(x, 1), fixed(y, 1)];
    svg.querySelector(".drop").setAttribute("d", `M${x} ${y}V${data.box[3]}`);
    svg.querySelector(".mark").setAttribute("transform", `translate(${x},${y})`);
  }

  function row(step, set) {
    const pair = branches(step, set);
    const low = Math.min(...pair) * (1 + 1e-9);
    return make("tr", {}, make("th", { scope: "row" }, long(step)),
      ...pair.map((rate) => make("td", { class: rate <= low ? "least" : "more" },
        short(rate / data.unit))));
  }

  function draw() {
    const set = { d: data.widths[width.value],
      warmup: data.warmups[warm.value], factor: data.factors[factor.value] };
    const { warmup } = set, peak = noam(warmup, set);
    place(svgs[0], plainLines(warmup, data).map((line) => line.map(plain)),
      plain([warmup, 1]));
    place(svgs[1], straightLines(set, data).map((l) => l.map(decade)),
      decade([Math.log10(warmup), Math.log10(peak)]));
    ticks.forEach((tick, i) => {
      tick.textContent = short(i * 0.5 * peak / data.unit);
    });
    const steps = [...new Set([1, 100, 10000, 100000, warmup])]
      .sort((a, b) => a - b);
    rows.replaceChildren(...steps.map((step) => row(step, set)));
    root.querySelector(".says").textContent = sentence(set, peak / data.unit);
    root.computed = { ...set, peak, steps,
      rates: steps.map((step) => noam(step, set)) };
  }

  const width = slider(controls, "d_model", { min: 0,
    max: data.widths.length - 1, value: data.start[0],
    show: (i) => String(data.widths[i]) }, draw);
  const warm = slider(controls, "Warm-up, in steps", { min: 0,
    max: data.warmups.length - 1, value: data.start[1],
    show: (i) => long(data.warmups[i]) }, draw);
  const factor = slider(controls, "Factor", { min: 0,
    max: data.factors.length - 1, value: data.start[2],
    show: (i) => String(data.factors[i]) }, draw);
  draw();
}
