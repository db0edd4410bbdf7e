// What is read: the section whose heading is the last in the upper quarter of the
// screen, or above it. The same section is led to in the other language, and
// named where a mistake is reported.

const HEADINGS = ".bd-article section[id] > :is(h1, h2, h3, h4)";

function headingRead() {
  return [...document.querySelectorAll(HEADINGS)].filter((each) =>
    each.getBoundingClientRect().top < innerHeight / 4).pop();
}

function withSection(event) {
  const link = event.target.closest?.("a[href]");
  const heading = link && headingRead();
  if (!heading) return;
  const { id } = heading.parentElement;
  if (link.matches(".btn-language"))
    link.hash = heading.matches("h1") ? "" : id;
  if (link.matches('[href*="/issues/new?"]')) {
    const text = heading.cloneNode(true);
    for (const each of text.querySelectorAll(".headerlink")) each.remove();
    const url = new URL(link.href);
    url.searchParams.set("section", `${text.textContent.trim()} (#${id})`);
    link.href = url;
  }
}

addEventListener("click", withSection, true);
// The middle button opens a tab of its own.
addEventListener("auxclick", withSection, true);
