// Beside the drawing, the numbers of a trained model: those of the part at work,
// or of another that the reader chooses until the next step.

function mount(root, data) {
  const home = root.querySelector("div.numbers");
  if (!home) return play(root, data);
  const choice = make("select", OWN_KEYS, ...Object.entries(data.names)
    .map(([value, name]) => make("option", { value }, name)));
  home.before(make("label", { class: "which" }, "Numbers of ", choice));
  let reads;

  // A generating decoder has the rows that it reads, and no others.
  function fill() {
    home.innerHTML = data.tables[choice.value];
    const table = home.querySelector("table");
    if (table.matches(".reads"))
      [...table.tBodies[0].rows].slice(reads).forEach((row) => row.remove());
    if (table.matches(".square")) for (const row of table.rows)
      [...row.cells].slice(reads + 1).forEach((cell) => cell.remove());
    root.computed.part = choice.value;
  }

  choice.addEventListener("change", fill);
  play(root, data, (mode, step) => {
    choice.value = data.looks[mode][step];
    reads = data.reads[mode][step];
    fill();
  });
}
