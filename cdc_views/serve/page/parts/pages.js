// Pages of entries, one after the other.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { problem } from "./problem.js";

/**
 * A list of class `kind` of the entries at `address`, which goes on with a button. `entry(row)` is an item of the list;
 * `summary(count, page)` says what is shown. `ask(question)` begins with the first page of a question: its parameters.
 * Further pages are of the epoch of the first one, as long as that is retained: newer entries push none out of them.
 */
export function pages(kind, address, signal, entry, summary) {
  const statusLine = h("p", { class: "dim", role: "status" });
  const list = h("ol", { class: kind });
  const more = h("button", { type: "button", hidden: true, on: { click: () => load(asked, cursor) } }, "More");
  let asked = null;
  let cursor = null;
  let epoch = null;

  async function load(question, after) {
    more.disabled = true;
    try {
      const page = after === null ? await get(address, question, signal) : await further(question, after);
      if (question !== asked) return; // the answer to an earlier question
      if (after === null) show(list);
      list.append(...page.rows.map(entry));
      ({ cursor, epoch } = page);
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

  async function further(question, after) {
    try {
      return await get(address, { ...question, cursor: after, at: epoch }, signal);
    } catch (error) {
      if (error.error !== "EpochNotRetained") throw error;
      return get(address, { ...question, cursor: after }, signal);
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
