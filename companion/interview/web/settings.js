// The language, chosen once for all pages, and other choices of one of a few.

const LANGUAGES = [["both", "English + 中文"], ["en", "English"], ["zh", "中文"]];
const LEVELS = [["all", "All", "全部"], ["junior", "junior", "初级"],
  ["mid", "mid", "中级"], ["senior", "senior", "高级"]];
const MEMORY = "companion-language";

function chooser(legend, options, chosen, choose) {
  const field = make("fieldset", {}, make("legend", {}, ...legend));
  for (const [value, ...texts] of options) {
    const box = make("input", { type: "radio", value,
      name: legend[0].textContent });
    box.checked = value === chosen;
    box.addEventListener("change", () => choose(value));
    const shown = texts.length > 1 ? words(...texts) : texts;
    field.append(make("label", { class: "chip" }, box,
      make("span", {}, ...shown)));
  }
  return field;
}

// Where a page may store nothing, the language is chosen anew each time.
function recall() {
  try { return localStorage.getItem(MEMORY); } catch { return null; }
}

function remember(language) {
  try { localStorage.setItem(MEMORY, language); } catch { /* as above */ }
}

function speak(language) {
  for (const each of document.querySelectorAll(".companion-quiz"))
    each.dataset.language = language;
  for (const box of document.querySelectorAll(
    `.settings [name="Language"][value="${language}"]`)) box.checked = true;
}

function languages(chosen) {
  const known = LANGUAGES.some(([value]) => value === recall());
  const language = chosen ?? (known ? recall() : "both");
  speak(language);
  return chooser(words("Language", "语言"), LANGUAGES, language, (value) => {
    speak(value);
    remember(value);
  });
}

const panel = (...fields) => {
  const form = make("form", { class: "settings" }, ...fields);
  form.addEventListener("submit", (event) => event.preventDefault());
  return form;
};
