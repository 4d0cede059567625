// The queue of answers: one is shown at a time, its label kept in this browser, all exported as lines of JSON. A line is
// written as evaluation/calibration/labels.py writes it: the label, then the text that is packed into this page.
const LABELS = { 1: 1, 0: 0, s: null };
const main = document.querySelector("main");
const key = `ragmetrics label ${main.dataset.key}`;
const status = document.querySelector("[role=status]");
const rows = new Map(Array.from(document.querySelectorAll("article[data-place]"), (row) => [Number(row.dataset.place), row]));
const done = document.getElementById("done");
const exporting = document.getElementById("export");

const packed = Uint8Array.from(atob(document.getElementById("lines").textContent), (character) => character.charCodeAt(0));
const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
const lines = JSON.parse(await new Response(stream).text());

// In the order in which they were given, which undo takes back.
const labels = new Map();
const read = () => {
  try {
    for (const [place, label] of JSON.parse(localStorage.getItem(key) ?? "[]")) {
      if (Object.values(LABELS).includes(label)) labels.set(place, label);
    }
  } catch {
    document.getElementById("unkept").hidden = false;
  }
};
const keep = () => {
  try {
    localStorage.setItem(key, JSON.stringify([...labels]));
  } catch {
    document.getElementById("unkept").hidden = false;
  }
};

// Labels of another page of the same queue, made before or after this one, stay kept and are not this page's to show.
const here = () => [...labels].filter(([place]) => rows.has(place));
const show = (moves) => {
  const next = [...rows].find(([place]) => !labels.has(place))?.[1] ?? done;
  for (const row of [...rows.values(), done]) row.hidden = row !== next;
  const given = here().filter(([, label]) => label !== null).length;
  const skipped = here().length - given;
  status.textContent = `${given} labelled, ${skipped} skipped, ${rows.size - given - skipped} left`;
  for (const button of document.querySelectorAll("[data-key].good, [data-key].bad, [data-key=s]")) button.disabled = next === done;
  exporting.disabled = document.querySelector("[data-key=u]").disabled = !here().length;
  if (moves) {
    next.querySelector("h3").focus({ preventScroll: true });
    next.querySelector("h3").scrollIntoView({ block: "nearest" });
    scrollTo(0, Math.min(scrollY, next.offsetTop));
  }
};

const press = (name) => {
  const next = [...rows.keys()].find((place) => !labels.has(place));
  if (name === "u") labels.delete(here().at(-1)?.[0]);
  else if (next === undefined) return;
  else labels.set(next, LABELS[name]);
  keep();
  show(true);
};

document.addEventListener("keydown", (event) => {
  const name = event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !(name === "u" || name in LABELS)) return;
  event.preventDefault();
  press(name);
});
for (const button of document.querySelectorAll("button[data-key]")) button.addEventListener("click", () => press(button.dataset.key));
exporting.addEventListener("click", () => {
  const text = lines.filter(([place]) => labels.has(place)).map(([place, rest]) => `{"label": ${labels.get(place)}, ${rest}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(text, { type: "application/jsonl" }));
  link.download = "labels.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
});

read();
show(false);
document.documentElement.dataset.ready = "true";
