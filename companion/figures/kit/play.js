// Python has made every state of the figure; here one of them is shown.

// Fill the elements with a data-part: each part has its texts, and for every
// state the number of the one that it shows. A list fills several elements.
function player(root, parts) {
  const shown = {};
  const filled = Object.entries(parts).map(([name, { of, at }]) => [name, of, at,
    [...root.querySelectorAll(`[data-part="${name}"]`)]]);
  return (...state) => {
    for (const [name, of, at, homes] of filled) {
      const number = state.reduce((row, i) => row?.[i] ?? row, at);
      if (shown[name] === number) continue;
      shown[name] = number;
      [of[number]].flat().forEach((html, i) => { homes[i].innerHTML = html; });
    }
    root.computed = { state, says: root.querySelector(".says")?.textContent };
  };
}

// In each of these drawings, one line comes to lie above the others.
function raise(root, drawings, chosen) {
  for (const drawing of root.querySelectorAll(drawings)) {
    drawing.querySelector(".chosen")?.classList.remove("chosen");
    const line = drawing.querySelector(`.line${chosen}`);
    line.classList.add("chosen");
    line.parentElement.append(line);
  }
}

function mount(root, { controls, parts }) {
  const home = root.querySelector(".controls");
  const show = player(root, parts);
  const held = [];
  const draw = () => {
    show(...held.map((at) => at()));
    controls.forEach(({ front }, i) => { if (front) raise(root, front, held[i]()); });
  };
  for (const { kind, name, texts, start, counts, rows } of controls) {
    const before = held.length;
    // Another choice of what is stepped through starts where its steps do.
    const moved = () => {
      held.slice(before + 1).forEach((at) => at.restart?.());
      draw();
    };
    if (kind === "slider") {
      const input = slider(home, name, { min: 0, max: texts.length - 1,
        value: start, show: (i) => texts[i] }, moved);
      held.push(() => Number(input.value));
    } else if (kind === "buttons") held.push(presses(home, texts, start, moved));
    else if (kind === "choice")
      held.push(choices(home, name, texts, start, moved));
    else if (kind === "rows")
      held.push(names([...root.querySelectorAll(rows)], start, moved));
    else {
      const count = () => counts[held[before - 1]()];
      const at = steps(home, texts, count, moved);
      at.restart = () => at(start < 0 ? Infinity : start);
      at.restart();
      held.push(at);
    }
  }
  draw();
}
