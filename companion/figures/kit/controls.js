// Controls that several figures have, beside the slider of parts.js. Each
// returns a function that tells, and with an argument sets, where it stands.

// Buttons beside each other; what is disabled can be reached and does nothing.
function pressable(home, name, pressed) {
  const button = make("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") pressed();
  });
  home.append(button);
  return button;
}

function rowOfButtons(home) {
  const row = home.querySelector(".buttons");
  if (row) row.append(make("span", { class: "gap" }));
  return row ?? home.appendChild(make("div", { class: "buttons" }));
}

// A button a text, of which one is pressed.
function presses(home, texts, start, changed) {
  const row = rowOfButtons(home);
  let at = start;
  const set = (i) => {
    at = i;
    buttons.forEach((button, j) => button.setAttribute("aria-pressed", i === j));
  };
  const buttons = texts.map((text, i) =>
    pressable(row, text, () => { set(i); changed(); }));
  set(start);
  return (i = at) => { set(i); return at; };
}

// Start, if there are three names, Back and Next; `count` tells how many steps there are now.
function steps(home, names, count, changed) {
  const row = rowOfButtons(home);
  let at = 0;
  const set = (i) => {
    const last = count() - 1;
    at = Math.min(Math.max(i, 0), last);
    buttons.forEach((button, j) => button.setAttribute("aria-disabled",
      at === (j < buttons.length - 1 ? 0 : last)));
    place.textContent = `${at + 1} of ${last + 1}`;
  };
  const ways = [() => 0, () => at - 1, () => at + 1].slice(-names.length);
  const buttons = names.map((name, i) =>
    pressable(row, name, () => { set(ways[i]()); changed(); }));
  const place = row.appendChild(make("output"));
  return (i = at) => { set(i); return at; };
}

// A group of radio buttons: one stop, arrow keys move within it.
function choices(home, name, texts, start, changed) {
  const group = make("fieldset", { class: "choice" }, make("legend", {}, name));
  const key = `companion-${Math.random().toString(36).slice(2)}`;
  const inputs = texts.map((text, i) => {
    const input = make("input",
      { type: "radio", name: key, value: i, ...OWN_KEYS });
    input.checked = i === start;
    input.addEventListener("change", changed);
    group.append(make("label", {}, input, ...[].concat(text)));
    return input;
  });
  home.append(group);
  return (i) => {
    if (i !== undefined)
      inputs.forEach((input, j) => { input.checked = i === j; });
    return inputs.findIndex((input) => input.checked);
  };
}

// A group of boxes to tick; it tells which of them are.
function switches(home, name, texts, start, changed) {
  const group = make("fieldset", { class: "choice" }, make("legend", {}, name));
  const inputs = texts.map((text, i) => {
    const input = make("input", { type: "checkbox", ...OWN_KEYS });
    input.checked = start[i];
    input.addEventListener("change", changed);
    group.append(make("label", {}, input, text));
    return input;
  });
  home.append(group);
  return () => inputs.map((input) => input.checked);
}

// A guess, and the button that asks for the answer: 0 until it is pressed, then
// the guess and 1 more. `right` tells which guess is.
function guesses(home, { name, texts, ask, right }, changed) {
  let asked = false;
  const draw = () => {
    button.setAttribute("aria-disabled", guess() < 0);
    home.querySelectorAll(".choice label").forEach((label, i) => {
      label.className = !asked ? "" : i === right() ? "right"
        : i === guess() ? "wrong" : "";
    });
  };
  const turn = (to) => { asked = to; draw(); changed(); };
  const guess = choices(home, name, texts, -1, () => turn(false));
  const button = pressable(home, ask, () => turn(true));
  draw();
  const at = () => (asked ? guess() + 1 : 0);
  at.restart = () => { guess(-1); asked = false; draw(); };
  return at;
}

// The arrow keys that move along a row or a column, and where to.
function along(event, at, last, [back, on] = ["ArrowLeft", "ArrowRight"]) {
  const to = { [back]: Math.max(at - 1, 0), [on]: Math.min(at + 1, last),
    Home: 0, End: last }[event.key];
  if (to !== undefined) event.preventDefault();
  return to;
}

// The names of a table's rows, or of its columns, become buttons. With `keys`
// they are one stop, and these keys move along them.
function names(cells, start, changed, keys) {
  let at = start;
  const set = (i) => {
    at = i;
    buttons.forEach((button, j) => {
      button.setAttribute("aria-pressed", i === j);
      if (keys) button.tabIndex = i === j ? 0 : -1;
    });
    cells.forEach((cell, j) => (cell.scope === "row" ? cell.parentElement : cell)
      .toggleAttribute("data-chosen", i === j));
  };
  const press = (i) => { set(i); changed(); };
  const buttons = cells.map((cell, i) => {
    const button = make("button", { type: "button", ...OWN_KEYS },
      ...cell.childNodes);
    button.addEventListener("click", () => press(i));
    if (keys) button.addEventListener("keydown", (event) => {
      const to = along(event, i, cells.length - 1, keys);
      if (to === undefined) return;
      press(to);
      buttons[to].focus();
    });
    cell.replaceChildren(button);
    return button;
  });
  set(start);
  return (i = at) => { set(i); return at; };
}
