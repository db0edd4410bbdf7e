// A mock interview: what it asks, one question after the other, a clock, and a
// report. What it picks and reports mock.py picks and reports in Python, number
// for number: a page has no kernel, and a terminal no browser.

const RANKS = LEVELS.map(([level]) => level);

// mulberry32, by Tommy Ettinger, in the public domain.
function draws(seed) {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6D2B79F5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor(((t ^ (t >>> 14)) >>> 0) * bound / 4294967296);
  };
}

function shuffled(things, below) {
  for (let last = things.length - 1; last > 0; last--) {
    const other = below(last + 1);
    [things[last], things[other]] = [things[other], things[last]];
  }
  return things;
}

function eligible(questions, { level, chapters }) {
  return questions.filter((question) =>
    !question.course
    && RANKS.indexOf(question.level) <= RANKS.indexOf(level)
    && (!chapters.length || chapters.includes(question.chapter)));
}

// Among those asked for, then answered in, the rarest way so far.
function rarest(fits, used) {
  const often = ({ asks, kind }) => [used[`asks ${asks}`] ?? 0,
    used[`kind ${kind}`] ?? 0];
  const order = (a, b) => a[0] - b[0] || a[1] - b[1];
  const [least] = fits.map(often).sort(order);
  return fits.filter((question) => !order(often(question), least));
}

function pick(questions, { level, minutes, chapters, seed }) {
  let pool = eligible(questions, { level, chapters }), left = minutes;
  const below = draws(seed), used = {}, picked = [];
  const topics = shuffled(
    [...new Set(pool.map((question) => question.chapter))], below);
  for (let before = -1; before < picked.length;) {
    before = picked.length;
    for (const topic of topics)
      for (const rank of RANKS) {
        const fits = pool.filter((question) => question.chapter === topic
          && question.level === rank && question.minutes <= left);
        if (!fits.length) continue;
        const rare = rarest(fits, used);
        const one = rare[below(rare.length)];
        pool = pool.filter((question) => question !== one);
        picked.push(one);
        for (const name of [`asks ${one.asks}`, `kind ${one.kind}`])
          used[name] = (used[name] ?? 0) + 1;
        left -= one.minutes;
      }
  }
  return picked.sort((a, b) =>
    topics.indexOf(a.chapter) - topics.indexOf(b.chapter)
    || RANKS.indexOf(a.level) - RANKS.indexOf(b.level));
}

// Marks from 0 to 1 by question; one without a mark counts for nothing.
function report(questions, marks) {
  const answered = questions.filter(({ id }) => id in marks);
  const groups = new Map();
  for (const key of ["chapter", "asks"])
    for (const question of answered) {
      const name = question[key];
      groups.set(name, [...groups.get(name) ?? [], marks[question.id]]);
    }
  const mean = (all) => all.reduce((sum, mark) => sum + mark, 0) / all.length;
  const means = [...groups].map(([name, all]) => [name, mean(all)]);
  const again = new Map();
  for (const { id, chapter, section } of answered)
    if (marks[id] < GOOD)
      again.set(chapter, new Set(again.get(chapter)).add(section));
  const given = answered.map(({ id }) => marks[id]);
  return {
    mark: given.length ? mean(given) : null,
    strengths: means.filter(([, value]) => value >= GOOD)
      .map(([name]) => name),
    gaps: means.filter(([, value]) => value < WEAK).map(([name]) => name),
    reread: [...again].map(([chapter, sections]) => [chapter, [...sections]])
      .sort(([a], [b]) => mean(groups.get(a)) - mean(groups.get(b))),
  };
}

const clock = (seconds) => [seconds / 60, seconds % 60]
  .map((part) => String(Math.floor(part)).padStart(2, "0")).join(":");

// A page that did not run for so long was asleep, as behind a closed lid. In the
// background a browser lets it run once a minute.
const ASLEEP = 150e3;

// Counts only what is neither paused nor slept through, and judges nothing. A
// system clock that is set back takes nothing away.
function timer({ seconds: spent = 0, paused = false }, ticked) {
  let before = 1000 * spent, since = paused ? null : Date.now();
  let awake = Date.now();
  const seconds = () => {
    const now = Date.now(), step = now - awake;
    if (since !== null && (step > ASLEEP || step < 0)) since += step;
    awake = now;
    return Math.round((before + (since === null ? 0 : now - since)) / 1000);
  };
  const shown = make("span", { role: "timer" });
  const tick = () => {
    shown.textContent = clock(seconds());
    ticked();
  };
  const ticking = setInterval(tick, 1000);
  const say = () => {
    pause.replaceChildren(...since === null ? words("Go on", "继续")
      : words("Pause", "暂停"));
    pause.setAttribute("aria-pressed", since === null);
  };
  const pause = button("Pause", "暂停", () => {
    seconds();
    if (since === null) since = Date.now();
    else { before += Date.now() - since; since = null; }
    say();
    tick();
  });
  say();
  shown.textContent = clock(seconds());
  return { shown, pause, seconds, paused: () => since === null,
    stop: () => clearInterval(ticking) };
}

// One card at a time, from that of `from.at` on; `keep` is called with where it
// is, `done` with how many seconds it took.
function session(place, cards, minutes, { from, keep, done }) {
  let at = (from.at ?? 0) - 1;
  const now = () => ({ at, seconds: time.seconds(), paused: time.paused(),
    card: held(cards[at]) });
  const time = timer(from, () => keep(now()));
  const leaving = new AbortController(), { signal } = leaving;
  // In a notebook the cell may have been run anew.
  addEventListener("beforeunload", (event) => {
    if (place.isConnected) event.preventDefault();
  }, { signal });
  addEventListener("pagehide", () => keep(now()), { signal });
  const where = make("span", { class: "where" });
  const end = () => {
    const last = Math.min(at, cards.length - 1), seconds = time.seconds();
    leaving.abort();
    time.stop();
    keep({ at: last, seconds, paused: false, card: held(cards[last]),
      done: true });
    done(seconds);
  };
  const next = button("Next question", "下一题", () => {
    at += 1;
    if (at === cards.length) return end();
    cards.forEach((card, each) => { card.hidden = each !== at; });
    cards[at].querySelector("details").open = true;
    where.replaceChildren(...words(`Question ${at + 1} of ${cards.length}`,
      `第 ${at + 1} / ${cards.length} 题`));
    if (at === cards.length - 1)
      next.replaceChildren(...words("To the report", "查看报告"));
    cards[at].querySelector("summary").focus({ preventScroll: true });
    bar.scrollIntoView({ block: "nearest" });
    keep(now());
  });
  const bar = make("p", { class: "bar" }, where,
    make("span", {}, time.shown, ` / ${clock(60 * minutes)}`), time.pause,
    button("End", "结束", end));
  place.replaceChildren(make("div", { class: "session" }, bar,
    make("ol", { class: "questions" }, ...cards),
    make("p", { class: "buttons" }, next)));
  if (from.card) restore(cards[from.at], from.card);
  next.click();
}

// The whole interview. `asked` has the facts of the picked questions, `card`
// that makes a card of one, its `key` and `link`, and how to link to things.
// `kept` is what an earlier page knew of it, `keep` is told what this one knows.
function interview(place, asked, again, { kept = {}, keep = () => {} } = {}) {
  const { facts, minutes, seed, card, key, link, store } = asked;
  const cards = facts.map(card), tried = { ...kept.tried };
  cards.forEach((each, number) => {
    const fact = facts[number], name = fact.id;
    each.removeAttribute("id"); // The list has this name already.
    each.querySelector(".number").textContent = number + 1;
    each.querySelector(".tags").append(make("span", { class: "seal" }));
    ready(each, key(fact), store, { name, link: link(fact),
      tried: tried[name], marked: (...mark) => { tried[name] = mark; } });
  });
  const report = (seconds) => {
    const marks = Object.fromEntries(
      Object.entries(tried).map(([name, [first]]) => [name, first]));
    reported(place, asked, { marks, seconds, cards }, again);
  };
  if (kept.done) return report(kept.seconds);
  session(place, cards, minutes, { from: kept, done: report,
    keep: (now) => keep({ ...now, asked: facts.map(({ id }) => id), minutes,
      seed, tried }) });
  keepKeys(place);
}

const part = (en, zh, items, name = "listed") => items.length
  ? [make("h4", {}, ...words(en, zh)), make("ul", { class: name }, ...items)]
  : [];

// Strengths, gaps, and what to read again; `linked` knows where that stands.
function reported(place, asked, { marks, seconds, cards }, again) {
  const { facts, minutes, seed, linked } = asked;
  const found = report(facts, marks);
  const answered = Object.keys(marks).length, took = clock(seconds);
  const percent = Math.round(100 * found.mark);
  const [mean, mean_zh] = found.mark === null ? ["", ""]
    : [`, ${percent} % on average`, `，平均得分率 ${percent} %`];
  const item = (...children) => make("li", {}, ...children);
  const asks = Object.fromEntries(ASKS.map(([name, ...texts]) =>
    [name, texts]));
  const name = (each) => item(...each in asks ? words(...asks[each])
    : [linked.chapter(each)]);
  const title = make("h3", { tabindex: -1 }, ...words("Report", "面试报告"));
  place.replaceChildren(make("div", { class: "report" }, title,
    line("says", `${answered} of ${facts.length} answered${mean}, ${took} of `
      + `${minutes} min. Seed ${seed}.`,
    `作答 ${answered} / ${facts.length} 题${mean_zh}，用时 ${took}`
      + `（计划 ${minutes} 分钟）。种子 ${seed}。`),
    ...part("Strengths", "强项", found.strengths.map(name)),
    ...part("Gaps", "弱项", found.gaps.map(name)),
    ...part("Read again", "建议重读", found.reread.map(([chapter, sections]) =>
      item(linked.chapter(chapter), make("ul", {}, ...sections.map((each) =>
        item(linked.section(chapter, each))))))),
    ...part("Asked", "本次题目", facts.map(({ id }, number) => item(
      make("span", { class: "share" }, id in marks
        ? `${Math.round(100 * marks[id])} %` : "—"),
      linked.question(id, copies(cards[number].querySelector(".prompt"))))),
    "asked"),
    make("p", { class: "buttons" }, button("Print", "打印", () => printed(place)),
      button("Another one", "再来一次", again))));
  keepKeys(place);
  title.focus();
}

// The report alone goes onto paper.
function printed(place) {
  place.dataset.printed = "";
  addEventListener("afterprint", () => place.removeAttribute("data-printed"),
    { once: true });
  print();
}
