// The list of tests out of the data packed into this page: finding, sorting, opening, and lighting up what belongs
// together. Texts from outside become text nodes and nothing else.
const PAGE = 100;
const byId = (id) => document.getElementById(id);
const list = byId("list");
const controls = Object.fromEntries(["search", "outcome", "metric", "file", "mark", "sort"].map((id) => [id, byId(id)]));

// --- Unpacking and building -------------------------------------------------------------------------------------

const unpack = async (element) => {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let index = 0; index < packed.length; index += 1) bytes[index] = packed.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
};

// The elements and attributes of test.html.jinja; anything else is refused, so that a text that was not escaped
// becomes an error and no element. The policy of the page forbids the browser's own parser for markup from a script.
const TAGS = /^(?:a|b|bdi|dd|del|details|div|dl|dt|h[34]|ins|li|mark|ol|p|pre|section|small|span|summary)$/;
const DRAWN = /^(?:svg|path|circle)$/;
const ATTRIBUTES = /^(?:class|id|href|dir|open|tabindex|role|viewBox|d|cx|cy|r|data-n|aria-(?:label|hidden))$/;
const TAG = /<(\/?)([a-z0-9]+)((?: [A-Za-z-]+="[^"<>]*")*)(\/?)>/y;
const ATTRIBUTE = /([A-Za-z-]+)="([^"]*)"/g;
const ESCAPED = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&#34;": '"', "&#39;": "'" };
const unescaped = (text) => text.replace(/&(?:amp|lt|gt|#34|#39);/g, (escape) => ESCAPED[escape]);

// Calls back for every start tag, end tag and text of a fragment of markup.
const read = (markup, { start, end, text }) => {
  for (let place = 0; place < markup.length;) {
    const next = markup.indexOf("<", place);
    if (next !== place) {
      text(unescaped(markup.slice(place, next < 0 ? markup.length : next)));
      if (next < 0) return;
    }
    TAG.lastIndex = next;
    const [tag, closing, name, attributes, empty] = TAG.exec(markup) ?? [];
    if (!tag) throw new Error(`no tag of this page: ${markup.slice(next, next + 40)}`);
    if (!closing) start(name, attributes);
    if (closing || empty) end(name);
    place = TAG.lastIndex;
  }
};

const create = (name, attributes) => {
  if (!TAGS.test(name) && !DRAWN.test(name)) throw new Error(`not an element of this page: ${name}`);
  const element = DRAWN.test(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [, key, value] of attributes.matchAll(ATTRIBUTE)) {
    if (!ATTRIBUTES.test(key) || (key === "href" && !value.startsWith("#"))) throw new Error(`not an attribute of this page: ${key}`);
    element.setAttribute(key, unescaped(value));
  }
  return element;
};

const build = (markup) => {
  const root = document.createDocumentFragment();
  let parent = root;
  read(markup, {
    start: (name, attributes) => { parent = parent.appendChild(create(name, attributes)); },
    end: () => { parent = parent.parentNode; },
    text: (text) => parent.append(text),
  });
  return root;
};

// Only texts from outside are searched: those in <bdi> and dir="auto", without the page's own words in them. They
// are read across the marks in them.
const INLINE = /^(?:a|mark|del|ins|details|summary)$/;
const OUTSIDE = / dir="auto"/;
const OWN = / class="(?:n |sr"|none")/;
const wordsOf = (markup) => {
  const open = [{ outside: false, block: true }];
  let words = "";
  read(markup, {
    start: (name, attributes) => {
      const { outside } = open.at(-1);
      const own = OWN.test(attributes) || (name === "summary" && outside);
      const block = !own && !INLINE.test(name);
      open.push({ outside: !own && (outside || name === "bdi" || OUTSIDE.test(attributes)), block });
      if (block) words += "\n";
    },
    end: () => { if (open.pop().block) words += "\n"; },
    text: (text) => { if (open.at(-1).outside) words += text; },
  });
  return words;
};

const folded = (text) => text.normalize("NFC").toLowerCase();
const chunks = Array.from(document.querySelectorAll("script.chunk"));
let rows = [];
try {
  rows = await unpack(byId("index"));
} catch (error) {
  list.textContent = `The list of tests could not be unpacked (${error.message}). With scripts switched off the page shows it plainly.`;
  return;
}
const rowsById = new Map(rows.map((row) => [row.id, row]));
const rowOf = new WeakMap();
rows.forEach((row, position) => {
  row.position = position;
  row.words = folded(wordsOf(row.row));
  row.opened = false;
});

// --- Which tests are shown, and in which order ------------------------------------------------------------------

let reading = null;
let allRead = chunks.length === 0;
const readAll = () => {
  reading ??= (async () => {
    const within = chunks.map(() => []);
    rows.forEach((row) => within[row.body[0]].push(row));
    for (const [number, chunk] of chunks.entries()) {
      const bodies = await unpack(chunk);
      for (const row of within[number]) row.words += `\n${folded(wordsOf(bodies[row.body[1]]))}`;
    }
    allRead = true;
    if (controls.search.value) show();
  })();
};

const collator = new Intl.Collator("en", { numeric: true });
const scoresOf = (row, metric) => row.scores.filter(([name]) => !metric || name === metric);
const outcomeMatches = (row, { outcome, metric }) => {
  // Vacuous scores come without their value.
  if (outcome === "score-vacuous") return scoresOf(row, metric).some(([, value, score]) => value === null && score !== "unscored");
  if (outcome === "scored") return scoresOf(row, metric).some(([, value]) => value !== null);
  if (outcome.startsWith("score-")) return scoresOf(row, metric).some((score) => `score-${score[2]}` === outcome);
  return row.status === outcome;
};
const matches = (row, state, words) =>
  (!state.metric || scoresOf(row, state.metric).length > 0) &&
  (!state.outcome || outcomeMatches(row, state)) &&
  (!state.file || row.file === state.file) &&
  (!state.mark || row.marks.includes(state.mark)) &&
  words.every((word) => row.words.includes(word));

// Tests without a score come last, whichever way the scores run.
const extreme = (row, metric, pick, without) => {
  const values = scoresOf(row, metric).map(([, value]) => value).filter((value) => value !== null);
  return values.length ? pick(...values) : without;
};
const orders = {
  lowest: (metric) => (a, b) => extreme(a, metric, Math.min, Infinity) - extreme(b, metric, Math.min, Infinity),
  highest: (metric) => (a, b) => extreme(b, metric, Math.max, -Infinity) - extreme(a, metric, Math.max, -Infinity),
  change: () => (a, b) => (a.change ?? Infinity) - (b.change ?? Infinity),
  name: () => (a, b) => collator.compare(a.name, b.name),
  slowest: () => (a, b) => b.duration - a.duration,
  dearest: () => (a, b) => b.cost - a.cost || b.tokens - a.tokens,
};

const stateOf = () => Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value]));
const setState = (state) => {
  for (const [name, control] of Object.entries(controls)) {
    control.value = state[name] ?? "";
    if (control.selectedIndex === -1) control.value = "";
  }
};
const queryOf = (state) => new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();

let page = 0;
let current = null;
let matching = [];
let shown = [];
let ordered = { key: "", rows };

const find = () => {
  const state = stateOf();
  if (state.search && !allRead) readAll();
  const key = state.sort && `${state.sort} ${state.metric}`;
  if (key !== ordered.key) {
    // Infinity minus Infinity is NaN, which is no order: fall back on the first one.
    const compare = orders[state.sort]?.(state.metric);
    ordered = { key, rows: compare ? [...rows].sort((a, b) => compare(a, b) || a.position - b.position) : rows };
  }
  const words = folded(state.search).split(/\s+/).filter(Boolean);
  matching = ordered.rows.filter((row) => matches(row, state, words));
};

const show = () => {
  find();
  const pages = Math.max(1, Math.ceil(matching.length / PAGE));
  page = Math.min(Math.max(page, 0), pages - 1);
  const before = shown;
  shown = matching.slice(page * PAGE, (page + 1) * PAGE);
  const kept = new Set(shown);
  for (const row of before) if (!kept.has(row)) row.element = null;
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  list.replaceChildren(...shown.map(elementOf));
  if (focused?.isConnected) focused.focus({ preventScroll: true });
  for (const row of shown) if (row.opened) setOpen(row, true);
  rove(shown.includes(current) ? current : shown[0]);
  list.dataset.sort = controls.sort.value;
  showCounts(pages);
};

const showCounts = (pages) => {
  const number = (value) => value.toLocaleString("en");
  const all = `${number(rows.length)} ${rows.length === 1 ? "test" : "tests"}`;
  const waiting = controls.search.value && !allRead ? ", still reading …" : "";
  byId("count").textContent = (matching.length === rows.length ? all : `${number(matching.length)} of ${all}`) + waiting;
  byId("nothing").hidden = matching.length > 0 || rows.length === 0 || Boolean(waiting);
  byId("pager").hidden = pages === 1;
  byId("span").textContent = `${number(page * PAGE + 1)} to ${number(page * PAGE + shown.length)} of ${number(matching.length)}`;
  byId("earlier").disabled = page === 0;
  byId("later").disabled = page === pages - 1;
  const query = queryOf(stateOf());
  for (const link of document.querySelectorAll("[data-filter]")) {
    if (link.dataset.filter === query) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
};

// --- One test -----------------------------------------------------------------------------------------------------

const elementOf = (row) => {
  if (row.element) return row.element;
  row.element = create("details", ` class="test ${row.status}"`);
  row.element.append(create("summary", ' class="row" tabindex="-1"'));
  row.element.firstChild.append(build(row.row));
  rowOf.set(row.element, row);
  return row.element;
};

let latest = [-1, null];
const bodyOf = async (row) => {
  const [number, position] = row.body;
  if (latest[0] !== number) latest = [number, unpack(chunks[number])];
  return build((await latest[1])[position]);
};

const setOpen = async (row, open) => {
  row.opened = open;
  const element = row.element;
  if (open && !element.querySelector(":scope > .body")) {
    const body = await bodyOf(row);
    // It may have been closed, or opened twice, while its body was unpacked.
    if (!row.opened || element.querySelector(":scope > .body")) return;
    element.append(body);
  }
  element.open = open;
};

const summaryOf = (row) => row.element.firstChild;
const rove = (row) => {
  for (const each of list.querySelectorAll(".row[tabindex='0']")) each.tabIndex = -1;
  if (row?.element) summaryOf(row).tabIndex = 0;
};

const goTo = async (row) => {
  find();
  if (!matching.includes(row)) {
    setState({});
    find();
  }
  page = Math.floor(matching.indexOf(row) / PAGE);
  current = row;
  show();
  await setOpen(row, true);
  if (!row.element) return;
  row.element.scrollIntoView({ block: "start" });
  summaryOf(row).focus({ preventScroll: true });
};

// --- The address: an open test's id, then what the list is filtered by ---------------------------------------------

const saveAddress = (how) => {
  const id = current ? encodeURIComponent(current.id).replaceAll("%2F", "/").replaceAll("%3A", ":") : "";
  const query = queryOf({ ...stateOf(), page: page ? String(page + 1) : "" });
  const hash = id + (query && `?${query}`);
  const address = hash ? `#${hash}` : location.pathname + location.search;
  if (address !== location.hash) history[how](null, "", address);
};

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const readAddress = async () => {
  const hash = location.hash.slice(1);
  const [, id, query] = /^([^?]*)\??(.*)$/s.exec(hash);
  const whole = rowsById.get(decoded(hash));
  const state = Object.fromEntries(new URLSearchParams(whole ? "" : query));
  const row = whole ?? rowsById.get(decoded(id));
  const left = current;
  setState(state);
  page = (Number.parseInt(state.page, 10) || 1) - 1;
  current = row ?? null;
  if (row) {
    await goTo(row);
    return;
  }
  if (left) left.opened = false;
  show();
  if (left?.element) {
    await setOpen(left, false);
    summaryOf(left).focus();
  }
};

const refresh = (how) => {
  page = 0;
  current = null;
  show();
  saveAddress(how);
};

const turn = (step) => {
  page += step;
  current = null;
  show();
  saveAddress("pushState");
  byId("tests").scrollIntoView({ block: "start" });
};

const filterBy = (query) => {
  setState(Object.fromEntries(new URLSearchParams(query)));
  refresh("pushState");
};

const toggle = async (row) => {
  const open = !row.element.open;
  current = open ? row : null;
  await setOpen(row, open);
  saveAddress("pushState");
};

// --- Inside a test ------------------------------------------------------------------------------------------------

// Where there is room the contexts are beside the response, in a pane that scrolls by itself.
const scrollPane = (target) => {
  const pane = target.closest(".sources");
  if (!pane || pane.scrollHeight <= pane.clientHeight || getComputedStyle(pane).overflowY === "visible") return;
  const offset = target.getBoundingClientRect().top - pane.getBoundingClientRect().top;
  if (offset < 0 || offset > pane.clientHeight * 0.8) pane.scrollTop += offset - pane.clientHeight / 3;
};

const reveal = (target) => {
  for (let element = target; element !== list; element = element.parentElement) {
    if (element.tagName === "DETAILS") element.open = true;
  }
  list.querySelectorAll(".here").forEach((element) => element.classList.remove("here"));
  target.classList.add("here");
  scrollPane(target);
  const box = target.getBoundingClientRect();
  if (box.top < 96 || box.bottom > innerHeight) target.scrollIntoView({ block: box.height > innerHeight / 2 ? "start" : "center" });
  if (!target.matches("a")) target.tabIndex = -1;
  target.focus({ preventScroll: true });
};

// All elements of one verdict light up together, and its evidence scrolls into sight.
let lit = [];
const light = (event) => {
  lit.forEach((element) => element.classList.remove("hot"));
  const sample = event.target.closest(".sample");
  const numbers = event.target.closest("[data-n]")?.dataset.n.split(" ") ?? [];
  lit = sample ? numbers.flatMap((number) =>
    Array.from(sample.querySelectorAll(`mark[data-n~="${number}"], li[data-n="${number}"]`))) : [];
  lit.forEach((element) => element.classList.add("hot"));
  if (event.target.closest(".sources")) return;
  const evidence = lit.find((element) => element.closest(".sources [open]"));
  if (evidence) scrollPane(evidence);
};
list.addEventListener("mouseover", light);
list.addEventListener("focusin", (event) => {
  light(event);
  const row = event.target.matches(".test > summary") && rowOf.get(event.target.parentElement);
  if (row) rove(row);
});

// --- Mouse and keys -----------------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const summary = event.target.closest(".test > summary");
  const link = event.target.closest("a[href^='#']");
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || !(summary || link)) return;
  event.preventDefault();
  if (summary) {
    await toggle(rowOf.get(summary.parentElement));
  } else if (link.dataset.filter !== undefined) {
    filterBy(link.getAttribute("aria-current") ? "" : link.dataset.filter);
    byId("tests").scrollIntoView({ block: "start" });
    if (shown.length) summaryOf(shown[0]).focus({ preventScroll: true });
  } else if (list.contains(byId(link.hash.slice(1)))) {
    reveal(byId(link.hash.slice(1)));
  } else if (rowsById.has(decoded(link.hash.slice(1)))) {
    await goTo(rowsById.get(decoded(link.hash.slice(1))));
    saveAddress("pushState");
  } else {
    byId("tests").tabIndex = -1;
    byId("tests").focus();
  }
});

const step = (from, by) => {
  let index = from ? shown.indexOf(from) + by : 0;
  if (index >= shown.length && !byId("later").disabled) {
    turn(1);
    index = 0;
  } else if (index < 0 && page > 0) {
    turn(-1);
    index = shown.length - 1;
  }
  if (shown[index]) summaryOf(shown[index]).focus();
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const test = event.target.closest(".test");
  const row = test && rowOf.get(test);
  const typing = event.target.matches("input:not([type='checkbox']), select");
  const letters = byId("letters").checked && !typing;
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? (letters ? { j: 1, k: -1 }[event.key] : undefined);
  if (event.key === "Escape" && event.target === controls.search && shown.length) {
    summaryOf(shown[0]).focus();
  } else if (event.key === "Escape" && row?.opened) {
    toggle(row);
    summaryOf(row).focus();
  } else if (event.key === "/" && letters) {
    controls.search.focus();
    controls.search.select();
  } else if (by && (letters && event.key.length === 1 || event.target.matches(".test > summary"))) {
    step(row, by);
  } else {
    return;
  }
  event.preventDefault();
});

let pending = 0;
controls.search.addEventListener("input", () => {
  clearTimeout(pending);
  pending = setTimeout(() => refresh("replaceState"), 120);
});
controls.search.addEventListener("focus", readAll);
for (const name of ["outcome", "metric", "file", "mark", "sort"]) {
  controls[name].addEventListener("change", () => refresh("pushState"));
}
byId("toolbar").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pending);
  refresh("replaceState");
});
byId("clear").addEventListener("click", () => {
  filterBy("");
  controls.search.focus();
});
byId("earlier").addEventListener("click", () => turn(-1));
byId("later").addEventListener("click", () => turn(1));
addEventListener("popstate", readAddress);
byId("toolbar").hidden = false;
byId("keys").hidden = rows.length === 0;
await readAddress();
// After a failure the worst test is readable without a click.
if (!location.hash && /^(?:failed|error|unscored)$/.test(rows[0]?.status)) await setOpen(rows[0], true);
document.documentElement.dataset.ready = "true";
