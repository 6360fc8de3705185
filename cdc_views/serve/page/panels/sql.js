// A box for SQL over the published tables.

import { get, query } from "../api.js";
import { h, show } from "../dom.js";
import { milliseconds, number } from "../format.js";
import { problem } from "../parts/problem.js";
import { table } from "../parts/table.js";

const KEY = "cdc-views sql";
const MOST_SHOWN = 1000;

/** Show it. */
export async function sql(main, signal) {
  const box = h("textarea", {
    rows: 6,
    spellcheck: "false",
    "aria-label": "SELECT",
    "data-key": "/",
    placeholder: "SELECT * FROM order_totals ORDER BY amount DESC LIMIT 10",
  });
  box.value = sessionStorage.getItem(KEY) ?? "";
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  });
  const statusLine = h("p", { class: "dim", role: "status" });
  const place = h("div", {});
  const names = h("div", { class: "names" });
  const send = button("main", "Run", run);
  show(
    main,
    h("h1", {}, "SQL"),
    h("p", { class: "dim" }, "One SELECT of DuckDB over the tables of the last epoch. Nothing else can be read."),
    h(
      "section",
      { class: "card wide" },
      names,
      box,
      h("div", { class: "head" }, h("span", { class: "dim" }, "Ctrl+Enter runs it."), send),
      statusLine,
      place,
    ),
  );
  box.focus();
  try {
    const { views } = await get("views", {}, signal);
    show(
      names,
      views.filter((view) => view.problem === null).map((view) => button("name", view.name, () => insert(view))),
    );
  } catch (error) {
    if (!signal.aborted) show(names, problem(error)); // what was typed stays
  }

  function insert(view) {
    const name = quoted(view);
    if (box.value.trim() === "") box.value = `SELECT * FROM ${name} LIMIT 100`;
    else box.setRangeText(name, box.selectionStart, box.selectionEnd, "end");
    box.focus();
  }

  async function run() {
    if (send.disabled) return; // one at a time
    sessionStorage.setItem(KEY, box.value);
    send.disabled = true;
    show(statusLine, "Running …");
    const began = performance.now();
    try {
      const { body, headers } = await query(box.value, signal);
      const names = Object.keys(body.rows[0] ?? {});
      const cut = body.rows.length > MOST_SHOWN ? `, of which ${number(MOST_SHOWN)} are shown` : "";
      show(
        statusLine,
        `${number(body.rows.length)} rows${cut}, ${milliseconds(performance.now() - began)}, ` +
          `epoch ${number(Number(headers.get("Last-Epoch")))}.`,
      );
      show(
        place,
        table(
          names.map((name) => ({ name })),
          body.rows.slice(0, MOST_SHOWN),
        ),
      );
    } catch (error) {
      if (signal.aborted) return;
      show(statusLine);
      show(place, problem(error));
    } finally {
      send.disabled = false;
    }
  }
}

function button(kind, label, click) {
  return h("button", { type: "button", class: kind, on: { click } }, label);
}

/** The name of a view, or the schema and table of a mirror, as SQL, whatever characters it has (base/names.py). */
function quoted({ name, kind }) {
  const parts = kind === "mirror" ? name.match(/"(?:[^"]|"")+"(?=\.|$)|[^".][^.]*/g) : null;
  return parts === null ? inQuotes(name) : parts.map((part) => (part[0] === '"' ? part : inQuotes(part))).join(".");
}

function inQuotes(name) {
  return `"${name.replaceAll('"', '""')}"`;
}
