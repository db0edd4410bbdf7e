// What was answered, kept by the browser under one key. Where nothing can be
// kept, it lasts as long as the page.

const KEPT = "companion-progress";
const VERSION = 1;
// What is typed in words has a key for each question, and is no mark.
const DRAFT = `${KEPT}-draft-`;
// A mock interview that is not over.
const WAITS = "companion-mock";

const NO_PROGRESS = ["This is no file of progress: expected JSON that this "
  + "page has exported.", "这不是进度文件：应为本页导出的 JSON。"];
const NEWER = ["This progress comes from a newer version of the course. It is "
  + "left alone.", "这份进度来自更新的版本，未作改动。"];
const UNREADABLE = ["What your browser had kept could not be read. It is left "
  + "as it is, and nothing is added to it.", "浏览器里的进度无法读取，已原样保留，不再写入。"];

const counts = (value) => Number.isInteger(value) && value >= 0;

const fits = ([name, { seen, right, got, of, when } = {}]) =>
  /^[a-z0-9]+-[a-z0-9-]+$/.test(name) && [seen, right, got, of].every(counts)
  && right <= seen && got <= of && of > 0 && !Number.isNaN(Date.parse(when));

// The entries of a text; a fault is thrown as words in both languages.
function read(text) {
  let found;
  try { found = JSON.parse(text); } catch { throw NO_PROGRESS; }
  if (found?.companion !== "progress") throw NO_PROGRESS;
  if (counts(found.version) && found.version > VERSION) throw NEWER;
  const entries = Object.entries(found.questions ?? 0);
  const { questions } = found;
  if (found.version !== VERSION || !questions || typeof questions !== "object"
    || !entries.every(([name, each]) => each && fits([name, each])))
    throw NO_PROGRESS;
  return Object.fromEntries(entries);
}

const written = (entries) => JSON.stringify(
  { companion: "progress", version: VERSION, questions: entries }, null, 1);

// Two pages may be open: the browser's copy is read before each change.
function progress() {
  const listeners = [], tries = {};
  let here = {}, keeps = true, trouble = null;

  function aside(text) {
    const name = `${KEPT}-unreadable-${new Date().toISOString()}`;
    trouble = UNREADABLE;
    localStorage.setItem(name, text);
    localStorage.removeItem(KEPT);
    trouble = [`What your browser had kept could not be read. It is still `
      + `there, under the name ${name}.`,
    `浏览器里的进度无法读取，原样保留在 ${name} 下。`];
  }

  function stored() {
    const text = localStorage.getItem(KEPT);
    try { return text === null ? {} : read(text); } catch (fault) {
      if (fault === NEWER) throw fault;
      aside(text);
      return {};
    }
  }

  function all() {
    if (keeps)
      try { here = stored(); } catch (fault) {
        keeps = false;
        if (fault === NEWER) trouble = NEWER;
      }
    return here;
  }

  function keep(entries) {
    here = entries;
    if (keeps)
      try { localStorage.setItem(KEPT, written(entries)); } catch {
        keeps = false;
      }
    for (const each of listeners) each();
  }

  // One page counts one try at a question, however often it is marked.
  function record(name, got, of, first) {
    const entries = all();
    const { seen = 0, right = 0 } = tries[name] ??= entries[name] ?? {};
    keep({ ...entries, [name]: { seen: seen + 1, right: right + (first === 1),
      got, of, when: new Date().toISOString() } });
  }

  // Of two entries the younger stays, so importing twice changes nothing.
  function merge(text) {
    const entries = { ...all() };
    const more = Object.entries(read(text));
    for (const [name, each] of more)
      if (!(Date.parse(entries[name]?.when) > Date.parse(each.when)))
        entries[name] = each;
    keep(entries);
    return more.length;
  }

  function draft(name) {
    const tried = (act) => { try { return act(); } catch { return null; } };
    return { text: tried(() => localStorage.getItem(DRAFT + name)),
      keep: (text) => tried(() => text
        ? localStorage.setItem(DRAFT + name, text)
        : localStorage.removeItem(DRAFT + name)) };
  }

  function clear() {
    for (const name of keeps ? Object.keys(localStorage) : [])
      if (name.startsWith(DRAFT) || name === WAITS)
        localStorage.removeItem(name);
    // From disk the tab's history entry holds an interview as well: resume.js.
    if (history.state?.[WAITS])
      history.replaceState({ ...history.state, [WAITS]: undefined }, "");
    keep({});
  }

  return { all, record, merge, draft, clear,
    trouble: () => trouble, listen: (each) => listeners.push(each) };
}

function download(name, text) {
  const address = URL.createObjectURL(
    new Blob([text], { type: "application/json" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

const button = (en, zh, act) => {
  const element = make("button", { type: "button", ...OWN_KEYS },
    ...words(en, zh));
  element.addEventListener("click", act);
  return element;
};

// Export, import and reset, folded under how many questions were answered.
function keeper(store, names) {
  const summary = make("summary"), status = live("verdict");
  const say = (state, ...texts) => status.replaceChildren(line(state, ...texts));
  const file = make("input", { type: "file", accept: ".json" });
  file.addEventListener("change", async () => {
    try {
      const count = store.merge(await file.files[0].text());
      say("good", `${count} questions imported.`, `已导入 ${count} 题。`);
    } catch (fault) {
      say("bad", ...(Array.isArray(fault) ? fault : NO_PROGRESS));
    }
    file.value = "";
  });
  const row = make("p", { class: "buttons" });
  const forget = button("Reset", "清空", () => {
    const count = Object.keys(store.all()).length;
    const back = (act) => () => {
      act();
      row.replaceChildren(...parts);
      forget.focus();
    };
    const no = button("Keep it", "保留", back(() => {}));
    row.replaceChildren(...words(`Forget ${count} questions?`,
      `清空 ${count} 题的记录？`), button("Forget", "清空", back(() => {
      store.clear();
      say("good", "Forgotten.", "已清空。");
    })), no);
    no.focus();
  });
  const parts = [button("Export", "导出", () =>
    download("companion-progress.json", written(store.all()))),
  labelled("Import", "导入", file, { class: "file" }), forget];
  row.append(...parts);
  const count = () => {
    const known = store.all();
    const done = names.filter((name) => name in known).length;
    summary.replaceChildren(...words(`Progress: ${done} of ${names.length}`,
      `进度：${done} / ${names.length}`));
  };
  store.listen(count);
  count();
  const box = make("details", { class: "keeper" }, summary, row, status);
  if (store.trouble()) {
    say("bad", ...store.trouble());
    box.open = true;
  }
  return box;
}
