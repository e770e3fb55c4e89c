"use strict";
// A click on a heading sorts its table: numbers from the largest, text from A; a second click reverses it.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rows = [...body.rows];
    const numbers = rows.some((row) => "value" in row.cells[column].dataset);
    const key = (row) => numbers ? Number(row.cells[column].dataset.value ?? NaN) : row.cells[column].textContent;
    const before = head.getAttribute("aria-sort");
    const rising = before ? before === "descending" : !numbers;
    const order = (a, b) => numbers ? a - b : a.localeCompare(b, undefined, { numeric: true });
    const empty = (value) => value === "" || Number.isNaN(value);
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (empty(x) || empty(y)) return empty(x) - empty(y);  // empty cells stay at the end
      return rising ? order(x, y) : order(y, x);
    });
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    table.classList.add("sorted");  // every row then shows its first cell, not only the first row of a group
    body.append(...rows);
  }));
}
