"use strict";
// Sorting and filtering of the list of pages. The address stores the choices.

const body = document.querySelector("#sentences tbody");
const rows = [...body.rows];
const headings = [...document.querySelectorAll("#sentences thead tr > *")];
const compare = new Intl.Collator(undefined, { numeric: true }).compare;

function sort(column, descending) {
  const value = (row) => row.cells[column].dataset.value;
  const inOrder = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (!a || !b) return !a - !b; // empty cells come last
    return (descending ? -1 : 1) * (isNaN(a) || isNaN(b) ? compare(a, b) : a - b);
  };
  body.append(...rows.sort(inOrder));
  headings.forEach((heading, i) => {
    if (!heading.querySelector("button")) return;
    heading.setAttribute("aria-sort", i !== column ? "none" : descending ? "descending" : "ascending");
  });
}

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

headings.forEach((heading, column) => {
  heading.querySelector("button")?.addEventListener("click", () => {
    const descending = heading.getAttribute("aria-sort") === "ascending";
    sort(column, descending);
    keep({ sort: column, descending: descending ? "1" : "" });
  });
});

const field = document.getElementById("filter");
field.addEventListener("input", () => {
  filter(field.value);
  keep({ filter: field.value });
});

const kept = new URLSearchParams(location.hash.slice(1));
const column = Number(kept.get("sort") ?? NaN);
if (headings[column]?.querySelector("button")) sort(column, kept.has("descending"));
if (kept.get("filter")) filter((field.value = kept.get("filter")));
