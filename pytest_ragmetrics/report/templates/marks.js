// Whether the judge is right, marked at each verdict: kept in this browser, and exported as lines of JSON, which
// `ragmetrics calibrate` reads.
const LABELS = ["right", "wrong", "unsure"];
const { run } = document.querySelector("main").dataset;
const marksKey = `ragmetrics marks ${run} ${everyRow.length}`;
const marks = new Map();
let keeps = true;

const readMarks = () => {
  try {
    for (const [key, mark] of JSON.parse(localStorage.getItem(marksKey) ?? "[]")) {
      if (LABELS.includes(mark?.line?.label)) marks.set(key, mark);
    }
  } catch {
    keeps = false;
  }
};
const keepMarks = () => {
  try {
    localStorage.setItem(marksKey, JSON.stringify([...marks]));
  } catch {
    keeps = false;
  }
};

const lineOf = (row, item) => {
  const { metric, judge } = item.closest(".findings").dataset;
  const finding = item.dataset.text ?? textOf(item.querySelector(".claim"));
  return { id: row.id, metric, finding, ok: item.matches(".found, .uncounted"), label: "", judge: judge || null, run };
};
const markKey = ({ id, metric, judge, finding, ok }) => JSON.stringify([id, metric, judge, finding, ok]);

const showMarks = () => {
  const waiting = [...marks.values()].filter(({ saved }) => !saved);
  byId("marks").hidden = marks.size === 0;
  byId("marked").textContent = waiting.length
    ? `${number(waiting.length)} ${waiting.length === 1 ? "mark" : "marks"} not saved yet${keeps ? "" : ", and this browser keeps none"}`
    : `${number(marks.size)} ${marks.size === 1 ? "mark" : "marks"} saved`;
  for (const buttons of testOf.querySelectorAll(".judge")) {
    const label = marks.get(buttons.dataset.mark)?.line.label;
    for (const button of buttons.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.textContent === label));
  }
};

// Marks a verdict, or takes the mark back that it has.
const mark = (line, label) => {
  const key = markKey(line);
  if (marks.get(key)?.line.label === label) marks.delete(key);
  else marks.set(key, { line: { ...line, label }, saved: false });
  keepMarks();
  showMarks();
};

const addMarks = (row) => {
  for (const item of testOf.querySelectorAll(".verdicts > li")) {
    const line = lineOf(row, item);
    const buttons = create("div", ' class="judge" role="group"');
    buttons.dataset.mark = markKey(line);
    buttons.setAttribute("aria-label", line.judge ? "Is the judge right?" : "Is this right?");
    buttons.append(...LABELS.map((label) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => mark(line, label));
      return button;
    }));
    item.append(buttons);
  }
  showMarks();
};

// The finding that has the focus, else the first that is shown.
const markByKey = (label) => {
  const item = document.activeElement.closest(".verdicts > li") ?? testOf.querySelector(".findings:not([hidden]) .verdicts > li");
  if (item && showing) mark(lineOf(showing, item), label);
};

byId("save-marks").addEventListener("click", () => {
  const text = [...marks.values()].map(({ line }) => `${JSON.stringify(line)}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(text, { type: "application/jsonl" }));
  link.download = "marks.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  for (const each of marks.values()) each.saved = true;
  keepMarks();
  showMarks();
});
readMarks();
