// Python has drawn every warm-up; here one of them is in front.

// As `assembled` in warmup_drawing.py.
function assembled(frame, curves, chosen) {
  const others = curves.filter((_, i) => i !== chosen)
    .map(({ line }) => `<path class="other" d="${line}"/>`).join("");
  const { line, front } = curves[chosen];
  return `${frame}${others}<path class="line" d="${line}"/>${front}`;
}

function mount(root, data) {
  const plots = root.querySelectorAll(".plot svg");
  const rows = [...root.querySelectorAll("tbody tr")];

  function draw() {
    const chosen = Number(warmup.value);
    plots.forEach((svg, i) => {
      svg.innerHTML = assembled(data.frames[i], data.curves[i], chosen);
    });
    rows.forEach((row, i) => [...row.cells].slice(1).forEach((cell) =>
      cell.toggleAttribute("data-chosen", i === chosen)));
    const says = data.says[chosen];
    root.querySelector(".says").textContent = says;
    root.computed = { warmup: data.warmups[chosen], says };
  }

  const warmup = slider(root.querySelector(".controls"), "Warm-up, in steps",
    { min: 0, max: data.warmups.length - 1, value: data.start,
      show: (i) => String(data.warmups[i]) }, draw);
  draw();
}
