// Look-ups in a cache: hit or miss.

import { get, keyOf, path } from "../api.js";
import { h, show } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { problem } from "../parts/problem.js";
import { text } from "../parts/table.js";

/** Show what the cache has for a key. */
export async function cache(panel, signal, view) {
  const keys = view.key.map((name, place) =>
    field(name, { name, required: true, "data-key": place === 0 ? "/" : null }),
  );
  const place = h("div", { role: "status" });
  show(panel, form("Look up", keys, "Look up", load), place);
  keys[0]?.input.focus();

  async function load() {
    const key = keyOf(keys.map((each) => each.input.value));
    try {
      const found = await get(`views/${path(view.name)}/cache`, { key }, signal);
      show(place, entry(found.rows[0], found.epoch));
    } catch (error) {
      if (!signal.aborted) show(place, problem(error));
    }
  }
}

function entry({ state, etag, row }, epoch) {
  if (state === "miss") {
    return h(
      "p",
      {},
      h("span", { class: "pill warn" }, "miss"),
      ` Epoch ${number(epoch)} has no row with this key. That is certain.`,
    );
  }
  return [
    h("p", {}, h("span", { class: "pill good" }, "hit"), ` at epoch ${number(epoch)}, ETag `, h("code", {}, etag)),
    h(
      "dl",
      { class: "document" },
      Object.entries(row).map(([name, value]) =>
        h(
          "div",
          {},
          h("dt", {}, name),
          h("dd", {}, value === null ? h("span", { class: "null" }, "NULL") : h("pre", {}, laidOut(value))),
        ),
      ),
    ),
  ];
}

/** A text that is JSON, laid out; any other value as it is. */
function laidOut(value) {
  if (typeof value === "string" && /^[[{]/.test(value)) {
    try {
      return JSON.stringify(JSON.parse(value), null, 2);
    } catch {
      return value;
    }
  }
  return typeof value === "object" ? JSON.stringify(value, null, 2) : text(value);
}
