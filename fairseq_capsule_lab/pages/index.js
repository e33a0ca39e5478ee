// Sorting and filtering of the list of pages. The address stores the choices.

const table = document.getElementById("sentences");
const rows = [...table.tBodies[0].rows];

function filter(words) {
  const sought = words.toLowerCase().split(/\s+/);
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !sought.every((word) => text.includes(word));
  }
  const left = rows.filter((row) => !row.hidden).length;
  document.getElementById("count").textContent = `${left} of ${rows.length}`;
}

function keep(changes) {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const [name, value] of Object.entries(changes)) {
    if (value) address.set(name, value);
    else address.delete(name);
  }
  history.replaceState(null, "", "#" + address);
}

sortByHeadings(table, "ascending", (column, descending) => {
  keep({ sort: String(column), descending: descending ? "1" : "" });
});

const field = document.getElementById("filter");
field.addEventListener("input", () => {
  filter(field.value);
  keep({ filter: field.value });
});

const kept = new URLSearchParams(location.hash.slice(1));
const column = Number(kept.get("sort") ?? NaN);
if (headingsOf(table)[column]?.querySelector("button")) sortTable(table, column, kept.has("descending"));
if (kept.get("filter")) filter((field.value = kept.get("filter")));
