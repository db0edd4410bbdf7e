// Which questions a mock interview asks, and what it shows: mock.py in
// JavaScript, number for number.

const RANKS = ["junior", "mid", "senior"];
const STRENGTH = 0.75, GAP = 0.5;

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
    RANKS.indexOf(question.level) <= RANKS.indexOf(level)
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
    if (marks[id] < STRENGTH)
      again.set(chapter, new Set(again.get(chapter)).add(section));
  const given = answered.map(({ id }) => marks[id]);
  return {
    mark: given.length ? mean(given) : null,
    strengths: means.filter(([, value]) => value >= STRENGTH)
      .map(([name]) => name),
    gaps: means.filter(([, value]) => value < GAP).map(([name]) => name),
    reread: [...again].map(([chapter, sections]) => [chapter, [...sections]])
      .sort(([a], [b]) => mean(groups.get(a)) - mean(groups.get(b))),
  };
}
