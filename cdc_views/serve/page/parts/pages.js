// Pages of entries, one after the other.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { problem } from "./problem.js";

/**
 * A list of class `kind` of the entries at `address`, which goes on with a button. `entry(row)` is an item of the list;
 * `summary(count, page)` says what is shown. `ask(question)` begins with the first page of a question: its parameters.
 */
export function pages(kind, address, signal, entry, summary) {
  const statusLine = h("p", { class: "dim", role: "status" });
  const list = h("ol", { class: kind });
  const more = h("button", { type: "button", hidden: true, on: { click: () => load(asked, cursor) } }, "More");
  let asked = null;
  let cursor = null;

  async function load(question, after) {
    more.disabled = true;
    try {
      const page = await get(address, { ...question, cursor: after }, signal);
      if (question !== asked) return; // the answer to an earlier question
      if (after === null) show(list);
      list.append(...page.rows.map(entry));
      cursor = page.cursor;
      more.hidden = cursor === null;
      show(statusLine, summary(list.children.length, page));
    } catch (error) {
      if (signal.aborted || question !== asked) return;
      more.hidden = true;
      show(statusLine);
      show(list, h("li", {}, problem(error)));
    } finally {
      if (question === asked) more.disabled = false;
    }
  }

  return {
    elements: [statusLine, list, more],
    ask(question) {
      asked = question;
      load(question, null);
    },
  };
}
