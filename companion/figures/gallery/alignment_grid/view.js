// A target word is picked by mouse, finger or arrow keys.

function mount(root, { start, parts }) {
  const show = player(root, parts);
  const rows = [...root.querySelectorAll(".grid tr:not(.title)")];
  let picked = start;
  const look = (i) => { at(i); show(i); };
  const pick = (i) => { picked = i; look(i); };
  const at = names(rows.map((row) => row.cells[0]), start, () => pick(at()),
    ["ArrowUp", "ArrowDown"]);
  // A mouse only looks: what was picked comes back when it leaves the grid.
  rows.forEach((row, i) => {
    row.addEventListener("mouseenter", () => look(i));
    row.addEventListener("click", () => pick(i));
  });
  root.querySelector(".grid").addEventListener("mouseleave",
    () => look(picked));
  look(start);
}
