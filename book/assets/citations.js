// A citation shows its work while the mouse or the keyboard is on it. Where no
// script runs, the browser shows the title, and the link leads to the references.

const card = document.createElement("div");
card.id = "cited-work";
card.setAttribute("role", "tooltip");
card.hidden = true;
let cited = null, waiting;

function hide() {
  clearTimeout(waiting);
  cited?.removeAttribute("aria-describedby");
  cited = null;
  card.hidden = true;
}

// Below the link, or above it where the screen ends; never beyond its sides.
function show(link, work) {
  hide();
  cited = link;
  card.textContent = work;
  card.hidden = false;
  link.setAttribute("aria-describedby", card.id);
  const box = link.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const room = document.documentElement.clientWidth - width - 8;
  const below = box.bottom + height + 12 < innerHeight;
  card.style.left = `${scrollX + Math.max(8, Math.min(box.left, room))}px`;
  card.style.top =
    `${scrollY + (below ? box.bottom + 4 : box.top - height - 4)}px`;
}

// The way from the link to the card may take a moment, and so may a mouse that
// only passes by.
const soon = (act) => {
  clearTimeout(waiting);
  waiting = setTimeout(act, 200);
};

for (const link of document.querySelectorAll(".bibtex-citation a[title]")) {
  const work = link.title;
  // Or the browser would show it, too.
  link.removeAttribute("title");
  link.addEventListener("focus", () => show(link, work));
  link.addEventListener("blur", hide);
  link.addEventListener("mouseenter", () =>
    soon(() => cited === link || show(link, work)));
  link.addEventListener("mouseleave", () => soon(hide));
}
card.addEventListener("mouseenter", () => clearTimeout(waiting));
card.addEventListener("mouseleave", () => soon(hide));
addEventListener("keydown", ({ key }) => { if (key === "Escape") hide(); });
addEventListener("pagehide", hide);
document.body.append(card);
