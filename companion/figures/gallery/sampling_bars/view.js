// The filters of companion.decoding.sampling_filter, for one row of scores that
// are sorted already. A score of null is −∞.

function softmax(scores) {
  const top = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - top));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

function filtered(scores, k, p) {
  // Who ties with the last of the best k stays.
  let left = k === null ? scores
    : scores.map((s) => s < scores[k - 1] ? -Infinity : s);
  if (p === null) return left;
  let before = 0;
  const shares = softmax(left);
  return left.map((score, i) => {
    const keep = i === 0 || before < p;
    before += shares[i];
    return keep ? score : -Infinity;
  });
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const bits = (shares) =>
  -sum(shares.map((p) => p ? p * Math.log2(p) : 0));
const percent = (share) => `${fixed(100 * share, 1)}\u00a0%`;

function result(raw, bars, temperature, k, p) {
  const scores = raw.map((score) => score ?? -Infinity);
  const warmed = scores.map((score) => score / temperature);
  const drawn = softmax(filtered(warmed, k, p));
  const columns = [softmax(scores), softmax(warmed), drawn];
  const kept = drawn.filter((share) => share > 0).length;
  // Sorted, so that what is kept stands first.
  return { kept, mass: sum(columns[1].slice(0, kept)),
    bits: [bits(columns[0]), bits(drawn)],
    bars: columns.map((column) => scores.length === bars ? column
      : [...column.slice(0, bars), sum(column.slice(bars))]) };
}

function sentence(shown, count) {
  const { temperature, k, p, kept, mass } = shown;
  const [before, after] = shown.bits.map((number) => fixed(number));
  const tokens = kept === 1 ? "1 token is" : `${kept} tokens are`;
  return `Temperature ${fixed(temperature, 1)}, top-k ${k ?? `off`}, top-p `
    + `${p === null ? `off` : fixed(p)}: ${tokens} left of ${count}. After the `
    + `temperature they had ${percent(mass)} of the probability; now they `
    + `share all of it. The entropy goes from ${before} bits to ${after}.`;
}

function mount(root, data) {
  const rows = [...root.querySelector("tbody").rows];
  const controls = root.querySelector(".controls");
  const at = (name, input) => data[name][input.value];

  function draw() {
    const settings = { temperature: at("temperatures", temperature),
      k: at("ks", k), p: at("shares", p) };
    const shown = { ...settings, ...result(data.scores, data.shown,
      settings.temperature, settings.k, settings.p) };
    rows.forEach((row, i) => {
      const [model, warm, drawn] = shown.bars.map((column) => column[i]);
      const [, track, before, after] = row.cells;
      row.className = drawn ? "" : "dropped";
      track.querySelector("b").style.width =
        `${fixed(100 * (drawn || warm), 1)}%`;
      before.textContent = percent(model);
      after.textContent = drawn ? percent(drawn) : `dropped`;
    });
    root.querySelector(".says").textContent =
      sentence(shown, data.scores.length);
    root.computed = shown;
  }

  const place = (name, value, show) => ({ min: 0, max: data[name].length - 1,
    value: data[name].indexOf(value), show: (i) => show(data[name][i]) });
  const [warmth, best, share] = data.start;
  const temperature = slider(controls, "Temperature",
    place("temperatures", warmth, (value) => fixed(value, 1)), draw);
  const k = slider(controls, "Top-k",
    place("ks", best, (value) => String(value ?? `off`)), draw);
  const p = slider(controls, "Top-p", place("shares", share,
    (value) => value === null ? `off` : fixed(value)), draw);
  draw();
}
