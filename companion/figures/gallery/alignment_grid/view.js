// A target word is picked by mouse, finger or arrow keys; its context is
// computed from the weights and the states.

const biggest = (grid) => Math.max(...grid.flat().map(Math.abs));

function sum(weights, states) {
  return states[0].map((_, number) => states.reduce(
    (total, state, j) => total + weights[j] * state[number], 0));
}

function sentence({ source, target }, { row, weights, context }) {
  const j = weights.indexOf(Math.max(...weights));
  return `“${target[row]}” looks most at “${source[j]}” `
    + `(${fixed(weights[j])}). Its context c: `
    + `${context.map((number) => fixed(number)).join(", ")}.`;
}

// The words of the rows become buttons: one tab stop, arrows move within.
function buttons(rows, choose) {
  return rows.map((row, i) => {
    const head = row.cells[0];
    const button = make("button", { type: "button", ...OWN_KEYS });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", (event) => {
      const last = rows.length - 1;
      const to = { ArrowDown: Math.min(i + 1, last), ArrowUp: Math.max(i - 1, 0),
        Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(to).focus();
    });
    return button;
  });
}

function mount(root, data) {
  const { weights, states } = data;
  const top = biggest(states);
  const rows = [...root.querySelectorAll(".grid tr:not(.title)")];
  const alphas = root.querySelectorAll(".alphas td");
  const scaled = root.querySelectorAll(".scaled tr:not(.title, .alphas)");
  const chosen = root.querySelector(".chosen");
  const says = root.querySelector(".says");
  let picked = data.start;

  function show(i) {
    const context = sum(weights[i], states);
    rows.forEach((row, j) => row.toggleAttribute("data-chosen", i === j));
    words.forEach((word, j) => word.setAttribute("aria-pressed", i === j));
    weights[i].forEach((weight, j) => {
      tint(alphas[j], weight);
      states[j].forEach((number, k) =>
        tint(scaled[k].cells[j + 1], weight * number, top));
    });
    context.forEach((number, k) =>
      tint(scaled[k].cells[states.length + 1], number, top));
    chosen.replaceChildren(...[...words[i].childNodes]
      .map((node) => node.cloneNode(true)));
    root.computed = { row: i, weights: weights[i], context };
    says.textContent = sentence(data, root.computed);
  }

  function choose(i) {
    picked = i;
    words.forEach((word, j) => { word.tabIndex = i === j ? 0 : -1; });
    show(i);
    return words[i];
  }

  const words = buttons(rows, choose);
  // A mouse only looks: what was picked comes back when it leaves the grid.
  rows.forEach((row, i) => {
    row.addEventListener("mouseenter", () => show(i));
    row.addEventListener("click", () => choose(i));
  });
  root.querySelector(".grid").addEventListener("mouseleave",
    () => show(picked));
  choose(picked);
}
