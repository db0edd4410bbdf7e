/* What is found, in the order a reader expects, each with the sentence it was
 * found in, and a link to that sentence.
 *
 * Sphinx's searchtools.js finds titles and names. Its own list counts a title
 * only if the query is half of it, knows no other rank than "has the word", and
 * asks for every page to print the first words of its contents.
 */
"use strict";
{
  const HAN = "\\u3400-\\u9fff";
  const NUMBER = /^\d+ · |^\d+\. | \([a-z]+, \d+ minutes\)$/g;
  // A chapter explains; what one looks things up in only names them.
  const PRIOR = [[/^book\/\d/, 1], [/^book\/labs\//, 0.8], [/^/, 0.4]];
  const MOST = 240;
  // Results that come with their sentences; a further one's when it is seen.
  const FIRST = 8;
  // As many files of words; book/_ext/search.py writes them.
  const FILES = 64;

  /* What a file has that comes when it is asked for. Each is a script, which a
   * page may read from disk too. */
  Search.parts = {};
  const asked = {};
  const part = (name) => asked[name] ??= new Promise((done) => {
    const file = document.createElement("script");
    file.src = `${document.documentElement.dataset.content_root}`
      + `_static/search/${name}.js`;
    file.onload = file.onerror = () => done(Search.parts[name]);
    document.head.append(file);
  });
  const said = async (name) =>
    await part(`page-${name.replaceAll("/", "-")}`) || [];

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

  /* For each word, what it counts on which pages, by their numbers. A word that
   * no page has stands for the longer ones it is part of. */
  const look = (words) => Promise.all(words.map(async (word) => {
    const all = await part(`words-${word.codePointAt(0) % FILES}`) || {};
    if (Object.hasOwn(all, word)) return all[word];
    const longer = word.length < 3 ? []
      : Object.keys(all).filter((each) => each.includes(word));
    return Object.assign({}, ...longer.map((each) => all[each]));
  }));

  /* BM25: what few pages say tells more. */
  const rarity = (counts) => {
    const all = Search._index.docnames.length;
    const having = Object.values(counts).filter((each) => each).length;
    return Math.log(1 + (all - having + 0.5) / (having + 0.5));
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
  const suggestion = async (query) => {
    // What is written more often is nearer to the front.
    const known = await part("spelled") || [];
    const mended = query.replace(/[a-z]{4,}/gi, (typed) => {
      const word = typed.toLowerCase();
      if (known.includes(word)) return typed;
      const most = word.length < 6 ? 1 : 2;
      const near = known
        .filter((each) => Math.abs(each.length - word.length) <= most)
        .map((each) => [distance(word, each), each])
        .filter(([far]) => far <= most)
        .sort((a, b) => a[0] - b[0]);
      return near.length ? near[0][1] : typed;
    });
    return mended === query ? null : mended;
  };

  /* What is found for a query, best first. */
  const find = async (query, row) => {
    const { docnames, titles, filenames } = Search._index;
    const [typed, stems, ...terms] = Search._parseQuery(query);
    const words = [...stems].filter((word) => word); // An "s" has no stem.
    const counts = await look(words);
    const rare = counts.map(rarity);
    const weights = Object.fromEntries(docnames.map((name, page) =>
      [name, counts.reduce((sum, each, i) =>
        sum + rare[i] * (each[page] || 0), 0) / 10]));
    // A page may lack a word of one or two letters, if there are others.
    const long = counts.filter((_, i) =>
      RegExp(`...|[${HAN}]`).test(words[i]));
    const needed = long.length ? long : counts;
    Search.performTermsSearch = () => [...docnames.keys()]
      .filter((page) => needed.length && needed.every((each) => page in each))
      .map((page) =>
        [docnames[page], titles[page], "", null, 0, filenames[page]]);

    const prior = (name) => PRIOR.find(([kind]) => kind.test(name))[1];
    const rank = ([name, title, anchor, about]) => {
      const own = title.split(" > ").at(-1);
      if (about) return fit(own.split(".").at(-1), flat(query)) === 2 ? 40 : 0;
      const titled = fit(own, flat(query)) * (anchor ? 20 : 40);
      return titled + weights[name] * prior(name) / (anchor ? 2 : 1);
    };
    const sorted = (items) => items.map((item) => [rank(item), item])
      .sort((a, b) => b[0] - a[0]).map(([, item]) => item);
    // A module is its page, which is found as such.
    const found = sorted(Search._performSearch(typed, stems, ...terms)
      .filter(([, , anchor]) => !anchor.startsWith("#module-")));
    if (words.length < 2) return found;
    // The first ones are ordered again: they may have the words in a row.
    const first = found.slice(0, FIRST).filter(([, , , about]) => !about);
    await Promise.all([...new Set(first.map(([name]) => name))]
      .map(async (name) => {
        const text = (await said(name)).flatMap((each) => each.slice(1));
        const often = count(text.join("\n"), row);
        weights[name] += rare.reduce((sum, each) => sum + each, 0)
          * 2.2 * often / (often + 1.2);
      }));
    return sorted(found);
  };

  // What a question begins with, and no page is about.
  const ASKING = RegExp(
    "^((what|why|how|when|which|where|who|is|are|was|do|does|did|can)\\s+)+"
    + "((a|an|the)\\s+)?|^(什么是|什么叫|为什么|为何|如何|怎么|怎样)"
    + "|\\s*[?？]+$", "gi");

  /* What a query asks for: without the words of a question, and without what no
   * page is found by, such as a number. */
  const answerable = (query) => {
    const asked = query.trim().replace(ASKING, "").split(/\s+/);
    const pieces = asked.filter((piece) =>
      stopwords.includes(piece.toLowerCase())
      || Search._parseQuery(piece)[1].size);
    return pieces.join(" ") || query;
  };

  const show = async (typed) => {
    const query = answerable(typed);
    const wanted = patterns(query);
    const found = await find(query, wanted[0]);
    const root = document.documentElement.dataset.content_root;
    const results = found.map(([name, title, anchor, about]) => {
      const item = document.createElement("li");
      const link = item.appendChild(document.createElement("a"));
      const page = root + name + DOCUMENTATION_OPTIONS.LINK_SUFFIX;
      link.innerHTML = title.replace(" > ", " › ");
      link.href = page + anchor;
      if (about) item.append(` (${about})`);
      const quote = async () => {
        const hit = about ? null
          : sentence(await said(name), anchor.slice(1), wanted);
        if (!hit) return;
        link.href = page
          + address(hit, wanted.find((each) => hit.text.search(each) >= 0));
        item.append(excerpt(hit.text, wanted));
      };
      return { item, quote };
    });
    await Promise.all(results.slice(0, FIRST).map(({ quote }) => quote()));
    Search.output.append(...results.map(({ item }) => item));
    const seen = new IntersectionObserver((changes) => {
      for (const { target, isIntersecting } of changes) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        results.find(({ item }) => item === target).quote();
      }
    }, { rootMargin: "200px" });
    results.slice(FIRST).forEach(({ item }) => seen.observe(item));
    // The link's own sentence is marked, not every word of the page.
    localStorage.removeItem("sphinx_highlight_terms");
    _finishSearch(found.length);
    // Sphinx speaks of categories, of which there are none.
    if (!found.length)
      Search.status.textContent = "No page has all of these words.";
    const meant = found.length ? null : await suggestion(query);
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
  Search.query = (query) => addEventListener("load", () => show(query));
}
