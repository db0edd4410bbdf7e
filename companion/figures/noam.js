// As noam.py draws it, for every position of the two sliders.

const noam = (step, d, warmup) =>
  d ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5);
const branches = (step, d, warmup) =>
  [d ** -0.5 * step * warmup ** -1.5, d ** -0.5 * step ** -0.5];
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

function straightLines(d, warmup, { decades: [right] }) {
  const [rise, fall] = branches(1, d, warmup).map(Math.log10);
  const peak = Math.log10(noam(warmup, d, warmup));
  const over = Math.min(right, -rise);
  const up = [[0, rise], [over, rise + over]];
  const down = [[0, fall], [right, fall - right / 2]];
  return [[up[0], [Math.log10(warmup), peak], down[1]], up, down];
}

function sentence(d, warmup, peak) {
  return `d_model ${d}, ${long(warmup)} steps of warm-up: the rate rises in a `
    + `straight line to its peak of ${short(peak)}\u00a0×\u00a010⁻⁴ at step `
    + `${long(warmup)}, which is 1 / √(${d} · ${long(warmup)}). Then it falls `
    + `with the root of the step: at step ${long(4 * warmup)} half of the peak `
    + "is left.";
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

  function row(step, d, warmup) {
    const pair = branches(step, d, warmup);
    const low = Math.min(...pair) * (1 + 1e-9);
    return make("tr", {}, make("th", { scope: "row" }, long(step)),
      ...pair.map((rate) => make("td", { class: rate <= low ? "least" : "more" },
        short(rate / data.unit))));
  }

  function draw() {
    const d = data.widths[width.value], warmup = data.warmups[warm.value];
    const peak = noam(warmup, d, warmup);
    place(svgs[0], plainLines(warmup, data).map((line) => line.map(plain)),
      plain([warmup, 1]));
    place(svgs[1], straightLines(d, warmup, data).map((l) => l.map(decade)),
      decade([Math.log10(warmup), Math.log10(peak)]));
    ticks.forEach((tick, i) => {
      tick.textContent = short(i * 0.5 * peak / data.unit);
    });
    const steps = [...new Set([1, 100, 10000, 100000, warmup])]
      .sort((a, b) => a - b);
    rows.replaceChildren(...steps.map((step) => row(step, d, warmup)));
    root.querySelector(".says").textContent =
      sentence(d, warmup, peak / data.unit);
    root.computed = { d, warmup, peak, steps,
      rates: steps.map((step) => noam(step, d, warmup)) };
  }

  const width = slider(controls, "d_model", { min: 0,
    max: data.widths.length - 1, value: data.start[0],
    show: (i) => String(data.widths[i]) }, draw);
  const warm = slider(controls, "Warm-up, in steps", { min: 0,
    max: data.warmups.length - 1, value: data.start[1],
    show: (i) => long(data.warmups[i]) }, draw);
  draw();
}
