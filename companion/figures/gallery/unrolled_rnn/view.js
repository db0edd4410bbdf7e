// Forward pass and chain of Jacobians, again at every move of the slider.

function multiply(A, B) {
  return A.map((row) => B[0].map((_, column) =>
    row.reduce((sum, value, k) => sum + value * B[k][column], 0)));
}

const norm = (A) => Math.sqrt(A.flat().reduce((sum, a) => sum + a * a, 0));

// h_t = tanh(W x_t + gain U h_{t-1} + b), every state of it.
function forward({ x, h0, W, U, b }, gain) {
  const states = [];
  let h = h0;
  for (const input of x) {
    h = b.map((bias, i) => Math.tanh(bias
      + W[i].reduce((sum, w, k) => sum + w * input[k], 0)
      + gain * U[i].reduce((sum, u, k) => sum + u * h[k], 0)));
    states.push(h);
  }
  return states;
}

// dh_T/dx_t is a product of diag(1 - h^2) gain U, one for each step after t,
// times diag(1 - h_t^2) W: built from the end backwards.
function gradients({ W, U }, gain, states) {
  let chain = W.map((_, i) => W.map((_, j) => Number(i === j)));
  const norms = [];
  for (const h of [...states].reverse()) {
    const gated = chain.map((row) => row.map((a, j) => a * (1 - h[j] ** 2)));
    norms.unshift(norm(multiply(gated, W)));
    chain = multiply(gated, U).map((row) => row.map((a) => gain * a));
  }
  return norms;
}

const lowered = (letter, number) => letter + [...String(number)]
  .map((digit) => String.fromCharCode(0x2080 + Number(digit))).join("");

function sentence({ gain, gradients, sizes }) {
  const last = lowered("x", sizes.length), state = lowered("h", sizes.length);
  const ratio = gradients.at(-1) ? gradients[0] / gradients.at(-1) : 0;
  const how = !ratio ? "not at all"
    : short(ratio) === "1.00" ? `as strongly as ${last} does`
    : ratio < 1 ? `${short(1 / ratio)} times more weakly than ${last} does`
    : `${short(ratio)} times more strongly than ${last} does`;
  return `Gain ${fixed(gain)}: x₁ reaches ${state} ${how}. The numbers in `
    + `${state} have a mean size of ${short(sizes.at(-1))}.`;
}

function drawStep(step, { gradient, size, linear }, height, { middle }) {
  const bar = height(gradient), rect = step.querySelector(".bar");
  step.querySelector(".state").setAttribute("fill-opacity", size.toFixed(3));
  rect.setAttribute("class", bar < 0 ? "bar down" : "bar up");
  rect.setAttribute("y", (middle - Math.max(bar, 0)).toFixed(1));
  rect.setAttribute("height", Math.max(Math.abs(bar), 1).toFixed(1));
  step.querySelector(".linear").setAttribute("y",
    (middle - height(linear) - 1).toFixed(1));
  const title = step.querySelector("title");
  title.textContent = title.textContent.split(":")[0] + ": " + short(gradient);
}

function mount(root, data) {
  const steps = root.querySelectorAll(".step");
  const rows = root.querySelectorAll("tbody tr");
  const says = root.querySelector(".says");
  const height = (value) => data.decade * Math.max(-data.decades,
    Math.min(data.decades, Math.log10(value)));

  function draw() {
    const gain = Number(input.value), states = forward(data, gain);
    const computed = { gain, gradients: gradients(data, gain, states),
      sizes: states.map((h) =>
        h.reduce((sum, a) => sum + Math.abs(a), 0) / h.length) };
    computed.gradients.forEach((gradient, t) => {
      const size = computed.sizes[t];
      const linear = norm(data.W) * gain ** (states.length - 1 - t);
      drawStep(steps[t], { gradient, size, linear }, height, data);
      rows[t].cells[1].textContent = short(gradient);
      rows[t].cells[2].textContent = short(size);
    });
    says.textContent = sentence(computed);
    root.computed = computed;
  }

  const input = slider(root.querySelector(".controls"),
    "Gain: how much U stretches the state", { ...data.gains,
      value: data.gain, show: (gain) => fixed(gain) }, draw);
  draw();
}
