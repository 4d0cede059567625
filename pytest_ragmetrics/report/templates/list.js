// The list: a page of the tests that match, their groups, and the controls that say what matches.
const PAGE = 100;
const list = byId("list");
const number = (value) => value.toLocaleString("en");
const filterNames = ["kind", "cause", "by", "in", "change", "metric", "outcome", "file", "mark", "sort", "search"];
const selects = Object.fromEntries(["by", "sort", "metric", "cause", "outcome", "file", "mark"].map((id) => [id, byId(id)]));
const search = byId("search");
const chips = Array.from(document.querySelectorAll("#chips input"));

// All that the address says: the view, the test that was opened, and what the list is filtered by.
const state = { view: "overview", opened: null, page: 0, show: "", filters: {} };
let matching = { groups: [], found: [] };
let listed = [];

const withoutNonsense = (filters) => {
  const kept = Object.fromEntries(filterNames.map((name) => [name, filters[name] ?? ""]));
  for (const [name, select] of Object.entries(selects)) {
    select.value = kept[name];
    if (select.selectedIndex === -1) kept[name] = select.value = "";
  }
  if (!kept.by) kept.in = "";
  return kept;
};

const showControls = () => {
  const { filters, view } = state;
  search.value = filters.search;
  selects.sort.options[0].textContent = view === "compare" ? "Most changed" : "Worst first";
  const chosen = view === "compare" ? { change: filters.change } : { kind: filters.kind };
  const [[name, value]] = Object.entries(chosen);
  for (const chip of chips) {
    chip.parentElement.hidden = chip.name !== name;
    chip.checked = chip.name === name && chip.value === value;
  }
  // What is folded away can be taken away where it is read.
  const active = ["in", "metric", "cause", "outcome", "file", "mark"].filter((filter) => filters[filter]);
  byId("active").replaceChildren(...active.map((filter) => {
    const text = filter === "in" ? `${filters.by}: ${filters.in}` : selects[filter].selectedOptions[0].textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.without = filter;
    button.append(Object.assign(document.createElement("bdi"), { textContent: text }), " ×");
    button.setAttribute("aria-label", `Remove the filter ${text}`);
    return button;
  }));
};

const elementOf = (row) => {
  if (!row.element) {
    row.element = document.createElement("li");
    const link = create("a", ' class="row" tabindex="-1"');
    link.append(build(row.row));
    row.element.append(link);
    row.link = link;
  }
  row.link.href = addressOf({ ...state, opened: row, show: "" });
  return row.element;
};

const headingOf = ({ value, members }) => {
  const element = create("li", ' class="group"');
  const name = document.createElement("bdi");
  name.textContent = value || `no ${state.filters.by}`;
  const count = document.createElement("span");
  count.textContent = number(members.length);
  element.append(name, count);
  return element;
};

const rove = (row) => {
  for (const link of list.querySelectorAll(".row[tabindex='0']")) link.tabIndex = -1;
  if (row?.element?.isConnected) row.link.tabIndex = 0;
};

const showList = () => {
  const pages = Math.max(1, Math.ceil(matching.found.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const start = state.page * PAGE;
  listed = matching.found.slice(start, start + PAGE);
  const headings = new Map(matching.groups.map((group) => [group.members[0], group]));
  const first = matching.groups.find(({ members }) => members.includes(listed[0]));
  if (first) headings.set(listed[0], first);
  // A row that is put in anew loses the focus, though it may stay where it was.
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  list.replaceChildren(...listed.flatMap((row) => (headings.has(row) ? [headingOf(headings.get(row)), elementOf(row)] : [elementOf(row)])));
  if (focused?.isConnected) focused.focus({ preventScroll: true });
  list.dataset.sort = state.filters.sort;
  showCounts(pages, start);
};

const showCounts = (pages, start) => {
  const { found } = matching;
  const all = `${number(rows.length)} ${rows.length === 1 ? "test" : "tests"}`;
  const waiting = state.filters.search && !allRead ? ", still reading …" : "";
  byId("count").textContent = (found.length === rows.length ? all : `${number(found.length)} of ${all}`) + waiting;
  byId("nothing").hidden = found.length > 0 || rows.length === 0 || Boolean(waiting);
  byId("pager").hidden = pages === 1;
  byId("span").textContent = `${number(start + 1)} to ${number(start + listed.length)} of ${number(found.length)}`;
  byId("earlier").disabled = state.page === 0;
  byId("later").disabled = state.page === pages - 1;
};

// Marks the test that the pane shows, and brings it into sight in the list, not in the page.
const showCurrent = (row) => {
  for (const link of list.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
  rove(listed.includes(row) ? row : listed[0]);
  if (!listed.includes(row)) return;
  row.link.setAttribute("aria-current", "true");
  const box = row.element.getBoundingClientRect();
  const frame = list.getBoundingClientRect();
  if (box.top < frame.top) list.scrollTop -= frame.top - box.top;
  else if (box.bottom > frame.bottom) list.scrollTop += box.bottom - frame.bottom;
};
