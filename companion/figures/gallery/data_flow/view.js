// Python has written every step; here one is shown.

function pressable(home, name, pressed) {
  const button = make("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") pressed();
  });
  home.append(button);
  return button;
}

function mark(parts, states) {
  parts.forEach((part, i) => { part.className = `token ${states[i]}`; });
}

// The numbers of a part: the rows that are read, and who may look at whom.
function fill(home, part, reads) {
  const rows = part.reads ? reads : part.rows.length;
  const columns = part.square ? reads : part.columns.length;
  const body = make("tbody");
  for (let i = 0; i < rows; i++) {
    const row = make("tr", {}, make("th", { scope: "row" }, part.rows[i]));
    for (let j = 0; j < columns; j++) {
      const value = part.values[i][j];
      const cell = make("td");
      if (value === null) {
        cell.className = "masked";
        cell.textContent = "masked";
      } else tint(cell, value, part.top);
      row.append(cell);
    }
    body.append(row);
  }
  const heads = part.columns.slice(0, columns)
    .map((name) => make("th", { scope: "col" }, name));
  home.replaceChildren(make("div", { class: "scroll" },
    make("table", { class: "cells numbers" },
      make("caption", {}, part.title),
      make("thead", {}, make("tr", {}, make("td"), ...heads)), body)));
}

function mount(root, data) {
  const controls = root.querySelector(".controls");
  const decoder = root.querySelector(".decoder");
  const parts = [...root.querySelectorAll(".part")];
  const cells = [...root.querySelectorAll(".mask i")];
  const tokens = (name) =>
    root.querySelectorAll(`[data-part="${name}"] .token`);
  const lanes = tokens("tgt").length;
  const numbers = root.querySelector(".numbers");
  let mode = 0, step = 0, looks = null;

  function draw() {
    const steps = data.modes[mode], page = steps[step];
    for (const part of parts) {
      part.classList.toggle("lit", page.lit.includes(part.dataset.part));
      const shape = part.querySelector(".shape");
      if (shape) shape.textContent = page.shapes[part.dataset.part];
    }
    mark(tokens("tgt"), page.tgt);
    mark(tokens("out"), page.out);
    decoder.style.setProperty("--reads", page.reads);
    cells.forEach((cell, i) => cell.classList.toggle("off",
      Math.max(i % lanes, Math.floor(i / lanes)) >= page.reads));
    root.querySelectorAll(".passes span").forEach((count, i) => {
      count.textContent = page.passes[i];
    });
    root.querySelector(".says").textContent = page.says;
    if (numbers) {
      choice.value = looks ?? page.looks;
      fill(numbers, data.tables[choice.value], page.reads);
    }
    modes.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === mode));
    back.setAttribute("aria-disabled", step === 0);
    next.setAttribute("aria-disabled", step === steps.length - 1);
    place.textContent = `${step + 1} of ${steps.length}`;
    root.computed = { mode: data.names[mode], step, says: page.says,
      part: choice?.value };
  }

  const choice = numbers && make("select", { ...OWN_KEYS });
  if (numbers) {
    for (const [name, part] of Object.entries(data.tables))
      choice.append(make("option", { value: name }, part.name));
    choice.addEventListener("change", () => { looks = choice.value; draw(); });
    numbers.before(make("label", { class: "which" }, "Numbers of ", choice));
  }
  const walk = (to) => { step = to; looks = null; draw(); };
  const modes = data.names.map((name, i) => pressable(controls, name, () => {
    mode = i;
    walk(0);
  }));
  controls.append(make("span", { class: "gap" }));
  const back = pressable(controls, "Back", () => walk(step - 1));
  const next = pressable(controls, "Next", () => walk(step + 1));
  const place = make("output");
  controls.append(place);
  draw();
}
