// Pages of a timeline.

import { path } from "../api.js";
import { h, show } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { pages } from "../parts/pages.js";
import { text } from "../parts/table.js";

/** Show the entries of an owner, page by page. */
export async function timeline(panel, signal, view) {
  const owner = field("Whose timeline", {
    name: "owner",
    required: true,
    "data-key": "/",
    placeholder: "the value of the owner",
  });
  const found = pages(
    "entries",
    `views/${path(view.name)}/timeline`,
    signal,
    (entry) => entryOf(entry, view),
    (count, page) => {
      const end = page.cursor === null ? "these are all" : "there are more";
      return `${number(count)} entries at epoch ${number(page.epoch)}; ${end}.`;
    },
  );
  show(
    panel,
    form("Timeline", [owner], "Show", () => found.ask({ owner: owner.input.value })),
    found.elements,
  );
  owner.input.focus();
}

function entryOf(entry, view) {
  return h(
    "li",
    {},
    view.columns.map(({ name }) =>
      h(
        "span",
        {},
        h("span", { class: "dim" }, `${name} `),
        entry[name] === null ? h("span", { class: "null" }, "NULL") : text(entry[name]),
      ),
    ),
  );
}
