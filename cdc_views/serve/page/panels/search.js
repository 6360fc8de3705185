// Searches of an index.

import { get, path } from "../api.js";
import { h, show } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { problem } from "../parts/problem.js";
import { text } from "../parts/table.js";

/** Show a search box and what it finds. */
export async function search(panel, signal, view) {
  const words = field("Search", {
    type: "search",
    name: "q",
    required: true,
    "data-key": "/",
    class: "grow",
    placeholder: 'words, "a phrase", prefix*, +must, -not, column:word',
  });
  const filter = field("Filter", { name: "filter", placeholder: "likes>=10" });
  const sort = field("Sort", { name: "sort", placeholder: "by score" });
  const told = h("p", { class: "dim", role: "status" });
  const found = h("ol", { class: "hits" });
  const more = h("button", { type: "button", hidden: true, on: { click: () => load(cursor) } }, "More");
  let cursor = null;
  show(
    panel,
    form("Search", [words, filter, sort], "Search", () => load(null)),
    told,
    found,
    more,
  );
  words.input.focus();

  async function load(after) {
    const asked = {
      q: words.input.value,
      filter: filter.input.value,
      sort: sort.input.value,
      cursor: after,
      explain: true,
    };
    try {
      const answer = await get(`views/${path(view.name)}/search`, asked, signal);
      if (after === null) show(found);
      found.append(...answer.rows.map((hit) => hitOf(hit)));
      cursor = answer.cursor;
      more.hidden = cursor === null;
      show(
        told,
        `${number(found.children.length)} of ${number(answer.total)} documents at epoch ${number(answer.epoch)}.`,
      );
    } catch (error) {
      if (signal.aborted) return;
      more.hidden = true;
      show(told);
      show(found, h("li", {}, problem(error)));
    }
  }
}

function hitOf(hit) {
  const matching = Object.entries(hit.snippets).filter(([, pieces]) => pieces !== null);
  const rest = Object.entries(hit.document).filter(
    ([name, value]) => value !== null && !hit.snippets[name] && !(name in hit.snippets && String(value).length > 160),
  );
  return h(
    "li",
    {},
    matching.map(([name, pieces]) =>
      h(
        "p",
        { class: "snippet" },
        h("span", { class: "dim" }, `${name} `),
        pieces.map((piece) => (piece.matches ? h("mark", {}, piece.text) : piece.text)),
      ),
    ),
    h(
      "p",
      { class: "rest" },
      rest.map(([name, value]) => h("span", {}, h("span", { class: "dim" }, `${name} `), text(value))),
    ),
    h(
      "details",
      {},
      h("summary", {}, `score ${hit.score.toFixed(3)}`),
      h(
        "ul",
        {},
        hit.explanation.map((part) =>
          h(
            "li",
            {},
            `${part.score.toFixed(3)} for ${part.clause} in ${part.field}: ` +
              `weight ${part.weight}, idf ${part.idf.toFixed(3)}, tf ${part.tf.toFixed(3)}`,
          ),
        ),
      ),
    ),
  );
}
