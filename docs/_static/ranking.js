"use strict";
/* Ranks the pages of the site by the words of a query: BM25 over the counts in search_words.js, times the weight of the page.
   Names of the package come first. Sphinx shows the results: this replaces only its ranking. */
const Ranking = {
  K: 8,
  B: 0.6,
  GREEK: new Map(Object.entries({ "ε": "epsilon", "δ": "delta", "ρ": "rho", "π": "pi" })),

  /* The groups of index words that each word of a query may mean, with their weights. */
  groups(query) {
    const stemmer = new Stemmer();
    const stem = (word) => stemmer.stemWord((Ranking.GREEK.get(word) || word).toLowerCase());
    const known = (word) => Object.hasOwn(SearchWords.words, word);
    const found = [];
    for (const [whole] of query.matchAll(/[\p{L}\p{N}_]+(?:[-.][\p{L}\p{N}_]+)*/gu)) {
      const parts = whole.split(/[-.]/);
      const joined = stem(parts.join(""));
      for (const word of known(joined) ? [joined] : parts.filter((part) => !stopwords.has(part.toLowerCase())).map(stem))
        found.push(known(word) ? [[word, 1]] : Ranking.similar(word));
    }
    return found;
  },

  /* Words that begin with an unknown one, or else differ from it in one letter. */
  similar(word) {
    const all = Object.keys(SearchWords.words);
    const longer = word.length > 2 ? all.filter((other) => other.startsWith(word)) : [];
    if (longer.length) return longer.map((other) => [other, 0.7]);
    return word.length > 3 ? all.filter((other) => Ranking.nearly(word, other)).map((other) => [other, 0.4]) : [];
  },

  nearly(one, other) {
    if (Math.abs(one.length - other.length) > 1) return false;
    let start = 0;
    while (start < one.length && one[start] === other[start]) start++;
    const rest = (skipOne, skipOther) => one.slice(start + skipOne) === other.slice(start + skipOther);
    const swapped = one[start] + one[start + 1] === other[start + 1] + other[start] && rest(2, 2);
    return rest(1, 1) || rest(1, 0) || rest(0, 1) || swapped;
  },

  /* Page numbers and scores, the best first. */
  pages(query) {
    const { pages, weights, lengths, words } = SearchWords;
    const mean = lengths.reduce((sum, length) => sum + length, 0) / pages.length;
    const groups = Ranking.groups(query);
    const scores = new Map();
    for (const group of groups) {
      const best = new Map();
      for (const [word, weight] of group) {
        const rarity = Math.log(1 + pages.length / words[word].length);
        for (const [page, count] of words[word]) {
          const length = 1 - Ranking.B + (Ranking.B * lengths[page]) / mean;
          const score = (weight * rarity * count * (Ranking.K + 1)) / (count + Ranking.K * length);
          best.set(page, Math.max(score, best.get(page) || 0));
        }
      }
      for (const [page, score] of best) {
        const [sum, matched] = scores.get(page) || [0, 0];
        scores.set(page, [sum + score, matched + 1]);
      }
    }
    const asked = new Set(groups.flat().map(([word]) => word));
    return [...scores]
      .map(([page, [sum, matched]]) => {
        const title = Ranking.groups(SearchWords.titles[page].split(".").pop());
        const covered = title.filter((group) => group.some(([word]) => asked.has(word))).length / (title.length || 1);
        return [page, sum * weights[page] * (1 + covered) * (matched / groups.length) ** 3];
      })
      .sort((a, b) => b[1] - a[1] || a[0] - b[0]);
  },

  /* Objects whose full name, or its last parts, is the query. */
  objects(query) {
    const name = query.trim().replace(/^md\./, "mechdesign.").replace(/\(.*\)$/, "");
    const names = Object.entries(SearchWords.names);
    const top = `mechdesign.${name}`.toLowerCase();
    const exact = names.filter(([full]) => full === name || full.toLowerCase() === top);
    const found = exact.length ? exact : names.filter(([full]) => /[A-Z._]/.test(name) && full.endsWith(`.${name}`));
    return found.slice(0, 10).sort(([a], [b]) => a.split(".").length - b.split(".").length || a.length - b.length);
  },

  /* Results as Sphinx shows them, the best first: [page, title, anchor, description, score, file, kind]. */
  results(query) {
    const { pages, titles } = SearchWords;
    const objects = Ranking.objects(query).map(([name, [page, anchor]]) => [
      pages[page], name, `#${anchor}`, null, 1000, `${pages[page]}.html`, "object",
    ]);
    const seen = new Set(objects.map(([page]) => page));
    const others = Ranking.pages(query)
      .filter(([page]) => !seen.has(pages[page]))
      .map(([page, score]) => [pages[page], titles[page], "", null, score, `${pages[page]}.html`, "text"]);
    return [...objects, ...others].slice(0, 50);
  },
};

/* Sphinx takes the best from the end. */
if (typeof Search !== "undefined") Search._performSearch = (query) => Ranking.results(query).reverse();
