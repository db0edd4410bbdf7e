// Python has drawn every run; here one is shown, and the reader guesses.

// A group of choices of which one holds. Arrow keys move within it.
function choices(home, name, texts, changed) {
  const group = make("fieldset", {}, make("legend", {}, name));
  const key = `companion-${Math.random().toString(36).slice(2)}`;
  const inputs = texts.map((text, i) => {
    const input = make("input",
      { type: "radio", name: key, value: i, ...OWN_KEYS });
    input.addEventListener("change", changed);
    group.append(make("label", {}, input, make("span", {}, text)));
    return input;
  });
  home.append(group);
  return inputs;
}

function verdict({ name, finding, why }, guess) {
  const start = guess === finding ? `Right. ${name}: ${finding}.`
    : `You said: ${guess}. The doctor says of ${name}: ${finding}.`;
  return `${start} ${why}`;
}

function mount(root, data) {
  const controls = root.querySelector(".controls");
  const home = root.querySelector(".guess");
  const plots = root.querySelectorAll(".plot svg");
  const says = root.querySelector(".says");
  let run = 0, asked = false;
  const guess = () => data.findings[guesses.findIndex((g) => g.checked)];

  function draw() {
    const page = data.runs[run], answered = asked && guess();
    page.plots.forEach(({ view, svg }, i) => {
      plots[i].setAttribute("viewBox", view);
      plots[i].innerHTML = svg;
    });
    buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === run));
    ask.setAttribute("aria-disabled", !guess());
    guesses.forEach((input, i) => {
      const right = answered && data.findings[i] === page.finding;
      const wrong = answered && input.checked && !right;
      input.parentElement.className = right ? "right" : wrong ? "wrong" : "";
    });
    says.textContent = answered ? verdict(page, guess()) : page.says;
    root.computed = { run: page.name, guess: guess() ?? null,
      asked: Boolean(answered), says: says.textContent };
  }

  const buttons = data.runs.map(({ name }, i) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => {
      run = i;
      guesses.forEach((input) => { input.checked = false; });
      draw();
    });
    controls.append(button);
    return button;
  });
  const guesses = choices(home, "Your diagnosis", data.findings, () => {
    asked = false;
    draw();
  });
  const ask = make("button", { type: "button" }, "Ask the doctor");
  ask.addEventListener("click", () => {
    if (!guess()) return;
    asked = true;
    draw();
  });
  home.append(ask);
  draw();
}
