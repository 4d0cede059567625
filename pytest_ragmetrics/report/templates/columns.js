// Rows by winner, of all metrics together or of one; the address keeps both.
const rows = Array.from(document.querySelectorAll("#rows > li"));
const toolbar = document.getElementById("toolbar");
const metric = document.getElementById("metric");
const winnersOf = rows.map((row) => row.dataset.winners.split(" "));

const show = () => {
  const place = metric.value === "" ? 0 : Number(metric.value) + 1;
  const winner = toolbar.elements.winner.value;
  const counts = new Map([["", rows.length]]);
  let shown = 0;
  rows.forEach((row, index) => {
    const found = winnersOf[index][place];
    counts.set(found, (counts.get(found) ?? 0) + 1);
    row.hidden = winner !== "" && found !== winner;
    shown += row.hidden ? 0 : 1;
  });
  for (const count of toolbar.querySelectorAll("[data-count]")) {
    const found = counts.get(count.dataset.count) ?? 0;
    count.textContent = found.toLocaleString("en");
    // A winner without a row is left out, unless it is chosen.
    count.parentElement.hidden = !found && count.dataset.count !== winner;
  }
  document.getElementById("nothing").hidden = shown > 0;
};

const readAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  metric.value = given.get("metric") ?? "";
  if (metric.selectedIndex === -1) metric.value = "";
  const chosen = Array.from(toolbar.elements.winner).find((radio) => radio.value === (given.get("winner") ?? ""));
  (chosen ?? toolbar.elements.winner[0]).checked = true;
  show();
};

toolbar.addEventListener("change", () => {
  const state = { winner: toolbar.elements.winner.value, metric: metric.value };
  const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value)).toString();
  history.pushState(null, "", query ? `#${query}` : location.pathname + location.search);
  show();
});
toolbar.addEventListener("submit", (event) => event.preventDefault());
addEventListener("popstate", readAddress);
toolbar.hidden = false;
readAddress();
document.documentElement.dataset.ready = "true";
