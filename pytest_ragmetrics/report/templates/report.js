// Everything is on the page already. This adds finding, sorting, and bringing into sight what a mark leads to.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  const tests = Array.from(list.querySelectorAll(":scope > .test"));
  const controls = { q: byId("search"), outcome: byId("outcome"), metric: byId("metric"), sort: byId("sort") };
  const metricNames = Array.from(controls.metric.options, (option) => option.value).slice(1);

  // What the list is filtered and sorted by.
  const rows = tests.map((element, position) => ({
    element,
    position,
    status: element.dataset.o,
    duration: Number(element.dataset.d),
    name: element.querySelector(".name").textContent,
    scores: element.dataset.s.split(" ").filter(Boolean).map((score) => {
      const [metric, value, outcome] = score.split(":");
      return { metric: metricNames[metric], value: value === "" ? null : Number(value), outcome };
    }),
    text: null,
  }));
  const folded = (text) => text.normalize("NFC").toLowerCase();
  const collator = new Intl.Collator("en", { numeric: true });

  // What came from outside, without what the page says in between; read when a test is first searched.
  const foreign = ".name, .why, .metric, .reason, .text, .claim, .near dd, .rest dd, pre";
  const own = ".n, .sr, .fold > summary, .none";
  const wordsOf = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) =>
      node.nodeType === Node.ELEMENT_NODE && node.matches(own) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const words = [];
    while (walker.nextNode()) {
      if (walker.currentNode.nodeType === Node.TEXT_NODE) words.push(walker.currentNode.data);
    }
    return words.join("");
  };
  const searchable = (row) => {
    row.text ??= folded(Array.from(row.element.querySelectorAll(foreign), wordsOf).join("\n"));
    return row.text;
  };

  const scoresOf = (row, metric) => row.scores.filter((score) => !metric || score.metric === metric);

  const outcomeMatches = (row, outcome, metric) => {
    if (outcome === "scored") return scoresOf(row, metric).some((score) => score.value !== null);
    if (outcome.startsWith("score-")) return scoresOf(row, metric).some((score) => `score-${score.outcome}` === outcome);
    return row.status === outcome;
  };

  const matches = (row, state, words) =>
    (!state.metric || scoresOf(row, state.metric).length > 0) &&
    (!state.outcome || outcomeMatches(row, state.outcome, state.metric)) &&
    words.every((word) => searchable(row).includes(word));

  // Tests without a score come last, whichever way the scores run.
  const extreme = (row, metric, pick, without) => {
    const values = scoresOf(row, metric).map((score) => score.value).filter((value) => value !== null);
    return values.length ? pick(...values) : without;
  };
  const orders = {
    lowest: (metric) => (a, b) => extreme(a, metric, Math.min, Infinity) - extreme(b, metric, Math.min, Infinity),
    highest: (metric) => (a, b) => extreme(b, metric, Math.max, -Infinity) - extreme(a, metric, Math.max, -Infinity),
    name: () => (a, b) => collator.compare(a.name, b.name),
    slowest: () => (a, b) => b.duration - a.duration,
  };

  const stateOf = () => Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value]));

  const setState = (state) => {
    for (const [name, control] of Object.entries(controls)) {
      control.value = state[name] ?? "";
      if (control.selectedIndex === -1) control.value = "";
    }
  };

  const queryOf = (state) => new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();

  let sorted = "";
  const show = () => {
    const state = stateOf();
    const words = folded(state.q).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const hidden = !matches(row, state, words);
      if (row.element.hidden !== hidden) row.element.hidden = hidden;
      if (!hidden) shown += 1;
    }
    const order = state.sort && `${state.sort} ${state.metric}`;
    if (order !== sorted) {
      const compare = orders[state.sort]?.(state.metric);
      // Infinity minus Infinity is NaN, which is no order: fall back on the first one.
      const wanted = compare ? [...rows].sort((a, b) => compare(a, b) || a.position - b.position) : rows;
      list.append(...wanted.map((row) => row.element));
      sorted = order;
    }
    byId("nothing").hidden = shown > 0 || rows.length === 0;
    byId("count").textContent = shown === rows.length ? `${shown} tests` : `${shown} of ${rows.length} tests`;
    const query = queryOf(state);
    for (const link of document.querySelectorAll("[data-filter]")) {
      if (link.dataset.filter === query) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    return query;
  };

  const remember = (query) => history.replaceState(null, "", query ? `#${query}` : location.pathname + location.search);

  const filterBy = (query) => {
    setState(Object.fromEntries(new URLSearchParams(query)));
    remember(show());
  };

  // The contexts stand beside the response where there is room; then their pane scrolls and the page need not.
  const scrollPane = (target) => {
    const pane = target.closest(".sources");
    if (!pane || pane.scrollHeight <= pane.clientHeight || getComputedStyle(pane).overflowY === "visible") return;
    const offset = target.getBoundingClientRect().top - pane.getBoundingClientRect().top;
    if (offset < 0 || offset > pane.clientHeight * 0.8) pane.scrollTop += offset - pane.clientHeight / 3;
  };

  const bring = (target) => {
    scrollPane(target);
    const box = target.getBoundingClientRect();
    const whole = target.matches(".test, section") || box.height > innerHeight / 2;
    if (whole || box.top < 96 || box.bottom > innerHeight) target.scrollIntoView({ block: whole ? "start" : "center" });
  };

  const reveal = (id) => {
    const target = byId(id);
    if (!target) return false;
    const test = target.closest(".test");
    if (test?.hidden) {
      setState({});
      show();
    }
    for (let element = target; element; element = element.parentElement) {
      if (element.tagName === "DETAILS") element.open = true;
    }
    document.querySelectorAll(".here").forEach((element) => element.classList.remove("here"));
    target.classList.add("here");
    bring(target);
    const stop = target.matches(".test") ? target.querySelector("summary") : target;
    if (!stop.matches("a, summary")) stop.tabIndex = -1;
    stop.focus({ preventScroll: true });
    return true;
  };

  // A hash is the name of a place, or else a filter.
  const follow = () => {
    let hash = location.hash.slice(1);
    try {
      hash = decodeURIComponent(hash);
    } catch {
      return;
    }
    if (hash && reveal(hash)) return;
    setState(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
    show();
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    if (link.dataset.filter !== undefined) {
      filterBy(link.getAttribute("aria-current") ? "" : link.dataset.filter);
      byId("tests").scrollIntoView({ block: "start" });
      list.querySelector(".test:not([hidden]) > summary")?.focus({ preventScroll: true });
      return;
    }
    const hash = link.getAttribute("href");
    if (hash !== location.hash) history.pushState(null, "", hash);
    reveal(hash.slice(1));
  });

  // Whatever shares a number lights up together, and what has the focus brings its evidence along.
  let lit = [];
  const light = (event) => {
    lit.forEach((element) => element.classList.remove("hot"));
    const exhibit = event.target.closest(".exhibit");
    const numbers = event.target.closest("[data-n]")?.dataset.n.split(" ") ?? [];
    lit = exhibit ? numbers.flatMap((number) =>
      Array.from(exhibit.querySelectorAll(`mark[data-n~="${number}"], li[data-n="${number}"]`))) : [];
    lit.forEach((element) => element.classList.add("hot"));
    if (event.type === "focusin" && !event.target.closest(".sources")) {
      const evidence = lit.find((element) => element.closest(".sources [open]"));
      if (evidence) scrollPane(evidence);
    }
  };
  list.addEventListener("mouseover", light);
  list.addEventListener("focusin", light);

  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches(".test > summary")) return;
    const shown = Array.from(list.children).filter((element) => !element.hidden);
    const next = shown[shown.indexOf(event.target.parentElement) + step];
    if (next) {
      event.preventDefault();
      next.querySelector("summary").focus();
    }
  });

  let pending = 0;
  controls.q.addEventListener("input", () => {
    clearTimeout(pending);
    pending = setTimeout(() => remember(show()), 120);
  });
  for (const name of ["outcome", "metric", "sort"]) {
    controls[name].addEventListener("change", () => remember(show()));
  }
  byId("toolbar").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(pending);
    remember(show());
  });
  byId("clear").addEventListener("click", () => {
    filterBy("");
    controls.q.focus();
  });
  addEventListener("hashchange", follow);
  addEventListener("popstate", follow);
  byId("toolbar").hidden = false;
  follow();
})();
