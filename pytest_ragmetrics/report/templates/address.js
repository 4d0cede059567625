// The address, the views, the keys, and the start. The address says all that is shown: #VIEW/ID?FILTERS.
const tabs = Array.from(document.querySelectorAll(".views a"));
const wide = matchMedia("(min-width: 1100px)");

const encoded = (id) => encodeURIComponent(id).replaceAll("%2F", "/").replaceAll("%3A", ":");
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

const addressOf = ({ view, opened, page, show, filters }) => {
  if (view === "overview") return "#overview";
  const query = new URLSearchParams(Object.entries({ ...filters, show, page: page ? String(page + 1) : "" }).filter(([, value]) => value));
  // An id that reads like another test behind the name of the view stands alone.
  const id = opened ? (rowsById.has(`${view}/${opened.id}`) ? encoded(opened.id) : `${view}/${encoded(opened.id)}`) : view;
  return `#${id}${query.size ? `?${query}` : ""}`;
};

const saveAddress = (how) => {
  const address = addressOf(state);
  if (address !== location.hash) history[how](null, "", address);
  showTabs();
};

// The id of a test, as a terminal prints it, is an address too; what looks like a filter may be part of it.
const readAddress = () => {
  const hash = location.hash.slice(1);
  const [, head, query] = /^([^?]*)\??(.*)$/s.exec(hash);
  const [, view, rest] = /^(overview|tests|compare)(?:\/(.*))?$/s.exec(head) ?? [];
  const whole = rowsById.get(decoded(hash));
  const given = Object.fromEntries(new URLSearchParams(whole ? "" : query));
  state.opened = whole ?? rowsById.get(decoded(head)) ?? (rest && rowsById.get(decoded(rest))) ?? null;
  state.view = state.opened && !(rest && rowsById.get(decoded(rest)) === state.opened) ? "tests" : view ?? (query ? "tests" : "overview");
  if (state.view === "compare" && !byId("compare")) state.view = "tests";
  state.filters = withoutNonsense(given);
  if (state.view === "compare" && !state.opened) state.filters.change ||= chips.find((chip) => chip.name === "change").value;
  state.page = (Number.parseInt(given.page, 10) || 1) - 1;
  state.show = given.show ?? "";
};

const showTabs = () => {
  document.documentElement.dataset.view = state.view;
  document.documentElement.toggleAttribute("data-opened", Boolean(state.opened));
  for (const tab of tabs) {
    const current = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", String(current));
    tab.tabIndex = current ? 0 : -1;
    if (current && state.view !== "overview") tab.href = addressOf(state);
  }
};

// Shows what the state says. A test that the filters leave out is shown without them.
const render = async () => {
  if (state.filters.search && !allRead) readAll().then(() => { if (state.filters.search) render(); });
  matching = find(state.filters, state.view);
  if (state.opened?.kind && (allRead || !state.filters.search) && !matching.found.includes(state.opened)) {
    state.filters = withoutNonsense({});
    matching = find(state.filters, state.view);
  }
  const at = matching.found.indexOf(state.opened);
  if (at >= 0) state.page = Math.floor(at / PAGE);
  showTabs();
  if (state.view === "overview") return;
  showControls();
  showList();
  const row = state.opened ?? (wide.matches ? listed[0] : undefined);
  showCurrent(row);
  await showTest(row);
};

const filterBy = (changes, how = "pushState") => {
  state.filters = withoutNonsense(changes);
  state.opened = null;
  state.page = 0;
  state.show = "";
  const shown = render();
  saveAddress(how);
  return shown;
};

const open = async (row, how = "pushState") => {
  state.opened = row;
  state.show = "";
  const shown = render();
  saveAddress(how);
  await shown;
};

const focusTest = () => {
  const heading = testOf.querySelector("h2");
  heading?.focus({ preventScroll: true });
  if (!wide.matches) scrollTo(0, 0);
};

const toList = async () => {
  const row = showing;
  if (wide.matches) {
    row?.link?.focus();
    return;
  }
  state.opened = null;
  state.show = "";
  await render();
  saveAddress("pushState");
  row?.link?.focus();
};

const turn = async (by) => {
  state.page += by;
  state.opened = null;
  const shown = render();
  saveAddress("pushState");
  list.scrollTop = 0;
  await shown;
};

const step = async (by) => {
  const row = matching.found[matching.found.indexOf(showing) + by];
  if (!row) return;
  const inList = list.contains(document.activeElement);
  await open(row, "replaceState");
  if (inList) row.link.focus({ preventScroll: true });
  else focusTest();
};

const showDiff = async () => {
  if (!showing?.compare || !showing.kind) return;
  state.opened = showing;
  state.view = state.view === "compare" ? "tests" : "compare";
  const shown = render();
  saveAddress("pushState");
  await shown;
};

// --- Mouse and keys -------------------------------------------------------------------------------------------------

// The last link of the overview that was followed: the back key returns to it.
let followed = null;
document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const target = byId(decoded(link.hash.slice(1)));
  event.preventDefault();
  if (link.matches(".skip")) {
    if (state.view === "overview") {
      state.view = "tests";
      await render();
      saveAddress("pushState");
    }
    (list.querySelector(".row[tabindex='0']") ?? search).focus();
  } else if (link.id === "to-list") {
    await toList();
  } else if (testOf.contains(target)) {
    reveal(target);
  } else if (target && byId("overview").contains(target)) {
    target.tabIndex = -1;
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  } else {
    if (state.view === "overview") followed = link;
    history.pushState(null, "", link.hash);
    readAddress();
    await render();
    saveAddress("replaceState");
    // A click with the keyboard goes into the test; with the mouse the list keeps the focus.
    if (state.opened && (!event.detail || !wide.matches || !link.matches(".row"))) focusTest();
    else if (!state.opened && !tabs.includes(link)) (listed[0]?.link ?? search).focus({ preventScroll: true });
  }
});

const letterKeys = {
  j: () => step(1),
  k: () => step(-1),
  d: showDiff,
  r: () => markByKey("right"),
  w: () => markByKey("wrong"),
  u: () => markByKey("unsure"),
  "/": () => {
    search.focus();
    search.select();
  },
  "?": () => {
    byId("keys").open = !byId("keys").open;
    byId("keys").querySelector("summary").focus();
  },
};

const arrowsIn = (elements, key, wraps) => {
  const at = elements.indexOf(document.activeElement);
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
  const next = by && at >= 0 && elements[wraps ? (at + by + elements.length) % elements.length : at + by];
  if (next) next.focus();
  return Boolean(next);
};

document.addEventListener("keydown", async (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const { key, target } = event;
  const typing = target.matches("input:not([type='checkbox'], [type='radio']), select, textarea");
  const letters = byId("letters").checked && !typing && state.view !== "overview";
  const inList = target.matches("#list .row");
  if (key === "Escape" && byId("keys").open) {
    byId("keys").open = false;
    byId("keys").querySelector("summary").focus();
  } else if (key === "Escape" && target === search) {
    list.querySelector(".row[tabindex='0']")?.focus();
  } else if (key === "Escape" && (pane.contains(target) || (state.opened && target === document.body))) {
    await toList();
  } else if (inList && (key === "ArrowDown" || key === "ArrowUp")) {
    step(key === "ArrowDown" ? 1 : -1);
  } else if (target.matches(".views a") && arrowsIn(tabs, key, true)) {
    // Moved to another tab; Enter opens it.
  } else if (letters && /^[1-9]$/.test(key) && showing) {
    const sample = target.closest(".sample") ?? samplesOf()[0];
    const radio = sample && radiosOf(sample)[key - 1];
    if (!radio) return;
    choose(sample, radio);
    state.show = metricOf(radio);
    saveAddress("replaceState");
  } else if (letters && letterKeys[key]) {
    letterKeys[key]();
  } else {
    return;
  }
  event.preventDefault();
});

// Whoever speaks to the computer wants no letters as keys, in any report.
try {
  byId("letters").checked = localStorage.getItem("ragmetrics letters") !== "off";
} catch {
  // This browser keeps nothing.
}
byId("letters").addEventListener("change", ({ target }) => {
  try {
    localStorage.setItem("ragmetrics letters", target.checked ? "on" : "off");
  } catch {
    // As above.
  }
});

let pending = 0;
const typed = () => filterBy({ ...state.filters, search: search.value }, "replaceState");
search.addEventListener("input", () => {
  clearTimeout(pending);
  pending = setTimeout(typed, 120);
});
search.addEventListener("focus", readAll);
byId("toolbar").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pending);
  typed();
});
for (const [name, select] of Object.entries(selects)) {
  select.addEventListener("change", () => filterBy({ ...state.filters, [name]: select.value, ...(name === "by" ? { in: "" } : {}) }));
}
for (const chip of chips) chip.addEventListener("change", () => filterBy({ ...state.filters, [chip.name]: chip.value }));
byId("active").addEventListener("click", (event) => {
  const { without } = event.target.closest("button")?.dataset ?? {};
  if (!without) return;
  filterBy({ ...state.filters, [without]: "" });
  search.focus();
});
byId("clear").addEventListener("click", () => {
  filterBy({});
  search.focus();
});
byId("earlier").addEventListener("click", () => turn(-1));
byId("later").addEventListener("click", () => turn(1));
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("to-diff").addEventListener("click", showDiff);
addEventListener("popstate", async () => {
  const before = showing;
  readAddress();
  await render();
  if (state.view === "overview") followed?.focus();
  else if (!state.opened && before?.element?.isConnected && (pane.contains(document.activeElement) || document.activeElement === document.body)) before.link.focus();
});
wide.addEventListener("change", render);

// Paper has the overview and the test that was opened, else the tests that went wrong as browsers without scripts show them.
const paper = create("div", ' class="paper"');
const layOut = () => {
  paper.remove();
  if (state.opened && state.view !== "overview") return;
  paper.replaceChildren(build(document.querySelector("main noscript").textContent));
  for (const element of paper.querySelectorAll("input, .list > :is(.passed, .skipped, .xfailed)")) element.remove();
  for (const test of paper.querySelectorAll(".test")) test.open = true;
  byId("tests").append(paper);
};
matchMedia("print").addEventListener("change", ({ matches }) => (matches ? layOut() : paper.remove()));
addEventListener("beforeprint", layOut);
addEventListener("afterprint", () => paper.remove());

document.querySelector(".views").setAttribute("role", "tablist");
for (const tab of tabs) {
  tab.setAttribute("role", "tab");
  tab.setAttribute("aria-controls", tab.dataset.view === "overview" ? "overview" : "tests");
}
for (const chip of document.querySelectorAll("[data-script]")) chip.hidden = false;
readAddress();
await render();
// With #overview in the address the first Tab would start behind the skip link.
if (byId("overview").matches(":target")) {
  document.body.tabIndex = -1;
  document.body.focus({ preventScroll: true });
  document.body.removeAttribute("tabindex");
}
document.documentElement.dataset.ready = "true";
