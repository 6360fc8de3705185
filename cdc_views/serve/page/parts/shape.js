// The kind of a view as a badge.

import { h } from "../dom.js";

/** "saved searches" for saved_searches; nothing for a view without a kind, and for a mirror. */
export function shapeOf({ shape }) {
  return shape && shape !== "sql" && h("span", { class: "badge" }, shape.replaceAll("_", " "));
}
