// Python has written every case; here one is shown, and the reader guesses.

// A list becomes a group of choices of which one holds.
function chooseFrom(list, legend, changed) {
  const key = `companion-${Math.random().toString(36).slice(2)}`;
  const group = make("fieldset", { class: list.className },
    make("legend", {}, legend));
  const inputs = [...list.children].map((item, i) => {
    const input = make("input",
      { type: "radio", name: key, value: i, ...OWN_KEYS });
    input.addEventListener("change", () => changed(i));
    group.append(make("label", {}, input, ...item.childNodes));
    return input;
  });
  list.replaceWith(group);
  return inputs;
}

// The guesses of a case, the button, and what shows once it was pressed.
function examine(section, right, changed) {
  let guess = -1;
  const details = section.querySelector("details");
  details.querySelector("summary").remove();
  const verdict = details.querySelector(".verdict");
  const answer = make("div", { class: "answer", hidden: "" });
  answer.append(...details.childNodes);
  answer.prepend(verdict);
  const run = make("button", { type: "button" }, "Run the test");
  details.replaceWith(run, verdict, answer);
  const texts = [...section.querySelectorAll(".guesses li")]
    .map((item) => item.textContent);

  function show(asked) {
    run.setAttribute("aria-disabled", guess < 0);
    inputs.forEach((input, i) => {
      const mark = i === right ? "right" : i === guess ? "wrong" : "";
      input.parentElement.className = asked ? mark : "";
    });
    answer.hidden = !asked;
    verdict.textContent = !asked ? ""
      : guess === right ? `Right: ${texts[right]}`
      : `You said: ${texts[guess]} It is: ${texts[right]}`;
    changed({ guess: texts[guess] ?? null, asked,
      says: verdict.textContent });
  }

  const inputs = chooseFrom(section.querySelector(".guesses"),
    "What is it?", (i) => { guess = i; show(false); });
  run.addEventListener("click", () => { if (guess >= 0) show(true); });
  show(false);
}

function mount(root, { right }) {
  const sections = [...root.querySelectorAll("section")];
  const names = [...root.querySelectorAll(".cases li")]
    .map((item) => item.querySelector("span"));
  const found = [];
  let shown = 0;

  function show(chosen) {
    shown = chosen;
    sections.forEach((section, i) => { section.hidden = i !== chosen; });
    root.computed = { case: names[shown].textContent, ...found[shown] };
  }

  sections.forEach((section, i) => examine(section, right[i], (now) => {
    found[i] = now;
    show(shown);
  }));
  const inputs = chooseFrom(root.querySelector(".cases"), "Case", show);
  for (const name of names) name.className = "unseen";
  inputs[0].checked = true;
  show(0);
}
