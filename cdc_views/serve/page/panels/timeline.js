// Pages of a timeline.

import { get, path } from "../api.js";
import { h, show } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { problem } from "../parts/problem.js";
import { text } from "../parts/table.js";

/** Show the entries of an owner, page by page. */
export async function timeline(panel, signal, view) {
  const owner = field("Whose timeline", {
    name: "owner",
    required: true,
    "data-key": "/",
    placeholder: "the value of the owner",
  });
  const told = h("p", { class: "dim", role: "status" });
  const found = h("ol", { class: "entries" });
  const more = h("button", { type: "button", hidden: true, on: { click: () => load(cursor) } }, "Older");
  let cursor = null;
  show(
    panel,
    form("Timeline", [owner], "Show", () => load(null)),
    told,
    found,
    more,
  );
  owner.input.focus();

  async function load(after) {
    try {
      const page = await get(`views/${path(view.name)}/timeline`, { owner: owner.input.value, cursor: after }, signal);
      if (after === null) show(found);
      found.append(...page.rows.map((entry) => entryOf(entry, view)));
      cursor = page.cursor;
      more.hidden = cursor === null;
      const end = cursor === null ? "these are all" : "there are older ones";
      show(told, `${number(found.children.length)} entries at epoch ${number(page.epoch)}; ${end}.`);
    } catch (error) {
      if (signal.aborted) return;
      more.hidden = true;
      show(told);
      show(found, h("li", {}, problem(error)));
    }
  }
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
