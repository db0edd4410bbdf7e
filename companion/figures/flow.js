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

function mount(root, data) {
  const controls = root.querySelector(".controls");
  const decoder = root.querySelector(".decoder");
  const parts = [...root.querySelectorAll(".part")];
  const cells = [...root.querySelectorAll(".mask i")];
  const tokens = (name) =>
    root.querySelectorAll(`[data-part="${name}"] .token`);
  const lanes = tokens("tgt").length;
  let mode = 0, step = 0;

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
    modes.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === mode));
    back.setAttribute("aria-disabled", step === 0);
    next.setAttribute("aria-disabled", step === steps.length - 1);
    place.textContent = `${step + 1} of ${steps.length}`;
    root.computed = { mode: data.names[mode], step, says: page.says };
  }

  const modes = data.names.map((name, i) => pressable(controls, name, () => {
    [mode, step] = [i, 0];
    draw();
  }));
  controls.append(make("span", { class: "gap" }));
  const back = pressable(controls, "Back", () => { step -= 1; draw(); });
  const next = pressable(controls, "Next", () => { step += 1; draw(); });
  const place = make("output");
  controls.append(place);
  draw();
}
