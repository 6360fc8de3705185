// The rows of a view or mirror: some, which follow the epochs, or those with a key.

import { follow, get, keyOf, path } from "../api.js";
import { h, show, update } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { problem } from "../parts/problem.js";
import { table } from "../parts/table.js";

const LIMIT = 100;

/** Show the rows until the signal. */
export async function rows(panel, signal, view) {
  const statusLine = h("p", { class: "dim", role: "status" });
  const place = h("div", {});
  let wanted = null; // values of a key
  let known = null;
  let shown = null; // the epoch
  const isKeyed = view.key !== null && view.key.length > 0;
  const keys = isKeyed ? view.key.map((name) => field(name, { name, required: true })) : [];
  const lookUp = isKeyed && form("Find a row by its key", keys, "Find", find);
  if (lookUp) lookUp.append(h("button", { type: "button", on: { click: clear } }, "All"));
  show(panel, lookUp, statusLine, place);
  follow("epoch", 2, signal, at, (error) => update(statusLine, error.message));

  function at({ epoch }) {
    if (epoch === shown) return;
    shown = epoch;
    load();
  }

  function find() {
    wanted = keys.map((key) => key.input.value);
    load();
  }

  function clear() {
    for (const key of keys) key.input.value = "";
    wanted = null;
    load();
  }

  async function load() {
    const asked = wanted;
    try {
      const answer = await (asked === null ? some() : one(asked));
      if (asked === wanted) answer(); // else it is that of an earlier question
    } catch (error) {
      if (signal.aborted || asked !== wanted) return;
      update(statusLine);
      update(place, problem(error));
    }
  }

  async function some() {
    const found = await get(`views/${path(view.name)}/rows`, { limit: LIMIT }, signal);
    const more = found.is_complete ? "all" : "the first that were found; there are more";
    return () => {
      const seen = known;
      known = new Set(found.rows.map((row) => JSON.stringify(row)));
      const count = number(found.rows.length);
      update(statusLine, `${count} rows at epoch ${number(found.epoch)}, ${more}. They follow each epoch.`);
      update(
        place,
        table(view.columns, found.rows, (row) => seen !== null && !seen.has(JSON.stringify(row))),
      );
    };
  }

  async function one(key) {
    const found = await get(`views/${path(view.name)}/rows`, { key: keyOf(key) }, signal);
    return () => {
      update(statusLine, "The row with this key. It follows each epoch.");
      update(place, table(view.columns, found.rows));
    };
  }
}
