// Python has watched every search and drawn its tree; here its steps are shown.

function pressable(home, name, pressed) {
  const button = make("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-disabled") !== "true") pressed();
  });
  home.append(button);
  return button;
}

function mount(root, data) {
  const controls = root.querySelector(".controls");
  const svg = root.querySelector(".picture svg");
  let beam = data.start, step = data.trees[beam].pages.length - 1;

  function show(chosen) {
    beam = chosen;
    const { width, height, svg: drawn } = data.trees[beam].drawing;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.innerHTML = drawn;
    step = data.trees[beam].pages.length - 1;
    draw();
  }

  function draw() {
    const { pages } = data.trees[beam], page = pages[step];
    const last = pages.length - 1;
    for (const row of svg.querySelectorAll("[data-row]"))
      row.classList.toggle("later", Number(row.dataset.row) > page.rows);
    svg.classList.toggle("over", step === last);
    root.querySelector("div.kept").innerHTML = page.table;
    root.querySelector(".says").textContent = page.says;
    beams.forEach((button, i) =>
      button.setAttribute("aria-pressed", i === beam));
    start.setAttribute("aria-disabled", step === 0);
    back.setAttribute("aria-disabled", step === 0);
    next.setAttribute("aria-disabled", step === last);
    place.textContent = `${step + 1} of ${last + 1}`;
    root.computed = { beam: data.beams[beam], step, says: page.says };
  }

  const beams = data.beams.map((width, i) =>
    pressable(controls, `Beam ${width}`, () => show(i)));
  controls.append(make("span", { class: "gap" }));
  const start = pressable(controls, "Start", () => { step = 0; draw(); });
  const back = pressable(controls, "Back", () => { step -= 1; draw(); });
  const next = pressable(controls, "Next", () => { step += 1; draw(); });
  const place = make("output");
  controls.append(place);
  draw();
}
