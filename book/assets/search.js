/* What is found, in the order a reader expects, each with the sentence it was
 * found in, and a link to that sentence.
 *
 * Sphinx's searchtools.js finds the pages. Its own list counts a title only if
 * the query is half of it, knows no other rank than "has the word", and asks
 * for every page to print the first words of its contents.
 */
"use strict";
{
  const HAN = "\\u3400-\\u9fff";
  const NUMBER = /^\d+ · |^\d+\. | \([a-z]+, \d+ minutes\)$/g;
  // A chapter explains; what one looks things up in only names them.
  const PRIOR = [[/^book\/\d/, 1], [/^book\/labs\//, 0.8], [/^/, 0.4]];
  const MOST = 240;

  const flat = (text) => text.toLowerCase().replace(/\s+/g, " ")
    .replace(RegExp(` ?([${HAN}]) ?`, "g"), "$1").trim();
  const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

  /* A title's English and its 中文, without its number. */
  const halves = (title) => {
    const text = title.replace(NUMBER, "");
    const at = text.search(RegExp(`[${HAN}]`));
    return (at < 0 ? [text] : [text.slice(0, at), text.slice(at)])
      .map(flat).filter((half) => half);
  };

  /* How well a title fits: 2 is the query itself, below 1 it has it. */
  const fit = (title, query) => Math.max(0, ...halves(title).map((half) =>
    half === query ? 2 : half.includes(query) ? query.length / half.length : 0));

  /* Expressions for the query as a whole, and for each of its words. */
  const patterns = (query) => {
    const stemmer = new Stemmer();
    const pieces = flat(query).match(RegExp(`[${HAN}]+|[^\\s${HAN}]+`, "g"));
    const start = (text) => (/^\w/.test(text) ? "\\b" : "");
    const stem = (piece) => {
      const root = stemmer.stemWord(piece);
      let same = 0;
      while (same < root.length && root[same] === piece[same]) same += 1;
      return piece.slice(0, Math.max(same, 2));
    };
    const words = pieces.filter((piece) => !stopwords.includes(piece));
    return [start(pieces[0]) + pieces.map(escaped).join("[\\s-]*"),
      ...words.map((word) => start(word) + escaped(stem(word)))]
      .map((pattern) => RegExp(`${pattern}[\\p{Ll}]*`, "giu"));
  };

  const count = (text, pattern) => (text.match(pattern) || []).length;

  /* BM25: what a page says often for its length, of what few pages say. */
  const weigh = (pages, wanted) => {
    const texts = Object.entries(pages).map(([name, parts]) =>
      [name, parts.flatMap((part) => part.slice(1)).join("\n")]);
    const mean = texts.reduce((sum, [, text]) => sum + text.length, 1)
      / Math.max(texts.length, 1);
    const weights = Object.fromEntries(texts.map(([name]) => [name, 0]));
    for (const pattern of wanted) {
      const counts = texts.map(([, text]) => count(text, pattern));
      const having = counts.filter((each) => each).length;
      const rare = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5));
      texts.forEach(([name, text], i) => {
        const length = 0.25 + 0.75 * text.length / mean;
        weights[name] += rare * counts[i] * 2.2 / (counts[i] + 1.2 * length);
      });
    }
    return weights;
  };

  /* The sentence of a page, or of a section, that has most of the query. */
  const sentence = (parts, section, wanted) => {
    let best = null;
    for (const [where, ...said] of parts) {
      if (section && where !== section) continue;
      for (const text of said) {
        const has = wanted.filter((each) => text.search(each) >= 0).length
          + (text.search(wanted[0]) >= 0 ? wanted.length : 0);
        if (has > (best ? best.has : 0)) best = { where, text, has };
      }
    }
    return best;
  };

  /* The address of a sentence: a browser scrolls there and marks it. */
  const address = ({ where, text }, pattern) => {
    const at = Math.max(text.search(pattern), 0);
    const from = text.lastIndexOf("…", at) + 1;
    const to = text.indexOf("…", at);
    const plain = text.slice(from, to < 0 ? undefined : to)
      .replace(/^\W*(?=\w)/, "").trim();
    const coded = (part) => encodeURIComponent(part.trim())
      .replace(/-/g, "%2D");
    const first = plain.slice(0, 40).replace(/\s\S*$/, "");
    const last = plain.slice(-40).replace(/^\S*\s/, "");
    return `#${where}:~:text=`
      + (plain.length < 100 ? coded(plain) : `${coded(first)},${coded(last)}`);
  };

  /* The sentence with what was found in it marked; a long one is cut. */
  const excerpt = (text, wanted) => {
    const shown = document.createElement("p");
    shown.className = "context";
    const at = Math.max(text.search(wanted[0]), 0);
    const from = at > MOST - 60 ? text.indexOf(" ", at - 80) + 1 : 0;
    const piece = text.slice(from, from + MOST);
    const both = RegExp(wanted.map((each) => each.source).join("|"), "giu");
    let done = 0;
    shown.append(from ? "… " : "");
    for (const match of piece.matchAll(both)) {
      shown.append(piece.slice(done, match.index));
      const mark = shown.appendChild(document.createElement("mark"));
      mark.textContent = match[0];
      done = match.index + match[0].length;
    }
    shown.append(piece.slice(done));
    shown.append(from + MOST < text.length ? " …" : "");
    return shown;
  };

  /* How many letters to add, drop, change or swap. */
  const distance = (a, b) => {
    const rows = [[...Array(b.length + 1).keys()]];
    for (let i = 1; i <= a.length; i += 1) {
      rows[i] = [i];
      for (let j = 1; j <= b.length; j += 1) {
        const same = a[i - 1] === b[j - 1] ? 0 : 1;
        rows[i][j] = Math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1,
          rows[i - 1][j - 1] + same);
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
          rows[i][j] = Math.min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
    return rows[a.length][b.length];
  };

  /* The query with each word that nobody wrote replaced by the nearest. */
  const suggestion = (pages, query) => {
    const often = {};
    for (const part of Object.values(pages).flat())
      for (const text of part.slice(1))
        for (const word of text.toLowerCase().match(/[a-z]{4,}/g) || [])
          often[word] = (often[word] || 0) + 1;
    const mended = query.replace(/[a-z]{4,}/gi, (typed) => {
      const word = typed.toLowerCase();
      if (often[word]) return typed;
      const most = word.length < 6 ? 1 : 2;
      const near = Object.keys(often)
        .filter((each) => Math.abs(each.length - word.length) <= most)
        .map((each) => [distance(word, each), -often[each], each])
        .filter(([far]) => far <= most)
        .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      return near.length ? near[0][2] : typed;
    });
    return mended === query ? null : mended;
  };

  const show = (query, pages) => {
    const wanted = patterns(query);
    const [typed, ...terms] = Search._parseQuery(query);
    const root = document.documentElement.dataset.content_root;
    const weights = weigh(pages, wanted);
    const prior = (name) => PRIOR.find(([kind]) => kind.test(name))[1];
    const rank = ([name, title, anchor, about]) => {
      const own = title.split(" > ").at(-1);
      if (about) return fit(own.split(".").at(-1), flat(query)) === 2 ? 40 : 0;
      const titled = fit(own, flat(query)) * (anchor ? 20 : 40);
      return titled + (weights[name] || 0) * prior(name) / (anchor ? 2 : 1);
    };
    // A module is its page, which is found as such.
    const found = Search._performSearch(typed, ...terms)
      .filter(([, , anchor]) => !anchor.startsWith("#module-"))
      .map((item) => [rank(item), item]).sort((a, b) => b[0] - a[0]);
    for (const [, [name, title, anchor, about]] of found) {
      const item = Search.output.appendChild(document.createElement("li"));
      const link = item.appendChild(document.createElement("a"));
      const page = root + name + DOCUMENTATION_OPTIONS.LINK_SUFFIX;
      const hit = about ? null
        : sentence(pages[name] || [], anchor.slice(1), wanted);
      link.innerHTML = title.replace(" > ", " › ");
      link.href = page + (hit
        ? address(hit, wanted.find((each) => hit.text.search(each) >= 0))
        : anchor);
      if (about) item.append(` (${about})`);
      if (hit) item.append(excerpt(hit.text, wanted));
    }
    // The link's own sentence is marked, not every word of the page.
    localStorage.removeItem("sphinx_highlight_terms");
    _finishSearch(found.length);
    const meant = found.length ? null : suggestion(pages, query);
    if (meant) {
      const offer = document.createElement("p");
      const link = document.createElement("a");
      link.href = `?q=${encodeURIComponent(meant)}`;
      link.textContent = meant;
      offer.append("Did you mean ", link, "?");
      Search.status.after(offer);
    }
  };

  // Once the page is loaded: the theme follows the links that it has till then,
  // and knows no link to a sentence.
  Search.query = (query) => addEventListener("load", () => {
    const file = document.createElement("script");
    file.src = `${document.documentElement.dataset.content_root}`
      + "_static/sentences.js";
    file.onload = () => show(query, sentences);
    file.onerror = () => show(query, {});
    document.head.append(file);
  });
}
