// Python has drawn every depth; here one is shown, with one stack in front.

// As `assembled` in depth_drawing.py: the chosen line lies above the others.
function assembled({ frame, lines }, chosen) {
  const others = lines.filter((_, i) => i !== chosen);
  return frame + others.join("") + `<g class="chosen">${lines[chosen]}</g>`;
}

function mount(root, data) {
  let chosen = data.start[1];
  const plots = root.querySelectorAll(".plot svg");
  const table = root.querySelector("table.legend");
  const heads = [...table.tHead.rows[0].cells].slice(1);
  const rows = [...table.tBodies[0].rows];

  const buttons = rows.map((row, i) => {
    const name = row.cells[0];
    const button = make("button",
      { type: "button", class: `line${i}` }, ...name.childNodes);
    button.addEventListener("click", () => { chosen = i; draw(); });
    name.replaceChildren(button);
    return button;
  });

  function draw() {
    const page = data.pages[depth.value];
    plots.forEach((svg, i) => {
      svg.innerHTML = assembled(page.plots[i], chosen);
    });
    heads.forEach((head, i) => { head.textContent = page.heads[i]; });
    rows.forEach((row, i) => {
      row.toggleAttribute("data-chosen", i === chosen);
      buttons[i].setAttribute("aria-pressed", i === chosen);
      page.cells[i].forEach((cell, j) => {
        row.cells[j + 1].textContent = cell;
      });
    });
    root.querySelector(".says").textContent = page.says[chosen];
    root.computed = { depth: page.depth, name: data.names[chosen],
      cells: page.cells };
  }

  const depth = slider(root.querySelector(".controls"), "Layers", { min: 0,
    max: data.pages.length - 1, value: data.start[0],
    show: (i) => String(data.pages[i].depth) }, draw);
  draw();
}
