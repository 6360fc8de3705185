// How a view is kept: its SELECT, what it reads and who reads it, its strategy and key with reasons; its columns.

import { get, path } from "../api.js";
import { h, show } from "../dom.js";

/** Show it. */
export async function definition(panel, signal, view) {
  const found = await get(`views/${path(view.name)}/explain`, {}, signal);
  show(panel, lineage(found), found.kept === null ? unknown(view) : kept(found.kept), columns(view));
}

function unknown(view) {
  return view.kind === "mirror"
    ? h("p", { class: "dim" }, "A mirror equals its table in Postgres.")
    : h("p", { class: "dim" }, "The engine has not recorded how this view is kept. It does so when it starts.");
}

function kept(view) {
  const options = Object.entries(view.options);
  return [
    h("h2", {}, "Definition"),
    options.length > 0 &&
      h(
        "p",
        { class: "options" },
        "WITH ",
        options.map(([name, value]) => h("code", {}, `${name} = '${value}'`)),
      ),
    h("pre", { class: "code" }, view.definition),
    h(
      "details",
      {},
      h("summary", {}, "The SQL that runs, with what its kind adds, and with orders that are completed by the key"),
      h("pre", { class: "code" }, view.sql),
    ),
    h(
      "dl",
      { class: "reasons" },
      fact("strategy", view.strategy, view.reason),
      fact("key", view.key === null ? "none" : `(${view.key.join(", ")})`, view.key_reason),
    ),
    lines("Steps of the query, each over those below it", view.steps),
    lines("When a table changes", view.lookups),
    Object.keys(view.internal).length > 0 && [
      h("h2", {}, "Internal views"),
      Object.entries(view.internal).map(([name, sql]) => [
        h("p", { class: "dim" }, name),
        h("pre", { class: "code" }, sql),
      ]),
    ],
  ];
}

/** Lines of text, indented by spaces as in `cdc-views explain`. */
function lines(title, found) {
  return found.length > 0 && [h("h2", {}, title), h("pre", { class: "code" }, found.join("\n"))];
}

function fact(name, value, reason) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, h("strong", {}, value), ` ${reason}`));
}

function lineage({ name, inputs, readers }) {
  if (inputs.length + readers.length === 0) return null;
  const link = (other) => h("a", { href: `#/view/${encodeURIComponent(other)}/definition` }, other);
  const list = (label, names) =>
    h(
      "ul",
      { "aria-label": label },
      names.map((each) => h("li", {}, link(each))),
    );
  const arrow = h("span", { class: "dim", "aria-hidden": "true" }, "→");
  return [
    h("h2", {}, "Lineage"),
    h(
      "div",
      { class: "lineage" },
      inputs.length > 0 && [list("It reads", inputs), arrow],
      h("strong", {}, name),
      readers.length > 0 && [arrow.cloneNode(true), list("It is read by", readers)],
    ),
  ];
}

function columns(view) {
  const isKey = (name) => view.key !== null && view.key.includes(name);
  return [
    h("h2", {}, "Columns"),
    h(
      "table",
      { class: "columns" },
      h(
        "tbody",
        {},
        view.columns.map(({ name, type }) =>
          h(
            "tr",
            {},
            h("td", {}, name),
            h("td", { class: "dim" }, type),
            h("td", {}, isKey(name) && h("span", { class: "badge" }, "key")),
          ),
        ),
      ),
    ),
  ];
}
