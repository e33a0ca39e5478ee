// Sorting and filtering of the list of pages.

const table = element("sentences");
const rows = [...table.tBodies[0].rows];
const headings = [...table.tHead.rows[0].cells];
const inOrderOf = new Intl.Collator(undefined, { numeric: true }).compare;

// Sort the rows by a column. Empty cells come last in both directions.
function sort(column, descending) {
  const value = ({ cells }) => cells[column].dataset.value;
  const compare = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (!a || !b) return !a - !b;
    return (descending ? -1 : 1) * (isNaN(a) || isNaN(b) ? inOrderOf(a, b) : a - b);
  };
  table.tBodies[0].append(...rows.sort(compare));
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
  element("count").textContent = `${left} of ${rows.length}`;
}

headings.forEach((heading, column) => {
  heading.querySelector("button")?.addEventListener("click", () => {
    sort(column, heading.getAttribute("aria-sort") === "ascending");
  });
});

element("filter").addEventListener("input", (event) => filter(event.target.value));
