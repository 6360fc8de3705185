// Forms of one line.

import { h } from "../dom.js";

/** An input with its label. `attributes` are those of the input. */
export function field(label, attributes) {
  const input = h("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  return { input, element: h("label", { class: attributes.class ?? "" }, h("span", {}, label), input) };
}

/** A form that calls `send` when it is sent, by its button or by Enter. */
export function form(label, fields, button, send) {
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  return h(
    "form",
    { class: "line", "aria-label": label, on: { submit } },
    fields.map((each) => each.element),
    h("button", { class: "main" }, button),
  );
}
