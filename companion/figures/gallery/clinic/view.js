// Python has written every case; here one is shown, and the reader guesses.

// A list becomes a place for a control with the same texts.
function place(list) {
  const home = make("div", { class: list.className });
  list.replaceWith(home);
  return [home, [...list.children].map((item) => [...item.childNodes])];
}

// The guesses of a case, the button, and what shows once it was pressed.
function examine(section, right, verdicts, changed) {
  const [home, texts] = place(section.querySelector(".guesses"));
  const details = section.querySelector("details");
  details.querySelector("summary").remove();
  const verdict = details.querySelector(".verdict");
  const answer = make("div", { class: "answer", hidden: "" });
  details.replaceWith(verdict, answer);
  answer.append(...details.childNodes);
  const show = () => {
    const asked = at();
    verdict.innerHTML = asked ? verdicts[asked - 1] : "";
    answer.hidden = !asked;
    changed({ asked, says: verdict.textContent });
  };
  const at = guesses(home, { name: "What is it?", texts, ask: "Run the test",
    right: () => right }, show);
  show();
}

function mount(root, { right, verdicts }) {
  const sections = [...root.querySelectorAll("section")];
  const found = [];
  const draw = () => {
    sections.forEach((section, i) => { section.hidden = i !== chosen(); });
    root.computed = { case: chosen(), ...found[chosen()] };
  };
  const [home, texts] = place(root.querySelector(".cases"));
  for (const [, , name] of texts) name.className = "unseen";
  const chosen = choices(home, "Patient", texts, 0, draw);
  sections.forEach((section, i) => examine(section, right[i], verdicts[i],
    (now) => { found[i] = now; draw(); }));
}
