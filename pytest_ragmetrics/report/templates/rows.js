// The tests out of the data packed into this page: which of them match, in which order and groups.
const chunks = Array.from(document.querySelectorAll("script.chunk"));
let everyRow = [];
try {
  everyRow = await unpack(byId("index"));
} catch (error) {
  document.documentElement.dataset.view = "tests";
  byId("list").textContent = `The list of tests could not be unpacked (${error.message}). With scripts switched off the page shows it plainly.`;
  return;
}
const rowsById = new Map(everyRow.map((row) => [row.id, row]));
everyRow.forEach((row, position) => { row.position = position; });
const searched = (row) => (row.words ??= folded(`${row.name}\n${row.file}\n${wordsOf(row.row)}`));
// Gates are no tests of an answer: they open by a link and are in no list.
const rows = everyRow.filter((row) => row.kind);
// Tests that changed since the baseline, those that only it has among them.
const compared = everyRow.filter((row) => row.tags);

let latestChunk = [-1, null];
const bodyOf = async ([number, position]) => {
  if (latestChunk[0] !== number) latestChunk = [number, unpack(chunks[number])];
  return (await latestChunk[1])[position];
};

// What only a body says is read when something is searched for the first time.
let reading = null;
let allRead = chunks.length === 0;
const readAll = () => {
  reading ??= (async () => {
    const within = chunks.map(() => []);
    rows.forEach((row) => within[row.body[0]].push(row));
    for (const [number, chunk] of chunks.entries()) {
      const bodies = await unpack(chunk);
      for (const row of within[number]) row.words = `${searched(row)}\n${folded(wordsOf(bodies[row.body[1]]))}`;
    }
    allRead = true;
  })();
  return reading;
};

const scoresOf = (row, metric) => row.scores.filter(([name]) => !metric || name === metric);
const outcomeMatches = (row, { outcome, metric }) => {
  // Vacuous scores come without their value.
  if (outcome === "score-vacuous") return scoresOf(row, metric).some(([, value, score]) => value === null && score !== "unscored");
  if (outcome === "scored") return scoresOf(row, metric).some(([, value]) => value !== null);
  if (outcome.startsWith("score-")) return scoresOf(row, metric).some((score) => `score-${score[2]}` === outcome);
  return row.status === outcome;
};
const conditions = {
  kind: (row, { kind }) => row.kind === kind,
  cause: (row, { cause }) => row.cause === cause,
  in: (row, { by, in: value }) => row.in[by] === value,
  change: (row, { change }) => row.tags?.includes(change),
  metric: (row, { metric }) => scoresOf(row, metric).length > 0,
  outcome: outcomeMatches,
  file: (row, { file }) => row.file === file,
  mark: (row, { mark }) => row.marks.includes(mark),
};

// Tests without a score come last, whichever way the scores run.
const extreme = (row, metric, pick, without) => {
  const values = scoresOf(row, metric).map(([, value]) => value).filter((value) => value !== null);
  return values.length ? pick(...values) : without;
};
const collator = new Intl.Collator("en", { numeric: true });
const orders = {
  lowest: (metric) => (a, b) => extreme(a, metric, Math.min, Infinity) - extreme(b, metric, Math.min, Infinity),
  highest: (metric) => (a, b) => extreme(b, metric, Math.max, -Infinity) - extreme(a, metric, Math.max, -Infinity),
  change: () => (a, b) => (a.change ?? Infinity) - (b.change ?? Infinity),
  size: () => (a, b) => b.size[0] - a.size[0] || b.size[1] - a.size[1],
  name: () => (a, b) => collator.compare(a.name, b.name),
  slowest: () => (a, b) => b.duration - a.duration,
  dearest: () => (a, b) => b.cost - a.cost || b.tokens - a.tokens,
};

let ordered = { key: "", rows };
const sorted = ({ sort, metric }, all, usual) => {
  const order = sort || usual;
  const key = `${all === compared} ${order} ${metric}`;
  if (key !== ordered.key) {
    // Infinity minus Infinity is NaN, which is no order: fall back on the first one.
    const compare = orders[order]?.(metric);
    ordered = { key, rows: compare ? [...all].sort((a, b) => compare(a, b) || a.position - b.position) : all };
  }
  return ordered.rows;
};

// Groups with the most tests that went wrong come first, what has no value last.
const WRONG = /^(?:fails$|newly fails|fails, new|no score|fails as before)/;
const grouped = (found, by) => {
  const groups = new Map();
  for (const row of found) {
    const value = row.in[by] ?? "";
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(row);
  }
  const wrong = (members) => members.filter((row) => WRONG.test(row.kind)).length;
  return [...groups].map(([value, members]) => ({ value, members, wrong: wrong(members) }))
    .sort((a, b) => !a.value - !b.value || b.wrong - a.wrong || b.members.length - a.members.length);
};

// Returns the tests that match in their order, and the groups they are in.
const find = (filters, view) => {
  const words = folded(filters.search).split(/\s+/).filter(Boolean);
  // Either view has chips of its own.
  const [all, usual, other] = view === "compare" ? [compared, "size", "kind"] : [rows, "", "change"];
  const checks = Object.entries(conditions).filter(([name]) => filters[name] && name !== other);
  const found = sorted(filters, all, usual).filter((row) =>
    checks.every(([, holds]) => holds(row, filters)) && words.every((word) => searched(row).includes(word)));
  const groups = filters.by && !filters.in ? grouped(found, filters.by) : [];
  return { groups, found: groups.length ? groups.flatMap(({ members }) => members) : found };
};
