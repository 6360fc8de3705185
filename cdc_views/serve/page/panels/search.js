// Searches of an index.

import { path } from "../api.js";
import { h, show } from "../dom.js";
import { number } from "../format.js";
import { field, form } from "../parts/form.js";
import { pages } from "../parts/pages.js";
import { text } from "../parts/table.js";

const LONGEST = 160; // characters of a text that does not match

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
  const found = pages(
    "hits",
    `views/${path(view.name)}/search`,
    signal,
    hitOf,
    (count, page) => `${number(count)} of ${number(page.total)} documents at epoch ${number(page.epoch)}.`,
  );
  const ask = () =>
    found.ask({ q: words.input.value, filter: filter.input.value, sort: sort.input.value, explain: true });
  show(panel, form("Search", [words, filter, sort], "Search", ask), found.elements);
  words.input.focus();
}

function hitOf(hit) {
  const matching = Object.entries(hit.snippets).filter(([, pieces]) => pieces !== null);
  const isShort = (name, value) => hit.snippets[name] === null && String(value).length <= LONGEST;
  const rest = Object.entries(hit.document).filter(
    ([name, value]) => value !== null && (!Object.hasOwn(hit.snippets, name) || isShort(name, value)),
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
