// A problem with its remedy.

import { h } from "../dom.js";

/** What is wrong, and what to do about it. */
export function problem({ error, detail, message, hint }) {
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("strong", {}, error ?? "Unexpected"),
    h("p", {}, detail ?? message),
    hint && h("p", { class: "hint" }, h("span", {}, "What to do: "), hint),
  );
}
