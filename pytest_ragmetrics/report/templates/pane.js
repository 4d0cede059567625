// The pane: one test, the highlights of one of its metrics at a time, and what belongs together lit up together.
const pane = byId("pane");
const testOf = byId("test");
let showing = null;

// --- One metric at a time -----------------------------------------------------------------------------------------

const samplesOf = () => Array.from(testOf.querySelectorAll(".sample"));
const radiosOf = (sample) => Array.from(sample.querySelectorAll(".switch input"));

const choose = (sample, radio) => {
  radio.checked = true;
  const score = radio.value;
  for (const element of sample.querySelectorAll("[data-m]")) element.hidden = element.dataset.m !== score;
  for (const mark of sample.querySelectorAll("mark[data-k]")) {
    const look = mark.dataset.k.split(" ").find((part) => part.startsWith(`${score}:`));
    mark.className = look ? look.slice(score.length + 1) : "";
  }
  const others = sample.querySelector(`.findings[data-m="${score}"] .others`);
  sample.classList.toggle("with-found", others?.open ?? !sample.querySelector(`.findings[data-m="${score}"] .verdicts`));
  for (const passages of sample.querySelectorAll(".passages")) arrange(passages, score);
};

const unclear = new WeakMap();

// Passages that a finding points to are open, those without one are folded away together.
const arrange = (passages, score) => {
  const contexts = Array.from(passages.querySelectorAll(".context"));
  // What is open without a finding was opened because nothing points anywhere.
  unclear.set(passages, unclear.get(passages) ?? contexts.filter((context) => context.open && !context.dataset.touched));
  const touched = contexts.filter((context) => context.dataset.touched.split(" ").includes(score));
  const opened = touched.length ? touched : unclear.get(passages);
  for (const context of contexts) context.open = opened.includes(context);
  passages.replaceChildren(...contexts);
  const rest = contexts.filter((context) => !opened.includes(context));
  if (!opened.length || rest.length < 2) return;
  const others = create("details", ' class="untouched"');
  const summary = document.createElement("summary");
  summary.textContent = `${rest.length} more without a finding`;
  others.append(summary, ...rest);
  passages.append(others);
};

const metricOf = (radio) => radio.parentElement.querySelector(".metric").textContent;
const chooseMetric = (metric) => {
  for (const sample of samplesOf()) {
    const radios = radiosOf(sample);
    const radio = radios.find((each) => metricOf(each) === metric) ?? radios[0];
    if (radio) choose(sample, radio);
  }
};

// --- Showing a test -----------------------------------------------------------------------------------------------

const showPosition = (row) => {
  const at = matching.found.indexOf(row);
  byId("position").textContent = at < 0 ? "" : `${number(at + 1)} of ${number(matching.found.length)}`;
  byId("previous").disabled = at <= 0;
  byId("next").disabled = at < 0 ? true : at === matching.found.length - 1;
};

const showTest = async (row) => {
  const compared = state.view === "compare" && row?.compare;
  const place = compared || row?.body;
  showing = row ?? null;
  showPosition(row);
  byId("to-diff").hidden = !row?.compare || !row.kind;
  byId("to-diff").textContent = compared ? "Back to the test" : "What changed";
  if (testOf.place === place) return;
  testOf.place = place;
  if (!row) {
    testOf.replaceChildren();
    return;
  }
  const body = build(await bodyOf(place));
  // Another test may have been opened while this one was unpacked.
  if (testOf.place !== place) return;
  const focused = testOf.contains(document.activeElement);
  testOf.replaceChildren(body);
  if (focused) testOf.querySelector("h2")?.focus({ preventScroll: true });
  addCopies(row);
  addMarks(row);
  chooseMetric(state.show || state.filters.metric);
  clamp();
  pane.scrollTop = 0;
};

const FIELDS = { user_input: "question", response: "answer", reference: "reference" };
// What is tall is cut at first; a button, a link into it and the focus show all of it.
const clamp = () => {
  for (const element of testOf.querySelectorAll(".clamps")) {
    element.classList.add("clamped");
    if (element.scrollHeight <= element.clientHeight * 1.15) {
      element.classList.remove("clamped");
      continue;
    }
    const fault = element.querySelector("mark:is(.missing, .missed)");
    const above = fault ? fault.getBoundingClientRect().top - element.getBoundingClientRect().top - element.clientHeight / 2 : 0;
    const line = Number.parseFloat(getComputedStyle(element).lineHeight);
    element.scrollTop = Math.floor(Math.max(0, above) / line) * line;
    const button = create("p", ' class="unclamp"').appendChild(document.createElement("button"));
    button.type = "button";
    button.textContent = element.matches(".sources") ? "Show all of the contexts" : `Show the whole ${FIELDS[element.dataset.field]}`;
    button.addEventListener("click", () => unclamp(element));
    element.after(button.parentElement);
  }
};
const unclamp = (element) => {
  if (!element?.matches(".clamped")) return;
  element.classList.remove("clamped");
  element.nextElementSibling.remove();
};
testOf.addEventListener("focusin", (event) => unclamp(event.target.closest(".clamped")));

// --- Copying ------------------------------------------------------------------------------------------------------

const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages without a secure address have no clipboard of their own.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
};

// A text as it is shown, without the numbers and the folds of the page in it.
const textOf = (element) => {
  const shown = element.cloneNode(true);
  for (const own of shown.querySelectorAll(".n, summary, .none")) own.remove();
  return shown.textContent;
};
const sampleAsJson = (sample) => {
  const values = {};
  for (const element of (samplesOf().length === 1 ? testOf : sample).querySelectorAll("[data-field]")) {
    const { field } = element.dataset;
    if (field.endsWith("contexts")) (values[field] ??= []).push(textOf(element));
    else values[field] = textOf(element);
  }
  return JSON.stringify({ ...values, ...JSON.parse(sample.dataset.values) }, null, 2);
};
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const copies = {
  "test id": (row) => row.id,
  command: (row) => `pytest ${quoted(row.id)}`,
  "sample as JSON": () => `${samplesOf().map(sampleAsJson).join("\n")}\n`,
};

const addCopies = (row) => {
  if (!row.kind) return;
  const line = create("span", ' class="copies"');
  for (const [name, text] of Object.entries(copies)) {
    if (name.startsWith("sample") && !samplesOf().length) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `Copy ${name}`;
    button.addEventListener("click", async () => {
      await copy(text(row));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = `Copy ${name}`; }, 1500);
    });
    line.append(button);
  }
  testOf.querySelector(".meta")?.append(line);
};

// --- Inside a test ------------------------------------------------------------------------------------------------

const reveal = (target) => {
  const score = target.closest("[data-m]")?.dataset.m;
  const sample = target.closest(".sample");
  const radio = sample && score && radiosOf(sample).find((each) => each.value === score);
  if (radio && !radio.checked) choose(sample, radio);
  for (let element = target; element !== testOf; element = element.parentElement) {
    if (element.tagName === "DETAILS") element.open = true;
  }
  unclamp(target.closest(".clamped"));
  if (target.closest(".found, .evidence, .uncounted")) sample?.classList.add("with-found");
  testOf.querySelectorAll(".here").forEach((element) => element.classList.remove("here"));
  target.classList.add("here");
  const box = target.getBoundingClientRect();
  // What follows a heading is what was looked for.
  const isHeading = target.matches("h3, h4");
  if (isHeading || box.top < 96 || box.bottom > innerHeight) target.scrollIntoView({ block: isHeading ? "start" : "center" });
  if (!target.matches("a")) target.tabIndex = -1;
  target.focus({ preventScroll: true });
};

// All elements of one verdict light up together.
let lit = [];
const light = (event) => {
  lit.forEach((element) => element.classList.remove("hot"));
  const sample = event.target.closest(".sample");
  const verdicts = event.target.closest("[data-n]")?.dataset.n.split(" ") ?? [];
  const shown = sample && radiosOf(sample).find((radio) => radio.checked)?.value;
  lit = verdicts.filter((verdict) => verdict.startsWith(`${shown}.`)).flatMap((verdict) =>
    Array.from(sample.querySelectorAll(`mark[data-n~="${verdict}"], li[data-n="${verdict}"]`)));
  lit.forEach((element) => element.classList.add("hot"));
};
testOf.addEventListener("mouseover", light);
testOf.addEventListener("focusin", light);

// The words of a highlight lead to what else there is of its verdict: its evidence, else its place in the list.
testOf.addEventListener("click", (event) => {
  const mark = event.target.closest("mark[data-n]");
  if (!mark || event.target.closest("a") || String(getSelection())) return;
  const sample = mark.closest(".sample");
  const score = radiosOf(sample).find((radio) => radio.checked)?.value;
  const verdict = mark.dataset.n.split(" ").find((each) => each.startsWith(`${score}.`));
  const places = verdict ? Array.from(sample.querySelectorAll(`.n a[data-n="${verdict}"]`)) : [];
  const sources = mark.closest(".sources");
  const goal = places.find((place) => Boolean(place.closest(".sources")) !== Boolean(sources)) ?? places[0];
  if (goal) reveal(goal);
});
testOf.addEventListener("toggle", (event) => {
  if (event.target.matches(".findings:not([hidden]) > .others")) event.target.closest(".sample").classList.toggle("with-found", event.target.open);
}, true);
testOf.addEventListener("change", (event) => {
  if (!event.target.matches(".switch input")) return;
  choose(event.target.closest(".sample"), event.target);
  state.show = metricOf(event.target);
  saveAddress("replaceState");
});
