// What the figures' scripts build with. digits.py writes numbers the same way.

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Without this, JupyterLab keeps the arrow keys for itself.
const OWN_KEYS = { "data-lm-suppress-shortcuts": "true" };

// A slider with its name and value; `show` turns a position into words.
function slider(home, name, { min, max, step = 1, value, show }, moved) {
  const input = make("input",
    { type: "range", min, max, step, value, ...OWN_KEYS });
  const output = make("output");
  const say = () => {
    output.textContent = show(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => { say(); moved(); });
  home.append(make("div", { class: "control" },
    make("label", {}, make("span", {}, name), input), output));
  say();
  return input;
}

function fixed(value, places = 2) {
  const text = value.toFixed(places).replace(/^-(?=[0.]*$)/, "");
  return text.replace("-", "\u2212");
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵",
  6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (0.01 <= size && size < 10000)
    return fixed(value, (size < 100) + (size < 10) + (size < 1));
  const [mantissa, exponent] = value.toExponential(1).split("e");
  const power = String(Number(exponent));
  return mantissa.replace("-", "\u2212") + "×10"
    + [...power].map((sign) => RAISED[sign]).join("");
}

// Tint a table cell by its value, and write the value into it.
function tint(cell, value, largest = 1, places = 2) {
  const share = largest ? Math.min(Math.abs(value) / largest, 1) : 0;
  cell.className = value < 0 ? "minus" : "plus";
  cell.setAttribute("style", `--heat: ${(50 * share).toFixed(0)}%`);
  cell.textContent = fixed(value, places);
}
