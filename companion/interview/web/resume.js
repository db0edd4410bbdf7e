// A mock interview outlives its page. What there is to know of it is kept by
// the browser, second by second, under one key; a page that is opened again
// offers to go on.

const EDITION = 1;

const told = (card) => [...card.querySelectorAll("input, textarea")];
const folds = (card) => [...card.querySelectorAll("details")];
const ticks = ({ type }) => type === "checkbox" || type === "radio";

// What was typed and ticked in a card, whether it was judged, and which of its
// steps are open.
const held = (card) => ({
  fields: told(card).map((each) => each[ticks(each) ? "checked" : "value"]),
  judged: Boolean(card.querySelector(".verdict:not(:empty)")),
  open: folds(card).map((each) => each.open),
});

function restore(card, { fields, judged, open }) {
  if (told(card).length !== fields.length || folds(card).length !== open.length)
    return;
  told(card).forEach((each, number) => {
    each[ticks(each) ? "checked" : "value"] = fields[number];
    each.dispatchEvent(new Event("input"));
  });
  if (judged) card.querySelector("form").requestSubmit();
  folds(card).forEach((each, number) => { each.open = open[number]; });
}

const share = (value) => value >= 0 && value <= 1;

function whole(found, facts) {
  const names = new Set(facts.map(({ id }) => id));
  const { asked, at, seconds, when, tried, card, minutes, seed } = found;
  return found.edition === EDITION && asked.length > 0
    && asked.every((id) => names.has(id)) && counts(at) && at < asked.length
    && Object.values(tried).every(([first, got, of]) =>
      share(first) && counts(got) && counts(of))
    && [seconds, minutes, seed].every(counts) && !Number.isNaN(Date.parse(when))
    && Array.isArray(card.fields) && Array.isArray(card.open);
}

// A question that the bank no longer has is not asked. If the interview stood
// at it, it goes on with the next one.
function stillAsked(found, facts) {
  const names = new Set(facts.map(({ id }) => id));
  const asked = found.asked.filter((id) => names.has(id));
  if (asked.length === found.asked.length) return found;
  const before = found.asked.slice(0, found.at).filter((id) => names.has(id));
  return { ...found, asked, at: Math.min(before.length, asked.length - 1),
    card: names.has(found.asked[found.at]) ? found.card
      : { fields: [], judged: false, open: [] } };
}

// From disk a busy Chromium gives a page now and then an empty storage of its
// own, which is gone with the page. What is to outlive a reload is therefore
// also held by the tab's history entry. Over HTTP the storage alone is asked.
const fromDisk = () => location.protocol === "file:";

function hold(text) {
  if (fromDisk())
    history.replaceState({ ...history.state, [WAITS]: text }, "");
}

// The interview that waits, or null; what is no interview is none. Of two the
// later one waits.
function waiting(facts) {
  const read = (source) => {
    try {
      const found = stillAsked(JSON.parse(source()), facts);
      return whole(found, facts) ? found : null;
    } catch { return null; }
  };
  const kept = [() => localStorage.getItem(WAITS),
    () => fromDisk() && history.state?.[WAITS]].map(read).filter(Boolean);
  const when = ({ when }) => Date.parse(when);
  return kept.sort((a, b) => when(b) - when(a))[0] ?? null;
}

// Of two windows the one that began last keeps its interview.
function keeping() {
  const owner = `${Date.now()} ${Math.random()}`;
  let begun = false;
  return (state) => {
    const text = JSON.stringify({ edition: EDITION, owner,
      when: new Date().toISOString(), ...state });
    try {
      const other = begun && JSON.parse(localStorage.getItem(WAITS));
      if (begun && other?.owner !== owner) return;
      localStorage.setItem(WAITS, text);
      begun = true;
    } catch { /* Where nothing can be kept, leaving asks. */ }
    hold(text);
  };
}

function ago(when, language) {
  const minutes = Math.max(0, Math.floor((Date.now() - Date.parse(when)) / 6e4));
  const [size, unit] = minutes < 60 ? [1, "minute"]
    : minutes < 1440 ? [60, "hour"] : [1440, "day"];
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(
    -Math.floor(minutes / size), unit);
}

// Says what waits, and asks whether to go on.
function offer({ asked, at, seconds, minutes, when, done }, goOn, anew) {
  const time = `${clock(seconds)} / ${clock(60 * minutes)}`;
  const says = done
    ? ["The report of the interview that you ended "
      + `${ago(when, "en")} is still here.`,
    `上次面试（${ago(when, "zh")}结束）的报告还在。`]
    : [`You left an interview ${ago(when, "en")}, at question ${at + 1} of `
      + `${asked.length}; the clock stands at ${time}.`,
    `上次面试还没做完（${ago(when, "zh")}离开）：第 ${at + 1} / `
      + `${asked.length} 题，计时停在 ${time}。`];
  return make("div", { class: "offer" }, line("says", ...says),
    make("p", { class: "buttons" },
      done ? button("Show it", "看报告", goOn) : button("Go on", "继续", goOn),
      button("Begin anew", "重新开始", anew)));
}
