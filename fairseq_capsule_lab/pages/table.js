"use strict";
// Sorting of tables by the buttons in their headings. The value of a cell is its `data-value`, or else its text.

const inOrderOf = new Intl.Collator(undefined, { numeric: true }).compare;
const headingsOf = (table) => [...table.tHead.rows[0].cells];

/** Sort the rows of a table by a column. Empty cells come last in both directions. */
function sortTable(table, column, descending) {
  const value = ({ cells }) => cells[column].dataset.value ?? cells[column].textContent;
  const compare = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (!a || !b) return !a - !b;
    return (descending ? -1 : 1) * (isNaN(a) || isNaN(b) ? inOrderOf(a, b) : a - b);
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  headingsOf(table).forEach((heading, i) => {
    if (!heading.querySelector("button")) return;
    heading.setAttribute("aria-sort", i !== column ? "none" : descending ? "descending" : "ascending");
  });
}

/** Let the buttons sort, at first in the order `first`. `sorted` is called with the column and the direction. */
function sortByHeadings(table, first, sorted = () => {}) {
  headingsOf(table).forEach((heading, column) => {
    heading.querySelector("button")?.addEventListener("click", () => {
      const descending = (heading.getAttribute("aria-sort") === first) !== (first === "descending");
      sortTable(table, column, descending);
      sorted(column, descending);
    });
  });
}
