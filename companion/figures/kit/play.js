// Python has made every state of the figure; here one of them is shown.

// Fill the elements with a data-part, or set an attribute of theirs: for every
// state there is the index of one of the texts that an element may have.
function player(root, parts) {
  const filled = Object.entries(parts).flatMap(([key, texts]) => {
    const [name, attribute] = key.split("@");
    const homes = root.querySelectorAll(`[data-part="${name}"]`);
    return texts.map(({ of, at }, i) =>
      ({ home: homes[i], attribute, of, at, shown: null }));
  });
  return (...state) => {
    for (const part of filled) {
      const { home, attribute, of, at, shown } = part;
      const index = at === undefined ? state[0]
        : state.reduce((row, i) => row?.[i] ?? row, at);
      if (index === shown || index === null) continue;
      part.shown = index;
      if (attribute) home.setAttribute(attribute, of[index]);
      else home.innerHTML = of[index];
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

// Make the controls, and fill the parts whenever one of them moves; `after` is
// told the state.
function play(root, { controls, parts }, after = () => {}) {
  const home = root.querySelector(".controls");
  const show = player(root, parts);
  const held = [];
  const draw = () => {
    const state = held.map((at) => at());
    show(...state);
    controls.forEach(({ front }, i) => { if (front) raise(root, front, state[i]); });
    after(...state);
  };
  for (const spec of controls) {
    const { kind, name, texts, start, counts } = spec;
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
      held.push(names([...root.querySelectorAll(spec.rows)], start, moved));
    else if (kind === "guess")
      held.push(guesses(root.querySelector(".guess"), { name, texts,
        ask: spec.ask, right: () => spec.right[held[before - 1]()] }, moved));
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
