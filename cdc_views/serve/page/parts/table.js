// Rows as a table.

import { h } from "../dom.js";

const NUMERIC = /^(u?int|float|double|decimal|halffloat)/;
const DIGITS = /^-?\d+(\.\d+)?$/;

/** A table of rows, which are objects. `columns` have a name and, if known, a type; `mark(row)` says which are new. */
export function table(columns, rows, mark = () => false) {
  if (rows.length === 0) return h("p", { class: "nothing" }, "No rows.");
  const isNumeric = (column) =>
    column.type ? NUMERIC.test(column.type) : rows.every((row) => looksNumeric(row[column.name]));
  const classes = columns.map((column) => (isNumeric(column) ? "number" : ""));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" },
    h(
      "table",
      { class: "rows" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map((column, i) => h("th", { class: classes[i], title: column.type }, column.name)),
        ),
      ),
      h(
        "tbody",
        { "data-whole": true },
        rows.map((row) =>
          h(
            "tr",
            { class: mark(row) ? "fresh" : null },
            columns.map((column, i) => cell(row[column.name], classes[i])),
          ),
        ),
      ),
    ),
  );
}

/** Whether a value of an unknown type is a number, or NULL: decimals and large numbers come as texts. */
function looksNumeric(value) {
  return value === null || typeof value === "number" || (typeof value === "string" && DIGITS.test(value));
}

/** A value of a row as text. */
export function text(value) {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function cell(value, kind) {
  if (value === null || value === undefined) return h("td", { class: `null ${kind}` }, "NULL");
  const shown = text(value);
  return h("td", { class: kind, title: shown.length > 60 ? shown : null }, shown);
}
